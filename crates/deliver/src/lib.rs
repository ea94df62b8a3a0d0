//! Sends messages about alerts: a POST, a mail, or a program that gets them.
//!
//! **Contract.** One attempt, which ends within [`TIME_MAX`]; whoever calls it decides when the
//! next one is made. A failure is said in words for people, and no secret is in them: of a webhook
//! its path is one.
//!
//! **Where it connects to.** Receivers are made by admins, and may be anywhere in their network. So
//! that nobody has the node ask for what only machines of a cloud may ask for, addresses that are
//! only valid on a link are refused, by what the name leads to at the moment of the connection.
//! Redirects are not followed, and of what is answered nothing but the status is shown.

mod address;
mod command;
mod mail;
mod roots;
mod webhook;

use alerts::{Channel, Failure, Message, Receiver};
use manifest::config::AlertCommand;
use std::time::Duration;
use tokio::time::timeout;

/// The longest that an attempt takes; a command has a time of its own.
pub const TIME_MAX: Duration = Duration::from_secs(30);

/// How long a connection may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// Sends a message to a receiver; `commands`: those that `node.toml` names.
///
/// # Errors
/// Why it was not taken.
pub async fn send(
    receiver: &Receiver,
    commands: &[AlertCommand],
    message: &Message,
) -> Result<(), Failure> {
    match &receiver.channel {
        Channel::Webhook(to) => within(TIME_MAX, webhook::post(to, message)).await,
        Channel::Mail(to) => within(TIME_MAX, mail::send(to, message)).await,
        Channel::Command(to) => {
            let known = commands.iter().find(|command| command.name == to.name);
            let Some(command) = known else {
                let name = &to.name;
                let why = format!("node.toml has no [[alert_command]] of the name \"{name}\"");
                return Err(Failure(why));
            };
            command::run(command, message).await
        }
    }
}

async fn within(
    most: Duration,
    sending: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    match timeout(most, sending).await {
        Ok(sent) => sent,
        Err(_) => Err(Failure(format!("it took longer than {} s", most.as_secs()))),
    }
}

/// A failure in words that are one line of bounded length.
fn failure(what: &str, why: &dyn std::fmt::Display) -> Failure {
    let text: String = format!("{what}: {why}")
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(300)
        .collect();
    Failure(text)
}

#[cfg(test)]
mod test;
