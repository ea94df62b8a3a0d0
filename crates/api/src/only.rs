//! How all objects are changed, or a part of them.

use crate::describe::{Operation, Parameter, Part, Schemas};
use crate::parameters::{decode, wrong};
use crate::parts::{Change, Refused};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use manifest::code::Code;
use manifest::plan::Subject;
use manifest::problem::Problem;
use serde_json::json;

const NAME: &str = "only=";

/// The objects that are meant; none: all.
pub(crate) struct Only(pub(crate) Vec<Subject>);

impl Only {
    /// The objects that are meant, and the other parameters.
    ///
    /// # Errors
    /// One is no kind and name.
    pub(crate) fn split(query: Option<&str>) -> Result<(Self, String), Problem> {
        let pairs = query.unwrap_or_default().split('&');
        let (only, rest): (Vec<&str>, Vec<&str>) = pairs.partition(|pair| pair.starts_with(NAME));
        let subjects = only.into_iter().map(|pair| {
            let text = decode(pair.trim_start_matches(NAME))?;
            text.parse().map_err(|rule| wrong(format!("only: {rule}")))
        });
        Ok((Self(subjects.collect::<Result<_, _>>()?), rest.join("&")))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Only {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let (only, rest) = Self::split(parts.uri.query())?;
        match rest.split('&').find(|pair| !pair.is_empty()) {
            None => Ok(only),
            Some(other) => Err(wrong(format!("unknown parameter \"{other}\"")).into()),
        }
    }
}

impl Part for Only {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.takes(Parameter {
            name: "only",
            place: "query",
            meaning: "Only this object with its grants, as KIND=NAME (`lun`, `target`, `host`, `grant`); may stand several times."
                .to_owned(),
            schema: json!({ "type": "string" }),
        });
        operation.fails(&[Code::BadRequest, Code::NotFound]);
    }
}

/// How all objects are changed.
pub(crate) struct Whole {
    pub(crate) change: Change,
    pub(crate) prune: bool,
    /// Which objects are meant; none: all.
    pub(crate) only: Vec<Subject>,
}

impl<S: Send + Sync> FromRequestParts<S> for Whole {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let (Only(only), rest) = Only::split(parts.uri.query())?;
        let (change, switches) = Change::read(parts, Some(&rest), Some("prune"))?;
        let prune = switches.on("prune");
        Ok(Self {
            change,
            prune,
            only,
        })
    }
}

impl Part for Whole {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        Change::describe(operation, schemas);
        let meaning = "Remove objects that the body does not name; LUNs keep their data.";
        operation.takes(Parameter::switch("prune", meaning));
        Only::describe(operation, schemas);
    }
}
