//! What happens by itself: deadlines of paths, of the book, and of operations that no path takes.

use super::engine::Engine;
use super::wait::Bell;
use env::CoreHandle;
use paths::health::{HOPE, Seen, State};
use paths::policy::Use;
use paths::stale::CommandId;
use std::rc::{Rc, Weak};
use units::Now;

impl Engine {
    /// When something has to be done next.
    fn deadline(&self) -> Option<Now> {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        for line in &mut state.lines {
            if let Some(session) = &line.session {
                line.health.seen(Seen::Received, session.received_at());
            }
        }
        let paths = state
            .lines
            .iter()
            .filter_map(|line| line.health.deadline())
            .min();
        let stuck = state
            .ready
            .iter()
            .filter_map(|id| state.pending.get(id)?.stuck)
            .min();
        let given_up = stuck.map(|since| since.after(self.config.no_path_timeout));
        [
            paths,
            state.book.deadline(),
            given_up,
            self.keeper_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn tick(self: &Rc<Self>) {
        let now = self.core.now();
        let paths = self.state.borrow().lines.len();
        for path in 0..paths {
            let effects = {
                let mut state = self.state.borrow_mut();
                let line = &mut state.lines[path];
                // Another unit may have been answered on the same session meanwhile.
                if let Some(session) = &line.session {
                    line.health.seen(Seen::Received, session.received_at());
                }
                let due = line.health.deadline().is_some_and(|at| at <= now);
                if due {
                    line.health.tick(now)
                } else {
                    Vec::new()
                }
            };
            self.carry_out(path, effects);
        }
        let decisions = self.state.borrow_mut().book.tick(now);
        self.act(decisions);
        self.keeper_tick(now);
        self.keeper_drained();
        self.hope(now);
        self.give_up(now);
        // Whoever has not looked for two ticks may never do: what has ended must not count as in
        // flight for ever.
        let ticks = self.state.borrow_mut().flights.tick();
        self.follow(|flight| flight.unseen_since(ticks) > 1);
    }

    /// With no path alive, none has to prove itself, and none waits long for its next attempt.
    fn hope(self: &Rc<Self>, now: Now) {
        let helped = {
            let state = self.state.borrow();
            if state
                .lines
                .iter()
                .any(|line| line.health.usage() != Use::No)
            {
                return;
            }
            let lines = state.lines.iter().enumerate();
            let helped = lines.filter(|(_, line)| match line.health.state() {
                State::Proving => true,
                // Once told it will not say a later time: this ends.
                State::Down(_) => line
                    .health
                    .deadline()
                    .is_some_and(|at| at > now.after(HOPE)),
                State::Connecting | State::Up | State::Quarantined | State::Disabled => false,
            });
            helped.map(|(path, _)| path).collect::<Vec<usize>>()
        };
        for path in helped {
            self.see(path, Seen::OnlyHope);
        }
    }

    fn give_up(self: &Rc<Self>, now: Now) {
        let over = {
            let state = self.state.borrow();
            let over = |id: &&CommandId| {
                let stuck = state.pending.get(id).and_then(|pending| pending.stuck);
                stuck.is_some_and(|since| now.since(since) >= self.config.no_path_timeout)
            };
            state
                .ready
                .iter()
                .filter(over)
                .copied()
                .collect::<Vec<CommandId>>()
        };
        for id in over {
            let decisions = {
                let mut state = self.state.borrow_mut();
                state.ready.retain(|it| *it != id);
                state.book.give_up(id)
            };
            self.act(decisions);
        }
    }
}

/// Ticks the engine for as long as somebody uses it.
pub(super) async fn drive(engine: Weak<Engine>, bell: Rc<Bell>, core: CoreHandle) {
    loop {
        let until = match engine.upgrade() {
            Some(engine) if !engine.state.borrow().closed => {
                let due = engine.deadline();
                engine.armed.set(due);
                due.map(|at| core.sleep_until(at))
            }
            Some(_) | None => return,
        };
        bell.rung_or(until).await;
        let Some(engine) = engine.upgrade() else {
            return;
        };
        if engine.state.borrow().closed {
            return;
        }
        engine.tick();
    }
}
