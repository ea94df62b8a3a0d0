//! `causeway config`: what is in force, what the file says by now, whether a start would take it.

use crate::place::Place;

#[test]
fn what_is_in_force_and_what_the_file_says_by_now_are_distinguished() {
    let place = Place::new("config");
    let before = std::fs::read_to_string(place.path("node.toml")).unwrap();
    // Without a daemon only the file can be read.
    let page = place.run(0, "config check -c node.toml");
    assert!(page.contains("node.toml: no mistakes, "), "{page}");
    place.run(7, "config diff");
    let daemon = place.start();
    let shown = place.run(0, "config show");
    let line = shown.lines().find(|line| line.starts_with("pool[0].path"));
    assert_eq!(
        line.map(|line| line.split_whitespace().collect::<Vec<_>>()),
        Some(vec!["pool[0].path", "\"data/pool\"", "line", "11"])
    );
    assert!(!shown.contains("coalesce_us"), "{shown}");
    let all = place.run(0, "config show --all");
    assert!(all.contains("runtime.coalesce_us"), "{all}");
    let diff = place.run(0, "config diff");
    assert!(diff.contains("is in force"), "{diff}");

    place.write(
        "node.toml",
        &before.replace("cores = [0]", "cores = \"auto\""),
    );
    let diff = place.run(0, "config diff");
    let wanted = "runtime.cores: [0] in force, \"auto\" in the file [restart]";
    assert!(
        diff.contains(wanted) && diff.contains("ends 0 sessions"),
        "{diff}"
    );
    let json = place.json("config diff");
    assert_eq!(json["changes"][0]["takes_effect"], "restart");

    // A mistake is named with its line, by the check and by the daemon, which runs on.
    place.write("node.toml", &before.replace("cores = [0]", "colour = 1"));
    for command in ["config check -c node.toml", "config diff"] {
        let output = place.run_with(&place.api(), &command.split(' ').collect::<Vec<_>>(), "");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        assert!(
            said.contains("node.toml:15: runtime.colour"),
            "{command}: {said}"
        );
    }
    place.run(0, "lun ls");
    drop(daemon);
}
