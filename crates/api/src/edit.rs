//! Changes of objects, as all their paths ask for them.

use crate::answer::Answer;
use crate::fields::Body;
use crate::parts::Change;
use controller::{Controller, Handle};
use env::LocalFuture;
use manifest::objects::{ObjectSet, PatchOf};
use manifest::plan::{Edit, Section, Subject};
use manifest::tag::{Expected, Tagged};
use manifest::view;
use std::rc::Rc;

/// What a change of objects answers.
pub(crate) type Outcome = Answer<view::Outcome>;

/// What a change is of, for its `If-Match`.
fn tagged(edit: &Edit, body: &Body) -> Tagged {
    let one = |section, name: &str| {
        let name = name.to_owned();
        Tagged::One(Subject { section, name })
    };
    let section = |patch: &PatchOf| match patch {
        PatchOf::Lun(_) => Section::Lun,
        PatchOf::Target(_) => Section::Target,
        PatchOf::Host(_) => Section::Host,
        PatchOf::Grant(_) => Section::Grant,
    };
    match edit {
        Edit::Patch(patch) => one(section(&patch.what), &patch.name),
        Edit::Remove(subject) | Edit::Rename { subject, .. } => Tagged::One(subject.clone()),
        Edit::Restore(name) | Edit::Purge(name) => one(Section::Lun, name),
        Edit::Set(set) if *body == Body::One => body_of(set, one),
        Edit::Create(set) if *body == Body::One => match body_of(set, one) {
            Tagged::One(subject) => Tagged::Section(subject.section),
            all @ (Tagged::All | Tagged::Section(_)) => all,
        },
        Edit::Apply { .. }
        | Edit::Create(_)
        | Edit::Set(_)
        | Edit::Adopt { .. }
        | Edit::RollBack(_) => Tagged::All,
    }
}

/// The one object of a set.
fn body_of(set: &ObjectSet, one: impl Fn(Section, &str) -> Tagged) -> Tagged {
    if let Some(lun) = set.lun.first() {
        return one(Section::Lun, &lun.name);
    }
    if let Some(target) = set.target.first() {
        return one(Section::Target, &target.name);
    }
    if let Some(host) = set.host.first() {
        return one(Section::Host, &host.name);
    }
    set.grant.first().map_or(Tagged::All, |grant| {
        let target = grant.target.as_deref().unwrap_or_default();
        one(
            Section::Grant,
            &format!("{}:{target}:{}", grant.host, grant.lun),
        )
    })
}

/// Runs a change; `body`: what it was made of.
pub(crate) async fn edit(handle: &Handle, change: Change, edit: Edit, body: Body) -> Outcome {
    let Change { how, tags, by } = change;
    let of = tagged(&edit, &body);
    let expected = tags.map(|tags| Expected { of, tags });
    let work = move |controller: Rc<Controller>| -> LocalFuture<_> {
        Box::pin(async move {
            let asked = (expected.as_ref(), &*by);
            controller.edit_if(&edit, how, asked).await
        })
    };
    let done = handle.call(work).await.and_then(|done| done);
    Answer(done.map_err(|problem| body.locate(problem)))
}

/// Asks the controller on its core.
macro_rules! ask {
    ($handle:expr, |$controller:ident| $what:expr) => {
        $handle
            .call(move |$controller| Box::pin(async move { $what }))
            .await
    };
}
pub(crate) use ask;
