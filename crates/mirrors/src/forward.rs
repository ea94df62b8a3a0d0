//! The way from a unit on this node to the owner of its LUN.

use cluster::{Forwardings, forward, forward_close, forward_reset};
use env::{CoreHandle, CoreId, LocalFuture};
use logical_unit::{
    Attribute, ForwardEnd, ForwardedCommand, ForwardedReset, Forwarder, Forwarding, NexusPort,
    UnitAttention,
};
use peer::{ForwardedAnswer, ForwardedEnd, ForwardedOrder, Guest};
use scsi::Status;
use units::Buf;
use write_back::VolumeId;

/// That of one LUN.
pub(crate) struct Route {
    /// The core of its cluster.
    pub(crate) home: CoreId,
    pub(crate) id: VolumeId,
}

impl Route {
    fn guest(&self, from: &NexusPort) -> Guest {
        Guest {
            volume: self.id,
            initiator: from.initiator.name.clone(),
            isid: from.initiator.isid,
            port: from.target_port,
        }
    }
}

const fn order(attribute: Attribute) -> ForwardedOrder {
    match attribute {
        Attribute::Simple => ForwardedOrder::Simple,
        Attribute::Ordered => ForwardedOrder::Ordered,
        Attribute::HeadOfQueue => ForwardedOrder::HeadOfQueue,
    }
}

fn end(ended: Option<Forwardings>) -> ForwardEnd {
    match ended {
        Some(Forwardings::Answered(ForwardedAnswer::Respond { status, sense }, data_in)) => {
            ForwardEnd::Respond {
                status: Status::from_code(status).unwrap_or(Status::Busy),
                sense: (!sense.is_empty()).then(|| Buf::copy_of(&sense)),
                data_in,
            }
        }
        Some(Forwardings::Answered(ForwardedAnswer::Silent, _)) => ForwardEnd::Silent,
        Some(Forwardings::Answered(ForwardedAnswer::Disconnect, _)) => ForwardEnd::Disconnect,
        Some(Forwardings::NotBegun) => ForwardEnd::NotBegun,
        Some(Forwardings::Lost) | None => ForwardEnd::Lost,
    }
}

impl Forwarder for Route {
    fn begin(&self, core: &CoreHandle, command: ForwardedCommand) -> Forwarding {
        let said = peer::ForwardedCommand {
            guest: self.guest(&command.from),
            read_only: command.read_only,
            order: order(command.attribute),
            announced: u32::try_from(command.announced).unwrap_or(u32::MAX),
            cdb: command.cdb,
        };
        let underway = forward(core, self.home, said, command.data);
        Forwarding {
            abort: underway.abort(),
            ended: Box::pin(async move { end(underway.ended.await.ok()) }),
        }
    }

    fn reset(
        &self,
        core: &CoreHandle,
        from: &NexusPort,
        what: ForwardedReset,
    ) -> LocalFuture<bool> {
        let what = match what {
            ForwardedReset::ClearTaskSet => peer::ForwardedReset::ClearTaskSet,
            ForwardedReset::Reset(UnitAttention::HardReset) => peer::ForwardedReset::Target,
            ForwardedReset::Reset(_) => peer::ForwardedReset::Unit,
        };
        forward_reset(core, self.home, self.guest(from), what)
    }

    fn close(&self, core: &CoreHandle, from: &NexusPort, lost: bool) -> LocalFuture<()> {
        let end = match lost {
            true => ForwardedEnd::Lost,
            false => ForwardedEnd::LoggedOut,
        };
        forward_close(core, self.home, self.guest(from), end)
    }
}
