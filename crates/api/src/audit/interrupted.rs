//! Work whose end nobody has entered, because the daemon ended first.

use super::Audit;
use controller::Handle;
use events::{Entry, Filter, WantedEntries, unended};
use manifest::code::Code;
use manifest::job::{JobState, JobView};
use manifest::problem::Problem;

/// So many entries of jobs are read, the newest.
const LIMIT: u64 = 1_000;

/// How a job ended, as an entry says it; `None`: it runs.
fn ended(begun: Entry, job: Option<&JobView>) -> Option<Entry> {
    let code = match job.map(|job| job.state) {
        Some(JobState::Running) => return None,
        Some(JobState::Finished) => None,
        Some(JobState::Cancelled) => Some(Code::JobCancelled),
        Some(JobState::Failed) => Some(Code::Internal),
        // Of a job that nobody knows any more nothing else is known either.
        Some(JobState::Interrupted) | None => Some(Code::Stopping),
    };
    Some(Entry {
        status: code.map_or(200, |code| Problem::new(code, "").status),
        code: code.map(|code| code.to_string()),
        after: serde_json::Value::Null,
        ..begun
    })
}

/// Enters how work ended that had begun before this start.
pub(crate) async fn enter_interrupted(audit: Audit, handle: Handle) {
    let jobs = handle.call(|controller| Box::pin(async move { controller.jobs() }));
    let Ok(jobs) = jobs.await else { return };
    if jobs.is_empty() {
        return;
    }
    let filter = Filter {
        column: "job",
        is: "*".to_owned(),
    };
    let wanted = WantedEntries {
        filters: vec![filter],
        limit: LIMIT,
        ..WantedEntries::default()
    };
    let read = audit.records.events().audited(wanted).await;
    for begun in unended(read.unwrap_or_default()) {
        let job = jobs.iter().find(|job| Some(job.id) == begun.job);
        if let Some(entry) = ended(begun, job) {
            audit.enter(entry).await;
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_end_of_each_job_is_entered_once_the_daemon_is_back() {
        let begun: Entry = serde_json::from_value(json!({
            "who": "eve", "via": "session", "method": "POST", "path": "/api/v1/luns", "status": 202,
            "after": { "job": 7 }, "job": 7, "request_id": "r",
        }))
        .unwrap();
        let of = |state: &str| {
            let job: JobView = serde_json::from_value(json!({
                "id": 7, "kind": "lun_create", "object": "l", "state": state, "cancelling": false,
                "unit": "bytes", "done": 0, "total": 1, "percent": 0, "rate": 0, "log": [],
                "started": "2026-01-01T00:00:00.000Z", "by": "eve",
            }))
            .unwrap();
            ended(begun.clone(), Some(&job)).map(|it| (it.status, it.code, it.request_id))
        };
        let wanted =
            |status, code: Option<&str>| Some((status, code.map(str::to_owned), "r".to_owned()));
        assert_eq!(of("running"), None);
        assert_eq!(of("finished"), wanted(200, None));
        assert_eq!(of("cancelled"), wanted(409, Some("CWY5035")));
        assert_eq!(of("interrupted"), wanted(503, Some("CWY5005")));
        let gone = ended(begun.clone(), None).unwrap();
        assert_eq!((gone.status, gone.after), (503, json!(null)));
    }
}
