//! `lun mirror`: copies are removed and added while hosts work.

use crate::mirror::{Pair, until};
use crate::place::text_of;
use serde_json::{Value, json};
use std::process::{Child, Stdio};

impl Pair {
    /// What a command about copies says on a node, with this exit code.
    fn mirrors(&self, at: usize, code: i32, command: &str) -> String {
        let words = format!("lun mirror {command}");
        let words: Vec<&str> = words.split(' ').collect();
        let place = &self.places[at];
        let output = place.run_with(&place.api(), &words, "");
        text_of(&output, code, &words.join(" "))
    }

    /// A host that writes, and may have to wait.
    fn begins_to_write(&self, at: usize, byte: u8) -> Child {
        let all: Vec<String> = (0..16)
            .map(|it| format!("write -P {byte} {}k 64k", it * 256))
            .collect();
        let mut command = self.host_begins(at, &all);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
        quiet.spawn().unwrap()
    }

    fn copies(&self, at: usize) -> Value {
        self.places[at].json("lun show vm01")["copies"].clone()
    }

    fn removed(&self, at: usize) -> String {
        self.places[at].run(0, "lun ls --removed --columns name,state")
    }
}

#[test]
fn a_copy_is_removed_and_another_one_added_while_hosts_go_on() {
    let Some(mut pair) = Pair::start("copies") else {
        return;
    };
    pair.with_lun();
    pair.comes_to(1, "replica");
    pair.comes_to(0, "owner");
    pair.writes(0, 0x11);
    // Nothing is done where it is only asked.
    let would = pair.mirrors(0, 0, "remove vm01 san-b --dry-run");
    assert!(would.contains("would have copies on san-a\n"), "{would}");
    pair.mirrors(0, 0, "add vm01 san-b");
    let third = pair.mirrors(0, 2, "add vm01 san-c");
    assert!(third.contains("no node \"san-c\""), "{third}");
    // The other node is asked: any node will do.
    let done = pair.mirrors(1, 0, "remove vm01 san-b");
    assert!(done.contains("set aside there"), "{done}");
    let alone = pair.comes_to(0, "solo");
    assert_eq!(alone["copies"], json!(["san-a"]));
    assert_eq!(
        alone["text"],
        "served here; the copy of san-a is the only one"
    );
    until("the copy is set aside", || pair.removed(1).contains("vm01"));
    until("the first node knows", || {
        pair.copies(0) == json!(["san-a"])
    });
    pair.writes(0, 0x22);
    let last = pair.mirrors(0, 5, "remove vm01 san-a");
    assert!(last.contains("error[CWY8010]"), "{last}");
    // What was set aside does not serve, and does not come back.
    let back = pair.places[1].run(2, "lun restore vm01");
    assert!(back.contains("this node, \"san-b\""), "{back}");
    // It is in the way until somebody gives it up.
    pair.mirrors(0, 0, "add vm01 san-b");
    until("the record has it", || {
        pair.mirror(0)["copies"] == json!(["san-a", "san-b"])
    });
    pair.writes(0, 0x33);
    pair.places[1].run(0, "lun purge vm01 --yes");
    until("the copy is made", || {
        pair.places[1].json("lun ls").to_string().contains("vm01")
    });
    pair.comes_to(1, "replica");
    let both = pair.comes_to(0, "owner");
    assert_eq!(both["in_sync"], json!(["san-a", "san-b"]));
    until("both nodes know", || {
        let both = json!(["san-a", "san-b"]);
        pair.copies(0) == both && pair.copies(1) == both
    });
    pair.places[1].run(0, "grant create any vm01");
    pair.kill(0);
    pair.comes_to(1, "solo");
    pair.has(1, 0x33);
    // The old owner is removed while it is away, and learns it when it is back.
    pair.mirrors(1, 0, "remove vm01 san-a");
    pair.begin(0);
    until("the copy is set aside", || pair.removed(0).contains("vm01"));
    pair.has(1, 0x33);
}

#[test]
fn a_node_goes_on_by_force_where_all_that_had_everything_are_gone() {
    let Some(mut pair) = Pair::start("promote") else {
        return;
    };
    pair.with_lun();
    pair.comes_to(1, "replica");
    pair.comes_to(0, "owner");
    pair.writes(0, 0x11);
    let needless = pair.mirrors(1, 5, "promote vm01 --lose");
    assert!(needless.contains("takes it over by itself"), "{needless}");
    // The second node misses what is written, and then the first one is lost.
    pair.kill(1);
    pair.comes_to(0, "solo");
    pair.writes(0, 0x22);
    pair.kill(0);
    pair.begin(1);
    until("the copy works", || {
        pair.mirror(1)["epoch"].as_u64() > Some(0)
    });
    until("it is asked for --lose", || {
        let words = ["lun", "mirror", "promote", "vm01"];
        let place = &pair.places[1];
        let output = place.run_with(&place.api(), &words, "");
        let said = text_of(&output, 5, "lun mirror promote");
        said.contains("since san-b was last in sync") && said.contains("--lose")
    });
    let before = pair.mirror(1);
    let would = pair.mirrors(1, 0, "promote vm01 --lose --dry-run");
    assert!(would.contains("it went to san-a alone"), "{would}");
    assert_eq!(pair.mirror(1)["epoch"], before["epoch"]);
    let done = pair.mirrors(1, 0, "promote vm01 --lose");
    assert!(
        done.contains("LUN vm01 has copies on san-b\nlost: all that"),
        "{done}"
    );
    let alone = pair.comes_to(1, "solo");
    assert_eq!(
        (&alone["copies"], &alone["in_sync"]),
        (&json!(["san-b"]), &json!(["san-b"]))
    );
    assert!(alone["epoch"].as_u64() > before["epoch"].as_u64());
    pair.has(1, 0x11);
    pair.writes(1, 0x33);
    // The old owner is back: what it has is set aside, and nobody is served with it.
    pair.begin(0);
    until("it is set aside", || pair.removed(0).contains("vm01"));
    assert_eq!(pair.places[0].json("lun ls"), json!([]));
    pair.has(1, 0x33);
    let audited = pair.places[1].json("audit ls").to_string();
    assert!(
        audited.contains("\"loses\":\"all that hosts wrote"),
        "{audited}"
    );
}

#[test]
fn with_two_copies_for_each_write_writes_wait_and_reads_go_on() {
    let Some(mut pair) = Pair::start("min-copies") else {
        return;
    };
    pair.with_lun();
    pair.comes_to(1, "replica");
    pair.comes_to(0, "owner");
    pair.writes(0, 0x11);
    // Said on one node, it holds on both.
    pair.places[1].run(0, "lun set vm01 min_copies=2");
    until("both nodes know", || {
        let least = |at: usize| pair.places[at].json("lun show vm01")["min_copies"] == 2;
        least(0) && least(1)
    });
    let fewer = pair.mirrors(0, 5, "remove vm01 san-b");
    assert!(fewer.contains("min_copies=1"), "{fewer}");
    pair.writes(0, 0x22);
    pair.kill(1);
    let alone = pair.comes_to(0, "solo");
    assert_eq!(
        alone["text"],
        "served here; san-a has all of it alone, san-b is behind: writes wait for it"
    );
    pair.has(0, 0x22);
    assert_eq!(pair.mirror(0)["serves"], true);
    let waiting = pair.begins_to_write(0, 0x33);
    pair.has(0, 0x22);
    pair.begin(1);
    assert!(waiting.wait_with_output().unwrap().status.success());
    pair.has(0, 0x33);
    // One node that takes over alone waits as well, until somebody says that one is enough.
    pair.comes_to(0, "owner");
    pair.kill(0);
    pair.comes_to(1, "solo");
    pair.has(1, 0x33);
    let waiting = pair.begins_to_write(1, 0x44);
    pair.places[1].run(0, "lun set vm01 min_copies=1");
    assert!(waiting.wait_with_output().unwrap().status.success());
    pair.has(1, 0x44);
}

#[test]
fn what_a_lun_is_changes_on_both_nodes_and_a_node_that_was_away_follows() {
    let Some(mut pair) = Pair::start("shared") else {
        return;
    };
    pair.with_lun();
    pair.comes_to(1, "replica");
    pair.comes_to(0, "owner");
    pair.writes(0, 0x11);
    let of = |pair: &Pair, at: usize, what: &str| -> Vec<Value> {
        let luns = pair.places[at].json("lun ls");
        let all = luns.as_array().unwrap().iter();
        all.map(|it| it[what].clone()).collect()
    };
    let both = |pair: &Pair, what: &str, wanted: Value| {
        until(&format!("{what} is {wanted} on both nodes"), || {
            [0, 1]
                .iter()
                .all(|at| of(pair, *at, what) == [wanted.clone()])
        });
    };
    // Larger, on the owner and on the other node.
    for (at, size, bytes) in [(0, "96M", 96 << 20), (1, "128M", 128 << 20)] {
        pair.places[at].run(0, &format!("lun resize vm01 --size {size}"));
        until("hosts may write there", || {
            of(&pair, 0, "size") == [json!(bytes)] && of(&pair, 1, "size") == [json!(bytes)]
        });
        let last = (bytes >> 20) - 1;
        let said = pair.host(0, &[format!("write -P 119 {last}M 1M")]);
        assert!(said.contains("wrote 1048576/1048576"), "{said}");
    }
    let smaller = pair.places[0].run(5, "lun resize vm01 --size 64M --force");
    assert!(smaller.contains("does not shrink"), "{smaller}");
    // Another name, while the other node is away.
    pair.kill(1);
    pair.comes_to(0, "solo");
    pair.places[0].run(0, "lun rename vm01 db01");
    pair.places[0].run(0, "lun resize db01 --size 160M");
    pair.begin(1);
    both(&pair, "name", json!("db01"));
    both(&pair, "size", json!(160 << 20));
    until("it is in sync", || {
        pair.places[0].json("lun show db01")["mirror"]["state"] == "owner"
    });
    let said = pair.host(0, &["write -P 120 159M 1M".to_owned()]);
    assert!(said.contains("wrote 1048576/1048576"), "{said}");
    pair.kill(0);
    until("the other one serves", || {
        pair.places[1].json("lun show db01")["mirror"]["state"] == "solo"
    });
    for (mib, byte) in [(95, 119), (127, 119), (159, 120)] {
        let said = pair.host(1, &[format!("read -P {byte} {mib}M 1M")]);
        assert!(
            said.contains("read 1048576/1048576") && !said.contains("failed"),
            "{said}"
        );
    }
    pair.begin(0);
    until("it is in sync", || {
        pair.places[1].json("lun show db01")["mirror"]["state"] == "owner"
    });
    goes_and_comes_back(&pair);
}

/// A LUN goes out of service and comes back, and is gone for good, from either node.
fn goes_and_comes_back(pair: &Pair) {
    pair.places[0].run(0, "lun delete db01 --force");
    until("it is out of service", || {
        pair.places[1].json("lun ls") == json!([])
    });
    pair.places[1].run(0, "lun restore db01");
    until("it is back on both nodes", || {
        let is_there = |at: usize| pair.places[at].json("lun ls")[0]["name"] == "db01";
        is_there(0) && is_there(1)
    });
    until("somebody serves it", || {
        [0, 1]
            .iter()
            .any(|at| pair.places[*at].json("lun show db01")["mirror"]["serves"] == true)
    });
    pair.places[1].run(0, "lun delete db01 --force");
    until("it is out of service", || {
        pair.places[0].json("lun ls") == json!([])
    });
    pair.places[0].run(0, "lun purge db01 --yes");
    for at in [0, 1] {
        until("it is gone", || !pair.removed(at).contains("db01"));
    }
}

#[test]
fn without_etcd_what_nodes_have_in_common_is_not_changed_and_hosts_go_on() {
    let Some(mut pair) = Pair::start("shared-away") else {
        return;
    };
    pair.with_lun();
    pair.comes_to(1, "replica");
    pair.comes_to(0, "owner");
    pair.etcd.kill();
    for words in [
        "lun rename vm01 x",
        "lun resize vm01 --size 96M",
        "lun mirror remove vm01 san-b",
    ] {
        let said = pair.places[0].run(1, words);
        assert!(said.contains("error[CWY8007]"), "{words}: {said}");
    }
    pair.places[0].run(0, "lun set vm01 shares=7");
    pair.writes(0, 0x55);
    pair.has(0, 0x55);
}
