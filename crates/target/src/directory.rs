//! The directory of sessions, on core 0: one session per initiator port and target port.
//!
//! **Spec.** RFC 7143 6.3.5 "Session Reinstatement, Closure, and Timeout": a login with the name, ISID and
//! portal group of a session that exists ends that session first. The new one is answered only when every
//! task of the old one is over, or quarantined, on whatever core it lived.

use crate::session::{self, EndReason, SessionNumber};
use env::{CoreHandle, CoreId, call};
use iscsi::target::LoginRefusal;
use iscsi::{Isid, LoginStatus, Tsih};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// What makes two sessions the same.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct SessionKey {
    pub(crate) target: String,
    pub(crate) portal_group_tag: u16,
    pub(crate) initiator: String,
    pub(crate) isid: [u8; 6],
}

impl SessionKey {
    pub(crate) fn isid_bytes(isid: Isid) -> [u8; 6] {
        isid.0
    }
}

#[derive(Clone, Copy)]
struct Entry {
    core: CoreId,
    number: SessionNumber,
    tsih: u16,
}

/// The directory; only core 0 has one that is used.
#[derive(Default)]
pub(crate) struct Directory {
    entries: RefCell<BTreeMap<SessionKey, Entry>>,
    handles: RefCell<BTreeSet<u16>>,
    last_handle: Cell<u16>,
}

/// Enters a session, after ending the one that it reinstates.
pub(crate) async fn claim(
    core: &CoreHandle,
    key: SessionKey,
    number: SessionNumber,
    sessions_max: usize,
) -> Result<Tsih, LoginRefusal> {
    let from = core.id();
    let claimed = call(core, CoreId(0), move |core| {
        let core = std::rc::Rc::clone(core);
        Box::pin(async move { claim_here(&core, key, number, from, sessions_max).await })
    })
    .await;
    claimed.unwrap_or_else(|| {
        Err(LoginRefusal::new(
            LoginStatus::ServiceUnavailable,
            "the daemon is stopping",
        ))
    })
}

async fn claim_here(
    core: &CoreHandle,
    key: SessionKey,
    number: SessionNumber,
    from: CoreId,
    sessions_max: usize,
) -> Result<Tsih, LoginRefusal> {
    let directory = core.locals().get::<Directory>();
    loop {
        let old = directory.entries.borrow().get(&key).copied();
        let Some(old) = old else { break };
        tracing::info!(
            initiator = key.initiator,
            target_name = key.target,
            "session is reinstated"
        );
        call(core, old.core, move |core| {
            session::end(core, old.number, EndReason::Reinstated)
        })
        .await;
        directory.remove(&key, old.number);
    }
    if directory.entries.borrow().len() >= sessions_max {
        let reason = format!("{sessions_max} sessions exist, which is the limit");
        return Err(LoginRefusal::new(LoginStatus::OutOfResources, reason));
    }
    let Some(tsih) = directory.new_handle() else {
        return Err(LoginRefusal::new(
            LoginStatus::OutOfResources,
            "all session handles are in use",
        ));
    };
    directory.entries.borrow_mut().insert(
        key,
        Entry {
            core: from,
            number,
            tsih,
        },
    );
    Ok(Tsih(tsih))
}

/// Takes a session out, if it is still the one of this number.
pub(crate) fn release(core: &CoreHandle, key: SessionKey, number: SessionNumber) {
    let take_out = move |core: &CoreHandle| core.locals().get::<Directory>().remove(&key, number);
    if core.id() == CoreId(0) {
        take_out(core);
    } else {
        core.post(CoreId(0), Box::new(take_out));
    }
}

/// Some session has this handle.
pub(crate) async fn handle_exists(core: &CoreHandle, tsih: Tsih) -> bool {
    let asked = call(core, CoreId(0), move |core| {
        let known = core
            .locals()
            .get::<Directory>()
            .handles
            .borrow()
            .contains(&tsih.0);
        Box::pin(async move { known })
    });
    asked.await.unwrap_or(false)
}

impl Directory {
    fn remove(&self, key: &SessionKey, number: SessionNumber) {
        let mut entries = self.entries.borrow_mut();
        if let Some(entry) = entries
            .get(key)
            .copied()
            .filter(|entry| entry.number == number)
        {
            entries.remove(key);
            self.handles.borrow_mut().remove(&entry.tsih);
        }
    }

    /// A handle that no session has; never 0.
    fn new_handle(&self) -> Option<u16> {
        let mut handles = self.handles.borrow_mut();
        for _ in 0..u16::MAX {
            let next = self.last_handle.get().wrapping_add(1).max(1);
            self.last_handle.set(next);
            if handles.insert(next) {
                return Some(next);
            }
        }
        None
    }
}
