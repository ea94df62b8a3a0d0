//! How the copy of a LUN on this node begins to work: by what it kept, or, the first time, by the
//! role record.

use crate::entry::{Begun, Entry};
use crate::found::Found;
use arbiter::{Answer, Arbiter, Key, Question, role};
use cluster::{Cluster, CopyStore, LunSpec, NotStarted};
use env::CoreHandle;
use manifest::objects::NodeNames;
use replica::{CopyId, Durable, Epoch, NodeSet, NodeSlot, Revision, RoleRecord};
use std::io;
use std::rc::Rc;

/// What a copy begins with.
pub(crate) struct Beginning<'a> {
    pub(crate) core: &'a CoreHandle,
    pub(crate) found: &'a Found,
    pub(crate) arbiter: &'a dyn Arbiter,
}

/// The slots of the nodes that a LUN names.
fn slots(found: &Found, names: &NodeNames) -> Result<Vec<NodeSlot>, String> {
    let slot = |name: &str| {
        let missing = || format!("the cluster has no node \"{name}\", which it names");
        found.slot_of(name).ok_or_else(missing)
    };
    let mut slots: Vec<NodeSlot> = names.iter().map(slot).collect::<Result<_, _>>()?;
    slots.sort_unstable();
    Ok(slots)
}

impl Beginning<'_> {
    /// The first record: this node has all of nothing. The others come to be in sync when they have
    /// made their copies, so that nobody waits for them.
    fn first(&self, names: &NodeNames) -> Result<RoleRecord, String> {
        let slots = slots(self.found, names)?;
        let copies = slots.iter().map(|slot| {
            let mut id = [0; 16];
            self.core.fill_random(&mut id);
            (*slot, CopyId::new(u128::from_le_bytes(id), false))
        });
        Ok(RoleRecord {
            epoch: Epoch(0),
            step: 0,
            owner: self.found.own.slot,
            in_sync: NodeSet::of([self.found.own.slot]),
            copies: copies.collect(),
        })
    }

    async fn ask(&self, question: Question) -> Result<Answer, String> {
        let answer = self.arbiter.ask(vec![question]).await.pop();
        match answer {
            None => Err("the arbiter did not answer".to_owned()),
            Some(Answer::Unknown(trouble)) => Err(trouble.to_string()),
            Some(answer) => Ok(answer),
        }
    }

    /// The role record as it is, where need be the first one.
    async fn record(&self, key: &Key, names: &NodeNames) -> Result<(Revision, RoleRecord), String> {
        let is = match self.ask(Question::Read(key.clone())).await? {
            Answer::Is(Some(is)) => is,
            Answer::Is(None) | Answer::Refused(_) | Answer::Swapped(_) | Answer::Unknown(_) => {
                let first = self.first(names)?;
                let swap = Question::Swap(role::first(key.clone(), &first));
                match self.ask(swap).await? {
                    Answer::Swapped(revision) => return Ok((revision, first)),
                    Answer::Refused(Some(is)) => is,
                    Answer::Refused(None) | Answer::Is(_) | Answer::Unknown(_) => {
                        return Err(format!("{key}: the record was not written"));
                    }
                }
            }
        };
        let record = role::decode(&is.1).map_err(|why| format!("{key}: {why}"))?;
        Ok((is.0, record))
    }

    /// What a copy knows that never began: all of it is empty.
    ///
    /// A node that counts as one in sync, and has nothing that says so, has lost what it had.
    async fn begins_new(&self, entry: &Entry, key: &Key) -> Result<Durable, String> {
        let known = self.record(key, &entry.names).await?;
        let (own, record) = (self.found.own.slot, &known.1);
        if record.copy_of(own).is_none() {
            return Err(format!(
                "its role record has no copy on node \"{}\"",
                self.found.name
            ));
        }
        let is_first = record.epoch == Epoch(0) && record.owner == own;
        if record.in_sync.has(own) && !is_first {
            return Err(format!(
                "its copy here counts as one that has all of it, in epoch {}, and what this node kept of it is lost; the \
                 node that has it, {}, must remove this one",
                record.epoch.0,
                self.found.name_of(record.owner)
            ));
        }
        let durable = Durable::of_new(own, known).expect("the record has it");
        let kept = entry.file.keep(&durable).await;
        kept.map_err(|error| format!("what the copy is cannot be stored: {error}"))?;
        Ok(durable)
    }

    /// Has the LUN work, or says why it does not yet.
    pub(crate) async fn begin(&self, entry: &Entry, cluster: &Rc<Cluster>) -> Result<(), String> {
        let key = role::key(&entry.naa).ok_or("its NAA identifier is none")?;
        let kept = match entry.file.kept().await {
            Ok(kept) => kept,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.begins_new(entry, &key).await?
            }
            Err(error) => return Err(format!("what this node kept of the copy: {error}")),
        };
        if *entry.begun.borrow() == Begun::Closed {
            return Ok(());
        }
        let spec = LunSpec {
            served: entry.served.clone(),
            key,
            store: Rc::clone(&entry.file) as Rc<dyn CopyStore>,
            kept,
        };
        cluster.open(spec).await.map_err(|why| match why {
            NotStarted::Open(error) => error.to_string(),
            NotStarted::Log(error) => format!("its log does not answer: {error:?}"),
            NotStarted::Rings(rings) => format!(
                "the journal of its pool has {rings} rings, and the copies of this node have another number: make that \
                 journal anew with as many"
            ),
        })
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use arbiter::model::{Manners, ModelArbiter, ModelStore};
    use env::sim::{World, WorldConfig};
    use peer::{ClusterId, Incarnation, KnownNode, NodeId, Own};
    use std::time::Duration;

    fn found(slot: u8) -> Found {
        let known = |slot: u8| KnownNode {
            slot: NodeSlot(slot),
            node: NodeId([slot + 1; 16]),
        };
        let name = |slot: u8| ["a", "b"][usize::from(slot)].to_owned();
        let KnownNode { slot: own, node } = known(slot);
        Found {
            own: Own {
                cluster: ClusterId([7; 16]),
                slot: own,
                node,
                incarnation: Incarnation(1),
                level: 1,
                level_max: 1,
            },
            name: name(slot),
            others: vec![(known(1 - slot), name(1 - slot))],
        }
    }

    fn names(names: &[&str]) -> NodeNames {
        NodeNames::of(names.iter().copied()).unwrap()
    }

    #[test]
    fn the_first_record_has_who_writes_it_in_sync_alone_and_who_comes_later_reads_it() {
        let world = World::new(1, WorldConfig::default());
        let (here, witness) = (world.node("a"), world.node("witness"));
        let store = ModelStore::new(&witness.core(0));
        let core = here.core(0);
        let work = async move {
            let arbiter = ModelArbiter::new(&core, &store, Manners::GOOD);
            let key = role::key("6001405000000064").unwrap();
            let both = names(&["b", "a"]);
            let mut records = Vec::new();
            for slot in [1, 0] {
                let found = found(slot);
                let beginning = Beginning {
                    core: &core,
                    found: &found,
                    arbiter: &arbiter,
                };
                records.push(beginning.record(&key, &both).await.unwrap());
            }
            records
        };
        let records = world.block_on(&here, Duration::from_secs(9), work).unwrap();
        assert_eq!(records[0], records[1], "there is one first record");
        let record = &records[0].1;
        assert_eq!((record.epoch, record.owner), (Epoch(0), NodeSlot(1)));
        assert_eq!(record.in_sync, NodeSet::of([NodeSlot(1)]));
        let nodes: Vec<NodeSlot> = record.copies.iter().map(|it| it.0).collect();
        assert_eq!(nodes, [NodeSlot(0), NodeSlot(1)], "in the order of slots");
        assert_ne!(record.copies[0].1, record.copies[1].1);
        // The LUN is empty: who has nothing has all of it.
        assert!(record.copies.iter().all(|it| !it.1.is_added()));
    }

    #[test]
    fn a_node_that_the_cluster_has_not_is_named() {
        let refused = slots(&found(0), &names(&["a", "c"])).unwrap_err();
        assert!(refused.contains("no node \"c\""), "{refused}");
        let slots = slots(&found(1), &names(&["b", "a"])).unwrap();
        assert_eq!(slots, [NodeSlot(0), NodeSlot(1)]);
    }
}
