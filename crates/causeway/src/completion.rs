//! What may stand where in a command line: each command has a table of its own.

/// What a word may be.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// The name of an object of this noun.
    Name(&'static str),
    /// A LUN that was deleted and keeps its data.
    Removed,
    /// A session's number.
    Session,
    /// An alert's number.
    Alert,
    /// A job's number.
    Job,
    /// An error's code.
    Code,
    /// The columns of the list that is asked for.
    Columns,
    /// One of these `KEY=VALUE`; a key that ends with = takes any.
    Assignment(&'static [&'static str]),
    /// The same, where a table says which.
    AssignmentOf(fn() -> Vec<String>),
    /// A host by name, or every initiator.
    Hosts,
    /// A host, then a LUN.
    HostAndLun,
    /// A grant, or a host and then a LUN.
    GrantOrHostAndLun,
    /// A LUN that no object names.
    Orphan,
    /// A kept generation of the objects.
    Generation,
    /// Where targets can be reached.
    PortalGroup,
    /// An address where the node listens.
    Portal,
    /// One of these words.
    Words(&'static [&'static str]),
}

/// Command, argument, what may stand there.
pub(crate) type CompletedArgument = (&'static [&'static str], &'static str, Kind);

pub(crate) const BLOCK_SIZES: &[&str] = &["512", "4096"];
pub(crate) const BOOLEANS: &[&str] = &["true", "false"];
pub(crate) const POLICIES: &[&str] = &[
    "adaptive",
    "failover",
    "least-bytes",
    "least-queue-depth",
    "round-robin",
    "round-robin-subset",
    "service-time",
    "weighted-min",
    "weighted-share",
];
