//! Task management: from the request to its answer, while everything else goes on.

use super::driver::{Driver, Finished};
use super::unmapped;
use env::LocalFuture;
use iscsi::Itt;
use iscsi::target_side::{ReferencedTask, TaskFunction, TaskManagement, TaskManagementAnswer};
use logical_unit::UnitAttention;
use logical_unit::{Nexus, Peers};
use scsi::lun::LunAddress;
use std::rc::Rc;

impl Driver {
    pub(super) fn task_management(&mut self, request: &TaskManagement) {
        let itt = request.itt;
        let answer = self.function(request);
        self.pending.push(Box::pin(async move {
            Finished::Function {
                itt,
                answer: answer.await,
            }
        }));
    }

    fn function(&mut self, request: &TaskManagement) -> LocalFuture<TaskManagementAnswer> {
        let now = |answer| -> LocalFuture<TaskManagementAnswer> { Box::pin(async move { answer }) };
        let nexus = match unmapped::address(request.lun) {
            LunAddress::Unit(lun) => self.phase.units().and_then(|units| units.nexus(lun).ok()),
            LunAddress::ReportLuns | LunAddress::Incorrect => None,
        };
        match request.function {
            TaskFunction::AbortTask => self.abort_task(request),
            TaskFunction::AbortTaskSet => self.on_unit(nexus, |nexus| nexus.abort_task_set()),
            TaskFunction::ClearTaskSet => self.on_unit(nexus, |nexus| nexus.clear_task_set()),
            TaskFunction::LogicalUnitReset => self.on_unit(nexus, |nexus| {
                nexus.reset_unit(UnitAttention::LogicalUnitReset)
            }),
            TaskFunction::TargetWarmReset | TaskFunction::TargetColdReset => self.target_reset(),
            TaskFunction::ClearAca => now(TaskManagementAnswer::NotSupported),
            TaskFunction::TaskReassign => now(TaskManagementAnswer::ReassignNotSupported),
            TaskFunction::Other(_) => now(TaskManagementAnswer::NotSupported),
        }
    }

    fn abort_task(&mut self, request: &TaskManagement) -> LocalFuture<TaskManagementAnswer> {
        let answer = match request.referenced {
            // Another host's function, or a PREEMPT AND ABORT, ended it, and its own host was not
            // informed: what it wants is done.
            ReferencedTask::Here(itt) | ReferencedTask::Unknown(Some(itt))
                if self.was_taken_away(itt) =>
            {
                TaskManagementAnswer::Complete
            }
            // It may have ended since the request was read: then its response went before.
            ReferencedTask::Here(itt) if !self.has_command(itt) => TaskManagementAnswer::NoTask,
            ReferencedTask::Here(itt) => {
                let nexus = match unmapped::address(request.lun) {
                    LunAddress::Unit(lun) => {
                        (self.phase.units()).and_then(|units| units.nexus_of_task(lun, itt.get()))
                    }
                    LunAddress::ReportLuns | LunAddress::Incorrect => None,
                };
                if let Some(nexus) = nexus {
                    let let_go = nexus.abort_task(itt.get());
                    return Box::pin(async move {
                        let_go.await;
                        TaskManagementAnswer::Complete
                    });
                }
                TaskManagementAnswer::Complete
            }
            ReferencedTask::NeverArrived => TaskManagementAnswer::Complete,
            ReferencedTask::None | ReferencedTask::Unknown(_) => TaskManagementAnswer::NoTask,
        };
        Box::pin(async move { answer })
    }

    fn has_command(&self, itt: Itt) -> bool {
        let full = self.phase.full_feature();
        full.is_some_and(|full| full.commands.has(itt))
    }

    /// Says so once.
    fn was_taken_away(&mut self, itt: Itt) -> bool {
        let full = self.phase.full_feature_mut();
        full.is_some_and(|full| full.commands.taken_away.remove(&itt))
    }

    fn on_unit(
        &mut self,
        nexus: Option<Rc<Nexus>>,
        work: impl FnOnce(Rc<Nexus>) -> LocalFuture<()>,
    ) -> LocalFuture<TaskManagementAnswer> {
        let Some(nexus) = nexus else {
            return Box::pin(async { TaskManagementAnswer::NoLun });
        };
        let done = work(nexus);
        Box::pin(async move {
            done.await;
            TaskManagementAnswer::Complete
        })
    }

    /// Both resets of the target reset each of its units that this initiator may see: a host has no
    /// right to disturb units that are not granted to it.
    fn target_reset(&mut self) -> LocalFuture<TaskManagementAnswer> {
        let nexuses = self
            .phase
            .units()
            .map(|units| units.all())
            .unwrap_or_default();
        let resets = nexuses
            .iter()
            .map(|it| it.reset_unit(UnitAttention::HardReset));
        // They begin here, before anything that comes behind the function.
        let resets = futures_util::future::join_all(resets);
        Box::pin(async move {
            resets.await;
            TaskManagementAnswer::Complete
        })
    }
}
