//! What nodes say to each other, and a command to its daemon.

use crate::fingerprint::Fingerprint;
use crate::records::{Der, Standing};
use crate::refusal::Refusal;
use crate::roster::Roster;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Longest first word of who is not known yet, in bytes.
pub const FIRST_BYTES_MAX: u32 = 1 << 10;

/// Longest other one, in bytes.
pub const BYTES_MAX: u32 = 1 << 20;

/// An answer of a node.
pub type Reply<T> = Result<T, Refusal>;

/// The first word of a node that wants to join.
#[derive(Serialize, Deserialize)]
pub struct Credentials {
    /// The token's identifier.
    pub token: String,
    /// As the token has it: 64 digits.
    pub secret: String,
}

/// What a node gets that was let in.
#[derive(Serialize, Deserialize)]
pub struct JoinAnswer {
    /// Its number.
    pub slot: u8,
    /// DER, signed by the authority for the key that was shown.
    pub certificate: Der,
    /// The key of the authority (PEM).
    pub authority_key: String,
    /// The cluster and its nodes.
    pub roster: Roster,
}

/// What nodes say to each other first.
#[derive(Serialize, Deserialize)]
pub struct Hello {
    /// Whom the one that connects means.
    pub to: u8,
    /// The version of its program.
    pub version: String,
    /// Which start of its program: random.
    pub run: String,
    /// Its clock, in seconds since 1970.
    pub clock: u64,
}

/// What a command wants of its daemon.
#[derive(Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// A new cluster of this name.
    Init {
        /// What people call it.
        name: String,
    },
    /// A token.
    Token {
        /// How long it may be used.
        minutes: u64,
    },
    /// To be a node of the cluster that this token is of.
    Join {
        /// Its text.
        token: String,
    },
    /// Who is in the cluster.
    Status,
    /// To be a node of it no more.
    Leave {
        /// Another node that is gone for good; none: this one.
        node: Option<String>,
        /// Although it has copies.
        force: bool,
        /// Only say what would be lost.
        dry_run: bool,
    },
}

/// A cluster that was made or joined, or left.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct Outcome {
    /// The cluster's name.
    pub cluster: String,
    /// Its identifier.
    pub cluster_id: String,
    /// The node that it is about.
    pub node: String,
    /// Its number.
    pub slot: u8,
    /// SHA-256 of the certificate of the authority.
    pub authority: Fingerprint,
    /// What the administrator should know, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// A token that was made: shown once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeToken {
    /// Its text.
    pub token: String,
    /// Until when it may be used (RFC 3339).
    pub expires: String,
    /// Where the node that joins asks.
    pub addresses: Vec<SocketAddr>,
}

/// Who is in the cluster.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct ClusterView {
    /// The cluster's name.
    pub cluster: String,
    /// Its identifier.
    pub cluster_id: String,
    /// What all its nodes are able to do.
    pub level: u16,
    /// SHA-256 of the certificate of the authority.
    pub authority: Fingerprint,
    /// The number of the node that answers.
    pub slot: u8,
    /// The nodes, also those that have left.
    pub nodes: Vec<NodeView>,
    /// What is wrong, one sentence each.
    pub problems: Vec<String>,
}

/// What `cluster status` says of one of them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub struct NodeView {
    /// Its number.
    pub slot: u8,
    /// What people call it.
    pub name: String,
    /// Its identifier.
    pub id: String,
    /// Whether it counts.
    pub standing: Standing,
    /// Where others reach it.
    pub addresses: Vec<SocketAddr>,
    /// The version of its program.
    pub version: String,
    /// The ring counts of its pools' journals.
    pub rings: Vec<u32>,
    /// Whether it answers the node that was asked.
    pub answers: bool,
    /// When it was heard last by the node that was asked (RFC 3339); absent: not since its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<String>,
    /// Until when its certificate is good (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_ends: Option<String>,
    /// SHA-256 of its certificate.
    pub fingerprint: Fingerprint,
    /// Why it does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}
