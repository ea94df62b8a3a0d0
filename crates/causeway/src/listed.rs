//! Which verbs print tables, with their columns: each command has a table of its own.

use output::Columns;

/// When a verb prints its table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum When {
    Always,
    /// With this option.
    With(&'static str),
    /// Without this argument.
    Without(&'static str),
}

/// Verb, when, and the columns of the table that it prints then.
pub(crate) type Listed = (&'static [&'static str], When, Columns);
