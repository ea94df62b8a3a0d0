//! `GET /support/bundle`: what the API answers, what the system says and the end of the log, in one
//! file without secrets.

use crate::alerts::Alerting;
use crate::auth::{Gate, TOKEN_FILE};
use crate::describe::{Operation, Paths, Reply, Schemas};
use crate::edit::ask;
use crate::outside::now;
use crate::plain_answer::problem_response;
use crate::records::Records;
use crate::store::FIRST_PASSWORD_FILE;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Extension, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use controller::{Handle, StateFiles};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::secret::Secret;
use manifest::time::rfc3339;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use support::{ASKED, Bundle, Secrets, system_facts};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// What the log has lately; empty where nobody knows.
pub type LogTail = Arc<dyn Fn() -> String + Send + Sync>;

/// What is asked for a bundle.
pub(crate) struct Within {
    /// The other paths, behind which nobody is asked who they are.
    pub(crate) app: Router,
    pub(crate) files: StateFiles,
    pub(crate) log: LogTail,
    /// One after the other: it takes a moment, and memory.
    pub(crate) turn: Mutex<()>,
}

pub(crate) fn paths(paths: Paths) -> Paths {
    paths.get(
        "/api/v1/support/bundle",
        "one file without secrets that says how the node is: `support bundle`",
        support_bundle,
    )
}

/// An archive, or why there is none.
pub(crate) struct Archive(Result<(String, Vec<u8>), Problem>);

/// What has not answered by then is said to be missing.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: usize = 64 << 20;

const KIND: &str = "application/gzip";

impl IntoResponse for Archive {
    fn into_response(self) -> Response {
        match self.0 {
            Ok((name, bytes)) => {
                let place = format!("attachment; filename=\"{name}\"");
                let headers = [
                    (header::CONTENT_TYPE, KIND.to_owned()),
                    (header::CONTENT_DISPOSITION, place),
                ];
                (headers, bytes).into_response()
            }
            Err(problem) => problem_response(&problem),
        }
    }
}

impl Reply for Archive {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let schema = json!({ "type": "string", "contentMediaType": KIND });
        operation.answers(200, "The archive.", json!({ KIND: { "schema": schema } }));
        let name = "What to call the file.";
        operation.heads(200, "Content-Disposition", name);
    }
}

async fn support_bundle(
    State(handle): State<Handle>,
    Extension(within): Extension<Arc<Within>>,
    Extension(gate): Extension<Arc<Gate>>,
    Extension(alerting): Extension<Arc<Alerting>>,
    Extension(records): Extension<Records>,
) -> Archive {
    let _turn = within.turn.lock().await;
    let made = async {
        let mut known = alerting.secrets();
        known.extend(secrets(&handle, &within, &gate).await?);
        let at = now().wall;
        let seconds = at.0 / 1_000_000_000;
        let mut bundle = Bundle::new(records.node(), seconds, Secrets::new(known));
        let mut answers = Vec::new();
        for asked in ASKED {
            answers.push((asked, within.ask(asked.path).await));
        }
        let log = Arc::clone(&within.log);
        // Looking for secrets takes a while: others are answered meanwhile.
        let packed = spawn_blocking(move || {
            // First, for the rest must not crowd it out.
            match log() {
                tail if tail.is_empty() => bundle.missing("log.txt", "no log is kept here"),
                tail => bundle.text("log.txt", "the log since the start, its end", &tail),
            }
            for (asked, answer) in answers {
                match answer {
                    Ok(Value::String(text)) => bundle.text(asked.file, asked.about, &text),
                    Ok(document) => bundle.document(asked.file, asked.about, document),
                    Err(why) => bundle.missing(asked.file, &why),
                }
            }
            bundle.text("system.txt", "what the kernel says", &system_facts());
            bundle.finish()
        });
        let failed = |why: tokio::task::JoinError| Problem::new(Code::Internal, why.to_string());
        let packed = packed.await.map_err(failed)?;
        let at: String = rfc3339(at).chars().take(19).collect();
        let at = at.replace([':', '-'], "");
        Ok((format!("causeway-support-{at}.tar.gz"), packed))
    };
    Archive(made.await)
}

impl Within {
    /// What the API answers at a path, in time: what hangs is what somebody wants to know of.
    async fn ask(&self, path: &str) -> Result<Value, String> {
        let answer = timeout(ANSWERED_WITHIN, self.answer(path)).await;
        answer.unwrap_or_else(|_| Err(format!("no answer within {ANSWERED_WITHIN:?}")))
    }

    async fn answer(&self, path: &str) -> Result<Value, String> {
        let request = Request::get(path).body(Body::empty());
        let request = request.map_err(|error| error.to_string())?;
        let app = TowerToHyperService::new(self.app.clone());
        let Ok(response) = app.call(request).await;
        let (head, body) = response.into_parts();
        let bytes = to_bytes(body, ANSWER_BYTES_MAX).await;
        let bytes = bytes.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if !head.status.is_success() {
            return Err(format!("{}: {text}", head.status));
        }
        let kind = head.headers.get(header::CONTENT_TYPE);
        let is_document = kind.is_some_and(|it| it.as_bytes().ends_with(b"json"));
        if is_document {
            return serde_json::from_str(&text).map_err(|error| error.to_string());
        }
        Ok(Value::String(text))
    }
}

fn text(secret: &Secret) -> Option<String> {
    secret.reveal_text().map(str::to_owned)
}

/// Secrets that the node has as they are: none of them may stand anywhere.
async fn secrets(handle: &Handle, within: &Within, gate: &Gate) -> Result<Vec<String>, Problem> {
    let mut known = ask!(handle, |controller| controller.chap_secrets())?;
    known.push(gate.token.clone());
    let files = [TOKEN_FILE, FIRST_PASSWORD_FILE, trial_runner::CHAP_FILE];
    for file in files {
        // One that cannot be read is in no answer either.
        let bytes = within.files.read(file).await.ok().flatten();
        known.extend(bytes.map(Secret::from_file));
    }
    Ok(known.iter().filter_map(text).collect())
}
