//! Seeing to it that nothing of a lost session is carried out any more, through another path.
//!
//! Two means, the first one that works:
//!
//! 1. A target of ours is asked by a Text Request with the key [`FENCE`]; other targets do not know
//!    it.
//! 2. A login with the lost session's ISID, at a portal of the same portal group. It reinstates
//!    that session: the target ends its tasks before it answers (RFC 7143 6.3.5 "Session
//!    Reinstatement, Closure, and Timeout"). The session that it makes logs out at once.
//!
//! The path that received something last tries first, the others a little later each; the first
//! success ends the other attempts.

use super::login::Login;
use super::open::{LOGIN_MAX, open};
use super::outcome::Outcome;
use super::path::PathConfig;
use super::session::Inner;
use super::within::within;
use crate::session::Session;
use env::CoreHandle;
use iscsi::extension_keys::{FENCE, FENCED, fence_value};
use paths::stale::Nexus;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// An attempt takes no longer.
const ATTEMPT_MAX: Duration = Duration::from_secs(5);
/// So much later the next path tries too: the one before may hang as the lost one did.
const STAGGER: Duration = Duration::from_millis(250);

/// One attempt: to fence `lost` through another session.
struct Attempt {
    core: CoreHandle,
    lost: Rc<Login>,
    session: Session,
    own: Rc<Login>,
    /// It is a session with a target of ours.
    ours: bool,
    path: PathConfig,
}

impl Inner {
    /// Asks for the end of a lost session, or waits for the end of what we had on one that we have
    /// left; true when nothing of it is carried out any more.
    pub(super) async fn fence(&self, nexus: Nexus) -> bool {
        let left = self.unit.left.borrow().get(&nexus).cloned();
        if let Some(left) = left
            && left.wait().await
        {
            return true;
        }
        let lost = self.unit.logins.borrow().get(&nexus).cloned();
        let Some(lost) = lost.filter(|it| !Rc::ptr_eq(it, &self.login)) else {
            return false;
        };
        let attempt = self.begin(&lost);
        // The first success of anybody ends the wait.
        poll_fn(|cx| match lost.fencing.done.poll(cx) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending => attempt.poll(cx),
        })
        .await
    }

    /// The attempt through this session: there is one at a time, whoever asks.
    fn begin(&self, lost: &Rc<Login>) -> Rc<Outcome<bool>> {
        let mut through = lost.fencing.through.borrow_mut();
        if let Some(running) = through.get(&self.membership.through) {
            return Rc::clone(running);
        }
        let before = u32::try_from(through.len()).unwrap_or(u32::MAX);
        let outcome = Rc::new(Outcome::default());
        through.insert(self.membership.through, Rc::clone(&outcome));
        let attempt = Attempt {
            core: Rc::clone(&self.core),
            lost: Rc::clone(lost),
            session: self.session.clone(),
            own: Rc::clone(&self.login),
            ours: self.unit.facts.borrow().ours,
            path: self.path.clone(),
        };
        let (answer, through) = (Rc::clone(&outcome), self.membership.through);
        self.core.spawn(Box::pin(async move {
            let done = attempt.run(STAGGER.saturating_mul(before)).await;
            let fencing = &attempt.lost.fencing;
            fencing.through.borrow_mut().remove(&through);
            if done {
                fencing.succeeded();
            }
            answer.set(done);
        }));
        outcome
    }
}

impl Attempt {
    /// Tries after `later`, unless somebody else succeeds before.
    async fn run(&self, later: Duration) -> bool {
        let work = async {
            self.core.sleep_until(self.core.now().after(later)).await;
            let tried = async { self.ask().await || self.reinstate().await };
            within(&self.core, ATTEMPT_MAX, tried).await
        };
        let mut work = pin!(work);
        // One that is under way when another succeeds is dropped: a late login would reinstate the
        // path's next session.
        poll_fn(|cx| match self.lost.fencing.done.poll(cx) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending => work.as_mut().poll(cx).map(|it| it == Some(true)),
        })
        .await
    }

    async fn ask(&self) -> bool {
        if !self.ours {
            return false;
        }
        let value = fence_value(self.lost.isid, self.lost.tsih);
        let Ok(answer) = self.session.text(&[(FENCE, &value)]).await else {
            return false;
        };
        iscsi::text::pairs(&answer).is_ok_and(|pairs| pairs.contains(&(FENCE, FENCED)))
    }

    /// Logs in as the lost session's path would, if the portal belongs to the same portal group.
    async fn reinstate(&self) -> bool {
        let (Some(ours), Some(theirs)) = (self.own.group_tag, self.lost.group_tag) else {
            return false;
        };
        if ours != theirs || self.lost.fencing.is_done() {
            return false;
        }
        let mut config = self.path.clone();
        config.login.isid = self.lost.isid;
        let Ok((session, _)) = open(&self.core, &config).await else {
            return false;
        };
        let core = Rc::clone(&self.core);
        self.core.spawn(Box::pin(async move {
            let _parted = within(&core, LOGIN_MAX, session.logout()).await;
            session.abort();
        }));
        true
    }
}
