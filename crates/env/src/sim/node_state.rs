//! What a machine is made of while the world goes on.

use super::clock::NodeClock;
use super::executor::Runnable;
use super::file::DiskState;
use crate::{CoreHandle, InterfaceAddress};
use std::net::IpAddr;
use std::rc::Rc;
use std::task::Waker;

pub(super) struct NodeState {
    pub(super) name: String,
    pub(super) incarnation: u64,
    /// Empty while the node is down.
    pub(super) cores: Vec<CoreHandle>,
    /// Polls and jobs of each core, in this life.
    pub(super) work: Vec<u64>,
    pub(super) addresses: Vec<InterfaceAddress>,
    /// Counts the changes of the addresses.
    pub(super) address_version: u64,
    pub(super) address_watchers: Vec<Waker>,
    pub(super) disk: DiskState,
    pub(super) next_port: u16,
    pub(super) clock: NodeClock,
    /// It was paused: what was to run meanwhile.
    pub(super) paused: Option<Vec<Runnable>>,
}

impl NodeState {
    pub(super) fn is_up(&self) -> bool {
        !self.cores.is_empty()
    }

    pub(super) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    pub(super) fn core(&self, id: u16) -> Option<CoreHandle> {
        self.cores.get(usize::from(id)).map(Rc::clone)
    }

    pub(super) fn work(&mut self, core: u16) {
        if let Some(polls) = self.work.get_mut(usize::from(core)) {
            *polls += 1;
        }
    }

    pub(super) fn worked(&self, core: u16) -> u64 {
        let polls = self.work.get(usize::from(core));
        polls.copied().unwrap_or_default()
    }

    pub(super) fn has_address(&self, ip: IpAddr) -> bool {
        self.addresses.iter().any(|at| at.address == ip)
    }
}
