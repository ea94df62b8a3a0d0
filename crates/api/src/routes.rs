//! The paths.

use crate::alerts::Alerting;
use crate::answer::{Answer, PLAIN, Text, WithTag};
use crate::audit::{self, Audit};
use crate::auth::{self, BadProofs, Gate};
use crate::config::Settings;
use crate::describe::{Paths, document};
use crate::edit::{Outcome, ask, edit};
use crate::etag;
use crate::fields::Body;
use crate::idempotency::{self, Keys};
use crate::listing::{Listed, Listing};
use crate::nowhere::{not_so, nowhere};
use crate::only::{Only, Whole};
use crate::parts::{Change, DryRun, Named, Wanted};
use crate::records::{Records, Streams};
use crate::session_end::{drop_session, session_id};
use crate::shared_answers::{self, SharedAnswers};
use crate::support_bundle::{LogTail, Within};
use axum::Router;
use axum::extract::{Extension, State};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::any;
use controller::{Handle, StateFiles};
use manifest::activity::ActivityView;
use manifest::code::Code;
use manifest::facts::NodeNic;
use manifest::facts::{PoolFacts, RefusalFacts, SessionFacts};
use manifest::journal::{JournalOutcome, JournalRequest};
use manifest::objects::ObjectSet;
use manifest::plan::{Edit, export_only};
use manifest::problem::Problem;
use manifest::tag::Tagged;
use manifest::view::{Health, StatusView};
use metrics::{MachineFigures, NicFigures};
use observed::Nics;
use serde_json::Value;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};
use tokio::sync::Mutex;
use trial_runner::{Beds, Bench};

/// The document of all paths, made when somebody asks first.
pub(crate) static DOCUMENT: LazyLock<Value> = LazyLock::new(|| document(paths()));

/// All paths, behind `gate`.
pub(crate) fn router(
    handle: Handle,
    gate: Arc<Gate>,
    records: &Records,
    alerting: &Arc<Alerting>,
    (bench, beds): &(Arc<Bench>, Arc<Beds>),
    settings: &Arc<Settings>,
    (files, log): (StateFiles, LogTail),
) -> Router {
    let watched = records.clone();
    let shared = SharedAnswers::new(move || watched.moment());
    let audit = Audit::new(
        &DOCUMENT,
        records.clone(),
        Arc::clone(&gate),
        handle.clone(),
    );
    tokio::spawn(audit::enter_interrupted(audit.clone(), handle.clone()));
    let known = |router: Router<Handle>| {
        router
            .layer(Extension(Arc::clone(&gate)))
            .layer(Extension(records.clone()))
            .layer(Extension(Streams::default()))
            .layer(Extension(Arc::clone(alerting)))
            .layer(Extension(Arc::clone(bench)))
            .layer(Extension(Arc::clone(beds)))
            .layer(Extension(Arc::clone(settings)))
    };
    let app = known(but_the_bundle().into_router()).with_state(handle.clone());
    let within = Arc::new(Within {
        app,
        files,
        log,
        turn: Mutex::default(),
    });
    let router = paths()
        .into_router()
        .route("/api/{*path}", any(nowhere))
        .fallback(crate::browser::answer)
        .method_not_allowed_fallback(not_so);
    known(router)
        .layer(Extension(within))
        .layer(from_fn(http_parts::compress::pack))
        .layer(from_fn_with_state(shared, shared_answers::share))
        .layer(from_fn(etag::add))
        .layer(from_fn_with_state(Keys::new(), idempotency::check))
        .layer(from_fn_with_state(audit.clone(), audit::check))
        .layer(from_fn_with_state(gate, auth::check))
        .layer(from_fn_with_state(audit, audit::check_refused))
        .layer(from_fn(crate::headers::add))
        .with_state(handle)
}

/// All paths with what is known of them.
pub(super) fn paths() -> Paths {
    but_the_bundle().with(crate::support_bundle::paths)
}

/// Those that a support bundle may ask, which asks not for itself.
fn but_the_bundle() -> Paths {
    Paths::default()
        .with(of_the_node)
        .with(of_pools_and_sessions)
        .with(crate::explorer::paths)
        .with(crate::objects::paths)
        .with(crate::connecting::paths)
        .with(crate::generations::paths)
        .with(crate::certificate::paths)
        .with(crate::config::paths)
        .with(crate::disks::paths)
        .with(crate::node_doctor::paths)
        .with(crate::node_drain::paths)
        .with(crate::login::paths)
        .with(crate::lun_mirror::paths)
        .with(crate::login_sessions::paths)
        .with(crate::alerts::paths)
        .with(crate::jobs::paths)
        .with(crate::bench::paths)
        .with(crate::lab::paths)
        .with(crate::users::paths)
        .with(crate::tokens::paths)
        .with(crate::records::paths)
}

fn of_the_node(paths: Paths) -> Paths {
    paths
        .get("/healthz", "`ok`, where the process lives", healthz)
        .get("/readyz", "200 where it serves, 503 where not yet", ready)
        .or(&[Code::Stopping, Code::StateDamaged, Code::Internal])
        .get(
            "/metrics",
            "metrics in the Prometheus text format",
            prometheus,
        )
        .get(
            "/api/v1/openapi.json",
            "this interface as an OpenAPI 3.1 document",
            openapi,
        )
        .get("/api/v1/status", "how the node is: `status`", status)
        .get(
            "/api/v1/activity",
            "counts of LUNs, sessions and cores, which `top` reads",
            activity,
        )
        .post(
            "/api/v1/apply",
            "brings the objects to what the body says; `prune` removes others",
            apply,
        )
        .but(&[Code::NotFound], |paths| {
            paths.post(
                "/api/v1/objects",
                "makes all objects of the body, or none",
                create_objects,
            )
        })
        .get(
            "/api/v1/export",
            "all objects, as `apply` takes them",
            export,
        )
        .or(&[Code::StateDamaged])
        .get(
            "/api/v1/refusals",
            "logins that were refused: `session ls --refused`",
            refusals,
        )
}

fn of_pools_and_sessions(paths: Paths) -> Paths {
    paths
        .get("/api/v1/pools", "all pools", pools)
        .get("/api/v1/pools/{name}", "one pool", pool)
        .post(
            "/api/v1/pools/{name}/journal",
            "opens a journal anew (`reopen`), or gives it up (`discard`)",
            journal,
        )
        .or(&[
            Code::JournalServes,
            Code::WouldLoseWrites,
            Code::JournalUnusable,
        ])
        .get("/api/v1/sessions", "all sessions", sessions)
        .get("/api/v1/sessions/{id}", "one session", session)
        .delete(
            "/api/v1/sessions/{id}",
            "ends it: `session drop`",
            drop_session,
        )
}

async fn healthz() -> Text {
    let (kind, text) = (PLAIN, Ok("ok\n".to_owned()));
    Text { kind, text }
}

async fn ready(State(handle): State<Handle>) -> Text {
    let state = ask!(handle, |controller| {
        if controller.is_stopping() {
            return Some(Problem::new(Code::Stopping, "the daemon is stopping"));
        }
        controller.damage().cloned()
    });
    let text = match state {
        Ok(None) => Ok("ready\n".to_owned()),
        Ok(Some(problem)) | Err(problem) => Err(problem),
    };
    Text { kind: PLAIN, text }
}

/// `figures`, and what metrics report of the NICs.
fn with_nics(figures: MachineFigures, known: &[NodeNic]) -> MachineFigures {
    let speed = |name: &str| known.iter().find(|it| it.name == name)?.bits_per_second;
    let nics = Nics::read().0.into_iter().map(|nic| NicFigures {
        bits_per_second: speed(&nic.name),
        name: nic.name,
        bytes_in: nic.bytes_in,
        bytes_out: nic.bytes_out,
    });
    MachineFigures {
        nics: nics.collect(),
        ..figures
    }
}

async fn prometheus(
    State(handle): State<Handle>,
    Extension(alerting): Extension<Arc<Alerting>>,
    Extension(settings): Extension<Arc<Settings>>,
    Extension(gate): Extension<Arc<Gate>>,
) -> Text {
    let BadProofs { logins, tokens } = &gate.bad_proofs;
    let of_machine = MachineFigures {
        commit: gate.commit,
        nics: Vec::new(),
        certificates: alerting.ends(),
        reloaded: settings.refused().is_none(),
        bad_proofs: [logins, tokens].map(|count| count.load(Relaxed)),
    };
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let figures = alerting.figures();
    let text = ask!(handle, |controller| {
        let sample = controller.sample().await;
        let of_machine = with_nics(of_machine, &sample.nics);
        metrics::text(&sample, &figures, &of_machine)
    });
    Text { kind, text }
}

async fn openapi() -> Answer<&'static Value> {
    Answer(Ok(&*DOCUMENT))
}

async fn status(
    State(handle): State<Handle>,
    Extension(alerting): Extension<Arc<Alerting>>,
    Extension(gate): Extension<Arc<Gate>>,
    Extension(settings): Extension<Arc<Settings>>,
) -> Answer<StatusView> {
    let status = ask!(handle, |controller| controller.status().await);
    Answer(status.map(|mut status| {
        status.alerts = alerting.counts();
        if gate.store.has_first_password() {
            status.notes.extend(status.open_early());
        }
        let certificate = gate.certificate.as_ref().and_then(|it| it.problem());
        let certificate =
            certificate.map(|why| format!("https goes on with the certificate that it had: {why}"));
        for problem in certificate.into_iter().chain(settings.refused()) {
            status.problems.push(problem);
            if status.health == Health::Ok {
                status.health = Health::Degraded;
            }
        }
        status
    }))
}

async fn activity(State(handle): State<Handle>) -> Answer<ActivityView> {
    Answer(ask!(handle, |controller| controller.activity().await))
}

async fn export(State(handle): State<Handle>, Only(only): Only) -> WithTag<ObjectSet> {
    WithTag(ask!(handle, |controller| {
        let tag = controller.tag(&Tagged::All);
        let set = controller.export()?;
        let set = if only.is_empty() {
            set
        } else {
            export_only(&set, &only)?
        };
        Ok((tag, set))
    }))
}

async fn apply(
    State(handle): State<Handle>,
    whole: Whole,
    Wanted(set): Wanted<ObjectSet>,
) -> Outcome {
    let (prune, body) = (whole.prune, Body::set(&set));
    let only = whole.only;
    let wanted = if only.is_empty() {
        Edit::Apply { set, prune }
    } else {
        Edit::ApplyOnly { set, only, prune }
    };
    edit(&handle, whole.change, wanted, body).await
}

async fn create_objects(
    State(handle): State<Handle>,
    change: Change,
    Wanted(set): Wanted<ObjectSet>,
) -> Outcome {
    let body = Body::set(&set);
    edit(&handle, change, Edit::Create(set), body).await
}

async fn refusals(
    State(handle): State<Handle>,
    listing: Listing<RefusalFacts>,
) -> Listed<RefusalFacts> {
    listing.show(ask!(handle, |controller| controller.refusals().await))
}

async fn sessions(
    State(handle): State<Handle>,
    listing: Listing<SessionFacts>,
) -> Listed<SessionFacts> {
    listing.show(ask!(handle, |controller| controller.sessions().await))
}

async fn pools(State(handle): State<Handle>, listing: Listing<PoolFacts>) -> Listed<PoolFacts> {
    listing.show(ask!(handle, |controller| controller.pools().await))
}

async fn pool(State(handle): State<Handle>, Named(name): Named) -> Answer<PoolFacts> {
    Answer(ask!(handle, |controller| controller.pool(&name).await).and_then(|pool| pool))
}

async fn journal(
    State(handle): State<Handle>,
    Named(name): Named,
    DryRun(dry_run, note): DryRun,
    Wanted(mut request): Wanted<JournalRequest>,
) -> Answer<JournalOutcome> {
    request.dry_run |= dry_run;
    note.dry(request.dry_run);
    let done = ask!(handle, |controller| controller
        .journal(&name, request)
        .await);
    Answer(done.and_then(|done| done))
}

async fn session(State(handle): State<Handle>, Named(id): Named) -> Answer<SessionFacts> {
    let run = async {
        let id = session_id(&id)?;
        ask!(handle, |controller| controller.session(id).await)?
    };
    Answer(run.await)
}
