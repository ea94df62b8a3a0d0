//! The parts of requests, as handlers take them, and what each adds to the description.

use crate::answer::{Switches, read};
use crate::describe::{Operation, Parameter, Part, Schemas};
use crate::noted::Note;
use crate::plain_answer::problem_response;
use accounts::Principal;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use controller::How;
use manifest::code::Code;
use manifest::problem::Problem;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Why a part of a request cannot be used.
pub(super) struct Refused(pub(super) Problem);

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        problem_response(&self.0)
    }
}

/// What any change of objects may answer.
const CHANGE_CODES: [Code; 25] = [
    Code::JobCancelled,
    Code::ChangedMeanwhile,
    Code::BadRequest,
    Code::NotFound,
    Code::AlreadyExists,
    Code::InvalidObjects,
    Code::InUse,
    Code::Immutable,
    Code::KeepsData,
    Code::SecretMissing,
    Code::WouldLoseData,
    Code::WouldRiskData,
    Code::StateDamaged,
    Code::StateNotSaved,
    Code::LunOffline,
    Code::BackingFailed,
    Code::ImageUnusable,
    Code::PoolFull,
    Code::PoolIncomplete,
    Code::JournalUnusable,
    Code::PoolMissing,
    Code::PoolGoes,
    Code::StateOlder,
    Code::ClusterArbiter,
    Code::PartlyDone,
];

/// The name in the path.
pub(super) struct Named(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(error) => {
                let detail = format!("the name in the path: {}", error.body_text());
                Err(Problem::new(Code::BadRequest, detail).into())
            }
        }
    }
}

impl Part for Named {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.fails(&[Code::NotFound, Code::BadRequest]);
    }
}

/// The body as a `T`.
pub(super) struct Wanted<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Wanted<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        Ok(Self(read(request.into_body()).await?))
    }
}

impl<T: JsonSchema> Part for Wanted<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.reads(schemas.read::<T>());
        operation.fails(&[Code::BadRequest]);
    }
}

const DRY_RUN: &str = "Only report what would be done.";
const FORCE: &str = "Do it although sessions are disturbed or data is lost.";

/// How objects are changed.
pub(super) struct Change {
    pub(super) how: How,
    /// The tags of `If-Match`, where there is one.
    pub(super) tags: Option<Vec<String>>,
    /// Who asks.
    pub(super) by: String,
    /// They do not want to wait for what takes long.
    pub(super) is_async: bool,
    /// What is said of it to the audit log.
    pub(super) note: Note,
}

/// What `Prefer` says then (RFC 7240).
pub(super) const ASYNC: &str = "respond-async";

/// Whether one of the wishes of `Prefer` is that.
fn is_async(parts: &Parts) -> bool {
    let values = parts.headers.get_all("prefer").iter();
    let mut wishes = values.flat_map(|value| value.to_str().unwrap_or_default().split(','));
    wishes.any(|wish| {
        let wish = wish.split(';').next().unwrap_or_default();
        wish.trim().eq_ignore_ascii_case(ASYNC)
    })
}

/// The tags of an `If-Match`, without quotes.
fn tags(parts: &Parts) -> Result<Option<Vec<String>>, Problem> {
    let mut all = Vec::new();
    for value in parts.headers.get_all(header::IF_MATCH) {
        let text = value.to_str().unwrap_or_default();
        for tag in text.split(',').map(str::trim) {
            // A tag stands for an object; that of a compressed answer is weak, and the same one.
            let strong = tag.strip_prefix("W/").unwrap_or(tag);
            let inside = strong
                .strip_prefix('"')
                .and_then(|tag| tag.strip_suffix('"'));
            let known = if tag == "*" { Some(tag) } else { inside };
            all.push(known.map(str::to_owned).ok_or_else(|| {
                let detail = format!("If-Match: {text}: write \"TAG\" as an ETag has it, or *");
                Problem::new(Code::BadRequest, detail)
            })?);
        }
    }
    Ok((!all.is_empty()).then_some(all))
}

/// What a change is meant for: the tags of `If-Match`, where there is one.
#[derive(Default)]
pub(super) struct Seen(Option<Vec<String>>);

impl Seen {
    pub(super) fn read(parts: &Parts) -> Result<Self, Problem> {
        tags(parts).map(Self)
    }

    /// That what is there now, which has this tag, is what was seen.
    ///
    /// # Errors
    /// Somebody else has changed it since.
    pub(super) fn check(&self, what: &str, tag: &str) -> Result<(), Problem> {
        let fits = |tags: &Vec<String>| tags.iter().any(|it| it == "*" || it == tag);
        if self.0.as_ref().is_none_or(fits) {
            return Ok(());
        }
        let detail = format!("{what} is not what If-Match stands for any more");
        let hint = "read it again, and change what is there now";
        Err(Problem::new(Code::ChangedMeanwhile, detail).hint(hint))
    }

    pub(super) fn describe(operation: &mut Operation) {
        operation.takes(if_match());
        operation.fails(&[Code::ChangedMeanwhile]);
    }
}

impl Change {
    pub(super) fn read(
        parts: &Parts,
        query: Option<&str>,
        more: Option<&str>,
    ) -> Result<(Self, Switches), Problem> {
        let mut known = vec!["dry_run", "force"];
        known.extend(more);
        let switches = Switches::read(query, &known)?;
        let how = How {
            force: switches.on("force"),
            dry_run: switches.on("dry_run"),
        };
        let tags = tags(parts)?;
        let principal = parts.extensions.get::<Principal>();
        let by = principal.map_or_else(String::new, |it| it.name.clone());
        let change = Self {
            how,
            tags,
            by,
            is_async: is_async(parts),
            note: Note::of(parts),
        };
        change.note.dry(how.dry_run);
        Ok((change, switches))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Change {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        Ok(Self::read(parts, parts.uri.query(), None)?.0)
    }
}

/// The parameter of changes that are meant for what was read and nothing newer.
fn if_match() -> Parameter {
    Parameter {
        name: "If-Match",
        place: "header",
        meaning: "The ETag of what was read: the change is refused where it is another one now."
            .to_owned(),
        schema: json!({ "type": "string" }),
    }
}

impl Part for Change {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.takes(Parameter::switch("dry_run", DRY_RUN));
        operation.takes(Parameter::switch("force", FORCE));
        operation.takes(if_match());
        operation.takes(Parameter {
            name: "Prefer",
            place: "header",
            meaning: "`respond-async`: where storage of a LUN is made, answer 202 with the job as soon as that has begun."
                .to_owned(),
            schema: json!({ "type": "string" }),
        });
        operation.fails(&CHANGE_CODES);
    }
}

/// Whether it is only asked what would be done, and what is said of it to the audit log.
pub(super) struct DryRun(pub(super) bool, pub(super) Note);

impl<S: Send + Sync> FromRequestParts<S> for DryRun {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let switches = Switches::read(parts.uri.query(), &["dry_run"])?;
        let (is_dry, note) = (switches.on("dry_run"), Note::of(parts));
        note.dry(is_dry);
        Ok(Self(is_dry, note))
    }
}

impl Part for DryRun {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.takes(Parameter::switch("dry_run", DRY_RUN));
        operation.fails(&[Code::BadRequest]);
    }
}
