//! The directory of sessions, on core 0: one session per initiator port and target port.
//!
//! **Spec.** RFC 7143 6.3.5 "Session Reinstatement, Closure, and Timeout": a login with the name,
//! ISID and portal group of a session that exists ends that session first. The new one is answered
//! only when every task of the old one is over, or quarantined, on whatever core it lived.

use crate::session::{self, EndReason, SessionNumber};
use crate::shared::Shared;
use env::{CoreHandle, CoreId, LocalFuture, call};
use iscsi::target_side::LoginRefusal;
use iscsi::{Isid, LoginStatus, Tsih};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// The place of a session in the directory, from the moment that it is asked for. Dropping it gives
/// the place back, also where it has not been given yet: a connection may be lost at any time.
pub(crate) struct Claim {
    core: CoreHandle,
    key: SessionKey,
    number: SessionNumber,
    given_up: Arc<AtomicBool>,
    /// Another core has the session, and the claim.
    moved: bool,
}

impl Claim {
    pub(crate) fn new(core: &CoreHandle, key: SessionKey, number: SessionNumber) -> Self {
        Self {
            core: Rc::clone(core),
            key,
            number,
            given_up: Arc::default(),
            moved: false,
        }
    }

    /// Gives the place up to the core where the session goes on; the directory does not notice.
    pub(crate) fn go_on_elsewhere(mut self) -> (SessionKey, SessionNumber) {
        self.moved = true;
        (self.key.clone(), self.number)
    }

    /// The session is on this core now: the directory is notified.
    pub(crate) async fn has_moved(core: &CoreHandle, key: SessionKey, number: SessionNumber) {
        let here = core.id();
        let reported = call(core, CoreId(0), move |core| {
            let directory = core.locals().get::<Directory>();
            if let Some(entry) = directory.entries.borrow_mut().get_mut(&key)
                && entry.number == number
            {
                entry.core = here;
            }
            Box::pin(async {})
        });
        // Without core 0 nothing goes on.
        reported.await.unwrap_or(());
    }

    /// Enters the session, after ending the one that it reinstates. The work goes on where the
    /// answer is dropped, and then leaves nothing behind.
    pub(crate) fn enter(
        &self,
        shared: &Arc<Shared>,
        sessions_max: usize,
    ) -> LocalFuture<Result<Tsih, LoginRefusal>> {
        let (core, key, number) = (Rc::clone(&self.core), self.key.clone(), self.number);
        let (given_up, shared) = (Arc::clone(&self.given_up), Arc::clone(shared));
        let from = core.id();
        Box::pin(async move {
            let claimed = call(&core, CoreId(0), move |core| {
                let core = Rc::clone(core);
                Box::pin(async move {
                    // The session that is reinstated is where the directory says.
                    let _going = shared.keep_going().await;
                    claim_here(&core, key, number, from, sessions_max, &given_up).await
                })
            });
            let stopping =
                || LoginRefusal::new(LoginStatus::ServiceUnavailable, "the daemon is stopping");
            claimed.await.unwrap_or_else(|| Err(stopping()))
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.moved {
            return;
        }
        // In this order: what has not been entered yet sees the flag, what has been is taken out.
        self.given_up.store(true, Ordering::SeqCst);
        release(&self.core, self.key.clone(), self.number);
    }
}

async fn claim_here(
    core: &CoreHandle,
    key: SessionKey,
    number: SessionNumber,
    from: CoreId,
    sessions_max: usize,
    given_up: &AtomicBool,
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
    if given_up.load(Ordering::SeqCst) {
        return Err(LoginRefusal::new(
            LoginStatus::InitiatorError,
            "the connection was lost",
        ));
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

/// Whose sessions, with whom; both in lower case.
pub(crate) struct InitiatorName {
    pub(crate) target: String,
    pub(crate) initiator: String,
}

/// Ends the session of this initiator that has this ISID and handle, through whatever portal group
/// it came. True when it is over: every task of it has ended or is in quarantine, where what comes
/// later waits for it. A session that is not in the directory any more was over before.
pub(crate) fn fence(
    core: &CoreHandle,
    shared: &Arc<Shared>,
    whose: InitiatorName,
    isid: Isid,
    tsih: Tsih,
) -> LocalFuture<bool> {
    let (core, shared) = (Rc::clone(core), Arc::clone(shared));
    Box::pin(async move {
        let fenced = call(&core, CoreId(0), move |core| {
            Box::pin(fence_here(Rc::clone(core), shared, whose, isid, tsih))
        });
        fenced.await.unwrap_or(false)
    })
}

async fn fence_here(
    core: CoreHandle,
    shared: Arc<Shared>,
    whose: InitiatorName,
    isid: Isid,
    tsih: Tsih,
) -> bool {
    // The session is where the directory says.
    let _going = shared.keep_going().await;
    let directory = core.locals().get::<Directory>();
    while let Some((key, entry)) = directory.session(&whose, isid, tsih) {
        let over = call(&core, entry.core, move |core| {
            session::end(core, entry.number, EndReason::Fenced)
        });
        if over.await.is_none() {
            return false;
        }
        directory.remove(&key, entry.number);
    }
    true
}

/// How many more sessions this initiator may have, those that it has included; `None` where core 0
/// is no more.
pub(crate) fn room(
    core: &CoreHandle,
    initiator: String,
    sessions_max: usize,
) -> LocalFuture<Option<u32>> {
    let core = Rc::clone(core);
    Box::pin(async move {
        let counted = call(&core, CoreId(0), move |core| {
            let directory = core.locals().get::<Directory>();
            let entries = directory.entries.borrow();
            let others = entries.keys().filter(|key| key.initiator != initiator);
            let room = sessions_max.saturating_sub(others.count());
            Box::pin(async move { room })
        });
        u32::try_from(counted.await?).ok()
    })
}

/// Takes a session out, if it is still the one of this number.
fn release(core: &CoreHandle, key: SessionKey, number: SessionNumber) {
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
    fn session(
        &self,
        whose: &InitiatorName,
        isid: Isid,
        tsih: Tsih,
    ) -> Option<(SessionKey, Entry)> {
        let isid = SessionKey::isid_bytes(isid);
        let entries = self.entries.borrow();
        let mut all = entries.iter();
        let found = all.find(|(key, entry)| {
            entry.tsih == tsih.0
                && key.isid == isid
                && key.target == whose.target
                && key.initiator == whose.initiator
        });
        found.map(|(key, entry)| (key.clone(), *entry))
    }

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
