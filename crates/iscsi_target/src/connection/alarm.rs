//! One timer for a deadline that moves.
//!
//! **Contract.** A deadline that moves on, as each PDU of a peer moves it, costs nothing: the timer
//! that is set stays, and the deadline is compared again when it rings. So a connection has one
//! timer, which rings at most once for each deadline that it was set for, and never while nothing
//! is due sooner.

use env::{CoreHandle, LocalFuture};
use std::task::Context;
use units::Now;

/// The timer of a connection.
#[derive(Default)]
pub(super) struct Alarm {
    set: Option<(Now, LocalFuture<()>)>,
}

impl Alarm {
    /// Whether the deadline has come; the task is woken when it does. `None`: nothing is due.
    pub(super) fn rings(
        &mut self,
        core: &CoreHandle,
        cx: &mut Context<'_>,
        next: Option<Now>,
    ) -> bool {
        let Some(next) = next else {
            // The timer that is set may ring once for nothing: to set a new one each time would
            // cost more.
            return false;
        };
        loop {
            // One that is past due is polled all the same, and never replaced: a new one would not
            // ring at once either.
            let set = self.set.take().filter(|(at, _)| *at <= next);
            let (at, mut timer) = set.unwrap_or_else(|| (next, core.sleep_until(next)));
            if timer.as_mut().poll(cx).is_pending() {
                self.set = Some((at, timer));
                return false;
            }
            if next <= core.now() {
                return true;
            }
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use env::sim::{World, WorldConfig};
    use std::cell::{Cell, RefCell};
    use std::future::poll_fn;
    use std::rc::Rc;
    use std::task::Poll;
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn it_rings_once_for_a_deadline_however_often_it_is_asked_and_wakes_nobody_before() {
        let world = World::new(1, WorldConfig::default());
        let node = world.node("san");
        let core = node.core(0);
        let begin = core.now();
        let due = Rc::new(Cell::new(Some(begin.after(5 * SECOND))));
        let rung: Rc<RefCell<Vec<Duration>>> = Rc::default();
        let polls = Rc::new(Cell::new(0));
        let (reported, count, next, here) = (
            Rc::clone(&rung),
            Rc::clone(&polls),
            Rc::clone(&due),
            Rc::clone(&core),
        );
        core.spawn(Box::pin(async move {
            let mut alarm = Alarm::default();
            poll_fn(move |cx| {
                count.set(count.get() + 1);
                while alarm.rings(&here, cx, next.get()) {
                    reported.borrow_mut().push(here.now().since(begin));
                    next.set(None);
                }
                Poll::<()>::Pending
            })
            .await;
        }));
        // It moves on before it comes: that is found out when it would have come.
        world.run_for(SECOND);
        due.set(Some(begin.after(8 * SECOND)));
        world.run_for(6 * SECOND);
        assert!(rung.borrow().is_empty());
        assert_eq!(polls.get(), 2, "at the begin, and when the first time came");
        world.run_for(2 * SECOND);
        assert_eq!(rung.borrow().len(), 1);
        assert!((8 * SECOND..9 * SECOND).contains(&rung.borrow()[0]));
        world.run_for(60 * SECOND);
        assert_eq!(polls.get(), 3, "nothing is due any more");
    }
}
