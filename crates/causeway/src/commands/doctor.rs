//! `causeway doctor`: best practice as read-only checks of this host and of the routes to a target.

use crate::args::Common;
use crate::completion::{CompletedArgument, Kind, POLICIES};
use crate::output::Output;
use clap::Args;
use doctor::{InspectError, Pools, Scene, Space};
use env::real::{Cores, Driver, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId};
use machine::Roots;
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::view::StatusView;
use std::net::IpAddr;
use units::text::counted;

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] =
    &[(&["doctor"], "policy", Kind::Words(POLICIES))];

/// What to check.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorFlags {
    /// iscsi://HOST[:PORT][,HOST[:PORT]...]/IQN/LUN: check the routes to it too
    #[arg(value_name = "URL")]
    url: Option<String>,
    /// Report what is well, too, and what cannot be checked from here
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    options: host::Options,
}

/// Checks, and prints what was found.
pub(crate) fn run(common: &Common, flags: &DoctorFlags, output: &Output) -> Result<(), Problem> {
    let url = flags
        .url
        .as_deref()
        .map(str::parse::<host::Url>)
        .transpose();
    let url = url.map_err(|error| {
        Problem::new(Code::VolumeUsage, error.to_string())
            .hint("such as iscsi://10.0.0.1/iqn.2026-11.io.causeway:vm01/0")
    })?;
    let runtime = Runtime::start(&RuntimeConfig {
        cores: Cores::List(vec![first_processor()]),
        driver: Driver::Poll,
        ..RuntimeConfig::default()
    });
    let runtime = runtime.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let options = flags.options.clone();
    let scene = runtime.run(CoreId(0), move |core| {
        Box::pin(async move { scene(&core, url.as_ref(), &options).await })
    });
    let mut scene = scene.map_err(|error| not_seen(&error))?;
    pools(common, &mut scene);
    let report = doctor::examine(&scene);
    output.show(&report, |report| report.text(flags.all));
    if report.problems == 0 {
        return Ok(());
    }
    let found = counted(report.problems as u64, "problem");
    let detail = format!("{found} found, see above");
    Err(Problem::new(Code::DoctorFound, detail))
}

fn not_seen(error: &InspectError) -> Problem {
    let detail = error.to_string();
    match error {
        InspectError::Port(_) => {
            Problem::new(Code::VolumeUsage, detail).hint("--from takes an address or an interface")
        }
        InspectError::System(_) => Problem::new(Code::Internal, detail)
            .hint("see that this process may ask the kernel for its interfaces (netlink)"),
    }
}

fn first_processor() -> usize {
    let allowed = rustix::thread::sched_getaffinity(None);
    let allowed = allowed.unwrap_or_default();
    let mut all = 0..rustix::thread::CpuSet::MAX_CPU;
    all.find(|number| allowed.is_set(*number)).unwrap_or(0)
}

async fn scene(
    core: &CoreHandle,
    url: Option<&host::Url>,
    options: &host::Options,
) -> Result<Scene, InspectError> {
    let mut scene = doctor::inspect(core, &Roots::default(), &options.from).await?;
    let Some(url) = url else {
        return Ok(scene);
    };
    match host::prepare(core, url, options).await {
        Ok(prepared) => {
            let plan = prepared.plan();
            routes(core, &mut scene, &prepared.facts, &plan).await;
            scene.plan = Some((prepared.facts, plan));
        }
        Err(error) => scene.target_error = Some((error.cause, error.next_step)),
    }
    Ok(scene)
}

/// The routes that the plan could use; a portal that none leads to is tried from the first port of
/// its family.
async fn routes(
    core: &CoreHandle,
    scene: &mut Scene,
    facts: &paths::Facts,
    plan: &paths::Plan,
) -> Option<()> {
    let usable: Vec<(String, IpAddr, std::net::SocketAddr)> = plan
        .paths
        .iter()
        .filter_map(|path| Some((path.path.host.clone(), path.source?, path.portal?)))
        .collect();
    let used = |name: &str| usable.iter().any(|it| it.0 == name);
    scene.ports = facts
        .hosts
        .iter()
        .filter(|it| used(&it.name))
        .cloned()
        .collect();
    for (name, from, portal) in &usable {
        let port = facts.hosts.iter().find(|it| it.name == *name)?;
        scene
            .routes
            .push(doctor::probe_route(core, port, *from, *portal).await);
    }
    for portal in facts.targets.iter().flat_map(|it| it.portals.iter()) {
        let is_tried = usable.iter().any(|it| it.2 == *portal);
        let addresses = facts.hosts.iter().flat_map(|port| {
            let family = port.addresses.iter();
            family
                .filter(|at| at.ip.is_ipv4() == portal.is_ipv4())
                .map(move |at| (port, at.ip))
        });
        let mut addresses = addresses;
        if let (false, Some((port, from))) = (is_tried, addresses.next()) {
            scene
                .routes
                .push(doctor::probe_route(core, port, from, *portal).await);
        }
    }
    Some(())
}

/// The pools of the daemon here, if one answers.
fn pools(common: &Common, scene: &mut Scene) {
    let client = common.client();
    let status = client.and_then(|client| client.get::<StatusView>("/api/v1/status"));
    let Ok(status) = status else {
        return;
    };
    scene.pools = Pools::Reported;
    for pool in &status.pools {
        let used = doctor::used(pool.used, pool.available);
        scene.space.extend(used.map(|used_percent| Space {
            name: format!("pool {}", pool.name),
            used_percent,
        }));
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_system_that_reports_nothing_is_no_mistake_in_the_command() {
        let silent = InspectError::System(std::io::ErrorKind::PermissionDenied.into());
        assert_eq!(not_seen(&silent).code, Code::Internal);
        let unknown = InspectError::Port(machine::UnknownPort {
            asked: "eth9".to_owned(),
            known: Vec::new(),
        });
        assert_eq!(not_seen(&unknown).code, Code::VolumeUsage);
    }
}
