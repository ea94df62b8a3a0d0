//! Paths that join a volume: when it is opened, and later.

use crate::error::HostError;
use crate::home::HomePath;
use crate::isids::Isids;
use crate::ports::{interface, nic_record};
use crate::prepare::{Candidate, Prepared};
use crate::status::Ends;
use env::CoreHandle;
use iscsi::Lun;
use iscsi_initiator::unit::{PathConfig, Unit, UnitPort};
use multipath::PathSpec;
use paths::health::Wanted;
use paths::policy::{Settings, Use};
use paths::{Facts, PathName, Speed};
use std::rc::Rc;
use std::time::Duration;

/// Commands in flight on one path, before a target's window and BUSY say otherwise.
const WINDOW: u32 = 1024;

/// How to log in at each of them.
pub(crate) async fn configs(
    prepared: &Prepared,
    candidates: &[Candidate],
    isids: &Isids,
    (lun, command_timeout): (Lun, Duration),
) -> Result<Vec<PathConfig>, HostError> {
    let mut found = Vec::new();
    for it in candidates {
        let isid = isids.of_path(it.from, it.portal).await.map_err(|error| {
            HostError::failed(
                format!("the ISID of {} cannot be kept: {error}", it.name),
                "name a directory that this user may write: --initiator-state DIR",
            )
        })?;
        let mut login = prepared.login.clone();
        login.isid = isid;
        login.nic = nic_record(&prepared.facts, &it.name.host, it.from, prepared.planned);
        found.push(PathConfig {
            portal: it.portal,
            from: Some(it.from),
            interface: interface(prepared.follower.machine(), it.from),
            login,
            lun,
            command_timeout,
        });
    }
    Ok(found)
}

/// Numbers of ports for the policies: whatever becomes of the list of ports, a port keeps its own.
#[derive(Default)]
pub(crate) struct PortNumbers {
    hosts: Vec<String>,
    targets: Vec<String>,
}

fn number(names: &mut Vec<String>, name: &str) -> u16 {
    let at = names.iter().position(|it| it == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    u16::try_from(at).unwrap_or(u16::MAX)
}

/// The paths for the layer, and for whoever asks for their status.
pub(crate) fn paths<'a>(
    core: &CoreHandle,
    facts: &Facts,
    numbers: &mut PortNumbers,
    joining: impl Iterator<Item = (&'a Candidate, PathConfig)>,
    unit: &Rc<Unit>,
) -> (Vec<HomePath>, Vec<(PathName, PathSpec)>) {
    let (mut paths, mut specs) = (Vec::new(), Vec::new());
    for (rank, (it, config)) in joining.enumerate() {
        let host = facts
            .hosts
            .iter()
            .position(|port| port.name == it.name.host);
        let target = facts
            .targets
            .iter()
            .position(|port| port.name == it.name.target);
        let host_speed = host.and_then(|at| facts.hosts[at].speed);
        let target_speed = target.and_then(|at| facts.targets[at].speed);
        let bytes = |speed: Option<Speed>| speed.unwrap_or(it.speed).0 / 8;
        let settings = Settings {
            usage: Use::No,
            rank: u32::try_from(rank).unwrap_or(u32::MAX),
            share: 1,
            throughput: 1,
            host_port: number(&mut numbers.hosts, &it.name.host),
            target_port: number(&mut numbers.targets, &it.name.target),
            speed: bytes(None).max(1),
            host_speed: bytes(host_speed).max(1),
            target_speed: bytes(target_speed).max(1),
            window: WINDOW,
        };
        let port = UnitPort::new(core, config, unit);
        let spec = PathSpec {
            port: Rc::new(port.clone()),
            settings,
            // Without a planner everything carries I/O; with one, the layer asks it.
            wanted: Wanted::Active,
        };
        paths.push(HomePath {
            name: it.name.clone(),
            port,
            ends: Ends {
                path: it.name.to_string(),
                from: it.from,
                portal: it.portal,
            },
        });
        specs.push((it.name.clone(), spec));
    }
    (paths, specs)
}
