//! The planner: which paths are active, which wait and how warm, what to do when something is lost,
//! and why.
//!
//! **Contract.** A plan is a function of facts, options and the set that is active now: the order
//! in which ports were found does not matter beyond ties that the hash decides. No port is ever
//! planned over its speed: that is what makes a mesh collapse, because two senders that fill one
//! receiving port overflow the switch's buffer.
//!
//! The objective, lexicographic: best access tier; bandwidth, within one speed class unless
//! `mixed`; host cards; controllers; cards of the target; fabrics (each: how many, then how
//! evenly); fewest sessions; stability; a hash.

mod choose;
mod contingency;
mod exact;
mod explain;
mod flow;
mod make;
pub(crate) mod model;
mod monitor;
#[cfg(test)]
mod monitor_test;
pub(crate) mod options;
#[cfg(test)]
mod oracle;
mod score;
mod standby;
#[cfg(test)]
mod test;
#[cfg(test)]
pub(crate) mod test_facts;

pub use make::{plan, plan_sticky, what_if};
pub use model::{
    Barred, Contingency, Ends, Limit, Method, Plan, PlannedPath, Reason, Role, StreamLimit, Term,
};
pub use monitor::{Change, MonitorTiming, PlanMonitor, Trouble};
pub use options::{Options, Priority, Routed};
