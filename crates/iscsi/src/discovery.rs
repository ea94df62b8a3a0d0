//! SendTargets: what a target reports of itself, written and read.
//!
//! Spec: RFC 7143 appendix C "SendTargets Operation".

use crate::text;
use crate::violation::{Violation, ViolationKind};

/// One target in an answer to SendTargets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetRecord {
    /// iSCSI name.
    pub name: String,
    /// Where it is reachable. Never empty from our target: clients take "no address" for "this
    /// one".
    pub addresses: Vec<PortalAddress>,
}

/// A portal: address and target portal group tag, as TargetAddress says it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortalAddress {
    /// `192.0.2.1:3260`, `[2001:db8::1]:3260` or `name:3260`.
    pub address: String,
    /// Target portal group tag.
    pub portal_group_tag: u16,
}

/// Answer to SendTargets as text.
#[must_use]
pub fn encode(targets: &[TargetRecord]) -> Vec<u8> {
    let mut out = Vec::new();
    for target in targets {
        out.extend_from_slice(format!("TargetName={}\0", target.name).as_bytes());
        for PortalAddress {
            address,
            portal_group_tag,
        } in &target.addresses
        {
            let line = format!("TargetAddress={address},{portal_group_tag}\0");
            out.extend_from_slice(line.as_bytes());
        }
    }
    out
}

/// Reads an answer to SendTargets. Addresses without a tag are taken to have tag 1.
///
/// # Errors
/// Text that is not pairs, or an address before any name.
pub fn decode(answer: &[u8]) -> Result<Vec<TargetRecord>, Violation> {
    let broken = |what| Violation::new(ViolationKind::BadText, "appendix C", what);
    let mut targets: Vec<TargetRecord> = Vec::new();
    for (key, value) in text::pairs(answer)? {
        match key {
            "TargetName" => {
                targets.push(TargetRecord {
                    name: value.into(),
                    addresses: Vec::new(),
                });
            }
            "TargetAddress" => {
                let target = targets
                    .last_mut()
                    .ok_or(broken("an address without a target"))?;
                let (address, tag) = value.rsplit_once(',').unwrap_or((value, "1"));
                let tag = text::number(tag).and_then(|tag| u16::try_from(tag).ok());
                let portal_group_tag = tag.ok_or(broken("a portal group tag that is no number"))?;
                target.addresses.push(PortalAddress {
                    address: address.into(),
                    portal_group_tag,
                });
            }
            _ => {}
        }
    }
    Ok(targets)
}
