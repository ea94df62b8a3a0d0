//! `bench`: what may be asked, runs, their results, two beside each other.

use crate::account_parts::SecretBody;
use crate::answer::{Answer, PLAIN, Switches};
use crate::describe::{Operation, Parameter, Part, Paths, Reply, Schemas};
use crate::listing::{Listed, Listing, rows};
use crate::noted::Note;
use crate::parameters::{Parameters, wrong};
use crate::parts::{DryRun, Named, Refused};
use crate::plain_answer::problem_response;
use accounts::{Principal, Role};
use axum::extract::{Extension, FromRequestParts};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use bench::compare::{Row as Compared, compare};
use bench::report::view::Document;
use manifest::code::Code;
use manifest::problem::Problem;
use serde_json::{Value, json};
use std::sync::Arc;
use trial_runner::{Bench, not_there};
use trials::line::Outcome;
use trials::{
    BenchView, CompareView, FigureView, Kind, RunDetail, RunView, Spec, StartedView, WantedRun,
};

type The = Extension<Arc<Bench>>;
type Who = Extension<Principal>;

pub(crate) fn paths(paths: Paths) -> Paths {
    paths
        .get(
            "/api/v1/bench",
            "what may be asked of a bench run, and what is kept",
            bench_overview,
        )
        .post(
            "/api/v1/bench/runs",
            "starts a bench run of a LUN, of memory or of a URL",
            start_run,
        )
        .get("/api/v1/bench/runs", "bench runs that are kept", runs)
        .get(
            "/api/v1/bench/runs/{id}",
            "one bench run: how far it is, its seconds, its result",
            run,
        )
        .post(
            "/api/v1/bench/runs/{id}/cancel",
            "ends it before its time; what was measured is its result",
            cancel_run,
        )
        .or(&[Code::InUse])
        .delete("/api/v1/bench/runs/{id}", "forgets it", forget_run)
        .or(&[Code::InUse])
        .get(
            "/api/v1/bench/runs/{id}/result",
            "what it gave, as `causeway bench` writes it",
            result,
        )
        .get(
            "/api/v1/bench/compare",
            "two results beside each other: `bench --compare`",
            comparison,
        )
}

rows!(
    RunView: "id" in [
        "id", "name", "state", "target", "kind", "by", "started", "ended", "writes",
    ], by "";
);

/// How a run is started.
struct Start {
    dry_run: bool,
    force: bool,
}

impl<S: Send + Sync> FromRequestParts<S> for Start {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let switches = Switches::read(parts.uri.query(), &["dry_run", "force"])?;
        let dry_run = switches.on("dry_run");
        Note::of(parts).dry(dry_run);
        let force = switches.on("force");
        Ok(Self { dry_run, force })
    }
}

impl Part for Start {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let dry_run = "Only report what would be done, and the command line for it.";
        operation.takes(Parameter::switch("dry_run", dry_run));
        let force = "Write although what is on the target is lost.";
        operation.takes(Parameter::switch("force", force));
        operation.fails(&[
            Code::BadRequest,
            Code::BenchUsage,
            Code::NotFound,
            Code::WouldLoseData,
            Code::InUse,
            Code::RoleTooLow,
            Code::LunOffline,
            Code::VolumeUnreachable,
            Code::StateDamaged,
            Code::Stopping,
            Code::BenchFailed,
            Code::StateNotSaved,
        ]);
    }
}

const MEMBERS: &str = "exactly one of \"lun\", \"memory\" and \"url\", and may have \"name\", \"load\" (\"block\", \"access\", \
                       \"write_percent\", \"threads\", \"outstanding\", \"seconds\", \"warm_up_seconds\", \"region\", \"iops_max\", \
                       \"write_through\", \"verify\", \"fill\", \"seed\"), \"paths\" (\"from\", \"policy\", \"no_plan\"), \"chap_user\" \
                       and \"chap_secret\"";

async fn bench_overview(Extension(bench): The) -> Answer<BenchView> {
    Answer(Ok(bench.overview()))
}

async fn start_run(
    Extension(bench): The,
    Extension(principal): Who,
    how: Start,
    body: SecretBody<WantedRun>,
) -> Answer<StartedView> {
    let work = async {
        let wanted: WantedRun = body.read(MEMBERS)?;
        let spec = wanted.check()?;
        fits_the_bench(&spec)?;
        may(&principal, &spec)?;
        let plan = bench.plan(&spec).await?;
        if how.dry_run {
            return Ok(StartedView {
                plan: plan.view,
                run: None,
            });
        }
        bench.is_free()?;
        if let Some(refusal) = &plan.refusal
            && !how.force
        {
            return Err(refusal.clone());
        }
        let view = plan.view.clone();
        let run = bench.start(spec, plan, &principal.name).await?;
        Ok(StartedView {
            plan: view,
            run: Some(run),
        })
    };
    Answer(work.await)
}

/// Who may start it: what is on somebody's disk, and whom the node connects to, is for admins.
fn may(principal: &Principal, spec: &Spec) -> Result<(), Problem> {
    let needs_admin = match &spec.kind {
        Kind::Memory(_) => false,
        Kind::Lun(_) => spec.destroys(),
        Kind::Url(_) => true,
    };
    if !needs_admin || principal.role == Role::Admin {
        return Ok(());
    }
    let what = match &spec.kind {
        Kind::Url(_) => "a run of a URL",
        Kind::Lun(_) | Kind::Memory(_) => "a run that writes",
    };
    let (name, role) = (&principal.name, principal.role);
    let detail = format!("\"{name}\" is {role}, and {what} takes {}", Role::Admin);
    Err(Problem::new(Code::RoleTooLow, detail))
}

/// What the bench itself says of its words.
fn fits_the_bench(spec: &Spec) -> Result<(), Problem> {
    let words = spec.words(&spec.kind.target(), &[]);
    bench::options::parse(&words)
        .map(drop)
        .map_err(|mistake| Problem::new(Code::BenchUsage, mistake.cause).hint(mistake.next_step))
}

async fn runs(Extension(bench): The, listing: Listing<RunView>) -> Listed<RunView> {
    listing.show(Ok(bench.views()))
}

/// As the audit log has a run.
fn shown(bench: &Bench, id: u64) -> Value {
    let all = bench.views();
    json!(all.into_iter().find(|run| run.id == id))
}

/// The number of a run.
fn number(id: &str) -> Result<u64, Problem> {
    id.parse().map_err(|_| not_there(id))
}

/// From which second on.
pub(crate) struct Since(pub(crate) u64);

impl<S: Send + Sync> FromRequestParts<S> for Since {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let all = Parameters::read(parts.uri.query(), &["since"])?;
        Ok(Self(all.number("since", 0, u64::MAX)?.unwrap_or(0)))
    }
}

impl Part for Since {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.takes(Parameter {
            name: "since",
            place: "query",
            meaning: "Only seconds with a larger number.".to_owned(),
            schema: json!({ "type": "integer", "minimum": 0 }),
        });
        operation.fails(&[Code::BadRequest]);
    }
}

async fn run(Extension(bench): The, Named(id): Named, Since(since): Since) -> Answer<RunDetail> {
    let work = async { bench.detail(number(&id)?, since).await };
    Answer(work.await)
}

async fn cancel_run(
    Extension(bench): The,
    Named(id): Named,
    DryRun(dry_run, note): DryRun,
) -> Answer<RunView> {
    let cancel = |id: u64| {
        let before = shown(&bench, id);
        let after = bench.cancel(id, dry_run)?;
        note.seen(before, json!(after));
        Ok(after)
    };
    Answer(number(&id).and_then(cancel))
}

async fn forget_run(
    Extension(bench): The,
    Named(id): Named,
    DryRun(dry_run, note): DryRun,
) -> Answer<()> {
    let work = async {
        let id = number(&id)?;
        note.seen(shown(&bench, id), Value::Null);
        bench.forget(id, dry_run).await
    };
    Answer(work.await)
}

/// In which form a result is wanted.
#[derive(Clone, Copy)]
enum Form {
    Json,
    Csv,
    Svg,
    Text,
}

const FORMS: [(&str, Form, &str); 4] = [
    ("json", Form::Json, "application/json"),
    ("csv", Form::Csv, "text/csv; charset=utf-8"),
    ("svg", Form::Svg, "image/svg+xml"),
    ("text", Form::Text, PLAIN),
];

impl<S: Send + Sync> FromRequestParts<S> for Form {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let all = Parameters::read(parts.uri.query(), &["form"])?;
        let word = all.one("form").unwrap_or("json");
        let found = FORMS.iter().find(|(name, ..)| *name == word);
        let known = || wrong(format!("form={word}: there are json, csv, svg, text"));
        Ok(found.map(|(_, form, _)| *form).ok_or_else(known)?)
    }
}

impl Part for Form {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let names = FORMS.map(|(name, ..)| name);
        operation.takes(Parameter {
            name: "form",
            place: "query",
            meaning: "As which the result is written.".to_owned(),
            schema: json!({ "type": "string", "enum": names, "default": "json" }),
        });
        operation.fails(&[Code::BadRequest]);
    }
}

/// A result as a file.
struct Exported(Result<(String, Form, Outcome), Problem>);

impl IntoResponse for Exported {
    fn into_response(self) -> Response {
        let (id, form, outcome) = match self.0 {
            Ok(all) => all,
            Err(problem) => return problem_response(&problem),
        };
        let (name, kind) = FORMS
            .iter()
            .find(|(_, it, _)| std::mem::discriminant(it) == std::mem::discriminant(&form))
            .map_or(("txt", PLAIN), |(name, _, kind)| (*name, *kind));
        let text = match form {
            Form::Json => format!("{:#}\n", outcome.result),
            Form::Csv => outcome.csv,
            Form::Svg => outcome.svg,
            Form::Text => outcome.text,
        };
        let ending = name.replace("text", "txt");
        let file = format!("attachment; filename=\"bench-{id}.{ending}\"");
        let headers = [(CONTENT_TYPE, kind.to_owned()), (CONTENT_DISPOSITION, file)];
        (headers, text).into_response()
    }
}

impl Reply for Exported {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let text = json!({ "schema": { "type": "string" } });
        let content = json!({
            "application/json": { "schema": { "type": "object" } },
            "text/csv": text, "image/svg+xml": text, "text/plain": text,
        });
        operation.answers(200, "The result, as an attachment.", content);
    }
}

async fn result(Extension(bench): The, Named(id): Named, form: Form) -> Exported {
    let work = async {
        let id = number(&id)?;
        Ok((id.to_string(), form, bench.outcome(id).await?))
    };
    Exported(work.await)
}

/// Which two are compared.
struct Both {
    a: u64,
    b: u64,
}

impl<S: Send + Sync> FromRequestParts<S> for Both {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let all = Parameters::read(parts.uri.query(), &["a", "b"])?;
        let one = |name| {
            let given = all.number(name, 0, u64::MAX)?;
            given.ok_or_else(|| wrong("name two runs: a=NUMBER&b=NUMBER".to_owned()))
        };
        Ok(Self {
            a: one("a")?,
            b: one("b")?,
        })
    }
}

impl Part for Both {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        for (name, meaning) in [("a", "The first run."), ("b", "The second run.")] {
            operation.takes(Parameter {
                name,
                place: "query",
                meaning: meaning.to_owned(),
                schema: json!({ "type": "integer", "minimum": 0 }),
            });
        }
        operation.fails(&[Code::BadRequest, Code::NotFound, Code::BenchUsage]);
    }
}

async fn comparison(Extension(bench): The, both: Both) -> Answer<CompareView> {
    let work = async {
        let (a, b) = (bench.view(both.a)?, bench.view(both.b)?);
        let before = document(bench.outcome(both.a).await?.result)?;
        let after = document(bench.outcome(both.b).await?.result)?;
        let rows = compare(&before, &after).map_err(|why| {
            Problem::new(Code::BenchUsage, why).hint("compare results of like runs")
        })?;
        Ok(CompareView {
            a,
            b,
            rows: rows.iter().map(figure).collect(),
        })
    };
    Answer(work.await)
}

fn document(result: Value) -> Result<Document, Problem> {
    let damaged = |error: serde_json::Error| {
        Problem::new(Code::Internal, format!("a result that is kept: {error}"))
    };
    serde_json::from_value(result).map_err(damaged)
}

fn figure(row: &Compared) -> FigureView {
    FigureView {
        figure: row.name.clone(),
        a: row.before,
        b: row.after,
        change_pct: row.change(),
        verdict: row.verdict().to_owned(),
    }
}
