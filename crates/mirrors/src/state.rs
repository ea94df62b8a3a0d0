//! What hosts set of a LUN, kept on all nodes that have copies of it.

use cluster::{StateNotKept, keep_state};
use env::{CoreHandle, CoreId, LocalFuture};
use logical_unit::{NotKept, StateCopies};
use std::rc::Rc;
use write_back::VolumeId;

/// Of one LUN.
pub(crate) struct Copies {
    /// The core of its cluster.
    pub(crate) home: CoreId,
    pub(crate) id: VolumeId,
}

impl StateCopies for Copies {
    fn keep(&self, core: &CoreHandle, state: Vec<u8>) -> LocalFuture<Result<(), NotKept>> {
        let (core, at) = (Rc::clone(core), (self.home, self.id));
        Box::pin(async move {
            let kept = keep_state(&core, at, state).await;
            kept.map_err(|why| match why {
                StateNotKept::NotOwner => NotKept::NotHere,
                StateNotKept::Unknown => NotKept::Unknown,
            })
        })
    }
}
