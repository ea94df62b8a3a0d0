use super::*;
use manifest::objects::{LayerFacts, Storage};
use manifest::redundancy::Redundancy;
use manifest::size::Size;
use manifest::view::{ChapView, GrantView, HostView, LunView, TargetView};
use std::collections::BTreeMap;

fn page(portals: &[&str], chap: bool) -> String {
    page_of(portals, chap, 3)
}

fn page_of(portals: &[&str], chap: bool, lun_id: u16) -> String {
    let chap = chap.then(|| ChapView {
        user: "esx01".to_owned(),
        mutual_user: None,
    });
    page_with(portals, chap, lun_id, (512, true))
}

/// The last pair: the size of the LUN's blocks, and whether it is thin.
fn page_with(
    portals: &[&str],
    chap: Option<ChapView>,
    lun_id: u16,
    (block_size, thin): (u32, bool),
) -> String {
    let lun = LunView {
        name: "vm01".to_owned(),
        state: "online".to_owned(),
        reason: None,
        size: Size::from_bytes(1 << 30).unwrap(),
        block_size,
        physical_block_size: 512,
        thin,
        backing: "pool default".to_owned(),
        pool: Some("default".to_owned()),
        members: Vec::new(),
        backend: None,
        naa: "602ca5e0123456789abcdef012345678".to_owned(),
        serial: "0123456789abcdef".to_owned(),
        allocated: None,
        notices: Vec::new(),
        grants: Vec::new(),
        bytes_in_flight_max: None,
        storage: Storage::default().in_force(),
        layers: LayerFacts::default(),
        journal: None,
        verified: None,
        in_flight: 0,
        stalled: None,
        findings: Vec::new(),
        bytes_in_flight: 0,
        ops: BTreeMap::new(),
    };
    let grant = GrantView {
        name: "esx01:t1:vm01".to_owned(),
        host: "esx01".to_owned(),
        target: "t1".to_owned(),
        lun: "vm01".to_owned(),
        lun_id,
        read_only: false,
    };
    let target = TargetView {
        name: "t1".to_owned(),
        iqn: "iqn.2026-11.io.causeway:t1".to_owned(),
        portal_group: "default".to_owned(),
        portals: portals.iter().map(|portal| (*portal).to_owned()).collect(),
        redirect: None,
        maintenance: false,
        maintenance_grace_seconds: 30,
        sessions: 0,
    };
    let host = HostView {
        name: "esx01".to_owned(),
        iqn: vec!["iqn.1998-01.com.vmware:esx01".to_owned()],
        chap,
        bytes_in_flight_max: None,
        sessions: 0,
        redundancy: Redundancy::default(),
    };
    blocks(&[Export {
        lun: &lun,
        grant: &grant,
        target: &target,
        host: &host,
    }])
}

#[test]
fn every_kind_of_client_gets_its_block_with_address_name_and_number() {
    let text = page(&["10.0.0.1:3260", "[fd00::1]:3261"], false);
    for line in [
        "iscsiadm -m discovery -t sendtargets -p 10.0.0.1:3260",
        "iscsiadm -m discovery -t sendtargets -p [fd00::1]:3261",
        "iscsiadm -m node -T iqn.2026-11.io.causeway:t1 --login",
        "iscsiadm -m node -T iqn.2026-11.io.causeway:t1 -o update -n 'node.conn[0].timeo.noop_out_timeout' -v 2",
        "multipath -a \"$(readlink -f /dev/disk/by-id/wwn-0x602ca5e0123456789abcdef012345678)\"",
        "# 2 paths, each \"active ready running\":",
        "        no_path_retry \"queue\"",
        "        fast_io_fail_tmo 1",
        "iscsiadm -m node -T iqn.2026-11.io.causeway:t1 -o update -n 'node.conn[0].timeo.noop_out_interval' -v 1",
        "for SETTING in NoopOutInterval=1 NoopOutTimeout=10 RecoveryTimeout=1; do",
        "    Set-ItemProperty $_ -Name LinkDownTime -Value 1",
        "Set-NetTCPSetting -SettingName DatacenterCustom -MinRtoMs 60",
        "New-NetTransportFilter -SettingName DatacenterCustom -LocalPortStart 0 -LocalPortEnd 65535 -RemotePortStart 3260 -RemotePortEnd 3260",
        "New-NetTransportFilter -SettingName DatacenterCustom -LocalPortStart 0 -LocalPortEnd 65535 -RemotePortStart 3261 -RemotePortEnd 3261",
        "New-IscsiTargetPortal -TargetPortalAddress fd00::1 -TargetPortalPortNumber 3261",
        "Enable-MSDSMAutomaticClaim -BusType iSCSI",
        "esxcli iscsi adapter discovery sendtarget add --adapter=$ADAPTER --address=10.0.0.1:3260",
        "pvesm add iscsi causeway-t1 --portal 10.0.0.1 --target iqn.2026-11.io.causeway:t1 --content none",
        "# its URL: iscsi://10.0.0.1:3260/iqn.2026-11.io.causeway:t1/3",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(!text.to_lowercase().contains("chap"), "{text}");
}

#[test]
fn chap_comes_from_files_and_can_be_pasted() {
    let text = page(&["10.0.0.1:3260"], true);
    for line in [
        "node.session.auth.username = esx01",
        "node.session.auth.password = $(cat chap.secret)",
        "discovery.sendtargets.auth.authmethod = CHAP",
        "$secret = Get-Content -LiteralPath chap.secret -TotalCount 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(
        text.contains("-AuthenticationType ONEWAYCHAP -ChapUsername 'esx01' -ChapSecret $secret")
    );
    assert!(
        text.contains("-object secret,id=chap,file=chap.secret -drive driver=iscsi"),
        "{text}"
    );
    assert!(!text.contains("mutual"), "{text}");
    let chap = ChapView {
        user: "esx01".to_owned(),
        mutual_user: Some("san".to_owned()),
    };
    let text = page_with(&["10.0.0.1:3260"], Some(chap), 3, (512, true));
    for line in [
        "node.session.auth.username_in = san",
        "discovery.sendtargets.auth.password_in = $(cat mutual.secret)",
        "Set-IscsiChapSecret -ChapSecret (Get-Content -LiteralPath mutual.secret -TotalCount 1)",
        "esxcli iscsi adapter auth chap set --adapter=$ADAPTER --direction=mutual --level=required --authname=san --secret=\"$(cat mutual.secret)\"",
        "# QEMU's driver cannot ask the target to prove itself: the login is one-way",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.contains("-AuthenticationType MUTUALCHAP"), "{text}");
}

/// The lines that the block for Linux adds, run by a shell: what iscsid would read.
#[test]
fn the_lines_for_linux_write_what_the_files_hold() {
    let dir = std::env::temp_dir().join(format!("causeway-chap-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("chap.secret"), "it's a \"secret\" $HOME\n").unwrap();
    let text = page(&["10.0.0.1:3260"], true);
    let from = text.find("cat >> ").unwrap();
    let to = text.find("chmod 600").unwrap();
    let lines = text[from..to].replace("/etc/iscsi/iscsid.conf", "iscsid.conf");
    let mut shell = std::process::Command::new("sh");
    let status = shell.arg("-c").arg(&lines).current_dir(&dir).status();
    assert!(status.unwrap().success(), "{lines}");
    let written = std::fs::read_to_string(dir.join("iscsid.conf")).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let line = "node.session.auth.password = it's a \"secret\" $HOME\n";
    assert!(written.contains(line), "{written}");
}

#[test]
fn a_link_local_address_is_not_printed_with_the_nodes_own_interface() {
    let text = page(&["10.0.0.1:3260", "[fe80::1%7]:3260"], false);
    assert!(!text.contains("%7"), "{text}");
    assert!(
        text.contains("# also at [fe80::1]:3260, for hosts on the same link"),
        "{text}"
    );
    assert!(!text.contains("-p [fe80"), "{text}");
    let text = page(&["[fe80::1%7]:3260"], false);
    assert!(!text.contains("%7"), "{text}");
    assert!(
        text.contains("iscsiadm -m discovery -t sendtargets -p [fe80::1%HOST-INTERFACE]:3260"),
        "{text}"
    );
    assert!(text.contains("replace HOST-INTERFACE"), "{text}");
}

#[test]
fn qemus_own_driver_is_warned_of_where_it_would_end() {
    let of = |kind| page_with(&["10.0.0.1:3260"], None, 3, kind);
    let thin = of((4096, true));
    assert!(thin.contains("failed assertion"), "{thin}");
    for other in [(512, true), (4096, false), (512, false)] {
        assert!(!of(other).contains("failed assertion"), "{other:?}");
    }
}

/// A line that a shell would take for a command must be one: what is not for it is a comment or
/// within a heredoc.
#[test]
fn the_text_for_linux_is_a_script() {
    for portals in [&["10.0.0.1:3260"][..], &["10.0.0.1:3260", "10.0.1.1:3260"]] {
        let text = page(portals, false);
        let from = text.find("# --- Linux").unwrap();
        let to = text.find("# --- Windows").unwrap();
        let script = &text[from..to];
        let checked = std::process::Command::new("bash")
            .args(["-n", "-c", script])
            .output()
            .unwrap();
        assert!(checked.status.success(), "{script}\n{checked:?}");
        let mut within = false;
        for line in script.lines() {
            let first = line.split_whitespace().next().unwrap_or("#");
            let known = [
                "iscsiadm",
                "multipath",
                "multipathd",
                "udevadm",
                "mkdir",
                "cat",
            ];
            assert!(
                within || first.starts_with('#') || known.contains(&first),
                "{line}"
            );
            within = line.ends_with("<<'END'") || within && line != "END";
        }
    }
}

#[test]
fn a_wildcard_address_is_left_to_the_administrator() {
    let text = page(&["0.0.0.0:3260"], false);
    assert!(
        text.contains("SAN-ADDRESS:3260") && !text.contains("0.0.0.0"),
        "{text}"
    );
    assert!(page(&[], false).contains("does not listen now"));
}

#[test]
fn a_number_above_255_is_given_to_qemu_as_it_stands_on_the_wire() {
    let text = page_of(&["10.0.0.1:3260"], false, 300);
    assert!(text.contains(",lun=16684,"), "{text}");
    assert!(
        text.contains("iscsi://10.0.0.1:3260/iqn.2026-11.io.causeway:t1/16684"),
        "{text}"
    );
    let text = page_of(&["10.0.0.1:3260"], false, 255);
    assert!(text.contains(",lun=255,"), "{text}");
}
