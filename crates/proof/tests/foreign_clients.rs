//! Clients that nobody here wrote, against the real daemon: qemu's block layer and libiscsi's
//! tools, with CHAP and without, with digests, and where they must be refused.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

mod common;

use common::client::{Client, NAME, Refused, config, ten};
use common::daemon::{Daemon, IQN};
use common::tools::{must, must_fail, need};
use iscsi::{DigestChoice, LoginStatus};
use std::fmt::Write;

/// How qemu-img calls itself.
const QEMU: &str = "iqn.2008-11.org.linux-kvm";
/// A host that is granted nothing but `private`.
const OTHER: &str = "iqn.2026-11.test:other";

const SECRET: &str = "correct-horse-1";
const MUTUAL_SECRET: &str = "battery-staple-2";
const SIZE: usize = 64 << 20;

fn lun(text: &mut String, name: &str, block: u32) {
    writeln!(
        text,
        "[[lun]]\nname = \"{name}\"\nsize = {SIZE}\nblock_size = {block}\nthin = true\npool = \"default\"\n\
         [[target]]\nname = \"{name}\"\niqn = \"{IQN}:{name}\"\nportal_group = \"default\""
    )
    .unwrap();
}

fn grant(text: &mut String, host: &str, name: &str, fields: &str) {
    writeln!(
        text,
        "[[grant]]\nhost = \"{host}\"\nlun = \"{name}\"\ntarget = \"{name}\"\nlun_id = 0\n{fields}"
    )
    .unwrap();
}

/// `open` (512) and `large` (4096) for every initiator, `fixed` read-only, `private` for one host
/// alone, and `secret` for qemu with mutual CHAP.
fn daemon(name: &str) -> Daemon {
    let daemon = Daemon::start(name);
    for (file, secret) in [("one", SECRET), ("two", MUTUAL_SECRET)] {
        std::fs::write(daemon.path(file), secret).unwrap();
    }
    let mut text = format!(
        "[[host]]\nname = \"all\"\niqn = [\"*\"]\n[[host]]\nname = \"other\"\niqn = [\"{OTHER}\"]\n\
         [[host]]\nname = \"qemu\"\niqn = [\"{QEMU}\"]\n\
         chap = {{ user = \"alice\", secret_file = \"one\", mutual_user = \"san\", mutual_secret_file = \"two\" }}\n"
    );
    lun(&mut text, "open", 512);
    lun(&mut text, "large", 4096);
    lun(&mut text, "fixed", 512);
    lun(&mut text, "private", 512);
    lun(&mut text, "secret", 512);
    for name in ["open", "large"] {
        grant(&mut text, "all", name, "");
    }
    grant(&mut text, "all", "fixed", "read_only = true");
    grant(&mut text, "other", "private", "");
    grant(&mut text, "qemu", "secret", "");
    daemon.apply(&text);
    daemon
}

/// A file of the LUNs' size with content that is nowhere the same, holes included.
fn image(daemon: &Daemon, name: &str, seed: u64) -> String {
    let mut state = seed;
    let mut bytes = vec![0; SIZE];
    for (number, chunk) in bytes.chunks_exact_mut(8).enumerate() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // Every other 64 KiB stays a hole.
        if number >> 13 & 1 == 0 {
            chunk.copy_from_slice(&state.to_le_bytes());
        }
    }
    let path = daemon.path(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Writes `from` to the LUN by qemu-img, compares there, reads back, and compares here.
fn round_trip(daemon: &Daemon, from: &str, lun: &[&str]) {
    let back = daemon.path("back.raw");
    let (option, lun) = lun.split_at(lun.len() - 1);
    let lun = lun[0];
    if option.is_empty() {
        must(
            "qemu-img",
            &["convert", "-n", "-f", "raw", "-O", "raw", from, lun],
        );
        must(
            "qemu-img",
            &["compare", "-f", "raw", "-F", "raw", from, lun],
        );
        must(
            "qemu-img",
            &["convert", "-f", "raw", "-O", "raw", lun, &back],
        );
    } else {
        must(
            "qemu-img",
            &[
                "convert",
                "-n",
                "--target-image-opts",
                "-f",
                "raw",
                from,
                lun,
            ],
        );
        must(
            "qemu-img",
            &["convert", "--image-opts", "-O", "raw", lun, &back],
        );
    }
    assert!(
        std::fs::read(from).unwrap() == std::fs::read(&back).unwrap(),
        "{lun}: what was read is not what was written"
    );
}

#[test]
fn qemu_writes_compares_and_reads_with_and_without_digests() {
    need(&["qemu-img", "timeout"]);
    let daemon = daemon("qemu");
    for (seed, name) in [(1, "open"), (2, "large")] {
        let from = image(&daemon, "from.raw", seed);
        round_trip(&daemon, &from, &[&daemon.url(0, name, 0)]);
        for digest in ["none", "crc32c"] {
            let portal = &daemon.portals[1];
            let options = format!(
                "driver=iscsi,transport=tcp,portal={portal},target={IQN}:{name},lun=0,\
                 initiator-name={NAME},header-digest={digest}"
            );
            round_trip(
                &daemon,
                &from,
                &[
                    "--image-opts",
                    &format!("driver=raw,file.{}", options.replace(',', ",file.")),
                ],
            );
        }
    }
    let different = image(&daemon, "other.raw", 3);
    let reported = must_fail(
        "qemu-img",
        &[
            "compare",
            "-f",
            "raw",
            "-F",
            "raw",
            &different,
            &daemon.url(0, "open", 0),
        ],
    );
    assert!(
        reported.contains("mismatch"),
        "the comparison can fail: {reported}"
    );
    daemon.stop();
}

/// libiscsi has no data digests: our own host has, and reads what qemu wrote.
#[test]
fn what_qemu_wrote_is_read_under_both_digests() {
    need(&["qemu-img", "timeout"]);
    let daemon = daemon("digests");
    let from = image(&daemon, "from.raw", 5);
    let url = daemon.url(0, "open", 0);
    must(
        "qemu-img",
        &["convert", "-n", "-f", "raw", "-O", "raw", &from, &url],
    );
    let mut config = config(NAME, &format!("{IQN}:open"));
    config.offer.header_digest = DigestChoice::Required;
    config.offer.data_digest = DigestChoice::Required;
    let mut client = Client::login(&daemon.portals[0], &config).unwrap();
    client.settle();
    let image = std::fs::read(&from).unwrap();
    for (lba, part) in (0..).step_by(2048).zip(image.chunks(1 << 20).take(8)) {
        assert!(client.read(lba, 2048, 512) == part);
    }
    client.write(0, &image[1 << 20..2 << 20], 512);
    assert!(client.read(0, 2048, 512) == image[1 << 20..2 << 20]);
    daemon.stop();
}

#[test]
fn chap_lets_in_who_knows_both_secrets_and_says_to_others_exactly_why_not() {
    need(&["qemu-img", "iscsi-inq", "timeout"]);
    let daemon = daemon("chap");
    let from = image(&daemon, "from.raw", 4);
    let (portal, secret) = (&daemon.portals[0], format!("{IQN}:secret/0"));
    let one_way = format!("iscsi://alice%{SECRET}@{portal}/{secret}");
    let mutual = |password: &str| format!("{one_way}?target_user=san&target_password={password}");
    round_trip(&daemon, &from, &[&one_way]);
    round_trip(&daemon, &from, &[&mutual(MUTUAL_SECRET)]);
    let refused = |url: &str| must_fail("iscsi-inq", &["-i", QEMU, url]);
    // How libiscsi prints 0201h.
    let wrong = [
        format!("iscsi://alice%wrong-password@{portal}/{secret}"),
        format!("iscsi://bob%{SECRET}@{portal}/{secret}"),
        format!("iscsi://{portal}/{secret}"),
    ];
    for url in &wrong {
        let reported = refused(url);
        assert!(reported.contains("(513)"), "{url}: {reported}");
    }
    // A target that cannot prove itself: it is the client that goes.
    let reported = refused(&mutual("not-its-password"));
    assert!(!reported.contains("Peripheral"), "{reported}");
    must("iscsi-inq", &["-i", QEMU, &one_way]);
    let log = daemon.log();
    assert!(
        !log.contains(SECRET) && !log.contains(MUTUAL_SECRET),
        "no secret in the log"
    );
    daemon.stop();
}

#[test]
fn who_is_not_granted_is_refused_with_the_exact_status_and_shown_nothing() {
    need(&["iscsi-ls", "iscsi-inq", "timeout"]);
    let daemon = daemon("grants");
    let status = |initiator: &str, name: &str| -> Option<LoginStatus> {
        let config = config(initiator, &format!("{IQN}:{name}"));
        match Client::login(&daemon.portals[0], &config) {
            Ok(_) => None,
            Err(Refused { status, reason }) => Some(status.unwrap_or_else(|| panic!("{reason}"))),
        }
    };
    assert_eq!(status(NAME, "open"), None);
    assert_eq!(status(OTHER, "private"), None);
    // How libiscsi prints 0202h and 0203h.
    let (denied, missing) = (LoginStatus::AuthorizationFailure, LoginStatus::NotFound);
    for (initiator, name, expected, printed) in [
        (NAME, "private", denied, "(514)"),
        (NAME, "secret", denied, "(514)"),
        (NAME, "nothing", missing, "(515)"),
        (OTHER, "nothing", missing, "(515)"),
    ] {
        let got = status(initiator, name);
        assert_eq!(got, Some(expected), "{initiator} {name}");
        let url = daemon.url(0, name, 0);
        let reported = must_fail("iscsi-inq", &["-i", initiator, &url]);
        assert!(reported.contains(printed), "{reported}");
    }
    assert_eq!(
        status(QEMU, "secret"),
        Some(LoginStatus::AuthenticationFailure)
    );
    let shown = |initiator: &str| -> Vec<String> {
        let text = must(
            "iscsi-ls",
            &["-i", initiator, &format!("iscsi://{}", daemon.portals[1])],
        );
        let names = text
            .lines()
            .filter_map(|line| line.split([':', ' ']).nth(2).map(str::to_owned));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names.dedup();
        names
    };
    assert_eq!(shown(NAME), ["fixed", "large", "open"]);
    assert!(shown(OTHER).contains(&"private".to_owned()));
    assert!(!shown(OTHER).contains(&"secret".to_owned()));
    daemon.stop();
}

#[test]
fn libiscsi_tools_see_the_disk_that_was_made() {
    need(&[
        "iscsi-ls",
        "iscsi-inq",
        "iscsi-readcapacity16",
        "iscsi-swp",
        "timeout",
    ]);
    let daemon = daemon("tools");
    let luns = must(
        "iscsi-ls",
        &["-s", "-i", NAME, &format!("iscsi://{}", daemon.portals[0])],
    );
    assert!(
        luns.contains("Lun:0    Type:DIRECT_ACCESS (Size:63M)") || luns.contains("(Size:64M)"),
        "{luns}"
    );
    for (name, block) in [("open", 512), ("large", 4096)] {
        let url = daemon.url(0, name, 0);
        let inquiry = must("iscsi-inq", &[&url]);
        assert!(
            inquiry.contains("Peripheral Device Type:DIRECT_ACCESS"),
            "{inquiry}"
        );
        let capacity = must("iscsi-readcapacity16", &[&url]);
        for line in [
            format!("RETURNED LOGICAL BLOCK ADDRESS:{}", SIZE / block - 1),
            format!("LOGICAL BLOCK LENGTH IN BYTES:{block}"),
            "LBPME:1 LBPRZ:1".to_owned(),
            format!("Total size:{SIZE}"),
        ] {
            assert!(capacity.contains(&line), "{line} is not in {capacity}");
        }
        every_page_is_what_page_zero_says(&daemon, name, &url);
        write_protection_goes_on_and_off(&daemon, name, &url, block);
    }
    daemon.stop();
}

/// Pages that iscsi-inq knows are read by it; the others by our own host, because it gives up on
/// them.
fn every_page_is_what_page_zero_says(daemon: &Daemon, name: &str, url: &str) {
    const UNKNOWN_TO_LIBISCSI: [u8; 5] = [0x85, 0x86, 0x87, 0x88, 0x8f];
    let list = must("iscsi-inq", &["-e", "1", "-c", "0", url]);
    let pages: Vec<u8> = list
        .split("Page:0x")
        .skip(1)
        .map(|rest| u8::from_str_radix(&rest[..2], 16).unwrap())
        .collect();
    for page in [0x00, 0x80, 0x83, 0x85, 0x86, 0x87, 0x88, 0xb0, 0xb1, 0xb2] {
        assert!(pages.contains(&page), "page {page:02x} is missing");
    }
    let mut client = Client::open(&daemon.portals[0], &format!("{IQN}:{name}"));
    for page in pages {
        let data = client.good(&[0x12, 1, page, 0x10, 0, 0], &[], 0x1000);
        assert_eq!(data[1], page);
        assert_eq!(
            data.len(),
            usize::from(u16::from_be_bytes([data[2], data[3]])) + 4,
            "page {page:02x}"
        );
        if !UNKNOWN_TO_LIBISCSI.contains(&page) {
            must("iscsi-inq", &["-e", "1", "-c", &page.to_string(), url]);
        }
    }
}

fn write_protection_goes_on_and_off(daemon: &Daemon, name: &str, url: &str, block: usize) {
    let mut client = Client::open(&daemon.portals[0], &format!("{IQN}:{name}"));
    let write = ten(0x2a, 0, 0, 1);
    let data = vec![7; block];
    client.good(&write, &data, 0);
    must("iscsi-swp", &["-s", "on", url]);
    client.settle();
    let refused = client.command(&write, &data, 0).sense.to_vec();
    assert_eq!(
        (refused[2] & 0x0f, refused[12]),
        (0x07, 0x27),
        "DATA PROTECT, WRITE PROTECTED"
    );
    assert!(must("iscsi-swp", &[url]).contains("SWP:1"));
    must("iscsi-swp", &["-s", "off", url]);
    client.settle();
    client.good(&write, &data, 0);
}

#[test]
fn a_read_only_grant_is_read_by_qemu_and_written_by_nobody() {
    need(&["qemu-img", "qemu-io", "timeout"]);
    let daemon = daemon("fixed");
    let url = daemon.url(0, "fixed", 0);
    let zeros = daemon.path("zeros.raw");
    std::fs::write(&zeros, vec![0; SIZE]).unwrap();
    must(
        "qemu-img",
        &["compare", "-f", "raw", "-F", "raw", &zeros, &url],
    );
    must_fail("qemu-io", &["-f", "raw", "-c", "write -P 7 0 4096", &url]);
    must(
        "qemu-img",
        &["compare", "-f", "raw", "-F", "raw", &zeros, &url],
    );
    daemon.stop();
}

#[test]
fn a_file_system_is_whole_after_its_way_to_the_lun_and_back() {
    need(&["mkfs.ext4", "e2fsck", "debugfs", "qemu-img", "timeout"]);
    let daemon = daemon("filesystem");
    let files = daemon.dir.join("files");
    std::fs::create_dir_all(files.join("deep/er")).unwrap();
    let content: Vec<u8> = (0..3_000_001u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0])
        .collect();
    std::fs::write(files.join("deep/er/large"), &content).unwrap();
    std::fs::write(files.join("small"), "hello\n").unwrap();
    for name in ["open", "large"] {
        let (made, back) = (daemon.path("made.raw"), daemon.path("back.raw"));
        let _ = std::fs::remove_file(&made);
        std::fs::File::create(&made)
            .unwrap()
            .set_len(SIZE as u64)
            .unwrap();
        must(
            "mkfs.ext4",
            &["-q", "-F", "-d", files.to_str().unwrap(), &made],
        );
        let url = daemon.url(0, name, 0);
        must(
            "qemu-img",
            &["convert", "-n", "-f", "raw", "-O", "raw", &made, &url],
        );
        must(
            "qemu-img",
            &[
                "convert",
                "-f",
                "raw",
                "-O",
                "raw",
                &daemon.url(1, name, 0),
                &back,
            ],
        );
        must("e2fsck", &["-f", "-n", &back]);
        let dumped = daemon.path("dumped");
        must(
            "debugfs",
            &["-R", &format!("dump /deep/er/large {dumped}"), &back],
        );
        assert!(
            std::fs::read(&dumped).unwrap() == content,
            "the file is what it was"
        );
        assert!(must("debugfs", &["-R", "cat /small", &back]).contains("hello"));
    }
    daemon.stop();
}
