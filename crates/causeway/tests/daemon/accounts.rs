//! Users, tokens and https, by the command line and by a browser's requests.

use crate::place::{Place, text_of};
use rustix::process::Signal;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;

const PASSWORD: &str = "correct horse battery";

/// Where the API is over TCP: `http://...` or `https://...`.
pub(crate) fn tcp(place: &Place) -> String {
    let status = place.json("status");
    status["api"][1].as_str().unwrap().to_owned()
}

/// With an https address in place of the one in plain text.
fn with_https(name: &str) -> Place {
    let place = Place::new(name);
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let https = config.replace("\"127.0.0.1:0\"", "\"https://127.0.0.1:0\"");
    assert_ne!(https, config);
    place.write("node.toml", &https);
    place
}

/// Runs a command with this on its standard input.
fn typed(place: &Place, code: i32, words: &str, input: &str) -> String {
    let all: Vec<&str> = words.split(' ').collect();
    text_of(&place.run_with(&place.api(), &all, input), code, words)
}

/// Runs a command at another address.
pub(crate) fn at(place: &Place, api: &str, code: i32, words: &str) -> String {
    let all: Vec<&str> = words.split(' ').collect();
    text_of(&place.run_with(api, &all, ""), code, words)
}

pub(crate) fn login(address: &str, user: &str, password: &str) -> String {
    let at = address.strip_prefix("http://").unwrap();
    let body = format!("{{\"user\": \"{user}\", \"password\": \"{password}\"}}");
    let mut stream = TcpStream::connect(at).unwrap();
    let request = format!(
        "POST /api/v1/login HTTP/1.1\r\nHost: {at}\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn users_are_made_listed_changed_and_deleted_with_the_promised_exit_codes() {
    let place = Place::new("users");
    let daemon = place.start();
    let first = place.json("user ls");
    assert_eq!(first[0]["name"], "admin");
    assert_eq!(first[0]["must_change"], true);
    typed(
        &place,
        0,
        "user create eve --role operator --password-file -",
        PASSWORD,
    );
    let again = typed(
        &place,
        4,
        "user create eve --role operator --password-file -",
        PASSWORD,
    );
    assert!(again.contains("error[CWY3002]"), "{again}");
    typed(
        &place,
        2,
        "user create x --role operator --password-file -",
        "short",
    );
    typed(
        &place,
        2,
        "user create x --role king --password-file -",
        PASSWORD,
    );
    let no_terminal = place.run(2, "user create x --role viewer");
    assert!(no_terminal.contains("--password-file"), "{no_terminal}");
    place.run(2, "user set eve");
    place.run(0, "user set eve --role viewer --dry-run");
    assert_eq!(place.json("user show eve")["role"], "operator");
    place.run(0, "user set eve --role viewer --enabled false");
    let eve = place.json("user show eve");
    assert_eq!(
        (&eve["role"], &eve["enabled"]),
        (&"viewer".into(), &false.into())
    );
    let last = place.run(5, "user delete admin");
    assert!(last.contains("error[CWY5025]"), "{last}");
    place.run(0, "user delete eve");
    place.run(3, "user delete eve");
    place.run(0, "user delete eve --if-exists");
    place.run(3, "user end-sessions eve");
    let none = place.json("user end-sessions admin");
    assert_eq!(
        (&none["changed"], &none["hits"]),
        (&json!(false), &json!([]))
    );
    let table = place.run(0, "user ls");
    assert!(table.contains("has to change the password"), "{table}");
    daemon.stop();
}

#[test]
fn a_token_changes_things_over_tcp_by_its_role_and_is_shown_once() {
    let place = Place::new("tokens");
    let daemon = place.start();
    let address = tcp(&place);
    for (name, role) in [("v", "viewer"), ("o", "operator")] {
        let token = place.run(0, &format!("token create {name} --role {role} --days 1"));
        place.write(&format!("{name}.secret"), &token);
    }
    let refused = at(
        &place,
        &address,
        5,
        "lun create a --size 1M --token-file v.secret",
    );
    assert!(refused.contains("error[CWY5022]"), "{refused}");
    at(
        &place,
        &address,
        0,
        "lun create a --size 1M --token-file o.secret",
    );
    at(&place, &address, 5, "user ls --token-file o.secret");
    let list = place.run(0, "token ls");
    let secret = std::fs::read_to_string(place.path("o.secret")).unwrap();
    assert!(
        list.contains("operator") && !list.contains(secret.trim()),
        "{list}"
    );
    let plan = place.run(0, "token delete o --dry-run");
    assert!(plan.contains("would end token o"), "{plan}");
    assert!(plan.contains("role operator, made by uid:"), "{plan}");
    assert!(plan.contains("used last at "), "{plan}");
    let done = place.run(0, "token delete o");
    assert!(done.contains("ended token o"), "{done}");
    place.run(3, "token delete o");
    at(
        &place,
        &address,
        5,
        "lun create b --size 1M --token-file o.secret",
    );
    daemon.stop();
}

#[test]
fn secrets_never_reach_the_log_and_users_survive_a_restart() {
    let place = Place::new("secret-log");
    let daemon = place.start();
    let first = std::fs::read_to_string(place.path("data/first-password")).unwrap();
    typed(
        &place,
        0,
        "user create eve --role operator --password-file -",
        PASSWORD,
    );
    let token = place.run(0, "token create t --role admin");
    let address = tcp(&place);
    let answer = login(&address, "eve", PASSWORD);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let cookie = answer.split("causeway-session=").nth(1).unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let wrong = login(&address, "eve", "wrong but secret");
    assert!(wrong.starts_with("HTTP/1.1 401 "), "{wrong}");
    let log = daemon.stop();
    assert!(log.contains("data/first-password"), "{log}");
    for secret in [
        first.trim(),
        PASSWORD,
        token.trim(),
        &cookie,
        "wrong but secret",
    ] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
    let daemon = place.start();
    let answer = login(&tcp(&place), "eve", PASSWORD);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    place.write("t.secret", &token);
    at(&place, &tcp(&place), 0, "user ls --token-file t.secret");
    let log = daemon.stop();
    assert!(
        !log.contains("first-password"),
        "only at the first start: {log}"
    );
}

#[test]
fn the_command_line_speaks_https_with_whom_it_was_given_and_with_nobody_else() {
    let place = with_https("https");
    let daemon = place.start();
    let address = tcp(&place);
    assert!(address.starts_with("https://"), "{address}");
    let unknown = at(&place, &address, 7, "lun ls");
    assert!(unknown.contains("error[CWY5032]"), "{unknown}");
    at(&place, &address, 0, "lun ls --ca data/api-cert.pem");
    let change = "lun create a --size 1M --ca data/api-cert.pem --token-file data/api.token";
    at(&place, &address, 0, change);
    // Another node's.
    let other = with_https("https-other");
    let second = other.start();
    let theirs = other.path("data/api-cert.pem");
    let wrong = at(
        &place,
        &address,
        7,
        &format!("lun ls --ca {}", theirs.display()),
    );
    assert!(wrong.contains("error[CWY5032]"), "{wrong}");
    let log = second.stop();
    let finger = |log: &str| {
        let rest = log.split("fingerprint=").nth(1).unwrap();
        let rest = rest.trim_start_matches(|it: char| !it.is_ascii_hexdigit());
        rest.split(|it: char| !it.is_ascii_hexdigit() && it != ':')
            .next()
            .unwrap()
            .to_owned()
    };
    let wrong = at(
        &place,
        &address,
        7,
        &format!("lun ls --fingerprint {}", finger(&log)),
    );
    assert!(wrong.contains("error[CWY5032]"), "{wrong}");
    let log = daemon.stop();
    let daemon = place.start();
    let right = format!("lun ls --fingerprint {}", finger(&log));
    at(&place, &tcp(&place), 0, &right);
    daemon.stop();
}

#[test]
fn a_hangup_reads_the_certificate_again_and_ends_nothing() {
    let place = with_https("hangup");
    let daemon = place.start();
    daemon.send(Signal::HUP);
    place.run(0, "lun create a --size 1M");
    let log = daemon.stop();
    assert!(
        log.contains("the certificate and the settings are read again"),
        "{log}"
    );
}

#[test]
fn plain_text_for_other_machines_and_a_certificate_that_is_none_are_refused_at_the_start() {
    let place = Place::new("plain");
    let config = std::fs::read_to_string(place.path("node.toml")).unwrap();
    let serve = |text: &str| {
        place.write("node.toml", text);
        let words = ["serve", "--config", "node.toml"];
        text_of(&place.run_with("", &words, ""), 2, text)
    };
    let open = serve(&config.replace("\"127.0.0.1:0\"", "\"0.0.0.0:0\""));
    for part in [
        "error[CWY1009]",
        "node.toml:13: api.listen",
        "https://0.0.0.0:0",
        "allow_plain_http",
    ] {
        assert!(open.contains(part), "{part}: {open}");
    }
    let given = "\"https://127.0.0.1:0\"]\ncertificate = { cert = \"no.crt\", key = \"no.key\" }";
    let missing = serve(&config.replace("\"127.0.0.1:0\"]", given));
    assert!(missing.contains("no.crt"), "{missing}");
}
