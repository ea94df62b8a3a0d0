//! `node drain`: what a node owns is given to the other one before its maintenance.

use crate::mirror::{Load, Pair};
use crate::place::text_of;
use serde_json::{Value, json};

/// A takeover takes 3 s at least.
const STALL_MS_MAX: f64 = 2_500.0;

/// What `node drain` on the node `at` answers with this exit code.
pub(super) fn drain(pair: &Pair, at: usize, code: i32, options: &str) -> Value {
    let words = format!("node drain {options}-o json");
    let words: Vec<&str> = words.split(' ').collect();
    let place = &pair.places[at];
    let output = place.run_with(&place.api(), &words, "");
    text_of(&output, code, &words.join(" "));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The one LUN that stays, and why.
fn stays(answer: &Value, naa: &Value) -> String {
    let lun = &answer["luns"][0];
    assert_eq!((&lun["name"], &lun["naa"]), (&json!("vm01"), naa));
    assert!(lun["to"].is_null(), "{answer}");
    lun["stays"].as_str().unwrap().to_owned()
}

#[test]
fn a_node_is_drained_before_its_maintenance_and_what_stays_is_said_with_its_reason() {
    let Some(mut pair) = Pair::start("drain") else {
        return;
    };
    assert_eq!(drain(&pair, 0, 0, ""), json!({ "luns": [] }));
    pair.with_lun();
    pair.comes_to(1, "replica");
    let owner = pair.comes_to(0, "owner");
    pair.writes(0, 0x11);
    let naa = pair.places[0].json("lun show vm01")["naa"].clone();
    let given = json!({ "luns": [{ "name": "vm01", "naa": naa, "to": "san-b" }] });
    // Nothing is done where it is only asked.
    assert_eq!(drain(&pair, 0, 0, "--dry-run "), given);
    assert_eq!(pair.mirror(0), owner);
    assert_eq!(drain(&pair, 1, 0, "--dry-run "), json!({ "luns": [] }));
    let other = pair.places[0].run(3, "node drain san-b");
    assert!(other.contains("the node that answers is san-a"), "{other}");
    assert_eq!(pair.mirror(0), owner);
    assert_eq!(drain(&pair, 0, 0, "san-a "), given);
    let after = pair.comes_to(1, "owner");
    let epoch = |mirror: &Value| mirror["epoch"].as_u64().unwrap();
    assert_eq!(epoch(&after), epoch(&owner) + 1, "it was given once");
    assert_eq!(after["in_sync"], json!(["san-a", "san-b"]));
    pair.comes_to(0, "replica");
    pair.has(1, 0x11);
    pair.writes(1, 0x22);
    let none = pair.places[0].run(0, "node drain");
    assert_eq!(none, "san-a owns no LUN with copies: nothing to do\n");
    // In words, and back.
    let named = pair.places[1].run(0, "node drain --dry-run -o name");
    assert_eq!(named, "vm01\n");
    let table = pair.places[1].run(0, "node drain --columns lun,now_on");
    assert!(table.contains("vm01  san-a"), "{table}");
    pair.comes_to(0, "owner");
    pair.has(0, 0x22);
    let changes = pair.places[0].json("audit ls");
    let drains = changes.as_array().unwrap().iter();
    let drains: Vec<&Value> = drains
        .filter(|it| it["object"]["name"] == "drain")
        .collect();
    // The first one, the one that gave it, and the one after that: no dry run.
    assert_eq!(drains.len(), 3, "{changes}");
    assert!(drains.iter().any(|it| it["after"] == given), "{drains:?}");
    // The other node has just died: nobody takes it, hosts go on here.
    pair.kill(1);
    stays(&drain(&pair, 0, 6, ""), &naa);
    pair.comes_to(0, "solo");
    let why = "no other node has all of it: san-b is behind";
    assert_eq!(stays(&drain(&pair, 0, 6, ""), &naa), why);
    assert_eq!(stays(&drain(&pair, 0, 6, "--dry-run "), &naa), why);
    let said = pair.places[0].run(6, "node drain");
    for words in ["san-a still owns vm01", "error[CWY5007]", why] {
        assert!(said.contains(words), "{words}: {said}");
    }
    pair.has(0, 0x22);
    pair.writes(0, 0x33);
}

#[test]
fn a_host_with_a_path_to_each_node_sees_no_error_while_they_are_drained_in_turn() {
    let Some(pair) = Pair::start("drains") else {
        return;
    };
    pair.with_lun();
    pair.comes_to(1, "replica");
    let load = Load::begin(&pair, 200);
    for round in 0..4 {
        let (owner, other) = (round % 2, 1 - round % 2);
        pair.comes_to(owner, "owner");
        let answer = drain(&pair, owner, 0, "");
        assert!(answer["luns"][0]["to"].is_string(), "{answer}");
        pair.comes_to(other, "owner");
        pair.comes_to(owner, "replica");
    }
    let result = load.end();
    for none in ["errors", "never_returned"] {
        assert_eq!(result[none], 0, "{result}");
    }
    assert_eq!(result["verify"]["bad"], 0, "{result}");
    assert!(result["verify"]["checked"].as_u64() > Some(0), "{result}");
    // It would be as long as a takeover where a node has to be found out by its silence.
    let stall = result["stall_ms_max"].as_f64().unwrap();
    println!("4 drains: the longest stall {stall} ms");
    assert!(stall < STALL_MS_MAX, "{result}");
}
