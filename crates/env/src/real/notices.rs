//! What the administrator should know of the runtime.

use std::any::Any;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Something that the administrator should know of the runtime.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice(pub String);

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Notices since the start.
#[derive(Default)]
pub(super) struct Notices(
    pub(super) Mutex<Vec<Notice>>,
    pub(super) Mutex<Option<String>>,
);

impl Notices {
    pub(super) fn push(&self, text: String) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The same trouble on every core or every second is one notice.
        if all.len() < 1000 && all.iter().all(|notice| notice.0 != text) {
            all.push(Notice(text));
        }
    }

    /// A core cannot go on.
    pub(super) fn fail(&self, text: String) {
        let mut failed = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get_or_insert(text);
    }
}

pub(super) fn describe_panic(panic: &Box<dyn Any + Send>) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}
