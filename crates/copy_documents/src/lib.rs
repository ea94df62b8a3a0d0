//! The copies of a LUN on several nodes, as documents of the API. `mirrors` fills them; nothing
//! here judges more than whether all is well.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a node knows of a LUN with copies.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct MirrorFacts {
    /// What this node's copy does: `owner`, `solo`, `replica`, `catching-up`, `holding`, and so on.
    pub state: String,
    /// The node that orders the LUN's changes and serves its hosts, as far as this one knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The number of owners and of their starts so far.
    pub epoch: u64,
    /// The nodes that have a copy.
    pub copies: Vec<String>,
    /// The nodes whose copies have all that was acknowledged, as far as this one knows.
    pub in_sync: Vec<String>,
    /// Hosts are served by this node now.
    pub serves: bool,
    /// All of it in one sentence.
    pub text: String,
    /// Of the owner: copies that are brought up by other means than its log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resyncs: Vec<ResyncFacts>,
}

/// How far a copy is that is brought up by comparing it.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct ResyncFacts {
    /// Whose copy it is.
    pub node: String,
    /// Bytes of the LUN that are done: compared, and sent where they differ, or known to be equal.
    pub done_bytes: u64,
    /// Bytes of the LUN that are to be done.
    pub left_bytes: u64,
    /// Bytes of data that were sent so far.
    pub sent_bytes: u64,
    /// Bytes that are done in a second; 0: not known yet.
    pub bytes_per_second: u64,
    /// Seconds until it is done, as fast as it goes now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u64>,
    /// Why all of the LUN is compared; without it, what changed while the node was away is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<String>,
}

impl MirrorFacts {
    /// What is not as it should be, in a sentence: the LUN is not served, or not all of its copies
    /// have all of it. `None`: nothing.
    #[must_use]
    pub fn problem(&self) -> Option<&str> {
        let has_owner = ["owner", "replica"].contains(&self.state.as_str());
        let is_well = has_owner && self.in_sync.len() == self.copies.len();
        (!is_well).then_some(&*self.text)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_lun_is_well_when_somebody_serves_it_and_all_copies_have_all_of_it() {
        let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        let facts = |state: &str, in_sync: &[&str]| MirrorFacts {
            state: state.to_owned(),
            copies: names(&["a", "b"]),
            in_sync: names(in_sync),
            text: "as it is".to_owned(),
            ..MirrorFacts::default()
        };
        for (state, in_sync, problem) in [
            ("owner", &["a", "b"][..], None),
            ("replica", &["a", "b"], None),
            ("solo", &["a"], Some("as it is")),
            ("owner", &["a"], Some("as it is")),
            ("catching-up", &["a"], Some("as it is")),
            ("holding", &["a", "b"], Some("as it is")),
            ("joining", &[], Some("as it is")),
        ] {
            assert_eq!(facts(state, in_sync).problem(), problem, "{state}");
        }
    }
}
