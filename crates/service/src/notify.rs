//! Reports to the service manager how the process is, and never waits for it.
//!
//! **Contract.** Nobody who reads the socket late, or never, holds up what notifies it: what does
//! not fit now is said with the next message. (`sd_notify(3)`: datagrams to the socket that
//! `NOTIFY_SOCKET` names.)

use sd_notify::NotifyState;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Mutex, OnceLock, PoisonError};

/// What is to be said to one socket.
#[derive(Default)]
struct Notifier {
    /// Where; `None`: nobody wants to know.
    socket: Option<OsString>,
    unsaid: Mutex<Unsaid>,
}

#[derive(Default)]
struct Unsaid {
    lines: Vec<String>,
    /// The log has a warning that it could not be said.
    is_logged: bool,
}

impl Notifier {
    fn to(socket: Option<OsString>) -> Self {
        Self {
            socket,
            ..Self::default()
        }
    }

    /// Says these, after what could not be said before.
    fn say(&self, states: &[NotifyState<'_>]) {
        let Some(socket) = &self.socket else { return };
        let mut unsaid = self.unsaid.lock().unwrap_or_else(PoisonError::into_inner);
        for line in states.iter().map(|it| it.to_string()) {
            if !unsaid.lines.contains(&line) {
                unsaid.lines.push(line);
            }
        }
        let text: String = unsaid.lines.iter().map(|it| format!("{it}\n")).collect();
        match send(socket, text.as_bytes()) {
            Ok(()) => *unsaid = Unsaid::default(),
            Err(error) => {
                if !unsaid.is_logged {
                    tracing::warn!(
                        "the service manager could not be notified; the next message tries again: {error}"
                    );
                }
                unsaid.is_logged = true;
            }
        }
    }
}

/// One datagram, or an error at once.
fn send(socket: &OsStr, text: &[u8]) -> io::Result<()> {
    let to = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    let from = UnixDatagram::unbound()?;
    from.set_nonblocking(true)?;
    let sent = from.send_to_addr(text, &to)?;
    if sent < text.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    Ok(())
}

/// Notifies systemd, where it listens.
pub fn notify(states: &[NotifyState<'_>]) {
    static NOTIFIER: OnceLock<Notifier> = OnceLock::new();
    let notifier = NOTIFIER.get_or_init(|| Notifier::to(std::env::var_os("NOTIFY_SOCKET")));
    notifier.say(states);
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_service_manager_that_does_not_read_holds_nobody_up_and_misses_nothing() {
        let name = format!("causeway-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let reader = UnixDatagram::bind_addr(&address).unwrap();
        // As full as it gets: the next datagram would block.
        let other = UnixDatagram::unbound().unwrap();
        other.set_nonblocking(true).unwrap();
        let mut queued = 0;
        while other.send_to_addr(b"x", &address).is_ok() {
            queued += 1;
        }
        let notifier = Notifier::to(Some(format!("@{name}").into()));
        notifier.say(&[NotifyState::Ready]);
        for _ in 0..1000 {
            notifier.say(&[NotifyState::Watchdog]);
        }
        let mut bytes = [0; 256];
        for _ in 0..queued {
            assert_eq!(reader.recv(&mut bytes).unwrap(), 1);
        }
        notifier.say(&[NotifyState::Stopping]);
        let len = reader.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..len], b"READY=1\nWATCHDOG=1\nSTOPPING=1\n");
        notifier.say(&[NotifyState::Watchdog]);
        let len = reader.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..len], b"WATCHDOG=1\n");
        Notifier::to(None).say(&[NotifyState::Ready]);
    }
}
