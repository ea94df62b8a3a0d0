//! Parts of the requests about users, tokens and logins.

use crate::body::read_quietly;
use crate::describe::{Operation, Part, Schemas};
use crate::parts::Refused;
use crate::peer::Peer;
use crate::plain_change::{self, PlainChange, Refusals};
use axum::body::Bytes;
use axum::extract::{ConnectInfo, Extension, FromRequest, Request};
use axum::http::HeaderMap;
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

/// Users and tokens.
pub(super) struct OfAccounts;

impl Refusals for OfAccounts {
    const CODES: &'static [Code] = &[
        Code::BadRequest,
        Code::NotFound,
        Code::AlreadyExists,
        Code::InvalidObjects,
        Code::PasswordRule,
        Code::LastAdmin,
        Code::StateNotSaved,
        Code::Stopping,
        Code::AccountsDamaged,
    ];
}

/// Logins, which are in memory alone.
pub(super) struct OfLogins;

impl Refusals for OfLogins {
    const CODES: &'static [Code] = &[
        Code::BadRequest,
        Code::NotFound,
        Code::Stopping,
        Code::AccountsDamaged,
    ];
}

/// How somebody's logins end.
pub(super) type LoginChange = PlainChange<OfLogins>;

/// How users and tokens are changed.
pub(super) type AccountChange = PlainChange<OfAccounts>;

/// How a user that is there is changed.
pub(super) type SeenChange = plain_change::SeenChange<OfAccounts>;
