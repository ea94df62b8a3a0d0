//! The points that no program sees from here, with what to check.

use crate::finding::{Finding, Verdict};

/// Number, name, what to check.
const POINTS: &[(&[u8], &str, &str, &str)] = &[
    (
        &[1],
        "makers-guide",
        "the target's maker's own advice",
        "it wins over every general rule: look for the guide of this product and firmware",
    ),
    (
        &[2],
        "makers-kit",
        "a path manager of the target's maker",
        "where the target brings one for this system, use it, and keep it current; Causeway's planner does its work for any target",
    ),
    (
        &[10],
        "vlans",
        "VLANs and broadcast domains at the switches",
        "one VLAN for each storage network, and none of them on a port that does not need it",
    ),
    (
        &[15],
        "default-policy",
        "the policy that new volumes get",
        "Causeway's is adaptive, and one that is set is kept over restarts (`causeway path policy`); for others set it when the host is built, and restart before anything is configured",
    ),
    (
        &[16],
        "nas-journaling",
        "journaling and synchronous writes of a small NAS",
        "switch them off for the iSCSI volume only where an uninterruptible supply protects it",
    ),
    (
        &[17],
        "target-firmware",
        "firmware of the target, and a BIOS outside it",
        "keep both current: drive bays that stay dark after a warm start point at a stale BIOS",
    ),
    (
        &[18],
        "cluster-sizes",
        "block, cluster and stripe sizes",
        "fit them to the workload: 64 KiB clusters for virtual machines and video",
    ),
    (
        &[20],
        "power",
        "uninterruptible supplies",
        "host, switches and target each need one: what is in flight must reach the disk; try the shutdown",
    ),
    (
        &[22],
        "pull-a-cable",
        "what happens when a cable is pulled",
        "pull one under load and see: I/O must go on. `causeway lab fault` shows the same without hardware",
    ),
    (
        &[],
        "switching",
        "when round robin takes the next path",
        "after one command, not a thousand: `causeway lab round-robin` shows why; VMware's and others' default must be set and survive a restart",
    ),
    (
        &[],
        "failure-domains",
        "what a striped volume spans",
        "never several failure domains: one lost enclosure would take all of it",
    ),
    (
        &[],
        "guests",
        "what guests get that need write order, forced unit access and abort",
        "a LUN, not a file over NFS or SMB",
    ),
    (
        &[],
        "free-core",
        "the core that a session lands on",
        "a free one: a target of ours places sessions by measured load (`causeway top`, `causeway session ls`); of others check their own cores",
    ),
    (
        &[],
        "snapshots",
        "where backup tools expect snapshots",
        "at the LUN, where they find them",
    ),
];

/// A finding for each of them.
pub(crate) fn not_checkable() -> Vec<Finding> {
    let finding = |(points, check, what, remedy): &(&[u8], &'static str, &str, &str)| {
        Finding::new(check, points, Verdict::NotCheckable, (*what).to_owned()).remedy(*remedy)
    };
    POINTS.iter().map(finding).collect()
}
