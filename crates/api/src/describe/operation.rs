//! What is known of one method of one path.

use super::examples::example;
use crate::access::{Need, need, reads};
use axum::http::Method;
use http_parts::repeated::{KEY_BYTES_MAX, KEY_HEADER, is_secret};
use manifest::code::Code;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What any path may answer over any transport.
const EVERYWHERE: [Code; 7] = [
    Code::TokenNeeded,
    Code::Internal,
    Code::RoleTooLow,
    Code::PasswordMustChange,
    Code::ForeignHost,
    Code::ForeignOrigin,
    Code::CsrfMissing,
];

/// What any change may answer as well: of what only asks nobody reads a body.
const OF_CHANGES: [Code; 2] = [Code::BodyTooLarge, Code::BodyTooSlow];

/// What probes may answer: nobody who asks them has to prove anything.
const OF_PROBES: [Code; 2] = [Code::ForeignHost, Code::ForeignOrigin];

/// Paths that are answered whoever asks, with whatever proof, and whatever the node does.
pub(crate) const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// A parameter of a request beside its path and its body.
pub(crate) struct Parameter {
    /// As it stands in the request.
    pub(crate) name: &'static str,
    /// `query` or `header`.
    pub(crate) place: &'static str,
    /// What it means.
    pub(crate) meaning: String,
    /// What may stand there.
    pub(crate) schema: Value,
}

impl Parameter {
    /// A switch behind the path.
    pub(crate) fn switch(name: &'static str, meaning: &str) -> Self {
        Self {
            name,
            place: "query",
            meaning: meaning.to_owned(),
            schema: json!({ "type": "boolean", "default": false }),
        }
    }
}

/// One method of one path.
pub(crate) struct Operation {
    pub(super) method: String,
    pub(crate) path: &'static str,
    what: &'static str,
    name: &'static str,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Value>,
    answers: BTreeMap<u16, Value>,
    pub(super) codes: BTreeSet<Code>,
}

impl Operation {
    pub(super) fn new(
        method: &Method,
        path: &'static str,
        what: &'static str,
        name: &'static str,
    ) -> Self {
        let codes: &[Code] = if PROBES.contains(&path) {
            &OF_PROBES
        } else {
            &EVERYWHERE
        };
        let codes = codes.iter().copied().collect();
        let mut out = Self {
            method: method.as_str().to_lowercase(),
            path,
            what,
            name,
            parameters: Vec::new(),
            body: None,
            answers: BTreeMap::new(),
            codes,
        };
        if !reads(method) {
            out.fails(&OF_CHANGES);
        }
        if !reads(method) && out.needs() != Need::Nothing {
            out.takes(Parameter {
                name: "X-Causeway-CSRF",
                place: "header",
                meaning: "With the cookie of a session, and only then: the `csrf` of the answer to the login."
                    .to_owned(),
                schema: json!({ "type": "string" }),
            });
        }
        if *method == Method::POST && !is_secret(path) {
            out.takes(Parameter {
                name: KEY_HEADER,
                place: "header",
                meaning: "Names the request: when it is sent again within a day, its answer comes again and nothing is done twice."
                    .to_owned(),
                schema: json!({ "type": "string", "minLength": 1, "maxLength": KEY_BYTES_MAX }),
            });
            out.fails(&[Code::KeyReused, Code::KeyUnderWay, Code::BadRequest]);
        }
        out
    }

    /// It takes a parameter.
    pub(crate) fn takes(&mut self, parameter: Parameter) {
        self.parameters.push(parameter);
    }

    /// It takes a body.
    pub(crate) fn reads(&mut self, schema: Value) {
        self.body = Some(schema);
    }

    /// It answers something that is no problem; `content`: what, by media type.
    pub(crate) fn answers(&mut self, status: u16, description: &str, content: Value) {
        let mut answer = json!({ "description": description });
        if !content.is_null() {
            answer["content"] = content;
        }
        self.answers.insert(status, answer);
    }

    /// No job begins with it, so that none is answered.
    pub(super) fn begins_nothing(&mut self) {
        self.answers.remove(&202);
        self.codes.remove(&Code::JobCancelled);
        self.parameters.retain(|it| it.name != "Prefer");
    }

    /// An answer has a header.
    pub(crate) fn heads(&mut self, status: u16, name: &str, meaning: &str) {
        if let Some(answer) = self.answers.get_mut(&status) {
            answer["headers"][name] =
                json!({ "description": meaning, "schema": { "type": "string" } });
        }
    }

    /// It may answer problems of these codes.
    pub(crate) fn fails(&mut self, codes: &[Code]) {
        self.codes.extend(codes);
    }

    /// What the document says; `problem`: the schema of a problem.
    pub(super) fn describe(&self, problem: &Value) -> Value {
        let path = self.path.split(['{', '}']).skip(1).step_by(2);
        let in_path = path.map(|name| {
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
        });
        let others = self.parameters.iter().map(|it| {
            json!({ "name": it.name, "in": it.place, "description": it.meaning, "schema": it.schema })
        });
        let mut responses = Map::new();
        for (status, answer) in &self.answers {
            responses.insert(status.to_string(), answer.clone());
        }
        self.describe_tag(&mut responses);
        responses.extend(self.problems(problem));
        let mut out = json!({
            "operationId": self.name,
            "summary": self.what,
            "tags": [self.tag()],
            "parameters": in_path.chain(others).collect::<Vec<Value>>(),
            "responses": responses,
        });
        if let Some(schema) = &self.body {
            let mut content = json!({ "application/json": { "schema": schema } });
            if let Some(example) = example(&self.method, self.path) {
                content["application/json"]["example"] = example;
            }
            out["requestBody"] = json!({ "required": true, "content": content });
        }
        out["security"] = security(self.needs());
        out
    }

    /// What it takes to be allowed.
    fn needs(&self) -> Need {
        need(&self.http_method(), self.path)
    }

    fn http_method(&self) -> Method {
        let method = self.method.to_uppercase();
        Method::from_bytes(method.as_bytes()).unwrap_or_default()
    }

    /// A document that is read has a tag: of its bytes, where it has none of its own.
    fn describe_tag(&self, responses: &mut Map<String, Value>) {
        let Some(answer) = responses.get_mut("200").filter(|_| self.method == "get") else {
            return;
        };
        let has_own = answer["headers"]["ETag"].is_object();
        if has_own || !answer["content"]["application/json"].is_object() {
            return;
        }
        answer["headers"]["ETag"] = json!({
            "description": "Of all bytes of the answer; for `If-None-Match`.",
            "schema": { "type": "string" },
        });
        let unchanged = json!({ "description": "It is what `If-None-Match` names." });
        responses.insert("304".to_owned(), unchanged);
    }

    /// What it belongs to: the noun of its path.
    pub(super) fn tag(&self) -> &'static str {
        let below = self.path.strip_prefix("/api/v1/");
        let noun = below.and_then(|rest| rest.split('/').next());
        match noun {
            Some("luns" | "targets" | "hosts" | "grants" | "pools" | "sessions") => {
                noun.unwrap_or_default()
            }
            Some("disks" | "bays" | "disk_report") => "disks",
            Some("alerts") => "alerts",
            Some("jobs") => "jobs",
            Some("bench" | "lab") => "bench and lab",
            Some("orphans" | "generations") => "state",
            Some("login" | "logout" | "me" | "users" | "tokens") => "accounts",
            Some("apply" | "objects" | "export") => "all objects",
            Some("events" | "history" | "audit") => "records",
            Some("" | "openapi.json" | "explorer.js" | "explorer.css") => "this interface",
            Some(_) | None => "node",
        }
    }

    /// An answer for each status of its codes.
    fn problems(&self, problem: &Value) -> Map<String, Value> {
        let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
        for code in &self.codes {
            by_status
                .entry(code.entry().status)
                .or_default()
                .push(*code);
        }
        let answer = |codes: &[Code]| {
            let titles = codes
                .iter()
                .map(|code| format!("{code}: {}", code.entry().title));
            let words: Vec<String> = codes.iter().map(Code::to_string).collect();
            let mut schema = problem.clone();
            schema["properties"] = json!({ "code": { "enum": words } });
            json!({
                "description": titles.collect::<Vec<String>>().join(". "),
                "content": { "application/problem+json": { "schema": schema } },
            })
        };
        by_status
            .iter()
            .map(|(status, codes)| (status.to_string(), answer(codes)))
            .collect()
    }
}

/// How somebody proves who they are, where that is needed, with the role that they need. Nothing at
/// all is one of the proofs for what is free over loopback addresses.
fn security(need: Need) -> Value {
    let roles = match need {
        Need::Nothing => return json!([{}]),
        Need::Anybody => Vec::new(),
        Need::Role { least, .. } => vec![least.to_string()],
    };
    let mut proofs = vec![json!({ "token": roles }), json!({ "session": roles })];
    if matches!(need, Need::Role { free: true, .. }) {
        proofs.push(json!({}));
    }
    proofs.into()
}
