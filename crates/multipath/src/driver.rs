//! What happens by itself: deadlines of paths, of the pending table, and of operations that no path
//! takes.

use super::engine::Engine;
use super::route::Route;
use super::wait::Bell;
use env::CoreHandle;
use paths::health::{HOPE, Seen, State};
use paths::policy::Use;
use paths::stale::CommandId;
use std::rc::{Rc, Weak};
use std::time::Duration;
use units::Now;

impl Engine {
    /// When something has to be done next.
    fn deadline(&self) -> Option<Now> {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        for route in &mut state.routes {
            if let Some(session) = &route.session {
                route.health.seen(Seen::Received, session.received_at());
            }
        }
        let paths = state
            .routes
            .iter()
            .filter_map(|route| route.health.deadline())
            .min();
        let without_path = state
            .ready
            .iter()
            .filter_map(|id| state.pending.get(id)?.without_path)
            .min();
        let given_up = without_path.map(|since| since.after(self.config.no_path_timeout));
        let waits_for_any = without_path.is_some() && is_lost(&state.routes);
        let asks = waits_for_any.then(|| questions(&state.routes).map(|it| it.1).min());
        [
            paths,
            asks.flatten(),
            state.pending_table.deadline(),
            given_up,
            self.plan_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn tick(self: &Rc<Self>) {
        let now = self.core.now();
        let paths = self.state.borrow().routes.len();
        for path in 0..paths {
            let effects = {
                let mut state = self.state.borrow_mut();
                let route = &mut state.routes[path];
                // Another unit may have been answered on the same session meanwhile.
                if let Some(session) = &route.session {
                    route.health.seen(Seen::Received, session.received_at());
                }
                let due = route.health.deadline().is_some_and(|at| at <= now);
                if due {
                    route.health.tick(now)
                } else {
                    Vec::new()
                }
            };
            self.perform(path, effects);
        }
        let decisions = self.state.borrow_mut().pending_table.tick(now);
        self.act(decisions);
        self.plan_tick(now);
        self.plan_drained();
        self.hope(now);
        self.give_up(now);
        // Whoever has not looked for two ticks may never do: what has ended must not count as in
        // flight for ever.
        let ticks = self.state.borrow_mut().flights.tick();
        self.follow(|flight| flight.unseen_since(ticks) > 1);
    }

    /// With no path alive, none has to prove itself, and none waits long for its next attempt.
    /// Ports that did not serve the unit are asked often while something waits: who serves it may
    /// be moving.
    fn hope(self: &Rc<Self>, now: Now) {
        let (helped, asked) = {
            let state = self.state.borrow();
            if !is_lost(&state.routes) {
                return;
            }
            let routes = state.routes.iter().enumerate();
            let helped = routes.filter(|(_, route)| match route.health.state() {
                State::Proving => true,
                // Once asked it will not say a later time: this ends.
                State::Down(_) => route
                    .health
                    .deadline()
                    .is_some_and(|at| at > now.after(HOPE)),
                State::Connecting | State::Up | State::Quarantined | State::Disabled => false,
            });
            let helped = helped.map(|(path, _)| path).collect::<Vec<usize>>();
            let asked = questions(&state.routes).filter(|(_, due)| *due <= now);
            let asked = asked.map(|(path, _)| path).collect::<Vec<usize>>();
            (
                helped,
                if state.ready.is_empty() {
                    Vec::new()
                } else {
                    asked
                },
            )
        };
        for path in helped {
            self.see(path, Seen::OnlyHope);
        }
        for path in asked {
            self.read_access(path);
        }
    }

    fn give_up(self: &Rc<Self>, now: Now) {
        let over = {
            let state = self.state.borrow();
            let over = |id: &&CommandId| {
                let without_path = state
                    .pending
                    .get(id)
                    .and_then(|pending| pending.without_path);
                without_path.is_some_and(|since| now.since(since) >= self.config.no_path_timeout)
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
                state.pending_table.give_up(id)
            };
            self.act(decisions);
        }
    }
}

/// No path can be used.
fn is_lost(routes: &[Route]) -> bool {
    let mut routes = routes.iter();
    routes.all(|route| route.health.usage() == Use::No)
}

/// Between questions for the access state of a port, while no path takes what waits.
const QUESTIONS_EVERY: Duration = Duration::from_millis(100);

/// Paths with a session whose ports did not serve the unit, and when each is to be asked again.
fn questions(routes: &[Route]) -> impl Iterator<Item = (usize, Now)> {
    let routes = routes.iter().enumerate();
    let silent = routes.filter(|(_, route)| route.session.is_some() && !route.health.serves());
    silent.map(|(path, route)| {
        let due = route.asked.map(|it| it.after(QUESTIONS_EVERY));
        (path, due.unwrap_or(Now::ZERO))
    })
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
