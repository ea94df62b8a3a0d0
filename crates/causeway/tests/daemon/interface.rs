//! The promised interface, letter by letter: what a script sees of every verb.

use crate::login::{TARGET, login, read_pdu, served};
use crate::place::{Place, text_of};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::Read;
use std::time::{Duration, Instant};

/// Runs the daemon with a configuration that it must refuse, and gives the message.
fn refused_config(place: &Place, text: &str) -> String {
    place.write("node.toml", text);
    let words = ["serve", "--config", "node.toml"];
    let output = text_of(&place.run_with("", &words, ""), 2, text);
    assert_eq!(output.matches("error[").count(), 1, "one message: {output}");
    output
}

fn node_toml(place: &Place) -> String {
    std::fs::read_to_string(place.path("node.toml")).unwrap()
}

#[test]
fn what_the_machine_does_not_have_is_named_by_file_line_and_key() {
    let place = Place::new("machine");
    let good = node_toml(&place);
    place.write("file", "");
    let cases = [
        (
            "state_dir = \"data\"",
            "state_dir = \"file\"",
            "node.toml:4: node.state_dir: ",
        ),
        (
            "cores = [0]",
            "cores = [0, 900]",
            "node.toml:15: runtime.cores: this process cannot run on processor 900 (it may use ",
        ),
        (
            "path = \"data/pool\"",
            "path = \"file\"",
            "node.toml:11: pool[0].path: ",
        ),
        (
            "tag = 1",
            "tag = -1",
            "node.toml:7: portal_group[0].tag: expected a whole number from 1 to 65535, found -1",
        ),
        (
            "{ ip = \"127.0.0.1\", port = 0 }",
            "{ ip = \"127.0.0.1\" }, { ip = \"127.0.0.1\" }",
            "node.toml:8: portal_group[0].listen[1]: 127.0.0.1:3260 is listened at already",
        ),
        (
            "[\"unix:data/api.sock\", \"127.0.0.1:0\"]",
            "\"unix:data/api.sock\"",
            "error[CWY1003]: node.toml:13: api.listen: expected a list in [ ], found a string\nhelp",
        ),
    ];
    for (from, to, message) in cases {
        assert!(good.contains(from), "{from}");
        let output = refused_config(&place, &good.replacen(from, to, 1));
        assert!(output.contains(message), "{message}\n{output}");
    }
}

/// What a command printed for programs, which is one document.
fn changed(place: &Place, arguments: &str) -> Value {
    let mut document = place.json(arguments);
    let change = document["change"].take();
    assert!(change["generation"].is_u64(), "{arguments}: {change}");
    document.as_object_mut().unwrap().remove("change");
    document["done"] = change["changed"].clone();
    document
}

#[test]
fn a_change_of_one_object_shows_programs_the_object_as_it_is_now() {
    let place = Place::new("documents");
    let daemon = place.start();
    let steps = [
        ("lun create a --size 1M", "lun show a"),
        ("lun set a size=2M name=b", "lun show b"),
        ("lun resize b --size 3M", "lun show b"),
        ("lun rename b c", "lun show c"),
        ("target create t", "target show t"),
        ("target set t maintenance_grace_seconds=9", "target show t"),
        ("target rename t u", "target show u"),
        ("host create h --iqn iqn.2020-01.a:b", "host show h"),
        ("host set h iqn=*", "host show h"),
        ("host rename h i", "host show i"),
        ("grant create i c", "grant show i:u:c"),
        (
            "grant set i:u:c lun_id=16383 read_only=true",
            "grant show i:u:c",
        ),
    ];
    for (change, show) in steps {
        let mut answer = changed(&place, change);
        assert_eq!(answer["done"], true, "{change}: {answer}");
        answer.as_object_mut().unwrap().remove("done");
        assert_eq!(answer, place.json(show), "{change}");
    }
    for again in [
        "lun create c --size 1M --if-not-exists",
        "target create u --if-not-exists",
        "host create i --iqn * --if-not-exists",
        "grant create i c --if-not-exists",
    ] {
        let answer = changed(&place, again);
        assert_eq!(answer["done"], false, "{again}: {answer}");
        assert!(answer["name"].is_string(), "{again}: {answer}");
        assert!(
            place
                .run(0, again)
                .starts_with("nothing to change\nnote: there is a "),
            "{again}"
        );
    }
    assert_eq!(place.json("lun show c")["pool"], "default");
    let memory = changed(&place, "lun create m --size 1M --backend memory");
    assert_eq!(
        (&memory["backend"], &memory["pool"]),
        (&json!("memory"), &Value::Null)
    );
    let plan = place.json("lun create x --size 1M --dry-run");
    assert_eq!(
        (&plan["changed"], &plan["actions"][0]["name"]),
        (&json!(false), &json!("x"))
    );
    let gone = place.json("lun delete m");
    assert_eq!(
        (&gone["changed"], &gone["actions"][0]["verb"]),
        (&json!(true), &json!("remove"))
    );
    assert_eq!(place.json("lun delete m --if-exists")["changed"], false);
    assert_eq!(changed(&place, "lun restore m")["state"], "online");
    assert_eq!(place.json("lun delete m")["changed"], true);
    assert_eq!(
        place.json("lun purge m --yes")["actions"][0]["verb"],
        "purge"
    );
    let share = place.json("share show c");
    assert_eq!(share["exports"][0]["lun_id"], 16383);
    assert_eq!(place.json("explain CWY2003")["exit"], 5);
    daemon.stop();
}

/// Exit code, command, and words of the reason or of the next step.
const NOT_SET: &[(i32, &str, &str)] = &[
    (
        5,
        "lun set a block_size=4096",
        "hosts address the disk in these blocks",
    ),
    (
        5,
        "lun set a physical_block_size=4096",
        "make a new LUN with the wanted physical_block_size",
    ),
    (5, "lun set a thin=false", "space is taken once"),
    (
        5,
        "lun set a backend=memory",
        "the data would not move with it",
    ),
    (
        2,
        "lun set a backend=floppy",
        "write memory, block:/dev/... or vhdx:FILE",
    ),
    (2, "lun set a naa=6", "made once and stays"),
    (
        2,
        "lun set a lun_id=6",
        "causeway grant set HOST:TARGET:LUN lun_id=N",
    ),
    (2, "lun set a mirror=b", "see `causeway lun mirror --help`"),
    (
        2,
        "lun set a cache=writeback",
        "\"writeback\" is none of \"write-through\", \"write-back\", \"volatile\"",
    ),
    (
        2,
        "lun set a limit=5",
        "write limit=none alone, or its parts",
    ),
    (
        2,
        "lun set a limit.iops=0",
        "0 would stop the LUN; leave it out for no limit",
    ),
    (
        2,
        "lun set a limit.burst_seconds=5",
        "write iops or bytes_per_second as well",
    ),
    (2, "lun set a thin=perhaps", "write true or false"),
    (2, "lun set a size=1M size=2M", "size is assigned twice"),
    (2, "target set t portals=x", "change listen in node.toml"),
    (
        2,
        "target set t maintenance_grace_seconds=3601",
        "write a number from 0 to 3600",
    ),
    (2, "host set h chap.secret=x", "chap.secret_file=FILE"),
    (2, "grant set h:t:a host=x", "create the other grant"),
    (
        2,
        "grant set h:t:a lun_id=16384",
        "write a number from 0 to 16383",
    ),
    (
        2,
        "lun create c --size 10MB",
        "the nearest are 9999872 and 10000384",
    ),
    (3, "scrub start nobody", "error[CWY3001]"),
    (
        2,
        "mirror start a",
        "error[CWY1004]: causeway mirror: not in this version yet",
    ),
    (2, "bench -d5 --foo", "--foo: no such option"),
];

#[test]
fn what_cannot_be_set_is_refused_with_the_reason_and_what_to_do_instead() {
    let place = Place::new("set");
    let daemon = place.start();
    place.run(0, "lun create a --size 1M");
    place.run(0, "lun create b --size 1M");
    place.run(0, "target create t");
    place.run(0, "host create h --iqn *");
    place.run(0, "grant create h a");
    let before = place.run(0, "export");
    for &(code, command, reason) in NOT_SET {
        let output = place.run(code, command);
        assert!(output.contains(reason), "{command}\n{output}");
    }
    assert_eq!(
        place.run(0, "lun set a block_size=512 thin=true pool=default"),
        "nothing to change\n"
    );
    assert_eq!(place.run(0, "export"), before);
    // The size is changed, the name is taken: neither success nor failure.
    let partly = place.run(6, "lun set a size=2M name=b");
    assert!(
        partly.contains("error[CWY5007]: done: change lun a: grow from 1 MiB to 2 MiB; then not: "),
        "{partly}"
    );
    assert_eq!(place.json("lun show a")["size"], 2 << 20);
    daemon.stop();
}

#[test]
fn storage_that_cannot_be_had_is_named_by_line_and_undoes_the_whole_file() {
    let place = Place::new("undo");
    let daemon = place.start();
    place.write(
        "objects.toml",
        "[[lun]]\nname = \"a\"\nsize = \"1M\"\n[[lun]]\nname = \"b\"\nsize = \"1M\"\n\
         backend = { block = \"no-device\" }\n[[target]]\nname = \"t\"\n",
    );
    let output = place.run(1, "apply -f objects.toml");
    let device = place.path("no-device");
    let line = format!(
        "objects.toml:7: lun \"b\", backend: {} does not exist",
        device.display()
    );
    assert!(output.contains(&line), "{output}");
    assert!(
        output.contains("help: name a block device that is there"),
        "{output}"
    );
    for noun in ["lun", "target"] {
        assert_eq!(place.json(&format!("{noun} ls")), json!([]));
    }
    assert_eq!(place.left_of_luns(), [""; 0], "files in the pool");
    place.write("objects.toml", "[[lun]]\nname = \"a\"\nsize = \"1M\"\n");
    place.run(0, "apply -f objects.toml");
    place.write(
        "objects.toml",
        "[[lun]]\nname = \"a\"\nsize = \"1M\"\nblock_size = 4096\n",
    );
    let output = place.run(5, "apply -f objects.toml");
    assert!(
        output.contains("objects.toml:4: lun \"a\", block_size: it is 512 and cannot become 4096"),
        "{output}"
    );
    daemon.stop();
}

#[test]
fn a_lun_is_made_volatile_only_with_yes_and_counted_as_one() {
    const RISK: &str = "not flushed are lost when power or kernel fail";
    let place = Place::new("volatile");
    let daemon = place.start();
    let volatile = |count: usize| {
        let wanted = format!("\ncauseway_luns_volatile {count}\n");
        let metrics = place.metrics();
        assert!(metrics.contains(&wanted), "{wanted}{metrics}");
    };
    place.write(
        "objects.toml",
        "[[lun]]\nname = \"b\"\nsize = \"1M\"\ncache = \"volatile\"\n",
    );
    let requests = [
        "lun create a --size 1M --cache volatile",
        "share create c --size 1M --for iqn.1998-01.com.vmware:esx01 --cache volatile",
        "apply -f objects.toml",
    ];
    for request in requests {
        let output = place.run(5, request);
        assert!(output.contains("error[CWY3009]"), "{output}");
        assert!(output.contains(RISK), "{output}");
        let output = place.run(0, &format!("{request} --dry-run"));
        assert!(
            output.contains("without --yes it would be refused"),
            "{output}"
        );
    }
    assert_eq!(place.json("lun ls"), json!([]), "nothing was made");
    volatile(0);
    for (made, request) in requests.iter().enumerate() {
        let output = place.run(0, &format!("{request} --yes"));
        assert!(output.contains(RISK), "{output}");
        volatile(made + 1);
    }
    let notes = place.json("status")["notes"].to_string();
    assert!(notes.contains(RISK), "{notes}");
    place.run(0, "lun set a cache=write-through");
    volatile(2);
    // Nobody chose: without a journal there is no other way that is as fast, and hosts see WCE.
    place.run(0, "lun create d --size 1M");
    assert_eq!(place.json("lun show d")["cache"], "volatile");
    volatile(3);
    daemon.stop();
}

#[test]
fn a_redirect_to_the_own_portal_is_refused() {
    let place = Place::new("circle");
    let daemon = place.start();
    let portal = served(&place);
    let output = place.run(2, &format!("target set t1 redirect={portal}"));
    assert!(
        output.contains("initiators would be sent round in circles"),
        "{output}"
    );
    place.write(
        "circle.toml",
        &format!("[[target]]\nname = \"t1\"\nredirect = {{ to = \"{portal}\" }}\n"),
    );
    let output = place.run(2, "apply -f circle.toml");
    assert!(
        output.contains("circle.toml:3: target \"t1\", redirect.to: "),
        "{output}"
    );
    assert_eq!(login(&portal).status, 0);
    daemon.stop();
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a host measures how long it may stay"
)]
fn a_session_that_stays_in_a_maintenance_is_ended_after_its_grace() {
    let place = Place::new("grace");
    let daemon = place.start();
    let portal = served(&place);
    place.run(0, "target set t1 maintenance_grace_seconds=2");
    let mut session = login(&portal);
    assert_eq!(session.status, 0);
    let begun = Instant::now();
    let output = place.run(0, "target set t1 maintenance=true --yes");
    assert!(output.contains("ended after 2 seconds"), "{output}");
    let (message, _) = read_pdu(&mut session.stream);
    assert_eq!(message[0] & 0x3f, 0x32, "an Asynchronous Message");
    assert_eq!(
        message[42..44],
        [0, 2],
        "Parameter3: the seconds to log out"
    );
    assert_eq!(
        place.json("session ls").as_array().unwrap().len(),
        1,
        "it may still log out"
    );
    let mut rest = Vec::new();
    // The end may be shown by a closed or by a reset connection.
    let _ = session.stream.read_to_end(&mut rest);
    let stayed = begun.elapsed();
    assert!(
        (Duration::from_millis(1900)..Duration::from_secs(15)).contains(&stayed),
        "{stayed:?}"
    );
    assert_eq!(place.json("session ls"), json!([]));
    let exported = place.run(0, "export");
    assert!(
        exported.contains("maintenance = true\nmaintenance_grace_seconds = 2\n"),
        "{exported}"
    );
    let log = daemon.stop();
    assert!(
        log.contains("its target is in maintenance and it did not log out"),
        "{log}"
    );
}

/// Ends a client that would try for ever.
struct Client(std::process::Child);

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn both_signals_end_the_daemon_in_order_while_a_client_writes() {
    for signal in [Signal::TERM, Signal::INT] {
        let place = Place::new(&format!("signal-{}", signal.as_raw()));
        let daemon = place.start();
        let portal = served(&place);
        place.run(0, "host set esx01 iqn=*");
        let url = format!("iscsi://{portal}/{TARGET}/0");
        let bench = [
            "bench",
            "-w",
            "-c",
            "100000000",
            "-d",
            "8",
            "-f",
            "raw",
            &url,
        ];
        let client = std::process::Command::new("qemu-img")
            .args(bench)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn();
        let client = Client(client.expect("qemu-img of qemu-utils is installed"));
        let written = || {
            place.json("session ls")[0]["bytes_in"]
                .as_u64()
                .unwrap_or(0)
        };
        assert!((0..1000).any(|_| written() > 0), "the client writes");
        let log = daemon.stop_by(signal);
        for line in [
            "stopping: what is in flight is answered first",
            "session ended",
            "INFO stopped",
        ] {
            assert!(log.contains(line), "{signal:?}: {line}\n{log}");
        }
        assert!(!place.path("data/api.sock").exists());
        drop(client);
        let daemon = place.start();
        assert_eq!(place.json("lun show vm01")["state"], "online");
        daemon.stop();
    }
}

#[test]
fn an_interface_that_is_not_there_is_reported_and_awaited() {
    let place = Place::new("iface");
    let text = node_toml(&place);
    place.write(
        "node.toml",
        &text.replace("ip = \"127.0.0.1\"", "iface = \"cw-none\""),
    );
    let daemon = place.start();
    let status = place.json("status");
    assert_eq!(status["health"], "degraded");
    // A machine with little space left has another problem beside this one.
    let problems = status["problems"].as_array().unwrap();
    let reported = "portal group default: interface cw-none has no address";
    assert!(
        problems
            .iter()
            .any(|problem| problem.as_str().unwrap().starts_with(reported)),
        "{problems:?}"
    );
    daemon.stop();
}

#[test]
fn status_names_places_as_any_directory_can_use_them() {
    let place = Place::new("absolute");
    let daemon = place.start();
    let status = place.json("status");
    let api = status["api"][0].as_str().unwrap().to_owned();
    assert_eq!(api, place.api());
    let pool = place.path("data/pool").display().to_string();
    assert_eq!(status["pools"][0]["path"], pool);
    assert!(
        place
            .metrics()
            .contains("causeway_pool_online{pool=\"default\"} 1")
    );
    daemon.stop();
}

#[test]
fn one_target_is_exported_and_brought_back_alone() {
    let place = Place::new("only");
    let daemon = place.start();
    for command in [
        "lun create a --size 16M",
        "lun create b --size 16M",
        "target create t1",
        "target create t2",
        "host create h --iqn iqn.2026-11.org.example:h",
        "grant create h a --target t1",
        "grant create h b --target t2",
    ] {
        place.run(0, command);
    }
    let saved = place.run(0, "export --only target=t1");
    assert!(
        saved.contains("name = \"a\"") && !saved.contains("\"b\""),
        "{saved}"
    );
    place.write("t1.toml", &saved);
    place.write("all.toml", &place.run(0, "export"));
    place.run(0, "target delete t1 --yes");
    place.run(0, "lun set b cache=write-through --yes");
    place.run(0, "grant delete h:t2:b --yes");
    // The whole file would change LUN b and bring its grant back.
    let done = place.run(0, "apply -f all.toml --only target=t1");
    assert!(
        done.contains("create target t1") && done.contains("create grant h:t1:a"),
        "{done}"
    );
    assert!(
        !done.contains("lun b") && !done.contains("h:t2:b"),
        "{done}"
    );
    let done = place.run(0, "apply -f t1.toml");
    assert!(
        done.contains("nothing to do") || !done.contains("create"),
        "{done}"
    );
    place.run(2, "apply -f all.toml --only targets=t1");
    place.run(3, "apply -f t1.toml --only target=t2");
    place.run(3, "export --only lun=c");
    let plan = place.run(0, "apply -f t1.toml --only target=t2 --prune --dry-run");
    assert!(plan.contains("remove target t2"), "{plan}");
    drop(daemon);
}
