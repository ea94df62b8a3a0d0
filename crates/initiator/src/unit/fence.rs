//! Seeing to it that nothing of a lost session is carried out any more, through another path.
//!
//! Two ways, the first one that works:
//!
//! 1. A target of ours is asked by a Text Request with the key [`FENCE`]; other targets do not know it.
//! 2. A login with the lost session's ISID, at a portal of the same portal group. It reinstates that session: the target ends its tasks
//!    before it answers (RFC 7143 6.3.5 "Session Reinstatement, Closure, and Timeout"). The session that it makes logs out at once.
//!
//! The path that was heard last tries first, the others a little later each; the first success ends the other attempts.

use super::port::{LOGIN_MAX, open, within};
use super::session::Inner;
use super::{SessionName, Unit};
use iscsi::vendor::{FENCE, FENCED, fence_value};
use paths::stale::Nexus;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// An attempt takes no longer.
const ATTEMPT_MAX: Duration = Duration::from_secs(5);
/// So much later the next path tries too: the one before may hang as the lost one did.
const STAGGER: Duration = Duration::from_millis(250);

/// Who tries for which session, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Attempts(RefCell<BTreeMap<Nexus, Attempt>>);

#[derive(Debug, Default)]
struct Attempt {
    askers: u32,
    waiting: Vec<Waker>,
    done: bool,
}

impl Attempts {
    /// How many have asked before.
    fn enter(&self, nexus: Nexus) -> u32 {
        let mut all = self.0.borrow_mut();
        let attempt = all.entry(nexus).or_default();
        attempt.askers += 1;
        attempt.askers - 1
    }

    /// Ready when somebody has succeeded.
    fn poll_done(&self, nexus: Nexus, cx: &mut Context<'_>) -> Poll<()> {
        let mut all = self.0.borrow_mut();
        let attempt = all.entry(nexus).or_default();
        if attempt.done {
            return Poll::Ready(());
        }
        attempt.waiting.push(cx.waker().clone());
        Poll::Pending
    }

    fn succeeded(&self, nexus: Nexus) {
        let waiting = {
            let mut all = self.0.borrow_mut();
            let attempt = all.entry(nexus).or_default();
            attempt.done = true;
            std::mem::take(&mut attempt.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Sessions before this one are over for good: the path has logged in again.
    pub(super) fn forget_before(&self, nexus: Nexus) {
        let old = |it: &Nexus| it.path == nexus.path && it.session < nexus.session;
        self.0.borrow_mut().retain(|it, _| !old(it));
    }
}

impl Unit {
    /// What the target calls a session, if it is the path's last one.
    fn last_name(&self, nexus: Nexus) -> Option<SessionName> {
        let names = self.names.borrow();
        let newer = names
            .keys()
            .any(|it| it.path == nexus.path && it.session > nexus.session);
        names.get(&nexus).copied().filter(|_| !newer)
    }
}

impl Inner {
    /// Asks for the end of a lost session; true when nothing of it is carried out any more.
    pub(super) async fn fence(&self, nexus: Nexus) -> bool {
        let attempts = &self.unit.attempts;
        let before = attempts.enter(nexus);
        let later = STAGGER.saturating_mul(before);
        let attempt = async {
            self.core.sleep_until(self.core.now().after(later)).await;
            within(&self.core, ATTEMPT_MAX, self.attempt(nexus)).await
        };
        let mut attempt = pin!(attempt);
        // The first success of anybody ends the other attempts.
        let done = poll_fn(|cx| match attempts.poll_done(nexus, cx) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending => attempt.as_mut().poll(cx).map(|it| it == Some(true)),
        })
        .await;
        if done {
            attempts.succeeded(nexus);
        }
        done
    }

    async fn attempt(&self, nexus: Nexus) -> bool {
        let Some(name) = self.unit.last_name(nexus) else {
            return false;
        };
        self.ask_for_fence(name).await || self.reinstate(nexus, name).await
    }

    async fn ask_for_fence(&self, name: SessionName) -> bool {
        if !self.unit.facts.borrow().ours {
            return false;
        }
        let value = fence_value(name.isid, name.tsih);
        let Ok(answer) = self.session.text(&[(FENCE, &value)]).await else {
            return false;
        };
        iscsi::text::pairs(&answer).is_ok_and(|pairs| pairs.contains(&(FENCE, FENCED)))
    }

    /// Logs in as the lost session's path would, if the portal belongs to the same portal group.
    async fn reinstate(&self, nexus: Nexus, name: SessionName) -> bool {
        let (Some(ours), Some(theirs)) = (self.name.group_tag, name.group_tag) else {
            return false;
        };
        if ours != theirs || self.unit.last_name(nexus) != Some(name) {
            return false;
        }
        let mut config = self.path.clone();
        config.login.isid = name.isid;
        let Ok((session, _)) = open(&self.core, &config).await else {
            return false;
        };
        let core = std::rc::Rc::clone(&self.core);
        self.core.spawn(Box::pin(async move {
            let _parted = within(&core, LOGIN_MAX, session.logout()).await;
            session.abort();
        }));
        true
    }
}
