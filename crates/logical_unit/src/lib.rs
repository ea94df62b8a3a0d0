//! The one entrance to an exported volume, for every front.
//!
//! ```text
//!   front --> Nexus::arrive --> Task --run--> execute/* --> Lane::submit
//!                |                  |
//!                |                  +-- admission (this core's half of the task set), holds
//!                +-- unit attentions, reservations, mode pages, ALUA: this core's copy of all
//! ```
//!
//! Where another node serves the unit's hosts, `run` has that node do the command ([`Forwarder`]).
//!
//! A [`LogicalUnit`] has a share on every core ([`CoreUnit`]). What admission needs is copied to
//! each core; a change is made on the unit's home core, adopted by all cores, and only then
//! answered. Plain reads and writes take no lock.
//!
//! **Invariants.**
//! I1: no command that was aborted before it was handed to the backend ever reaches it.
//! I2: while an aborted write is still with the backend, no later command touches its blocks.
//! I3: a task management function is answered within 2 s, whatever the backend does.
//! I4: a change of state is answered after every core has adopted it.

mod access;
mod admission;
mod attribute;
mod change;
mod closing;
mod copies;
mod execute;
mod forward;
mod forwarder;
mod going;
mod groups;
mod hold_home;
mod hold_table;
mod immediate_flush;
mod in_flight;
mod latency_trace;
mod names;
mod news;
mod outcome;
mod ports;
mod renew;
mod room_queue;
mod serve;
mod service;
mod share;
mod state;
mod status_count;
mod store;
mod task;
mod task_aborted;
#[cfg(test)]
mod test;
mod times;
mod travel;
mod unit;
mod wait_list;

pub use attribute::Attribute;
pub use closing::Closing;
pub use copies::{NotKept, StateCopies};
pub use execute::{Arrival, LBA_STATUS_STEPS_MAX, Request};
pub use forwarder::{ForwardEnd, ForwardedCommand, ForwardedReset, Forwarder, Forwarding};
pub use going::StandStill;
pub use groups::{NodeElsewhere, NodeNumber, PortElsewhere};
pub use in_flight::{InFlightLimit, Room, WaitsForRoom};
pub use latency_trace::{
    LatencyTrace, Sampled, Tally, Took, briefs, figures, nanos, news, stage_news,
};
pub use names::{PortFacts, UnitId, UnitPorts};
pub use news::{Did, News};
pub use outcome::{Outcome, Response};
pub use scsi::reservation::{InitiatorPort, Nexus as NexusPort};
pub use scsi::unit_attention::UnitAttention;
pub use serve::{HeldState, StateDamaged};
pub use share::CoreUnit;
pub use share::nexus::{Nexus, NexusError, Peers};
pub use state::{Identity, UnitState};
pub use status_count::Ending;
pub use store::{DirectoryStore, Entry, NoStore, Store, UnitStore};
pub use task::{Task, TaskWatch};
pub use times::{Figures, StageBrief, StageTimes, Storage, Times, TimesBrief, Transfer};
pub use travel::NexusState;
pub use unit::{LogicalUnit, NEXUSES_MAX, UnitConfig};
