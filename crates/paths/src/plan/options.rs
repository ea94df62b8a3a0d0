//! What the administrator wants of a plan.

use serde::{Deserialize, Serialize};

/// What comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Bandwidth, then diversity.
    #[default]
    Bandwidth,
    /// As many host cards and controllers as possible, then bandwidth.
    Diversity,
}

/// Paths between different subnets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routed {
    /// Only where no port reaches any other without a router.
    #[default]
    LastResort,
    /// No.
    Never,
    /// Like any other.
    Always,
}

/// What the administrator wants of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Most active paths.
    pub max_active: u16,
    /// Most sessions, hot standbys included.
    pub max_sessions: u16,
    /// Paths of different speed may be active together.
    pub mixed: bool,
    /// What comes first.
    pub priority: Priority,
    /// Paths through routers.
    pub routed: Routed,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_active: 4,
            max_sessions: 8,
            mixed: false,
            priority: Priority::default(),
            routed: Routed::default(),
        }
    }
}
