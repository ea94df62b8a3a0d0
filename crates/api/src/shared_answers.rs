//! Answers that pages share: those who watch the same ask for the same again and again.
//!
//! **Contract.** A page gets an answer that is at most [`AGE_MAX`] old, and never one from before a
//! change that had ended, or an event or sample that was to be seen, when it asked. What asks at
//! the same moment waits for one answer. Scripts and the command line always get a new one: only
//! requests that a browser's page sends say so in `Sec-Fetch-Mode`, which no page can set or leave
//! out.
//!
//! Only what is the same for everybody who may read it is shared; the gate is in front.

use crate::access::reads;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_parts::compress;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as PlainMutex, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The oldest that an answer may be.
pub(crate) const AGE_MAX: Duration = Duration::from_millis(500);

/// So many questions are known at a time; others are answered by themselves.
const QUESTIONS_MAX: usize = 64;

/// What is longer is not kept.
const BYTES_MAX: usize = 8 << 20;

const OF_A_PAGE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// What pages ask for again and again, and is the same for all of them.
pub(crate) const SHARED: &[&str] = &[
    "status",
    "luns",
    "targets",
    "hosts",
    "grants",
    "sessions",
    "pools",
    "refusals",
    "disks",
    "bays",
    "jobs",
    "alerts",
    "events/log",
    "history",
    "history/latency",
];

/// Changes, samples and events until then.
type Moment = (u64, (u64, u64));

/// An answer, and when it was made.
#[derive(Clone)]
struct Kept {
    at: Instant,
    moment: Moment,
    headers: HeaderMap,
    body: Bytes,
}

type Question = Arc<Mutex<Option<Kept>>>;

/// The questions of late, by path and query.
#[derive(Clone)]
pub(super) struct SharedAnswers {
    questions: Arc<PlainMutex<BTreeMap<String, Question>>>,
    changes: Arc<AtomicU64>,
    seen: Arc<dyn Fn() -> (u64, u64) + Send + Sync>,
    age_max: Duration,
}

impl SharedAnswers {
    /// `seen` is another one when something else of the node is to be seen.
    pub(super) fn new(seen: impl Fn() -> (u64, u64) + Send + Sync + 'static) -> Self {
        Self {
            questions: Arc::default(),
            changes: Arc::default(),
            seen: Arc::new(seen),
            age_max: AGE_MAX,
        }
    }

    fn moment(&self) -> Moment {
        (self.changes.load(Ordering::Acquire), (self.seen)())
    }

    /// The place of an answer; `None` where there are too many questions.
    fn question(&self, asked: &str) -> Option<Question> {
        let mut questions = self
            .questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = questions.get(asked) {
            return Some(Arc::clone(known));
        }
        if questions.len() >= QUESTIONS_MAX {
            let now = Instant::now();
            // Of those that nobody waits for: their answers are old, or were none.
            questions.retain(|_, question| match question.try_lock() {
                Ok(kept) => kept
                    .as_ref()
                    .is_some_and(|kept| now - kept.at <= self.age_max),
                Err(_) => true,
            });
        }
        (questions.len() < QUESTIONS_MAX).then(|| {
            let question = Question::default();
            questions.insert(asked.to_owned(), Arc::clone(&question));
            question
        })
    }

    fn is_fresh(&self, kept: &Kept) -> bool {
        kept.moment == self.moment() && kept.at.elapsed() <= self.age_max
    }
}

/// A page asks for what others ask for, too.
fn is_shared(request: &Request) -> bool {
    let path = request.uri().path().strip_prefix("/api/v1/");
    *request.method() == Method::GET
        && request.headers().contains_key(OF_A_PAGE)
        && path.is_some_and(|path| SHARED.contains(&path))
}

/// Answers pages with what another one got just now, where that still holds.
pub(super) async fn share(
    State(shared): State<SharedAnswers>,
    request: Request,
    next: Next,
) -> Response {
    if !is_shared(&request) {
        let changes = !reads(request.method());
        let response = next.run(request).await;
        if changes {
            shared.changes.fetch_add(1, Ordering::Release);
        }
        return response;
    }
    // Compressed once for all that take it so.
    let packed = if compress::is_wanted(&request) {
        "gzip "
    } else {
        ""
    };
    let asked = request.uri().path_and_query();
    let asked = asked.map(|asked| format!("{packed}{asked}"));
    let Some(question) = asked.and_then(|asked| shared.question(&asked)) else {
        return next.run(request).await;
    };
    let mut kept = question.lock().await;
    if let Some(known) = kept.as_ref().filter(|kept| shared.is_fresh(kept)) {
        return known.answer();
    }
    *kept = None;
    let (at, moment) = (Instant::now(), shared.moment());
    let response = next.run(request).await;
    if response.status() != StatusCode::OK {
        return response;
    }
    let (head, body) = response.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let made = Kept {
        at,
        moment,
        headers: head.headers,
        body,
    };
    let response = made.answer();
    *kept = Some(made).filter(|made| made.body.len() <= BYTES_MAX);
    response
}

impl Kept {
    fn answer(&self) -> Response {
        let mut response = Response::new(Body::from(self.body.clone()));
        *response.headers_mut() = self.headers.clone();
        response
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use axum::Router;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;
    use std::sync::atomic::AtomicU32;

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn what_pages_ask_for_is_packed_once_for_all() {
        for path in SHARED {
            let request = Request::get(format!("/api/v1/{path}")).header("accept-encoding", "gzip");
            let request = request.body(Body::empty()).unwrap();
            assert!(compress::is_wanted(&request), "{path}");
        }
    }

    /// Answers each question with how many it has been asked, after some time.
    struct Node {
        app: TowerToHyperService<Router>,
        asked: Arc<AtomicU32>,
        /// What is to be seen of it.
        seen: Arc<AtomicU64>,
    }

    async fn answer_of(count: Arc<AtomicU32>) -> Result<String, StatusCode> {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        tokio::time::sleep(Duration::from_millis(5)).await;
        if number == 1_000 {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        Ok(number.to_string())
    }

    impl Node {
        fn new(age_max: Duration) -> Self {
            let seen = Arc::new(AtomicU64::new(0));
            let events = Arc::clone(&seen);
            let shared = SharedAnswers {
                age_max,
                ..SharedAnswers::new(move || (0, events.load(Ordering::Acquire)))
            };
            let asked = Arc::new(AtomicU32::new(0));
            let count = Arc::clone(&asked);
            let handler = move || answer_of(Arc::clone(&count));
            let change = async || StatusCode::OK;
            let app = Router::new()
                .route("/api/v1/status", get(handler.clone()).post(change))
                .route("/api/v1/me", get(handler))
                .layer(from_fn_with_state(shared, share));
            Self {
                app: TowerToHyperService::new(app),
                asked,
                seen,
            }
        }

        async fn ask(&self, method: Method, path: &str, is_page: bool) -> String {
            let mut request = Request::builder().method(method).uri(path);
            if is_page {
                request = request.header(OF_A_PAGE, "cors");
            }
            let response = self.app.call(request.body(Body::empty()).unwrap()).await;
            let body = to_bytes(response.unwrap().into_body(), 100).await.unwrap();
            String::from_utf8(body.to_vec()).unwrap()
        }

        async fn page(&self, path: &str) -> String {
            self.ask(Method::GET, path, true).await
        }
    }

    const STATUS: &str = "/api/v1/status";

    #[tokio::test]
    async fn pages_share_an_answer_that_is_young_and_from_after_the_last_change() {
        let node = Node::new(LONG);
        assert_eq!(node.page(STATUS).await, "1");
        assert_eq!(node.page(STATUS).await, "1");
        assert_eq!(node.ask(Method::GET, STATUS, false).await, "2", "a script");
        assert_eq!(node.page(STATUS).await, "1");
        let other = "/api/v1/status?x=1";
        assert_eq!(node.page(other).await, "3", "another question");
        node.ask(Method::POST, STATUS, false).await;
        assert_eq!(node.page(STATUS).await, "4", "there was a change");
        node.seen.store(1, Ordering::Release);
        assert_eq!(node.page(STATUS).await, "5", "there was an event");
        assert_eq!(node.page(STATUS).await, "5");
        assert_eq!(node.page("/api/v1/me").await, "6");
        assert_eq!(node.page("/api/v1/me").await, "7", "who asks decides it");
        let node = Node::new(Duration::ZERO);
        assert_eq!(node.page(STATUS).await, "1");
        assert_eq!(node.page(STATUS).await, "2", "it is old");
    }

    #[tokio::test]
    async fn what_asks_at_the_same_moment_waits_for_one_answer() {
        let node = Node::new(LONG);
        let all = futures_util::future::join_all((0..50).map(|_| node.page(STATUS))).await;
        assert!(all.iter().all(|said| said == "1"), "{all:?}");
        // A change that ends while an answer is made: what began before it is not kept.
        let node = Node::new(LONG);
        let (before, _) = tokio::join!(node.page(STATUS), node.ask(Method::POST, STATUS, false));
        assert_eq!(before, "1");
        assert_eq!(node.page(STATUS).await, "2");
    }

    #[tokio::test]
    async fn errors_are_not_kept_and_many_questions_take_no_more_memory() {
        let node = Node::new(LONG);
        node.asked.store(999, Ordering::Relaxed);
        assert_eq!(node.page(STATUS).await, "");
        assert_eq!(node.page(STATUS).await, "1001");
        let node = Node::new(LONG);
        for at in 0..3 * QUESTIONS_MAX {
            node.page(&format!("{STATUS}?at={at}")).await;
        }
        // Of those that found no place nothing is kept.
        assert_eq!(node.page(&format!("{STATUS}?at=0")).await, "1");
        let last = format!("{STATUS}?at={}", 3 * QUESTIONS_MAX - 1);
        assert_eq!(node.page(&last).await, "193");
    }

    #[test]
    fn old_answers_make_place_and_those_that_somebody_waits_for_do_not() {
        let shared = SharedAnswers::new(|| (0, 0));
        let held: Vec<_> = (0..QUESTIONS_MAX)
            .map(|at| shared.question(&at.to_string()).unwrap())
            .collect();
        let waits: Vec<_> = held.iter().map(|it| it.try_lock().unwrap()).collect();
        assert!(shared.question("one more").is_none());
        assert!(shared.question("0").is_some());
        drop(waits);
        assert!(shared.question("one more").is_some());
    }
}
