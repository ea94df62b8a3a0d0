//! The nodes of a cluster as a node knows them, and who of those that say so is one. Pure.

use crate::authority::Identity;
use crate::fingerprint::Fingerprint;
use crate::records::{ClusterRecord, NodeRecord, Standing};
use crate::refusal::{Refusal, RefusalKind};
use replica::{NODES_MAX, Revision};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A record, and the version of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Known<T> {
    /// Of the arbiter.
    pub revision: u64,
    /// As it was then.
    pub record: T,
}

impl<T> Known<T> {
    /// As a swap names it.
    #[must_use]
    pub const fn version(&self) -> Revision {
        Revision(self.revision)
    }
}

/// The cluster and its nodes, as they were when the arbiter was last heard.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Roster {
    /// Which one it is, by its identifier; its authority.
    pub cluster: Known<ClusterRecord>,
    /// Its nodes by their numbers, also those that have left.
    pub nodes: BTreeMap<u8, Known<NodeRecord>>,
    /// What changes later has a greater version.
    pub until: u64,
}

impl Roster {
    /// The newest version of a record in it.
    #[must_use]
    pub fn newest(&self) -> Revision {
        let nodes = self.nodes.values().map(|it| it.revision);
        Revision(nodes.fold(self.cluster.revision, u64::max))
    }

    /// The nodes that count.
    pub fn joined(&self) -> impl Iterator<Item = (u8, &NodeRecord)> {
        let all = self.nodes.iter().map(|(slot, it)| (*slot, &it.record));
        all.filter(|(_, it)| it.standing == Standing::Joined)
    }

    /// The number of a node, where it counts.
    #[must_use]
    pub fn slot_of(&self, node_id: &str) -> Option<u8> {
        let found = self.joined().find(|(_, it)| it.profile.id == node_id);
        found.map(|(slot, _)| slot)
    }

    /// The lowest number that no node ever had; `None`: there is none any more.
    #[must_use]
    pub fn free_slot(&self) -> Option<u8> {
        (0..NODES_MAX).find(|it| !self.nodes.contains_key(it))
    }

    /// Takes a record over, unless a newer one is known.
    pub fn knows(&mut self, slot: u8, node: Known<NodeRecord>) {
        let known = self.nodes.get(&slot).map_or(0, |it| it.revision);
        if node.revision > known {
            self.nodes.insert(slot, node);
        }
    }

    /// Who shows this certificate, which the authority signed, to the node with number `own`.
    ///
    /// # Errors
    /// It is of another cluster, of no node of this one, of one that has left, another certificate
    /// than the arbiter has of it, or this node's own.
    pub fn peer(&self, certificate: &[u8], own: u8) -> Result<u8, Refusal> {
        let refused =
            |cause: String, next: &str| Err(Refusal::new(RefusalKind::Stranger, cause, next));
        let Some(identity) = Identity::of(certificate) else {
            return refused(
                "the certificate that it shows is no node's".to_owned(),
                "check which program answers at this address",
            );
        };
        let slot = identity.slot;
        if identity.cluster != self.cluster.record.id {
            return refused(
                format!(
                    "it is a node of cluster {}, and this is cluster {} ({})",
                    identity.cluster, self.cluster.record.id, self.cluster.record.name
                ),
                "check [cluster] of both nodes: addresses are of one cluster's nodes alone",
            );
        }
        if slot == own {
            return refused(
                format!("it says that it is node {slot}, which is this node itself"),
                "a node runs once: stop the one that was copied, or set it up anew and let it join as another node",
            );
        }
        let Some(Known { record, .. }) = self.nodes.get(&slot) else {
            return refused(
                format!("the cluster has no node {slot}"),
                "if it has just joined, try again; else etcd was restored from an old backup",
            );
        };
        if record.standing == Standing::Left {
            return refused(
                format!("node {slot} ({}) has left the cluster", record.profile.name),
                "let it join anew with a token of `causeway cluster token`",
            );
        }
        let shown = Fingerprint::of(certificate);
        let is_known = shown == record.fingerprint || Some(shown) == record.fingerprint_before;
        if identity.node != record.profile.id || !is_known {
            return refused(
                format!(
                    "node {slot} ({}) shows the certificate {shown}, and the cluster knows {} of it: it is an old \
                     copy of that node, or another one with its keys",
                    record.profile.name, record.fingerprint
                ),
                "stop the one that is not meant; a node whose state was restored takes its newer certificate from etcd",
            );
        }
        Ok(slot)
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::authority::{Authority, SecretKey};
    use crate::fixture;
    use crate::records::Der;
    use units::WallClock;

    fn known<T>(revision: u64, record: T) -> Known<T> {
        Known { revision, record }
    }

    fn with(slots: &[u8]) -> Roster {
        let nodes = slots
            .iter()
            .map(|it| (*it, known(2, fixture::node_record(*it))));
        Roster {
            cluster: known(1, fixture::cluster_record()),
            nodes: nodes.collect(),
            until: 2,
        }
    }

    #[test]
    fn a_number_is_given_once_and_a_node_that_left_counts_no_more() {
        let mut roster = with(&[0, 1, 3]);
        assert_eq!(roster.free_slot(), Some(2));
        let id = fixture::profile(1).id;
        assert_eq!(roster.slot_of(&id), Some(1));
        let left = NodeRecord {
            standing: Standing::Left,
            ..fixture::node_record(1)
        };
        roster.knows(1, known(1, left.clone()));
        assert_eq!(roster.slot_of(&id), Some(1), "an older record says nothing");
        roster.knows(1, known(9, left));
        assert_eq!((roster.slot_of(&id), roster.newest()), (None, Revision(9)));
        assert_eq!(roster.free_slot(), Some(2));
        let all: Vec<u8> = (0..NODES_MAX).collect();
        assert_eq!(with(&all).free_slot(), None);
    }

    #[test]
    fn who_is_believed_is_the_node_whose_certificate_the_arbiter_has() {
        let cluster = fixture::cluster_record().id;
        let authority = Authority::new(&cluster, SecretKey::make().unwrap());
        let made = |authority: &Authority, slot: u8, id: &str| {
            let key = SecretKey::make().unwrap().public();
            authority.signs(slot, id, &key, WallClock(0)).unwrap()
        };
        let id = fixture::profile(1).id;
        let certificate = made(&authority, 1, &id);
        let mut roster = with(&[0, 1]);
        let record = NodeRecord {
            fingerprint: Fingerprint::of(&certificate),
            certificate: Der(certificate.clone()),
            ..fixture::node_record(1)
        };
        roster.knows(1, known(3, record.clone()));
        assert_eq!(roster.peer(&certificate, 0), Ok(1));
        let why = |roster: &Roster, certificate: &[u8], own| {
            roster.peer(certificate, own).unwrap_err().cause
        };
        let again = made(&authority, 1, &id);
        for (certificate, own, said) in [
            (&again, 0, "an old copy of that node"),
            (&certificate, 1, "this node itself"),
            (&made(&authority, 7, &id), 0, "no node 7"),
            (
                &made(&Authority::new("d", SecretKey::make().unwrap()), 1, &id),
                0,
                "cluster d",
            ),
            (&b"none".to_vec(), 0, "no node's"),
        ] {
            let why = why(&roster, certificate, own);
            assert!(why.contains(said), "{why}");
        }
        // While a certificate is replaced both are believed.
        let replaced = NodeRecord {
            fingerprint: Fingerprint::of(&again),
            certificate: Der(again.clone()),
            fingerprint_before: Some(record.fingerprint),
            ..record.clone()
        };
        roster.knows(1, known(4, replaced));
        assert_eq!(roster.peer(&certificate, 0), Ok(1));
        assert_eq!(roster.peer(&again, 0), Ok(1));
        let left = NodeRecord {
            standing: Standing::Left,
            ..record
        };
        roster.knows(1, known(5, left));
        assert!(why(&roster, &certificate, 0).contains("has left"));
    }
}
