//! What each request needs to be allowed.

use accounts::Role;
use axum::http::Method;

/// What a request needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// Nothing: the page, whether it lives, and the login.
    Nothing,
    /// Somebody; also one who has to change the password first.
    Anybody,
    /// This role; `free`: over loopback addresses nobody has to prove anything, as ever.
    Role {
        /// The least one.
        least: Role,
        /// It is one of the reads of the first version.
        free: bool,
    },
}

/// The reads that the promised interface has always allowed without a token. None comes to it.
const FREE: &[&str] = &[
    "status",
    "activity",
    "export",
    "refusals",
    "pools",
    "sessions",
    "luns",
    "targets",
    "hosts",
    "grants",
    "orphans",
    "generations",
];

/// What only admins see and change.
const OF_ADMINS: &[&str] = &["users", "tokens", "settings", "audit", "support"];

/// What only admins see and change, below something that others see: receivers of alerts say whom
/// the node connects to, and have secrets.
const BELOW_OF_ADMINS: &[&str] = &["alerts/receivers"];

/// The description of the interface, which is the same at every node.
const DESCRIPTION: &[&str] = &[
    "/api/v1/",
    "/api/v1/openapi.json",
    "/api/v1/explorer.js",
    "/api/v1/explorer.css",
];

/// It only asks.
pub(crate) fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// What `method` at `path` needs.
pub(crate) fn need(method: &Method, path: &str) -> Need {
    let reads = reads(method);
    let of_role = |least, free| Need::Role { least, free };
    if reads && DESCRIPTION.contains(&path) {
        return Need::Nothing;
    }
    let Some(rest) = path.strip_prefix("/api/") else {
        return match (reads, path) {
            (true, "/metrics") => of_role(Role::Viewer, true),
            (true, _) => Need::Nothing,
            (false, _) => of_role(Role::Operator, false),
        };
    };
    let rest = rest.strip_prefix("v1/").unwrap_or_default();
    let first = rest.split('/').next().unwrap_or_default();
    let is_below = |of: &str| {
        let below = rest.strip_prefix(of);
        below.is_some_and(|it| it.is_empty() || it.starts_with('/'))
    };
    match (reads, first) {
        (false, "login") => Need::Nothing,
        (false, "logout") | (_, "me") => Need::Anybody,
        (_, first) if OF_ADMINS.contains(&first) => of_role(Role::Admin, false),
        _ if BELOW_OF_ADMINS.iter().any(|of| is_below(of)) => of_role(Role::Admin, false),
        (false, "lab" | "config" | "restart") => of_role(Role::Admin, false),
        (true, first) => of_role(Role::Viewer, FREE.contains(&first)),
        (false, _) => of_role(Role::Operator, false),
    }
}

#[cfg(test)]
mod test {
    use super::{Need, Role};

    fn need(method: &str, path: &str) -> &'static str {
        match super::need(&method.parse().unwrap(), path) {
            Need::Nothing => "nothing",
            Need::Anybody => "anybody",
            Need::Role {
                least: Role::Viewer,
                free: true,
            } => "free",
            Need::Role {
                least: Role::Viewer,
                ..
            } => "viewer",
            Need::Role {
                least: Role::Operator,
                ..
            } => "operator",
            Need::Role {
                least: Role::Admin, ..
            } => "admin",
        }
    }

    #[test]
    fn reads_need_viewers_changes_operators_and_accounts_admins() {
        for (method, path, wanted) in [
            ("GET", "/", "nothing"),
            ("GET", "/assets/app.js", "nothing"),
            ("GET", "/healthz", "nothing"),
            ("POST", "/", "operator"),
            ("GET", "/metrics", "free"),
            ("POST", "/api/v1/login", "nothing"),
            ("GET", "/api/v1/login", "viewer"),
            ("POST", "/api/v1/logout", "anybody"),
            ("GET", "/api/v1/me", "anybody"),
            ("PUT", "/api/v1/me/password", "anybody"),
            ("GET", "/api/v1/luns", "free"),
            ("HEAD", "/api/v1/luns/a", "free"),
            ("GET", "/api/v1/lunsx", "viewer"),
            ("GET", "/api/v1/events", "viewer"),
            ("GET", "/api/v1/", "nothing"),
            ("GET", "/api/v1/openapi.json", "nothing"),
            ("GET", "/api/v2/luns", "viewer"),
            ("PATCH", "/api/v1/luns/a", "operator"),
            ("OPTIONS", "/api/v1/luns/a", "operator"),
            ("GET", "/api/v1/users", "admin"),
            ("GET", "/api/v1/tokens/1", "admin"),
            ("GET", "/api/v1/audit", "admin"),
            ("GET", "/api/v1/audit/export", "admin"),
            ("GET", "/api/v1/support/bundle", "admin"),
            ("GET", "/api/v1/doctor", "viewer"),
            ("GET", "/api/v1/history", "viewer"),
            ("GET", "/api/v1/history/latency", "viewer"),
            ("POST", "/api/v1/users", "admin"),
            ("DELETE", "/api/v1/tokens/1", "admin"),
            ("DELETE", "/api/v1/users/u/sessions", "admin"),
            ("PUT", "/api/v1/settings/x", "admin"),
            ("GET", "/api/v1/alerts", "viewer"),
            ("GET", "/api/v1/alerts/rules", "viewer"),
            ("PUT", "/api/v1/alerts/rules/lun_slow", "operator"),
            ("POST", "/api/v1/alerts/7/acknowledge", "operator"),
            ("GET", "/api/v1/alerts/receivers", "admin"),
            ("POST", "/api/v1/alerts/receivers/r/test", "admin"),
            ("GET", "/api/v1/alerts/receiversx", "viewer"),
            ("GET", "/api/v1/bench/runs", "viewer"),
            ("POST", "/api/v1/bench/runs", "operator"),
            ("GET", "/api/v1/lab", "viewer"),
            ("POST", "/api/v1/lab/beds", "admin"),
            ("POST", "/api/v1/lab/beds/1/links", "admin"),
            ("DELETE", "/api/v1/lab/beds/1", "admin"),
            ("GET", "/api/v1/config", "viewer"),
            ("PATCH", "/api/v1/config", "admin"),
            ("POST", "/api/v1/restart", "admin"),
            ("POST", "/api/v1/node/drain", "operator"),
        ] {
            assert_eq!(need(method, path), wanted, "{method} {path}");
        }
    }
}
