//! `causeway path`: which paths there are, which are used, and why.
//!
//! `plan` inspects this host and asks the target where it listens; `ls`, `explain` and `policy` ask
//! the programs that run (`attach`, `bench`) through their sockets.

pub(crate) mod running;
mod show;

use crate::completion::{CompletedArgument, Kind, POLICIES};
use crate::listed::{Listed, When};
use bench_command::open::of_host;
use clap::{Args, Subcommand};
use env::real::{Cores, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId, LocalFuture};
use host::view::{ExplainedView, FailedLoginView, LoginView, PlanView, PolicyView, ReleasedView};
use host::{Options, Prepared, Url};
use manifest::code::Code;
use manifest::problem::Problem;
use output::Output;
use paths::{Element, PathName, Plan, Policy};
use units::text::counted;

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["path", "plan"], "policy", Kind::Words(POLICIES)),
    (&["path", "explain"], "policy", Kind::Words(POLICIES)),
    (&["path", "policy"], "policy", Kind::Words(POLICIES)),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["path", "ls"], When::Always, show::COLUMNS)];

/// What to do with paths.
#[derive(Subcommand, Debug)]
pub(crate) enum PathVerb {
    /// Which paths to a LUN would be used, and why; with --what-if, after the loss of something
    Plan(PlanFlags),
    /// The paths of the volumes that running programs have open
    Ls {
        /// Only those of this LUN
        #[arg(value_name = "URL")]
        url: Option<Url>,
    },
    /// Why a path is used or not, and what limits a stream on it
    Explain {
        /// Such as 'eth0>10.0.0.1:3260', as `path ls` and `path plan` show it
        #[arg(value_name = "PATH")]
        path: PathName,
        /// Where no program has it open: plan it for this LUN
        #[arg(value_name = "URL")]
        url: Option<Url>,
        #[command(flatten)]
        options: Box<Options>,
    },
    /// Let a path out of quarantine: it logs in again, and joins if it shows the unit that the
    /// other paths show
    Release {
        /// Such as 'eth0>10.0.0.1:3260', as `path ls` shows it
        #[arg(value_name = "PATH")]
        path: PathName,
        /// Only for this LUN
        #[arg(value_name = "URL")]
        url: Option<Url>,
    },
    /// Choose how commands are spread over the paths of a LUN: at once in running programs, and
    /// kept for later ones
    Policy {
        /// The LUN
        #[arg(value_name = "URL")]
        url: Url,
        /// As --policy takes it
        #[arg(value_name = "NAME[:ARG]")]
        policy: Policy,
        /// Where names, ISIDs and policies are kept
        #[arg(
            long,
            env = "CAUSEWAY_INITIATOR_STATE",
            hide_env_values = true,
            value_name = "DIR"
        )]
        initiator_state: Option<std::path::PathBuf>,
    },
}

/// What to plan.
#[derive(Args, Debug)]
pub(crate) struct PlanFlags {
    /// The LUN
    #[arg(value_name = "URL")]
    url: Url,
    /// The plan after the loss of this: host-port:NAME, host-card:NAME, target-port:NAME,
    /// target-card:NAME, controller:NAME, fabric:NAME or path:NAME; repeatable
    #[arg(long, value_name = "ELEMENT")]
    what_if: Vec<Element>,
    #[command(flatten)]
    options: Box<Options>,
}

/// Runs the command.
pub(crate) fn run(verb: &PathVerb, output: &Output) -> Result<(), Problem> {
    match verb {
        PathVerb::Plan(flags) => plan(flags, output),
        PathVerb::Ls { url } => {
            let volumes = running::volumes(url.as_ref())?;
            output.list(&volumes, |volumes| show::volumes(volumes));
            Ok(())
        }
        PathVerb::Explain { path, url, options } => explain(path, url.as_ref(), options, output),
        PathVerb::Release { path, url } => release(path, url.as_ref(), output),
        PathVerb::Policy {
            url,
            policy,
            initiator_state,
        } => set_policy(url, *policy, initiator_state.clone(), output),
    }
}

fn plan(flags: &PlanFlags, output: &Output) -> Result<(), Problem> {
    let what_if = flags.what_if.clone();
    let document_of = move |prepared: &Prepared, plan: &Plan| {
        for element in &what_if {
            known(element, plan)?;
        }
        if what_if.is_empty() {
            return Ok(PlanView::new(prepared, plan, &[]));
        }
        let after =
            paths::plan::what_if(&prepared.facts, &prepared.planner, &plan.active(), &what_if);
        Ok(PlanView::new(prepared, &after, &what_if))
    };
    let (url, options) = (flags.url.clone(), flags.options.clone());
    let (mut document, tried) = on_a_core(move |core| {
        Box::pin(async move {
            let of_url = |error| of_host(&url.to_string(), error);
            let prepared = host::prepare(&core, &url, &options).await;
            let prepared = prepared.map_err(of_url)?;
            let plan = prepared.plan();
            let document = document_of(&prepared, &plan)?;
            // A plan of paths on which nobody gets in is worth reading, and no success.
            let tried = host::try_logins(&core, &prepared, &plan, &options).await;
            Ok::<_, Problem>((document, tried.map_err(of_url)))
        })
    })??;
    let failed = match &tried {
        Ok(failed) => failed.clone(),
        Err(_) => Vec::new(),
    };
    let failed = failed
        .into_iter()
        .map(|(path, why)| FailedLoginView { path, why });
    document.login = Some(LoginView {
        works: tried.is_ok(),
        failed: failed.collect(),
    });
    output.show(&document, show::plan);
    tried.map(drop)
}

/// Makes a plan for a LUN that need not be open.
fn planned(url: &Url, options: &Options) -> Result<PlanView, Problem> {
    let (url, options) = (url.clone(), options.clone());
    on_a_core(move |core| {
        Box::pin(async move {
            let prepared = host::prepare(&core, &url, &options).await;
            let prepared = prepared.map_err(|error| of_host(&url.to_string(), error))?;
            Ok(PlanView::new(&prepared, &prepared.plan(), &[]))
        })
    })?
}

pub(crate) fn on_a_core<T: Send + 'static>(
    work: impl FnOnce(CoreHandle) -> LocalFuture<T> + Send + 'static,
) -> Result<T, Problem> {
    let config = RuntimeConfig {
        cores: Cores::List(vec![0]),
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::start(&config);
    let runtime = runtime.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    Ok(runtime.run(CoreId(0), work))
}

/// An element that no path stands on would change nothing, and nobody would notice the mistake.
fn known(element: &Element, plan: &Plan) -> Result<(), Problem> {
    let of_table = plan.contingencies.iter().map(|it| &it.lost);
    let all: Vec<&Element> = of_table.collect();
    let is_path = matches!(element, Element::Path(name)
        if plan.paths.iter().any(|it| it.path.to_string() == *name));
    if is_path || all.contains(&element) {
        return Ok(());
    }
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    let detail = format!("no path stands on {element}");
    Err(Problem::new(Code::VolumeUsage, detail).hint(format!("there are {}", all.join(", "))))
}

fn explain(
    path: &PathName,
    url: Option<&Url>,
    options: &Options,
    output: &Output,
) -> Result<(), Problem> {
    let found = running::explained(path, url)?;
    let document = match (found, url) {
        (Some(found), _) => found,
        (None, Some(url)) => {
            let plan = planned(url, options)?;
            let of_plan = plan.path(path).ok_or_else(|| no_path(path, &plan))?;
            ExplainedView::planned(url.to_string(), of_plan.clone())
        }
        (None, None) => {
            let detail = format!("no running program has a path {path}");
            return Err(Problem::new(Code::NotFound, detail).hint(
                "`causeway path ls` shows paths; with a URL behind the path it is planned instead",
            ));
        }
    };
    output.show(&document, show::explained);
    Ok(())
}

fn no_path(path: &PathName, plan: &PlanView) -> Problem {
    let names = plan.paths.iter().map(|it| it.planned.path.to_string());
    let names: Vec<String> = names.collect();
    Problem::new(Code::NotFound, format!("there is no path {path}"))
        .hint(format!("there are {}", names.join(", ")))
}

fn release(path: &PathName, url: Option<&Url>, output: &Output) -> Result<(), Problem> {
    let released = running::release(path, url)?;
    if released == 0 {
        let detail = format!("no running program has a path {path} in quarantine");
        return Err(Problem::new(Code::NotFound, detail)
            .hint("`causeway path ls` shows paths and their states"));
    }
    let document = ReleasedView {
        path: path.clone(),
        released,
    };
    output.show(&document, |_| {
        format!(
            "{path} logs in again for {}; `causeway path ls` shows what becomes of it\n",
            counted(released, "open volume")
        )
    });
    Ok(())
}

fn set_policy(
    url: &Url,
    policy: Policy,
    state: Option<std::path::PathBuf>,
    output: &Output,
) -> Result<(), Problem> {
    let running = running::set_policy(url, policy)?;
    let (kept, options) = (
        url.clone(),
        Options {
            initiator_state: state,
            ..Options::default()
        },
    );
    on_a_core(move |core| {
        Box::pin(async move {
            let done = host::keep_policy(&core, &kept, &options, policy).await;
            done.map_err(|error| of_host(&kept.to_string(), error))
        })
    })??;
    let document = PolicyView {
        url: url.to_string(),
        policy,
        volumes: running,
    };
    output.show(&document, |_| {
        format!(
            "{policy} is kept for {}, and in force in {}\n",
            url.unit(),
            counted(running, "open volume")
        )
    });
    Ok(())
}
