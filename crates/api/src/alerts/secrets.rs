//! The file of receivers, which has their secrets in it.

use alerts::{Receiver, WantedReceiver};
use serde::Deserialize;
use serde_json::{Value, json};

/// The version of its form.
const SCHEMA: u32 = 1;

#[derive(Deserialize)]
struct Document {
    schema: u32,
    receivers: Vec<Value>,
}

/// Reads what [`write`] wrote. Nothing of the file is in the words of what is wrong.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Receiver>, String> {
    let document: Document = serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("line {line}, column {column}: not the document of receivers")
    })?;
    if document.schema != SCHEMA {
        return Err(format!(
            "it is of version {}, and this program reads 1",
            document.schema
        ));
    }
    let each = document
        .receivers
        .into_iter()
        .enumerate()
        .map(|(at, value)| {
            let wanted: Option<WantedReceiver> = serde_json::from_value(value).ok();
            let made = wanted.and_then(|wanted| wanted.make().ok());
            made.ok_or_else(|| format!("receiver {at} is none"))
        });
    each.collect()
}

/// As it is stored.
pub(super) fn write<'a>(receivers: impl Iterator<Item = &'a Receiver>) -> Vec<u8> {
    let receivers: Vec<Value> = receivers.map(Receiver::with_secrets).collect();
    let document = json!({ "schema": SCHEMA, "receivers": receivers });
    let mut text = serde_json::to_vec_pretty(&document).expect("documents are made of plain data");
    text.push(b'\n');
    text
}
