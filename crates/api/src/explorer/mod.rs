//! The page that shows the API: `/api/v1/`. It reads the document beside it, asks nobody else, and
//! works without a network.

use crate::describe::{Operation, Paths, Reply, Schemas};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// What the page may do: read and ask what stands at its own address, with its own script and
/// style.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) fn paths(paths: Paths) -> Paths {
    paths
        .get("/api/v1/", "this interface as a page for people", page)
        .get("/api/v1/explorer.js", "the script of that page", script)
        .get("/api/v1/explorer.css", "the style of that page", style)
}

/// A file that is built in.
fn file(kind: &'static str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // The next version may have another one.
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

macro_rules! files {
    ($($name:ident: $reply:ident = $file:literal, $kind:literal;)*) => {
        $(
            struct $reply;

            impl IntoResponse for $reply {
                fn into_response(self) -> Response {
                    file(concat!($kind, "; charset=utf-8"), include_str!($file))
                }
            }

            impl Reply for $reply {
                fn describe(operation: &mut Operation, _: &mut Schemas) {
                    let content = json!({ $kind: { "schema": { "type": "string" } } });
                    operation.answers(200, "The file.", content);
                }
            }

            async fn $name() -> $reply {
                $reply
            }
        )*
    };
}

files!(
    page: Page = "explorer.html", "text/html";
    script: Script = "explorer.js", "text/javascript";
    style: Style = "explorer.css", "text/css";
);

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn the_page_asks_nobody_else_and_makes_no_markup_of_what_it_is_given() {
        let page = include_str!("explorer.html");
        let script = include_str!("explorer.js");
        let style = include_str!("explorer.css");
        for (name, text) in [("page", page), ("script", script), ("style", style)] {
            for word in ["http://", "https://", "url(", "@import", "//cdn"] {
                assert!(!text.contains(word), "{name}: {word}");
            }
        }
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "eval(",
            "document.write",
        ] {
            assert!(!script.contains(word), "{word}");
        }
        for word in ["onclick", "style=", "<script>", "<style>"] {
            assert!(!page.contains(word), "{word}");
        }
        assert!(POLICY.starts_with("default-src 'none'") && !POLICY.contains("unsafe"));
    }
}
