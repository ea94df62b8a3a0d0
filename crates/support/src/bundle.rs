//! What is in a bundle, and what it is allowed to be.

use crate::archive::{Archive, NAME_BYTES_MAX};
use crate::redact::Secrets;
use serde_json::Value;
use std::fmt::Write as _;

/// The most bytes of a file.
pub const FILE_BYTES_MAX: usize = 4 << 20;

/// The most bytes of all files, before they are compressed.
pub const ALL_BYTES_MAX: usize = 32 << 20;

/// The longest part of the folder's name that the node's is.
const NODE_BYTES_MAX: usize = 40;

const ABOUT: &str = "What a Causeway node says of itself, for whoever helps. Passwords, CHAP secrets, tokens, cookies, keys and \
                     the addresses of receivers are not in it. Names of LUNs, hosts, users and machines, and addresses of \
                     the network, are: read it before you give it away.\n\n";

/// A bundle that is being put together.
pub struct Bundle {
    archive: Archive,
    folder: String,
    secrets: Secrets,
    /// The list of files.
    index: String,
    bytes: usize,
}

impl Bundle {
    /// Without any file yet; `made`: now, in seconds since 1970.
    #[must_use]
    pub fn new(node: &str, made: u64, secrets: Secrets) -> Self {
        Self {
            archive: Archive::new(made),
            folder: folder(node),
            secrets,
            index: String::new(),
            bytes: 0,
        }
    }

    /// Adds an answer of the API, redacted; the beginning of one that is too long.
    pub fn document(&mut self, file: &str, about: &str, document: Value) {
        let document = self.secrets.without(document);
        let text = serde_json::to_string_pretty(&document);
        let mut text = text.expect("a document is plain data");
        text.push('\n');
        // The beginning: lists have what is newest or first there.
        let end = boundary(&text, FILE_BYTES_MAX);
        if end < text.len() {
            text.truncate(end);
            let about = format!("{about}; CUT after {end} bytes, so it is no document any more");
            self.add(&format!("{file}.cut"), &about, &text);
        } else {
            self.add(file, about, &text);
        }
    }

    /// Adds lines, redacted; the end of those that are too long.
    pub fn text(&mut self, file: &str, about: &str, text: &str) {
        let from = text.len().saturating_sub(FILE_BYTES_MAX / 2);
        let from = boundary(text, from);
        // Whole lines: a part of a secret is not found any more.
        let is_cut = from > 0;
        let line = text[from..].find('\n').filter(|_| is_cut);
        let from = from + line.map_or(0, |at| at + 1);
        let kept = self.secrets.without_text(&text[from..]);
        if is_cut {
            let about = format!("{about}; CUT: the first {from} bytes are not here");
            self.add(file, &about, &kept);
        } else {
            self.add(file, about, &kept);
        }
    }

    /// Something that could not be had.
    pub fn missing(&mut self, file: &str, why: &str) {
        let why = self.secrets.without_text(why);
        let _fits = writeln!(self.index, "{file:<24} NOT THERE: {}", why.trim_end());
    }

    fn add(&mut self, file: &str, about: &str, text: &str) {
        if text.len() > FILE_BYTES_MAX || self.bytes + text.len() > ALL_BYTES_MAX {
            let why = format!("{} bytes, and the bundle is full", text.len());
            return self.missing(file, &why);
        }
        self.bytes += text.len();
        let name = format!("{}/{file}", self.folder);
        debug_assert!(name.len() <= NAME_BYTES_MAX);
        self.archive.add(&name, text.as_bytes());
        let _fits = writeln!(self.index, "{file:<24} {about}");
    }

    /// The bytes of the `.tar.gz`.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        let text = format!("{ABOUT}{}", self.index);
        let name = format!("{}/README.txt", self.folder);
        self.archive.add(&name, text.as_bytes());
        self.archive.finish()
    }
}

/// Where a letter begins, at so many bytes or before.
fn boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// Where the files are in the archive. A node may be called anything.
fn folder(node: &str) -> String {
    let known = |letter: &char| letter.is_ascii_alphanumeric() || "-_".contains(*letter);
    let node: String = node.chars().filter(known).take(NODE_BYTES_MAX).collect();
    format!("causeway-support-{node}")
}
