//! What is asked of a stream, and what all who watch ask for together.
//!
//! **Contract.** What nobody watches is not made: of LUNs only those that somebody named, or all
//! where somebody watches all.

use crate::parameters::wrong;
use manifest::activity::ActivityView;
use manifest::problem::Problem;
use manifest::pulse::Watched;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The most objects of one stream.
const OBJECTS_MAX: usize = 64;

/// What one stream has.
#[derive(Default)]
pub(crate) struct Topics {
    /// What happens.
    pub(crate) events: bool,
    /// What all LUNs and sessions do.
    pub(crate) activity: bool,
    /// What the node does as a whole.
    pub(crate) overview: bool,
    /// What these LUNs do, where it is not all.
    luns: BTreeSet<String>,
    /// What the sessions of these hosts do.
    hosts: BTreeSet<String>,
}

impl Topics {
    /// Events are what nobody need ask for.
    pub(crate) fn read<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, Problem> {
        let mut topics = Self::default();
        for word in words {
            match word.split_once(':') {
                None if word == "events" => topics.events = true,
                None if word == "activity" => topics.activity = true,
                None if word == "overview" => topics.overview = true,
                Some(("lun", name)) if !name.is_empty() => {
                    topics.luns.insert(name.to_owned());
                }
                Some(("host", name)) if !name.is_empty() => {
                    topics.hosts.insert(name.to_owned());
                }
                None | Some(_) => {
                    let there = "there are events, activity, overview, lun:NAME, host:NAME";
                    return Err(wrong(format!("topics={word}: {there}")));
                }
            }
        }
        if topics.luns.len() + topics.hosts.len() > OBJECTS_MAX {
            let detail = format!("topics: a stream has {OBJECTS_MAX} objects at most");
            return Err(wrong(detail));
        }
        Ok(topics)
    }

    /// Some of it comes once a second.
    pub(crate) fn has_frames(&self) -> bool {
        self.activity || self.overview || self.has_objects()
    }

    /// It has a part of what the node does, and not all of it.
    pub(crate) fn has_objects(&self) -> bool {
        !self.activity && (!self.luns.is_empty() || !self.hosts.is_empty())
    }

    /// What was made for these has what this stream needs.
    pub(crate) fn are_in(&self, watched: &Watched) -> bool {
        match watched {
            Watched::All => true,
            some @ (Watched::Nothing | Watched::Some(_)) => {
                !self.activity && self.luns.iter().all(|name| some.has(name))
            }
        }
    }

    /// The part of what the node does that was asked for. Cores are of the whole.
    pub(crate) fn part_of(&self, view: &ActivityView) -> ActivityView {
        let luns = view.luns.iter();
        let luns = luns.filter(|lun| self.luns.contains(&lun.name));
        let sessions = view.sessions.iter();
        let sessions = sessions.filter(|session| self.hosts.contains(&session.host));
        ActivityView {
            node: view.node.clone(),
            started: view.started.clone(),
            at_us: view.at_us,
            cores: Vec::new(),
            luns: luns.cloned().collect(),
            sessions: sessions.cloned().collect(),
        }
    }
}

/// All who watch LUNs now.
#[derive(Default)]
pub(crate) struct Watchers(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    all: usize,
    luns: BTreeMap<String, usize>,
}

impl Watchers {
    /// Of which LUNs somebody watches what they do.
    pub(crate) fn watched(&self) -> Watched {
        let counts = self.counts();
        if counts.all > 0 {
            Watched::All
        } else if counts.luns.is_empty() {
            Watched::Nothing
        } else {
            Watched::Some(Arc::new(counts.luns.keys().cloned().collect()))
        }
    }

    pub(crate) fn come(&self, topics: &Topics) {
        let mut counts = self.counts();
        if topics.activity {
            counts.all += 1;
            return;
        }
        for name in &topics.luns {
            *counts.luns.entry(name.clone()).or_default() += 1;
        }
    }

    pub(crate) fn leave(&self, topics: &Topics) {
        let mut counts = self.counts();
        if topics.activity {
            counts.all = counts.all.saturating_sub(1);
            return;
        }
        for name in &topics.luns {
            if let Some(count) = counts.luns.get_mut(name) {
                *count = count.saturating_sub(1);
            }
        }
        counts.luns.retain(|_, count| *count > 0);
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn topics(text: &str) -> Topics {
        Topics::read(text.split(',')).unwrap()
    }

    #[test]
    fn what_is_no_topic_is_refused_with_those_that_there_are() {
        for wrong in ["luns", "lun", "lun:", "host:", "session:1", ""] {
            let Err(problem) = Topics::read([wrong].into_iter()) else {
                panic!("{wrong} is one");
            };
            assert!(problem.detail.contains("lun:NAME, host:NAME"), "{problem}");
        }
        let names: Vec<String> = (0..=OBJECTS_MAX).map(|at| format!("lun:{at}")).collect();
        assert!(Topics::read(names.iter().map(String::as_str)).is_err());
        assert!(Topics::read(names[1..].iter().map(String::as_str)).is_ok());
    }

    #[test]
    fn of_luns_those_are_made_that_somebody_watches_and_all_where_somebody_watches_all() {
        let watchers = Watchers::default();
        let of = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned());
            Watched::Some(Arc::new(names.collect()))
        };
        let (one, two) = (topics("lun:a,host:h"), topics("lun:a,lun:b,events"));
        let (all, whole) = (topics("activity,lun:c"), topics("overview,host:h"));
        assert_eq!(watchers.watched(), Watched::Nothing);
        watchers.come(&whole);
        assert_eq!(watchers.watched(), Watched::Nothing, "it needs no LUN");
        watchers.come(&one);
        watchers.come(&two);
        assert_eq!(watchers.watched(), of(&["a", "b"]));
        watchers.come(&all);
        assert_eq!(watchers.watched(), Watched::All);
        watchers.leave(&all);
        watchers.leave(&two);
        assert_eq!(watchers.watched(), of(&["a"]));
        for (topics, are_in) in [(&one, true), (&two, false), (&all, false), (&whole, true)] {
            assert_eq!(topics.are_in(&of(&["a"])), are_in);
            assert!(topics.are_in(&Watched::All));
        }
        watchers.leave(&one);
        assert_eq!(watchers.watched(), Watched::Nothing);
    }
}
