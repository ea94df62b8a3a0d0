//! Answers, bodies and parameters.

use crate::describe::{Operation, Reply, Schemas};
use crate::fields::unread;
use crate::plain_answer::{BODY_BYTES_MAX, document, problem_response};
use axum::body::{Body, to_bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use manifest::code::Code;
use manifest::problem::Problem;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

/// An answer that is a document or a problem.
pub(super) struct Answer<T>(pub(super) Result<T, Problem>);

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        match self.0 {
            Ok(value) => document(StatusCode::OK, "application/json", &value),
            Err(problem) => problem_response(&problem),
        }
    }
}

impl<T: JsonSchema> Reply for Answer<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let schema = schemas.answered::<T>();
        let content = json!({ "application/json": { "schema": schema } });
        operation.answers(200, "It is so, or was done.", content);
    }
}

/// An answer with the tag of what it shows, which a change can name in `If-Match`.
pub(super) struct WithTag<T>(pub(super) Result<Result<(Option<String>, T), Problem>, Problem>);

impl<T: Serialize> IntoResponse for WithTag<T> {
    fn into_response(self) -> Response {
        match self.0.and_then(|asked| asked) {
            Ok((tag, value)) => tagged(Answer(Ok(value)).into_response(), tag),
            Err(problem) => problem_response(&problem),
        }
    }
}

/// With the tag as `ETag`.
pub(super) fn tagged(mut response: Response, tag: Option<String>) -> Response {
    let tag = tag.map(|tag| header::HeaderValue::from_str(&format!("\"{tag}\"")));
    if let Some(Ok(tag)) = tag {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// What an `ETag` is, for the description.
pub(super) const TAG: &str = "Changes when what was asked for of it changes, and not with its counters; for `If-Match` of a \
                              change. It does not outlive the daemon.";

impl<T: JsonSchema> Reply for WithTag<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Answer::<T>::describe(operation, schemas);
        operation.heads(200, "ETag", TAG);
    }
}

/// Text for programs that read no JSON.
pub(super) struct Text {
    /// Its media type.
    pub(super) kind: &'static str,
    /// What is answered, or why nothing is.
    pub(super) text: Result<String, Problem>,
}

/// Text for people.
pub(super) const PLAIN: &str = "text/plain; charset=utf-8";

impl IntoResponse for Text {
    fn into_response(self) -> Response {
        match self.text {
            Ok(text) => (StatusCode::OK, [(header::CONTENT_TYPE, self.kind)], text).into_response(),
            Err(problem) => problem_response(&problem),
        }
    }
}

impl Reply for Text {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let content = json!({ "text/plain": { "schema": { "type": "string" } } });
        operation.answers(200, "It is so.", content);
    }
}

/// The body as a `T`.
pub(super) async fn read<T: DeserializeOwned>(body: Body) -> Result<T, Problem> {
    let wrong = |why: String| Problem::new(Code::BadRequest, format!("the body: {why}"));
    let bytes = to_bytes(body, BODY_BYTES_MAX).await;
    let bytes = bytes.map_err(|error| wrong(error.to_string()))?;
    let mut from = serde_json::Deserializer::from_slice(&bytes);
    let read = serde_path_to_error::deserialize(&mut from).map_err(|error| {
        let (path, message) = (error.path().to_string(), error.inner().to_string());
        wrong(message.clone()).fields(vec![unread(&path, &message)])
    })?;
    from.end().map_err(|error| wrong(error.to_string()))?;
    Ok(read)
}

/// The switches in a query such as `dry_run=true&force=true`.
pub(super) struct Switches(Vec<(String, bool)>);

impl Switches {
    /// Only `known` ones are allowed.
    pub(super) fn read(query: Option<&str>, known: &[&str]) -> Result<Self, Problem> {
        let mut out = Vec::new();
        for pair in query
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty())
        {
            let (name, value) = pair.split_once('=').unwrap_or((pair, "true"));
            let value = match value {
                "true" | "1" => true,
                "false" | "0" => false,
                other => {
                    let detail = format!("{name}={other}: write true or false");
                    return Err(Problem::new(Code::BadRequest, detail));
                }
            };
            if !known.contains(&name) {
                let guess = manifest::name::did_you_mean(name, known.iter().copied());
                let detail = format!("unknown parameter \"{name}\"{guess}");
                return Err(Problem::new(Code::BadRequest, detail));
            }
            out.push((name.to_owned(), value));
        }
        Ok(Self(out))
    }

    /// Whether the switch is on.
    pub(super) fn on(&self, name: &str) -> bool {
        self.0.iter().any(|(known, value)| known == name && *value)
    }
}
