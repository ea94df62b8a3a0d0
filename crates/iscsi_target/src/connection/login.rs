//! Login, discovery and logout: what the machine asks and its owner answers.

use super::awaited::Awaited;
use super::driver::{Driver, Finished};
use super::ending::End;
use super::phase::{Entering, FullFeature, Kind, Login, Normal, Phase};
use super::units::SessionUnits;
use crate::directory::{self, Claim, InitiatorName, SessionKey};
use crate::export::{Export, Luns, UnitPortMap, View};
use crate::hardware;
use crate::load::Load;
use crate::refusals::RefusedLogin;
use crate::session::{
    EndReason, EnteringGuard, Received, Session, SessionInfo, SessionNumber, Sessions,
};
use env::LocalFuture;
use iscsi::target_side::{AsyncEvent, LoginOutcome, LoginRefusal, SendTargets, SessionType};
use iscsi::{Isid, Itt, LoginStatus, Tsih};
use logical_unit::{Closing, InitiatorPort};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::Histogram;

impl Driver {
    /// Negotiation is done: the session is entered in the directory, which first ends the one it
    /// reinstates.
    pub(super) fn login_ready(&mut self, outcome: Box<LoginOutcome>) {
        // The export may have changed while the initiator negotiated.
        self.export = self.shared.export();
        let number = self.core.locals().get::<Sessions>().new_number(&self.core);
        let key = self.session_key(&outcome);
        let guard = EnteringGuard::new(&self.core, number);
        let claim = key.map(|key| Claim::new(&self.core, key, number));
        let sessions_max = self.export.settings.sessions_max;
        let entered = claim
            .as_ref()
            .map(|claim| claim.enter(&self.shared, sessions_max));
        if let Some(permit) = self.phase.permit() {
            // It is somebody whom we know, and what it waits for now is ours to do.
            let time = self.export.settings.login_timeout;
            permit.came_on(self.core.now().after(time));
        }
        let (core, tsih) = (Rc::clone(&self.core), outcome.tsih);
        if let Phase::Login(login) = &mut self.phase {
            login.entering = Some(Entering {
                guard,
                number,
                claim,
                outcome,
            });
        }
        self.pending.push(Box::pin(async move {
            if tsih != Tsih(0) {
                return Finished::Claimed(Err(continued(&core, tsih).await));
            }
            Finished::Claimed(match entered {
                Some(entered) => entered.await,
                None => Ok(Tsih(1)),
            })
        }));
    }

    /// The peer was answered: a login, or a discovery session, has come on.
    pub(super) fn has_come_on(&self) {
        if let Phase::Login(Login {
            entering: Some(_), ..
        }) = &self.phase
        {
            return;
        }
        if let Some(permit) = self.phase.permit() {
            permit.came_on(self.core.recent());
        }
    }

    fn session_key(&self, outcome: &LoginOutcome) -> Option<SessionKey> {
        let target = outcome.target_name.as_ref()?;
        Some(SessionKey {
            target: target.to_ascii_lowercase(),
            portal_group_tag: self.portal_group_tag,
            initiator: outcome.initiator_name.to_ascii_lowercase(),
            isid: SessionKey::isid_bytes(outcome.isid),
        })
    }

    pub(super) fn claimed(&mut self, claimed: Result<Tsih, LoginRefusal>) {
        let Some(entering) = self.phase.take_entering() else {
            return;
        };
        let Entering {
            guard,
            number,
            claim,
            outcome,
        } = entering;
        if self.ending.has_begun() {
            // It took too long, or its place was needed: that was answered.
            drop(claim);
            return;
        }
        let overtaken = guard.overtaken();
        let granted = claimed.and_then(|tsih| {
            if overtaken {
                let reason = "the same initiator port has begun another login";
                return Err(LoginRefusal::new(LoginStatus::ServiceUnavailable, reason));
            }
            self.still_granted(&outcome).map(|view| (tsih, view))
        });
        let (tsih, view) = match granted {
            Ok(granted) => granted,
            Err(refusal) => {
                drop(claim);
                self.machine.refuse_login(refusal);
                return;
            }
        };
        let permit = self.phase.take_permit();
        let permit = permit.filter(|_| outcome.session_type != SessionType::Normal);
        self.machine.complete_login(tsih);
        if let Some(permit) = &permit {
            permit.came_on(self.core.recent());
        }
        self.shared.refusals().accepted();
        let info = self.session_info(&outcome, number, tsih, view.as_ref());
        tracing::info!(
            session = number.0, initiator = info.initiator,
            target_name = info.target.as_deref().unwrap_or("-"),
            host = info.host.as_deref().unwrap_or("-"), peer = %info.peer, portal = %info.portal,
            "session begins"
        );
        let proven = view.as_ref().map(|view| Arc::clone(&view.host));
        let units = view.and_then(|view| self.session_units(&outcome, view));
        let awaited = Awaited::new(&self.core, &info.initiator);
        let session = Session::new(info, self.export.generation);
        session.has_proven(proven);
        session.enter(&self.core);
        let kind = match (units, claim) {
            (Some(units), Some(claim)) => Kind::Normal(Normal::new(units, claim)),
            (Some(_) | None, _) => Kind::Discovery(permit),
        };
        self.phase = Phase::FullFeature(FullFeature::new(session, awaited, kind));
        drop(guard);
        // An export that was published after `still_granted` asked is adopted like any later one.
        if self.shared.export().generation != self.export.generation {
            let export = self.shared.export();
            self.adopt(export);
        }
    }

    /// What the initiator may see now; `None` in a discovery session.
    fn still_granted(&mut self, outcome: &LoginOutcome) -> Result<Option<View>, LoginRefusal> {
        self.export = self.shared.export();
        let Some(name) = &outcome.target_name else {
            return Ok(None);
        };
        let target = self.export.target(name);
        let view = target.and_then(|target| target.view(&outcome.initiator_name));
        let resting = target.is_some_and(|target| target.maintenance);
        match view {
            Some(_) if resting => Err(LoginRefusal::new(
                LoginStatus::ServiceUnavailable,
                "the target went into maintenance during the login",
            )),
            Some(view) => Ok(Some(view)),
            None => Err(LoginRefusal::new(
                LoginStatus::AuthorizationFailure,
                "the grant was taken away during the login",
            )),
        }
    }

    fn session_units(&self, outcome: &LoginOutcome, view: View) -> Option<Rc<SessionUnits>> {
        let target = self.export.target(outcome.target_name.as_ref()?)?;
        let initiator = InitiatorPort {
            name: outcome.initiator_name.to_ascii_lowercase(),
            isid: outcome.isid.0,
        };
        let (own, ports) = (target.port(), self.export.ports(&outcome.initiator_name));
        let luns = view.luns;
        Some(SessionUnits::new(&self.core, initiator, own, ports, luns))
    }

    fn session_info(
        &self,
        outcome: &LoginOutcome,
        number: SessionNumber,
        tsih: Tsih,
        view: Option<&View>,
    ) -> SessionInfo {
        SessionInfo {
            number,
            core: self.core.id(),
            target: outcome.target_name.clone(),
            host: view.map(|view| view.host.name.clone()),
            initiator: outcome.initiator_name.clone(),
            initiator_alias: outcome.initiator_alias.clone(),
            nic: outcome.nic.as_deref().cloned(),
            isid: units::hex(&outcome.isid.0),
            tsih: tsih.0,
            portal: self.stream.local(),
            portal_group_tag: self.portal_group_tag,
            peer: self.stream.peer(),
            chap_user: outcome.chap_user.clone(),
            mutual_chap: outcome.mutual,
            parameters: self.machine.parameters().clone(),
            since: self.core.wall_clock(),
            commands: 0,
            bytes_read: 0,
            bytes_written: 0,
            received: Received::default(),
            in_progress: 0,
            bytes_in_flight: 0,
            bytes_in_flight_max: view.and_then(|view| view.host.bytes_in_flight_max),
            load: Load::default(),
            reads: Histogram::default(),
            writes: Histogram::default(),
            pinned: !self.export.pinned(self.portal_group_tag).is_empty(),
            luns: view
                .iter()
                .flat_map(|view| view.luns.keys().copied())
                .collect(),
        }
    }

    pub(super) fn login_refused(
        &mut self,
        status: &str,
        reason: String,
        initiator: Option<String>,
        target: Option<String>,
    ) {
        if initiator
            .as_deref()
            .is_some_and(|it| self.shared.is_probe(it))
        {
            return;
        }
        self.shared.refusals().add(RefusedLogin {
            at: self.core.wall_clock(),
            times: 1,
            peer: self.stream.peer(),
            portal: self.stream.local(),
            initiator,
            target,
            status: status.to_owned(),
            reason,
        });
    }

    pub(super) fn parameters_changed(&mut self) {
        if let Some(session) = self.phase.session() {
            session.info.borrow_mut().parameters = self.machine.parameters().clone();
        }
    }

    pub(super) fn send_targets(&mut self, itt: Itt, scope: &SendTargets) {
        let Some(session) = self.phase.session() else {
            return;
        };
        let info = session.info.borrow();
        let own = info.target.clone();
        let mut records = crate::discovery::records(
            &self.shared.export(),
            &info.initiator,
            self.portal_group_tag,
            self.stream.local(),
            &self.shared.listening(),
            scope,
        );
        // spec: RFC 7143 appendix C: in a normal session only the session's own target is reported.
        if let Some(own) = own {
            records.retain(|record| record.name.eq_ignore_ascii_case(&own));
        }
        let initiator = info.initiator.clone();
        let asked_for = match scope {
            SendTargets::All => None,
            SendTargets::One(name) => Some(name.to_string()),
        };
        let is_discovery = info.target.is_none();
        drop(info);
        if is_discovery && records.is_empty() {
            self.shared.refusals().discovered_nothing(RefusedLogin {
                at: self.core.wall_clock(),
                times: 1,
                peer: self.stream.peer(),
                portal: self.stream.local(),
                reason: format!(
                    "discovery reported no target: initiator {initiator} is granted nothing at this portal"
                ),
                initiator: Some(initiator),
                target: asked_for,
                // The login itself was accepted.
                status: "0000h success".to_owned(),
            });
        }
        self.machine.send_targets_response(itt, &records);
    }

    /// Ends another session of this initiator with this target.
    pub(super) fn fence(&mut self, itt: Itt, isid: Isid, tsih: Tsih) {
        let Some(session) = self.phase.session() else {
            return;
        };
        let info = session.info.borrow();
        let own = info.tsih == tsih.0;
        let Some(target) = info.target.as_ref().filter(|_| !own) else {
            return self.machine.fence_response(itt, false);
        };
        let port = InitiatorName {
            target: target.to_ascii_lowercase(),
            initiator: info.initiator.to_ascii_lowercase(),
        };
        let fenced = directory::fence(&self.core, &self.shared, port, isid, tsih);
        self.pending.push(Box::pin(async move {
            let fenced = fenced.await;
            Finished::Fenced { itt, fenced }
        }));
    }

    /// Asks what is needed to report the ports behind the portals.
    pub(super) fn ports(&mut self, itt: Itt) {
        let Some(session) = self.phase.session() else {
            return;
        };
        let initiator = session.info.borrow().initiator.to_ascii_lowercase();
        let most = self.shared.export().settings.sessions_max;
        let room = directory::room(&self.core, initiator, most);
        self.pending.push(Box::pin(async move {
            let sessions = room.await;
            Finished::Room { itt, sessions }
        }));
    }

    pub(super) fn answer_ports(&mut self, itt: Itt, sessions: Option<u32>) {
        let ports = hardware::records(
            &self.shared.hardware(),
            self.portal_group_tag,
            self.stream.local(),
            &self.shared.listening(),
            sessions,
        );
        self.machine.ports_response(itt, &ports);
    }

    /// Every task ends before the logout is answered.
    pub(super) fn logout(&mut self, itt: Itt) {
        if let Some(full) = self.phase.full_feature_mut() {
            full.commands.waiting.clear();
            full.memory.share.forget_waiting();
        }
        let units = self.phase.units();
        let closed = units.map(|units| units.close_all(Closing::LoggedOut));
        self.pending.push(Box::pin(async move {
            if let Some(closed) = closed {
                closed.await;
            }
            Finished::LoggedOut { itt }
        }));
    }

    /// Works with a new export from here on.
    pub(super) fn adopt(&mut self, export: Arc<Export>) {
        let Some(session) = self.phase.session().cloned() else {
            return;
        };
        let generation = export.generation;
        let mut taken = None;
        self.export = export;
        let (initiator, target) = {
            let info = session.info.borrow();
            (info.initiator.clone(), info.target.clone())
        };
        if let Some(name) = target {
            let target = self.export.target(&name).cloned();
            let own = self.phase.units().map(|units| units.relative_port());
            if target
                .as_ref()
                .is_some_and(|target| own != Some(target.relative_port))
            {
                // Whoever made it is notified when the session is over.
                return self.end_with(End::Ordered(EndReason::OtherTarget));
            }
            match target.as_ref().and_then(|target| target.view(&initiator)) {
                // Whoever was shut out proves itself anew where other proof is asked for now.
                Some(view) if !session.may_be(&view.host) => {
                    return self.end_with(End::Ordered(EndReason::OtherProof));
                }
                Some(view) => {
                    let most = view.host.bytes_in_flight_max;
                    let mut info = session.info.borrow_mut();
                    info.bytes_in_flight_max = most;
                    info.host = Some(view.host.name.clone());
                    drop(info);
                    if let Some(full) = self.phase.full_feature_mut() {
                        full.memory.share.limit(most);
                    }
                    let ports = self.export.ports(&initiator);
                    taken = self.change_view(view.luns, ports);
                    self.begin_waiting();
                }
                // The session stays, and sees nothing: a host that is thrown out and refused tries
                // again for as long as its own time-outs last, and has its commands wait. One that
                // is answered that there is no such LUN goes on at once.
                None => {
                    session.is_shut_out();
                    taken = self.change_view(Luns::new(), UnitPortMap::new());
                }
            }
            let resting = target.filter(|target| target.maintenance);
            self.rest(resting.map(|target| target.maintenance_grace));
        }
        match taken {
            None => session.has_adopted(generation),
            // Whoever took something away is notified when nothing of it is under way any more.
            Some(taken) => self.core.spawn(Box::pin(async move {
                taken.await;
                session.has_adopted(generation);
            })),
        }
    }

    /// The target is in maintenance, or no more: the initiator is asked once to log out, and has
    /// its time.
    fn rest(&mut self, maintenance: Option<Duration>) {
        let Some(normal) = self.phase.normal_mut() else {
            return;
        };
        match (maintenance, &normal.leave) {
            (Some(grace), None) => {
                normal.leave = Some(self.core.sleep_until(self.core.now().after(grace)));
                self.request_logout(grace);
            }
            (None, Some(_)) => normal.leave = None,
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    pub(super) fn request_logout(&mut self, within: Duration) {
        let seconds = u16::try_from(within.as_secs()).unwrap_or(u16::MAX);
        self.machine
            .async_message(AsyncEvent::LogoutRequested { seconds });
    }

    fn change_view(&mut self, luns: Luns, ports: UnitPortMap) -> Option<LocalFuture<()>> {
        let units = self.phase.units()?;
        let taken = units.change_view(luns, ports);
        if let Some(session) = self.phase.session() {
            session.info.borrow_mut().luns = units.luns();
        }
        taken
    }
}

/// spec: RFC 7143 6.3.1 "Login Phase Start", 11.13.5: one connection a session is all there is.
async fn continued(core: &env::CoreHandle, tsih: Tsih) -> LoginRefusal {
    if directory::handle_exists(core, tsih).await {
        LoginRefusal::new(
            LoginStatus::TooManyConnections,
            "a session has one connection here",
        )
    } else {
        LoginRefusal::new(
            LoginStatus::SessionDoesNotExist,
            format!("there is no session with TSIH {}", tsih.0),
        )
    }
}
