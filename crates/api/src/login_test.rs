//! Logins, users and tokens over real sockets.

use crate::accept::Times;
use crate::test::{Daemon, TOKEN};
use http_body_util::BodyExt;
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};

pub(crate) const NEW: &str = "another long password";

/// A cookie and the CSRF token of its session.
#[derive(Clone, Debug)]
pub(crate) struct Entered {
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

/// An answer with its headers.
pub(crate) struct Said {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Said {
    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }

    pub(crate) fn cookie(&self) -> String {
        let header = self.headers["set-cookie"].to_str().unwrap();
        header.split(';').next().unwrap().to_owned()
    }
}

/// A request over TCP with these headers.
pub(crate) fn ask(
    daemon: &Daemon,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: &Value,
) -> Said {
    let mut request = Request::builder().method(method).uri(path);
    let mut all = vec![("host", "localhost"), ("content-type", "application/json")];
    all.retain(|(name, _)| !headers.iter().any(|(given, _)| given == name));
    for (name, value) in all.iter().chain(headers) {
        request = request.header(*name, *value);
    }
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = request.body(text).unwrap();
    let at = daemon.addresses[1]
        .strip_prefix("http://")
        .unwrap()
        .to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async move {
        let stream = tokio::net::TcpStream::connect(at).await.unwrap();
        let made = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = made.unwrap();
        tokio::spawn(connection);
        let response = sender.send_request(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Said {
            status: parts.status,
            headers: parts.headers,
            body: serde_json::from_str(&text).unwrap_or(Value::String(text)),
        }
    })
}

pub(crate) fn login(daemon: &Daemon, user: &str, password: &str) -> Said {
    let body = json!({ "user": user, "password": password });
    ask(daemon, ("POST", "/api/v1/login"), &[], &body)
}

pub(crate) fn enter(daemon: &Daemon, user: &str, password: &str) -> Entered {
    let said = login(daemon, user, password);
    assert_eq!(said.status, StatusCode::OK, "{}", said.body);
    Entered {
        cookie: said.cookie(),
        csrf: said.body["csrf"].as_str().unwrap().to_owned(),
    }
}

/// A request of a session.
pub(crate) fn of(daemon: &Daemon, who: &Entered, what: (&str, &str), body: &Value) -> Said {
    let headers = [
        ("cookie", who.cookie.as_str()),
        ("x-causeway-csrf", &who.csrf),
    ];
    ask(daemon, what, &headers, body)
}

pub(crate) fn first_password(daemon: &Daemon) -> String {
    let path = daemon.dir.join("state/first-password");
    std::fs::read_to_string(path).unwrap().trim().to_owned()
}

/// A user of this role, made through the socket, with the password [`NEW`].
pub(crate) fn make(daemon: &Daemon, name: &str, role: &str) {
    let body = json!({ "name": name, "role": role, "password": NEW });
    let (status, made) = daemon.send("POST", "/api/v1/users", &body);
    assert_eq!(status, StatusCode::OK, "{made}");
}

#[test]
fn who_is_logged_in_twice_sees_both_and_ends_the_other_one() {
    let daemon = Daemon::start("twice");
    make(&daemon, "eve", "viewer");
    make(&daemon, "op", "operator");
    let (first, second) = (enter(&daemon, "eve", NEW), enter(&daemon, "eve", NEW));
    let other = enter(&daemon, "op", NEW);
    let path = "/api/v1/me/sessions";
    let seen = of(&daemon, &second, ("GET", path), &Value::Null);
    let seen = seen.body.as_array().unwrap().clone();
    let mine: Vec<&Value> = seen.iter().map(|one| &one["is_this"]).collect();
    assert_eq!(mine, [true, false]);
    let ended = of(&daemon, &second, ("DELETE", path), &Value::Null);
    assert_eq!(ended.body["ended"], 1);
    for (who, wanted) in [
        (&first, StatusCode::UNAUTHORIZED),
        (&second, StatusCode::OK),
        (&other, StatusCode::OK),
    ] {
        let said = of(&daemon, who, ("GET", "/api/v1/me"), &Value::Null);
        assert_eq!(said.status, wanted, "{}", said.body);
    }
}

#[test]
fn the_file_of_the_first_password_goes_however_that_ends_and_by_nothing_else() {
    let daemon = Daemon::start("first-file");
    let file = daemon.dir.join("state/first-password");
    let set = |name: &str, body: &Value| {
        let path = format!("/api/v1/users/{name}");
        let (status, said) = daemon.send("PATCH", &path, body);
        assert_eq!(status, StatusCode::OK, "{said}");
    };
    // Somebody else who has to change a password.
    let body = json!({ "name": "eve", "role": "viewer", "password": NEW, "must_change": true });
    let (status, made) = daemon.send("POST", "/api/v1/users", &body);
    assert_eq!(status, StatusCode::OK, "{made}");
    let eve = enter(&daemon, "eve", NEW);
    let other = json!({ "old": NEW, "new": "correct-horse-battery" });
    let said = of(&daemon, &eve, ("PUT", "/api/v1/me/password"), &other);
    assert_eq!(said.status, StatusCode::OK, "{}", said.body);
    assert!(file.exists(), "it is not eve's");
    set("admin", &json!({ "role": "admin" }));
    assert!(file.exists(), "the password is the first one");
    set("admin", &json!({ "password": NEW }));
    assert!(!file.exists(), "`user set admin --password`");
}

#[test]
fn the_first_password_opens_one_door_only_until_it_is_changed() {
    use std::os::unix::fs::PermissionsExt;
    let daemon = Daemon::start("first");
    for name in ["first-password", "accounts.json"] {
        let found = std::fs::metadata(daemon.dir.join("state").join(name)).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
    }
    let first = first_password(&daemon);
    let said = login(&daemon, "admin", &first);
    assert_eq!(said.body["must_change"], true);
    let admin = enter(&daemon, "admin", &first);
    for (method, path) in [
        ("GET", "/api/v1/luns"),
        ("GET", "/api/v1/users"),
        ("POST", "/api/v1/luns"),
    ] {
        let said = of(&daemon, &admin, (method, path), &json!({}));
        assert_eq!(
            (said.status, said.code()),
            (StatusCode::FORBIDDEN, "CWY5024"),
            "{path}"
        );
    }
    let change = |old: &str, new: &str| {
        let body = json!({ "old": old, "new": new });
        of(&daemon, &admin, ("PUT", "/api/v1/me/password"), &body)
    };
    assert_eq!(change("wrong wrong wrong", NEW).code(), "CWY5020");
    assert_eq!(change(&first, "short").code(), "CWY5023");
    assert_eq!(change(&first, &first).code(), "CWY5023");
    let said = change(&first, NEW);
    assert_eq!(said.status, StatusCode::OK, "{}", said.body);
    assert!(!daemon.dir.join("state/first-password").exists());
    let me = of(&daemon, &admin, ("GET", "/api/v1/me"), &Value::Null);
    assert_eq!(
        me.status,
        StatusCode::UNAUTHORIZED,
        "the old session is over"
    );
    let now = Entered {
        cookie: said.cookie(),
        csrf: said.body["csrf"].as_str().unwrap().to_owned(),
    };
    let me = of(&daemon, &now, ("GET", "/api/v1/me"), &Value::Null);
    assert_eq!(
        me.body,
        json!({ "name": "admin", "role": "admin", "via": "session", "csrf": now.csrf, "must_change": false })
    );
    assert_eq!(
        of(&daemon, &now, ("GET", "/api/v1/users"), &Value::Null).status,
        StatusCode::OK
    );
    assert_eq!(login(&daemon, "admin", &first).code(), "CWY5020");
}

#[test]
fn who_asks_is_known_by_how_they_came() {
    let daemon = Daemon::start("me");
    let (_, me) = daemon.send("GET", "/api/v1/me", &Value::Null);
    assert_eq!(
        (&me["role"], &me["via"]),
        (&json!("admin"), &json!("socket"))
    );
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", bearer.as_str())];
    let me = ask(&daemon, ("GET", "/api/v1/me"), &headers, &Value::Null).body;
    assert_eq!(
        (&me["name"], &me["via"]),
        (&json!("api.token"), &json!("token_file"))
    );
    let nobody = ask(&daemon, ("GET", "/api/v1/me"), &[], &Value::Null);
    assert_eq!(
        (nobody.status, nobody.code()),
        (StatusCode::UNAUTHORIZED, "CWY5002")
    );
}

#[test]
fn users_are_made_changed_and_deleted_and_survive_a_restart() {
    let daemon = Daemon::start("users");
    make(&daemon, "eve", "viewer");
    let (status, problem) = daemon.send(
        "POST",
        "/api/v1/users",
        &json!({ "name": "Eve", "role": "viewer", "password": NEW }),
    );
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::CONFLICT, &json!("CWY3002"))
    );
    let (status, problem) = daemon.send(
        "POST",
        "/api/v1/users",
        &json!({ "name": "x", "role": "viewer", "password": "short" }),
    );
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (422, &json!("CWY5023"))
    );
    let eve = enter(&daemon, "eve", NEW);
    let (_, after) = daemon.send("PATCH", "/api/v1/users/eve", &json!({ "role": "operator" }));
    assert_eq!(after["role"], "operator");
    let me = of(&daemon, &eve, ("GET", "/api/v1/me"), &Value::Null).body;
    assert_eq!(me["role"], "operator", "at once");
    let token = json!({ "name": "backup", "role": "viewer" });
    let said = of(&daemon, &eve, ("POST", "/api/v1/tokens"), &token);
    assert_eq!(said.status, StatusCode::FORBIDDEN, "an operator");
    let (status, plan) = daemon.send("DELETE", "/api/v1/users/eve?dry_run=true", &Value::Null);
    assert_eq!(
        (status, &plan["changed"]),
        (StatusCode::OK, &json!(false)),
        "{plan}"
    );
    let logins = plan["hits"].as_array().unwrap();
    assert_eq!((logins.len(), &logins[0]["kind"]), (1, &json!("login")));
    let me = of(&daemon, &eve, ("GET", "/api/v1/me"), &Value::Null);
    assert_eq!(me.status, StatusCode::OK, "nothing was done");
    let (status, problem) = daemon.send("DELETE", "/api/v1/users/admin", &Value::Null);
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::CONFLICT, &json!("CWY5025"))
    );
    let (_, users) = daemon.send("GET", "/api/v1/users", &Value::Null);
    assert_eq!(users.as_array().unwrap().len(), 2);
    assert!(!users.to_string().contains("argon2"), "{users}");
    let stored = std::fs::read(daemon.dir.join("state/accounts.json")).unwrap();
    let stored = accounts::Document::read(&stored).unwrap();
    assert_eq!(stored.user("eve").unwrap().role, accounts::Role::Operator);
    daemon.send("DELETE", "/api/v1/users/eve", &Value::Null);
    let (status, _) = daemon.send("GET", "/api/v1/users/eve", &Value::Null);
    assert_eq!(status, StatusCode::NOT_FOUND);
    let me = of(&daemon, &eve, ("GET", "/api/v1/me"), &Value::Null);
    assert_eq!(me.status, StatusCode::UNAUTHORIZED);
}

#[test]
fn of_two_who_change_one_user_the_second_is_refused() {
    let daemon = Daemon::start("users-seen");
    let eve = json!({ "name": "eve", "role": "viewer", "password": NEW });
    daemon.send("POST", "/api/v1/users", &eve);
    let path = "/api/v1/users/eve";
    let seen = daemon.tag_of(path);
    let (status, _) = daemon.change_if("PATCH", path, &seen, &json!({ "role": "operator" }));
    assert_eq!(status, StatusCode::OK);
    for (method, body) in [
        ("PATCH", json!({ "enabled": false })),
        ("DELETE", json!(null)),
    ] {
        let (status, problem) = daemon.change_if(method, path, &seen, &body);
        assert_eq!(
            (status.as_u16(), &problem["code"]),
            (412, &json!("CWY5010"))
        );
    }
    let (_, now) = daemon.send("GET", path, &json!(null));
    assert_eq!(
        (&now["role"], &now["enabled"]),
        (&json!("operator"), &json!(true))
    );
    let seen = daemon.tag_of(path);
    let (status, _) = daemon.change_if("DELETE", path, &seen, &json!(null));
    assert_eq!(status, StatusCode::OK);
}

#[test]
fn a_token_is_shown_once_works_by_its_role_and_not_after_its_deletion() {
    let daemon = Daemon::start("tokens");
    let body = json!({ "name": "backup", "role": "operator", "days": 7 });
    let (status, made) = daemon.send("POST", "/api/v1/tokens", &body);
    assert_eq!(status, StatusCode::OK, "{made}");
    let (id, token) = (
        made["id"].as_str().unwrap(),
        made["token"].as_str().unwrap(),
    );
    let stored = std::fs::read_to_string(daemon.dir.join("state/accounts.json")).unwrap();
    assert!(!stored.contains(token));
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let lun = json!({ "name": "m", "size": "2G" });
    let said = ask(&daemon, ("POST", "/api/v1/luns"), &headers, &lun);
    assert_eq!(said.status, StatusCode::OK, "{}", said.body);
    let path = format!("/api/v1/tokens/{id}");
    let (_, shown) = daemon.send("GET", &path, &Value::Null);
    assert!(shown["last_use"].is_string(), "{shown}");
    assert!(shown.get("token").is_none(), "{shown}");
    assert_eq!(daemon.send("DELETE", &path, &Value::Null).0, StatusCode::OK);
    let said = ask(&daemon, ("GET", "/api/v1/luns"), &headers, &Value::Null);
    assert_eq!(
        said.status,
        StatusCode::UNAUTHORIZED,
        "also where nobody needs one"
    );
    for bad in [
        json!({ "name": "x", "role": "viewer", "days": 0 }),
        json!({ "name": "x", "role": "viewer", "expires": "tomorrow" }),
        json!({ "name": "x", "role": "viewer", "expires": "2020-01-01T00:00:00.000Z" }),
        json!({ "name": "a b", "role": "viewer" }),
    ] {
        let (status, _) = daemon.send("POST", "/api/v1/tokens", &bad);
        assert_eq!(status, StatusCode::BAD_REQUEST, "{bad}");
    }
}

#[test]
fn a_damaged_file_of_accounts_is_not_written_over_and_the_socket_works() {
    let damage = |config: &mut manifest::config::Config| {
        std::fs::create_dir_all(&config.state_dir).unwrap();
        std::fs::write(config.state_dir.join("accounts.json"), "{").unwrap();
    };
    let daemon = Daemon::start_with("damaged", damage, Times::default());
    let said = login(&daemon, "admin", "whatever it was");
    assert_eq!((said.status.as_u16(), said.code()), (503, "CWY5031"));
    let body = json!({ "name": "eve", "role": "admin", "password": NEW });
    let (status, problem) = daemon.send("POST", "/api/v1/users", &body);
    assert_eq!(
        (status.as_u16(), &problem["code"]),
        (503, &json!("CWY5031"))
    );
    let (status, _) = daemon.send("GET", "/api/v1/luns", &Value::Null);
    assert_eq!(status, StatusCode::OK);
    let stored = std::fs::read_to_string(daemon.dir.join("state/accounts.json")).unwrap();
    assert_eq!(stored, "{");
}

#[test]
fn the_token_of_the_file_is_listed_with_its_last_use_and_stays() {
    let daemon = Daemon::start("token-file");
    let listed = || {
        let (_, all) = daemon.send("GET", "/api/v1/tokens", &Value::Null);
        all[0].clone()
    };
    let first = listed();
    assert_eq!(
        (&first["id"], &first["role"]),
        (&json!("api.token"), &json!("admin"))
    );
    assert_eq!(
        (&first["expires"], &first["last_use"]),
        (&Value::Null, &Value::Null)
    );
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("authorization", bearer.as_str())];
    let path = "/api/v1/tokens/api.token";
    let said = ask(&daemon, ("DELETE", path), &headers, &Value::Null);
    assert_eq!(
        (said.status, said.code()),
        (StatusCode::CONFLICT, "CWY3005")
    );
    let hint = said.body["hint"].as_str().unwrap();
    assert!(hint.contains("remove the file and restart"), "{hint}");
    let (_, shown) = daemon.send("GET", path, &Value::Null);
    assert!(shown["last_use"].is_string(), "{shown}");
    assert_eq!(listed(), shown);
}

#[test]
fn an_admin_ends_all_logins_of_a_user_and_a_deletion_says_what_it_hits() {
    let daemon = Daemon::start("endings");
    make(&daemon, "eve", "admin");
    let (one, other) = (enter(&daemon, "eve", NEW), enter(&daemon, "eve", NEW));
    let token = json!({ "name": "backup", "role": "viewer" });
    let made = of(&daemon, &one, ("POST", "/api/v1/tokens"), &token).body;
    let (_, plan) = daemon.send("DELETE", "/api/v1/users/eve?dry_run=true", &Value::Null);
    let kinds: Vec<&str> = plan["hits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["login", "login", "token"], "{plan}");
    let path = format!("/api/v1/tokens/{}", made["id"].as_str().unwrap());
    let (_, plan) = daemon.send("DELETE", &format!("{path}?dry_run=true"), &Value::Null);
    let detail = plan["hits"][0]["detail"].as_str().unwrap();
    assert_eq!(detail, "role viewer, made by eve, never used");
    let path = "/api/v1/users/eve/sessions";
    let (_, plan) = daemon.send("DELETE", &format!("{path}?dry_run=true"), &Value::Null);
    assert_eq!(plan["hits"].as_array().unwrap().len(), 2, "{plan}");
    let (status, done) = daemon.send("DELETE", path, &Value::Null);
    assert_eq!((status, &done["changed"]), (StatusCode::OK, &json!(true)));
    for who in [&one, &other] {
        let me = of(&daemon, who, ("GET", "/api/v1/me"), &Value::Null);
        assert_eq!(me.status, StatusCode::UNAUTHORIZED);
    }
    let (status, _) = daemon.send("DELETE", "/api/v1/users/nobody/sessions", &Value::Null);
    assert_eq!(status, StatusCode::NOT_FOUND);
}
