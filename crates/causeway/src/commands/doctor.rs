//! `causeway doctor`: best practice as read-only checks of this host and of the routes to a target.

use crate::args::Common;
use crate::completion::{CompletedArgument, Kind, POLICIES};
use clap::Args;
use doctor::{InspectError, Pools, Report, Scene};
use env::CoreHandle;
use machine::Roots;
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::view::StatusView;
use output::Output;
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
    /// Check the node's machine instead, as its daemon sees it
    #[arg(long, conflicts_with_all = ["url", "from"])]
    node: bool,
    #[command(flatten)]
    options: host::Options,
}

/// Checks, and prints what was found.
pub(crate) fn run(common: &Common, flags: &DoctorFlags, output: &Output) -> Result<(), Problem> {
    if flags.node {
        let of_node: Report = common.client()?.get("/api/v1/doctor")?;
        return report(&of_node, flags, output);
    }
    let url = flags
        .url
        .as_deref()
        .map(str::parse::<host::Url>)
        .transpose();
    let url = url.map_err(|error| {
        Problem::new(Code::VolumeUsage, error.to_string())
            .hint("such as iscsi://10.0.0.1/iqn.2026-11.io.causeway:vm01/0")
    })?;
    let options = flags.options.clone();
    let seen = doctor::on_a_core(move |core| {
        Box::pin(async move { scene(&core, url.as_ref(), &options).await })
    });
    let seen = seen.and_then(|scene| scene);
    let mut scene = seen.map_err(|error| not_seen(&error))?;
    pools(common, &mut scene);
    report(&doctor::examine(&scene), flags, output)
}

/// Prints it; what is wrong is the command's own failure.
fn report(report: &Report, flags: &DoctorFlags, output: &Output) -> Result<(), Problem> {
    output.show(report, |report| report.text(flags.all));
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
            doctor::probe_routes(core, &mut scene, &prepared.facts, &plan).await;
            scene.plan = Some((prepared.facts, plan));
        }
        Err(error) => scene.target_error = Some((error.cause, error.next_step)),
    }
    Ok(scene)
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
        let space = doctor::pool_space(&pool.name, pool.used, pool.available);
        scene.space.extend(space);
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
