//! How a LUN with copies is, in words.

use crate::entry::{Begun, Entry};
use crate::found::Found;
use cluster::{Cluster, LunStatus, Renewal};
use manifest::objects::{MirrorFacts, ResyncFacts};
use replica::{NodeSlot, State};
use volume::Volume;

/// The word of a state.
const fn word(state: State) -> &'static str {
    match state {
        State::Joining => "joining",
        State::Replica => "replica",
        State::CatchingUp => "catching-up",
        State::Copying => "copying",
        State::Candidate => "candidate",
        State::Opening => "opening",
        State::Owner => "owner",
        State::Solo => "solo",
        State::Removing => "removing",
        State::Holding => "holding",
        State::Yielding => "yielding",
        State::Stopped => "stopped",
        State::NoMember => "no-member",
    }
}

pub(crate) fn listed(names: &[String]) -> String {
    match names {
        [] => "no node".to_owned(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// Which copies are made anew from here, and how far that is.
fn renewals(found: &Found, status: &LunStatus) -> String {
    let one = |it: &Renewal| {
        let percent = it.done.saturating_mul(100) / it.blocks.max(1);
        let node = found.name_of(it.node);
        let trouble = it.trouble.as_ref();
        let trouble = trouble.map_or_else(String::new, |why| format!(", and waits: {why}"));
        let what = match &it.whole {
            Some(why) => format!("is made anew, all of it compared, as {why}"),
            None => "gets what changed while it was away".to_owned(),
        };
        let left = it.seconds_left.map_or_else(String::new, time_left);
        format!("; the copy on {node} {what}: {percent} % are there{left}{trouble}")
    };
    status.renewals.iter().map(one).collect()
}

/// How long it will take.
fn time_left(seconds: u64) -> String {
    match seconds {
        0..=90 => format!(", {seconds} s left"),
        91..=5400 => format!(", {} min left", seconds.div_ceil(60)),
        _ => format!(", {} h left", seconds.div_ceil(3600)),
    }
}

fn resync(found: &Found, block_bytes: u64, it: &Renewal) -> ResyncFacts {
    let bytes = |blocks: u64| blocks.saturating_mul(block_bytes);
    ResyncFacts {
        node: found.name_of(it.node),
        done_bytes: bytes(it.done),
        left_bytes: bytes(it.blocks.saturating_sub(it.done)),
        sent_bytes: it.bytes,
        bytes_per_second: bytes(it.per_second),
        seconds_left: it.seconds_left,
        whole: it.whole.clone(),
    }
}

/// The owner has all of it alone.
fn solo((owner, behind): (&str, &[String]), lacks_copies: bool, anew: &str) -> String {
    let waits = match lacks_copies {
        true => ": writes wait for it",
        false => "",
    };
    match behind {
        [] => format!("served here; the copy of {owner} is the only one"),
        _ => format!(
            "served here; {owner} has all of it alone, {} is behind{waits}{anew}",
            listed(behind)
        ),
    }
}

/// What is so, in one sentence.
fn text(found: &Found, status: &LunStatus) -> String {
    let record = &status.record;
    let names = |wanted: bool| -> Vec<String> {
        let copies = record.copies.iter().map(|(slot, _)| *slot);
        let those = copies.filter(|slot| record.in_sync.has(*slot) == wanted);
        those.map(|slot| found.name_of(slot)).collect()
    };
    let (in_sync, behind) = (names(true), names(false));
    let owner = found.name_of(record.owner);
    if let Some(why) = &status.stopped {
        return format!("stopped here: {why}");
    }
    if status.has_owner_lost {
        return format!(
            "{owner} serves it with less than was acknowledged: its disk lost writes, or went back to an older state; this \
             node does not follow it, as what is here may be newer"
        );
    }
    let anew = renewals(found, status);
    match status.state {
        State::Owner => format!("served here; {} have all of it{anew}", listed(&in_sync)),
        State::Solo => solo((&owner, &behind), status.lacks_copies, &anew),
        State::Opening => "this node takes it over, and serves it in a moment".to_owned(),
        State::Removing => format!("another copy is silent, and is being removed; {owner} serves it then"),
        State::Holding => "this node owns it, and hosts wait: another copy is silent, and etcd does not say yet that it does not count".to_owned(),
        State::Replica => format!("{owner} serves it; this node has all of it"),
        State::CatchingUp => format!("{owner} serves it; this node is being brought up"),
        State::Copying => format!("{owner} serves it; the copy here is made anew, and is none until it is whole"),
        State::Candidate => "this node takes it over, and waits for etcd".to_owned(),
        State::Joining => format!("this node waits to hear of {owner}, or of etcd"),
        State::Yielding => "this node gives it to another one".to_owned(),
        State::Stopped => "stopped here: etcd has not the records that are known here".to_owned(),
        State::NoMember => "this node has no copy of it, by its role record".to_owned(),
    }
}

/// Why a LUN stays with this node.
pub(crate) fn nobody_else(now: &MirrorFacts) -> String {
    let others = now.copies.iter().filter(|it| !now.in_sync.contains(it));
    let behind: Vec<String> = others.cloned().collect();
    format!("no other node has all of it: {} is behind", listed(&behind))
}

/// What is known of a LUN on this node.
pub(crate) fn facts(
    entry: &Entry,
    found: Option<&Found>,
    cluster: Option<&Cluster>,
) -> MirrorFacts {
    let waits = |why: &str| MirrorFacts {
        state: "joining".to_owned(),
        text: format!("not served here yet: {why}"),
        ..MirrorFacts::default()
    };
    let begun = entry.begun.borrow();
    let why = match &*begun {
        Begun::Waits(why) => why,
        Begun::Closed => "it is out of service here",
        Begun::Works => "it begins",
    };
    let (Some(found), Some(cluster)) = (found, cluster) else {
        return waits(why);
    };
    let status = (*begun == Begun::Works).then(|| cluster.status(entry.id()));
    let Some(status) = status.flatten() else {
        return waits(why);
    };
    let record = &status.record;
    let name = |slot: NodeSlot| found.name_of(slot);
    MirrorFacts {
        state: word(status.state).to_owned(),
        owner: Some(name(record.owner)),
        epoch: record.epoch.0,
        copies: record.copies.iter().map(|it| name(it.0)).collect(),
        in_sync: record.in_sync.iter().map(name).collect(),
        serves: status.reads && (status.writes || status.lacks_copies),
        text: text(found, &status),
        resyncs: {
            let block_bytes = entry.served.shape().block_size.bytes();
            let all = status.renewals.iter();
            all.map(|it| resync(found, block_bytes.into(), it))
                .collect()
        },
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use peer::{ClusterId, Incarnation, KnownNode, NodeId, Own};
    use replica::{CopyId, Epoch, Moment, NodeSet, RoleRecord};

    const A: NodeSlot = NodeSlot(0);
    const B: NodeSlot = NodeSlot(1);

    /// The node is "a"; "b" is the other one.
    fn found() -> Found {
        let own = Own {
            cluster: ClusterId([7; 16]),
            slot: A,
            node: NodeId([1; 16]),
            incarnation: Incarnation(1),
            level: 1,
            level_max: 1,
        };
        let other = KnownNode {
            slot: B,
            node: NodeId([2; 16]),
        };
        Found {
            own,
            name: "a".to_owned(),
            others: vec![(other, "b".to_owned())],
        }
    }

    fn status(state: State, owner: NodeSlot, in_sync: &[NodeSlot]) -> LunStatus {
        LunStatus {
            state,
            record: RoleRecord {
                epoch: Epoch(3),
                step: 0,
                owner,
                in_sync: NodeSet::of(in_sync.iter().copied()),
                copies: vec![(A, CopyId(2)), (B, CopyId(4))],
            },
            writes: true,
            reads: true,
            lacks_copies: false,
            lost: NodeSet::default(),
            has_owner_lost: false,
            renewals: Vec::new(),
            renewed: None,
            stopped: None,
        }
    }

    #[test]
    fn each_state_has_a_word_and_a_sentence_of_its_own() {
        let all = [
            (State::Joining, "waits to hear of b, or of etcd"),
            (State::Replica, "b serves it; this node has all of it"),
            (
                State::CatchingUp,
                "b serves it; this node is being brought up",
            ),
            (State::Copying, "b serves it; the copy here is made anew"),
            (State::Candidate, "takes it over, and waits for etcd"),
            (State::Opening, "takes it over, and serves it in a moment"),
            (State::Owner, "served here; a and b have all of it"),
            (
                State::Solo,
                "served here; b has all of it alone, a is behind",
            ),
            (
                State::Removing,
                "another copy is silent, and is being removed",
            ),
            (State::Holding, "hosts wait"),
            (State::Yielding, "gives it to another one"),
            (State::Stopped, "etcd has not the records"),
            (State::NoMember, "has no copy of it"),
        ];
        let mut words: Vec<&str> = all.iter().map(|(state, _)| word(*state)).collect();
        for (state, wanted) in all {
            let in_sync = if state == State::Solo {
                &[B][..]
            } else {
                &[A, B]
            };
            let said = text(&found(), &status(state, B, in_sync));
            assert!(said.contains(wanted), "{state:?}: {said}");
        }
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all.len());
    }

    #[test]
    fn what_is_made_anew_what_waits_and_what_was_lost_is_named_with_the_node() {
        let mut solo = status(State::Solo, A, &[A]);
        solo.lacks_copies = true;
        solo.renewals = vec![Renewal {
            node: B,
            done: 30,
            blocks: 120,
            bytes: 0,
            digests: 0,
            per_second: 0,
            seconds_left: None,
            since: Moment(0),
            whole: Some("its disk is new".to_owned()),
            trouble: Some("a block is bad".to_owned()),
        }];
        assert_eq!(
            text(&found(), &solo),
            "served here; a has all of it alone, b is behind: writes wait for it; the copy on b is made anew, all of it compared, as its \
             disk is new: 25 % are there, and waits: a block is bad"
        );
        let mut less = status(State::CatchingUp, B, &[B]);
        less.has_owner_lost = true;
        let said = text(&found(), &less);
        assert!(
            said.starts_with("b serves it with less than was acknowledged"),
            "{said}"
        );
        less.stopped = Some("its log is gone".to_owned());
        assert_eq!(text(&found(), &less), "stopped here: its log is gone");
        let mut alone = status(State::Solo, A, &[A]);
        alone.record.copies.pop();
        assert_eq!(
            text(&found(), &alone),
            "served here; the copy of a is the only one"
        );
    }

    #[test]
    fn names_are_listed_as_people_do() {
        let names = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        for (of, is) in [
            (&[][..], "no node"),
            (&["a"], "a"),
            (&["a", "b"], "a and b"),
            (&["a", "b", "c"], "a, b and c"),
        ] {
            assert_eq!(listed(&names(of)), is);
        }
    }

    #[test]
    fn the_time_that_is_left_is_said_in_a_unit_that_fits_it_and_not_too_short() {
        for (seconds, said) in [
            (0, ", 0 s left"),
            (90, ", 90 s left"),
            (91, ", 2 min left"),
            (5400, ", 90 min left"),
            (5401, ", 2 h left"),
            (86_400, ", 24 h left"),
        ] {
            assert_eq!(time_left(seconds), said);
        }
    }
}
