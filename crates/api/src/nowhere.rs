//! Requests for what is not there.

use crate::plain_answer::problem_response;
use axum::extract::Request;
use axum::response::Response;
use manifest::code::Code;
use manifest::problem::Problem;

pub(crate) async fn nowhere(request: Request) -> Response {
    let detail = format!("{} {}", request.method(), request.uri().path());
    problem_response(&Problem::new(Code::NoSuchPath, detail))
}

pub(crate) async fn not_so(request: Request) -> Response {
    let detail = format!("{} {}", request.method(), request.uri().path());
    problem_response(&Problem::new(Code::WrongMethod, detail))
}
