//! The few words of rtnetlink that report the interfaces of this machine, their addresses, and the
//! routes that packets take.
//!
//! Every read of a message is bounds-checked: the kernel is trusted with the facts, not with our
//! memory. Layouts: `nlmsghdr`, `ifinfomsg`, `ifaddrmsg`, `rtmsg` and `rtattr` of linux/netlink.h,
//! linux/if_addr.h, linux/rtnetlink.h; all host-endian and aligned to 4 bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Multicast groups that report links and addresses of both families.
pub(super) const GROUPS: u32 = 0x1 | 0x10 | 0x100;

const HEADER_BYTES: usize = 16;
const IFINFOMSG_BYTES: usize = 16;
const IFADDRMSG_BYTES: usize = 8;
const RTMSG_BYTES: usize = 12;
const RTATTR_BYTES: usize = 4;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_REQUEST_DUMP: u16 = 0x1 | 0x300;

const IFF_UP: u32 = 0x1;
const IFF_LOOPBACK: u32 = 0x8;
const IFF_LOWER_UP: u32 = 0x1_0000;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PREFSRC: u16 = 7;

const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;

/// The address is not (or not yet) usable: duplicate address detection runs or has failed.
const IFA_F_DADFAILED: u32 = 0x08;
const IFA_F_TENTATIVE: u32 = 0x40;

/// An address as the kernel reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Address {
    pub(super) interface_index: u32,
    pub(super) address: IpAddr,
    pub(super) prefix_bits: u8,
    pub(super) usable: bool,
}

/// A link as the kernel reports it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Link {
    pub(super) interface_index: u32,
    pub(super) name: String,
    pub(super) mtu: u32,
    pub(super) up: bool,
    pub(super) carrier: bool,
    pub(super) loopback: bool,
}

/// The route to an address as the kernel reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RouteReply {
    pub(super) interface_index: u32,
    pub(super) gateway: Option<IpAddr>,
    pub(super) source: Option<IpAddr>,
}

/// One message of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Message {
    Address(Address),
    Link(Link),
    RouteReply(RouteReply),
    /// The dump is complete.
    Done,
    /// The kernel refuses; the number is a positive errno.
    Error(i32),
    /// Of no interest here, or damaged.
    Other,
}

/// The request for all addresses.
pub(super) fn dump_addresses(sequence: u32) -> Vec<u8> {
    request(
        RTM_GETADDR,
        NLM_F_REQUEST_DUMP,
        sequence,
        &[0; IFADDRMSG_BYTES],
    )
}

/// The request for all links.
pub(super) fn dump_links(sequence: u32) -> Vec<u8> {
    request(
        RTM_GETLINK,
        NLM_F_REQUEST_DUMP,
        sequence,
        &[0; IFINFOMSG_BYTES],
    )
}

/// The request for the route to `to`, for packets that carry the source address `from` where one is
/// given.
pub(super) fn ask_route(sequence: u32, to: IpAddr, from: Option<IpAddr>) -> Vec<u8> {
    let (family, bits) = match to {
        IpAddr::V4(_) => (AF_INET, 32),
        IpAddr::V6(_) => (AF_INET6, 128),
    };
    let from_bits = if from.is_some() { bits } else { 0 };
    let mut body = vec![family, bits, from_bits, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    attribute(&mut body, RTA_DST, to);
    if let Some(from) = from {
        attribute(&mut body, RTA_SRC, from);
    }
    request(RTM_GETROUTE, NLM_F_REQUEST, sequence, &body)
}

fn attribute(body: &mut Vec<u8>, kind: u16, address: IpAddr) {
    let (four, sixteen);
    let value: &[u8] = match address {
        IpAddr::V4(v4) => {
            four = v4.octets();
            &four
        }
        IpAddr::V6(v6) => {
            sixteen = v6.octets();
            &sixteen
        }
    };
    let length = u16::try_from(RTATTR_BYTES + value.len()).expect("an address is short");
    body.extend(length.to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
}

fn request(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    let length = u32::try_from(HEADER_BYTES + body.len()).expect("a small constant");
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(body);
    bytes
}

/// The messages in a datagram that answer the request `sequence`.
pub(super) fn messages(datagram: &[u8], sequence: u32) -> Vec<Message> {
    let mut found = Vec::new();
    let mut rest = datagram;
    while let Some((length, kind, of)) = header(rest) {
        let Some(body) = rest.get(HEADER_BYTES..length) else {
            break;
        };
        if of == sequence {
            found.push(message(kind, body));
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    found
}

/// Length with header, type, sequence number; `None` where there is no whole header.
fn header(bytes: &[u8]) -> Option<(usize, u16, u32)> {
    let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
    let whole = (HEADER_BYTES..=bytes.len()).contains(&length);
    whole.then_some(())?;
    Some((length, u16_at(bytes, 4)?, u32_at(bytes, 8)?))
}

fn message(kind: u16, body: &[u8]) -> Message {
    match kind {
        NLMSG_DONE => Message::Done,
        NLMSG_ERROR => {
            let code = body
                .first_chunk()
                .map_or(0, |code| i32::from_ne_bytes(*code));
            Message::Error(code.wrapping_neg())
        }
        RTM_NEWADDR => address(body).map_or(Message::Other, Message::Address),
        RTM_NEWLINK => link(body).map_or(Message::Other, Message::Link),
        RTM_NEWROUTE => route_reply(body).map_or(Message::Other, Message::RouteReply),
        _ => Message::Other,
    }
}

/// The attributes of a message, behind its own `head` bytes.
fn attributes(body: &[u8], head: usize) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = body.get(head..).unwrap_or(&[]);
    std::iter::from_fn(move || {
        let (length, kind) = (u16_at(rest, 0)?, u16_at(rest, 2)?);
        let value = rest.get(RTATTR_BYTES..usize::from(length))?;
        let step = usize::from(length).next_multiple_of(4);
        rest = rest.get(step..).unwrap_or(&[]);
        Some((kind, value))
    })
}

fn address(body: &[u8]) -> Option<Address> {
    let prefix_bits = *body.get(1)?;
    let mut flags = u32::from(*body.get(2)?);
    let interface_index = u32_at(body, 4)?;
    let (mut address, mut local) = (None, None);
    for (kind, value) in attributes(body, IFADDRMSG_BYTES) {
        match kind {
            IFA_ADDRESS => address = ip(value),
            IFA_LOCAL => local = ip(value),
            IFA_FLAGS => flags |= u32_at(value, 0).unwrap_or(0),
            _ => {}
        }
    }
    Some(Address {
        interface_index,
        // On a point-to-point link `IFA_ADDRESS` is the other end.
        address: local.or(address)?,
        prefix_bits,
        usable: flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED) == 0,
    })
}

fn link(body: &[u8]) -> Option<Link> {
    let (interface_index, flags) = (u32_at(body, 4)?, u32_at(body, 8)?);
    let (mut name, mut mtu) = (None, 0);
    for (kind, value) in attributes(body, IFINFOMSG_BYTES) {
        match kind {
            IFLA_IFNAME => {
                let text = value.split(|byte| *byte == 0).next().unwrap_or(value);
                name = Some(String::from_utf8_lossy(text).into_owned());
            }
            IFLA_MTU => mtu = u32_at(value, 0).unwrap_or(0),
            _ => {}
        }
    }
    Some(Link {
        interface_index,
        name: name?,
        mtu,
        up: flags & IFF_UP != 0,
        // While an interface is down its carrier says nothing.
        carrier: flags & (IFF_UP | IFF_LOWER_UP) == IFF_UP | IFF_LOWER_UP,
        loopback: flags & IFF_LOOPBACK != 0,
    })
}

fn route_reply(body: &[u8]) -> Option<RouteReply> {
    let (mut interface_index, mut gateway, mut source) = (None, None, None);
    for (kind, value) in attributes(body, RTMSG_BYTES) {
        match kind {
            RTA_OIF => interface_index = u32_at(value, 0),
            RTA_GATEWAY => gateway = ip(value),
            RTA_PREFSRC => source = ip(value),
            _ => {}
        }
    }
    Some(RouteReply {
        interface_index: interface_index?,
        gateway,
        source,
    })
}

fn ip(value: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(value) {
        return Some(IpAddr::V4(Ipv4Addr::from(four)));
    }
    let sixteen = <[u8; 16]>::try_from(value).ok()?;
    Some(IpAddr::V6(Ipv6Addr::from(sixteen)))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod test {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(u16::try_from(4 + value.len()).unwrap().to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn datagram(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(u32::try_from(16 + body.len()).unwrap().to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(0_u16.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    fn sample() -> Vec<u8> {
        let mut body = vec![2, 24, 0x80, 0, 7, 0, 0, 0];
        body[4..8].copy_from_slice(&7_u32.to_ne_bytes());
        body.extend(attribute(IFA_ADDRESS, &[10, 0, 0, 2]));
        body.extend(attribute(IFA_LOCAL, &[10, 0, 0, 1]));
        body.extend(attribute(3, b"eth1\0"));
        let mut bytes = datagram(RTM_NEWADDR, 5, &body);
        let mut six = vec![10, 64, 0, 0, 0, 0, 0, 0];
        six[4..8].copy_from_slice(&8_u32.to_ne_bytes());
        six.extend(attribute(IFA_ADDRESS, &Ipv6Addr::LOCALHOST.octets()));
        six.extend(attribute(IFA_FLAGS, &IFA_F_TENTATIVE.to_ne_bytes()));
        bytes.extend(datagram(RTM_NEWADDR, 5, &six));
        bytes.extend(datagram(RTM_NEWADDR, 4, &six));
        bytes.extend(datagram(NLMSG_DONE, 5, &[0; 4]));
        bytes
    }

    #[test]
    fn a_dump_is_read_as_the_kernel_means_it() {
        let expected = [
            Message::Address(Address {
                interface_index: 7,
                address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
                prefix_bits: 24,
                usable: true,
            }),
            Message::Address(Address {
                interface_index: 8,
                address: IpAddr::V6(Ipv6Addr::LOCALHOST),
                prefix_bits: 64,
                usable: false,
            }),
            Message::Done,
        ];
        assert_eq!(messages(&sample(), 5), expected);
    }

    #[test]
    fn a_link_and_a_route_are_read_as_the_kernel_means_them() {
        let mut body = vec![0; 16];
        body[4..8].copy_from_slice(&3_u32.to_ne_bytes());
        body[8..12].copy_from_slice(&(IFF_UP | IFF_LOWER_UP).to_ne_bytes());
        body.extend(attribute(IFLA_IFNAME, b"eth2\0"));
        body.extend(attribute(IFLA_MTU, &9000_u32.to_ne_bytes()));
        let read = messages(&datagram(RTM_NEWLINK, 1, &body), 1);
        let expected = Link {
            interface_index: 3,
            name: "eth2".to_owned(),
            mtu: 9000,
            up: true,
            carrier: true,
            loopback: false,
        };
        assert_eq!(read, [Message::Link(expected)]);
        let mut body = vec![0; 12];
        body.extend(attribute(RTA_OIF, &3_u32.to_ne_bytes()));
        body.extend(attribute(RTA_GATEWAY, &[10, 0, 0, 1]));
        let read = messages(&datagram(RTM_NEWROUTE, 1, &body), 1);
        let expected = RouteReply {
            interface_index: 3,
            gateway: Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))),
            source: None,
        };
        assert_eq!(read, [Message::RouteReply(expected)]);
    }

    #[test]
    fn damaged_messages_neither_panic_nor_loop() {
        let whole = sample();
        for cut in 0..whole.len() {
            messages(&whole[..cut], 5);
        }
        for at in 0..whole.len() {
            for value in [0, 1, 3, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                messages(&damaged, 5);
            }
        }
    }
}
