//! What passes between the command line and the daemon, held against the document of the API.
//!
//! **Contract.** Every answer that a command of these tests gets through the socket has a path,
//! method, status, media type and members that the document has. What is no document (a stream, a
//! file) is held against its media type alone.

#![expect(
    clippy::disallowed_methods,
    reason = "threads of a test that pass on what processes say, beside no runtime"
)]

#[path = "../../../api/src/contract/schema.rs"]
mod schema;

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

/// What went to the daemon on a connection, and what came back.
type Passed = (Vec<u8>, Vec<u8>);

/// Stands between a command and the daemon, and writes down what passes.
pub(crate) struct Relay {
    socket: PathBuf,
    daemon: PathBuf,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Passed>>,
}

impl Relay {
    /// In front of the daemon at this socket; `None`: nobody listens there.
    pub(crate) fn start(daemon: &Path) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        UnixStream::connect(daemon).ok()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let socket = daemon.with_extension(format!("{number}.sock"));
        let listener = UnixListener::bind(&socket).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (ends, at) = (Arc::clone(&stop), daemon.to_owned());
        Some(Self {
            socket,
            daemon: daemon.to_owned(),
            stop,
            thread: std::thread::spawn(move || serve(&listener, &at, &ends)),
        })
    }

    pub(crate) fn api(&self) -> String {
        format!("unix:{}", self.socket.display())
    }

    /// The command has ended: holds all that it was answered against the document, and says how
    /// many answers there were.
    pub(crate) fn end(self) -> usize {
        self.stop.store(true, Ordering::Release);
        // It waits for the next one.
        drop(UnixStream::connect(&self.socket));
        let passed = self.thread.join().unwrap();
        std::fs::remove_file(&self.socket).unwrap();
        let mut count = 0;
        for (asked, answered) in passed.iter().filter(|(_, answered)| !answered.is_empty()) {
            let document = document(&self.daemon);
            let (asked, answered) = (messages(asked, false), messages(answered, true));
            for (question, answer) in asked.iter().zip(&answered) {
                check(document, question, answer);
                count += 1;
            }
        }
        count
    }
}

fn serve(listener: &UnixListener, daemon: &Path, stop: &AtomicBool) -> Vec<Passed> {
    let mut all = Vec::new();
    while let Ok((client, _)) = listener.accept() {
        if stop.load(Ordering::Acquire) {
            break;
        }
        // One that has gone meanwhile hangs up, as it would without this.
        let Ok(daemon) = UnixStream::connect(daemon) else {
            continue;
        };
        all.push(std::thread::spawn(move || pass(&client, &daemon)));
    }
    all.into_iter().map(|it| it.join().unwrap()).collect()
}

/// Passes on what both send, until the command hangs up.
fn pass(client: &UnixStream, daemon: &UnixStream) -> Passed {
    std::thread::scope(|scope| {
        let answers = scope.spawn(|| copy(daemon, client));
        let asked = copy(client, daemon);
        // It reads no more; the daemon may be one that never answers.
        let _ = daemon.shutdown(Shutdown::Both);
        (asked, answers.join().unwrap())
    })
}

fn copy(mut from: &UnixStream, mut to: &UnixStream) -> Vec<u8> {
    let (mut all, mut part) = (Vec::new(), vec![0; 1 << 16]);
    while let Ok(len @ 1..) = from.read(&mut part) {
        all.extend_from_slice(&part[..len]);
        if to.write_all(&part[..len]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    all
}

/// A request or an answer: its first line, headers and body.
struct Message {
    line: Vec<String>,
    headers: BTreeMap<String, String>,
    /// `None`: it was cut off, or has no end.
    body: Option<Vec<u8>>,
}

/// What stands one after the other in `bytes`.
fn messages(mut bytes: &[u8], are_answers: bool) -> Vec<Message> {
    let mut all = Vec::new();
    while let Some(end) = find(bytes, b"\r\n\r\n") {
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        bytes = &bytes[end + 4..];
        let mut lines = head.split("\r\n");
        let line = lines.next().unwrap().split(' ').map(str::to_owned);
        let line: Vec<String> = line.collect();
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
        let headers: BTreeMap<_, _> = headers.collect();
        let length = headers.get("content-length").map(|it| it.parse().unwrap());
        let has_none = are_answers && ["204", "304"].contains(&line[1].as_str());
        let body = if headers.contains_key("transfer-encoding") {
            chunks(&mut bytes)
        } else {
            let len: usize = if has_none { 0 } else { length.unwrap_or(0) };
            bytes.split_at_checked(len).map(|(body, rest)| {
                bytes = rest;
                body.to_vec()
            })
        };
        let is_whole = body.is_some();
        all.push(Message {
            line,
            headers,
            body,
        });
        if !is_whole {
            break;
        }
    }
    all
}

fn chunks(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let end = find(bytes, b"\r\n")?;
        let len = std::str::from_utf8(&bytes[..end]).unwrap();
        let len = usize::from_str_radix(len, 16).unwrap();
        let (chunk, rest) = bytes[end + 2..].split_at_checked(len)?;
        *bytes = rest.strip_prefix(b"\r\n")?;
        if len == 0 {
            return Some(all);
        }
        all.extend_from_slice(chunk);
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|it| it == what)
}

/// The document of this daemon, which is that of all daemons of one program.
fn document(daemon: &Path) -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let mut stream = UnixStream::connect(daemon).unwrap();
        stream
            .write_all(b"GET /api/v1/openapi.json HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let answer = messages(&bytes, true).remove(0);
        serde_json::from_slice(&answer.body.unwrap()).unwrap()
    })
}

/// The path of the document that this one is: one without braces goes before one with them.
fn path_of<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    let paths = &document["paths"];
    if let Some(exact) = paths.get(path) {
        return Some(exact);
    }
    let parts: Vec<&str> = path.split('/').collect();
    let fits = |known: &str| {
        let known: Vec<&str> = known.split('/').collect();
        let pairs = known.iter().zip(&parts);
        known.len() == parts.len() && { pairs }
            .all(|(known, part)| known.starts_with('{') || known == part)
    };
    let all = paths.as_object().unwrap();
    let found = all.iter().find(|(known, _)| fits(known));
    found.map(|(_, methods)| methods)
}

fn check(document: &Value, question: &Message, answer: &Message) {
    let (method, uri) = (&question.line[0], &question.line[1]);
    let path = uri.split('?').next().unwrap();
    let status = &answer.line[1];
    let text = answer.body.as_deref().map(String::from_utf8_lossy);
    let about = format!("{method} {uri}: {status}: {}", text.unwrap_or_default());
    let Some(methods) = path_of(document, path) else {
        assert_eq!(status, "404", "a path that the document has not: {about}");
        return;
    };
    let Some(operation) = methods.get(method.to_lowercase()) else {
        assert_eq!(status, "405", "a method that the document has not: {about}");
        return;
    };
    let known = &operation["responses"][status];
    assert!(
        known.is_object(),
        "a status that the document has not: {about}"
    );
    let kind = answer.headers.get("content-type");
    let kind = kind.and_then(|kind| kind.split(';').next());
    let (Some(kind), Some(body)) = (kind, &answer.body) else {
        return;
    };
    let content = &known["content"][kind]["schema"];
    assert!(!content.is_null(), "{kind} is not in the document: {about}");
    if kind.ends_with("json") {
        let body: Value = serde_json::from_slice(body).unwrap();
        let components = &document["components"]["schemas"];
        if let Err(why) = schema::check(components, content, &body, "") {
            panic!("{why}: {about}");
        }
    }
}

#[test]
fn what_a_command_is_answered_is_held_against_the_document() {
    use super::{Place, text_of};
    let place = Place::new("relay");
    let daemon = place.start();
    let socket = place.path("data/api.sock");
    for (command, code) in [("status", 0), ("lun show none", 3)] {
        let relay = Relay::start(&socket).unwrap();
        let words: Vec<&str> = command.split(' ').collect();
        let output = place.run_with(&relay.api(), &words, "");
        text_of(&output, code, command);
        assert!(relay.end() > 0, "{command}");
    }
    daemon.stop();
}

#[test]
fn what_passed_is_cut_into_questions_and_answers() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n\
                  HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\
                  content-length: 9\r\n\r\ncut";
    let all = messages(bytes, true);
    let bodies: Vec<Option<&[u8]>> = all.iter().map(|it| it.body.as_deref()).collect();
    assert_eq!(bodies, [Some(&b"[]"[..]), Some(b""), Some(b"abcd"), None]);
    assert_eq!(all[1].line[1], "304");
    assert_eq!(all[1].headers["etag"], "\"x\"");
}

#[test]
#[should_panic(expected = "/size is not in the document")]
fn a_member_that_the_document_has_not_is_found() {
    let document = serde_json::json!({
        "components": { "schemas": {} },
        "paths": { "/api/v1/luns/{name}": { "get": { "responses": { "200": { "content": { "application/json": {
            "schema": { "type": "object", "properties": { "name": { "type": "string" } } } } } } } } } },
    });
    let asked = messages(b"GET /api/v1/luns/a?x=1 HTTP/1.1\r\n\r\n", false);
    let answered = |body: &str| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
        let text = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        messages(text.as_bytes(), true)
    };
    check(&document, &asked[0], &answered("{\"name\":\"a\"}")[0]);
    check(
        &document,
        &asked[0],
        &answered("{\"name\":\"a\",\"size\":1}")[0],
    );
}
