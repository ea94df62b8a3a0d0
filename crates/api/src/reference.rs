//! The page of the REST paths, `docs/reference/rest.md`, made from the document of the API.

use crate::routes::paths;
use manifest::golden;
use markdown::{MarkdownTable, paragraph};
use serde_json::Value;
use std::collections::BTreeMap;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Types that have a page of their own.
const ELSEWHERE: &str = "Code";

fn text<'a>(of: &'a Value, member: &str) -> &'a str {
    of[member].as_str().unwrap_or_default()
}

/// What a schema says in a cell: a link to the type, or what may stand there.
fn words(schema: &Value) -> String {
    if let Some(name) = text(schema, "$ref")
        .rsplit('/')
        .next()
        .filter(|it| !it.is_empty())
    {
        if name == ELSEWHERE {
            return "[code](../errors.md)".to_owned();
        }
        return format!("`{name}`");
    }
    if let Some(value) = schema.get("const") {
        return format!("`{}`", value.as_str().unwrap_or_default());
    }
    if let Some(values) = schema["enum"].as_array() {
        let values = values.iter().filter_map(Value::as_str);
        return values
            .map(|it| format!("`{it}`"))
            .collect::<Vec<String>>()
            .join(", ");
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[choice].as_array() {
            return choices
                .iter()
                .map(words)
                .collect::<Vec<String>>()
                .join(", ");
        }
    }
    if let Some(kinds) = schema["type"].as_array() {
        let mut one = schema.clone();
        let each = kinds.iter().map(|kind| {
            one["type"] = kind.clone();
            words(&one)
        });
        return each.collect::<Vec<String>>().join(", ");
    }
    match text(schema, "type") {
        "array" => match schema["prefixItems"].as_array() {
            Some(parts) => {
                let parts: Vec<String> = parts.iter().map(words).collect();
                format!("({})", parts.join(", "))
            }
            None => format!("list of {}", words(&schema["items"])),
        },
        "object" => match (
            &schema["additionalProperties"],
            schema["properties"].as_object(),
        ) {
            (Value::Object(_), _) => format!("by name: {}", words(&schema["additionalProperties"])),
            (_, Some(members)) => {
                let each = members
                    .iter()
                    .map(|(name, of)| format!("`{name}`: {}", words(of)));
                format!("{{ {} }}", each.collect::<Vec<String>>().join(", "))
            }
            (_, None) => "object".to_owned(),
        },
        "integer" => "number".to_owned(),
        "string" => "text".to_owned(),
        "" => "anything".to_owned(),
        other => other.to_owned(),
    }
}

/// What stands in a body or an answer.
fn content(of: &Value) -> String {
    let Some((kind, media)) = of["content"].as_object().and_then(|all| all.iter().next()) else {
        return String::new();
    };
    if kind == "application/json" {
        words(&media["schema"])
    } else {
        kind.clone()
    }
}

type Visit<'a> = &'a mut dyn FnMut(&str, &str, &Value);

/// Every path with each method.
fn operations(document: &Value, visit: Visit<'_>) {
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for method in METHODS {
            if let Some(operation) = methods.get(method) {
                visit(path, method, operation);
            }
        }
    }
}

fn routes(document: &Value) -> String {
    let mut table = MarkdownTable::new(&["Method", "Path", "What it does", "Body", "Answer"]);
    operations(document, &mut |path, method, it| {
        let body = content(&it["requestBody"]);
        let answer = content(&it["responses"]["200"]);
        let (method, path) = (method.to_uppercase(), format!("`{path}`"));
        table.row(&[&method, &path, text(it, "summary"), &body, &answer]);
    });
    table.into_text()
}

fn parameters(document: &Value) -> String {
    // One of a name may mean something else to another path.
    let mut all: BTreeMap<[String; 3], Vec<String>> = BTreeMap::new();
    operations(document, &mut |path, method, it| {
        for parameter in it["parameters"].as_array().into_iter().flatten() {
            let of = ["in", "name", "description"].map(|it| text(parameter, it).to_owned());
            if of[0] != "path" {
                let paths = all.entry(of).or_default();
                paths.push(format!("{} {path}", method.to_uppercase()));
            }
        }
    });
    let mut table = MarkdownTable::new(&["Parameter", "Where", "What it does", "Of"]);
    for ([at, name, meaning], of) in &all {
        let of = match of.as_slice() {
            [only] => format!("`{only}`"),
            all => format!("{} paths", all.len()),
        };
        table.row(&[&format!("`{name}`"), at, meaning.trim_end_matches('.'), &of]);
    }
    table.into_text()
}

fn page() -> String {
    let document = crate::describe::document(paths());
    let mut out = String::from("# REST\n\n");
    for text in [
        "Made from the code, by way of the document that `GET /api/v1/openapi.json` answers (OpenAPI 3.1); a test keeps both \
         equal. Requests and answers are JSON; an error is a document of the type `Problem` \
         (`application/problem+json`). The document has all types with their members, and the statuses and codes that each \
         path may answer. What scripts may rely on is in [the promised interface](../interface.md#json-documents).",
        "Through the unix socket everything is possible for whoever may open it. Over TCP everything takes a login (a \
         cookie, and `X-Causeway-CSRF` for changes) or a token (`Authorization: Bearer`), with a role that allows it. \
         Exceptions: `/healthz`, `/readyz`, the page, this description and the login are for everybody; and over loopback \
         addresses what the first version let everybody read, and `/metrics`, need nothing, unless `token_for_reads` says \
         otherwise ([decision](../adr/0025-reads-over-loopback.md)). [Users and tokens](../operate/users.md) has the \
         roles, and how tokens are made.",
    ] {
        out.push_str(&paragraph(text, ""));
        out.push('\n');
    }
    out.push_str(&routes(&document));
    out.push_str("\n## Parameters\n\n");
    out.push_str(&parameters(&document));
    out
}

#[test]
fn the_page_of_the_paths_is_this() {
    golden::assert_page("docs/reference/rest.md", &page());
}
