//! One block for each kind of client.

use crate::chap::Chap;
use crate::dead_path;
use crate::export::{Export, Portal};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;

/// What one kind of client pastes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Block {
    /// The kind of client, in a word.
    pub platform: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What is pasted.
    pub text: String,
}

type Write = fn(&Export<'_>, &[Portal]) -> String;

/// The kinds of clients.
const PLATFORMS: [(&str, &str, Write); 5] = [
    ("linux", "Linux", linux),
    ("windows", "Windows", windows),
    ("esxi", "VMware ESXi", esxi),
    ("proxmox", "Proxmox VE", proxmox),
    ("qemu", "QEMU", qemu),
];

/// A block for each kind of client; none where the target does not listen.
#[must_use]
pub fn platforms(export: &Export<'_>) -> Vec<Block> {
    let portals = export.portals();
    if portals.is_empty() {
        return Vec::new();
    }
    PLATFORMS
        .into_iter()
        .map(|(platform, title, write)| Block {
            platform,
            title,
            text: write(export, &portals),
        })
        .collect()
}

/// One block per kind of client, for each host.
#[must_use]
pub fn blocks(exports: &[Export<'_>]) -> String {
    let mut out = String::new();
    for export in exports {
        let portals = export.portals();
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "=== LUN {} for host {}: target {}, number {} ===",
            export.lun.name, export.host.name, export.target.iqn, export.grant.lun_id
        );
        if portals.is_empty() {
            let _ = writeln!(
                out,
                "The target's portal group does not listen now: causeway status"
            );
            continue;
        }
        if let Some(reported) = export.of_addresses(&portals) {
            let _ = writeln!(out, "{reported}");
        }
        for (_, _, write) in PLATFORMS {
            out.push('\n');
            out.push_str(&write(export, &portals));
        }
        out.push('\n');
    }
    out
}

fn linux(export: &Export<'_>, portals: &[Portal]) -> String {
    let iqn = &export.target.iqn;
    let mut out = String::from("# --- Linux (open-iscsi, multipath-tools; in a root shell) ---\n");
    let initiators = export.host.iqn.join(" or ");
    if export.host.iqn.iter().all(|iqn| iqn != "*") {
        let _ = writeln!(
            out,
            "# /etc/iscsi/initiatorname.iscsi must say: InitiatorName={initiators}"
        );
    }
    if let Some(chap) = Chap::of(export) {
        out.push_str(&chap.linux());
    }
    out.push_str(&dead_path::linux_multipath());
    for portal in portals {
        let _ = writeln!(
            out,
            "iscsiadm -m discovery -t sendtargets -p {}",
            portal.both()
        );
    }
    out.push_str(&dead_path::linux_session(iqn));
    let _ = writeln!(out, "iscsiadm -m node -T {iqn} --login");
    out.push_str(&dead_path::linux_map(iqn, &export.lun.naa, portals.len()));
    out
}

fn windows(export: &Export<'_>, portals: &[Portal]) -> String {
    let iqn = &export.target.iqn;
    let mut out = String::from("# --- Windows (PowerShell as administrator) ---\n");
    out.push_str("Set-Service MSiSCSI -StartupType Automatic; Start-Service MSiSCSI\n");
    out.push_str("# several paths need MPIO, once per machine, with a restart:\n");
    out.push_str(
        "Install-WindowsFeature Multipath-IO\nEnable-MSDSMAutomaticClaim -BusType iSCSI\n",
    );
    let ports = portals.iter().map(|portal| &*portal.port).collect();
    out.push_str(&dead_path::windows(&ports));
    let (before, chap) = Chap::of(export).map_or_else(Default::default, |chap| chap.windows());
    out.push_str(&before);
    for portal in portals {
        let (address, port) = (portal.bare(), &portal.port);
        let _ = writeln!(
            out,
            "New-IscsiTargetPortal -TargetPortalAddress {address} -TargetPortalPortNumber {port}{chap}"
        );
    }
    for portal in portals {
        let (address, port) = (portal.bare(), &portal.port);
        let _ = writeln!(
            out,
            "Connect-IscsiTarget -NodeAddress {iqn} -TargetPortalAddress {address} \
             -TargetPortalPortNumber {port} -IsPersistent $true -IsMultipathEnabled $true{chap}"
        );
    }
    let _ = writeln!(
        out,
        "Get-Disk | Where-Object SerialNumber -match '{}'",
        export.lun.serial
    );
    out
}

fn esxi(export: &Export<'_>, portals: &[Portal]) -> String {
    let mut out = String::from("# --- VMware ESXi (shell) ---\n");
    out.push_str("esxcli iscsi software set --enabled=true\n");
    out.push_str("ADAPTER=$(esxcli iscsi adapter list | awk '/iscsi_vmk/ {print $1}')\n");
    if let Some(chap) = Chap::of(export) {
        out.push_str(&chap.esxi());
    }
    out.push_str(&dead_path::esxi());
    for portal in portals {
        let _ = writeln!(
            out,
            "esxcli iscsi adapter discovery sendtarget add --adapter=$ADAPTER --address={}",
            portal.both()
        );
    }
    out.push_str("esxcli storage core adapter rescan --adapter=$ADAPTER\n");
    let naa = &export.lun.naa;
    let _ = writeln!(
        out,
        "esxcli storage nmp device set --device=naa.{naa} --psp=VMW_PSP_RR"
    );
    out
}

fn proxmox(export: &Export<'_>, portals: &[Portal]) -> String {
    let mut out = String::from("# --- Proxmox VE ---\n");
    let Some(first) = portals.first() else {
        return out;
    };
    let (name, iqn) = (&export.target.name, &export.target.iqn);
    let id = format!(
        "causeway-{}",
        name.to_ascii_lowercase().replace(['_', '.'], "-")
    );
    let portal = if first.port == "3260" {
        first.host.clone()
    } else {
        first.both()
    };
    out.push_str(&dead_path::proxmox());
    let _ = writeln!(
        out,
        "pvesm add iscsi {id} --portal {portal} --target {iqn} --content none"
    );
    let _ = writeln!(out, "# or in /etc/pve/storage.cfg:");
    let _ = writeln!(
        out,
        "iscsi: {id}\n        portal {portal}\n        target {iqn}\n        content none"
    );
    out.push_str("# then: a VM's disk straight on a LUN with --content images, or LVM above it (pvesm add lvm)\n");
    if Chap::of(export).is_some() {
        out.push_str(
            "# CHAP: set it in /etc/iscsi/iscsid.conf on every node first, as for Linux\n",
        );
    }
    if portals.len() > 1 {
        out.push_str("# several paths: multipath-tools on every node, as for Linux\n");
    }
    out
}

/// The largest number with the short form of addressing.
const LUN_ID_PERIPHERAL_MAX: u16 = 255;

/// Marks a number above it (SAM-5 4.7.7.3 "Flat space addressing method").
const FLAT_SPACE: u16 = 0x4000;

/// QEMU's `iscsi_co_readv` asks for the provisioning of BDRV_REQUEST_MAX_BYTES, 2147483136, which
/// is no multiple of 4096, and `iscsi_co_block_status` asserts that it is; 7.2 does, and no later
/// source that was inspected has mended it.
const THIN_4096: &str = "# careful: QEMU's own iSCSI driver (7.2 at least) ends with a failed assertion at reads from 32 KiB of thin LUNs with 4096-byte\n\
     # blocks. Let the kernel's initiator or `causeway attach` connect, or use a LUN of 512-byte blocks or a thick one (--thin false).\n";

fn qemu(export: &Export<'_>, portals: &[Portal]) -> String {
    let mut out = String::from("# --- QEMU (without any set-up on the host) ---\n");
    let Some(first) = portals.first() else {
        return out;
    };
    let (iqn, at) = (&export.target.iqn, first.both());
    let mut id = export.grant.lun_id;
    if id > LUN_ID_PERIPHERAL_MAX {
        id |= FLAT_SPACE;
        let _ = writeln!(
            out,
            "# QEMU and libiscsi write the number as it stands on the wire: {id} for {}",
            export.grant.lun_id
        );
    }
    let initiator = export.host.iqn.iter().find(|iqn| *iqn != "*");
    let initiator = initiator.map_or_else(String::new, |iqn| format!(",initiator-name={iqn}"));
    let chap = Chap::of(export).map_or_else(Default::default, |chap| chap.qemu());
    let (before, object, chap) = chap;
    out.push_str(&before);
    if export.lun.thin && export.lun.block_size == 4096 {
        out.push_str(THIN_4096);
    }
    let _ = writeln!(
        out,
        "{object}-drive driver=iscsi,transport=tcp,portal={at},target={iqn},lun={id}{initiator}{chap},if=none,id=disk0 \
         -device scsi-block,drive=disk0"
    );
    let _ = writeln!(out, "# its URL: iscsi://{at}/{iqn}/{id}");
    out
}
