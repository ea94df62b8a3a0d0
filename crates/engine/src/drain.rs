//! What became of LUNs with copies that a node was to give to other ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A LUN that the node owned: another node owns it now, or it stays. A dry run says what would be.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct DrainedLun {
    /// The LUN.
    pub name: String,
    /// Its NAA identifier.
    pub naa: String,
    /// The node that owns it now; absent: it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Why this node still owns it; absent: another one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stays: Option<String>,
}

/// What became of all LUNs with copies that the node owned.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default, Debug)]
#[schemars(example = Self::example())]
pub struct DrainView {
    /// By name; those that another node owned already are none of them.
    pub luns: Vec<DrainedLun>,
}

impl DrainView {
    /// One LUN that went, and one that stays.
    fn example() -> Self {
        let went = DrainedLun {
            name: "vm01".to_owned(),
            naa: "602ca5e5efbb5e1cbbe7fd1d9a87db74".to_owned(),
            to: Some("san-b".to_owned()),
            stays: None,
        };
        let stays = DrainedLun {
            name: "vm02".to_owned(),
            naa: "602ca5e5efbb5e1cbbe7fd1d9a87db75".to_owned(),
            to: None,
            stays: Some("no other node has all of it: san-b is behind".to_owned()),
        };
        Self {
            luns: vec![went, stays],
        }
    }
}
