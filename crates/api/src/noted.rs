//! What a handler says of a change, for whoever enters it into the audit log.

use axum::http::request::Parts;
use manifest::problem::Problem;
use serde_json::Value;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is known of one request, and who knows it.
#[derive(Clone, Default)]
pub(crate) struct Note(Arc<Mutex<Noted>>);

/// What became of work that went on after its answer.
pub(crate) struct Ended {
    /// What would have been answered at its end.
    pub(crate) answer: Result<Value, Problem>,
    /// As in [`Noted`].
    pub(crate) seen: Option<[Value; 2]>,
}

/// Waits for the end of work.
pub(crate) type Ending = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// What a handler said.
#[derive(Default)]
pub(crate) struct Noted {
    /// It only says what would be done.
    pub(crate) is_dry: bool,
    /// What was there just before the change, and is just after it.
    pub(crate) seen: Option<[Value; 2]>,
    /// It was answered before its end, which comes by this.
    pub(crate) ending: Option<Ending>,
}

impl Note {
    /// The one of a request; nobody reads it where there is none.
    pub(crate) fn of(parts: &Parts) -> Self {
        parts.extensions.get().cloned().unwrap_or_default()
    }

    /// Nothing is done where `is_dry`: only who does that may say so, never who asks.
    pub(crate) fn dry(&self, is_dry: bool) {
        self.lock().is_dry |= is_dry;
    }

    /// What was there just before the change and is just after it, without secrets; said last, it
    /// stands.
    pub(crate) fn seen(&self, before: Value, after: Value) {
        self.lock().seen = Some([before, after]);
    }

    /// The work goes on after the answer, until this has its end.
    pub(crate) fn goes_on(&self, ending: Ending) {
        self.lock().ending = Some(ending);
    }

    /// All that was said.
    pub(crate) fn take(&self) -> Noted {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
