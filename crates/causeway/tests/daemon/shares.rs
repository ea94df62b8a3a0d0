//! LUNs of a pool that compete: what each gets, by the shares that it has.

use crate::journal::objects;
use crate::place::{Daemon, Place, text_of};

const GOLD: &str = "size = \"16MiB\"\ncache = \"write-through\"\nshares = 400";

/// Beside the LUN that other tests have as their only one.
const IRON: &str = r#"
[[lun]]
name = "iron"
size = "16MiB"
cache = "write-through"
[[grant]]
host = "all"
lun = "iron"
target = "t1"
lun_id = 1
"#;

/// On a disk whose flushes take a millisecond, one after the other.
fn started() -> (Place, Daemon) {
    let place = Place::new("shares");
    let good = std::fs::read_to_string(place.path("node.toml")).unwrap();
    place.write(
        "node.toml",
        &format!("{good}[testing]\nfiles = \"slow-flush\"\n"),
    );
    place.write("objects.toml", &format!("{}{IRON}", objects(GOLD)));
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    (place, daemon)
}

/// Writes that were acknowledged on each of the two in the same three seconds.
fn compete(place: &Place) -> [f64; 2] {
    let portal = place.json("target show t1")["portals"][0].clone();
    let portal = portal.as_str().unwrap();
    let url = format!("iscsi://{portal}/iqn.2026-11.io.causeway:t1");
    let words = format!("bench -b4K -r -w100 -o64 -d3 -W1 --destroy -R json {url}/0 {url}/1");
    let words: Vec<&str> = words.split(' ').collect();
    let output = text_of(&place.run_with("", &words, ""), 0, "bench");
    let report: serde_json::Value = serde_json::from_str(&output).unwrap();
    // Each has a session of its own.
    [0, 1].map(|at| report["paths"][at]["ios"].as_f64().unwrap())
}

#[test]
fn luns_that_compete_get_their_shares_and_who_has_none_counts_as_a_hundred() {
    let (place, daemon) = started();
    let [gold, iron] = compete(&place);
    assert!(gold > 2.5 * iron, "{gold} {iron}");
    let shown = place.run(0, "lun show iron");
    assert!(shown.contains("operations had to wait"), "{shown}");
    assert_eq!(place.json("lun show vm01")["shares"], 400);
    let metrics = place.metrics();
    assert!(
        metrics.contains("causeway_lun_shares_deferred_total{lun=\"iron\"} "),
        "{metrics}"
    );
    let export = place.run(0, "export");
    assert!(export.contains("shares = 400"), "{export}");
    // Live, and the other way round.
    place.run(0, "lun set iron shares=1600");
    let [gold, iron] = compete(&place);
    assert!(iron > 2.5 * gold, "{gold} {iron}");
    place.run(0, "lun set vm01 shares=none");
    place.run(0, "lun set iron shares=none");
    let [gold, iron] = compete(&place);
    assert!(gold < 2.0 * iron && iron < 2.0 * gold, "{gold} {iron}");
    assert!(place.json("lun show vm01")["shares"].is_null());
    let refused = place.run(2, "lun set iron shares=10001");
    assert!(refused.contains("10001 is outside 1 to 10000"), "{refused}");
    let refused = place.run(2, "lun create m --size 1M --backend memory --shares 5");
    assert!(refused.contains("no pool holds this one"), "{refused}");
    daemon.stop();
}
