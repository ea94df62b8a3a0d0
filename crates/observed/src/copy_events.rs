//! From how the copies of a LUN are, as this node knows it, to what happened to them: pure.

use events::{Code, Happened, Object};
use manifest::objects::MirrorFacts;
use manifest::pulse::LunPulse;

/// What happened between two moments; before the first one all was well.
pub(crate) fn between(before: Option<&LunPulse>, now: &LunPulse, happened: &mut Vec<Happened>) {
    let is_known = |it: &&MirrorFacts| !it.copies.is_empty();
    let Some(is) = now.mirror.as_deref().filter(is_known) else {
        return;
    };
    let was = before.and_then(|it| it.mirror.as_deref()).filter(is_known);
    let (lun, object) = (&now.name, || Object::new("lun", &now.name));
    let before = was.and_then(|it| it.owner.as_deref());
    if let (Some(before), Some(owner)) = (before, is.owner.as_deref())
        && before != owner
    {
        let message = format!("node {owner} serves LUN {lun}; before it was {before}");
        let moved = Happened::new(Code::LunMoved, object(), message);
        let moved = moved.with("owner", owner).with("before", before);
        happened.push(moved.with("epoch", is.epoch));
    }
    for node in &is.copies {
        let had_all = was.is_none_or(|was| was.in_sync.contains(node));
        let has_all = is.in_sync.contains(node);
        let (code, how) = match (had_all, has_all) {
            (true, false) => (Code::CopyBehind, "is behind"),
            (false, true) => (Code::CopyInSync, "has all of it again"),
            (true, true) | (false, false) => continue,
        };
        let message = format!("the copy of LUN {lun} on node {node} {how}");
        let event = Happened::new(code, object(), message).with("node", node.as_str());
        happened.push(event.with("state", is.state.as_str()));
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::fixture;
    use serde_json::json;

    fn lun(owner: &str, in_sync: &[&str]) -> LunPulse {
        let names = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect();
        let mirror = MirrorFacts {
            state: "solo".to_owned(),
            owner: Some(owner.to_owned()),
            epoch: 7,
            copies: names(&["a", "b"]),
            in_sync: names(in_sync),
            ..MirrorFacts::default()
        };
        LunPulse {
            mirror: Some(Box::new(mirror)),
            ..fixture::lun("vm")
        }
    }

    fn happened(before: Option<&LunPulse>, now: &LunPulse) -> Vec<(Code, String)> {
        let mut all = Vec::new();
        between(before, now, &mut all);
        let brief = |it: Happened| (it.code, it.message);
        all.into_iter().map(brief).collect()
    }

    #[test]
    fn who_serves_and_which_copies_have_all_of_it_is_said_when_it_changes() {
        let (both, alone) = (lun("a", &["a", "b"]), lun("b", &["b"]));
        assert_eq!(happened(None, &both), []);
        assert_eq!(happened(Some(&both), &both), []);
        let moved = "node b serves LUN vm; before it was a".to_owned();
        let behind = "the copy of LUN vm on node a is behind".to_owned();
        let expected = [(Code::LunMoved, moved), (Code::CopyBehind, behind.clone())];
        assert_eq!(happened(Some(&both), &alone), expected);
        assert_eq!(happened(None, &alone), [(Code::CopyBehind, behind)]);
        let again = "the copy of LUN vm on node a has all of it again".to_owned();
        let whole = lun("b", &["b", "a"]);
        assert_eq!(happened(Some(&alone), &whole), [(Code::CopyInSync, again)]);
    }

    #[test]
    fn a_node_that_knows_nothing_of_the_copies_yet_says_nothing() {
        let unknown = LunPulse {
            mirror: Some(Box::default()),
            ..fixture::lun("vm")
        };
        let alone = lun("a", &["a"]);
        assert_eq!(happened(Some(&alone), &unknown), []);
        assert_eq!(happened(Some(&alone), &fixture::lun("vm")), []);
        let mut all = Vec::new();
        between(Some(&unknown), &alone, &mut all);
        let fields = serde_json::to_value(&all[0].fields).unwrap();
        assert_eq!(fields, json!({ "node": "b", "state": "solo" }));
    }
}
