//! How the cluster is, in its monitors' words.

use serde_json::Value;
use units::ByteCount;

/// How the cluster is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Health {
    /// As a whole.
    pub severity: Severity,
    /// What is wrong with it; without what was muted.
    pub checks: Vec<Check>,
    /// Whether the pool takes writes.
    pub fullness: Fullness,
    /// What the pool's data take on the OSDs, copies included.
    pub used: ByteCount,
    /// What can still be written to the pool.
    pub available: ByteCount,
}

/// HEALTH_OK, HEALTH_WARN, HEALTH_ERR.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Nothing is wrong.
    Ok,
    /// Something wants to be looked at.
    Warn,
    /// Something fails.
    Error,
}

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// Ceph's name for it: `OSD_NEARFULL`.
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// Ceph's words.
    pub message: String,
}

/// Whether a pool takes writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fullness {
    /// It does.
    Room,
    /// It soon does not any more.
    NearlyFull,
    /// It does not.
    Full,
}

/// What the monitors are asked.
pub(crate) const HEALTH: &str = r#"{"prefix":"health","detail":"detail","format":"json"}"#;
/// And for the pool's space.
pub(crate) const SPACE: &str = r#"{"prefix":"df","format":"json"}"#;

fn severity(text: Option<&str>) -> Severity {
    match text {
        Some("HEALTH_OK") => Severity::Ok,
        Some("HEALTH_ERR") => Severity::Error,
        // What we do not know is to be looked at.
        Some(_) | None => Severity::Warn,
    }
}

/// Reads both answers; nothing where one is not what monitors say.
pub(crate) fn read(health: &[u8], space: &[u8], pool: &str) -> Option<Health> {
    let health: Value = serde_json::from_slice(health).ok()?;
    let space: Value = serde_json::from_slice(space).ok()?;
    let found = health.get("checks")?.as_object()?;
    let heard = found.iter().filter(|(_, check)| !is_muted(check));
    let checks: Vec<Check> = heard
        .map(|(code, check)| Check {
            code: code.clone(),
            severity: severity(check["severity"].as_str()),
            message: text(&check["summary"]["message"]),
        })
        .collect();
    let fullness = found
        .iter()
        .map(|(code, check)| fullness(code, check, pool));
    let stats = pools(&space)
        .find(|it| it["name"] == pool)
        .map(|it| &it["stats"])?;
    let bytes = |name: &str| ByteCount(stats[name].as_u64().unwrap_or(0));
    Some(Health {
        severity: severity(health["status"].as_str()),
        fullness: fullness.max().unwrap_or(Fullness::Room),
        checks,
        used: bytes("bytes_used"),
        available: bytes("max_avail"),
    })
}

fn is_muted(check: &Value) -> bool {
    check["muted"].as_bool().unwrap_or(false)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn pools(space: &Value) -> impl Iterator<Item = &Value> {
    space["pools"].as_array().into_iter().flatten()
}

/// What a check says of this pool: those of OSDs concern all pools, those of pools name them in
/// their details. That somebody has muted it does not make room.
fn fullness(code: &str, check: &Value, pool: &str) -> Fullness {
    let named = format!("'{pool}'");
    let concerns = || {
        let details = check["detail"].as_array().into_iter().flatten();
        let mut messages = details.map(|it| it["message"].as_str().unwrap_or_default());
        messages.any(|message| message.contains(&named))
    };
    match code {
        "OSD_FULL" => Fullness::Full,
        "POOL_FULL" if concerns() => Fullness::Full,
        "OSD_NEARFULL" | "OSD_BACKFILLFULL" => Fullness::NearlyFull,
        "POOL_NEARFULL" | "POOL_NEAR_FULL" | "POOL_BACKFILLFULL" if concerns() => {
            Fullness::NearlyFull
        }
        _ => Fullness::Room,
    }
}

#[cfg(test)]
mod test {
    use super::*;

    const SPACE_TOLD: &str = r#"{"stats":{"total_bytes":8589934592},"pools":[
        {"name":"other","id":1,"stats":{"bytes_used":1,"max_avail":2}},
        {"name":"rbd","id":2,"stats":{"stored":5,"bytes_used":4096,"max_avail":1048576,"percent_used":0.1}}]}"#;

    fn of(health: &str) -> Health {
        read(health.as_bytes(), SPACE_TOLD.as_bytes(), "rbd").unwrap()
    }

    #[test]
    fn a_healthy_cluster_has_nothing_to_say_and_the_space_of_its_pool() {
        let health = of(r#"{"status":"HEALTH_OK","checks":{},"mutes":[]}"#);
        assert_eq!(health.severity, Severity::Ok);
        assert!(health.checks.is_empty());
        assert_eq!(health.fullness, Fullness::Room);
        assert_eq!(
            (health.used, health.available),
            (ByteCount(4096), ByteCount(1 << 20))
        );
    }

    #[test]
    fn full_osds_concern_every_pool_and_a_full_pool_only_itself() {
        let osd = r#"{"status":"HEALTH_ERR","checks":{"OSD_FULL":{"severity":"HEALTH_ERR",
            "summary":{"message":"1 full osd(s)","count":1},"detail":[{"message":"osd.0 is full"}],"muted":false}}}"#;
        let health = of(osd);
        assert_eq!(
            (health.severity, health.fullness),
            (Severity::Error, Fullness::Full)
        );
        assert_eq!(health.checks[0].message, "1 full osd(s)");
        let near = osd
            .replace("OSD_FULL", "OSD_NEARFULL")
            .replace("HEALTH_ERR", "HEALTH_WARN");
        assert_eq!(of(&near).fullness, Fullness::NearlyFull);
        let pool = |name: &str| {
            let check = format!("pool '{name}' is full (running out of quota)");
            osd.replace("OSD_FULL", "POOL_FULL")
                .replace("osd.0 is full", &check)
        };
        assert_eq!(of(&pool("rbd")).fullness, Fullness::Full);
        assert_eq!(of(&pool("other")).fullness, Fullness::Room);
    }

    #[test]
    fn what_was_muted_is_not_told_and_nonsense_is_no_health() {
        let muted = r#"{"status":"HEALTH_OK","checks":{"MGR_MODULE_ERROR":{"severity":"HEALTH_ERR",
            "summary":{"message":"m","count":1},"detail":[],"muted":true}}}"#;
        assert!(of(muted).checks.is_empty());
        assert_eq!(read(b"{}", SPACE_TOLD.as_bytes(), "rbd"), None);
        assert_eq!(read(b"", b"", "rbd"), None);
        assert_eq!(
            read(br#"{"checks":{}}"#, SPACE_TOLD.as_bytes(), "none"),
            None
        );
    }
}
