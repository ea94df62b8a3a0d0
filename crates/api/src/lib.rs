//! The API: HTTP and JSON, version 1, over unix sockets and TCP.
//!
//! **Contract.** Whoever may open the unix socket may do everything. Over TCP a request needs a
//! login or a token ([`access`]); but for the reads of the first version over loopback addresses.
//! No secret is ever in an answer, but in the one that makes it. Errors are RFC 9457 problem
//! documents with code, cause and hint.
//!
//! Whatever else is asked over TCP is answered by the [page], which everyone who reaches the
//! address may load: it has no figures in it, and asks the paths above.
//!
//! ```text
//!   accept (places, TLS, times) -> headers -> auth (Host, Origin, who, role, CSRF, body)
//!     -> audit (of what changes something) -> answers that pages share -> routes
//! ```
//!
//! The server has a thread and a tokio runtime of its own: a slow client holds up no disk. The
//! [sampler](Sampler) has another one, and fills the [records](Records). Both reach the node
//! through a [`Handle`](controller::Handle) only.

mod accept;
mod access;
mod account_parts;
mod addresses;
mod alerts;
mod answer;
mod audit;
mod auth;
mod bench;
mod body;
mod browser;
mod certificate;
mod config;
mod connecting;
#[cfg(test)]
mod contract;
mod describe;
mod disks;
mod documents;
mod edit;
mod etag;
mod explorer;
mod fields;
mod forecasts;
mod generations;
mod headers;
mod idempotency;
mod jobs;
mod lab;
mod listen;
mod listing;
mod login;
mod login_sessions;
mod lun_mirror;
mod node_doctor;
mod node_drain;
mod noted;
mod nowhere;
mod objects;
mod only;
mod origin;
mod outside;
mod own_certificate;
mod parameters;
mod parts;
mod peer;
mod places;
mod plain_answer;
mod plain_change;
mod records;
#[cfg(test)]
mod reference;
mod routes;
mod sampler;
mod server;
mod session_end;
mod shared_answers;
mod store;
mod support_bundle;
mod tls;
mod tokens;
mod users;

pub use auth::{TOKEN_FILE, load_token};
pub use documents::{Asked, Documents};
pub use listen::{Bound, bind, bind_what_can_be};
pub use own_certificate::CERTIFICATE_FILE;
pub use peer::{Peer, PeerAddress};
pub use records::{EVENTS_FILE, HISTORY_FILE, Records};
pub use sampler::Sampler;
pub use server::{Program, Server};
pub use store::FIRST_PASSWORD_FILE;
pub use support_bundle::LogTail;

/// Files of the state directory that only its owner may read.
pub const SECRET_FILES: [&str; 6] = [
    TOKEN_FILE,
    store::FILE,
    FIRST_PASSWORD_FILE,
    own_certificate::KEY_FILE,
    alerts::RECEIVERS_FILE,
    trial_runner::CHAP_FILE,
];

#[cfg(test)]
mod attack_test;
#[cfg(test)]
mod edit_test;
#[cfg(test)]
mod login_test;
#[cfg(test)]
mod slow_test;
#[cfg(test)]
mod support_test;
#[cfg(test)]
mod test;
#[cfg(test)]
mod test_browser;
#[cfg(test)]
mod tls_test;
