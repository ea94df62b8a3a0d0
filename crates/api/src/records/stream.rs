//! `GET /events`: what happens and what the node does, as Server-Sent Events.
//!
//! **Contract.** Events have their identifier as `id`: a client that comes again with the last one
//! (`Last-Event-ID`) gets all that came since, each once and in order, from memory or from the log.
//! A client that reads slowly gets the newest, and learns how many events it missed. A comment
//! goes out every ten seconds, and whoever may not read any more is cut off then.

use crate::auth::Gate;
use crate::describe::{Operation, Parameter, Part, Reply, Schemas};
use crate::parameters::Parameters;
use crate::parts::Refused;
use crate::peer::Peer;
use crate::places::{Place, Places};
use crate::records::Records;
use crate::records::frame::{Frame, part};
use crate::records::log::unreadable;
use crate::records::topics::Topics;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Extension, FromRequestParts};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use events::{Batch, Event, Subscription, Wanted};
use manifest::activity::ActivityView;
use manifest::code::Code;
use manifest::problem::Problem;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How soon a client comes again, in milliseconds.
const RETRY_MS: u64 = 2_000;

/// The most streams over TCP, and of one address: each of them has other connections beside.
pub(crate) const STREAMS_MAX: usize = 512;
pub(crate) const STREAMS_OF_ONE_MAX: usize = 128;

/// How many events are read from the log at once.
const PAGE: u64 = 256;

/// The most events that come from the log; who was away for longer learns how many it missed.
const REPLAYED_MAX: u64 = 10_000;

/// The header that a browser sends when it comes again.
const LAST: &str = "last-event-id";

/// What somebody asked of the stream.
pub(crate) struct Asked {
    topics: Topics,
    last: Option<u64>,
    follow: bool,
    request: Parts,
}

impl Asked {
    fn read(request: &Parts) -> Result<Self, Problem> {
        let all = Parameters::read(request.uri.query(), &["topics", "since", "follow"])?;
        let mut topics = Topics::read(all.words("topics"))?;
        topics.events |= all.one("topics").is_none();
        let since = all.number("since", 0, u64::MAX)?;
        let last = request.headers.get(LAST).and_then(|it| it.to_str().ok());
        // What it was sent was an identifier, or nothing.
        let last = last.and_then(|it| it.trim().parse().ok());
        Ok(Self {
            topics,
            last: last.or(since),
            follow: all.switch("follow", true)?,
            request: request.clone(),
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        Ok(Self::read(parts)?)
    }
}

impl Part for Asked {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let mut takes = |name, place, meaning: &str, schema| {
            operation.takes(Parameter {
                name,
                place,
                meaning: meaning.to_owned(),
                schema,
            });
        };
        takes(
            "topics",
            "query",
            "With commas between: `events` (where nothing is said), `activity` (all LUNs and sessions), `overview` (the node \
             as a whole), `lun:NAME`, `host:NAME` (its sessions); 64 objects at most.",
            json!({ "type": "string", "default": "events" }),
        );
        takes(
            "since",
            "query",
            "Begin after the event of this identifier; `Last-Event-ID` goes before it.",
            json!({ "type": "integer", "minimum": 0 }),
        );
        takes(
            "follow",
            "query",
            "`false`: end when all that is there was sent.",
            json!({ "type": "boolean", "default": true }),
        );
        takes(
            "Last-Event-ID",
            "header",
            "Go on after this event, as browsers do by themselves.",
            json!({ "type": "string" }),
        );
        operation.fails(&[
            Code::BadRequest,
            Code::StreamsTaken,
            Code::RecordsUnreadable,
        ]);
    }
}

/// A stream, or why there is none.
pub(crate) struct Streamed(Response);

impl IntoResponse for Streamed {
    fn into_response(self) -> Response {
        self.0
    }
}

impl Reply for Streamed {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let about = "`event`: an event, as `/events/log` has it. `missed`: at least so many were not sent. `activity`: as \
                     `/activity`, of `lun` and `host` without cores and with what was asked for alone; then \
                     `activity_change` once a second: LUNs and sessions that changed, and `luns_gone`, `sessions_gone`. \
                     `overview`: once a second the sums over all LUNs.";
        let content = json!({ "text/event-stream": { "schema": { "type": "string" } } });
        operation.answers(200, about, content);
    }
}

/// Streams that are open.
#[derive(Clone)]
pub(crate) struct Streams(Places);

impl Default for Streams {
    fn default() -> Self {
        Self(Places::of(STREAMS_MAX, STREAMS_OF_ONE_MAX))
    }
}

pub(crate) async fn events_stream(
    Extension(records): Extension<Records>,
    Extension(gate): Extension<Arc<Gate>>,
    Extension(streams): Extension<Streams>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    asked: Asked,
) -> Streamed {
    if !asked.follow
        && let Err(failed) = records.events().is_cut(u64::MAX >> 1).await
    {
        // Who waits for its end does not get an empty one instead.
        return Streamed(crate::plain_answer::problem_response(&unreadable(failed)));
    }
    let Some(place) = streams.0.take(peer.source()) else {
        let detail = "all places for streams are taken";
        let problem = Problem::new(Code::StreamsTaken, detail);
        return Streamed(crate::plain_answer::problem_response(&problem));
    };
    let viewer = Viewer::new(records, gate, place, asked);
    let stream = futures_util::stream::unfold(viewer, |mut viewer| async move {
        let next = viewer.next().await?;
        Some((Ok::<_, Infallible>(next), viewer))
    });
    let mut response = Response::new(Body::from_stream(stream));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/event-stream");
    headers.insert(header::CONTENT_TYPE, kind);
    // Proxies that gather answers would hold it up.
    let gather = HeaderName::from_static("x-accel-buffering");
    headers.insert(gather, HeaderValue::from_static("no"));
    Streamed(response)
}

/// Where a stream is.
enum Phase {
    Begin,
    /// What the client missed comes from the log; how much of it has come.
    Replay(u64),
    Live,
    Over,
}

/// A client's place in what is sent.
struct Viewer {
    records: Records,
    gate: Arc<Gate>,
    asked: Asked,
    phase: Phase,
    subscription: Option<Subscription>,
    frames: Option<watch::Receiver<Option<Arc<Frame>>>>,
    /// The number of the frame that it has.
    has: Option<u64>,
    /// What it has of its objects.
    part: Option<ActivityView>,
    ended: watch::Receiver<bool>,
    heartbeat: Interval,
    _place: Place,
}

/// What comes next.
enum Next {
    Ended,
    Events(Batch),
    Frame,
    Heartbeat,
}

impl Viewer {
    fn new(records: Records, gate: Arc<Gate>, place: Place, asked: Asked) -> Self {
        let mut heartbeat = interval(gate.heartbeat);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        heartbeat.reset();
        let frames = asked.topics.has_frames() && asked.follow;
        if frames {
            records.watchers().come(&asked.topics);
        }
        Self {
            frames: frames.then(|| records.frames()),
            ended: records.ended(),
            records,
            gate,
            asked,
            phase: Phase::Begin,
            subscription: None,
            has: None,
            part: None,
            heartbeat,
            _place: place,
        }
    }

    /// What is sent next; `None`: the stream ends.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.phase {
                // At once, so that the client knows that it is served.
                Phase::Begin => {
                    self.phase = Phase::Replay(0);
                    return Some(Bytes::from(format!("retry: {RETRY_MS}\n: causeway\n\n")));
                }
                Phase::Replay(count) => {
                    if let Some(text) = self.replay(count).await {
                        return Some(Bytes::from(text));
                    }
                }
                Phase::Live => return self.live().await,
                Phase::Over => return None,
            }
        }
    }

    /// A page of what the client missed; `None` when it has all, and the phase is another one.
    async fn replay(&mut self, count: u64) -> Option<String> {
        let events = self.records.events().clone();
        let last = self.asked.last.filter(|_| self.asked.topics.events);
        let follow = self.asked.follow;
        if let Some(last) = last
            && !(follow && events.reaches(last))
            && count < REPLAYED_MAX
        {
            let page = Wanted {
                since: Some(last),
                limit: PAGE,
                ..Wanted::default()
            };
            // What is gone, or cannot be read, is said before what is there.
            let is_cut = count == 0 && events.is_cut(last).await.unwrap_or(false);
            match events.list(page).await {
                Ok(page) => {
                    if let Some(newest) = page.last() {
                        self.asked.last = Some(newest.id);
                        self.phase = Phase::Replay(count + page.len() as u64);
                        let missed = missed_where(is_cut);
                        return Some(page.iter().map(frame_of).fold(missed, |all, it| all + &it));
                    }
                }
                Err(_) if !follow => {
                    self.phase = Phase::Over;
                    return Some(missed(1));
                }
                // What is in memory follows, behind how much is missing.
                Err(_) => {}
            }
        }
        if !follow {
            self.phase = Phase::Over;
            return None;
        }
        if self.asked.topics.events {
            self.subscription = Some(events.subscribe(last).await);
        }
        self.phase = Phase::Live;
        None
    }

    async fn live(&mut self) -> Option<Bytes> {
        loop {
            match self.wait().await {
                Next::Ended => return None,
                Next::Events(batch) => {
                    let mut text = String::new();
                    if batch.missed > 0 {
                        text.push_str(&missed(batch.missed));
                    }
                    text.extend(batch.events.iter().map(|event| frame_of(event)));
                    return Some(Bytes::from(text));
                }
                Next::Frame => {
                    if let Some(bytes) = self.frame() {
                        return Some(bytes);
                    }
                }
                Next::Heartbeat => {
                    // It may have been logged out, or its token taken away.
                    self.gate.admit(&self.asked.request).ok()?;
                    return Some(Bytes::from_static(b":\n\n"));
                }
            }
        }
    }

    async fn wait(&mut self) -> Next {
        let Self {
            subscription,
            frames,
            ended,
            heartbeat,
            ..
        } = self;
        let events = async {
            match subscription {
                Some(subscription) => subscription.next().await,
                None => std::future::pending().await,
            }
        };
        let frame = async {
            match frames {
                // The sender is gone only with the records, which this stream holds.
                Some(frames) => drop(frames.changed().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = ended.wait_for(|ended| *ended) => Next::Ended,
            batch = events => Next::Events(batch),
            () = frame => Next::Frame,
            _ = heartbeat.tick() => Next::Heartbeat,
        }
    }

    /// What of the newest frame it asked for.
    fn frame(&mut self) -> Option<Bytes> {
        let newest = self.frames.as_mut()?.borrow_and_update().clone()?;
        let (topics, shown) = (&self.asked.topics, newest.shown());
        // Made before this one came: the next one has what it needs.
        if !topics.are_in(&shown.watched) {
            return None;
        }
        let mut text = Vec::new();
        let mut put = |(name, document): (&str, Bytes)| {
            text.extend_from_slice(format!("event: {name}\ndata: ").as_bytes());
            text.extend_from_slice(&document);
            text.extend_from_slice(b"\n\n");
        };
        if topics.overview {
            put(("overview", newest.overview()));
        }
        if topics.activity {
            put(newest.after(self.has));
            self.has = Some(newest.number());
        } else if topics.has_objects() {
            let now = topics.part_of(&shown.view);
            put(part(self.part.as_ref(), &now));
            self.part = Some(now);
        }
        Some(text.into())
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        if self.frames.is_some() {
            self.records.watchers().leave(&self.asked.topics);
        }
    }
}

/// That some were not sent, where that is so.
fn missed_where(is_cut: bool) -> String {
    if is_cut { missed(1) } else { String::new() }
}

/// That so many events were not sent, at least.
fn missed(count: u64) -> String {
    let document = json!({ "missed": count });
    format!("event: missed\ndata: {document}\n\n")
}

/// An event as it is sent; a document has no line breaks.
fn frame_of(event: &Event) -> String {
    let document = serde_json::to_string(event).unwrap_or_default();
    format!("id: {}\nevent: event\ndata: {document}\n\n", event.id)
}
