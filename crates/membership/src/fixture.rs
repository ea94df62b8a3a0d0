//! Records for tests.

use crate::fingerprint::Fingerprint;
use crate::records::{Der, NodeRecord, Profile, Standing, Written};

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
