//! The paths.

use crate::answer::{Answer, Switches, problem_response, read};
use crate::auth::{self, Transport};
use crate::metrics;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use controller::{Handle, How};
use manifest::code::Code;
use manifest::objects::{GrantSpec, HostSpec, LunSpec, ObjectSet, Patch, PatchOf, TargetSpec};
use manifest::plan::{Edit, Section, Subject};
use manifest::problem::Problem;
use serde::Deserialize;

/// All paths, for requests that come through `transport`.
pub fn router(handle: Handle, transport: Transport) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(prometheus))
        .route("/api/v1/status", get(status))
        .route("/api/v1/activity", get(activity))
        .route("/api/v1/apply", post(apply))
        .route("/api/v1/objects", post(create_objects))
        .route("/api/v1/export", get(export))
        .route("/api/v1/refusals", get(refusals))
        .route("/api/v1/pools", get(pools))
        .route("/api/v1/pools/{name}", get(pool))
        .route("/api/v1/pools/{name}/journal", post(journal))
        .route("/api/v1/sessions", get(sessions))
        .route("/api/v1/sessions/{id}", get(session).delete(drop_session))
        .merge(objects())
        .merge(crate::generations::paths())
        .fallback(nowhere)
        .method_not_allowed_fallback(not_so)
        .layer(from_fn_with_state(transport, auth::check))
        .with_state(handle)
}

fn objects() -> Router<Handle> {
    Router::new()
        .route("/api/v1/luns", get(luns).post(create_lun))
        .route(
            "/api/v1/luns/{name}",
            get(lun).patch(patch_lun).delete(delete_lun),
        )
        .route("/api/v1/luns/{name}/resize", post(patch_lun))
        .route("/api/v1/luns/{name}/rename", post(rename_lun))
        .route("/api/v1/luns/{name}/restore", post(restore_lun))
        .route("/api/v1/luns/{name}/purge", post(purge_lun))
        .route("/api/v1/luns/{name}/scrub", get(scrub).post(set_scrub))
        .route("/api/v1/targets", get(targets).post(create_target))
        .route(
            "/api/v1/targets/{name}",
            get(target)
                .put(set_target)
                .patch(patch_target)
                .delete(delete_target),
        )
        .route("/api/v1/targets/{name}/rename", post(rename_target))
        .route("/api/v1/hosts", get(hosts).post(create_host))
        .route(
            "/api/v1/hosts/{name}",
            get(host)
                .put(set_host)
                .patch(patch_host)
                .delete(delete_host),
        )
        .route("/api/v1/hosts/{name}/rename", post(rename_host))
        .route("/api/v1/grants", get(grants).post(create_grant))
        .route(
            "/api/v1/grants/{name}",
            get(grant)
                .put(set_grant)
                .patch(patch_grant)
                .delete(delete_grant),
        )
}

async fn nowhere(request: axum::extract::Request) -> Response {
    let detail = format!("{} {}", request.method(), request.uri().path());
    problem_response(&Problem::new(Code::NoSuchPath, detail))
}

async fn not_so(request: axum::extract::Request) -> Response {
    let detail = format!("{} {}", request.method(), request.uri().path());
    problem_response(&Problem::new(Code::WrongMethod, detail))
}

type Outcome = Answer<manifest::view::Outcome>;

/// Runs a change whose description may already have failed.
async fn edit(handle: &Handle, query: Option<&str>, edit: Result<Edit, Problem>) -> Outcome {
    let run = async {
        let switches = Switches::read(query, &["dry_run", "force", "prune"])?;
        let how = How {
            force: switches.on("force"),
            dry_run: switches.on("dry_run"),
        };
        let edit = edit?;
        let work = move |controller: std::rc::Rc<controller::Controller>| -> env::LocalFuture<_> {
            Box::pin(async move { controller.edit(&edit, how).await })
        };
        handle.call(work).await?
    };
    Answer(run.await)
}

macro_rules! ask {
    ($handle:expr, |$controller:ident| $what:expr) => {
        $handle
            .call(move |$controller| Box::pin(async move { $what }))
            .await
    };
}

async fn ready(State(handle): State<Handle>) -> Response {
    let state = ask!(handle, |controller| {
        if controller.is_stopping() {
            return Some(Problem::new(Code::Stopping, "the daemon is stopping"));
        }
        controller.damage().cloned()
    });
    match state {
        Ok(None) => "ready\n".into_response(),
        Ok(Some(problem)) | Err(problem) => problem_response(&problem),
    }
}

async fn prometheus(State(handle): State<Handle>) -> Response {
    match ask!(handle, |controller| metrics::text(
        &controller.sample().await
    )) {
        Ok(text) => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            (StatusCode::OK, [(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(problem) => problem_response(&problem),
    }
}

async fn status(State(handle): State<Handle>) -> Answer<manifest::view::StatusView> {
    Answer(ask!(handle, |controller| controller.status().await))
}

async fn activity(State(handle): State<Handle>) -> Answer<manifest::activity::ActivityView> {
    Answer(ask!(handle, |controller| controller.activity().await))
}

async fn export(State(handle): State<Handle>) -> Answer<ObjectSet> {
    Answer(ask!(handle, |controller| controller.export()).and_then(|set| set))
}

async fn apply(State(handle): State<Handle>, RawQuery(query): RawQuery, body: Body) -> Outcome {
    let set = read(body).await;
    let switches = Switches::read(query.as_deref(), &["dry_run", "force", "prune"]);
    let wanted = set.and_then(|set| {
        let prune = switches?.on("prune");
        Ok(Edit::Apply { set, prune })
    });
    edit(&handle, query.as_deref(), wanted).await
}

async fn create_objects(
    State(handle): State<Handle>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Outcome {
    let wanted = read(body).await.map(Edit::Create);
    edit(&handle, query.as_deref(), wanted).await
}

async fn refusals(State(handle): State<Handle>) -> Answer<Vec<manifest::facts::RefusalFacts>> {
    Answer(ask!(handle, |controller| controller.refusals().await))
}

async fn sessions(State(handle): State<Handle>) -> Answer<Vec<manifest::facts::SessionFacts>> {
    Answer(ask!(handle, |controller| controller.sessions().await))
}

async fn pools(State(handle): State<Handle>) -> Answer<Vec<manifest::facts::PoolFacts>> {
    Answer(ask!(handle, |controller| controller.pools().await))
}

async fn pool(
    State(handle): State<Handle>,
    Path(name): Path<String>,
) -> Answer<manifest::facts::PoolFacts> {
    Answer(ask!(handle, |controller| controller.pool(&name).await).and_then(|pool| pool))
}

async fn journal(
    State(handle): State<Handle>,
    Path(name): Path<String>,
    body: Body,
) -> Answer<manifest::journal::JournalOutcome> {
    let run = async {
        let request = read(body).await?;
        ask!(handle, |controller| controller
            .journal(&name, request)
            .await)?
    };
    Answer(run.await)
}

fn session_id(id: &str) -> Result<u64, Problem> {
    id.parse().map_err(|_| Problem::not_found("session", id))
}

async fn session(
    State(handle): State<Handle>,
    Path(id): Path<String>,
) -> Answer<manifest::facts::SessionFacts> {
    let run = async {
        let id = session_id(&id)?;
        ask!(handle, |controller| controller.session(id).await)?
    };
    Answer(run.await)
}

async fn drop_session(State(handle): State<Handle>, Path(id): Path<String>) -> Answer<()> {
    let run = async {
        let id = session_id(&id)?;
        ask!(handle, |controller| controller.drop_session(id).await)?
    };
    Answer(run.await)
}

async fn luns(
    State(handle): State<Handle>,
    RawQuery(query): RawQuery,
) -> Answer<Vec<manifest::view::LunView>> {
    let run = async {
        let removed = Switches::read(query.as_deref(), &["removed"])?.on("removed");
        ask!(handle, |controller| controller.luns(removed).await)
    };
    Answer(run.await)
}

async fn lun(
    State(handle): State<Handle>,
    Path(name): Path<String>,
) -> Answer<manifest::view::LunView> {
    Answer(ask!(handle, |controller| controller.lun(&name).await).and_then(|lun| lun))
}

async fn create_lun(
    State(handle): State<Handle>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Outcome {
    let wanted = read::<LunSpec>(body).await.map(|lun| {
        Edit::Create(ObjectSet {
            lun: vec![lun],
            ..ObjectSet::default()
        })
    });
    edit(&handle, query.as_deref(), wanted).await
}

async fn restore_lun(
    State(handle): State<Handle>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    edit(&handle, query.as_deref(), Ok(Edit::Restore(name))).await
}

async fn purge_lun(
    State(handle): State<Handle>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    edit(&handle, query.as_deref(), Ok(Edit::Purge(name))).await
}

async fn scrub(
    State(handle): State<Handle>,
    Path(name): Path<String>,
) -> Answer<manifest::scrub::ScrubFacts> {
    let facts = ask!(handle, |controller| controller.scrub(&name, None).await);
    Answer(facts.and_then(|facts| facts))
}

/// What shall become of a scrub.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScrubRequest {
    operation: manifest::scrub::ScrubOp,
}

async fn set_scrub(
    State(handle): State<Handle>,
    Path(name): Path<String>,
    body: Body,
) -> Answer<manifest::scrub::ScrubFacts> {
    let run = async {
        let ScrubRequest { operation } = read(body).await?;
        ask!(handle, |controller| controller
            .scrub(&name, Some(operation))
            .await)?
    };
    Answer(run.await)
}

/// The new name of an object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewName {
    to: String,
}

async fn rename(
    handle: &Handle,
    section: Section,
    name: String,
    query: Option<&str>,
    body: Body,
) -> Outcome {
    let wanted = read::<NewName>(body).await.map(|new| Edit::Rename {
        subject: Subject { section, name },
        to: new.to,
    });
    edit(handle, query, wanted).await
}

async fn remove(handle: &Handle, section: Section, name: String, query: Option<&str>) -> Outcome {
    edit(handle, query, Ok(Edit::Remove(Subject { section, name }))).await
}

macro_rules! patches {
    ($($patch:ident => $wrap:expr),*) => {
        $(async fn $patch(
            State(handle): State<Handle>,
            Path(name): Path<String>,
            RawQuery(query): RawQuery,
            body: Body,
        ) -> Outcome {
            let wanted = read(body).await;
            let wanted = wanted.map(|patch| Edit::Patch(Patch { name, what: $wrap(patch) }));
            edit(&handle, query.as_deref(), wanted).await
        })*
    };
}

patches!(
    patch_lun => PatchOf::Lun,
    patch_target => PatchOf::Target,
    patch_host => PatchOf::Host,
    patch_grant => PatchOf::Grant
);

macro_rules! named_edits {
    ($section:expr, $delete:ident $(, $rename:ident)?) => {
        async fn $delete(
            State(handle): State<Handle>,
            Path(name): Path<String>,
            RawQuery(query): RawQuery,
        ) -> Outcome {
            remove(&handle, $section, name, query.as_deref()).await
        }
        $(async fn $rename(
            State(handle): State<Handle>,
            Path(name): Path<String>,
            RawQuery(query): RawQuery,
            body: Body,
        ) -> Outcome {
            rename(&handle, $section, name, query.as_deref(), body).await
        })?
    };
}

named_edits!(Section::Lun, delete_lun, rename_lun);
named_edits!(Section::Target, delete_target, rename_target);
named_edits!(Section::Host, delete_host, rename_host);
named_edits!(Section::Grant, delete_grant);

async fn targets(State(handle): State<Handle>) -> Answer<Vec<manifest::view::TargetView>> {
    Answer(ask!(handle, |controller| controller.targets().await))
}

async fn target(
    State(handle): State<Handle>,
    Path(name): Path<String>,
) -> Answer<manifest::view::TargetView> {
    Answer(ask!(handle, |controller| controller.target(&name).await).and_then(|target| target))
}

async fn create_target(
    State(handle): State<Handle>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Outcome {
    let wanted = read::<TargetSpec>(body).await.map(|target| {
        Edit::Create(ObjectSet {
            target: vec![target],
            ..ObjectSet::default()
        })
    });
    edit(&handle, query.as_deref(), wanted).await
}

/// The object in the body must be the one in the path.
fn same_name(path: &str, body: &str) -> Result<(), Problem> {
    if path == body {
        return Ok(());
    }
    let detail = format!("the path names \"{path}\" and the body \"{body}\"");
    Err(Problem::new(Code::BadRequest, detail))
}

async fn set_target(
    State(handle): State<Handle>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Outcome {
    let wanted = read::<TargetSpec>(body).await.and_then(|target| {
        same_name(&name, &target.name)?;
        Ok(Edit::Set(ObjectSet {
            target: vec![target],
            ..ObjectSet::default()
        }))
    });
    edit(&handle, query.as_deref(), wanted).await
}

async fn hosts(State(handle): State<Handle>) -> Answer<Vec<manifest::view::HostView>> {
    Answer(ask!(handle, |controller| controller.hosts().await))
}

async fn host(
    State(handle): State<Handle>,
    Path(name): Path<String>,
) -> Answer<manifest::view::HostView> {
    Answer(ask!(handle, |controller| controller.host(&name).await).and_then(|host| host))
}

async fn create_host(
    State(handle): State<Handle>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Outcome {
    let wanted = read::<HostSpec>(body).await.map(|host| {
        Edit::Create(ObjectSet {
            host: vec![host],
            ..ObjectSet::default()
        })
    });
    edit(&handle, query.as_deref(), wanted).await
}

async fn set_host(
    State(handle): State<Handle>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Outcome {
    let wanted = read::<HostSpec>(body).await.and_then(|host| {
        same_name(&name, &host.name)?;
        Ok(Edit::Set(ObjectSet {
            host: vec![host],
            ..ObjectSet::default()
        }))
    });
    edit(&handle, query.as_deref(), wanted).await
}

async fn grants(State(handle): State<Handle>) -> Answer<Vec<manifest::view::GrantView>> {
    Answer(ask!(handle, |controller| controller.grants()))
}

async fn grant(
    State(handle): State<Handle>,
    Path(name): Path<String>,
) -> Answer<manifest::view::GrantView> {
    Answer(ask!(handle, |controller| controller.grant(&name)).and_then(|grant| grant))
}

async fn create_grant(
    State(handle): State<Handle>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Outcome {
    let wanted = read::<GrantSpec>(body).await.map(|grant| {
        Edit::Create(ObjectSet {
            grant: vec![grant],
            ..ObjectSet::default()
        })
    });
    edit(&handle, query.as_deref(), wanted).await
}

async fn set_grant(
    State(handle): State<Handle>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Outcome {
    let wanted = read::<GrantSpec>(body).await.and_then(|grant| {
        let target = grant.target.as_deref().unwrap_or_default();
        same_name(&name, &format!("{}:{target}:{}", grant.host, grant.lun))?;
        Ok(Edit::Set(ObjectSet {
            grant: vec![grant],
            ..ObjectSet::default()
        }))
    });
    edit(&handle, query.as_deref(), wanted).await
}
