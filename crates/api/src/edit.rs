//! Changes of objects, as all their paths ask for them.

use crate::answer::Answer;
use crate::describe::{Operation, Reply, Schemas};
use crate::fields::Body;
use crate::noted::Ended;
use crate::parts::{ASYNC, Change};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use controller::{Asked, Controller, Handle, How};
use env::LocalFuture;
use manifest::job::JobView;
use manifest::objects::{ObjectSet, PatchOf};
use manifest::plan::{Edit, Section, Subject};
use manifest::problem::Problem;
use manifest::tag::{Expected, Tagged};
use manifest::view;
use serde_json::{Value, json};
use std::rc::Rc;
use tokio::sync::oneshot;

/// Which wish was granted (RFC 7240).
pub(crate) const APPLIED: &str = "preference-applied";

/// What a change of objects answers.
pub(crate) enum Outcome {
    /// It was made, or not.
    Done(Result<view::Outcome, Problem>),
    /// It takes long, and whoever asks did not want to wait: its first job.
    Begun(JobView),
}

impl IntoResponse for Outcome {
    fn into_response(self) -> Response {
        let job = match self {
            Self::Done(done) => return Answer(done).into_response(),
            Self::Begun(job) => job,
        };
        let place = format!("/api/v1/jobs/{}", job.id);
        let mut response = Answer(Ok(job)).into_response();
        *response.status_mut() = StatusCode::ACCEPTED;
        let headers = response.headers_mut();
        if let Ok(place) = HeaderValue::from_str(&place) {
            headers.insert(header::LOCATION, place);
        }
        headers.insert(APPLIED, HeaderValue::from_static(ASYNC));
        response
    }
}

impl Reply for Outcome {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Answer::<view::Outcome>::describe(operation, schemas);
        let content = json!({ "application/json": { "schema": schemas.answered::<JobView>() } });
        let meaning =
            "With `Prefer: respond-async`, where storage of a LUN is made: this job has begun.";
        operation.answers(202, meaning, content);
        operation.heads(202, "Location", "The address of the job.");
        operation.heads(202, "Preference-Applied", "`respond-async`.");
    }
}

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
        | Edit::ApplyOnly { .. }
        | Edit::Create(_)
        | Edit::Set(_)
        | Edit::Adopt { .. }
        | Edit::Copy(_)
        | Edit::Elsewhere(_)
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
    let of = tagged(&edit, &body);
    let done = carry_out(handle, change, of, |controller, how, asked| {
        Box::pin(async move { controller.edit_if(&edit, how, asked).await })
    });
    match done.await {
        Outcome::Done(done) => Outcome::Done(done.map_err(|problem| body.locate(problem))),
        begun @ Outcome::Begun(_) => begun,
    }
}

/// Runs work that changes something `of` these; it goes on where nobody waits for its end.
pub(crate) async fn carry_out<W>(handle: &Handle, change: Change, of: Tagged, work: W) -> Outcome
where
    W: FnOnce(Rc<Controller>, How, Asked) -> LocalFuture<Result<view::Outcome, Problem>>,
    W: Send + 'static,
{
    let (begun, begins) = oneshot::channel();
    let (changed, mut has_changed) = oneshot::channel();
    let (note, handle) = (change.note, handle.clone());
    let asked = Asked {
        expected: change.tags.map(|tags| Expected { of, tags }),
        by: change.by,
        begun: change.is_async.then_some(begun),
        changed: Some(changed),
    };
    let how = change.how;
    let mut ends = Box::pin(async move {
        let done = handle.call(move |controller| work(controller, how, asked));
        let done = done.await.and_then(|done| done);
        let sets = has_changed.try_recv().ok();
        (done, sets.map(|sets| sets.map(|set| shown(&set))))
    });
    tokio::select! {
        biased;
        (done, seen) = &mut ends => {
            if let Some([before, after]) = seen {
                note.seen(before, after);
            }
            Outcome::Done(done)
        }
        // Where none takes long the channel ends without, and it is waited for.
        Ok(job) = begins => {
            note.goes_on(Box::pin(async move {
                let (done, seen) = ends.await;
                let answer = done.map(|done| json!(done));
                Ended { answer, seen }
            }));
            Outcome::Begun(job)
        }
    }
}

/// As the audit log has a set of objects.
fn shown(set: &ObjectSet) -> Value {
    if *set == ObjectSet::default() {
        return Value::Null;
    }
    json!(set)
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
