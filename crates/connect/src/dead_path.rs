//! What is set on each platform so that a path that is dead costs as little as it can, and so that
//! several paths are one disk.
//!
//! A path can die without a sign: a switch that drops everything, a machine without power. Only
//! silence shows it then. How long that takes is what these settings make short: the time until a
//! host asks, the time that it waits for an answer, and the time that it then still hopes for the
//! connection to come back. docs/start/hosts.md has what was measured.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Seconds of silence after which Linux asks the target whether it is there. Its own default is 5.
pub(super) const NOOP_INTERVAL: u32 = 1;
/// Seconds in which the target must answer. Its own default is 5.
pub(super) const NOOP_TIMEOUT: u32 = 2;
/// Seconds in which a path of a map may come back before its commands take another path. Its own
/// default is 5.
pub(super) const FAST_IO_FAIL: u32 = 1;

/// Seconds from the last sign of a path to the moment at which Linux sends its commands another
/// way.
const LINUX_SECONDS: u32 = NOOP_INTERVAL + NOOP_TIMEOUT + FAST_IO_FAIL;

/// Before the host meets the target: several paths are one disk, and wait for each other.
pub(super) fn linux_multipath() -> String {
    format!(
        "# paths of one LUN become one disk. A path that is dead gives its commands to another after {FAST_IO_FAIL} s; with none \
         left they wait:\n\
         # nothing fails, and nothing goes on before a path is back (`multipathd disablequeueing map NAME` gives up)\n\
         mkdir -p /etc/multipath/conf.d; touch /etc/multipath.conf\n\
         cat > /etc/multipath/conf.d/causeway.conf <<'END'\n\
         devices {{\n    device {{\n        vendor \"CAUSEWAY\"\n        product \".*\"\n        \
         path_grouping_policy \"group_by_prio\"\n        prio \"alua\"\n        \
         path_checker \"tur\"\n        failback \"immediate\"\n        \
         fast_io_fail_tmo {FAST_IO_FAIL}\n        no_path_retry \"queue\"\n    }}\n}}\n\
         END\n\
         multipathd reconfigure\n"
    )
}

/// Between discovery, which writes the node's records anew, and the login, which reads them.
pub(super) fn linux_session(iqn: &str) -> String {
    let mut out = format!(
        "# a path that is silent is asked after {NOOP_INTERVAL} s and given up after {NOOP_TIMEOUT} s more: with the above at most \
         {LINUX_SECONDS} s instead of 15.\n\
         # Its price: one small packet a second on an idle session; a network that pauses for {} s costs a new login.\n\
         # A disk without multipath still waits 120 s for its path before it fails (node.session.timeo.replacement_timeout)\n",
        NOOP_INTERVAL + NOOP_TIMEOUT
    );
    for (name, value) in [
        ("node.startup", "automatic".to_owned()),
        (
            "node.conn[0].timeo.noop_out_interval",
            NOOP_INTERVAL.to_string(),
        ),
        (
            "node.conn[0].timeo.noop_out_timeout",
            NOOP_TIMEOUT.to_string(),
        ),
    ] {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "iscsiadm -m node -T {iqn} -o update -n '{name}' -v {value}"
        );
    }
    out
}

/// After the login: the LUN is let into multipath by name, because Debian and others make no map of
/// what they do not know.
pub(super) fn linux_map(iqn: &str, naa: &str, portals: usize) -> String {
    let paths = if portals == 1 {
        "1 path".to_owned()
    } else {
        format!("{portals} paths")
    };
    format!(
        "iscsiadm -m node -T {iqn} --rescan\n\
         udevadm settle\n\
         # without this line Debian makes no map: it takes only what it knows (find_multipaths is strict)\n\
         multipath -a \"$(readlink -f /dev/disk/by-id/wwn-0x{naa})\"\n\
         multipathd reconfigure; sleep 3\n\
         # {paths}, each \"active ready running\":\n\
         multipath -ll 3{naa}\n\
         # the disk: /dev/disk/by-id/dm-uuid-mpath-3{naa} (where that is missing, there is no map, and /dev/sd* is one path)\n"
    )
}

/// Registry key of the class of storage adapters, of which Microsoft's initiator is one.
const WINDOWS_ADAPTERS: &str =
    r"HKLM:\SYSTEM\CurrentControlSet\Control\Class\{4d36e97b-e325-11ce-bfc1-08002be10318}";

/// Seconds for which Windows keeps a disk without a path, and its commands.
const WINDOWS_HOLD: u32 = 120;

/// The least time in milliseconds after which Windows sends again what was not acknowledged. It
/// sends five times more and doubles it each time: a connection that is silent is lost after 63
/// times as much, 3.8 s. Where nothing is set that is 19 s, with 300 ms.
const WINDOWS_RETRANSMIT: u32 = 60;

/// Once per machine, with the ports of the portals.
pub(super) fn windows(ports: &BTreeSet<&str>) -> String {
    let filters: String = ports
        .iter()
        .map(|port| {
            format!(
                "New-NetTransportFilter -SettingName DatacenterCustom -LocalPortStart 0 -LocalPortEnd 65535 -RemotePortStart {port} -RemotePortEnd {port}\n"
            )
        })
        .collect();
    format!(
        "# a path that is silent is lost after 4 s (19 by default): TCP sends five times again, after {WINDOWS_RETRANSMIT} ms (300) and then after twice as long\n\
         Set-NetTCPSetting -SettingName DatacenterCustom -MinRtoMs {WINDOWS_RETRANSMIT}\n\
         {filters}\
         # a path that is lost gives its commands to another after 1 s (15 by default); paths are tried every 5 s (not at all,\n\
         # and after 40 s, by default). With none left commands wait {WINDOWS_HOLD} s (20). Its price: a test command on each path every 5 s,\n\
         # and a new login where nothing moves in a network for 4 s.\n\
         # With a restart:\n\
         Set-MPIOSetting -NewPathVerificationState Enabled -NewPathVerificationPeriod 5 -CustomPathRecovery Enabled \
         -NewPathRecoveryInterval 5 -NewPDORemovePeriod {WINDOWS_HOLD} -NewRetryCount 3 -NewRetryInterval 1\n\
         Get-ChildItem '{WINDOWS_ADAPTERS}' -ErrorAction SilentlyContinue | ForEach-Object {{ Join-Path $_.PSPath 'Parameters' }} |\n  \
         Where-Object {{ (Get-ItemProperty $_ -ErrorAction SilentlyContinue).MaxRequestHoldTime }} | ForEach-Object {{\n    \
         Set-ItemProperty $_ -Name LinkDownTime -Value 1\n    \
         Set-ItemProperty $_ -Name SrbTimeoutDelta -Value 5\n    \
         Set-ItemProperty $_ -Name EnableNOPOut -Value 1\n    \
         Set-ItemProperty $_ -Name MaxRequestHoldTime -Value {WINDOWS_HOLD} }}\n"
    )
}

/// Before the target is found: sessions take these when they log in.
pub(super) fn esxi() -> String {
    "# a path that is silent is asked after 1 s and given up 10 s later, the least that ESXi takes: 12 s instead of 35.\n\
     # Its price: one small packet a second on an idle session\n\
     for SETTING in NoopOutInterval=1 NoopOutTimeout=10 RecoveryTimeout=1; do\n  \
     esxcli iscsi adapter param set --adapter=$ADAPTER --key=${SETTING%=*} --value=${SETTING#*=}\n\
     done\n"
        .to_owned()
}

/// On every node, because Proxmox finds and logs in by itself, with what `iscsid.conf` says.
pub(super) fn proxmox() -> String {
    format!(
        "# on every node first, so that a path that is dead costs {LINUX_SECONDS} s at most; the multipath lines as for Linux:\n\
         sed -i -e 's/^\\(node.conn\\[0\\].timeo.noop_out_interval\\) *=.*/\\1 = {NOOP_INTERVAL}/' \
         -e 's/^\\(node.conn\\[0\\].timeo.noop_out_timeout\\) *=.*/\\1 = {NOOP_TIMEOUT}/' /etc/iscsi/iscsid.conf\n"
    )
}
