//! Role records as an arbiter holds them.
//!
//! `luns/NAA/role`, as JSON that people read with etcd's own tools:
//!
//! ```text
//!   {"format":1,"epoch":7,"step":2,"owner":0,"in_sync":[0,1],"copies":[{"node":0,"id":"9f..."},...]}
//! ```

use crate::question::{Answer, Arbiter, Key, Question, Swap};
use crate::trouble::{Trouble, TroubleKind};
use replica::{
    Act, Arbitration, CopyId, Durable, Epoch, NODES_MAX, NodeSet, NodeSlot, Revision, RoleRecord,
};
use serde::{Deserialize, Serialize};

/// The one that is written. Readers refuse others.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Written {
    format: u32,
    epoch: u64,
    step: u32,
    owner: u8,
    in_sync: Vec<u8>,
    copies: Vec<WrittenCopy>,
}

#[derive(Serialize, Deserialize)]
struct WrittenCopy {
    node: u8,
    id: String,
}

/// Where the role record of a LUN stands; `None`: that is no NAA identifier.
#[must_use]
pub fn key(naa: &str) -> Option<Key> {
    let is_one = !naa.is_empty() && naa.bytes().all(|it| it.is_ascii_hexdigit());
    if !is_one {
        return None;
    }
    Key::new(&format!("luns/{}/role", naa.to_ascii_lowercase()))
}

/// A record as it is stored.
///
/// # Panics
/// Never: numbers and digits become JSON.
#[must_use]
pub fn encode(record: &RoleRecord) -> Vec<u8> {
    let copy = |(node, id): &(NodeSlot, CopyId)| WrittenCopy {
        node: node.0,
        id: format!("{:032x}", id.0),
    };
    let written = Written {
        format: FORMAT,
        epoch: record.epoch.0,
        step: record.step,
        owner: record.owner.0,
        in_sync: record.in_sync.iter().map(|it| it.0).collect(),
        copies: record.copies.iter().map(copy).collect(),
    };
    serde_json::to_vec(&written).expect("numbers and digits")
}

/// A record that was stored.
///
/// # Errors
/// What is wrong with it, in words that follow its name.
pub fn decode(text: &[u8]) -> Result<RoleRecord, String> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let head: Head = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if head.format != FORMAT {
        return Err(format!(
            "it has format {}, and {FORMAT} is known here",
            head.format
        ));
    }
    let is: Written = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let mut copies = Vec::new();
    for WrittenCopy { node, id } in &is.copies {
        let digits = (id.len() == 32).then(|| u128::from_str_radix(id, 16).ok());
        let id = digits
            .flatten()
            .ok_or("a copy has no identifier of 32 digits")?;
        copies.push((NodeSlot(*node), CopyId(id)));
    }
    let is_sorted = copies.is_sorted_by(|a, b| a.0 < b.0);
    let has_copy = |node: &u8| is.copies.iter().any(|it| it.node == *node);
    if !is_sorted || is.copies.iter().any(|it| it.node >= NODES_MAX) {
        return Err("its copies are not in the order of nodes 0 to 63, one each".to_owned());
    }
    if is.in_sync.is_empty() || !is.in_sync.iter().all(has_copy) || !is.in_sync.contains(&is.owner)
    {
        return Err("its owner and the nodes in sync are not nodes with a copy".to_owned());
    }
    Ok(RoleRecord {
        epoch: Epoch(is.epoch),
        step: is.step,
        owner: NodeSlot(is.owner),
        in_sync: NodeSet::of(is.in_sync.iter().copied().map(NodeSlot)),
        copies,
    })
}

/// What a copy's act asks of the arbiter; `None`: nothing.
#[must_use]
pub fn question(key: &Key, act: &Act) -> Option<Question> {
    match act {
        Act::Read => Some(Question::Read(key.clone())),
        Act::Swap(expected, to) => {
            let swap = Swap::new(key.clone(), *expected, encode(to));
            Some(Question::Swap(swap))
        }
        Act::Keep(_)
        | Act::Send(..)
        | Act::Disconnect(_)
        | Act::GiveUp { .. }
        | Act::Renew { .. }
        | Act::Copy { .. }
        | Act::Begin(_)
        | Act::Stream { .. }
        | Act::Committed { .. }
        | Act::Drop => None,
    }
}

/// Has an arbiter know what the copies of this node remember, before anything is asked of it: the
/// newest version of any record. What the arbiter itself keeps may be lost, or never have been.
pub fn begin<'a>(arbiter: &dyn Arbiter, kept: impl IntoIterator<Item = &'a Durable>) {
    let newest = kept.into_iter().map(|it| it.known.0).max();
    arbiter.knows(newest.unwrap_or_default());
}

/// What an answer says to a copy that knew this record when it asked.
///
/// # Errors
/// Why the copy learns nothing from it: for it that is what [`instead`] says.
pub fn arbitration(
    key: &Key,
    known: &(Revision, RoleRecord),
    answer: Answer,
) -> Result<Arbitration, Trouble> {
    match answer {
        Answer::Swapped(revision) => Ok(Arbitration::Swapped(revision)),
        Answer::Unknown(trouble) => Err(trouble),
        Answer::Is(record) | Answer::Refused(record) => {
            let (revision, text) = record.ok_or_else(|| is_gone(key))?;
            let is = decode(&text).map_err(|why| is_garbled(key, &why))?;
            if RoleRecord::was_forgotten(known, (revision, &is)) {
                return Err(was_set_back(key, known, (revision, &is)));
            }
            Ok(Arbitration::Is(revision, is))
        }
    }
}

/// The first record of a LUN: nothing must be there yet.
#[must_use]
pub fn first(key: Key, record: &RoleRecord) -> Swap {
    Swap::new(key, Revision(0), encode(record))
}

/// What trouble says to a copy in the place of an answer.
#[must_use]
pub const fn instead(trouble: &Trouble) -> Arbitration {
    match trouble.kind {
        TroubleKind::SetBack | TroubleKind::OtherStore => Arbitration::Distrusted,
        TroubleKind::Silent
        | TroubleKind::Unreachable
        | TroubleKind::NotReady
        | TroubleKind::Busy
        | TroubleKind::Garbled
        | TroubleKind::Refuses
        | TroubleKind::Full
        | TroubleKind::Certificate
        | TroubleKind::NotAllowed
        | TroubleKind::File => Arbitration::Unknown,
    }
}

fn is_gone(key: &Key) -> Trouble {
    Trouble::new(
        TroubleKind::SetBack,
        format!("{key}: the arbiter has no such record, and there was one"),
        "nothing is changed: have the record made anew by the node that has the data",
    )
}

fn is_garbled(key: &Key, why: &str) -> Trouble {
    Trouble::new(
        TroubleKind::Garbled,
        format!("{key}: the record cannot be read: {why}"),
        "update this node if another one is newer; else somebody wrote it by hand: put the one before it back",
    )
}

fn was_set_back(
    key: &Key,
    (known, record): &(Revision, RoleRecord),
    (revision, is): (Revision, &RoleRecord),
) -> Trouble {
    Trouble::new(
        TroubleKind::SetBack,
        format!(
            "{key}: the arbiter has version {} of epoch {}.{}, and version {} of epoch {}.{} is known here: it was \
             set back",
            revision.0, is.epoch.0, is.step, known.0, record.epoch.0, record.step
        ),
        "nothing is changed: have the record made anew by the node that has the data",
    )
}

#[cfg(test)]
mod test {
    use super::*;

    fn record(epoch: u64, step: u32) -> RoleRecord {
        RoleRecord {
            epoch: Epoch(epoch),
            step,
            owner: NodeSlot(1),
            in_sync: NodeSet::of([NodeSlot(1), NodeSlot(63)]),
            copies: vec![(NodeSlot(1), CopyId(u128::MAX)), (NodeSlot(63), CopyId(5))],
        }
    }

    #[test]
    fn a_record_comes_back_as_it_was() {
        let text = encode(&record(7, 2));
        assert_eq!(decode(&text), Ok(record(7, 2)));
        assert!(text.len() < 300, "{}", text.len());
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(r#""in_sync":[1,63]"#), "{text}");
    }

    #[test]
    fn what_is_no_record_is_refused_with_what_is_wrong() {
        let text = String::from_utf8(encode(&record(7, 2))).unwrap();
        for (from, to, why) in [
            ("\"format\":1", "\"format\":2", "format 2"),
            ("\"owner\":1", "\"owner\":2", "owner"),
            ("[1,63]", "[1,62]", "owner"),
            ("[1,63]", "[]", "owner"),
            ("\"node\":63", "\"node\":64", "order"),
            ("\"node\":63", "\"node\":1", "order"),
            ("00005\"", "5\"", "32 digits"),
            ("}]}", "", "EOF"),
        ] {
            let bad = text.replace(from, to);
            assert_ne!(bad, text);
            let said = decode(bad.as_bytes()).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_lun_is_named_by_the_digits_of_its_naa() {
        assert_eq!(key("6001405ABC").unwrap().as_str(), "luns/6001405abc/role");
        for bad in ["", "naa.6001405", "../6001"] {
            assert_eq!(key(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_store_that_was_set_back_and_went_on_since_shows_by_its_records() {
        let key = key("6001405").unwrap();
        let known = (Revision(40), record(7, 2));
        let said_of = |revision, record: &RoleRecord| {
            let is = Some((Revision(revision), encode(record)));
            arbitration(&key, &known, Answer::Is(is)).map_err(|it| it.kind)
        };
        for (revision, is) in [(40, record(7, 2)), (41, record(7, 3)), (50, record(8, 0))] {
            let right = Arbitration::Is(Revision(revision), is.clone());
            assert_eq!(said_of(revision, &is), Ok(right));
        }
        for (revision, is) in [
            (39, record(7, 2)),
            (41, record(7, 1)),
            (90, record(6, 9)),
            (40, record(8, 0)),
        ] {
            assert_eq!(said_of(revision, &is), Err(TroubleKind::SetBack));
        }
        let gone = arbitration(&key, &known, Answer::Refused(None));
        assert_eq!(gone.unwrap_err().kind, TroubleKind::SetBack);
    }
}
