//! `[session]` of `node.toml`: how long hosts may take, and be silent.

use crate::toml_table::Table;
use std::time::Duration;

/// The longest of all times, in seconds.
const SECONDS_MAX: u64 = 3600;

/// The longest time of a login, in seconds: its place is somebody else's after that.
const LOGIN_SECONDS_MAX: u64 = 300;

/// The times of logins, sessions and writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionTimes {
    /// From the connection to the end of the login, whatever comes meanwhile.
    pub login: Duration,
    /// Silence after which a host is pinged.
    pub ping_after: Duration,
    /// Silence after a ping that ends the session.
    pub ping_timeout: Duration,
    /// From when the data of a write may be sent until it is there.
    pub data: Duration,
}

impl Default for SessionTimes {
    /// The front's own times.
    fn default() -> Self {
        Self {
            login: Duration::from_secs(15),
            ping_after: Duration::from_secs(15),
            ping_timeout: Duration::from_secs(10),
            data: Duration::from_secs(30),
        }
    }
}

pub(super) fn read(top: &Table<'_, '_>) -> SessionTimes {
    let mut times = SessionTimes::default();
    let Some(table) = top.table("session") else {
        return times;
    };
    let read = |key: &'static str, most: u64, time: &mut Duration| {
        if let Some(seconds) = table.integer(key, 1, most) {
            *time = Duration::from_secs(seconds.value);
        }
    };
    read("login_seconds", LOGIN_SECONDS_MAX, &mut times.login);
    read("ping_after_seconds", SECONDS_MAX, &mut times.ping_after);
    read("ping_timeout_seconds", SECONDS_MAX, &mut times.ping_timeout);
    read("data_seconds", SECONDS_MAX, &mut times.data);
    table.finish(&[]);
    times
}
