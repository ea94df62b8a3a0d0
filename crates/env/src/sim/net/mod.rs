//! The simulated network: who listens, who is connected, and what is on the wires.

mod doors;
mod state;
mod wire;

pub(super) use doors::SimNet;
pub(super) use state::NetState;
