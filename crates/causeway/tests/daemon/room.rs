//! What room there is for what LUNs were promised, where several pools or a whole device are
//! concerned.

use crate::place::Place;
use serde_json::json;

fn notes(place: &Place) -> String {
    place.json("status")["notes"].to_string()
}

#[test]
fn pools_on_one_file_system_count_its_room_once() {
    let place = Place::new("one-file-system");
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let more = "[[pool]]\nname = \"fast\"\npath = \"data/fast\"\n[api]";
    place.write("node.toml", &config.replace("[api]", more));
    let daemon = place.start();
    let free = place.json("pool show default")["available"]
        .as_u64()
        .unwrap();
    // Each fits alone, by far, and both together do not.
    let size = (free / 10 * 7) >> 20 << 20;
    let output = place.run(0, &format!("lun create a --size {size}"));
    assert!(!output.contains("have no room"), "{output}");
    assert!(!notes(&place).contains("have no room"), "{}", notes(&place));
    let create = format!("lun create b --pool fast --size {size}");
    for command in [format!("{create} --dry-run"), create] {
        let output = place.run(0, &command);
        let shared = "are free, together with pool default on the same file system";
        assert!(output.contains("have no room"), "{command}: {output}");
        assert!(output.contains(shared), "{command}: {output}");
    }
    for (pool, other) in [("default", "fast"), ("fast", "default")] {
        let shown = place.json(&format!("pool show {pool}"));
        assert_eq!(shown["shares_with"], json!([other]), "{shown}");
        let page = place.run(0, &format!("pool show {pool}"));
        assert!(page.contains(&format!("this one and {other}")), "{page}");
        let over = shown["overcommitted_bytes"].as_u64().unwrap();
        assert!(over > 0 && over < size, "{shown}");
        let wanted = format!("pool {pool}: its LUNs have");
        assert!(notes(&place).contains(&wanted), "{}", notes(&place));
    }
    place.run(0, "lun delete b");
    place.run(0, "lun purge b --yes");
    assert!(!notes(&place).contains("have no room"), "{}", notes(&place));
    daemon.stop();
}

#[test]
fn a_pool_of_members_without_room_says_so_and_is_no_problem_of_its_luns() {
    let place = Place::new("full-members");
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let members = "members = [\"m0\"]\nlayout = \"span\"";
    place.write(
        "node.toml",
        &config.replace("path = \"data/pool\"", members),
    );
    let file = std::fs::File::create(place.path("m0")).unwrap();
    file.set_len(128 << 20).unwrap();
    let daemon = place.start();
    let shown = || place.json("pool show default");
    assert_eq!(shown()["state"], "ok");
    let free = || shown()["available"].as_u64().unwrap();
    let leave = |bytes: u64| free() - bytes;
    place.run(0, &format!("lun create a --size {}", leave(8 << 20)));
    assert_eq!(shown()["state"], "low");
    assert!(
        notes(&place).contains("pool default is nearly full (8 MiB free)"),
        "{}",
        notes(&place)
    );
    place.run(0, &format!("lun create b --size {}", leave(0)));
    assert_eq!(shown()["state"], "full");
    let status = place.json("status");
    assert_eq!(status["pools"][0]["state"], "full");
    assert_eq!(status["health"], "ok", "{status}");
    assert!(
        notes(&place).contains("pool default is full (0 B free): its LUNs have all"),
        "{}",
        notes(&place)
    );
    place.run(0, "lun delete b");
    place.run(0, "lun purge b --yes");
    place.run(0, "lun delete a");
    place.run(0, "lun purge a --yes");
    assert_eq!(
        (&shown()["state"], notes(&place)),
        (&json!("ok"), "null".to_owned())
    );
    daemon.stop();
}
