//! What is stored of jobs.

use crate::job::Job;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The version of its form.
const SCHEMA: u32 = 1;

/// Why a document cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unread {
    /// A newer program wrote it, which will read it.
    pub is_newer: bool,
    /// In a sentence.
    pub why: String,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

#[derive(Deserialize)]
struct Version {
    schema: u32,
}

/// All jobs, as they are stored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Document {
    /// 1, or what a newer program wrote.
    pub schema: u32,
    /// The number of the next job.
    pub next_id: u64,
    /// By number.
    pub jobs: Vec<Job>,
}

impl Default for Document {
    fn default() -> Self {
        Self {
            schema: SCHEMA,
            next_id: 1,
            jobs: Vec::new(),
        }
    }
}

impl Document {
    /// Reads what [`Document::write`] wrote.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(bytes: &[u8]) -> Result<Self, Unread> {
        let damaged = |why: String| Unread {
            is_newer: false,
            why: format!("it is damaged: {why}"),
        };
        let version: Version =
            serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        if version.schema > SCHEMA {
            let why = format!(
                "it is of version {}, and this program reads {SCHEMA}",
                version.schema
            );
            return Err(Unread {
                is_newer: true,
                why,
            });
        }
        let document: Self =
            serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        if document.schema == SCHEMA && document.jobs.iter().all(Job::is_whole) {
            return Ok(document);
        }
        Err(damaged("a job that none can be".to_owned()))
    }

    /// JSON on one line, which [`Document::read`] takes.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).expect("documents are made of plain data");
        text.push(b'\n');
        text
    }
}
