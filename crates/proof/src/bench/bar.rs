//! What is to be reached, and whether it was.

/// A bar and what was measured against it.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What is compared.
    pub what: String,
    /// What was measured.
    pub value: f64,
    /// What is allowed.
    pub limit: Limit,
    /// Figures behind it, for people.
    pub detail: String,
}

/// On which side of a number a value must be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Limit {
    /// No more.
    AtMost(f64),
    /// No less.
    AtLeast(f64),
    /// Between one part in this many below 1 and above.
    Within(f64),
    /// Whatever it is, it is reported.
    Stated,
}

impl Limit {
    /// For people.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::AtMost(limit) => format!("<= {limit}"),
            Self::AtLeast(limit) => format!(">= {limit}"),
            Self::Within(part) => format!("1 +- {part}"),
            Self::Stated => "stated".to_owned(),
        }
    }
}

impl Bar {
    /// It is reached.
    #[must_use]
    pub fn is_met(&self) -> bool {
        match self.limit {
            Limit::AtMost(limit) => self.value <= limit,
            Limit::AtLeast(limit) => self.value >= limit,
            Limit::Within(part) => (self.value - 1.0).abs() <= part,
            Limit::Stated => true,
        }
    }
}
