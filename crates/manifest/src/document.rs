//! What a state file holds: a header line with kind, version and checksum, then JSON.
//!
//! ```text
//!   causeway objects 1 sha256 8f43...\n
//!   { "node_id": ..., "generation": 7, "written": ..., "objects": { ... } }
//! ```

use crate::objects::Objects;
use crate::secret::Secret;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// The version that is written. Readers refuse greater ones.
const VERSION: u32 = 1;

/// A generation.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The identifier that is kept in `state_dir`: documents of another node are refused.
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

/// Why a document cannot be read. Whoever reads one decides by this what becomes of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DocumentError {
    /// It has no whole first line.
    Empty,
    /// The first line is none of a document.
    Header,
    /// The contents are not those that were written.
    Checksum,
    /// It is another document than its name says.
    OtherKind,
    /// Its first line is of a version that is not known here.
    Newer,
    /// It is whole, and says what is not understood here: another version wrote it.
    Unknown(String),
    /// It has no checksum, and is no document of its kind.
    Malformed(String),
}

impl DocumentError {
    /// What was written there is lost, whoever reads it. All else may still be of use to another
    /// version, and is not to be overwritten.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Empty | Self::Header | Self::Checksum | Self::Malformed(_) => true,
            Self::OtherKind | Self::Newer | Self::Unknown(_) => false,
        }
    }
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the file is empty or cut off"),
            Self::Header => f.write_str("the header line is damaged"),
            Self::Checksum => f.write_str("the checksum does not match the contents"),
            Self::OtherKind => f.write_str("the file is of another kind than its name says"),
            Self::Newer => f.write_str("the file was written by a newer version of Causeway"),
            Self::Unknown(why) => {
                write!(
                    f,
                    "the file was written by another version of Causeway: {why}"
                )
            }
            Self::Malformed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for DocumentError {}

/// The body of a whole file of this kind.
///
/// # Errors
/// What is wrong with the header.
pub fn read(kind: &str, text: &[u8]) -> Result<Vec<u8>, DocumentError> {
    let end = text.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or(DocumentError::Empty)?;
    let (header, body) = text.split_at(end);
    let body = body.get(1..).unwrap_or_default();
    let header = std::str::from_utf8(header).map_err(|_| DocumentError::Header)?;
    let words: Vec<&str> = header.split(' ').collect();
    let ["causeway", of, version, "sha256", sum] = words.as_slice() else {
        return Err(DocumentError::Header);
    };
    if *of != kind {
        return Err(DocumentError::OtherKind);
    }
    match version.parse::<u32>() {
        Ok(1..=VERSION) => {}
        Ok(0) | Err(_) => return Err(DocumentError::Header),
        Ok(_) => return Err(DocumentError::Newer),
    }
    if *sum != checksum(body) {
        return Err(DocumentError::Checksum);
    }
    Ok(body.to_vec())
}

/// What a whole file of this kind holds.
///
/// # Errors
/// What is wrong with it.
pub fn parse<T: DeserializeOwned>(kind: &str, text: &[u8]) -> Result<T, DocumentError> {
    let body = read(kind, text)?;
    serde_json::from_slice(&body).map_err(|error| DocumentError::Unknown(error.to_string()))
}

/// The same of a kind that was written as a bare JSON body once.
///
/// # Errors
/// What is wrong with it.
pub fn parse_or_bare<T: DeserializeOwned>(kind: &str, text: &[u8]) -> Result<T, DocumentError> {
    // JSON begins with none of this, and a header that is damaged is no JSON.
    match text.first() {
        Some(b'[' | b'{') => serde_json::from_slice(text)
            .map_err(|error| DocumentError::Malformed(error.to_string())),
        Some(_) | None => parse(kind, text),
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

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_document_of_another_version_is_no_damaged_one_at_any_byte() {
        let whole = write("list", b"[1,2]");
        let read = |text: &[u8]| parse::<Vec<u32>>("list", text);
        assert_eq!(read(&whole), Ok(vec![1, 2]));
        assert_eq!(parse_or_bare("list", b"[1,2]"), Ok(vec![1_u32, 2]));
        for end in 0..whole.len() {
            let why = read(&whole[..end]).unwrap_err();
            assert!(why.is_damage(), "{end} bytes: {why}");
        }
        let newer = String::from_utf8(whole)
            .unwrap()
            .replace("list 1", "list 2");
        assert_eq!(read(newer.as_bytes()), Err(DocumentError::Newer));
        let other = parse::<Vec<u32>>("other", &write("list", b"[1,2]"));
        assert_eq!(other, Err(DocumentError::OtherKind));
        // Its checksum says that somebody meant it so.
        let unknown = read(&write("list", b"{\"all\":[1,2]}")).unwrap_err();
        assert!(!unknown.is_damage(), "{unknown}");
        let cut = parse_or_bare::<Vec<u32>>("list", b"[1,2").unwrap_err();
        assert!(cut.is_damage(), "{cut}");
        for hurt in [
            &b"causeway list 0 sha256 00\n"[..],
            b"causeway list x sha256 00\n",
        ] {
            assert_eq!(read(hurt), Err(DocumentError::Header));
        }
        let hurt = read(b"causeway list 1 sha256 00\n[]");
        assert_eq!(hurt, Err(DocumentError::Checksum));
    }
}
