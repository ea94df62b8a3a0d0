//! How many paths hosts have.
//!
//! A path is an address of a host and a portal: two sessions between the same two are one path.
//! Paths are counted of each initiator to each target, because a path to another target, or of
//! another machine of the same host, is none where the first one fails.

use crate::facts::SessionFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A session with a target, as a path.
#[derive(Clone, Copy, Debug)]
pub struct Route<'a> {
    /// The initiator's name.
    pub initiator: &'a str,
    /// The target's name.
    pub target: &'a str,
    /// The initiator's address, with its port or without.
    pub from: &'a str,
    /// The portal's address.
    pub portal: &'a str,
}

/// By initiator and target: the address and the portal of each path.
pub type Paths<'a> = BTreeMap<(&'a str, &'a str), BTreeSet<(&'a str, &'a str)>>;

/// The paths that sessions are.
pub fn paths<'a>(routes: impl IntoIterator<Item = Route<'a>>) -> Paths<'a> {
    let mut paths = Paths::new();
    for route in routes {
        let of_pair = paths.entry((route.initiator, route.target)).or_default();
        of_pair.insert((address(route.from), route.portal));
    }
    paths
}

/// Without the port: that is another one with each connection.
#[must_use]
pub fn address(from: &str) -> &str {
    // One without a port has several colons or none, or is in brackets.
    match from.rsplit_once(':') {
        Some((ip, _)) if !ip.contains(':') || ip.ends_with(']') => ip,
        Some(_) | None => from,
    }
}

/// Whether a host is there, and how many paths it has.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Redundancy {
    /// It has a session with a target.
    pub connected: bool,
    /// Of its initiators and their targets, the paths of the pair that has the fewest: pairs of its
    /// address and a portal. 0 where it is not connected.
    pub least_paths: usize,
    /// The same for each target that it is connected to, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetPaths>,
}

/// How many paths a host has to a target.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct TargetPaths {
    /// The target's name.
    pub target: String,
    /// The paths of the initiator that has the fewest.
    pub least_paths: usize,
}

impl Redundancy {
    /// That of a host with these sessions.
    pub fn of<'a>(sessions: impl IntoIterator<Item = &'a SessionFacts>) -> Self {
        Self::over(sessions.into_iter().filter_map(|session| {
            Some(Route {
                initiator: &session.initiator,
                target: session.target.as_deref()?,
                from: &session.from,
                portal: &session.portal,
            })
        }))
    }

    fn over<'a>(routes: impl IntoIterator<Item = Route<'a>>) -> Self {
        let mut targets: BTreeMap<&str, usize> = BTreeMap::new();
        for ((_, target), pairs) in paths(routes) {
            let least = targets.entry(target).or_insert(usize::MAX);
            *least = pairs.len().min(*least);
        }
        Self {
            connected: !targets.is_empty(),
            least_paths: targets.values().copied().min().unwrap_or(0),
            targets: targets
                .into_iter()
                .map(|(target, least_paths)| TargetPaths {
                    target: target.to_owned(),
                    least_paths,
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn of(routes: &[(&str, &str, &str, &str)]) -> Redundancy {
        let routes = routes
            .iter()
            .map(|(initiator, target, from, portal)| Route {
                initiator,
                target,
                from,
                portal,
            });
        Redundancy::over(routes)
    }

    fn least(routes: &[(&str, &str, &str, &str)]) -> usize {
        of(routes).least_paths
    }

    #[test]
    fn a_path_is_an_address_and_a_portal_of_each_initiator_and_target() {
        assert_eq!(least(&[]), 0);
        let one = ("i", "t", "10.0.0.9:1", "p");
        assert_eq!(least(&[one]), 1);
        assert_eq!(
            least(&[one, ("i", "t", "10.0.0.9:2", "p")]),
            1,
            "two sessions, one path"
        );
        assert_eq!(least(&[one, ("i", "t", "10.0.0.9:2", "q")]), 2);
        assert_eq!(least(&[one, ("i", "t", "10.0.1.9:2", "p")]), 2);
        assert_eq!(
            least(&[one, ("i", "u", "10.0.0.9:2", "q")]),
            1,
            "another target"
        );
        assert_eq!(
            least(&[one, ("j", "t", "10.0.1.9:2", "q")]),
            1,
            "another machine"
        );
    }

    #[test]
    fn each_target_has_the_paths_of_the_initiator_that_has_the_fewest() {
        let counted = |routes| {
            let Redundancy {
                connected, targets, ..
            } = of(routes);
            let targets = targets.into_iter().map(|it| (it.target, it.least_paths));
            (connected, targets.collect::<Vec<_>>())
        };
        assert_eq!(counted(&[]), (false, Vec::new()));
        let routes = [
            ("i", "t", "10.0.0.9:1", "p"),
            ("i", "t", "10.0.1.9:1", "q"),
            ("j", "t", "10.0.0.8:1", "p"),
            ("j", "t", "10.0.1.8:1", "q"),
            ("j", "t", "10.0.1.8:1", "r"),
            ("i", "u", "10.0.0.9:2", "p"),
        ];
        let wanted = vec![("t".to_owned(), 2), ("u".to_owned(), 1)];
        assert_eq!(counted(&routes), (true, wanted));
    }

    #[test]
    fn a_port_is_no_part_of_an_address() {
        for (from, ip) in [
            ("10.0.0.9:1234", "10.0.0.9"),
            ("10.0.0.9", "10.0.0.9"),
            ("[2001:db8::1]:99", "[2001:db8::1]"),
            ("[2001:db8::1]", "[2001:db8::1]"),
            ("2001:db8::1", "2001:db8::1"),
        ] {
            assert_eq!(address(from), ip);
        }
    }
}
