//! The paths' half of the engine: their machines are notified of everything, and what they ask for
//! is done.

use super::engine::Engine;
use super::fence::lost;
use super::{ConnectError, Session};
use paths::health::{AccessState, Do, Seen, State};
use paths::policy::Use;
use paths::stale::{Evidence, Nexus};
use std::rc::Rc;
use std::time::Duration;

/// Between probes of the access state of a port that does not serve the unit.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

impl Engine {
    /// A path's machine is notified of something, and what it asks for is done.
    pub(super) fn see(self: &Rc<Self>, path: usize, seen: Seen) {
        let now = self.core.now();
        let effects = match self.state.borrow_mut().routes.get_mut(path) {
            Some(route) => route.health.seen(seen, now),
            None => return,
        };
        self.perform(path, effects);
        self.bell.ring();
    }

    pub(super) fn perform(self: &Rc<Self>, path: usize, effects: Vec<Do>) {
        for effect in effects {
            match effect {
                Do::Connect => self.connect(path),
                Do::Ping => {
                    self.ping(path);
                    self.question_others(path);
                }
                Do::Close => self.drop_session(path, |session| session.close()),
                Do::LogOut => self.drop_session(path, |session| session.leave()),
                Do::Failed(cause) => {
                    // The session is closed or has ended by itself: what it had goes to the
                    // pending table.
                    self.drop_session(path, |session| session.leave());
                    self.plan_failed(path, cause);
                }
                Do::Recovered => self.plan_recovered(path),
                Do::UsageChanged => self.usage_changed(path),
                Do::ReadAccess => self.read_access(path),
            }
        }
    }

    fn connect(self: &Rc<Self>, path: usize) {
        let (port, nexus) = {
            let mut state = self.state.borrow_mut();
            if state.closed {
                return;
            }
            let route = &mut state.routes[path];
            route.nexus.session += 1;
            (Rc::clone(&route.port), route.nexus)
        };
        let engine = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            let connected = port.connect(nexus).await;
            engine.connected(
                path,
                nexus,
                connected.map_err(|error| matches!(error, ConnectError::OtherIdentity(_))),
            );
        }));
    }

    fn connected(
        self: &Rc<Self>,
        path: usize,
        nexus: Nexus,
        connected: Result<Rc<dyn Session>, bool>,
    ) {
        let current = {
            let state = self.state.borrow();
            let route = &state.routes[path];
            !state.closed && route.nexus == nexus && route.health.state() == State::Connecting
        };
        let session = match connected {
            Ok(session) if current => session,
            Ok(session) => return session.leave(),
            Err(other_identity) if current => {
                return self.see(
                    path,
                    if other_identity {
                        Seen::OtherIdentity
                    } else {
                        Seen::Closed
                    },
                );
            }
            Err(_) => return,
        };
        let decisions = {
            let mut state = self.state.borrow_mut();
            state.routes[path].session = Some(Rc::clone(&session));
            state.routes[path].gauge.begin();
            let older: Vec<Nexus> = state
                .pending_table
                .unfenced()
                .filter(|it| it.path == nexus.path && *it < nexus)
                .collect();
            let mut decisions = Vec::new();
            for it in older {
                decisions.extend(state.pending_table.fenced(it, Evidence::Reinstated));
            }
            decisions
        };
        self.see(path, Seen::LoggedIn);
        // What it was through an earlier session says nothing of this one.
        let serves = self.state.borrow().routes[path].health.serves();
        if !serves {
            self.read_access(path);
            self.inspect(path, nexus);
        }
        self.act(decisions);
        let unfenced: Vec<Nexus> = self.state.borrow().pending_table.unfenced().collect();
        for it in unfenced {
            self.ask_for_fence(Rc::clone(&session), it);
        }
        let engine = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            session.ended().await;
            let ours = engine.state.borrow().routes[path].nexus == nexus;
            if ours {
                engine.see(path, Seen::Closed);
            }
        }));
    }

    /// A path that carries something is silent. What it shares with others may be dead: they are
    /// asked now, so that all that is dead is known at the same time and nothing is sent there
    /// next.
    fn question_others(self: &Rc<Self>, path: usize) {
        let others = {
            let state = self.state.borrow();
            if state.selector.in_flight(path) == 0 {
                return;
            }
            0..state.routes.len()
        };
        for other in others.filter(|other| *other != path) {
            let now = self.core.now();
            let effects = {
                let mut state = self.state.borrow_mut();
                let route = &mut state.routes[other];
                if let Some(session) = &route.session {
                    route.health.seen(Seen::Received, session.received_at());
                }
                route.health.seen(Seen::Suspected, now)
            };
            if effects.contains(&Do::Ping) {
                self.ping(other);
            }
        }
    }

    fn ping(self: &Rc<Self>, path: usize) {
        let (session, nexus) = {
            let state = self.state.borrow();
            (state.routes[path].session.clone(), state.routes[path].nexus)
        };
        let Some(session) = session else { return };
        let engine = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            let answered = session.ping().await;
            let ours = engine.state.borrow().routes[path].nexus == nexus;
            if answered && ours {
                engine.see(path, Seen::PingAnswered);
            }
        }));
    }

    /// The session is over. Its operations end with it; when the last has, the pending table
    /// decides about them.
    fn drop_session(self: &Rc<Self>, path: usize, end: fn(&dyn Session)) {
        let now = self.core.now();
        let (session, nexus, decisions) = {
            let mut state = self.state.borrow_mut();
            let state = &mut *state;
            let Some(session) = state.routes[path].session.take() else {
                return;
            };
            let route = &mut state.routes[path];
            let (nexus, open) = (route.nexus, std::mem::take(&mut route.open));
            let decisions = if open > 0 {
                state.ending.insert(nexus, open);
                Vec::new()
            } else {
                lost(state, nexus, now)
            };
            (session, nexus, decisions)
        };
        self.follow(|flight| flight.is_on(nexus));
        self.usage_changed(path);
        end(&*session);
        self.act(decisions);
    }

    fn usage_changed(self: &Rc<Self>, path: usize) {
        {
            let mut state = self.state.borrow_mut();
            let route = &mut state.routes[path];
            let usage = if route.session.is_some() {
                route.health.usage()
            } else {
                Use::No
            };
            route.settings.usage = usage;
            let settings = route.settings;
            state.selector.set(path, settings);
        }
        self.pump();
    }

    pub(super) fn read_access(self: &Rc<Self>, path: usize) {
        let now = self.core.now();
        let session = {
            let mut state = self.state.borrow_mut();
            let route = &mut state.routes[path];
            route.asked = Some(now);
            route.session.clone()
        };
        let Some(session) = session else {
            return;
        };
        let engine = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            if let Some(access) = session.access().await {
                engine.see(path, Seen::Access(access));
            }
        }));
    }

    /// Probes again and again a port that does not serve the unit, until it does or the session
    /// is over.
    pub(super) fn inspect(self: &Rc<Self>, path: usize, nexus: Nexus) {
        let engine = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            loop {
                let now = engine.core.now();
                engine.core.sleep_until(now.after(PROBE_INTERVAL)).await;
                let session = {
                    let state = engine.state.borrow();
                    let route = &state.routes[path];
                    route.session.clone().filter(|_| route.nexus == nexus)
                };
                let Some(session) = session else { return };
                let Some(access) = session.access().await else {
                    return;
                };
                engine.see(path, Seen::Access(access));
                if matches!(
                    access,
                    AccessState::ActiveOptimized | AccessState::ActiveNonOptimized
                ) {
                    return;
                }
            }
        }));
    }
}
