//! The paths' half of the engine: their machines hear of everything, and what they ask for is done.

use super::engine::Engine;
use super::fence::lost;
use super::marginal::Gauge;
use super::{Config, ConnectError, PathSpec, Port, Session};
use env::CoreHandle;
use paths::health::{AccessState, Do, Path, Seen, State};
use paths::policy::{Selector, Settings, Use};
use paths::stale::{Evidence, Nexus};
use std::rc::Rc;
use std::time::Duration;

/// Between looks at the access state of a port that does not serve the unit.
const LOOK: Duration = Duration::from_secs(1);

/// One path.
pub(super) struct Line {
    pub(super) port: Rc<dyn Port>,
    pub(super) health: Path,
    pub(super) settings: Settings,
    pub(super) session: Option<Rc<dyn Session>>,
    pub(super) nexus: Nexus,
    pub(super) gauge: Gauge,
    /// Operations on this session that have not ended.
    pub(super) open: u32,
}

impl Line {
    /// A path that has not been tried; its number is the selector's.
    pub(super) fn new(
        core: &CoreHandle,
        config: &Config,
        selector: &mut Selector,
        spec: PathSpec,
    ) -> Self {
        let mut seed = [0; 4];
        core.fill_random(&mut seed);
        let settings = Settings {
            usage: Use::No,
            ..spec.settings
        };
        let number = selector.add(settings);
        Self {
            port: spec.port,
            health: Path::new(config.timing, u32::from_be_bytes(seed)),
            settings,
            session: None,
            open: 0,
            gauge: Gauge::default(),
            nexus: Nexus {
                path: u32::try_from(number).unwrap_or(u32::MAX),
                session: 0,
            },
        }
    }
}

impl Engine {
    /// A path's machine hears of something, and what it asks for is done.
    pub(super) fn see(self: &Rc<Self>, path: usize, seen: Seen) {
        let now = self.core.now();
        let effects = match self.state.borrow_mut().lines.get_mut(path) {
            Some(line) => line.health.seen(seen, now),
            None => return,
        };
        self.carry_out(path, effects);
        self.bell.ring();
    }

    pub(super) fn carry_out(self: &Rc<Self>, path: usize, effects: Vec<Do>) {
        for effect in effects {
            match effect {
                Do::Connect => self.connect(path),
                Do::Ping => {
                    self.ping(path);
                    self.doubt_others(path);
                }
                Do::Close => self.drop_session(path, |session| session.close()),
                Do::LogOut => self.drop_session(path, |session| session.leave()),
                Do::Failed(cause) => {
                    // The session is closed or has ended by itself: what it carried goes to the
                    // book.
                    self.drop_session(path, |session| session.leave());
                    self.keeper_failed(path, cause);
                }
                Do::Recovered => self.keeper_recovered(path),
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
            let line = &mut state.lines[path];
            line.nexus.session += 1;
            (Rc::clone(&line.port), line.nexus)
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
            let line = &state.lines[path];
            !state.closed && line.nexus == nexus && line.health.state() == State::Connecting
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
            state.lines[path].session = Some(Rc::clone(&session));
            state.lines[path].gauge.begin();
            let older: Vec<Nexus> = state
                .book
                .unfenced()
                .filter(|it| it.path == nexus.path && *it < nexus)
                .collect();
            let mut decisions = Vec::new();
            for it in older {
                decisions.extend(state.book.fenced(it, Evidence::Reinstated));
            }
            decisions
        };
        self.see(path, Seen::LoggedIn);
        self.act(decisions);
        let unfenced: Vec<Nexus> = self.state.borrow().book.unfenced().collect();
        for it in unfenced {
            self.ask_for_fence(Rc::clone(&session), it);
        }
        let engine = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            session.ended().await;
            let ours = engine.state.borrow().lines[path].nexus == nexus;
            if ours {
                engine.see(path, Seen::Closed);
            }
        }));
    }

    /// A path that carries something is silent. What it shares with others may be dead: they are
    /// asked now, so that all that is dead is known at the same time and nothing is sent there
    /// next.
    fn doubt_others(self: &Rc<Self>, path: usize) {
        let others = {
            let state = self.state.borrow();
            if state.selector.in_flight(path) == 0 {
                return;
            }
            0..state.lines.len()
        };
        for other in others.filter(|other| *other != path) {
            let now = self.core.now();
            let effects = {
                let mut state = self.state.borrow_mut();
                let line = &mut state.lines[other];
                if let Some(session) = &line.session {
                    line.health.seen(Seen::Received, session.received_at());
                }
                line.health.seen(Seen::Suspected, now)
            };
            if effects.contains(&Do::Ping) {
                self.ping(other);
            }
        }
    }

    fn ping(self: &Rc<Self>, path: usize) {
        let (session, nexus) = {
            let state = self.state.borrow();
            (state.lines[path].session.clone(), state.lines[path].nexus)
        };
        let Some(session) = session else { return };
        let engine = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            let answered = session.ping().await;
            let ours = engine.state.borrow().lines[path].nexus == nexus;
            if answered && ours {
                engine.see(path, Seen::PingAnswered);
            }
        }));
    }

    /// The session is over. Its operations end with it; when the last has, the book decides about
    /// them.
    fn drop_session(self: &Rc<Self>, path: usize, end: fn(&dyn Session)) {
        let now = self.core.now();
        let (session, nexus, decisions) = {
            let mut state = self.state.borrow_mut();
            let state = &mut *state;
            let Some(session) = state.lines[path].session.take() else {
                return;
            };
            let line = &mut state.lines[path];
            let (nexus, open) = (line.nexus, std::mem::take(&mut line.open));
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
            let line = &mut state.lines[path];
            let usage = if line.session.is_some() {
                line.health.usage()
            } else {
                Use::No
            };
            line.settings.usage = usage;
            let settings = line.settings;
            state.selector.set(path, settings);
        }
        self.pump();
    }

    fn read_access(self: &Rc<Self>, path: usize) {
        let Some(session) = self.state.borrow().lines[path].session.clone() else {
            return;
        };
        let engine = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            if let Some(access) = session.access().await {
                engine.see(path, Seen::Access(access));
            }
        }));
    }

    /// Looks again and again at a port that does not serve the unit, until it does or the session
    /// is over.
    pub(super) fn look(self: &Rc<Self>, path: usize, nexus: Nexus) {
        let engine = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            loop {
                let now = engine.core.now();
                engine.core.sleep_until(now.after(LOOK)).await;
                let session = {
                    let state = engine.state.borrow();
                    let line = &state.lines[path];
                    line.session.clone().filter(|_| line.nexus == nexus)
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
