//! Commands that report something and touch no block: all derived from this core's copy of the
//! state.

use super::cut;
use crate::outcome::Refusal;
use crate::task::Task;
use scsi::alua::{self, PortGroup};
use scsi::description::TargetDescription;
use scsi::inquiry::Peripheral;
use scsi::lun::request_sense_format;
use scsi::opcode::{Attention, report_supported_operation_codes};
use scsi::reports::{defect_data_10, defect_data_12, diagnostic_page, task_management_functions};
use scsi::unit_attention::Meeting;
use scsi::{AdditionalSense, CdbError, Command, Sense, capacity, inquiry, log, vpd};
use units::Buf;

/// A command that was sent to the wrong place.
pub(super) fn not_here() -> Refusal {
    Sense::illegal_request(AdditionalSense::INVALID_COMMAND_OPERATION_CODE).into()
}

impl Task {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what is not reported is run"
    )]
    /// The answer of a command that needs neither medium nor waiting; `None` for the others.
    pub(super) fn report(&self, command: &Command) -> Option<Result<Buf, Refusal>> {
        let state = self.unit().state();
        let unit = &state.description;
        let (bytes, allocation_length) = match command {
            Command::TestUnitReady
            | Command::PreventAllowMediumRemoval { .. }
            | Command::SendDiagnostic { .. }
            | Command::StartStopUnit(_) => (Ok(Vec::new()), 0),
            Command::Inquiry {
                page,
                allocation_length,
            } => (self.inquiry(*page), u32::from(*allocation_length)),
            Command::RequestSense {
                descriptor,
                allocation_length,
            } => (
                Ok(self.request_sense(*descriptor)),
                u32::from(*allocation_length),
            ),
            Command::ReadCapacity10 => (Ok(capacity::read_capacity_10(unit)), u32::MAX),
            Command::ReadCapacity16 { allocation_length } => {
                (Ok(capacity::read_capacity_16(unit)), *allocation_length)
            }
            command => self.report_tables(command)?,
        };
        Some(bytes.map(|bytes| cut(bytes, allocation_length)))
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what is not reported is run"
    )]
    /// The second half: tables and pages.
    fn report_tables(&self, command: &Command) -> Option<(Result<Vec<u8>, Refusal>, u32)> {
        let state = self.unit().state();
        let reported =
            |bytes: Result<Vec<u8>, CdbError>| bytes.map_err(|error| Refusal::from(error.sense()));
        Some(match command {
            Command::ReportSupportedOperationCodes {
                which,
                timeouts,
                allocation_length,
            } => {
                let supported = |row: &_| state.description.supports(row);
                let table = report_supported_operation_codes(*which, *timeouts, supported);
                (reported(table), *allocation_length)
            }
            Command::ReportSupportedTaskManagementFunctions {
                extended,
                allocation_length,
            } => (Ok(task_management_functions(*extended)), *allocation_length),
            Command::ReportTargetPortGroups {
                extended,
                allocation_length,
            } => (
                Ok(alua::report(&self.port_groups(), *extended, 0)),
                *allocation_length,
            ),
            Command::ReceiveDiagnosticResults {
                page,
                allocation_length,
            } => (
                reported(diagnostic_page(*page)),
                u32::from(*allocation_length),
            ),
            Command::ReadDefectData10(list) => (Ok(defect_data_10(list)), list.allocation_length),
            Command::ReadDefectData12(list) => (Ok(defect_data_12(list)), list.allocation_length),
            Command::ModeSense(request) => {
                let unit = state.mode_unit(self.nexus.is_read_only());
                (
                    reported(state.modes.sense(request, &unit)),
                    u32::from(request.allocation_length),
                )
            }
            Command::ReceiveCopyResults {
                action,
                list_identifier,
                allocation_length,
            } => {
                let results = self
                    .nexus
                    .copies()
                    .borrow_mut()
                    .receive(*action, *list_identifier);
                (reported(results), *allocation_length)
            }
            Command::LogSense(request) => (
                reported(log::sense(request, None)),
                u32::from(request.allocation_length),
            ),
            Command::PersistentReserveIn {
                action,
                allocation_length,
            } => (
                Ok(state.reservations.report(*action)),
                u32::from(*allocation_length),
            ),
            _ => return None,
        })
    }

    fn request_sense(&self, descriptor: bool) -> Vec<u8> {
        let meeting = self.nexus.attentions.borrow_mut().meet(Attention::Returns);
        let sense = match meeting {
            Meeting::Return(sense) | Meeting::Report(sense) => sense,
            Meeting::Proceed => self.pollable_sense(),
        };
        sense.to_bytes(request_sense_format(descriptor))
    }

    /// What REQUEST SENSE reports where nothing is pending (SPC-4 6.39 "REQUEST SENSE command": why
    /// the unit is not ready, or NO SENSE).
    fn pollable_sense(&self) -> Sense {
        let offline = self.unit().with_state(|state| state.offline.is_some());
        match Refusal::offline() {
            Refusal::Sense(sense) if offline => sense,
            Refusal::Sense(_) | Refusal::Status(_) | Refusal::Aborted | Refusal::Fenced => {
                Sense::NONE
            }
        }
    }

    fn port_groups(&self) -> Vec<PortGroup> {
        let (ports, port) = (self.nexus.ports(), self.nexus.port());
        self.unit().with_state(|state| {
            let here = (&ports, &*port.initiator.name);
            state.groups.report(here, state.access_state)
        })
    }

    fn inquiry(&self, page: Option<u8>) -> Result<Vec<u8>, Refusal> {
        let state = self.unit().state();
        match page {
            None => Ok(inquiry::standard(Peripheral::Disk, &state.description)),
            Some(page) => vpd::page(
                page,
                Peripheral::Disk,
                &state.description,
                &self.target_description(),
            )
            .map_err(|error| error.sense().into()),
        }
    }

    fn target_description(&self) -> TargetDescription {
        let (ports, port) = (self.nexus.ports(), self.nexus.port());
        self.unit()
            .with_state(|state| state.groups.target(&ports, &port.initiator.name))
    }
}
