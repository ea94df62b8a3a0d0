//! A session goes to another core.
//!
//! ```text
//!   core A: [asked] hold the CmdSN window, receive only what tasks in progress wait for
//!           [nothing in progress, nothing to send, nobody asks all cores anything]
//!           take socket, machine, session and nexuses apart
//!                 --job--> core B: put them together, go on
//!                                                           core B --> core 0: the directory knows
//! ```
//!
//! **Contract.** The host notices nothing but a short pause: no command is lost, answered twice or
//! overtaken, because none is in progress; bytes that have come and were not taken stay in the
//! socket, and what was taken of a PDU goes along. Unit attentions and the right to write go along;
//! reservations know the port, not the core. From the moment that the session leaves core A until
//! the directory knows core B, whoever asks all cores about sessions or nexuses waits
//! ([`Shared::keep_going`], [`logical_unit::LogicalUnit::stand_still`]).
//!
//! **Failure model.** What does not come to rest in [`PAUSE_MAX`] (a backend that hangs, a host
//! that does not read) stays where it is and goes on. A session that ends meanwhile just ends.

use super::awaited::Awaited;
use super::departure::{Departure, Going, Still};
use super::driver::Driver;
use super::phase::{FullFeature, Kind, Normal, Phase};
use super::receive::Rest;
use super::units::{SessionUnits, UnitsState};
use crate::directory::{Claim, SessionKey};
use crate::export::Export;
use crate::placement::Placement;
use crate::session::{Moved, Session, SessionNumber};
use crate::shared::Shared;
use env::{CoreHandle, CoreId, DetachedStream};
use iscsi::Itt;
use iscsi::target_side::TargetConnection;
use logical_unit::Closing;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a session tries to come to rest. Its host waits so long where one of its units hangs.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// How long until it is tried again where somebody asks all cores just then.
const AGAIN: Duration = Duration::from_millis(1);

/// A session on its way.
struct Travelling {
    stream: DetachedStream,
    still: Still,
    from: CoreId,
    portal_group_tag: u16,
    machine: TargetConnection,
    rest: Rest,
    export: Arc<Export>,
    session: Moved,
    place_in_directory: (SessionKey, SessionNumber),
    units: UnitsState,
    taken_away: BTreeSet<Itt>,
}

impl Driver {
    /// Goes to another core as soon as that is possible.
    pub(super) fn go_to(&mut self, to: CoreId) {
        let pinned = !self.export.pinned(self.portal_group_tag).is_empty();
        let Some(normal) = self.phase.normal_mut() else {
            return;
        };
        if pinned || to == self.core.id() || normal.going.is_some() {
            return;
        }
        normal.going = Some(Going {
            to,
            limit: self.core.sleep_until(self.core.now().after(PAUSE_MAX)),
            again: None,
        });
        self.machine.hold_commands(true);
    }

    fn is_going(&self) -> bool {
        self.phase
            .normal()
            .is_some_and(|normal| normal.going.is_some())
    }

    /// Receives no more for now: nothing that is in progress waits for it.
    pub(super) fn is_deaf(&self) -> bool {
        let full = self.phase.full_feature();
        full.is_some_and(|full| full.commands.waiting.is_empty()) && self.is_going()
    }

    /// Nothing of it would be left behind.
    fn is_at_rest(&self) -> bool {
        let full = self.phase.full_feature();
        let nothing_runs =
            full.is_none_or(|full| full.commands.is_empty()) && self.pending.is_empty();
        let stays = |normal: &Normal| normal.leave.is_some() || !normal.units.is_quiet();
        nothing_runs
            && self.machine.is_quiet()
            && self.phase.normal().is_some_and(|normal| !stays(normal))
            && self
                .phase
                .session()
                .is_some_and(|session| session.has_no_orders())
    }

    /// Ready once the session is to leave this core.
    pub(super) fn poll_departure(&mut self, cx: &mut Context<'_>) -> Poll<Departure> {
        let at_rest = self.is_going() && self.is_at_rest();
        let normal = self.phase.normal_mut();
        let Some(going) = normal.and_then(|normal| normal.going.as_mut()) else {
            return Poll::Pending;
        };
        let late = going.limit.as_mut().poll(cx).is_ready();
        let again = going.again.as_mut();
        if !late && (!at_rest || again.is_some_and(|again| again.as_mut().poll(cx).is_pending())) {
            return Poll::Pending;
        }
        if at_rest && let Some(departure) = self.departure_now() {
            return Poll::Ready(departure);
        }
        if late {
            tracing::debug!(peer = %self.stream.peer(), "a session did not come to rest, and stays");
            self.shared.moves().given_up();
            if let Some(normal) = self.phase.normal_mut() {
                normal.going = None;
            }
            self.machine.hold_commands(false);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut again = self.core.sleep_until(self.core.now().after(AGAIN));
        if again.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        let normal = self.phase.normal_mut();
        if let Some(going) = normal.and_then(|normal| normal.going.as_mut()) {
            going.again = Some(again);
        }
        Poll::Pending
    }

    fn departure_now(&self) -> Option<Departure> {
        let normal = self.phase.normal()?;
        let to = normal.going.as_ref()?.to;
        let still = Still {
            _front: self.shared.stand_still()?,
            _units: normal.units.stand_still()?,
        };
        let stream = self.stream.detach().ok()?;
        Some(Departure { to, stream, still })
    }

    /// Leaves for another core.
    fn depart(mut self, departure: Departure, mut place: Placement) {
        let Departure { to, stream, still } = departure;
        let phase = std::mem::take(&mut self.phase);
        let Phase::FullFeature(FullFeature {
            session,
            kind: Kind::Normal(Normal { units, claim, .. }),
            commands,
            ..
        }) = phase
        else {
            // It was at rest, which means that they are there.
            return;
        };
        let travelling = Travelling {
            stream,
            still,
            from: self.core.id(),
            portal_group_tag: self.portal_group_tag,
            machine: std::mem::replace(&mut self.machine, TargetConnection::over(self.core.now())),
            rest: self.incoming.receive.take_rest(),
            export: Arc::clone(&self.export),
            session: session.depart(&self.core),
            place_in_directory: claim.go_on_elsewhere(),
            units: units.depart(),
            taken_away: commands.taken_away,
        };
        place.go_to(to);
        let shared = Arc::clone(&self.shared);
        let arrive = move |core: &CoreHandle| arrive(core, shared, travelling, place);
        self.core.post(to, Box::new(arrive));
    }
}

/// Serves a connection until it ends, or goes to another core.
pub(super) async fn drive(mut driver: Driver, place: Placement) {
    match driver.run().await {
        Some(departure) => driver.depart(departure, place),
        None => {
            driver.finish().await;
            drop(place);
        }
    }
}

fn arrive(core: &CoreHandle, shared: Arc<Shared>, travelling: Travelling, place: Placement) {
    let (key, number) = travelling.place_in_directory;
    let units = SessionUnits::arrive(core, travelling.units);
    let claim = Claim::new(core, key.clone(), number);
    let (here, still) = (Rc::clone(core), travelling.still);
    core.spawn(Box::pin(async move {
        Claim::has_moved(&here, key, number).await;
        drop(still);
    }));
    let peer = travelling.stream.peer;
    let stream = match core.net().adopt(travelling.stream) {
        Ok(stream) => stream,
        Err(error) => {
            tracing::warn!(%peer, %error, "a connection could not be taken over from another core");
            core.spawn(Box::pin(async move {
                units.close_all(Closing::Lost).await;
                drop((claim, place));
            }));
            return;
        }
    };
    let session = Session::arrive(core, travelling.session);
    let (from, to) = (travelling.from.0, core.id().0);
    tracing::info!(
        session = number.0,
        from,
        to,
        "session moved to another core"
    );
    shared.moves().done();
    let newest = shared.export();
    let mut driver = Driver::with(
        Rc::clone(core),
        shared,
        stream,
        travelling.portal_group_tag,
        travelling.machine,
        travelling.export,
    );
    let initiator = session.info.borrow().initiator.clone();
    let kind = Kind::Normal(Normal::new(units, claim));
    let mut full = FullFeature::new(session, Awaited::new(core, &initiator), kind);
    full.commands.taken_away = travelling.taken_away;
    driver.phase = Phase::FullFeature(full);
    driver.incoming.receive.put_rest(travelling.rest);
    driver.machine.hold_commands(false);
    if newest.generation != driver.export.generation {
        driver.adopt(newest);
    }
    core.spawn(Box::pin(drive(driver, place)));
}
