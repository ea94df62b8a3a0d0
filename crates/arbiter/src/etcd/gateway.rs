//! etcd's JSON gateway: what is posted, and what its answers mean.
//!
//! Keys and values are base64, 64-bit numbers are strings, what is zero or empty may be left out. A
//! batch is one transaction. Each of its swaps is a transaction within it, so that one that comes
//! too late does not keep the others from being done.

use crate::memory::StoreId;
use crate::question::{Answer, Key, Question, Record, Swap, SwapAll, Together};
use replica::Revision;
use serde::Deserialize;
use serde_json::{Value, json};
use units::base64;

/// Records of one answer to who follows.
pub(super) const PAGE_MAX: usize = 1000;

/// What one request asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Asks {
    /// All of these, at one moment; swaps only where a record of this version, or a newer one, was
    /// written before. 0: wherever.
    Batch(Vec<Question>, Revision),
    /// All of these or none, by such a store.
    Together(SwapAll, Revision),
    /// How far the store is.
    Glance,
    /// The records below a name that changed since, behind one of them.
    Page {
        below: Key,
        since: Revision,
        after: Option<Key>,
    },
}

/// What an answer says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub store: StoreId,
    pub revision: Revision,
}

/// What it says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Says {
    Answers(Vec<Answer>),
    Together(Together),
    /// Nothing was done: the newest version of a record is this one.
    IsBehind(Revision),
    Nothing,
    Page {
        records: Vec<(Key, Record)>,
        is_last: bool,
    },
}

impl Says {
    /// The versions of records that it has.
    pub(super) fn records(&self) -> Vec<Revision> {
        match self {
            Self::Answers(answers) => answers.iter().filter_map(Answer::version).collect(),
            Self::Page { records, .. } => records.iter().map(|(_, record)| record.0).collect(),
            Self::Together(Together::Swapped(revision)) => vec![*revision],
            Self::Together(Together::Refused(are)) => are.iter().flatten().map(|it| it.0).collect(),
            Self::Together(Together::Unknown(_)) | Self::Nothing | Self::IsBehind(_) => Vec::new(),
        }
    }
}

/// Path and body of a request, for records whose names begin with `prefix`.
pub(super) fn request(prefix: &str, asks: &Asks) -> (&'static str, Vec<u8>) {
    let operation = |question: &Question| match question {
        Question::Read(key) => range(prefix, key),
        Question::Swap(swap) => json!({ "request_txn": {
            "compare": [is_expected(prefix, swap)],
            "success": [put(prefix, swap)],
            "failure": [range(prefix, &swap.key)],
        } }),
    };
    let (path, body) = match asks {
        Asks::Batch(questions, mark) => {
            let mut all: Vec<Value> = questions.iter().map(operation).collect();
            let mut body = json!({});
            if has_swap(questions) {
                let key = base64::encode(mark_of(prefix).as_bytes());
                all.push(json!({ "request_put": { "key": key, "value": base64::encode(b"1") } }));
                body = guard(&key, *mark);
            }
            body["success"] = json!(all);
            ("/v3/kv/txn", body)
        }
        Asks::Together(swaps, mark) => ("/v3/kv/txn", together(prefix, swaps, *mark)),
        Asks::Glance => {
            // Nothing has this name: no key has a `/` at its end.
            let key = base64::encode(prefix.as_bytes());
            ("/v3/kv/range", json!({ "key": key, "count_only": true }))
        }
        Asks::Page {
            below,
            since,
            after,
        } => ("/v3/kv/range", page(prefix, below, *since, after.as_ref())),
    };
    (path, body.to_string().into_bytes())
}

fn name_of(prefix: &str, key: &Key) -> String {
    base64::encode(format!("{prefix}{key}").as_bytes())
}

fn range(prefix: &str, key: &Key) -> Value {
    json!({ "request_range": { "key": name_of(prefix, key) } })
}

fn put(prefix: &str, swap: &Swap) -> Value {
    let value = base64::encode(swap.to());
    json!({ "request_put": { "key": name_of(prefix, &swap.key), "value": value } })
}

fn is_expected(prefix: &str, swap: &Swap) -> Value {
    json!({
        "key": name_of(prefix, &swap.key),
        "target": "MOD",
        "result": "EQUAL",
        "mod_revision": swap.expected.0.to_string(),
    })
}

/// One transaction that compares all of them, and whether the store is behind. If something is not
/// as it was expected it reads all of that.
fn together(prefix: &str, swaps: &SwapAll, mark: Revision) -> Value {
    let key = base64::encode(mark_of(prefix).as_bytes());
    let mut body = guard(&key, mark);
    let with = |first: &Value, of: &dyn Fn(&Swap) -> Value| {
        let mut all = first.as_array().cloned().unwrap_or_default();
        all.extend(swaps.swaps().iter().map(of));
        json!(all)
    };
    body["compare"] = with(&body["compare"], &|it| is_expected(prefix, it));
    body["failure"] = with(&body["failure"], &|it| range(prefix, &it.key));
    let writes = json!([{ "request_put": { "key": key, "value": base64::encode(b"1") } }]);
    body["success"] = with(&writes, &|it| put(prefix, it));
    body
}

/// The key that each transaction writes in which records may be: it has the newest version of any.
/// No record has an empty word in its name.
fn mark_of(prefix: &str) -> String {
    format!("{prefix}/mark")
}

fn has_swap(questions: &[Question]) -> bool {
    questions.iter().any(|it| matches!(it, Question::Swap(_)))
}

/// Nothing is done by a store that was set back: it would write before anybody noticed.
fn guard(key: &str, mark: Revision) -> Value {
    if mark.0 == 0 {
        return json!({});
    }
    json!({
        "compare": [{
            "key": key,
            "target": "MOD",
            "result": "GREATER",
            "mod_revision": (mark.0 - 1).to_string(),
        }],
        "failure": [{ "request_range": { "key": key } }],
    })
}

fn page(prefix: &str, below: &Key, since: Revision, after: Option<&Key>) -> Value {
    let begin = match after {
        None => format!("{prefix}{below}/"),
        Some(key) => format!("{prefix}{key}\0"),
    };
    // The next sign after `/`.
    let end = format!("{prefix}{below}0");
    let mut body = json!({
        "key": base64::encode(begin.as_bytes()),
        "range_end": base64::encode(end.as_bytes()),
        "limit": PAGE_MAX.to_string(),
    });
    if since.0 > 0 {
        body["min_mod_revision"] = json!((since.0 + 1).to_string());
    }
    body
}

/// A number, as etcd writes those of 64 bits, or as others would.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(try_from = "Number")]
struct Int(u64);

#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Plain(u64),
}

impl TryFrom<Number> for Int {
    type Error = std::num::ParseIntError;
    fn try_from(number: Number) -> Result<Self, Self::Error> {
        Ok(match number {
            Number::Text(text) => Self(text.parse()?),
            Number::Plain(number) => Self(number),
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawHeader {
    #[serde(alias = "clusterId")]
    cluster_id: Int,
    revision: Int,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reply {
    header: RawHeader,
    succeeded: bool,
    responses: Vec<Response>,
    kvs: Vec<KeyValue>,
    more: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Response {
    #[serde(alias = "responseRange")]
    response_range: Option<Box<Reply>>,
    #[serde(alias = "responsePut")]
    response_put: Option<Box<Reply>>,
    #[serde(alias = "responseTxn")]
    response_txn: Option<Box<Reply>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KeyValue {
    key: String,
    #[serde(alias = "modRevision")]
    mod_revision: Int,
    value: String,
}

impl KeyValue {
    fn record(&self) -> Option<Record> {
        let value = base64::decode(&self.value)?;
        (self.mod_revision.0 > 0).then_some((Revision(self.mod_revision.0), value))
    }
}

/// Reads the answer to a request.
///
/// # Errors
/// Why it cannot be one.
pub(super) fn read(prefix: &str, asks: &Asks, body: &[u8]) -> Result<(Header, Says), String> {
    let reply: Reply = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let header = Header {
        store: StoreId(reply.header.cluster_id.0),
        revision: Revision(reply.header.revision.0),
    };
    if header.store.0 == 0 || header.revision.0 == 0 {
        return Err("it does not say which cluster it is of, and how far that is".to_owned());
    }
    let says = match asks {
        Asks::Batch(questions, mark) => batch(questions, *mark, &reply)?,
        Asks::Together(swaps, mark) => all_of(swaps, *mark, &reply)?,
        Asks::Glance => Says::Nothing,
        Asks::Page { .. } => {
            let record = |it: &KeyValue| Some((name(prefix, &it.key)?, it.record()?));
            let records = reply.kvs.iter().map(record).collect::<Option<Vec<_>>>();
            Says::Page {
                records: records.ok_or("a record has a name or a value that nobody wrote")?,
                is_last: !reply.more,
            }
        }
    };
    Ok((header, says))
}

fn batch(questions: &[Question], mark: Revision, reply: &Reply) -> Result<Says, String> {
    let has_swap = has_swap(questions);
    if has_swap && mark.0 > 0 && !reply.succeeded {
        let is = reply.responses.first().and_then(found);
        let is = is.ok_or("it does not say why nothing was done")?;
        return Ok(Says::IsBehind(is.map_or(Revision(0), |it| it.0)));
    }
    let (has, wants) = (
        reply.responses.len(),
        questions.len() + usize::from(has_swap),
    );
    if has != wants {
        return Err(format!("it has {has} answers to {wants} questions"));
    }
    let all = questions.iter().zip(&reply.responses);
    let answers = all.map(|(question, response)| answer(question, response));
    let answers = answers.collect::<Option<_>>();
    Ok(Says::Answers(answers.ok_or("an answer has no meaning")?))
}

fn all_of(swaps: &SwapAll, mark: Revision, reply: &Reply) -> Result<Says, String> {
    let responses = &reply.responses;
    if reply.succeeded {
        let written = responses.first().and_then(|it| it.response_put.as_ref());
        let revision = written.map_or(0, |it| it.header.revision.0);
        if responses.len() != swaps.swaps().len() + 1 || revision == 0 {
            return Err("it does not say what was written".to_owned());
        }
        return Ok(Says::Together(Together::Swapped(Revision(revision))));
    }
    let found = responses.iter().map(found).collect::<Option<Vec<_>>>();
    let mut found = found.ok_or("an answer has no meaning")?;
    if found.len() != swaps.swaps().len() + usize::from(mark.0 > 0) {
        return Err("it does not say why nothing was done".to_owned());
    }
    if mark.0 > 0 {
        let is = found.remove(0).map_or(Revision(0), |it| it.0);
        if is < mark {
            return Ok(Says::IsBehind(is));
        }
    }
    Ok(Says::Together(swaps.met(found)))
}

fn name(prefix: &str, key: &str) -> Option<Key> {
    let name = String::from_utf8(base64::decode(key)?).ok()?;
    Key::new(name.strip_prefix(prefix)?)
}

fn answer(question: &Question, response: &Response) -> Option<Answer> {
    match question {
        Question::Read(_) => Some(Answer::Is(found(response)?)),
        Question::Swap(swap) => {
            let reply = response.response_txn.as_ref()?;
            let only = reply.responses.first()?;
            if !reply.succeeded {
                return Some(swap.met(found(only)?));
            }
            let revision = only.response_put.as_ref()?.header.revision.0;
            (revision > 0).then_some(Answer::Swapped(Revision(revision)))
        }
    }
}

/// The record that a range gave, if any; `None`: it is no range, or the record cannot be read.
fn found(response: &Response) -> Option<Option<Record>> {
    match response.response_range.as_ref()?.kvs.first() {
        None => Some(None),
        Some(record) => record.record().map(Some),
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::question::Swap;

    fn key(text: &str) -> Key {
        Key::new(text).unwrap()
    }

    fn batch() -> Asks {
        let swap = |name, expected| {
            Question::Swap(Swap::new(key(name), Revision(expected), b"v1".to_vec()))
        };
        let all = vec![swap("a", 0), swap("b", 7), Question::Read(key("c"))];
        Asks::Batch(all, Revision(0))
    }

    // As etcd 3.4.23 answered, but for the identifiers.
    const SAID: &str = r#"{"header":{"cluster_id":"12267071056592207159","member_id":"4635245010026852132","revision":"2",
        "raft_term":"2"},"succeeded":true,"responses":[{"response_txn":{"header":{},"succeeded":true,"responses":
        [{"response_put":{"header":{"revision":"2"}}}]}},{"response_txn":{"header":{},"responses":[{"response_range":
        {"header":{"revision":"2"}}}]}},{"response_range":{"header":{"revision":"2"},"kvs":[{"key":"Yw==",
        "create_revision":"2","mod_revision":"2","version":"1","value":"djE="}],"count":"1"}},{"response_put":{
        "header":{"revision":"2"}}}]}"#;

    #[test]
    fn a_batch_is_one_transaction_and_each_swap_one_within_it() {
        let (path, body) = request("p/", &batch());
        assert_eq!(path, "/v3/kv/txn");
        let body: Value = serde_json::from_slice(&body).unwrap();
        let first = &body["success"][0]["request_txn"];
        assert_eq!(first["compare"][0]["key"], "cC9h");
        assert_eq!(first["compare"][0]["mod_revision"], "0");
        assert_eq!(first["success"][0]["request_put"]["value"], "djE=");
        assert_eq!(body["success"][2]["request_range"]["key"], "cC9j");
        let (header, says) = read("p/", &batch(), SAID.as_bytes()).unwrap();
        assert_eq!(header.store, StoreId(12_267_071_056_592_207_159));
        assert_eq!(header.revision, Revision(2));
        let is = Some((Revision(2), b"v1".to_vec()));
        let right = vec![
            Answer::Swapped(Revision(2)),
            Answer::Refused(None),
            Answer::Is(is),
        ];
        assert_eq!(says, Says::Answers(right));
    }

    #[test]
    fn a_store_that_is_behind_writes_nothing() {
        let Asks::Batch(questions, _) = batch() else {
            panic!("it is one");
        };
        let asks = Asks::Batch(questions, Revision(41));
        let (_, body) = request("p/", &asks);
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["compare"][0]["result"], "GREATER");
        assert_eq!(body["compare"][0]["mod_revision"], "40");
        assert_eq!(
            base64::decode(body["compare"][0]["key"].as_str().unwrap()).unwrap(),
            b"p//mark"
        );
        let said = r#"{"header":{"cluster_id":"5","revision":"60"},"responses":[{"response_range":{"kvs":[
            {"key":"cC8vbWFyaw==","mod_revision":"30","value":"MQ=="}]}}]}"#;
        let (_, says) = read("p/", &asks, said.as_bytes()).unwrap();
        assert_eq!(says, Says::IsBehind(Revision(30)));
        let reads = Asks::Batch(vec![Question::Read(key("c"))], Revision(41));
        let (_, body) = request("p/", &reads);
        assert!(
            !String::from_utf8(body).unwrap().contains("compare"),
            "what is only read is no write"
        );
    }

    #[test]
    fn names_of_the_newer_gateways_and_plain_numbers_are_read_as_well() {
        let mut newer = SAID.to_owned();
        for (from, to) in [
            ("response_txn", "responseTxn"),
            ("response_put", "responsePut"),
            ("response_range", "responseRange"),
            ("cluster_id", "clusterId"),
            ("mod_revision", "modRevision"),
            ("\"2\"", "2"),
        ] {
            newer = newer.replace(from, to);
        }
        assert_eq!(
            read("p/", &batch(), newer.as_bytes()),
            read("p/", &batch(), SAID.as_bytes())
        );
    }

    #[test]
    fn no_answer_is_taken_for_one_that_it_is_not() {
        for (from, to) in [
            ("{\"header\"", "{\"head\""),
            ("\"revision\":\"2\",", "\"revision\":\"0\","),
            ("\"revision\":\"2\",", "\"revision\":\"-2\","),
            ("response_txn", "response_range"),
            ("response_put", "response_delete_range"),
            ("\"djE=\"", "\"*\""),
            ("\"mod_revision\":\"2\"", "\"mod_revision\":\"\""),
            ("}]}", "}"),
        ] {
            let bad = SAID.replacen(from, to, 1);
            assert_ne!(bad, SAID, "{from}");
            assert!(read("p/", &batch(), bad.as_bytes()).is_err(), "{bad}");
        }
        let more = Asks::Batch(vec![Question::Read(key("c"))], Revision(0));
        assert!(read("p/", &more, SAID.as_bytes()).is_err());
    }

    #[test]
    fn who_follows_asks_page_by_page_from_the_version_after_the_last_one() {
        let asks = Asks::Page {
            below: key("luns"),
            since: Revision(41),
            after: Some(key("luns/a")),
        };
        let (path, body) = request("p/", &asks);
        assert_eq!(path, "/v3/kv/range");
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["min_mod_revision"], "42");
        assert_eq!(
            base64::decode(body["key"].as_str().unwrap()).unwrap(),
            b"p/luns/a\0"
        );
        assert_eq!(
            base64::decode(body["range_end"].as_str().unwrap()).unwrap(),
            b"p/luns0"
        );
        let said = |name: &str| {
            json!({ "header": { "cluster_id": "5", "revision": "50" }, "more": true,
                "kvs": [{ "key": base64::encode(name.as_bytes()), "mod_revision": "44", "value": "djE=" }] })
        };
        let (_, says) = read("p/", &asks, said("p/luns/b").to_string().as_bytes()).unwrap();
        let records = vec![(key("luns/b"), (Revision(44), b"v1".to_vec()))];
        assert_eq!(
            says,
            Says::Page {
                records,
                is_last: false
            }
        );
        assert!(read("p/", &asks, said("q/luns/b").to_string().as_bytes()).is_err());
    }
}
