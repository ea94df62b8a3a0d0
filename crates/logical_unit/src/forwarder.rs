//! The way to the node that serves hosts of a unit: what goes there, and what comes back.

use crate::attribute::Attribute;
use env::{CoreHandle, LocalFuture};
use scsi::Status;
use scsi::opcode::Opcode;
use scsi::reservation::Nexus as NexusPort;
use scsi::unit_attention::UnitAttention;
use units::Buf;

/// A command on its way to the node that serves hosts.
#[derive(Clone, Debug)]
pub struct ForwardedCommand {
    /// The nexus that it came through, as all nodes call it.
    pub from: NexusPort,
    /// Its grant allows reading only.
    pub read_only: bool,
    /// Its order against others.
    pub attribute: Attribute,
    /// As it came, without what is beyond its length.
    pub cdb: Vec<u8>,
    /// Bytes of data that the host announced,
    pub announced: u64,
    /// and what it sent.
    pub data: Buf,
}

/// A command that was forwarded.
pub struct Forwarding {
    /// What it ends with.
    pub ended: LocalFuture<ForwardEnd>,
    /// Has the owner abort it. It ends all the same.
    pub abort: Box<dyn FnOnce()>,
}

/// What a forwarded command ends with.
#[derive(Debug)]
pub enum ForwardEnd {
    /// The host is answered so.
    Respond {
        /// SCSI status.
        status: Status,
        /// Sense data.
        sense: Option<Buf>,
        /// Data-In.
        data_in: Buf,
    },
    /// The host is not answered.
    Silent,
    /// The host loses its connection.
    Disconnect,
    /// The owner never got it.
    NotBegun,
    /// The way to the owner was lost: nobody knows what became of it.
    Lost,
}

/// A function for all of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwardedReset {
    /// CLEAR TASK SET.
    ClearTaskSet,
    /// A reset that this unit attention reports.
    Reset(UnitAttention),
}

/// The way to the node that serves hosts.
pub trait Forwarder: Send + Sync {
    /// Sends a command there.
    fn begin(&self, core: &CoreHandle, command: ForwardedCommand) -> Forwarding;

    /// Has the owner do it for this nexus; `false`: whether it was done is not known. It may be
    /// asked for again.
    fn reset(&self, core: &CoreHandle, from: &NexusPort, what: ForwardedReset)
    -> LocalFuture<bool>;

    /// A nexus has ended, in order or not. Ready when the owner has said that it does no more of
    /// it, or is the owner no more; however long that takes.
    fn close(&self, core: &CoreHandle, from: &NexusPort, lost: bool) -> LocalFuture<()>;
}

/// What is to be sent of a command, but for its data.
pub(crate) struct ToForward {
    pub(crate) attribute: Attribute,
    pub(crate) cdb: Vec<u8>,
    pub(crate) announced: u64,
}

impl ToForward {
    pub(crate) fn new(
        (attribute, announced): (Attribute, u64),
        cdb: &[u8],
        row: &Opcode,
    ) -> Box<Self> {
        let length = cdb.len().min(row.cdb_length());
        Box::new(Self {
            attribute,
            cdb: cdb.get(..length).unwrap_or_default().to_vec(),
            announced,
        })
    }
}
