//! What a state file holds: a header line with kind, version and checksum, then JSON.
//!
//! ```text
//!   causeway objects 1 sha256 8f43...\n
//!   { "node_id": ..., "generation": 7, "written": ..., "objects": { ... } }
//! ```

use crate::objects::Objects;
use crate::secret::Secret;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The version that is written. Readers refuse greater ones.
const VERSION: u32 = 1;

/// A generation.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The node that it is of.
    pub node_id: String,
    /// Its number.
    pub generation: u64,
    /// When it was stored.
    pub written: String,
    /// Everything but secrets.
    pub objects: Objects,
}

/// Header and body.
#[must_use]
pub fn write(kind: &str, body: &[u8]) -> Vec<u8> {
    let mut out = format!("causeway {kind} {VERSION} sha256 {}\n", checksum(body)).into_bytes();
    out.extend_from_slice(body);
    out
}

/// The body of a whole file of this kind.
///
/// # Errors
/// What is wrong with the header.
pub fn read(kind: &str, text: &[u8]) -> Result<Vec<u8>, &'static str> {
    let end = text.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or("the file is empty or cut off")?;
    let (header, body) = text.split_at(end);
    let body = body.get(1..).unwrap_or_default();
    let header = std::str::from_utf8(header).map_err(|_| "the header line is damaged")?;
    let words: Vec<&str> = header.split(' ').collect();
    let ["causeway", of, version, "sha256", sum] = words.as_slice() else {
        return Err("the header line is damaged");
    };
    if *of != kind {
        return Err("the file is of another kind than its name says");
    }
    match version.parse::<u32>() {
        Ok(1..=VERSION) => {}
        Ok(0) | Err(_) => return Err("the header line is damaged"),
        Ok(_) => return Err("the file was written by a newer version of Causeway"),
    }
    if *sum != checksum(body) {
        return Err("the checksum does not match the contents");
    }
    Ok(body.to_vec())
}

/// The same of a kind that was written as a bare JSON body once.
///
/// # Errors
/// What is wrong with the header.
pub fn read_or_bare(kind: &str, text: &[u8]) -> Result<Vec<u8>, &'static str> {
    // JSON begins with none of this, and a header that is damaged is no JSON.
    match text.first() {
        Some(b'[' | b'{') => Ok(text.to_vec()),
        Some(_) | None => read(kind, text),
    }
}

fn checksum(body: &[u8]) -> String {
    units::hex(&Sha256::digest(body))
}

/// The secrets of all hosts, by host.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(transparent)]
pub struct Secrets(BTreeMap<String, Pair>);

#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    secret: Secret,
    #[serde(default)]
    mutual: Option<Secret>,
}

impl Secrets {
    /// Those that the objects have.
    #[must_use]
    pub fn of(objects: &Objects) -> Self {
        let pair = |(name, host): (&String, &crate::objects::Host)| {
            let chap = host.chap.as_ref()?;
            let pair = Pair {
                secret: chap.secret.clone(),
                mutual: chap.mutual.as_ref().map(|mutual| mutual.secret.clone()),
            };
            Some((name.clone(), pair))
        };
        Self(objects.hosts.iter().filter_map(pair).collect())
    }

    /// Puts them where they belong.
    ///
    /// # Errors
    /// The host that has no secret here and needs one.
    pub fn fill(&self, objects: &mut Objects) -> Result<(), String> {
        for (name, host) in &mut objects.hosts {
            let Some(chap) = &mut host.chap else { continue };
            let pair = self.0.get(name).ok_or_else(|| name.clone())?;
            chap.secret = pair.secret.clone();
            if let Some(mutual) = &mut chap.mutual {
                let secret = pair.mutual.as_ref().ok_or_else(|| name.clone())?;
                mutual.secret = secret.clone();
            }
        }
        Ok(())
    }

    /// For the secrets file only.
    ///
    /// # Errors
    /// A secret is no text.
    pub fn to_json(&self) -> std::io::Result<Vec<u8>> {
        let text = |secret: &Secret| {
            let text = secret.reveal_text().map(ToOwned::to_owned);
            text.ok_or_else(|| std::io::Error::other("a secret is not UTF-8 text"))
        };
        let mut out = BTreeMap::new();
        for (name, pair) in &self.0 {
            let mut entry = BTreeMap::from([("secret", text(&pair.secret)?)]);
            if let Some(mutual) = &pair.mutual {
                entry.insert("mutual", text(mutual)?);
            }
            out.insert(name, entry);
        }
        Ok(serde_json::to_vec(&out)?)
    }

    /// As [`Secrets::to_json`] wrote them.
    ///
    /// # Errors
    /// It is no such text.
    pub fn from_json(text: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(text)
    }
}
