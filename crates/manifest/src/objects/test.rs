use super::*;
use crate::secret::Secret;
use std::io;
use std::path::Path;

const GOOD: &str = r#"
[[lun]]
name = "vm01"
size = "1GiB"
block_size = 512
physical_block_size = 4096
thin = true
pool = "default"
[[lun]]
name = "scratch"
size = "64M"
backend = "memory"
[[lun]]
name = "disk"
size = 1048576
backend = { block = "/dev/sdb" }
[[target]]
name = "t1"
iqn = "iqn.2026-11.io.causeway:t1"
portal_group = "default"
[[host]]
name = "esx01"
iqn = ["iqn.1998-01.com.vmware:esx01"]
chap = { user = "esx01", secret_file = "esx01.secret", mutual_user = "san", mutual_secret_file = "san.secret" }
[[grant]]
host = "esx01"
lun = "vm01"
target = "t1"
lun_id = 0
"#;

fn secrets(path: &Path) -> io::Result<Vec<u8>> {
    match path.to_str().unwrap() {
        "/o/esx01.secret" => Ok(b"initiator-secret\n".to_vec()),
        "/o/san.secret" => Ok(b"the-san's-secret".to_vec()),
        "/o/short.secret" => Ok(b"elevenbytes\n".to_vec()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    }
}

fn read(text: &str) -> Result<FileObjects, Vec<String>> {
    parse(Path::new("/o/lab.toml"), Path::new("/o"), text, &secrets)
        .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
}

fn only_mistake(text: &str) -> String {
    let mut all = read(text).unwrap_err();
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

#[test]
fn the_promised_example_is_read_with_its_secrets() {
    let set = read(GOOD).unwrap().set;
    assert_eq!(set.lun[0].size.bytes(), 1 << 30);
    assert_eq!(set.lun[1].backend, Some(BackendSpec::Memory));
    assert_eq!(
        set.lun[2].backend,
        Some(BackendSpec::Block("/dev/sdb".into()))
    );
    assert_eq!(set.lun[2].size.bytes(), 1 << 20);
    let chap = set.host[0].chap.as_ref().unwrap();
    assert_eq!(
        chap.secret,
        SecretSpec::Value(Secret::new(b"initiator-secret".to_vec()))
    );
    assert_eq!(set.grant[0].lun_id, Some(0));
    assert!(!format!("{set:?}").contains("initiator-secret"));
}

#[test]
fn all_mistakes_are_listed_each_with_its_line() {
    let text = GOOD
        .replace("\"1GiB\"", "\"1GX\"")
        .replace("physical_block_size = 4096", "physical_block_size = 1024")
        .replace("iqn.1998-01.com.vmware:esx01", "esx01")
        .replace("lun_id = 0", "lun_id = 16384");
    let all = read(&text).unwrap_err();
    let lines: Vec<&str> = all.iter().map(|m| m.split(": ").next().unwrap()).collect();
    assert_eq!(
        lines,
        ["/o/lab.toml:4", "/o/lab.toml:23", "/o/lab.toml:29"],
        "{all:#?}"
    );
    let text = GOOD
        .replace("physical_block_size = 4096", "physical_block_size = 1024")
        .replace("\"64M\"", "\"1000\"");
    let all = read(&text).unwrap_err();
    assert_eq!(
        all,
        [
            "/o/lab.toml:6: lun \"vm01\", physical_block_size: 1024 is neither 512 nor 4096",
            "/o/lab.toml:11: lun \"scratch\", size: 1000 bytes are not a whole number of blocks of 512 bytes; the nearest are 512 and 1024",
        ]
    );
}

#[test]
fn a_target_may_send_logins_elsewhere_or_rest() {
    let with = |line: &str| GOOD.replace("[[host]]", &format!("{line}\n[[host]]"));
    let set = read(GOOD).unwrap().set;
    let target = &set.target[0];
    assert_eq!((&target.redirect, target.maintenance), (&None, false));
    let text = with("redirect = { to = \"[2001:db8::2]:3260\" }\nmaintenance = true");
    let set = read(&text).unwrap().set;
    let redirect = set.target[0].redirect.clone().unwrap();
    assert_eq!(
        (redirect.to.as_str(), redirect.permanent),
        ("[2001:db8::2]:3260", false)
    );
    assert!(set.target[0].maintenance);
    let written = to_toml(&set).replace(" = \"<stored>\"", " = \"esx01.secret\"");
    assert!(
        written.contains("redirect = { to = \"[2001:db8::2]:3260\" }\nmaintenance = true\n"),
        "{written}"
    );
    let wrong = only_mistake(&with("redirect = { to = \"2001:db8::2:3260\" }"));
    assert!(
        wrong.starts_with("/o/lab.toml:21: target \"t1\", redirect.to: ")
            && wrong.contains("in brackets"),
        "{wrong}"
    );
    let misspelt = read(&with("redirect = { too = \"a:1\" }")).unwrap_err();
    assert!(
        misspelt[1].contains("did you mean \"to\"?"),
        "{misspelt:#?}"
    );
}

#[test]
fn rules_of_chap_are_those_of_the_standard() {
    let short = GOOD.replace("esx01.secret", "short.secret");
    assert_eq!(
        only_mistake(&short),
        "/o/lab.toml:24: host \"esx01\", chap.secret_file: the secret has 11 bytes; the standard demands at least 12"
    );
    let same = GOOD.replace("san.secret", "esx01.secret");
    assert!(only_mistake(&same).contains("both directions have the same secret"));
    let half = GOOD.replace(", mutual_secret_file = \"san.secret\"", "");
    assert!(only_mistake(&half).contains("chap.mutual_secret_file: missing beside mutual_user"));
    let absent = GOOD.replace("esx01.secret", "none.secret");
    assert!(only_mistake(&absent).contains("host[0].chap.secret_file: /o/none.secret: "));
    let inline = GOOD.replace(
        "secret_file = \"esx01.secret\"",
        "secret = \"initiator-secret\"",
    );
    let all = read(&inline).unwrap_err();
    assert!(
        all.iter()
            .any(|m| m.contains("a secret does not stand in this file")),
        "{all:#?}"
    );
    assert!(
        !all.iter().any(|m| m.contains("initiator-secret")),
        "{all:#?}"
    );
}

#[test]
fn misspelt_fields_are_refused_with_the_nearest_one() {
    assert!(
        only_mistake(&GOOD.replacen("thin = true", "thn = true", 1))
            .contains("did you mean \"thin\"?")
    );
}

#[test]
fn names_stand_once_and_the_star_stands_alone() {
    let twice = GOOD.replace("name = \"scratch\"", "name = \"vm01\"");
    assert!(only_mistake(&twice).contains("it stands twice"));
    let star = GOOD.replace("[\"iqn.1998", "[\"*\", \"iqn.1998");
    assert!(only_mistake(&star).contains("write it alone"));
    let none = GOOD.replace("[\"iqn.1998-01.com.vmware:esx01\"]", "[]");
    assert!(only_mistake(&none).contains("no initiator name"));
    let case = GOOD.replace(
        "[\"iqn.1998",
        "[\"IQN.1998-01.com.VMware:esx01\", \"iqn.1998",
    );
    assert!(only_mistake(&case).contains("stands twice"));
}

#[test]
fn an_export_reads_back_as_the_same_set() {
    let mut set = read(GOOD).unwrap().set;
    let chap = set.host[0].chap.as_mut().unwrap();
    chap.secret = SecretSpec::Stored;
    chap.mutual_secret = Some(SecretSpec::Stored);
    set.grant[0].read_only = true;
    chap.user = "a \"quoted\" \\ user".to_owned();
    let text = to_toml(&set);
    assert_eq!(read(&text).unwrap().set, set, "{text}");
}

#[test]
fn a_relative_block_device_resolves_against_the_file() {
    let set = read(&GOOD.replace("/dev/sdb", "disks/b")).unwrap().set;
    assert_eq!(
        set.lun[2].backend,
        Some(BackendSpec::Block("/o/disks/b".into()))
    );
}

#[test]
fn ten_thousand_luns_are_read_in_one_file() {
    let mut text = String::new();
    for n in 0..10_000 {
        text.push_str(&format!("[[lun]]\nname = \"vm{n}\"\nsize = \"1G\"\n"));
    }
    assert_eq!(read(&text).unwrap().set.lun.len(), 10_000);
}
