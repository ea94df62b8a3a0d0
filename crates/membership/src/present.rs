//! What the rest of the program knows of this node's cluster: who this node is there, and which
//! others are. Pure.

use crate::admission::LEVELS;
use crate::roster::Roster;
use std::net::SocketAddr;

/// This node in its cluster, and the others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Present {
    /// The cluster's identifier, random.
    pub cluster: [u8; 16],
    /// The number of this node there.
    pub slot: u8,
    /// The identifier of this node, random.
    pub node: [u8; 16],
    /// This start of the program: random, and what nodes say to each other with each stream.
    pub run: u64,
    /// The level of the cluster.
    pub level: u16,
    /// The highest one that this program has.
    pub level_max: u16,
    /// The other nodes that are in the cluster, by their numbers; those that left are not there.
    pub others: Vec<OtherNode>,
}

/// Another node that is in the cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherNode {
    /// Its number.
    pub slot: u8,
    /// Its identifier.
    pub node: [u8; 16],
    /// What people call it.
    pub name: String,
    /// Where it is reached.
    pub addresses: Vec<SocketAddr>,
}

impl Present {
    /// By what is known; `None`: the node was removed from the cluster.
    pub(crate) fn of(roster: &Roster, slot: u8, run: &str) -> Option<Self> {
        let (_, own) = roster.joined().find(|it| it.0 == slot)?;
        let others = roster.joined().filter(|it| it.0 != slot);
        let other = |(slot, it): (u8, &crate::records::NodeRecord)| {
            Some(OtherNode {
                slot,
                node: bytes(&it.profile.id)?,
                name: it.profile.name.clone(),
                addresses: it.profile.addresses.clone(),
            })
        };
        let cluster = &roster.cluster.record;
        Some(Self {
            cluster: bytes(&cluster.id)?,
            slot,
            node: bytes(&own.profile.id)?,
            run: u64::from_str_radix(run, 16).ok()?,
            level: cluster.level,
            level_max: LEVELS[1],
            others: others.filter_map(other).collect(),
        })
    }
}

/// The 16 bytes of an identifier of 32 digits.
fn bytes(id: &str) -> Option<[u8; 16]> {
    let is_id = id.len() == 32 && id.bytes().all(|it| it.is_ascii_hexdigit());
    let number = is_id.then(|| u128::from_str_radix(id, 16).ok()).flatten();
    number.map(u128::to_be_bytes)
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::fixture;
    use crate::records::{NodeRecord, Standing};
    use crate::roster::Known;

    #[test]
    fn those_that_joined_are_there_and_who_was_removed_is_in_no_cluster() {
        let known = |revision, record| Known { revision, record };
        let nodes = [0, 1, 2].map(|it| (it, known(2, fixture::node_record(it))));
        let mut roster = Roster {
            cluster: Known {
                revision: 1,
                record: fixture::cluster_record(),
            },
            nodes: nodes.into(),
            until: 2,
        };
        let run = "00000000000000ff";
        let present = Present::of(&roster, 1, run).unwrap();
        assert_eq!(present.cluster, [0xcc; 16]);
        assert_eq!((present.slot, present.run), (1, 255));
        assert_eq!(units::hex(&present.node), fixture::profile(1).id);
        let slots: Vec<u8> = present.others.iter().map(|it| it.slot).collect();
        assert_eq!(slots, [0, 2]);
        assert_eq!(present.others[1].addresses, fixture::profile(2).addresses);
        let left = NodeRecord {
            standing: Standing::Left,
            ..fixture::node_record(2)
        };
        roster.knows(2, known(3, left));
        let fewer = Present::of(&roster, 1, run).unwrap();
        assert_eq!(fewer.others.len(), 1);
        assert_eq!(Present::of(&roster, 2, run), None);
        assert_eq!(bytes("+0000000000000000000000000000001"), None);
    }
}
