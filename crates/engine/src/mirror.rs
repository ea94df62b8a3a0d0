//! Changes of the copies that a LUN has on several nodes, and what becomes of them.

use manifest::objects::Lun;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is to become of a LUN's copies.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum MirrorOp {
    /// A node gets a copy.
    Add,
    /// A node has none any more. What it has is set aside there, until it is purged.
    Remove,
    /// The node that is asked goes on without those that had all of it, which are gone for good.
    Promote,
}

/// A change of a LUN's copies.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
#[schemars(example = Self::example())]
pub struct MirrorRequest {
    /// Which of the three.
    pub operation: MirrorOp,
    /// The node that gets a copy, or has none any more; `promote` is of the node that is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Of `promote`: what this node lacks may be lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lose: bool,
}

impl MirrorRequest {
    /// Of a node's copy; `lose`: what may be lost in a promotion is given up.
    #[must_use]
    pub const fn new(operation: MirrorOp, node: Option<String>, lose: bool) -> Self {
        Self {
            operation,
            node,
            lose,
        }
    }

    /// A node gets a copy.
    fn example() -> Self {
        Self {
            operation: MirrorOp::Add,
            node: Some("san-b".to_owned()),
            lose: false,
        }
    }
}

/// A change of a LUN's copies, for whoever makes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MirrorAsked {
    /// What the LUN is called.
    pub name: String,
    /// What it is on this node.
    pub lun: Lun,
    /// What is asked for.
    pub request: MirrorRequest,
    /// Only to say what would be done.
    pub dry_run: bool,
}

/// What became of a LUN's copies, or would.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[schemars(example = Self::example())]
pub struct MirrorView {
    /// The LUN.
    pub name: String,
    /// Its NAA identifier.
    pub naa: String,
    /// Something was changed, or would be.
    pub changed: bool,
    /// The nodes that have a copy then.
    pub copies: Vec<String>,
    /// What happens then, a sentence each.
    pub notices: Vec<String>,
    /// Of `promote`: what may be lost, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loses: Option<String>,
}

impl MirrorView {
    /// For people.
    #[must_use]
    pub fn page(&self, dry_run: bool) -> String {
        let copies = self.copies.join(", ");
        let mut out = match (self.changed, dry_run) {
            (false, _) => format!("LUN {} has copies on {copies}: nothing to do\n", self.name),
            (true, true) => format!("LUN {} would have copies on {copies}\n", self.name),
            (true, false) => format!("LUN {} has copies on {copies}\n", self.name),
        };
        if let Some(loses) = &self.loses {
            out.push_str(&format!("lost: {loses}\n"));
        }
        for notice in &self.notices {
            out.push_str(&format!("{notice}\n"));
        }
        if dry_run {
            out.push_str("(dry run: nothing was changed)\n");
        }
        out
    }

    /// A copy that is added.
    fn example() -> Self {
        Self {
            name: "vm01".to_owned(),
            naa: "602ca5e5efbb5e1cbbe7fd1d9a87db74".to_owned(),
            changed: true,
            copies: vec!["san-a".to_owned(), "san-b".to_owned()],
            notices: vec![
                "san-b is given all of it now; it takes over once it has that".to_owned(),
            ],
            loses: Some("what was written since san-b was last in sync".to_owned()),
        }
    }
}
