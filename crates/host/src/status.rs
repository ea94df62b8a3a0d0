//! What is reported of a volume and its paths.

use env::CoreId;
use iscsi_initiator::unit::PortStatus;

use paths::health::{Cause, State, Wanted};
use paths::policy::Use;
use serde::{Deserialize, Deserializer, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A volume as it is now. What a program of another version does not report is empty or 0.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The URL that it was opened by.
    pub url: String,
    /// Target and LUN, wherever the target is: `iqn.../0`.
    pub unit_path: String,
    /// The unit's best name: `naa.6001...`.
    pub unit: String,
    /// What the target says of it.
    pub description: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes in a logical block.
    pub block_size: u32,
    /// The policy in force.
    pub policy: String,
    /// The planner chooses the paths.
    pub planned: bool,
    /// What has to show that a lost path is at rest.
    pub write_failover: String,
    /// What the operator should know.
    pub notices: Vec<String>,
    /// Every path, in the plan's order.
    pub paths: Vec<PathStatus>,
}

/// A path as it is now.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct PathStatus {
    /// Host port and target port: `eth0>10.0.0.1:3260`.
    pub path: String,
    /// The host's address.
    pub from: IpAddr,
    /// The target's.
    pub portal: SocketAddr,
    /// Where it stands.
    #[serde(deserialize_with = "known_state")]
    pub state: PathState,
    /// What the plan wants of it: `active`, `hot` or `cold`.
    pub wanted: Wanted,
    /// What keeps it from working, else the plan's reason; for people, may be empty.
    pub why: String,
    /// Operations carried since the start.
    pub ios: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Operations that read or asked.
    pub reads: u64,
    /// Operations that changed something.
    pub writes: u64,
    /// Bytes that reads brought over this path since the volume was opened.
    pub read_bytes: u64,
    /// Bytes that writes took over this path since the volume was opened.
    pub written_bytes: u64,
    /// Operations in flight.
    pub in_flight: u32,
    /// Their bytes.
    pub bytes_in_flight: u64,
    /// Operations whose time was taken (all of them; of a volume's only path one in sixteen), and
    /// the microseconds that they took together: differences of two samples make a mean latency.
    pub timed: u64,
    /// As above.
    pub timed_us: u64,
    /// Which session it uses: paths of this program's volumes with the same name here share one,
    /// and show the same retransmissions.
    pub session: String,
    /// TCP segments that the session and those before it have sent again.
    pub retransmits: u64,
    /// Round-trip time that the system measures, in microseconds; absent without a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<u32>,
}

/// Where a path stands, in a word: one of [`PATH_STATES`].
pub type PathState = &'static str;

/// What may be said of where a path stands.
pub const PATH_STATES: [&str; 9] = [
    "active",
    "standby",
    "marginal",
    "proving",
    "connecting",
    "cold",
    "down",
    "quarantined",
    "disabled",
];

fn known_state<'de, D: Deserializer<'de>>(from: D) -> Result<PathState, D::Error> {
    let text = String::deserialize(from)?;
    let known = PATH_STATES.into_iter().find(|state| *state == text);
    known.ok_or_else(|| serde::de::Error::unknown_variant(&text, &PATH_STATES))
}

impl Default for PathStatus {
    /// A path of which nothing is known.
    fn default() -> Self {
        let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Self {
            path: String::new(),
            from: nowhere,
            portal: SocketAddr::new(nowhere, 0),
            state: "cold",
            wanted: Wanted::default(),
            why: String::new(),
            ios: 0,
            bytes: 0,
            reads: 0,
            writes: 0,
            read_bytes: 0,
            written_bytes: 0,
            in_flight: 0,
            bytes_in_flight: 0,
            timed: 0,
            timed_us: 0,
            session: String::new(),
            retransmits: 0,
            round_trip_us: None,
        }
    }
}

/// Where a path stands, in a word.
fn word(path: &multipath::PathStatus) -> &'static str {
    match (path.state, path.usage) {
        (State::Up, Use::Active) => "active",
        (State::Up, _) if path.marginal => "marginal",
        (State::Up, Use::Standby | Use::No) => "standby",
        (State::Proving, _) => "proving",
        (State::Connecting, _) => "connecting",
        (State::Down(Cause::NotWanted), _) => "cold",
        (State::Down(Cause::New), _) if path.wanted == Wanted::Cold => "cold",
        (State::Down(_), _) => "down",
        (State::Quarantined, _) => "quarantined",
        (State::Disabled, _) => "disabled",
    }
}

fn why(path: &multipath::PathStatus, port: &PortStatus, planned: Option<&str>) -> String {
    let state = match path.state {
        State::Down(cause) => Some(cause.to_string()),
        State::Quarantined => Some("it showed another unit".to_owned()),
        State::Disabled => Some("the administrator has switched it off".to_owned()),
        State::Proving => Some("it is watched before it is trusted".to_owned()),
        State::Connecting => Some("it logs in".to_owned()),
        State::Up if path.marginal => Some("it works badly".to_owned()),
        State::Up => None,
    };
    let mut parts: Vec<String> = Vec::new();
    parts.extend(state);
    parts.extend(port.error.clone());
    if parts.is_empty() {
        parts.extend(planned.map(str::to_owned));
    }
    parts.join(": ")
}

/// What names a path.
pub(crate) struct Ends {
    pub(crate) path: String,
    pub(crate) from: IpAddr,
    pub(crate) portal: SocketAddr,
}

pub(crate) fn path_status(
    core: CoreId,
    ends: &Ends,
    path: &multipath::PathStatus,
    port: &PortStatus,
    planned: Option<&str>,
) -> PathStatus {
    PathStatus {
        path: ends.path.clone(),
        from: ends.from,
        portal: ends.portal,
        state: word(path),
        wanted: path.wanted,
        why: why(path, port, planned),
        ios: port.reads + port.writes,
        bytes: port.read_bytes + port.written_bytes,
        reads: port.reads,
        writes: port.writes,
        read_bytes: port.read_bytes,
        written_bytes: port.written_bytes,
        in_flight: path.in_flight,
        bytes_in_flight: path.bytes_in_flight,
        timed: path.ended.0,
        timed_us: u64::try_from(path.ended.1.as_micros()).unwrap_or(u64::MAX),
        session: format!("{}-{}", core.0, port.session),
        retransmits: port.retransmitted,
        round_trip_us: port.measured.map(|it| it.round_trip_us),
    }
}
