//! What is said of a point.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How a point stands.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It costs data, access or most of the speed.
    Problem,
    /// It could be better.
    Advice,
    /// It is well.
    Good,
    /// A program cannot see it from here.
    NotCheckable,
}

/// What was found about some points.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// A word for programs, stable.
    pub check: Cow<'static, str>,
    /// The points of best practice that it is about, by number; empty: one of those without a
    /// number.
    pub points: Vec<u8>,
    /// How they stand.
    pub verdict: Verdict,
    /// What was seen.
    pub what: String,
    /// Why that matters.
    pub cause: String,
    /// What to do, or to check.
    pub remedy: String,
}

impl Finding {
    pub(crate) fn new(check: &'static str, points: &[u8], verdict: Verdict, what: String) -> Self {
        Self {
            check: check.into(),
            points: points.to_vec(),
            verdict,
            what,
            cause: String::new(),
            remedy: String::new(),
        }
    }

    pub(crate) fn good(check: &'static str, points: &[u8], what: impl Into<String>) -> Self {
        Self::new(check, points, Verdict::Good, what.into())
    }

    pub(crate) fn because(mut self, cause: &str) -> Self {
        cause.clone_into(&mut self.cause);
        self
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}
