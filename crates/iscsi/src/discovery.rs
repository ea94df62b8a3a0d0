//! SendTargets: what a target tells of itself, written and read.
//!
//! Spec: RFC 7143 appendix C "SendTargets Operation".

/// One target in an answer to SendTargets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetRecord {
    /// iSCSI name.
    pub name: String,
    /// Where it is reachable. Never empty from our target: clients take "no address" for "this one".
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
