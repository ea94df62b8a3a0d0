//! The order of a command against others.

/// How a task is ordered against others (SAM-5 "Task attributes").
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Attribute {
    /// No order but that against ORDERED tasks.
    #[default]
    Simple,
    /// After every older task, before every newer one.
    Ordered,
    /// Before ordered tasks that wait.
    HeadOfQueue,
}
