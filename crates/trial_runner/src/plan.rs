//! What a run would touch, and whether it may.

use controller::{Found, Handle};
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::size::rounded;
use trials::{Kind, PlanView, Spec};
use units::text::counted;

/// A plan, and what of this node it is of.
pub struct Plan {
    /// For people.
    pub view: PlanView,
    /// The LUN, where it is of one of this node.
    pub found: Option<Found>,
    /// Why it is not done without force.
    pub refusal: Option<Problem>,
}

/// What a run would touch.
///
/// # Errors
/// There is no such LUN, or it cannot be reached.
pub async fn plan(handle: &Handle, spec: &Spec) -> Result<Plan, Problem> {
    let mut view = PlanView {
        target: spec.kind.target(),
        kind: spec.kind.word().to_owned(),
        writes: spec.writes(),
        ..PlanView::default()
    };
    let found = match &spec.kind {
        Kind::Lun(name) => {
            let name = name.clone();
            let found = handle.call(move |controller| {
                Box::pin(async move { controller.inspect_for_guest(&name).await })
            });
            Some(found.await??)
        }
        Kind::Memory(_) | Kind::Url(_) => None,
    };
    let target = match (&spec.kind, &found) {
        (Kind::Lun(_), Some(found)) => url_for_people(found),
        _ => spec.kind.target(),
    };
    view.command_line = spec.command_line(&target);
    view.touches = touches(spec, found.as_ref());
    let refusal = spec.destroys().then(|| refusal(spec, found.as_ref()));
    if let Some(refusal) = &refusal {
        view.refusal = Some(refusal.detail.clone());
        view.confirm.clone_from(&refusal.confirm);
        view.losses.clone_from(&refusal.losses);
        view.hits.clone_from(&refusal.hits);
    }
    Ok(Plan {
        view,
        found,
        refusal,
    })
}

/// The LUN as a host would name it.
fn url_for_people(found: &Found) -> String {
    let (target, number) = match &found.granted {
        Some((target, number)) => (target.as_str(), *number),
        None => ("IQN", 0),
    };
    url(found, target, number)
}

/// Through all portals.
pub(crate) fn url(found: &Found, target: &str, number: u16) -> String {
    let portals = found.portals.iter().map(ToString::to_string);
    let portals: Vec<String> = portals.collect();
    format!("iscsi://{}/{target}/{number}", portals.join(","))
}

fn touches(spec: &Spec, found: Option<&Found>) -> Vec<String> {
    let load = &spec.load;
    let verb = match (load.write_percent, load.fill) {
        (0, false) => "reads",
        (100, _) => "writes",
        _ => "reads and writes",
    };
    let mut out = Vec::new();
    match (&spec.kind, found) {
        (Kind::Lun(name), Some(found)) => {
            let size = found.size.bytes();
            let part = match load.region_bytes {
                Some(bytes) if bytes < size => format!("{} of ", rounded(bytes)),
                _ => String::new(),
            };
            let portals: Vec<String> = found.portals.iter().map(ToString::to_string).collect();
            out.push(format!(
                "{verb} {part}LUN {name} ({}) through {}",
                rounded(size),
                portals.join(", ")
            ));
            out.push(
                "as an initiator of its own that is let in for the run, and is in no object"
                    .to_owned(),
            );
            if !found.sessions.is_empty() {
                out.push("hosts that use the LUN meanwhile have less of it".to_owned());
            }
        }
        (Kind::Memory(bytes), _) => {
            out.push(format!("{verb} {} of memory of its own", rounded(*bytes)));
        }
        (Kind::Url(url), _) | (Kind::Lun(url), None) => {
            out.push(format!("{verb} {url}, from this machine"));
        }
    }
    let seconds = u64::from(load.seconds) + u64::from(load.warm_up_seconds);
    out.push(format!(
        "for {}, with {} on processors of this machine at a low priority",
        counted(seconds, "second"),
        counted(load.threads.into(), "thread")
    ));
    out
}

/// Why a run that writes is not done without force.
fn refusal(spec: &Spec, found: Option<&Found>) -> Problem {
    let target = spec.kind.target();
    let (what, size) = match (&spec.kind, found) {
        (Kind::Lun(name), Some(found)) => (
            format!("LUN {name}"),
            format!(" ({})", found.size.rounded()),
        ),
        _ => (target.clone(), String::new()),
    };
    let sessions = found.map_or(&[][..], |found| found.sessions.as_slice());
    let hits = sessions.iter().map(|(host, count)| {
        format!(
            "host {host} is logged in to it ({})",
            counted(*count, "session")
        )
    });
    let hits: Vec<String> = hits.collect();
    let in_use = match hits.len() {
        0 => "",
        _ => ", which hosts use now",
    };
    let detail = format!("the run writes to {what}{in_use}: what is on it is lost");
    Problem::new(Code::WouldLoseData, detail)
        .hint("measure reads only (write_percent 0), or repeat with ?force=true where nothing needs what is there")
        .confirm(&target, vec![format!("all that is on {what}{size}")])
        .hits(hits)
}
