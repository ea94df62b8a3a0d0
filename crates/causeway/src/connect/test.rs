use super::*;
use control::objects::{CacheMode, Limit};
use control::size::Size;
use control::view::ChapView;
use std::collections::BTreeMap;

fn page(portals: &[&str], chap: bool) -> String {
    page_of(portals, chap, 3)
}

fn page_of(portals: &[&str], chap: bool, lun_id: u16) -> String {
    let lun = LunView {
        name: "vm01".to_owned(),
        state: "online".to_owned(),
        reason: None,
        size: Size::from_bytes(1 << 30).unwrap(),
        block_size: 512,
        physical_block_size: 512,
        thin: true,
        backing: "pool default".to_owned(),
        pool: Some("default".to_owned()),
        backend: None,
        naa: "602ca5e0123456789abcdef012345678".to_owned(),
        serial: "0123456789abcdef".to_owned(),
        allocated: None,
        notices: Vec::new(),
        grants: Vec::new(),
        bytes_in_flight_max: None,
        cache: CacheMode::Volatile,
        integrity: false,
        read_cache: None,
        limit: Limit::default(),
        limited: None,
        shares: None,
        task_aborted_status: control::objects::TaskAbortedStatus::Host,
        shared: None,
        cached: None,
        checksums: None,
        journal: None,
        in_flight: 0,
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
        chap: chap.then(|| ChapView {
            user: "esx01".to_owned(),
            mutual_user: None,
        }),
        bytes_in_flight_max: None,
        sessions: 0,
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
        "for SETTING in NoopOutInterval=1 NoopOutTimeout=10 RecoveryTimeout=1; do",
        "    Set-ItemProperty $_ -Name LinkDownTime -Value 5",
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
fn chap_is_asked_for_and_never_printed() {
    let text = page(&["10.0.0.1:3260"], true);
    assert!(text.contains("-ChapSecret $secret"), "{text}");
    assert!(text.contains("password-secret=chap"), "{text}");
    assert!(text.contains("username = esx01"), "{text}");
}

/// A line that a shell would take for a command must be one: what is not for it is a comment or within a heredoc.
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
