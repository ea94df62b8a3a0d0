//! Names of units and ports.

/// Names a logical unit inside one program, for as long as it exists; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UnitId(pub u64);

/// Facts of a target port, for VPD pages and reservations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortFacts {
    /// Relative target port identifier.
    pub relative_port: u16,
    /// The target's iSCSI name.
    pub target_name: String,
    /// The target portal group tag.
    pub portal_group_tag: u16,
}

/// The ports that an initiator can reach a unit through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitPorts {
    /// The one that the nexus goes through.
    pub own: PortFacts,
    /// All of them, that one included.
    pub all: Vec<PortFacts>,
}
