//! The API: HTTP and JSON, version 1, over unix sockets and TCP.
//!
//! **Contract.** The unix socket has mode 0600, so whoever may open it may do everything. Over TCP
//! everyone who reaches the address may read (no secret is ever in an answer); to change anything
//! takes the token of the file `api.token` in the state directory. Errors are RFC 9457 problem
//! documents with code, cause and hint.
//!
//! Whatever else is asked over TCP is answered by the [page], which everyone who reaches the
//! address may load: it has no figures in it, and asks the paths above.
//!
//! The server has a thread and a tokio runtime of its own: a slow client holds up no disk. It
//! reaches the node through a [`Handle`](controller::Handle) only.

#[allow(
    dead_code,
    reason = "the server takes it when it has its own loop of connections"
)]
mod stall;
#[allow(
    dead_code,
    reason = "the server takes it when it has its own loop of connections"
)]
mod places;
#[allow(
    dead_code,
    reason = "the server takes it when it has its own loop of connections"
)]
mod peer;
#[allow(
    dead_code,
    reason = "the server takes it when it has its own loop of connections"
)]
mod outside;
#[allow(
    dead_code,
    reason = "the server takes it when it has its own loop of connections"
)]
mod origin;
#[allow(
    dead_code,
    reason = "the server takes it when it has its own loop of connections"
)]
mod headers;
#[allow(
    dead_code,
    reason = "the server takes it when it has its own loop of connections"
)]
mod body;
#[allow(
    dead_code,
    reason = "the server takes it when it has its own loop of connections"
)]
mod access;
#[allow(
    dead_code,
    reason = "the server takes it when it has its own loop of connections"
)]
mod tls;
#[allow(
    dead_code,
    reason = "the server takes it when it has its own loop of connections"
)]
mod store;
#[allow(
    dead_code,
    reason = "the server takes it when it has its own loop of connections"
)]
mod state_files;
mod answer;
mod auth;
mod browser;
mod connecting;
#[cfg(test)]
mod contract;
mod describe;
mod documents;
mod edit;
mod etag;
mod explorer;
mod fields;
mod generations;
mod idempotency;
mod list;
mod listing;
pub mod metrics;
mod nowhere;
mod objects;
mod parts;
#[cfg(test)]
mod reference;
mod repeated;
mod routes;
mod server;

pub use auth::{TOKEN_FILE, Transport, load_token};
pub use documents::{Asked, Documents};
pub use routes::router;
pub use server::{Bound, Server, bind, bind_what_can_be};

#[cfg(test)]
mod test;
#[cfg(test)]
mod test_browser;
