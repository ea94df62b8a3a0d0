//! What stands in the arbiter of a cluster: the cluster, its nodes, its tokens.
//!
//! Nothing is ever taken away there: a node that has left keeps its number, and a token that was
//! used stays used. Each record says who wrote it when, so that no two writers write the same
//! bytes, and who finds his own has written it.

use crate::fingerprint::Fingerprint;
use arbiter::Key;
use env::CoreHandle;
use replica::NODES_MAX;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::net::SocketAddr;

/// The form of records; greater ones are refused by name.
const FORMAT: u16 = 1;

/// Bytes that are text in a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Der(pub Vec<u8>);

impl Serialize for Der {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&units::base64::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Der {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let bytes = units::base64::decode(&text);
        bytes
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("no base64"))
    }
}

/// Who wrote a record when.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Written {
    /// The node's identifier.
    pub by: String,
    /// RFC 3339, by that node's clock; nothing is decided by it.
    pub at: String,
    /// Random.
    pub nonce: String,
}

impl Written {
    /// By this node, now.
    #[must_use]
    pub fn by(core: &CoreHandle, node_id: &str) -> Self {
        Self {
            by: node_id.to_owned(),
            at: units::rfc3339::rfc3339(core.wall_clock()),
            nonce: random_hex::<8>(core),
        }
    }
}

/// So many random bytes, as digits.
#[must_use]
pub fn random_hex<const BYTES: usize>(core: &CoreHandle) -> String {
    let mut bytes = [0; BYTES];
    core.fill_random(&mut bytes);
    units::hex(&bytes)
}

/// `cluster`: the one that all nodes below a prefix are of; it is made once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct ClusterRecord {
    /// Random, 32 digits.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The certificate of its authority.
    pub authority: Der,
    /// What all its nodes are able to do: nothing of a higher level is written.
    pub level: u16,
    /// Who wrote it.
    pub written: Written,
}

impl AsRef<str> for ClusterRecord {
    fn as_ref(&self) -> &str {
        &self.id
    }
}

/// Whether a node counts.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is a node of the cluster.
    Joined,
    /// It was one. Its number is given to nobody else, and its certificate is believed no more.
    Left,
}

/// What a node says of itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Profile {
    /// Its identifier, made once with its state.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// Where other nodes reach it.
    pub addresses: Vec<SocketAddr>,
    /// The version of its program.
    pub version: String,
    /// The protocols between nodes that it speaks: from, to.
    pub protocols: [u16; 2],
    /// The levels that it is able to have: from, to.
    pub levels: [u16; 2],
    /// The ring counts of its pools' journals, each once.
    pub rings: Vec<u32>,
}

/// `nodes/SLOT`: a node.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct NodeRecord {
    /// What it says of itself.
    #[serde(flatten)]
    pub profile: Profile,
    /// SHA-256 of its certificate: no other is believed of this node.
    pub fingerprint: Fingerprint,
    /// DER; with it a node that asks again gets the same one.
    pub certificate: Der,
    /// Of the certificate before, which is believed until all know of the new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint_before: Option<Fingerprint>,
    /// Whether it counts.
    pub standing: Standing,
    /// The identifier of the token that it came with; none: it made the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Who wrote it.
    pub written: Written,
}

/// `tokens/ID`: a token, without its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct TokenRecord {
    /// SHA-256 of its secret.
    pub secret: Fingerprint,
    /// Until when it may be used, in seconds since 1970, by the clock of the node that is asked.
    pub expires: u64,
    /// Who used it; none: nobody yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_by: Option<UsedBy>,
    /// Who wrote it.
    pub written: Written,
}

/// Who used a token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct UsedBy {
    /// The node's identifier.
    pub node: String,
    /// SHA-256 of the key that it wants a certificate for.
    pub key: Fingerprint,
}

/// The name of the cluster's record.
///
/// # Panics
/// Never: it is a name.
#[must_use]
pub fn cluster_key() -> Key {
    Key::new("cluster").expect("a name")
}

/// The name that those of nodes are below.
///
/// # Panics
/// Never: it is a name.
#[must_use]
pub fn nodes_key() -> Key {
    Key::new("nodes").expect("a name")
}

/// The name of a node's record.
///
/// # Panics
/// Never: it is a name.
#[must_use]
pub fn node_key(slot: u8) -> Key {
    Key::new(&format!("nodes/{slot}")).expect("a name")
}

/// The slot whose record has this name.
#[must_use]
pub fn slot_of(key: &Key) -> Option<u8> {
    let digits = key.as_str().strip_prefix("nodes/")?;
    let slot = digits.parse::<u8>().ok().filter(|it| *it < NODES_MAX)?;
    (slot.to_string() == digits).then_some(slot)
}

/// The name of a token's record; `None`: its identifier is none.
#[must_use]
pub fn token_key(id: &str) -> Option<Key> {
    let is_id = !id.is_empty() && id.len() <= 32 && id.bytes().all(|it| it.is_ascii_hexdigit());
    is_id.then(|| Key::new(&format!("tokens/{id}"))).flatten()
}

#[derive(Serialize, Deserialize)]
struct Formatted<T> {
    format: u16,
    #[serde(flatten)]
    record: T,
}

#[derive(Deserialize)]
struct Head {
    format: u16,
}

/// As it is stored.
///
/// # Panics
/// Never: records are plain data.
#[must_use]
pub fn encode(record: &impl Serialize) -> Vec<u8> {
    let format = FORMAT;
    serde_json::to_vec(&Formatted { format, record }).expect("records are plain data")
}

/// As it was stored.
///
/// # Errors
/// Why it cannot be read.
pub fn decode<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    let head: Head = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if head.format != FORMAT {
        return Err(format!(
            "its format {} is not known here; update this node if another one is newer",
            head.format
        ));
    }
    let whole: Formatted<T> = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    Ok(whole.record)
}

/// A node's record.
///
/// # Errors
/// Why it cannot be read, or contradicts itself.
pub fn decode_node(text: &[u8]) -> Result<NodeRecord, String> {
    let record: NodeRecord = decode(text)?;
    if Fingerprint::of(&record.certificate.0) != record.fingerprint {
        return Err("its fingerprint is not the one of its certificate".to_owned());
    }
    Ok(record)
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::fixture;

    #[test]
    fn records_come_back_as_they_were_and_are_small() {
        let node = fixture::node_record(3);
        let text = encode(&node);
        assert_eq!(decode_node(&text), Ok(node));
        assert!(text.len() < arbiter::VALUE_BYTES_MAX / 4, "{}", text.len());
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with(r#"{"format":1,"#), "{text}");
        for (from, to, why) in [
            ("\"format\":1", "\"format\":2", "format 2"),
            ("\"fingerprint\":\"", "\"fingerprint\":\"0", "SHA-256"),
            ("\"standing\":\"joined\"", "\"standing\":\"half\"", "half"),
        ] {
            let bad = text.replacen(from, to, 1);
            assert_ne!(bad, text);
            let said = decode_node(bad.as_bytes()).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
        let other = NodeRecord {
            fingerprint: Fingerprint::of(b"other"),
            ..decode_node(text.as_bytes()).unwrap()
        };
        let said = decode_node(&encode(&other)).unwrap_err();
        assert!(said.contains("not the one of its certificate"), "{said}");
    }

    #[test]
    fn slots_are_read_from_names_of_records_alone() {
        for slot in 0..NODES_MAX {
            assert_eq!(slot_of(&node_key(slot)), Some(slot));
        }
        for bad in ["nodes/64", "nodes/07", "nodes/x", "nodes", "cluster"] {
            assert_eq!(slot_of(&Key::new(bad).unwrap()), None, "{bad}");
        }
        for bad in ["", "x", "../cluster", &"a".repeat(33)] {
            assert_eq!(token_key(bad), None, "{bad}");
        }
    }
}
