use super::*;

const GOOD: &str = r#"
schema = 1
[node]
name = "san-a"
state_dir = "data"
[[portal_group]]
name = "default"
tag = 1
listen = [ { ip = "127.0.0.1", port = 3260 }, { iface = "eth1" }, { ip = "::1", port = 3261 } ]
[[pool]]
name = "default"
path = "data/pool"
[api]
listen = ["unix:data/api.sock", "127.0.0.1:8480"]
[runtime]
cores = "auto"
driver = "auto"
"#;

fn mistakes(text: &str) -> Vec<String> {
    parse(Path::new("/etc/causeway/node.toml"), text)
        .unwrap_err()
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn only_mistake(text: &str) -> String {
    let all = mistakes(text);
    assert_eq!(all.len(), 1, "{all:#?}");
    all[0].replace("/etc/causeway/", "")
}

#[test]
fn the_promised_example_is_read_and_paths_resolve_against_the_file() {
    let config = parse(Path::new("/etc/causeway/node.toml"), GOOD).unwrap();
    assert_eq!(config.node_name, "san-a");
    assert_eq!(config.state_dir, Path::new("/etc/causeway/data"));
    assert_eq!(
        config.pools[0].place.paths()[0],
        Path::new("/etc/causeway/data/pool")
    );
    let shown: Vec<String> = config.api.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        ["unix:/etc/causeway/data/api.sock", "http://127.0.0.1:8480"]
    );
    let listens: Vec<String> = config.portal_groups[0]
        .listen
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(listens, ["127.0.0.1:3260", "eth1:3260", "[::1]:3261"]);
    assert_eq!(config.cores, Cores::Auto);
    assert_eq!(config.driver, Driver::Auto);
    assert_eq!(config.store, Store::Ordinary);
    assert_eq!(
        config.place("pool[0].path"),
        "/etc/causeway/node.toml:12: pool[0].path"
    );
    assert_eq!(
        config.place("api.listen"),
        "/etc/causeway/node.toml:14: api.listen"
    );
    assert_eq!(
        config.place("runtime.driver"),
        "/etc/causeway/node.toml:17: runtime.driver"
    );
}

/// What is commented out are keys and sections in the way of TOML; the rest of the comments are
/// sentences.
fn with_what_is_commented_out(text: &str) -> String {
    let line = |line: &str| {
        let rest = line.strip_prefix("# ").filter(|rest| {
            let word = rest.split(' ').next().unwrap_or_default();
            word.starts_with('[') || rest[word.len()..].starts_with(" = ")
        });
        rest.unwrap_or(line).to_owned() + "\n"
    };
    text.lines().map(line).collect()
}

#[test]
fn the_delivered_example_is_good_as_it_is_and_with_all_that_is_commented_out() {
    const EXAMPLE: &str = include_str!("../../../../dist/node.toml");
    let path = Path::new("/etc/causeway/node.toml");
    let config = parse(path, EXAMPLE).unwrap();
    assert_eq!((config.pools.len(), config.scrub_every_days), (1, None));
    let config = parse(path, &with_what_is_commented_out(EXAMPLE)).unwrap();
    let journals = config.pools.iter().filter(|pool| pool.journal.is_some());
    assert_eq!((journals.count(), config.pools.len()), (2, 2));
    assert_eq!(config.scrub_every_days, Some(30));
    assert_eq!(config.session, SessionTimes::default());
}

#[test]
fn a_history_has_a_bound_that_is_no_history_of_nothing() {
    let config = |text: &str| parse(Path::new("node.toml"), &format!("{GOOD}{text}")).unwrap();
    assert_eq!(config("").history.max_bytes, 1 << 30);
    let small = config("[history]\nmax_bytes = \"64MiB\"\n");
    assert_eq!(small.history.max_bytes, 64 << 20);
    for size in ["1MiB", "65GiB"] {
        let text = format!("{GOOD}[history]\nmax_bytes = \"{size}\"\n");
        let mistake = only_mistake(&text);
        assert!(mistake.contains("history.max_bytes"), "{mistake}");
        assert!(mistake.contains("is outside 16 MiB to 64 GiB"), "{mistake}");
    }
}

#[test]
fn times_of_sessions_are_whole_seconds_within_bounds() {
    let path = Path::new("/etc/causeway/node.toml");
    let of = |text: &str| {
        parse(path, &format!("{GOOD}[session]\n{text}"))
            .unwrap()
            .session
    };
    assert_eq!(of(""), SessionTimes::default());
    let seconds = std::time::Duration::from_secs;
    let set = of(
        "login_seconds = 2\nping_after_seconds = 3\nping_timeout_seconds = 4\ndata_seconds = 5\n",
    );
    let wanted = SessionTimes {
        login: seconds(2),
        ping_after: seconds(3),
        ping_timeout: seconds(4),
        data: seconds(5),
    };
    assert_eq!(set, wanted);
    let reported = only_mistake(&format!("{GOOD}[session]\nlogin_seconds = 0\n"));
    assert!(
        reported.contains("session.login_seconds") && reported.contains("0 is outside 1 to 300"),
        "{reported}"
    );
}

#[test]
fn a_portal_group_may_be_pinned_to_cores() {
    let more = "[[portal_group]]\nname = \"b\"\ntag = 2\nlisten = [ { ip = \"::1\" } ]\ncores = [1, 0]\n[[pool]]";
    let text = GOOD.replace("[[pool]]", more);
    let config = parse(Path::new("/n.toml"), &text).unwrap();
    assert!(config.portal_groups[0].cores.is_empty());
    assert_eq!(config.portal_groups[1].cores, [1, 0]);
    let place = config.place("portal_group[1].cores");
    assert_eq!(place, "/n.toml:14: portal_group[1].cores");
    let wrong =
        |cores: &str| only_mistake(&GOOD.replace("tag = 1", &format!("tag = 1\ncores = {cores}")));
    let place = "node.toml:9: portal_group[0].cores";
    let list = "write a list of cores as `session ls` numbers them, such as [0, 1]";
    assert_eq!(wrong("[\"0\"]"), format!("{place}: {list}"));
    assert_eq!(wrong("[70000]"), format!("{place}: {list}"));
    assert_eq!(wrong("[3, 3]"), format!("{place}: core 3 stands twice"));
    let empty = "an empty list names no core; leave the key out for all";
    assert_eq!(wrong("[]"), format!("{place}: {empty}"));
}

#[test]
fn busy_polling_is_off_and_has_a_limit() {
    let with = |poll: &str| GOOD.replace("driver = \"auto\"", &format!("poll_us = {poll}"));
    let poll_of = |text: &str| parse(Path::new("/n.toml"), text).unwrap().poll_us;
    assert_eq!(poll_of(GOOD), 0);
    assert_eq!(poll_of(&with("50")), 50);
    let mistake = only_mistake(&with("10001"));
    assert!(
        mistake.starts_with("node.toml:17: runtime.poll_us:"),
        "{mistake}"
    );
}

#[test]
fn a_connection_waits_for_several_pdus_unless_that_is_switched_off_and_has_a_limit() {
    let with = |wait: &str| GOOD.replace("driver = \"auto\"", &format!("coalesce_us = {wait}"));
    let wait_of = |text: &str| parse(Path::new("/n.toml"), text).unwrap().coalesce;
    assert_eq!(wait_of(GOOD), Duration::from_micros(150));
    assert_eq!(wait_of(&with("0")), Duration::ZERO);
    assert_eq!(wait_of(&with("40")), Duration::from_micros(40));
    let mistake = only_mistake(&with("1001"));
    assert!(
        mistake.starts_with("node.toml:17: runtime.coalesce_us:"),
        "{mistake}"
    );
}

#[test]
fn a_misspelt_key_is_named_with_file_line_and_the_probable_spelling() {
    let text = GOOD.replace("state_dir", "state_dri");
    let all = mistakes(&text);
    assert_eq!(
        all,
        [
            "/etc/causeway/node.toml:3: node.state_dir: missing; write for example: state_dir = \"data\"",
            "/etc/causeway/node.toml:5: node.state_dri: unknown key, did you mean \"state_dir\"? \
             (known here: name, state_dir)",
        ]
    );
    let text = GOOD.replace("[runtime]", "[runtim]");
    assert!(
        only_mistake(&text)
            .starts_with("node.toml:15: runtim: unknown key, did you mean \"runtime\"?")
    );
}

#[test]
fn every_wrong_value_is_named_by_line_and_key() {
    let cases = [
        (
            "tag = 1",
            "tag = 0",
            "node.toml:8: portal_group[0].tag: 0 is outside 1 to 65535",
        ),
        (
            "tag = 1",
            "tag = \"1\"",
            "node.toml:8: portal_group[0].tag: expected a whole number from 1 to 65535, found a string",
        ),
        (
            "\"127.0.0.1\"",
            "\"127.0.0\"",
            "node.toml:9: portal_group[0].listen[0].ip: \"127.0.0\" is no IPv4 or IPv6 address",
        ),
        (
            "iface = \"eth1\"",
            "iface = \"eth1\", ip = \"::2\"",
            "node.toml:9: portal_group[0].listen[1].iface: write either ip or iface",
        ),
        (
            "{ iface = \"eth1\" }",
            "{ port = 1 }",
            "node.toml:9: portal_group[0].listen[1].ip: missing; write for example: ip = \"127.0.0.1\", or iface = \"eth1\"",
        ),
        (
            "driver = \"auto\"",
            "driver = \"epoll\"",
            "node.toml:17: runtime.driver: \"epoll\" is none of \"auto\", \"uring\", \"poll\"",
        ),
        (
            "cores = \"auto\"",
            "cores = [0, 0]",
            "node.toml:16: runtime.cores: processor 0 stands twice",
        ),
        (
            "cores = \"auto\"",
            "cores = 2",
            "node.toml:16: runtime.cores: write \"auto\", or a list of processor numbers such as [0, 1]",
        ),
        (
            "\"127.0.0.1:8480\"",
            "\"localhost\"",
            "node.toml:14: api.listen: \"localhost\" is no API address: write \"unix:PATH\", \"127.0.0.1:8480\" or \"https://0.0.0.0:8443\"",
        ),
        (
            "schema = 1",
            "schema = 2",
            "node.toml:2: schema: this version reads schema = 1",
        ),
        (
            "name = \"san-a\"",
            "name = \"san a\"",
            "node.toml:4: node.name: \"san a\" cannot be a name: a name has 1 to 63 characters: letters A-Z a-z, digits, and . _ - but not at its start",
        ),
        (
            "port = 3261",
            "port = 65536",
            "node.toml:9: portal_group[0].listen[2].port: 65536 is outside 0 to 65535",
        ),
    ];
    for (from, to, message) in cases {
        assert!(GOOD.contains(from), "{from}");
        assert_eq!(only_mistake(&GOOD.replacen(from, to, 1)), message);
    }
}

#[test]
fn keys_of_later_versions_are_refused_and_said_to_be_so() {
    let text = GOOD.replace("name = \"san-a\"", "name = \"san-a\"\nsite = \"a\"");
    let reported = only_mistake(&text);
    assert!(
        reported.contains("node.site: not in this version yet"),
        "{reported}"
    );
}

#[test]
fn members_have_a_layout_and_stand_instead_of_a_path() {
    let with = |keys: &str| GOOD.replace("path = \"data/pool\"", keys);
    let config = parse(
        Path::new("/etc/node.toml"),
        &with("members = [\"/dev/a\", \"b\"]\nlayout = \"stripe\""),
    );
    let members = vec!["/dev/a".into(), "/etc/b".into()];
    let layout = Layout::Stripe;
    let place = Place::Members { members, layout };
    assert_eq!(config.unwrap().pools[0].place, place);
    for (keys, message) in [
        ("members = [\"a\", \"b\"]", "pool[0].layout: missing"),
        (
            "path = \"a\"\nlayout = \"span\"",
            "it is how LUNs lie on members, and there are none",
        ),
        (
            "path = \"a\"\nmembers = [\"b\"]",
            "write either path or members",
        ),
        ("members = []", "an empty list"),
        (
            "members = [\"a\", \"a\"]\nlayout = \"span\"",
            "stands already in pool",
        ),
    ] {
        let reported = only_mistake(&with(keys));
        assert!(reported.contains(message), "{reported}");
    }
}

#[test]
fn a_journal_is_named_with_its_size_or_refused_with_the_reason() {
    let with = |keys: &str| {
        let keys = format!("path = \"data/pool\"\n{keys}");
        GOOD.replace("path = \"data/pool\"", &keys)
    };
    for (keys, message) in [
        (
            "journal_size = \"1GiB\"",
            "pool[0].journal_size: it is the size of a journal, and there is none",
        ),
        (
            "journal = \"j\"\njournal_size = \"1MiB\"",
            "pool[0].journal_size: a journal has 16MiB at least",
        ),
        ("journal = \"\"", "pool[0].journal: an empty path"),
    ] {
        let reported = only_mistake(&with(keys));
        assert!(reported.contains(message), "{reported}");
    }
}

#[test]
fn broken_toml_is_named_by_its_line() {
    let message = only_mistake(&GOOD.replace("tag = 1", "tag ="));
    assert!(message.starts_with("node.toml:8: "), "{message}");
    let message = only_mistake(&GOOD.replace("name = \"san-a\"", "name = \"san-a"));
    assert!(message.starts_with("node.toml:4: "), "{message}");
}

#[test]
fn an_empty_file_says_what_belongs_in_it() {
    let all = mistakes("");
    let keys = ["node", "portal_group", "api"];
    assert_eq!(all.len(), keys.len(), "{all:#?}");
    for (message, key) in all.iter().zip(keys) {
        assert!(
            message.contains(&format!(": {key}: missing; write for example: [")),
            "{message}"
        );
    }
}

#[test]
fn tags_names_and_addresses_are_unique() {
    let second = "[[portal_group]]\nname = \"default\"\ntag = 1\nlisten = [ { ip = \"127.0.0.1\" } ]\n[[pool]]";
    let all = mistakes(&GOOD.replace("[[pool]]", second));
    assert_eq!(all.len(), 3, "{all:#?}");
    assert!(
        all.iter()
            .any(|m| m.contains("127.0.0.1:3260 is listened at already"))
    );
    assert!(
        all.iter()
            .any(|m| m.contains("tag 1 is portal group \"default\"'s"))
    );
    assert!(
        all.iter()
            .any(|m| m.contains("a second portal group \"default\""))
    );
}

#[test]
fn port_zero_may_stand_twice_because_it_means_any_free_port() {
    let text = GOOD.replace(
        "{ iface = \"eth1\" }",
        "{ ip = \"127.0.0.1\", port = 0 }, { ip = \"127.0.0.1\", port = 0 }",
    );
    assert_eq!(
        parse(Path::new("n.toml"), &text).unwrap().portal_groups[0]
            .listen
            .len(),
        4
    );
}

/// The pools of a file with this table of one, or what is wrong.
fn with_rbd(more: &str) -> Result<Vec<Pool>, Vec<String>> {
    let text = format!("{GOOD}[[pool]]\nname = \"ceph\"\n{more}");
    match parse(Path::new("/o/node.toml"), &text) {
        Ok(config) => Ok(config.pools),
        Err(mistakes) => Err(mistakes.iter().map(ToString::to_string).collect()),
    }
}

#[test]
fn a_pool_of_a_ceph_cluster_is_read_with_its_defaults() {
    let pools = with_rbd("rbd = { pool = \"vms\" }\n").unwrap();
    let place = |pool: &str, conf: Option<&str>, user: &str| {
        Place::Rbd(RbdPlace {
            pool: pool.to_owned(),
            conf: conf.map(Into::into),
            user: user.to_owned(),
        })
    };
    let read = &pools.last().unwrap().place;
    assert_eq!(*read, place("vms", None, "admin"));
    assert!(read.is_stable() && read.paths().is_empty());
    let whole = "rbd = { pool = \"vms\", conf = \"ceph.conf\", user = \"causeway\" }\n";
    let pools = with_rbd(whole).unwrap();
    let wanted = place("vms", Some("/o/ceph.conf"), "causeway");
    assert_eq!(pools.last().unwrap().place, wanted);
}

#[test]
fn a_pool_of_a_ceph_cluster_has_one_name_no_path_and_no_journal() {
    let refused = |more: &str, rule: &str| {
        let mistakes = with_rbd(more).unwrap_err();
        assert!(
            mistakes.iter().any(|it| it.contains(rule)),
            "{more}: {mistakes:?}"
        );
    };
    refused("rbd = { pool = \"\" }\n", "pool is empty");
    refused("rbd = { }\n", "missing");
    refused(
        "rbd = { pool = \"a\", user = \"client.x\" }\n",
        "without \"client.\"",
    );
    refused("rbd = { pool = \"a\", colour = 1 }\n", "colour");
    refused(
        "rbd = { pool = \"a\" }\npath = \"p\"\n",
        "write either path or members or rbd",
    );
    refused(
        "rbd = { pool = \"a\" }\njournal = \"j\"\n",
        "a pool with rbd has none",
    );
    let twice = "rbd = { pool = \"a\" }\n[[pool]]\nname = \"again\"\nrbd = { pool = \"a\" }\n";
    refused(twice, "it is pool \"ceph\"'s");
}
