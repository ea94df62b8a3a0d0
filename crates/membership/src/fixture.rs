//! Records for tests.

use crate::fingerprint::Fingerprint;
use crate::records::{ClusterRecord, Der, NodeRecord, Profile, Standing, TokenRecord, Written};

pub(crate) fn written() -> Written {
    Written {
        by: "0".repeat(32),
        at: "2026-11-27T00:00:00.000Z".to_owned(),
        nonce: "0".repeat(16),
    }
}

pub(crate) fn profile(slot: u8) -> Profile {
    Profile {
        id: format!("{slot:032x}"),
        name: format!("san-{slot}"),
        addresses: vec![format!("10.0.0.{slot}:7420").parse().unwrap()],
        version: "0.1.0".to_owned(),
        protocols: [1, 1],
        levels: [1, 1],
        rings: vec![4],
    }
}

pub(crate) fn node_record(slot: u8) -> NodeRecord {
    let certificate = vec![slot; 500];
    NodeRecord {
        profile: profile(slot),
        fingerprint: Fingerprint::of(&certificate),
        certificate: Der(certificate),
        fingerprint_before: None,
        standing: Standing::Joined,
        token: Some("ab".repeat(8)),
        written: written(),
    }
}

pub(crate) fn cluster_record() -> ClusterRecord {
    ClusterRecord {
        id: "c".repeat(32),
        name: "home".to_owned(),
        authority: Der(vec![7; 400]),
        level: 1,
        written: written(),
    }
}

pub(crate) fn token_record(secret: &str, expires: u64) -> TokenRecord {
    TokenRecord {
        secret: Fingerprint::of(secret.as_bytes()),
        expires,
        used_by: None,
        written: written(),
    }
}
