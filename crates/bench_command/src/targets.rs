//! Opening targets, and the safety check before anything is written.

use crate::open::{initiator_options, open};
use crate::problem::of_run;
use backends::{Provisioning, create_file};
use bench::mark::{self, Found};
use bench::{Options, Target};
use env::CoreHandle;
use manifest::code::Code;
use manifest::problem::Problem;
use std::path::Path;
use std::sync::Arc;
use units::ByteCount;

/// The targets of a run, ready for it.
#[derive(Default)]
pub(crate) struct Ready {
    pub(crate) targets: Vec<Target>,
    /// Those that have paths.
    pub(crate) attached: Vec<Arc<host::Attached>>,
}

fn failed(name: &str, why: &str) -> Problem {
    Problem::new(Code::TargetCannotBeOpened, format!("{name}: {why}"))
        .hint("check the target, then try again")
}

fn is_file(name: &str) -> bool {
    !name.starts_with("memory:") && !name.contains("://")
}

/// Makes the files that `-c` asks for; says which are new.
async fn create(core: &CoreHandle, options: &Options) -> Result<Vec<String>, Problem> {
    let Some(size) = options.create else {
        return Ok(Vec::new());
    };
    let mut made = Vec::new();
    for name in options.targets.iter().filter(|name| is_file(name)) {
        if Path::new(name).exists() {
            continue;
        }
        let size = ByteCount(size + mark::RESERVED);
        let done = create_file(core, Path::new(name), size, Provisioning::Thin).await;
        done.map_err(|error| failed(name, &format!("cannot be made: {error}")))?;
        made.push(name.clone());
    }
    Ok(made)
}

/// Opens all targets; refuses to write where anything could be lost; writes marks.
pub(crate) async fn open_all(core: &CoreHandle, options: &Options) -> Result<Ready, Problem> {
    if options.targets.is_empty() {
        return Err(Problem::new(Code::BenchUsage, "no target")
            .hint("name a file, a block device, memory:SIZE or an iscsi:// URL"));
    }
    let wishes = initiator_options(&options.initiator)?;
    let made = create(core, options).await?;
    let writes = options.write_percent > 0 || options.fill;
    let (mut targets, mut to_mark, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    let mut attached = Vec::new();
    for name in &options.targets {
        let opened = open(core, name, &wishes).await?;
        attached.extend(opened.attached);
        let mut target = Target {
            name: opened.name,
            volume: opened.volume,
            marked: false,
        };
        if !opened.private {
            let found = mark::inspect(core, &target.volume)
                .await
                .map_err(|why| failed(name, &why))?;
            match found {
                Found::Bench => target.marked = true,
                Found::Other(what) if writes => {
                    target.marked = true;
                    to_mark.push(targets.len());
                    if !made.contains(name) {
                        let size = target.volume.shape().byte_count().0;
                        lost.push(mark::refusal(name, size, &what));
                    }
                }
                Found::Other(_) => {}
            }
        }
        check(options, &target)?;
        targets.push(target);
    }
    if !lost.is_empty() && !options.destroy {
        return Err(Problem::new(Code::BenchWouldDestroy, lost.join("; ")));
    }
    for index in to_mark {
        let target = &targets[index];
        mark::write(core, &target.volume)
            .await
            .map_err(|why| failed(&target.name, &why))?;
    }
    for target in &targets {
        let new = made.contains(&target.name) && options.create.is_some();
        if new || options.fill {
            bench::fill(core, options, target).await.map_err(of_run)?;
        }
    }
    Ok(Ready { targets, attached })
}

/// The options fit the target; asked before anything is written.
fn check(options: &Options, target: &Target) -> Result<(), Problem> {
    let fits = bench::region(options, target);
    fits.map(|_| ()).map_err(of_run)
}
