//! Entry points for fuzzers: arbitrary bytes in, and a panic if an oracle is broken.

use crate::config;
use crate::document;
use crate::objects::{
    ChapSpec, ObjectSet, Objects, SecretSpec, check_each, parse as parse_objects, to_toml,
};
use crate::toml_table::Mistake;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

/// Two secrets are there, and no other.
fn read_secret(path: &Path) -> io::Result<Vec<u8>> {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("a.secret") => Ok(b"a secret of a host\n".to_vec()),
        Some("b.secret") => Ok(b"the secret of us".to_vec()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    }
}

fn read_objects(text: &str) -> Result<ObjectSet, Vec<Mistake>> {
    let (file, base) = (Path::new("objects.toml"), Path::new("/base"));
    parse_objects(file, base, text, &read_secret).map(|objects| objects.set)
}

/// `objects.toml`. Oracles: what is accepted keeps the rules and means the same when printed and
/// read again (secrets then say that they stay); a mistake names a line of the file, and a comment
/// above moves the lines and nothing else.
///
/// # Panics
/// If not.
pub fn objects_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let read = read_objects(text);
    if let Ok(set) = &read {
        assert_eq!(check_each(set), [], "accepted against the rules");
        let printed = to_toml(set);
        let again = read_objects(&printed).expect("what is printed is accepted");
        assert_eq!(
            again,
            with_stored_secrets(set.clone()),
            "printed differently"
        );
        assert_eq!(to_toml(&again), printed, "a second form of the same set");
    }
    check_lines(text, read, read_objects, |_| {});
}

/// The set as it reads after it was printed.
fn with_stored_secrets(mut set: ObjectSet) -> ObjectSet {
    let stored = |chap: &mut ChapSpec| {
        chap.secret = SecretSpec::Stored;
        if chap.mutual_secret.is_some() {
            chap.mutual_secret = Some(SecretSpec::Stored);
        }
    };
    set.host
        .iter_mut()
        .filter_map(|host| host.chap.as_mut())
        .for_each(stored);
    set
}

/// `node.toml`. Oracles: paths are absolute, groups have tags and names of their own; lines as for
/// [`objects_file`].
///
/// # Panics
/// If not.
pub fn node_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let read_node = |text: &str| config::parse(Path::new("/base/node.toml"), text);
    let read = read_node(text);
    if let Ok(config) = &read {
        let pools = config.pools.iter().flat_map(|pool| pool.place.paths());
        let pools = pools.map(PathBuf::as_path);
        let paths: Vec<&Path> = pools.chain([config.state_dir.as_path()]).collect();
        assert!(paths.iter().all(|path| path.is_absolute()), "{paths:?}");
        let groups = &config.portal_groups;
        for (at, group) in groups.iter().enumerate() {
            let mut others = groups.iter().take(at);
            let taken = others.any(|other| other.tag == group.tag || other.name == group.name);
            assert!(!taken && group.tag > 0, "{group:?} is there already");
            assert!(!group.listen.is_empty(), "{group:?} listens nowhere");
        }
    }
    check_lines(text, read, read_node, |config| {
        config.lines.values_mut().for_each(|line| *line += 1);
        let written = config.written.values_mut();
        written.for_each(|it| it.line += 1);
    });
}

/// A mistake names a line that is there; with a comment above, everything stands one line below
/// (`move_down` does that to what was read) and is the same.
fn check_lines<T: PartialEq + Debug>(
    text: &str,
    read: Result<T, Vec<Mistake>>,
    parse: impl Fn(&str) -> Result<T, Vec<Mistake>>,
    move_down: impl Fn(&mut T),
) {
    // Past the last line end the file may go on, or end.
    let lines = text.matches('\n').count() + 1;
    let mut moved = match read {
        Ok(mut read) => {
            move_down(&mut read);
            Ok(read)
        }
        Err(mut mistakes) => {
            assert!(!mistakes.is_empty(), "refused without a reason");
            for mistake in &mut mistakes {
                let there = (1..=lines).contains(&mistake.line);
                assert!(there, "no such line among {lines}: {mistake:?}");
                assert!(!mistake.message.is_empty(), "a mistake without words");
                mistake.line += 1;
            }
            Err(mistakes)
        }
    };
    let mut below = parse(&format!("# a comment\n{text}"));
    // What is absent from the file as a whole is absent from its first line on, wherever that is.
    for mistake in below.as_mut().err().into_iter().flatten() {
        if mistake.line == 1 && mistake.is_absence {
            mistake.line = 2;
        }
    }
    for mistakes in [below.as_mut().err(), moved.as_mut().err()]
        .into_iter()
        .flatten()
    {
        mistakes.sort_by_key(|mistake| (mistake.line, mistake.to_string()));
    }
    assert_eq!(below, moved, "a comment above moves lines and nothing else");
}

/// A file of the state directory, whole; and the same bytes as its body, under a header that is
/// right. Oracle: a body that is accepted was covered by the checksum, and objects go round.
///
/// # Panics
/// If not.
pub fn state_file(bytes: &[u8]) {
    const KIND: &str = "objects";
    if let Ok(body) = document::read(KIND, bytes) {
        let whole = document::write(KIND, &body);
        assert_eq!(
            document::read(KIND, &whole),
            Ok(body),
            "a body does not go round"
        );
    }
    let mut whole = document::write(KIND, bytes);
    assert_eq!(document::read(KIND, &whole).as_deref(), Ok(bytes));
    if let Some(last) = whole.last_mut().filter(|_| !bytes.is_empty()) {
        *last ^= 1;
        assert!(
            document::read(KIND, &whole).is_err(),
            "damage goes unnoticed"
        );
    }
    if let Ok(objects) = serde_json::from_slice::<Objects>(bytes) {
        let written = serde_json::to_vec(&objects).expect("objects are JSON");
        let again = serde_json::from_slice::<Objects>(&written).expect("our JSON is read");
        assert_eq!(again, objects, "objects do not go round");
    }
}

/// Inputs that reach deep, to start a corpus with: name and bytes.
#[must_use]
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let objects: &[u8] = br#"schema = 1
[[lun]]
name = "vm01"
size = "10GiB"
block_size = 512
physical_block_size = 4096
thin = true
pool = "default"
[[lun]]
name = "ram"
size = 1048576
backend = "memory"
[[lun]]
name = "disk"
size = "1TiB"
backend = { block = "/dev/sdb" }
[[target]]
name = "t1"
iqn = "iqn.2026-01.io.example:t1"
portal_group = "default"
redirect = { to = "[2001:db8::2]:3260", permanent = true }
maintenance = true
[[host]]
name = "esx01"
iqn = ["iqn.1998-01.com.vmware:esx01", "eui.0123456789abcdef"]
chap = { user = "esx01", secret_file = "a.secret", mutual_user = "us", mutual_secret_file = "b.secret" }
[[host]]
name = "all"
iqn = ["*"]
[[grant]]
host = "esx01"
lun = "vm01"
target = "t1"
lun_id = 7
read_only = true
"#;
    let node: &[u8] = br#"schema = 1
[node]
name = "san-a"
state_dir = "data"
[[portal_group]]
name = "default"
tag = 1
listen = [ { ip = "127.0.0.1", port = 3260 }, { iface = "eth1" }, { ip = "::1", port = 0 } ]
[[pool]]
name = "default"
path = "data/pool"
[api]
listen = ["unix:data/api.sock", "127.0.0.1:8480"]
[runtime]
cores = [0, 1]
driver = "auto"
[log]
format = "json"
"#;
    let stored: &[u8] = br#"{"luns":{"vm01":{"naa":"60","serial":"s","size":"1GiB","block_size":512,"physical_block_size":512,"thin":true,"backing":{"pool":"default"}}},"removed":{"old":{"naa":"61","serial":"t","size":512,"block_size":512,"physical_block_size":512,"thin":false,"backing":"memory"}},"targets":{"t1":{"id":1,"relative_port":1,"iqn":"iqn.2026-01.io.example:t1","portal_group":"default","redirect":{"to":"192.0.2.2:3260","permanent":true},"maintenance":true}},"hosts":{"h":{"id":2,"iqn":["*"],"chap":{"user":"u","mutual":{"user":"v"}}}},"grants":{"h:t1:vm01":{"lun_id":0,"read_only":true}},"next_id":2}"#;
    vec![
        ("objects_file", objects.to_vec()),
        ("node_file", node.to_vec()),
        ("state_file", stored.to_vec()),
        ("state_file_whole", document::write("objects", stored)),
    ]
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn what_is_absent_is_not_what_is_wrong_whatever_the_words_are() {
        let text = "schema = 1\nsurprise = \"missing\"\n[node]\nname = 5\n";
        let mistakes = config::parse(Path::new("/base/node.toml"), text).unwrap_err();
        let absent = |key: &str| {
            let found = mistakes.iter().find(|it| it.key == key);
            found.map(|it| it.is_absence)
        };
        assert_eq!(absent("portal_group"), Some(true), "{mistakes:?}");
        assert_eq!(absent("node.name"), Some(false), "{mistakes:?}");
        assert_eq!(absent("surprise"), Some(false), "{mistakes:?}");
        for text in ["", "schema = 1", "[node]"] {
            node_file(text.as_bytes());
            objects_file(text.as_bytes());
        }
    }

    #[test]
    fn seeds_are_accepted_and_break_no_oracle() {
        for (name, bytes) in seeds() {
            let text = std::str::from_utf8(&bytes).unwrap();
            match name {
                "objects_file" => {
                    assert_eq!(read_objects(text).unwrap().lun.len(), 3);
                    objects_file(&bytes);
                }
                "node_file" => {
                    config::parse(Path::new("/base/node.toml"), text).unwrap();
                    node_file(&bytes);
                }
                "state_file" => {
                    serde_json::from_slice::<Objects>(&bytes).unwrap();
                    state_file(&bytes);
                }
                _ => {
                    document::read("objects", &bytes).unwrap();
                    state_file(&bytes);
                }
            }
        }
    }
}
