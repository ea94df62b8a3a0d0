//! Parts of the requests about users, tokens and logins.

use crate::answer::Switches;
use crate::body::read_quietly;
use crate::describe::{Operation, Parameter, Part, Schemas};
use crate::parts::{Refused, Seen};
use crate::peer::Peer;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, Extension, FromRequest, FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use manifest::code::Code;
use manifest::problem::Problem;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;

/// What the server knows of a request is no part of it.
impl<T> Part for Extension<T> {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

impl Part for ConnectInfo<Peer> {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

impl Part for HeaderMap {
    fn describe(_: &mut Operation, _: &mut Schemas) {}
}

/// The body as a `T` that has secrets: what is wrong with it is said without its words.
pub(super) struct SecretBody<T>(Bytes, PhantomData<fn() -> T>);

impl<T: DeserializeOwned> SecretBody<T> {
    /// Reads it.
    ///
    /// # Errors
    /// It is not the document that is wanted, which has `fields`.
    pub(super) fn read(&self, fields: &str) -> Result<T, Problem> {
        read_quietly(&self.0, fields)
    }
}

impl<S: Send + Sync, T> FromRequest<S> for SecretBody<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refused> {
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|error| Problem::new(Code::BadRequest, error.body_text()))?;
        Ok(Self(bytes, PhantomData))
    }
}

impl<T: JsonSchema> Part for SecretBody<T> {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.reads(schemas.read::<T>());
        operation.fails(&[Code::BadRequest]);
    }
}

/// How users and tokens are changed; `force` is taken as everywhere, and changes nothing here.
pub(super) struct AccountChange {
    pub(super) dry_run: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for AccountChange {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let switches = Switches::read(parts.uri.query(), &["dry_run", "force"])?;
        let dry_run = switches.on("dry_run");
        Ok(Self { dry_run })
    }
}

impl Part for AccountChange {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let dry_run = "Only report whether it can be done.";
        operation.takes(Parameter::switch("dry_run", dry_run));
        let force = "Taken as by every change, and without effect.";
        operation.takes(Parameter::switch("force", force));
        operation.fails(&[
            Code::BadRequest,
            Code::NotFound,
            Code::AlreadyExists,
            Code::InvalidObjects,
            Code::PasswordRule,
            Code::LastAdmin,
            Code::StateNotSaved,
            Code::AccountsDamaged,
        ]);
    }
}

/// How a user that is there is changed.
pub(super) struct SeenChange {
    pub(super) dry_run: bool,
    pub(super) seen: Seen,
}

impl<S: Send + Sync> FromRequestParts<S> for SeenChange {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        let AccountChange { dry_run } = AccountChange::from_request_parts(parts, state).await?;
        let seen = Seen::read(parts)?;
        Ok(Self { dry_run, seen })
    }
}

impl Part for SeenChange {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        AccountChange::describe(operation, schemas);
        Seen::describe(operation);
    }
}
