//! How the cluster is, in its monitors' words.

use serde::Deserialize;
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
    /// What the pool's data have, each byte counted once.
    pub used: ByteCount,
    /// What can still be written to the pool.
    pub available: ByteCount,
}

/// HEALTH_OK, HEALTH_WARN, HEALTH_ERR.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Nothing is wrong.
    Ok,
    /// Something needs attention.
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
/// And for what every pool is.
pub(crate) const POOLS: &str = r#"{"prefix":"osd pool ls","detail":"detail","format":"json"}"#;

fn severity(text: Option<&str>) -> Severity {
    match text {
        Some("HEALTH_OK") => Severity::Ok,
        Some("HEALTH_ERR") => Severity::Error,
        // What we do not know needs attention.
        Some(_) | None => Severity::Warn,
    }
}

/// Reads the answers; nothing where one is not what monitors say.
pub(crate) fn read(health: &[u8], space: &[u8], pools: &[u8], pool: &str) -> Option<Health> {
    let health: Value = serde_json::from_slice(health).ok()?;
    let space: Value = serde_json::from_slice(space).ok()?;
    let all: Vec<Pool> = serde_json::from_slice(pools).ok()?;
    let it = all.iter().find(|it| it.pool_name == pool)?;
    let found = health.get("checks")?.as_object()?;
    let active = found.iter().filter(|(_, check)| !is_muted(check));
    let checks: Vec<Check> = active
        .map(|(code, check)| Check {
            code: code.clone(),
            severity: severity(check["severity"].as_str()),
            message: text(&check["summary"]["message"]),
        })
        .collect();
    // That somebody has muted it does not make room.
    let fullness = found.keys().map(|code| fullness(code, it));
    let fullness = fullness.max().unwrap_or(Fullness::Room);
    let stats = stats_of(&space)
        .find(|it| it["name"] == pool)
        .map(|it| &it["stats"])?;
    let bytes = |name: &str| ByteCount(stats[name].as_u64().unwrap_or(0));
    Some(Health {
        severity: severity(health["status"].as_str()),
        fullness: fullness.max(it.fullness()),
        checks,
        used: bytes("stored"),
        available: bytes("max_avail"),
    })
}

fn is_muted(check: &Value) -> bool {
    check["muted"].as_bool().unwrap_or(false)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn stats_of(space: &Value) -> impl Iterator<Item = &Value> {
    space["pools"].as_array().into_iter().flatten()
}

/// A pool as the map of OSDs has it; as much as matters here.
#[derive(Deserialize)]
struct Pool {
    pool_name: String,
    /// Names of its flags, with commas between.
    flags_names: String,
    #[serde(default)]
    quota_max_bytes: u64,
    #[serde(default)]
    quota_max_objects: u64,
}

impl Pool {
    /// As OSDs see it when they take a write or refuse it: one of its OSDs is, or its quota.
    fn fullness(&self) -> Fullness {
        let of_flag = |flag: &str| match flag {
            "full" | "full_quota" => Fullness::Full,
            "nearfull" | "backfillfull" => Fullness::NearlyFull,
            _ => Fullness::Room,
        };
        let flags = self.flags_names.split(',').map(of_flag);
        flags.max().unwrap_or(Fullness::Room)
    }

    fn has_quota(&self) -> bool {
        self.quota_max_bytes > 0 || self.quota_max_objects > 0
    }
}

/// What a check means for a pool that its flags do not say: full OSDs concern all, and one that
/// comes near its quota has no flag.
fn fullness(code: &str, pool: &Pool) -> Fullness {
    match code {
        "OSD_FULL" => Fullness::Full,
        "OSD_NEARFULL" | "OSD_BACKFILLFULL" => Fullness::NearlyFull,
        "POOL_NEAR_FULL" if pool.has_quota() => Fullness::NearlyFull,
        _ => Fullness::Room,
    }
}

#[cfg(test)]
mod test {
    use super::*;

    const SPACE_REPORTED: &str = r#"{"stats":{"total_bytes":8589934592},"pools":[
        {"name":"other","id":1,"stats":{"bytes_used":1,"max_avail":2}},
        {"name":"rbd","id":2,"stats":{"stored":5,"bytes_used":4096,"max_avail":1048576,"percent_used":0.1}}]}"#;

    /// As a cluster says it of pools with these flags.
    fn pools(other: &str, rbd: &str) -> String {
        let pool = |name, flags: &str| {
            format!(
                r#"{{"pool_id":1,"pool_name":"{name}","flags":8193,"flags_names":"{flags}","quota_max_bytes":0}}"#
            )
        };
        format!("[{},{}]", pool("other", other), pool("rbd", rbd))
    }

    fn with(health: &str, pools: &str) -> Option<Health> {
        let (health, space) = (health.as_bytes(), SPACE_REPORTED.as_bytes());
        read(health, space, pools.as_bytes(), "rbd")
    }

    fn of(health: &str) -> Health {
        with(health, &pools("hashpspool", "hashpspool,selfmanaged_snaps")).unwrap()
    }

    #[test]
    fn a_healthy_cluster_has_nothing_to_say_and_the_space_of_its_pool() {
        let health = of(r#"{"status":"HEALTH_OK","checks":{},"mutes":[]}"#);
        assert_eq!(health.severity, Severity::Ok);
        assert!(health.checks.is_empty());
        assert_eq!(health.fullness, Fullness::Room);
        assert_eq!(
            (health.used, health.available),
            (ByteCount(5), ByteCount(1 << 20))
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
        let pool = osd.replace("OSD_FULL", "POOL_FULL");
        for (flags, fullness) in [
            ("hashpspool,full,full_quota", Fullness::Full),
            ("full", Fullness::Full),
            ("hashpspool,nearfull", Fullness::NearlyFull),
            ("hashpspool,backfillfull", Fullness::NearlyFull),
            ("hashpspool", Fullness::Room),
        ] {
            let full = with(&pool, &pools("hashpspool", flags)).unwrap();
            assert_eq!(full.fullness, fullness, "{flags}");
            let other = with(&pool, &pools(flags, "hashpspool")).unwrap();
            assert_eq!(other.fullness, Fullness::Room, "{flags} of another");
        }
        let near = osd.replace("OSD_FULL", "POOL_NEAR_FULL");
        assert_eq!(of(&near).fullness, Fullness::Room);
        let quota = pools("", "").replace("max_bytes\":0", "max_bytes\":9");
        let limited = with(&near, &quota).unwrap();
        assert_eq!(limited.fullness, Fullness::NearlyFull);
    }

    #[test]
    fn what_was_muted_is_not_reported_and_nonsense_is_no_health() {
        let muted = r#"{"status":"HEALTH_OK","checks":{"MGR_MODULE_ERROR":{"severity":"HEALTH_ERR",
            "summary":{"message":"m","count":1},"detail":[],"muted":true}}}"#;
        assert!(of(muted).checks.is_empty());
        let (space, pools) = (SPACE_REPORTED.as_bytes(), pools("", ""));
        let read =
            |health: &[u8], space, pools: &str, pool| read(health, space, pools.as_bytes(), pool);
        assert_eq!(read(b"{}", space, &pools, "rbd"), None);
        assert_eq!(read(b"", b"", "", "rbd"), None);
        let well = br#"{"checks":{}}"#;
        assert!(read(well, space, &pools, "rbd").is_some());
        assert_eq!(read(well, space, &pools, "none"), None);
        assert_eq!(read(well, space, "[]", "rbd"), None);
    }
}
