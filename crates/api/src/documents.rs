//! A small API of documents for programs beside the daemon: the same server, the same errors, other
//! paths.

use crate::answer::Answer;
use crate::plain_answer::problem_response;
use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use manifest::code::Code;
use manifest::problem::Problem;
use serde_json::Value;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// The largest request body, in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;

/// A request.
#[derive(Clone, PartialEq, Debug)]
pub struct Asked {
    /// Its path: `/v1/volumes`.
    pub path: String,
    /// What is sent along; `None`: it only asks.
    pub document: Option<Value>,
}

/// What answers requests: a document or a problem.
pub type Documents = Arc<
    dyn Fn(Asked) -> Pin<Box<dyn Future<Output = Result<Value, Problem>> + Send>> + Send + Sync,
>;

pub(super) fn router(documents: &Documents) -> Router {
    let documents = Arc::clone(documents);
    Router::new().fallback(move |request: Request| answer(Arc::clone(&documents), request))
}

async fn answer(documents: Documents, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let reads = *request.method() == Method::GET;
    let document = if reads {
        None
    } else {
        match body(request).await {
            Ok(document) => Some(document),
            Err(problem) => return problem_response(&problem),
        }
    };
    Answer(documents(Asked { path, document }).await).into_response()
}

async fn body(request: Request) -> Result<Value, Problem> {
    let wrong = |why: String| Problem::new(Code::BadRequest, format!("the body: {why}"));
    let bytes = to_bytes(request.into_body(), BODY_BYTES_MAX).await;
    let bytes = bytes.map_err(|error| wrong(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))
}
