//! What is wrong enough for people to know of: rules over facts, the alerts that come of them, and
//! what is sent of these.
//!
//! ```text
//!   Facts --Watch (rules, bounds)--> readings --Board (hold, acknowledge, silence)--> alerts
//!                                                                                       |
//!                                                              Message <--Outbox--------+
//! ```
//!
//! **Contract.** Pure: facts and time come in, alerts and messages go out. What is measured is
//! measured by the steady clock, and what people read is of the wall clock: a clock that is set
//! fires nothing.

mod address;
mod alert;
mod away;
mod board;
mod document;
mod evaluate;
mod facts;
mod flapping;
mod mark;
mod message;
mod object;
mod outbox;
mod page;
mod receiver;
mod rule;
mod settings;
mod severity;
mod silence;
mod time;
mod usual;
mod watch;

pub use address::refused_address;
pub use alert::{Acknowledged, Alert, AlertState, AlertView, Step, What};
pub use board::{Board, Change};
pub use document::{Document, Learned};
pub use evaluate::{Reading, Verdict};
pub use facts::{
    Done, EndedSeen, Ending, Facts, Finding, HostSeen, LunSeen, Path, PortalSeen, TargetSeen,
};
pub use mark::Mark;
pub use message::{LISTED_MAX, Message, Notice, Reason};
pub use object::Object;
pub use outbox::{Delivery, Failure, Outbox};
pub use page::rules_page;
pub use receiver::{
    Channel, CommandTo, Encryption, Mail, MailTo, Receiver, ReceiverView, WantedReceiver, Webhook,
    WebhookTo,
};
pub use rule::{Bound, RULES, Rule};
pub use settings::{RuleSettings, RuleView, Settings};
pub use severity::Severity;
pub use silence::{Silence, SilenceView, WantedSilence};
pub use time::Moment;
pub use watch::Watch;

#[cfg(test)]
mod test;
