//! How something is changed that no plan of objects is made for: users, tokens, alerts.

use crate::answer::Switches;
use crate::describe::{Operation, Parameter, Part, Schemas};
use crate::noted::Note;
use crate::parts::{Refused, Seen};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use manifest::code::Code;
use std::marker::PhantomData;

/// What changes of one kind may be refused for.
pub(crate) trait Refusals {
    /// Their codes.
    const CODES: &'static [Code];
    /// And these, where [`Self::CODES`] are those of another kind.
    const MORE: &'static [Code] = &[];
    /// What `force` does.
    const FORCE: &'static str = "Taken as by every change, and without effect.";
}

/// A change; what `force` does to it [`Refusals`] say.
pub(crate) struct PlainChange<R> {
    pub(crate) dry_run: bool,
    pub(crate) force: bool,
    /// What is said of it to the audit log.
    pub(crate) note: Note,
    of: PhantomData<fn() -> R>,
}

impl<S: Send + Sync, R> FromRequestParts<S> for PlainChange<R> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let switches = Switches::read(parts.uri.query(), &["dry_run", "force"])?;
        let (dry_run, force) = (switches.on("dry_run"), switches.on("force"));
        let note = Note::of(parts);
        note.dry(dry_run);
        Ok(Self {
            dry_run,
            force,
            note,
            of: PhantomData,
        })
    }
}

impl<R: Refusals> Part for PlainChange<R> {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let dry_run = "Only report whether it can be done.";
        operation.takes(Parameter::switch("dry_run", dry_run));
        operation.takes(Parameter::switch("force", R::FORCE));
        operation.fails(R::CODES);
        operation.fails(R::MORE);
    }
}

/// The same of something that is there, which may name what was seen of it.
pub(crate) struct SeenChange<R> {
    pub(crate) dry_run: bool,
    pub(crate) note: Note,
    pub(crate) seen: Seen,
    of: PhantomData<fn() -> R>,
}

impl<S: Send + Sync, R> FromRequestParts<S> for SeenChange<R> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let PlainChange {
            dry_run, note, of, ..
        } = PlainChange::from_request_parts(parts, state).await?;
        let seen = Seen::read(parts)?;
        Ok(Self {
            dry_run,
            note,
            seen,
            of,
        })
    }
}

impl<R: Refusals> Part for SeenChange<R> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        PlainChange::<R>::describe(operation, schemas);
        Seen::describe(operation);
    }
}
