//! What happened in a node, and who changed it.
//!
//! **Contract.** Identifiers of events rise for ever, across restarts, clocks that are set back and
//! files that are lost. Emitting never waits: an event is in memory and with all subscribers at
//! once, and in the file soon. A subscriber that is too slow goes on with the newest event and
//! learns how many it missed. The audit log is only added to, and no secret is ever in it.

mod audit;
mod bus;
mod code;
mod entry;
mod event;
mod filter;
mod log;
mod ring;
mod schema;
mod secrets;
mod words;

pub use audit::{AUDIT_COLUMNS, Audited, WantedEntries, unended};
pub use bus::{Batch, Events, Subscription};
pub use code::{CATALOGUE, CatalogueEntry, Code, Severity, page};
pub use entry::Entry;
pub use event::{Event, Happened, Object};
pub use filter::Filter;
pub use log::{EVENT_COLUMNS, READ_MAX, Wanted};
pub use schema::SCHEMA;
pub use secrets::without_secrets;
pub use words::AuditWords;
