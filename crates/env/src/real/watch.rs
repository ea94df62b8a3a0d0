//! A view of the interfaces and their addresses that follows netlink, and the route to an address.
//!
//! A message of the kernel only says that something changed: everything is then asked for again,
//! which also heals what an overrun socket has lost.

use super::netlink::{self, Message};
use super::readable::readable;
use crate::LocalFuture;
use crate::net::{InterfaceAddress, InterfaceLink, InterfaceWatch, Route};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netdevice, recv, sendto,
    socket_with,
};
use std::cell::{Cell, RefCell};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Larger than any datagram of the kernel for a dump.
const DATAGRAM_BYTES: usize = 64 << 10;

pub(super) struct Watch {
    view: Rc<View>,
    seen: Rc<Cell<u64>>,
    follower: JoinHandle<()>,
}

struct View {
    now: RefCell<Interfaces>,
    version: Cell<u64>,
    changed: Notify,
}

/// What there is at one moment.
#[derive(PartialEq)]
struct Interfaces {
    links: Vec<InterfaceLink>,
    addresses: Vec<InterfaceAddress>,
}

impl Watch {
    pub(super) fn start() -> io::Result<Self> {
        // First listen, then ask: no change falls between the two.
        let reported = readable(socket(netlink::GROUPS, SocketFlags::NONBLOCK)?)?;
        let view = Rc::new(View {
            now: RefCell::new(interfaces()?),
            version: Cell::new(0),
            changed: Notify::new(),
        });
        let follower = tokio::task::spawn_local(follow(reported, Rc::clone(&view)));
        Ok(Self {
            view,
            seen: Rc::default(),
            follower,
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

impl InterfaceWatch for Watch {
    fn current(&self) -> Vec<InterfaceAddress> {
        self.view.now.borrow().addresses.clone()
    }

    fn links(&self) -> Vec<InterfaceLink> {
        self.view.now.borrow().links.clone()
    }

    fn changed(&self) -> LocalFuture<()> {
        let (view, seen) = (Rc::clone(&self.view), Rc::clone(&self.seen));
        Box::pin(async move {
            while seen.get() == view.version.get() {
                view.changed.notified().await;
            }
            seen.set(view.version.get());
        })
    }
}

async fn follow(reported: AsyncFd<OwnedFd>, view: Rc<View>) {
    let mut scratch = vec![0; DATAGRAM_BYTES];
    loop {
        let Ok(mut ready) = reported.readable().await else {
            return;
        };
        // Whatever was said, and also where something was lost (ENOBUFS), everything is asked
        // again.
        while let Ok(_) | Err(Errno::INTR | Errno::NOBUFS) = recv(
            reported.get_ref(),
            scratch.as_mut_slice(),
            RecvFlags::empty(),
        ) {}
        ready.clear_ready();
        // A refusal now leaves the old view; the next message asks again.
        let Ok(now) = interfaces() else { continue };
        if *view.now.borrow() != now {
            view.now.replace(now);
            view.version.set(view.version.get() + 1);
            view.changed.notify_waiters();
        }
    }
}

fn socket(groups: u32, flags: SocketFlags) -> io::Result<OwnedFd> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        flags | SocketFlags::CLOEXEC,
        None, // NETLINK_ROUTE is protocol 0
    )?;
    bind(&socket, &SocketAddrNetlink::new(0, groups))?;
    Ok(socket)
}

/// All links and usable addresses, sorted. The kernel answers a dump without waiting for anything.
fn interfaces() -> io::Result<Interfaces> {
    let mut links = Vec::new();
    ask(&netlink::dump_links(SEQUENCE), |_, message| {
        if let Message::Link(link) = message {
            links.push(InterfaceLink {
                name: link.name,
                index: link.interface_index,
                mtu: link.mtu,
                up: link.up,
                carrier: link.carrier,
                loopback: link.loopback,
            });
        }
    })?;
    links.sort();
    let mut addresses = Vec::new();
    ask(
        &netlink::dump_addresses(SEQUENCE),
        |socket, message| match message {
            Message::Address(address) if address.usable => {
                // An interface that went between the two questions has no name any more.
                let named = netdevice::index_to_name(socket, address.interface_index);
                addresses.extend(named.map(|interface| InterfaceAddress {
                    interface,
                    address: address.address,
                    prefix_bits: address.prefix_bits,
                    interface_index: address.interface_index,
                }));
            }
            Message::Address(_)
            | Message::Link(_)
            | Message::RouteReply(_)
            | Message::Done
            | Message::Error(_)
            | Message::Other => {}
        },
    )?;
    addresses.sort();
    Ok(Interfaces { links, addresses })
}

/// The route that packets to `to` take, those with the source address `from` where one is given.
pub(super) fn route(to: IpAddr, from: Option<IpAddr>) -> io::Result<Route> {
    let mut found = None;
    ask(
        &netlink::ask_route(SEQUENCE, to, from),
        |socket, message| {
            if let Message::RouteReply(reply) = message {
                let named = netdevice::index_to_name(socket, reply.interface_index);
                found = named.ok().map(|interface| Route {
                    interface,
                    gateway: reply.gateway,
                    source: reply.source,
                });
            }
        },
    )?;
    found.ok_or_else(|| io::ErrorKind::NetworkUnreachable.into())
}

const SEQUENCE: u32 = 1;

/// Puts a question to the kernel and hands over every message of its answer.
fn ask(question: &[u8], mut hand_over: impl FnMut(&OwnedFd, Message)) -> io::Result<()> {
    let socket = socket(0, SocketFlags::empty())?;
    let kernel = SocketAddrNetlink::new(0, 0);
    sendto(&socket, question, SendFlags::empty(), &kernel)?;
    let mut scratch = vec![0; DATAGRAM_BYTES];
    loop {
        let bytes = match recv(&socket, scratch.as_mut_slice(), RecvFlags::empty()) {
            Ok((bytes, _)) => bytes,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        for message in netlink::messages(&scratch[..bytes], SEQUENCE) {
            match message {
                Message::Error(code) => return Err(io::Error::from_raw_os_error(code)),
                Message::Done => return Ok(()),
                Message::RouteReply(_) => {
                    hand_over(&socket, message);
                    return Ok(());
                }
                Message::Address(_) | Message::Link(_) | Message::Other => {
                    hand_over(&socket, message);
                }
            }
        }
    }
}
