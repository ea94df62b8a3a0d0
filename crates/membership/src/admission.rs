//! Whether a node that comes with a good token is let in. Pure.

use crate::authority::{CLOCK_TOLERANCE, seconds};
use crate::records::Profile;
use crate::refusal::{Refusal, RefusalKind};
use crate::roster::Roster;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use units::WallClock;
use units::rfc3339::{about, rfc3339};

/// The protocols between nodes that this version speaks: from, to.
pub const PROTOCOLS: [u16; 2] = [1, 1];

/// The levels that this version is able to have: from, to.
pub const LEVELS: [u16; 2] = [1, 1];

/// Most LUNs whose identities are compared.
pub const LUNS_MAX: usize = 20_000;

/// How many are named in a refusal.
const NAMED_MAX: usize = 5;

/// A node that wants to join.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Candidate {
    /// What it says of itself.
    pub profile: Profile,
    /// The identities of its LUNs.
    pub naas: Vec<String>,
    /// Its clock, in seconds since 1970.
    pub clock: u64,
}

/// Whether it fits into a cluster whose node that was asked has these LUNs, `now` by its clock.
///
/// # Errors
/// The first reason why not.
pub fn admits(
    candidate: &Candidate,
    roster: &Roster,
    naas: &BTreeSet<String>,
    now: WallClock,
) -> Result<(), Refusal> {
    clocks(candidate.clock, now).map_err(|it| Refusal {
        next_step: format!("{}, then try again; the token stays good", it.next_step),
        ..it
    })?;
    let profile = &candidate.profile;
    versions(profile, roster)?;
    names(profile, roster)?;
    rings(profile, roster)?;
    identities(&candidate.naas, naas)
}

/// Whether two clocks are near enough for certificates.
///
/// # Errors
/// They are not, and what both say.
pub fn clocks(theirs: u64, now: WallClock) -> Result<(), Refusal> {
    let ours = seconds(now);
    let apart = ours.abs_diff(theirs);
    if apart <= CLOCK_TOLERANCE.as_secs() {
        return Ok(());
    }
    let theirs = rfc3339(WallClock(theirs.saturating_mul(1_000_000_000)));
    Err(Refusal::new(
        RefusalKind::Clock,
        format!(
            "the clocks of the two nodes are {} apart: the one that asks has {theirs}, and the one that was asked {}",
            about(apart),
            rfc3339(now)
        ),
        "set the clock that is wrong: a time server keeps it right",
    ))
}

/// Whether two ranges have something in common.
const fn meet(a: [u16; 2], b: [u16; 2]) -> bool {
    a[0] <= b[1] && b[0] <= a[1]
}

fn versions(profile: &Profile, roster: &Roster) -> Result<(), Refusal> {
    let refused = |cause: String| {
        let next = "install the same version of Causeway on both nodes, then try again; the token stays good";
        Err(Refusal::new(RefusalKind::Version, cause, next))
    };
    let level = roster.cluster.record.level;
    let [from, to] = profile.levels;
    if !(from..=to).contains(&level) {
        return refused(format!(
            "the cluster has level {level}, and version {} has levels {from} to {to}",
            profile.version
        ));
    }
    for (_, node) in roster.joined() {
        let known = &node.profile;
        if !meet(known.protocols, profile.protocols) {
            return refused(format!(
                "version {} of this node speaks protocols {} to {}, and version {} of node {} speaks {} to {}",
                profile.version,
                profile.protocols[0],
                profile.protocols[1],
                known.version,
                known.name,
                known.protocols[0],
                known.protocols[1]
            ));
        }
    }
    Ok(())
}

fn names(profile: &Profile, roster: &Roster) -> Result<(), Refusal> {
    for (slot, node) in roster.joined() {
        let known = &node.profile;
        if known.id == profile.id {
            return Err(Refusal::new(
                RefusalKind::Member,
                format!(
                    "node {slot} ({}) of the cluster has the identifier of this node, {}: this one is a copy of it, \
                     or was set up anew with its state",
                    known.name, known.id
                ),
                "a node runs once: give this one a state_dir of its own. If it is that node and has lost its \
                 certificate, `causeway cluster leave --node NAME` on another node comes first",
            ));
        }
        if known.name == profile.name {
            return Err(Refusal::new(
                RefusalKind::Unfit,
                format!("node {slot} of the cluster is named {}, too", known.name),
                "give this node another name (`node.name` of node.toml), then try again; the token stays good",
            ));
        }
        let same = known
            .addresses
            .iter()
            .find(|it| profile.addresses.contains(it));
        if let Some(same) = same {
            return Err(Refusal::new(
                RefusalKind::Unfit,
                format!(
                    "node {slot} ({}) of the cluster has the address {same}, too",
                    known.name
                ),
                "give this node another address (`cluster.listen` of node.toml), then try again; the token stays good",
            ));
        }
    }
    Ok(())
}

fn rings(profile: &Profile, roster: &Roster) -> Result<(), Refusal> {
    let words = |all: &[u32]| {
        let all: Vec<String> = all.iter().map(u32::to_string).collect();
        all.join(" or ")
    };
    for (_, node) in roster.joined() {
        let known = &node.profile;
        let fits = profile.rings.iter().any(|it| known.rings.contains(it));
        if !fits && !profile.rings.is_empty() && !known.rings.is_empty() {
            return Err(Refusal::new(
                RefusalKind::Unfit,
                format!(
                    "the journals of this node have {} rings, and those of node {} have {}: a copy of a LUN needs as \
                     many on both",
                    words(&profile.rings),
                    known.name,
                    words(&known.rings)
                ),
                "make this node's journal with as many rings (they are as many as cores when it is made: \
                 `runtime.cores`), then try again; the token stays good",
            ));
        }
    }
    Ok(())
}

fn identities(theirs: &[String], ours: &BTreeSet<String>) -> Result<(), Refusal> {
    let mut both: Vec<&str> = theirs
        .iter()
        .filter(|it| ours.contains(*it))
        .map(String::as_str)
        .collect();
    both.sort_unstable();
    if both.is_empty() {
        return Ok(());
    }
    let count = both.len();
    both.truncate(NAMED_MAX);
    let more = if count > both.len() { ", ..." } else { "" };
    Err(Refusal::new(
        RefusalKind::Unfit,
        format!(
            "{count} LUNs are on both nodes with one identity each, and hosts would take the two for one disk: {}{more}",
            both.join(", ")
        ),
        "purge the ones that are not meant (`causeway lun ls -o json` shows naa), then try again; the token stays good",
    ))
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::fixture;
    use crate::records::{NodeRecord, Standing};
    use crate::roster::Known;
    use std::collections::BTreeMap;

    const NOW: u64 = 1_800_000_000;

    fn roster() -> Roster {
        let known = |record| Known {
            revision: 2,
            record,
        };
        Roster {
            cluster: Known {
                revision: 1,
                record: fixture::cluster_record(),
            },
            nodes: BTreeMap::from([(0, known(fixture::node_record(0)))]),
            until: 2,
        }
    }

    fn candidate() -> Candidate {
        Candidate {
            profile: fixture::profile(1),
            naas: vec!["a".to_owned()],
            clock: NOW,
        }
    }

    fn said(candidate: &Candidate, roster: &Roster) -> Result<(), Refusal> {
        let naas = BTreeSet::from(["b".to_owned(), "c".to_owned()]);
        admits(candidate, roster, &naas, WallClock(NOW * 1_000_000_000))
    }

    #[test]
    fn a_node_that_fits_is_let_in() {
        assert_eq!(said(&candidate(), &roster()), Ok(()));
        let mut without = candidate();
        without.profile.rings.clear();
        assert_eq!(
            said(&without, &roster()),
            Ok(()),
            "it may get a journal later"
        );
        let mut near = candidate();
        near.clock -= CLOCK_TOLERANCE.as_secs();
        assert_eq!(said(&near, &roster()), Ok(()));
    }

    #[test]
    fn each_reason_against_it_is_said_with_both_sides() {
        type Change = fn(&mut Candidate);
        let all: [(Change, RefusalKind, &str); 10] = [
            (
                |it| it.clock -= 40_000_000,
                RefusalKind::Clock,
                "462 days apart",
            ),
            (|it| it.clock = 0, RefusalKind::Clock, "1970-01-01T00:00:00"),
            (
                |it| it.clock = u64::MAX,
                RefusalKind::Clock,
                "2027-01-15T08:00:00",
            ),
            (
                |it| it.profile.levels = [2, 3],
                RefusalKind::Version,
                "levels 2 to 3",
            ),
            (
                |it| it.profile.protocols = [2, 2],
                RefusalKind::Version,
                "speaks 1 to 1",
            ),
            (
                |it| it.profile.id = fixture::profile(0).id,
                RefusalKind::Member,
                "a copy of it",
            ),
            (
                |it| it.profile.name = "san-0".to_owned(),
                RefusalKind::Unfit,
                "named san-0",
            ),
            (
                |it| it.profile.addresses = fixture::profile(0).addresses,
                RefusalKind::Unfit,
                "10.0.0.0:7420",
            ),
            (
                |it| it.profile.rings = vec![2, 8],
                RefusalKind::Unfit,
                "2 or 8 rings",
            ),
            (
                |it| it.naas.push("c".to_owned()),
                RefusalKind::Unfit,
                "1 LUNs",
            ),
        ];
        for (change, kind, text) in all {
            let mut it = candidate();
            change(&mut it);
            let refusal = said(&it, &roster()).unwrap_err();
            assert_eq!(refusal.kind, kind, "{refusal}");
            assert!(refusal.cause.contains(text), "{refusal}");
            assert!(!refusal.next_step.is_empty());
        }
    }

    #[test]
    fn a_node_that_has_left_stands_in_nobodys_way() {
        let mut roster = roster();
        let left = NodeRecord {
            standing: Standing::Left,
            ..fixture::node_record(0)
        };
        roster.knows(
            0,
            Known {
                revision: 3,
                record: left,
            },
        );
        let mut again = candidate();
        again.profile = fixture::profile(0);
        assert_eq!(said(&again, &roster), Ok(()));
    }
}
