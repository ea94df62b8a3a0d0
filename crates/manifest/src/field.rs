//! How documents describe a key of `node.toml` or a field of an object.

/// A key of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its section and its name, such as `pool.journal`.
    pub key: &'static str,
    /// What may stand there.
    pub values: &'static str,
    /// What holds where it does not stand.
    pub default: &'static str,
    /// Whether a change comes into force while hosts work.
    pub live: bool,
    /// What it means.
    pub meaning: &'static str,
}

/// Keys whose changes hold for connections that come from then on; others are as they are.
const OF_NEW_CONNECTIONS: [&str; 4] = [
    "runtime.coalesce_us",
    "session.login_seconds",
    "session.ping_after_seconds",
    "session.ping_timeout_seconds",
];

/// Whether a change of a key holds for new connections alone.
#[must_use]
pub fn is_of_new_connections(key: &str) -> bool {
    OF_NEW_CONNECTIONS.contains(&key)
}

impl Field {
    /// The class of a change of it: `live`, `new-sessions` or `restart`.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self.live {
            true if is_of_new_connections(self.key) => "new-sessions",
            true => "live",
            false => "restart",
        }
    }

    /// Its name in its section.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let key = self.key;
        key.rsplit_once('.').map_or(key, |(_, name)| name)
    }
}

/// One that takes effect at the next start, or stays for ever.
pub(crate) const fn node(
    key: &'static str,
    values: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Field {
    Field {
        key,
        values,
        default,
        live: false,
        meaning,
    }
}

/// One that takes effect while hosts work.
pub(crate) const fn live(
    key: &'static str,
    values: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Field {
    Field {
        live: true,
        ..node(key, values, default, meaning)
    }
}
