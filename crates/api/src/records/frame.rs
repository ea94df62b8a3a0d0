//! What the node does, as those who watch get it: whole at first, then only what changed.
//!
//! **Contract.** Frames are numbered. Who has the frame before takes the change, anybody else the
//! whole: what is passed over by a slow reader is never missed. Who watches a part of it takes what
//! changed in that part since the last frame that it took.

use axum::body::Bytes;
use manifest::activity::{ActivityView, LunActivity, OverviewView, SessionActivity};
use manifest::facts::CoreFacts;
use manifest::pulse::Watched;
use observed::Older;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// What changed since the frame before.
#[derive(Serialize, JsonSchema)]
struct Change<'a> {
    at_us: u64,
    cores: &'a [CoreFacts],
    luns: Vec<&'a LunActivity>,
    sessions: Vec<&'a SessionActivity>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    luns_gone: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sessions_gone: Vec<u64>,
}

/// What a moment has for those who watch.
pub(crate) struct Shown {
    /// The LUNs that it has.
    pub(crate) watched: Watched,
    pub(crate) view: ActivityView,
    pub(crate) overview: OverviewView,
}

/// A frame, made once for all.
pub(crate) struct Frame {
    number: u64,
    shown: Shown,
    whole: OnceLock<Bytes>,
    change: Option<Bytes>,
    overview: OnceLock<Bytes>,
}

impl Frame {
    /// The frame of a moment; `before`: the frame that was handed out last.
    pub(crate) fn new(shown: Shown, before: Option<&Self>) -> Self {
        let number = before.map_or(0, |before| before.number) + 1;
        // Nobody takes the change of a part from here.
        let has_all = |shown: &Shown| shown.watched == Watched::All;
        let whole = before.filter(|before| has_all(&before.shown) && has_all(&shown));
        let change = whole.and_then(|before| change(&before.shown.view, &shown.view));
        Self {
            number,
            shown,
            whole: OnceLock::new(),
            change,
            overview: OnceLock::new(),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn shown(&self) -> &Shown {
        &self.shown
    }

    /// The document of the node as a whole.
    pub(crate) fn overview(&self) -> Bytes {
        let make = || Bytes::from(serde_json::to_vec(&self.shown.overview).unwrap_or_default());
        self.overview.get_or_init(make).clone()
    }

    /// For somebody who has the frame of this number: the event's name, and its document.
    pub(crate) fn after(&self, has: Option<u64>) -> (&'static str, Bytes) {
        match &self.change {
            Some(change) if has.is_some_and(|has| has + 1 == self.number) => {
                ("activity_change", change.clone())
            }
            Some(_) | None => {
                let make = || Bytes::from(serde_json::to_vec(&self.shown.view).unwrap_or_default());
                ("activity", self.whole.get_or_init(make).clone())
            }
        }
    }
}

/// A part of the frame, for somebody who had it as `before`: the event's name, and its document.
pub(crate) fn part(before: Option<&ActivityView>, now: &ActivityView) -> (&'static str, Bytes) {
    match before.and_then(|before| change(before, now)) {
        Some(change) => ("activity_change", change),
        None => {
            let whole = serde_json::to_vec(now).unwrap_or_default();
            ("activity", Bytes::from(whole))
        }
    }
}

fn change(before: &ActivityView, now: &ActivityView) -> Option<Bytes> {
    if before.started != now.started || before.node != now.node {
        return None;
    }
    let mut older = Older::new(&before.luns);
    let mut luns_gone = Vec::new();
    let mut luns = Vec::new();
    for lun in &now.luns {
        let older = older.of(lun, |gone| luns_gone.push(gone.name.as_str()));
        if older != Some(lun) {
            luns.push(lun.as_ref());
        }
    }
    luns_gone.extend(older.rest().map(|gone| gone.name.as_str()));
    let there: BTreeSet<u64> = now.sessions.iter().map(|session| session.id).collect();
    let gone = before.sessions.iter().map(|session| session.id);
    let mut known = before.sessions.iter().peekable();
    let sessions = now.sessions.iter().filter(|session| {
        while known.next_if(|known| known.id < session.id).is_some() {}
        known.next_if(|known| known.id == session.id) != Some(*session)
    });
    let change = Change {
        at_us: now.at_us,
        cores: &now.cores,
        sessions: sessions.collect(),
        luns,
        luns_gone,
        sessions_gone: gone.filter(|id| !there.contains(id)).collect(),
    };
    serde_json::to_vec(&change).ok().map(Bytes::from)
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::records::topics::Topics;
    use manifest::activity::OpActivity;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn shown(watched: Watched, view: ActivityView) -> Shown {
        Shown {
            watched,
            view,
            overview: OverviewView::default(),
        }
    }

    fn all(luns: &[(&str, u64)], sessions: &[u64]) -> Shown {
        shown(Watched::All, view(luns, sessions))
    }

    fn view(luns: &[(&str, u64)], sessions: &[u64]) -> ActivityView {
        let lun = |(name, ops): &(&str, u64)| LunActivity {
            name: (*name).to_owned(),
            online: true,
            read: OpActivity {
                ops: *ops,
                ..OpActivity::default()
            },
            ..LunActivity::default()
        };
        let session = |id: &u64| {
            let session = json!({
                "id": id, "host": "h", "initiator": "i", "from": "f", "core": 0, "load_permille": 0, "in_flight": 0,
                "commands": 0, "bytes_in": 0, "bytes_out": 0, "latency": { "count": 0, "us_sum": 0 },
            });
            serde_json::from_value(session).unwrap()
        };
        ActivityView {
            node: "n".to_owned(),
            started: "s".to_owned(),
            at_us: 1,
            cores: Vec::new(),
            luns: luns.iter().map(lun).map(Arc::new).collect(),
            sessions: sessions.iter().map(session).collect(),
        }
    }

    #[test]
    fn who_has_the_frame_before_gets_what_changed_and_anybody_else_the_whole() {
        let first = Frame::new(all(&[("a", 1), ("b", 1), ("c", 1)], &[1, 2]), None);
        let second = all(&[("a", 1), ("b", 2), ("d", 0)], &[2, 3]);
        let second = Frame::new(second, Some(&first));
        let (name, change) = second.after(Some(first.number()));
        assert_eq!(name, "activity_change");
        let change: Value = serde_json::from_slice(&change).unwrap();
        let names = |of: &Value| -> Vec<String> {
            let all = of.as_array().unwrap().iter();
            all.map(|lun| lun["name"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(names(&change["luns"]), ["b", "d"]);
        assert_eq!(change["luns_gone"], json!(["c"]));
        assert_eq!(change["sessions"][0]["id"], 3);
        assert_eq!(change["sessions_gone"], json!([1]));
        for has in [None, Some(0), Some(2)] {
            let (name, whole) = second.after(has);
            let whole: ActivityView = serde_json::from_slice(&whole).unwrap();
            assert_eq!(
                (name, whole),
                ("activity", second.shown.view.clone()),
                "{has:?}"
            );
        }
        // After a frame of a part nobody has the whole.
        let some = Watched::Some(Arc::new(["a".to_owned()].into()));
        let part = Frame::new(shown(some, view(&[("a", 1)], &[])), Some(&second));
        let third = Frame::new(all(&[("a", 1)], &[]), Some(&part));
        assert_eq!(third.after(Some(part.number())).0, "activity");
    }

    #[test]
    fn who_watches_a_part_gets_that_alone_and_then_what_changed_in_it() {
        let of = |luns: &[(&str, u64)], sessions: &[u64]| {
            let topics = Topics::read(["lun:b", "host:h"].into_iter()).unwrap();
            topics.part_of(&view(luns, sessions))
        };
        let first = of(&[("a", 1), ("b", 1)], &[1]);
        let (name, whole) = part(None, &first);
        let whole: ActivityView = serde_json::from_slice(&whole).unwrap();
        assert_eq!((name, &whole), ("activity", &view(&[("b", 1)], &[1])));
        let change = |now: &ActivityView| {
            let (name, change) = part(Some(&first), now);
            assert_eq!(name, "activity_change");
            serde_json::from_slice::<Value>(&change).unwrap()
        };
        let same = change(&of(&[("a", 9), ("b", 1)], &[1]));
        assert_eq!(
            (&same["luns"], &same["sessions"]),
            (&json!([]), &json!([])),
            "another one's figures"
        );
        let moved = change(&of(&[("a", 9), ("b", 2)], &[]));
        assert_eq!(moved["luns"][0]["name"], "b");
        assert_eq!(moved["sessions_gone"], json!([1]));
        assert_eq!(change(&of(&[("a", 9)], &[1]))["luns_gone"], json!(["b"]));
    }
}
