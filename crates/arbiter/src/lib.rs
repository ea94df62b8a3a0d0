//! Who holds the role records of LUNs, and decides who changes one first.
//!
//! ```text
//!   replica: Read, Swap --> role --> Arbiter --> LocalArbiter   a file of this node
//!                                      |-------> EtcdArbiter    several endpoints, TLS
//!                                      '-------> ModelArbiter   in simulated time, for tests
//! ```
//!
//! **Contract.** What [`Arbiter`] says. An answer that did not come in time is
//! [`Answer::Unknown`]: the swap may be done later, when nobody waits for it any more. It is asked
//! again as it was, and what comes then is known for good.
//!
//! **Failure model.** The store is silent, slow, has no majority, is another one, was emptied or
//! restored from an old backup: each is [`Trouble`] with a cause and a next step, and no record is
//! ever believed that is older than what is known ([`Memory`], [`role::arbitration`]).

#[cfg(any(test, feature = "model"))]
pub mod contract;
pub mod etcd;
mod local;
mod memory;
#[cfg(any(test, feature = "model"))]
pub mod model;
mod question;
pub mod role;
#[cfg(test)]
mod test;
mod trouble;
mod wire;

pub use etcd::EtcdArbiter;
pub use local::LocalArbiter;
pub use memory::{Memory, StoreId};
pub use question::{
    Answer, Arbiter, BATCH_MAX, Changes, KEY_BYTES_MAX, Key, Question, Record, Swap, SwapAll,
    TOGETHER_BYTES_MAX, Together, VALUE_BYTES_MAX,
};
pub use trouble::{Trouble, TroubleKind};
pub use wire::Wire;
