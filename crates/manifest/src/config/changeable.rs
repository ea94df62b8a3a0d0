//! Plain values of `node.toml` that are changed through the API by their key.

/// What may be changed: bounds and times, and nothing that names a program, a file or a place.
pub(super) const KEYS: [&str; 10] = [
    "api.token_for_reads",
    "health.every_minutes",
    "history.max_bytes",
    "log.format",
    "runtime.coalesce_us",
    "runtime.poll_us",
    "session.data_seconds",
    "session.login_seconds",
    "session.ping_after_seconds",
    "session.ping_timeout_seconds",
];

/// Whether a key is one of those.
pub(super) fn is_changeable(key: &str) -> bool {
    KEYS.contains(&key)
}
