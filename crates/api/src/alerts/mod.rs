//! Alerts: the rules are asked every few seconds, off the data path, and what comes of them is kept
//! and sent.
//!
//! **Failure model.** A change by an administrator is in force when it is stored, and not before.
//! What the rules find is in force at once and stored within seconds: a crash in between has them
//! find it again. A file that is damaged is set aside and says so by an alert; one of a newer
//! version is left alone, and nothing is stored. What cannot be sent is sent later, and holds up
//! nothing.

mod figures;
mod keep;
#[cfg(test)]
mod reach_test;
mod receivers;
mod routes;
mod run;
mod secrets;
#[cfg(test)]
mod test;

pub(crate) use keep::Alerting;
pub(crate) use keep::RECEIVERS_FILE;
pub(super) use routes::paths;
