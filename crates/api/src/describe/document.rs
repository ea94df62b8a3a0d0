//! The document of the API: OpenAPI 3.1.

use super::Paths;
use crate::auth::COOKIE;
use manifest::problem::Problem;
use serde_json::{Map, Value, json};

const ABOUT: &str = "Requests and answers are JSON. Times are RFC 3339 in UTC, sizes are bytes. Through the unix socket \
    everything is possible for whoever may open it: root, and the group `causeway`. Over TCP a request brings a token \
    (`Authorization: Bearer`: one of `/api/v1/tokens`, or that of the file `api.token` in the state directory), or the \
    cookie of a session that `/api/v1/login` opened, with `X-Causeway-CSRF` where it changes something. `security` of each \
    operation names the least role that it takes: viewer, operator or admin; where it has `{}`, nothing is asked over \
    loopback addresses, unless `token_for_reads` is set. Every error is a problem document (RFC 9457) with `code`, `cause` and `hint`, \
    but for what is no request: 400 and 431 (a head of more than 16 KiB or 100 headers) come without a body, from what \
    reads requests, and close the connection.";

/// The document of these paths.
pub(crate) fn document(paths: Paths) -> Value {
    let Paths {
        operations,
        mut schemas,
        ..
    } = paths;
    let problem = schemas.answered::<Problem>();
    let (components, turn) = schemas.finish();
    let mut by_path: Map<String, Value> = Map::new();
    for operation in &operations {
        let mut described = operation.describe(&problem);
        turn(&mut described);
        let entry = by_path.entry(operation.path).or_insert_with(|| json!({}));
        entry[&operation.method] = described;
    }
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "Causeway",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }, { "session": [] }],
        "paths": by_path,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of `/api/v1/tokens`, or that of the file `api.token`.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": COOKIE,
                    "description": "What `/api/v1/login` sets. Changes send `X-Causeway-CSRF` as well.",
                },
            },
        },
    })
}
