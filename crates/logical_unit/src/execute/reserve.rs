//! PERSISTENT RESERVE OUT, and RESERVE and RELEASE of SPC-2.
//!
//! Everything is held while a reservation changes: what was admitted before is over, or known to be
//! hanging in the backend, and what is admitted later sees the new state, on every core.

use super::report::not_here;
use crate::admission::HoldKind;
use crate::change::{Effects, change, changes_are_over};
use crate::outcome::Refusal;
use crate::share::find;
use crate::store::Entry;
use crate::task::Task;
use env::call_all;
use scsi::cdb::PrOut;
use scsi::reservation::{InitiatorPort, PrOutCommand, Refusal as ReservationRefusal, Surroundings};
use scsi::{Command, Status};
use units::Buf;

/// Registrations that one unit keeps.
const REGISTRATIONS_MAX: usize = 1024;

/// The two commands of SPC-2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Spc2 {
    Reserve,
    Release,
}

impl From<ReservationRefusal> for Refusal {
    fn from(refusal: ReservationRefusal) -> Self {
        match refusal {
            ReservationRefusal::Conflict => Self::Status(Status::ReservationConflict),
            ReservationRefusal::Check(sense) => Self::Sense(sense),
        }
    }
}

impl Task {
    /// spec: SPC-4 6.16 "PERSISTENT RESERVE OUT command".
    pub(super) async fn persistent_reserve_out(
        &self,
        command: PrOut,
        list: &Buf,
    ) -> Result<Buf, Refusal> {
        let command = PrOutCommand::parse(&command, &list.to_vec())?;
        let initiator_ports = self.initiator_ports().await;
        let _held = self.hold_for_change(HoldKind::All).await?;
        let own = self.nexus.port().clone();
        let tag = self.tag();
        let here = self.nexus.ports();
        change(self.unit().core(), self.unit().shared(), move |state| {
            let target_ports = state.groups.all(&here, &own.initiator.name);
            let around = Surroundings {
                target_ports: &target_ports,
                initiator_ports: &initiator_ports,
                registrations_max: REGISTRATIONS_MAX,
            };
            let follows = state.reservations.apply(&own, &command, &around)?;
            Ok(Effects {
                store_again: match follows.persist {
                    Some(_) => Vec::new(),
                    None => vec![(Entry::Reservations, state.reservations.to_bytes())],
                },
                store: follows
                    .persist
                    .map(|bytes| (Entry::Reservations, bytes))
                    .into_iter()
                    .collect(),
                attentions: follows.attentions,
                abort: follows.abort,
                spare: Some((own, tag)),
                ..Effects::default()
            })
        })
        .await?;
        Ok(Buf::empty())
    }

    /// spec: SPC-4 6.15 "PERSISTENT RESERVE IN command".
    ///
    /// A change whose task was aborted while it was being stored may still come into force: like a
    /// write that the backend has, it then does so before anybody reads.
    pub(super) async fn persistent_reserve_in(&self, command: &Command) -> Result<Buf, Refusal> {
        let (core, shared) = (self.unit().core(), self.unit().shared());
        self.unless_aborted(changes_are_over(core, shared)).await?;
        self.admit(None).await?;
        self.report(command).unwrap_or_else(|| Err(not_here()))
    }

    /// spec: SPC-2 7.21 "RESERVE (6) command", 7.17 "RELEASE (6) command".
    pub(super) async fn reserve(&self, what: Spc2) -> Result<Buf, Refusal> {
        let _held = self.hold_for_change(HoldKind::All).await?;
        let own = self.nexus.port().clone();
        change(self.unit().core(), self.unit().shared(), move |state| {
            match what {
                Spc2::Reserve => state.reservations.spc2_reserve(&own)?,
                Spc2::Release => state.reservations.spc2_release(&own)?,
            }
            Ok(Effects::default())
        })
        .await?;
        Ok(Buf::empty())
    }

    /// Initiator ports that have used the unit and are logged in, on any core.
    async fn initiator_ports(&self) -> Vec<InitiatorPort> {
        let id = self.unit().id();
        let _going = self.unit().shared().keep_going().await;
        let ports = call_all(self.unit().core(), move |core| {
            let nexuses = find(core, id)
                .map(|unit| unit.nexuses())
                .unwrap_or_default();
            let ports: Vec<_> = nexuses
                .iter()
                .map(|nexus| nexus.port().initiator.clone())
                .collect();
            Box::pin(async move { ports })
        });
        ports.await.into_iter().flatten().collect()
    }
}
