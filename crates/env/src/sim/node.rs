//! A machine: cores that come and go, a disk that stays, addresses.

use super::clock::NodeClock;
use super::core::SimCore;
use super::executor::Life;
use super::fault::Fault;
use super::file::{Disk, DiskState, EndOfLife};
use super::inner::Inner;
use super::node_state::NodeState;
use crate::{CoreHandle, InterfaceAddress, Locals};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use units::Pool;

/// A simulated machine. Cloning gives another handle on the same one.
#[derive(Clone)]
pub struct Node {
    inner: Rc<Inner>,
    index: u16,
}

impl Node {
    pub(super) fn named(inner: &Rc<Inner>, name: &str) -> Self {
        let found = inner.nodes.borrow().iter().position(|it| it.name == name);
        if let Some(found) = found {
            return Self::at(inner, found);
        }
        let index = inner.nodes.borrow().len();
        let last = u8::try_from(index + 1).expect("a world has at most 255 nodes");
        let address = |interface: &str, interface_index, address, prefix_bits| InterfaceAddress {
            interface: interface.to_owned(),
            address,
            prefix_bits,
            interface_index,
        };
        let v6 = Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, u16::from(last));
        let state = NodeState {
            name: name.to_owned(),
            incarnation: 0,
            cores: Vec::new(),
            work: Vec::new(),
            addresses: vec![
                address("lo", 1, Ipv4Addr::LOCALHOST.into(), 8),
                address("lo", 1, Ipv6Addr::LOCALHOST.into(), 128),
                address("eth0", 2, Ipv4Addr::new(10, 0, 0, last).into(), 24),
                address("eth0", 2, v6.into(), 64),
            ],
            address_version: 0,
            address_watchers: Vec::new(),
            disk: DiskState::new(inner.config.disk_bytes, inner.config.sector_bytes),
            next_port: 49152,
            clock: NodeClock::exact(),
            paused: None,
        };
        inner.nodes.borrow_mut().push(state);
        let node = Self::at(inner, index);
        node.restart();
        node
    }

    fn at(inner: &Rc<Inner>, index: usize) -> Self {
        Self {
            inner: Rc::clone(inner),
            index: u16::try_from(index).expect("a world has at most 255 nodes"),
        }
    }

    pub(super) fn index(&self) -> u16 {
        self.index
    }

    fn with<T>(&self, inspect: impl FnOnce(&mut NodeState) -> T) -> T {
        let mut nodes = self.inner.nodes.borrow_mut();
        inspect(&mut nodes[usize::from(self.index)])
    }

    fn life(&self) -> Life {
        Life {
            node: self.index,
            incarnation: self.with(|state| state.incarnation),
        }
    }

    /// What it was called when the world was made; reports use it.
    #[must_use]
    pub fn name(&self) -> String {
        self.with(|state| state.name.clone())
    }

    /// It runs.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.with(|state| state.is_up())
    }

    /// One of its cores, to start tasks on.
    ///
    /// # Panics
    /// If the node is down or has no such core.
    #[must_use]
    pub fn core(&self, id: u16) -> CoreHandle {
        self.with(|state| state.core(id))
            .expect("the node is up and has this core")
    }

    /// All its cores.
    ///
    /// # Panics
    /// If the node is down.
    #[must_use]
    pub fn cores(&self) -> Vec<CoreHandle> {
        (0..self.inner.config.cores)
            .map(|id| self.core(id))
            .collect()
    }

    /// Its disk, up or down.
    #[must_use]
    pub fn disk(&self) -> Disk {
        Disk::new(&self.inner, self.index)
    }

    /// The first address of `eth0`.
    ///
    /// # Panics
    /// If it was taken away.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        self.with(|state| {
            let first = state.addresses.iter().find(|at| at.interface == "eth0");
            first.expect("eth0 has an address").address
        })
    }

    /// Gives an interface an address.
    pub fn add_address(&self, interface: &str, address: IpAddr, prefix_bits: u8) {
        self.change_addresses(|addresses| {
            let same = addresses.iter().find(|at| at.interface == interface);
            let next = addresses.iter().map(|at| at.interface_index).max();
            let interface_index = same.map_or(next.unwrap_or(0) + 1, |at| at.interface_index);
            addresses.push(InterfaceAddress {
                interface: interface.to_owned(),
                address,
                prefix_bits,
                interface_index,
            });
        });
    }

    /// Takes an address away. Connections on it stay, and nothing arrives on them until it is back.
    pub fn remove_address(&self, address: IpAddr) {
        self.change_addresses(|addresses| addresses.retain(|at| at.address != address));
    }

    fn change_addresses(&self, change: impl FnOnce(&mut Vec<InterfaceAddress>)) {
        let watchers = self.with(|state| {
            change(&mut state.addresses);
            state.address_version += 1;
            std::mem::take(&mut state.address_watchers)
        });
        for watcher in watchers {
            watcher.wake();
        }
    }

    /// From now on its clock goes faster than the world's, by so many millionths, or slower. What
    /// waits already is woken as if it had not changed.
    ///
    /// # Panics
    /// By more than half.
    pub fn goes_faster(&self, millionths: i32) {
        let now = self.inner.now();
        self.with(|state| state.clock.goes(now, millionths));
    }

    /// Nothing of it runs until it [resumes](Self::resume), as a process that is stopped (SIGSTOP)
    /// or, where its clock stands as well, as a virtual machine. What others send arrives.
    pub fn pause(&self, clock_stands: bool) {
        let now = self.inner.now();
        self.with(|state| {
            state.paused.get_or_insert_default();
            state.clock.stands(now, clock_stands);
        });
        let numbers = [clock_stands.into(), 0, 0];
        self.inner.event(Some((self.index, 0)), "pause", numbers);
    }

    /// Goes on after a [pause](Self::pause).
    pub fn resume(&self) {
        let now = self.inner.now();
        let kept = self.with(|state| {
            state.clock.stands(now, false);
            state.paused.take()
        });
        for runnable in kept.into_iter().flatten() {
            self.inner.executor.put_ready(runnable);
        }
        self.inner.event(Some((self.index, 0)), "resume", [0; 3]);
    }

    /// Cuts the power: every task is gone at once, the disk keeps what was synced and perhaps some
    /// of the rest, and the other ends of its connections learn of it by a reset, later, or never.
    pub fn crash(&self) {
        if !self.is_up() {
            return;
        }
        self.inner.hit(Fault::NodePowerCut);
        self.end(EndOfLife::PowerCut, "cut");
    }

    /// Kills the process (SIGKILL): every task is gone at once; the kernel keeps what was written,
    /// and resets the connections.
    pub fn kill(&self) {
        if !self.is_up() {
            return;
        }
        self.inner.hit(Fault::NodeKilled);
        self.end(EndOfLife::Killed, "kill");
    }

    fn end(&self, how: EndOfLife, event: &'static str) {
        let life = self.life();
        self.inner
            .event(Some((self.index, 0)), event, [life.incarnation, 0, 0]);
        // First it is dead, so that the destructors of its tasks reach nothing any more.
        let now = self.inner.now();
        let (cores, watchers) = self.with(|state| {
            state.clock.stands(now, false);
            state.paused = None;
            let watchers = std::mem::take(&mut state.address_watchers);
            (std::mem::take(&mut state.cores), watchers)
        });
        self.inner.net_end_of_life(life, how);
        self.inner.files_end_of_life(life, how);
        self.inner.executor.kill(|of| of == life);
        cores.iter().for_each(|core| core.locals().clear());
        drop((cores, watchers));
    }

    /// Starts it again, with nothing running on it. Does nothing where it is up.
    pub fn restart(&self) {
        if self.is_up() {
            return;
        }
        self.with(|state| state.incarnation += 1);
        let life = self.life();
        let config = &self.inner.config;
        let core = |id| -> CoreHandle {
            Rc::new(SimCore {
                inner: Rc::clone(&self.inner),
                life,
                id,
                pool: Pool::with_reserves(config.pool_bytes, config.pool_reserves),
                locals: Locals::default(),
            })
        };
        let cores = (0..self.inner.config.cores).map(core).collect();
        self.with(|state| {
            state.work = vec![0; usize::from(self.inner.config.cores)];
            state.cores = cores;
        });
        self.inner
            .event(Some((self.index, 0)), "start", [life.incarnation, 0, 0]);
    }

    /// Takes all nodes down without any fault, at the end of the world.
    pub(super) fn end_all(inner: &Rc<Inner>) {
        let cores: Vec<Vec<CoreHandle>> = inner
            .nodes
            .borrow_mut()
            .iter_mut()
            .map(|node| std::mem::take(&mut node.cores))
            .collect();
        inner.executor.kill(|_| true);
        let cores = cores.iter().flatten();
        cores.for_each(|core| core.locals().clear());
    }
}
