//! A unit with copies on several nodes: its ports are those of all nodes, in a group each.

use super::bench::{Bench, begin};
use crate::{
    Attribute, InitiatorPort, Nexus, NexusPort, NodeElsewhere, NodeNumber, Peers, PortElsewhere,
    PortFacts, UnitPorts,
};
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use volume::Access;

const READ: [u8; 10] = [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
const TEST_UNIT_READY: [u8; 6] = [0; 6];

struct Alone;

impl Peers for Alone {
    fn all(&self) -> Vec<Rc<Nexus>> {
        Vec::new()
    }

    fn released(&self) {}
}

fn port(relative_port: u16) -> PortFacts {
    PortFacts {
        relative_port,
        target_name: "iqn.2026-11.io.causeway:t".to_owned(),
        portal_group_tag: 1,
    }
}

/// A nexus of this initiator, through this port of this node, which has port 9, too.
pub(super) fn nexus_at(bench: &Bench, core: u16, name: &str, own: u16) -> Rc<Nexus> {
    let at = NexusPort {
        initiator: InitiatorPort {
            name: name.to_owned(),
            isid: [0; 6],
        },
        target_port: own,
    };
    let ports = UnitPorts {
        own: port(own),
        all: vec![port(own), port(9)],
    };
    let node = bench.node.core(core);
    let nexus = Nexus::open(
        &node,
        super::bench::UNIT,
        at,
        ports,
        false,
        Weak::<Alone>::new(),
    );
    nexus.unwrap()
}

fn nexus(bench: &Bench, core: u16, name: &str) -> Rc<Nexus> {
    nexus_at(bench, core, name, 5)
}

fn elsewhere(number: u8, own: u16, names: &[&str]) -> NodeElsewhere {
    NodeElsewhere {
        number: NodeNumber(number),
        ports: vec![PortElsewhere {
            port: port(own),
            any: false,
            names: names.iter().map(|it| (*it).to_owned()).collect(),
        }],
    }
}

/// How a command ended.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) status: u8,
    pub(super) data: Vec<u8>,
    /// Key, code and qualifier.
    pub(super) sense: Option<[u8; 3]>,
}

pub(super) fn run(bench: &Bench, nexus: &Rc<Nexus>, cdb: &[u8], data: &[u8]) -> Answered {
    let running = begin(nexus, cdb, Attribute::Simple, 7, data);
    let crate::Outcome::Respond(response) = bench.run(running) else {
        panic!("it is answered");
    };
    let sense = response.sense.map(|it| {
        let sense = it.to_vec();
        [sense[2] & 15, sense[12], sense[13]]
    });
    Answered {
        status: response.status.code(),
        data: response.data_in.to_vec(),
        sense,
    }
}

/// Unit attentions until there is none.
pub(super) fn attentions(bench: &Bench, nexus: &Rc<Nexus>) -> Vec<[u8; 2]> {
    let mut found = Vec::new();
    while let Some([6, asc, ascq]) = run(bench, nexus, &TEST_UNIT_READY, &[]).sense {
        found.push([asc, ascq]);
    }
    found
}

/// Group, state and ports of each, in both formats.
fn groups(bench: &Bench, nexus: &Rc<Nexus>) -> Vec<(u16, u8, Vec<u16>)> {
    let [plain, extended] = [(0x0a, 4), (0x2a, 8)].map(|(action, skipped)| {
        let cdb = [0xa3, action, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0];
        let bytes = run(bench, nexus, &cdb, &[]).data;
        let length = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        assert_eq!(bytes.len() - 4, usize::try_from(length).unwrap());
        bytes[skipped..].to_vec()
    });
    assert_eq!(plain, extended);
    let mut rest = &plain[..];
    let mut all = Vec::new();
    while !rest.is_empty() {
        let ports = usize::from(rest[7]);
        let be16 = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
        let of = (0..ports).map(|it| be16(8 + 4 * it + 2)).collect();
        all.push((be16(2), rest[0], of));
        rest = &rest[8 + 4 * ports..];
    }
    all
}

/// Relative ports of page 88h; relative port and group of page 83h.
fn pages(bench: &Bench, nexus: &Rc<Nexus>) -> (Vec<u16>, u16, u16) {
    let ports = run(bench, nexus, &[0x12, 1, 0x88, 4, 0, 0], &[]).data;
    let mut rest = &ports[4..];
    let mut all = Vec::new();
    while !rest.is_empty() {
        all.push(u16::from_be_bytes([rest[2], rest[3]]));
        rest = &rest[12 + usize::from(u16::from_be_bytes([rest[10], rest[11]]))..];
    }
    let own = run(bench, nexus, &[0x12, 1, 0x83, 4, 0, 0], &[]).data;
    let mut rest = &own[4..];
    let (mut relative, mut group) = (0, 0);
    while !rest.is_empty() {
        let number = || u16::from_be_bytes([rest[6], rest[7]]);
        match rest[1] & 15 {
            4 => relative = number(),
            5 => group = number(),
            _ => {}
        }
        rest = &rest[4 + usize::from(rest[3])..];
    }
    (all, relative, group)
}

#[test]
fn all_nodes_are_groups_and_each_initiator_has_the_ports_that_it_may_use() {
    let bench = Bench::new(11);
    let unit = Arc::clone(&bench.unit);
    let core = bench.node.core(0);
    bench.run(async move {
        unit.set_node(&core, NodeNumber(2)).await;
        let others = vec![
            elsewhere(0, 5, &["iqn.a", "iqn.b"]),
            elsewhere(63, 7, &["iqn.b"]),
        ];
        unit.set_elsewhere(&core, others).await;
    });
    let (a, b) = (nexus(&bench, 0, "iqn.a"), nexus(&bench, 1, "iqn.b"));
    let (_, _) = (attentions(&bench, &a), attentions(&bench, &b));
    let own = vec![2 * 1024 + 5, 2 * 1024 + 9];
    let last = 63 * 1024 + 7;
    let (is, is_not) = (0, 3);
    assert_eq!(a.port().target_port, own[0]);
    let of_a = [(1, is_not, vec![5]), (3, is, own.clone())];
    assert_eq!(groups(&bench, &a), of_a);
    assert_eq!(pages(&bench, &a), (vec![5, own[0], own[1]], own[0], 3));
    let of_b = [
        (1, is_not, vec![5]),
        (3, is, own.clone()),
        (64, is_not, vec![last]),
    ];
    assert_eq!(groups(&bench, &b), of_b);
    assert_eq!(
        pages(&bench, &b),
        (vec![5, own[0], own[1], last], own[0], 3)
    );

    // ALL_TG_PT: at every port that the initiator may use, on all nodes.
    let list = [[0; 8], [0, 0, 0, 0, 0, 0, 0, 9]].concat();
    let list = [list, vec![0, 0, 0, 0, 0x04, 0, 0, 0]].concat();
    let register = [0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0];
    assert_eq!(run(&bench, &a, &register, &list).status, 0);
    let all = run(&bench, &a, &[0x5e, 3, 0, 0, 0, 0, 0, 4, 0, 0], &[]).data;
    let mut rest = &all[8..];
    let mut at = BTreeSet::new();
    while !rest.is_empty() {
        at.insert(u16::from_be_bytes([rest[18], rest[19]]));
        let more = u32::from_be_bytes([rest[20], rest[21], rest[22], rest[23]]);
        rest = &rest[24 + usize::try_from(more).unwrap()..];
    }
    assert_eq!(at, BTreeSet::from([5, own[0], own[1]]));

    states_follow_the_role(&bench, [&a, &b], own);
}

/// `own`: the ports of node 2.
fn states_follow_the_role(bench: &Bench, [a, b]: [&Rc<Nexus>; 2], own: Vec<u16>) {
    let (is, is_not, last) = (0, 3, 63 * 1024 + 7);
    // Another node serves it: that one is optimized, and this one is not to be used.
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
    bench.run(async move { unit.set_access(&core, Access::Elsewhere(Some(0))).await });
    let changed = [[0x2a, 0x06]];
    assert_eq!(
        (attentions(bench, a), attentions(bench, b)),
        (changed.into(), changed.into())
    );
    let of_b = [
        (1, is, vec![5]),
        (3, is_not, own.clone()),
        (64, is_not, vec![last]),
    ];
    assert_eq!(groups(bench, b), of_b);
    assert_eq!(run(bench, a, &READ, &[]).sense, Some([2, 0x04, 0x0c]));
    // Nobody is known to: it says so of all.
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
    bench.run(async move { unit.set_access(&core, Access::Elsewhere(None)).await });
    assert_eq!(attentions(bench, b), [[0x2a, 0x06]]);
    assert!(
        groups(bench, b)
            .iter()
            .all(|(_, state, _)| *state == is_not)
    );
    // Ports elsewhere change: hosts ask again.
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
    bench.run(async move {
        unit.set_access(&core, Access::Served).await;
        unit.set_elsewhere(&core, vec![elsewhere(0, 6, &["iqn.a"])])
            .await;
    });
    let changed = [[0x2a, 0x06], [0x3f, 0x03]];
    let found: BTreeSet<[u8; 2]> = attentions(bench, b).into_iter().collect();
    let _same = attentions(bench, a);
    assert_eq!(found, changed.into());
    assert_eq!(groups(bench, b), [(3, is, own.clone())]);
    assert_eq!(groups(bench, a), [(1, is_not, vec![6]), (3, is, own)]);
}
