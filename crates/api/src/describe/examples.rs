//! An example of each body that makes or starts something, as somebody sends it.

use serde_json::{Value, json};

/// What is sent to a path, for one; a test sends it.
pub(super) fn example(method: &str, path: &str) -> Option<Value> {
    let below = path.strip_prefix("/api/v1/")?;
    let example = match (method, below) {
        ("post", "apply" | "objects") => json!({
            "lun": [{ "name": "vm01", "size": "100G" }],
            "target": [{ "name": "vm01" }],
            "host": [{ "name": "esx01", "iqn": ["iqn.1998-01.com.vmware:esx01"] }],
            "grant": [{ "host": "esx01", "lun": "vm01", "target": "vm01" }],
        }),
        ("post", "luns") => json!({ "name": "vm02", "size": "100G", "limit": { "iops": 5_000 } }),
        ("patch", "luns/{name}") => json!({ "limit": { "iops": 5_000 }, "shares": 200 }),
        ("post", "luns/{name}/resize") => json!({ "size": "200G" }),
        ("post", "luns/{name}/rename" | "targets/{name}/rename" | "hosts/{name}/rename") => {
            json!({ "to": "db01" })
        }
        ("post", "luns/{name}/mirror") => json!({ "operation": "add", "node": "san-b" }),
        ("post", "luns/{name}/scrub") => json!({ "operation": "start" }),
        ("post", "targets") => json!({ "name": "backup" }),
        ("post", "hosts") => json!({
            "name": "esx02",
            "iqn": ["iqn.1998-01.com.vmware:esx02"],
            "chap": { "user": "esx02", "secret": { "value": "a secret of 12" } },
        }),
        ("post", "grants") => {
            json!({ "host": "esx01", "lun": "vm01", "target": "backup", "read_only": true })
        }
        ("post", "pools/{name}/journal") => json!({ "operation": "reopen" }),
        ("post", "orphans/adopt") => json!({ "all": true }),
        ("post", "login") => json!({ "user": "admin", "password": "the password of admin" }),
        ("post", "users") => {
            json!({ "name": "eve", "role": "operator", "password": "seven words that eve alone knows" })
        }
        ("post", "tokens") => json!({ "name": "prometheus", "role": "viewer", "days": 365 }),
        ("post", "alerts/{id}/acknowledge") => json!({ "note": "the cable is being replaced" }),
        ("post", "alerts/{id}/silence") => json!({ "hours": 2, "note": "maintenance" }),
        ("post", "alerts/silences") => {
            json!({ "kind": "host", "object": "esx01", "hours": 2, "note": "its firmware is updated" })
        }
        ("post", "alerts/receivers") => json!({
            "name": "chat",
            "least": "warning",
            "webhook": { "url": "https://chat.example.com/hooks/storage", "token": "the token of it" },
        }),
        ("post", "bench/runs") => json!({ "lun": "vm01", "load": { "seconds": 30 } }),
        ("post", "lab/beds") => json!({ "topology": "two-paths", "rate": "1G" }),
        ("post", "lab/beds/{id}/links") => json!({ "link": "eth0", "state": "cut" }),
        _ => return None,
    };
    Some(example)
}
