//! What the full feature phase of a target keeps; what it does with it is in the files beside.

use super::config::TargetConfig;
use super::event::{LoginOutcome, SessionType, TargetCommand};
use super::output::Window;
use super::parked::Parking;
use super::task::Task;
use crate::bhs::{DataOut, LogoutRequest, NopOut, TaskManagementRequest, TextRequest};
use crate::command_window::CommandWindow;
use crate::ids::{Cid, Itt, Lun, Ttt};
use crate::parameters::Parameters;
use crate::serial::CmdSn;
use crate::task_table::TaskTable;
use crate::text::TextBuffer;
use core::ops::Range;
use units::Buf;

/// Bytes of the place where unwanted data goes.
pub(super) const SINK_BYTES: usize = 16 << 10;

/// The session's part: what several connections would share.
pub(super) struct Session {
    pub(super) window: CommandWindow<Queued>,
    pub(super) session_type: SessionType,
    pub(super) target_name: Option<String>,
}

/// The full feature phase of one connection.
pub struct FullFeature {
    pub(super) parameters: Parameters,
    pub(super) session: Session,
    pub(super) cid: Cid,
    pub(super) tasks: TaskTable<Task>,
    pub(super) exchanges: Vec<Exchange>,
    pub(super) text: Option<TextExchange>,
    pub(super) logging_out: bool,
    pub(super) immediate: u32,
    pub(super) immediate_max: u32,
    pub(super) next_ttt: u32,
    pub(super) current: Current,
    pub(super) scratch: Vec<u8>,
    pub(super) sink: Box<[u8]>,
    pub(super) parking: Parking,
}

/// A request that is not a command and waits for an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) itt: Itt,
    pub(super) kind: ExchangeKind,
    pub(super) immediate: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ExchangeKind {
    TaskManagement,
    Text,
    Logout,
}

/// What waits for its turn in CmdSN order.
pub(super) enum Queued {
    Command(TargetCommand),
    Nop(NopOut, Buf),
    TaskManagement(TaskManagementRequest),
    Text(TextRequest, Vec<u8>),
    Logout(LogoutRequest),
}

/// The PDU that is coming in.
pub(super) enum Current {
    /// Its payload is of no use.
    Discard,
    /// Immediate data of this task; `follows`: unsolicited Data-Out comes after it.
    Immediate {
        itt: Itt,
        length: u32,
        follows: bool,
    },
    Data {
        itt: Itt,
        header: DataOut,
        range: Range<u32>,
    },
    Nop(NopOut),
    TaskManagement(TaskManagementRequest),
    Text(TextRequest),
    Logout(LogoutRequest),
}

/// A text exchange that is under way.
pub(super) struct TextExchange {
    pub(super) ttt: Ttt,
    pub(super) lun: Lun,
    pub(super) incoming: TextBuffer,
    /// What is still to be said.
    pub(super) outgoing: Vec<u8>,
    /// The initiator has nothing more to say (F).
    pub(super) last: bool,
}

impl FullFeature {
    pub(super) fn new(config: &TargetConfig, outcome: LoginOutcome, first: CmdSn) -> Self {
        let window = CommandWindow::new(first, config.command_depth, config.write_bytes_max);
        let session = Session {
            window,
            session_type: outcome.session_type,
            target_name: outcome.target_name,
        };
        Self {
            parameters: outcome.parameters,
            session,
            cid: outcome.cid,
            tasks: TaskTable::new(),
            exchanges: Vec::new(),
            text: None,
            logging_out: false,
            immediate: 0,
            immediate_max: config.immediate_max,
            next_ttt: 0,
            current: Current::Discard,
            scratch: Vec::new(),
            sink: vec![0; SINK_BYTES].into(),
            parking: Parking {
                bytes: 0,
                bytes_max: config.parked_bytes_max,
                crowded: None,
            },
        }
    }

    pub(super) fn window(&mut self) -> Window {
        Window {
            exp: self.session.window.exp_cmd_sn(),
            max: self.session.window.max_cmd_sn(),
        }
    }

    pub(super) fn in_progress(&self) -> usize {
        self.tasks.len().saturating_add(self.exchanges.len())
    }

    /// Memory for payload that no owner has given a place for.
    pub(super) fn held_bytes(&self) -> usize {
        self.scratch.capacity().saturating_add(self.sink.len())
    }
}
