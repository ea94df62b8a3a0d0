//! Every transition, and what must never happen whatever comes.

mod properties;

use crate::document::ENTRIES_MAX;
use crate::{
    Accounts, Document, Edit, Moment, OpenSession, PasswordHash, Role, SessionTimes, Source, Via,
    new_token, password,
};
use manifest::code::Code;
use manifest::secret::Secret;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use units::{Now, WallClock};

const RIGHT: &str = "correct horse battery";

/// Random bytes that are never the same.
fn random() -> impl FnMut(&mut [u8]) {
    static BEGUN: AtomicU64 = AtomicU64::new(1);
    let mut count = BEGUN.fetch_add(1, Relaxed) << 32;
    move |bytes: &mut [u8]| {
        for byte in bytes {
            count = count
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            *byte = count.to_be_bytes()[0];
        }
    }
}

fn at(seconds: u64) -> Moment {
    Moment {
        steady: Now(seconds * 1_000_000_000),
        wall: WallClock((1_800_000_000 + seconds) * 1_000_000_000),
    }
}

fn secret(text: &str) -> Secret {
    Secret::new(text.as_bytes().to_vec())
}

/// A hash that costs nothing to make; nobody verifies it.
fn some_hash(of: &str) -> PasswordHash {
    let letters: String = of.chars().filter(char::is_ascii_alphanumeric).collect();
    let text = format!("$argon2id$v=19$m=8,t=1,p=1$c29tZSBzYWx0IG9mIG91cnM${letters:a>16}");
    serde_json::from_value(text.into()).unwrap()
}

fn create(name: &str, role: Role) -> Edit {
    Edit::CreateUser {
        name: name.to_owned(),
        role,
        hash: some_hash(name),
        must_change: false,
    }
}

fn set(name: &str) -> Edit {
    Edit::SetUser {
        name: name.to_owned(),
        role: None,
        enabled: None,
        password: None,
    }
}

fn with(edits: &[Edit]) -> Document {
    edits.iter().fold(Document::default(), |document, edit| {
        document.edit(edit, 1).unwrap()
    })
}

fn two() -> Accounts {
    Accounts::new(with(&[
        create("root", Role::Admin),
        create("eve", Role::Viewer),
    ]))
}

fn change(accounts: &mut Accounts, edit: &Edit) {
    let after = accounts.document().edit(edit, 2).unwrap();
    accounts.adopt(after);
}

fn login(accounts: &mut Accounts, name: &str, now: Moment) -> crate::LoggedIn {
    let attempt = accounts.begin_login(name, Source::Local, now).unwrap();
    accounts
        .finish_login(&attempt, true, now, &mut random())
        .ok()
        .unwrap()
}

#[test]
fn a_password_is_verified_by_its_hash_and_no_other_is() {
    let hash = password::hash(&secret(RIGHT), [7; 16]).unwrap();
    assert!(password::verify(&secret(RIGHT), &hash));
    for wrong in ["", "correct horse batterz", "Correct horse battery"] {
        assert!(!password::verify(&secret(wrong), &hash), "{wrong}");
    }
    assert!(!password::verify(&secret(&"a".repeat(2000)), &hash));
    assert_eq!(format!("{hash:?}"), "PasswordHash(..)");
    let other = password::hash(&secret(RIGHT), [8; 16]).unwrap();
    assert_ne!(hash, other, "the salt makes them different");
}

#[test]
fn an_unknown_user_costs_as_much_as_a_known_one_and_gets_the_same_answer() {
    let hash = password::hash(&secret(RIGHT), [7; 16]).unwrap();
    assert_eq!(PasswordHash::of_nobody().cost(), hash.cost());
    let Edit::CreateUser {
        name,
        role,
        must_change,
        ..
    } = create("root", Role::Admin)
    else {
        panic!("it is one");
    };
    let mut accounts = Accounts::new(with(&[Edit::CreateUser {
        name,
        role,
        hash,
        must_change,
    }]));
    let mut answers = Vec::new();
    for name in ["root", "nobody"] {
        let attempt = accounts.begin_login(name, Source::Local, at(0)).unwrap();
        assert_eq!(attempt.hash.cost(), PasswordHash::of_nobody().cost());
        let is_right = password::verify(&secret("wrong"), &attempt.hash);
        let done = accounts.finish_login(&attempt, is_right, at(0), &mut random());
        answers.push(done.err().unwrap());
    }
    assert_eq!(answers[0], answers[1]);
    // Not even one whose password somebody found.
    let attempt = accounts
        .begin_login("nobody", Source::Local, at(0))
        .unwrap();
    let done = accounts.finish_login(&attempt, true, at(0), &mut random());
    assert_eq!(done.err().unwrap().code, Code::LoginFailed);
}

#[test]
fn passwords_that_are_easily_guessed_are_refused_and_not_repeated() {
    for (name, bad) in [
        ("eve", "short"),
        ("eve", "elevenchars"),
        ("administrator", "Administrator"),
        ("root", "rootrootroot"),
        ("eve", "aaaaaaaaaaaaaa"),
        ("eve", &"long".repeat(300)),
    ] {
        let problem = password::check(name, &secret(bad)).unwrap_err();
        assert_eq!(problem.code, Code::PasswordRule, "{bad}");
        assert!(!problem.to_string().contains(bad), "{problem}");
    }
    for good in [RIGHT, "zwölf Zeichen", "пароль длинный"] {
        password::check("eve", &secret(good)).unwrap();
    }
    let made = password::random(&mut random());
    password::check("eve", &made).unwrap();
    assert_eq!(made.len(), 27);
}

#[test]
fn a_login_opens_a_session_with_a_new_cookie_each_time() {
    let mut accounts = two();
    let mut random = random();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..3 {
        let attempt = accounts.begin_login("eve", Source::Local, at(0)).unwrap();
        let done = accounts
            .finish_login(&attempt, true, at(0), &mut random)
            .ok()
            .unwrap();
        assert_eq!(done.principal.via, Via::Session);
        assert!(seen.insert(done.opened.cookie.reveal().to_vec()));
        assert!(seen.insert(done.opened.csrf.reveal().to_vec()));
        let known = accounts.session(&done.opened.cookie, at(1)).unwrap();
        assert_eq!(known.principal, done.principal);
        assert_eq!(known.csrf, done.opened.csrf);
    }
    assert!(
        accounts
            .session(&secret("chosen by a stranger"), at(1))
            .is_none()
    );
}

#[test]
fn a_session_ends_when_it_is_idle_and_at_its_age_however_it_is_used() {
    let times = SessionTimes::default();
    let (idle, life) = (times.idle.as_secs(), times.life.as_secs());
    let mut accounts = two();
    let cookie = login(&mut accounts, "eve", at(0)).opened.cookie;
    assert!(accounts.session(&cookie, at(idle - 1)).is_some());
    assert!(accounts.session(&cookie, at(2 * idle - 1)).is_none());
    assert!(
        accounts.session(&cookie, at(2 * idle - 1)).is_none(),
        "for good"
    );
    let cookie = login(&mut accounts, "eve", at(0)).opened.cookie;
    for used in (0..life).step_by(600) {
        assert!(accounts.session(&cookie, at(used)).is_some(), "{used}");
    }
    assert!(accounts.session(&cookie, at(life)).is_none());
}

#[test]
fn sessions_last_as_long_as_is_said() {
    let times = SessionTimes {
        idle: Duration::from_secs(5),
        life: Duration::from_secs(20),
    };
    let mut accounts = two().with_times(times);
    let cookie = login(&mut accounts, "eve", at(0)).opened.cookie;
    for used in (0..20).step_by(4) {
        assert_eq!(accounts.sessions_of("eve", at(used)).len(), 1, "{used}");
        assert!(accounts.session(&cookie, at(used)).is_some(), "{used}");
    }
    assert_eq!(accounts.sessions_of("eve", at(20)), []);
    assert!(accounts.session(&cookie, at(20)).is_none(), "its life");
    let cookie = login(&mut accounts, "eve", at(30)).opened.cookie;
    assert!(accounts.session(&cookie, at(35)).is_none(), "idle");
}

#[test]
fn the_first_password_is_that_of_the_first_user_until_it_is_changed() {
    let made = |name: &str, must_change| {
        with(&[Edit::CreateUser {
            name: name.to_owned(),
            role: Role::Admin,
            hash: some_hash("any"),
            must_change,
        }])
    };
    assert!(made("admin", true).with_first_password().is_some());
    assert!(made("admin", false).with_first_password().is_none());
    assert!(made("eve", true).with_first_password().is_none());
    let edit = Edit::SetUser {
        name: "admin".to_owned(),
        role: None,
        enabled: None,
        password: Some((some_hash("other"), true)),
    };
    let after = made("admin", true).edit(&edit, 1_000_000).unwrap();
    assert!(
        after.with_first_password().is_none(),
        "set by another admin"
    );
}

#[test]
fn what_is_taken_from_a_user_is_taken_from_their_sessions() {
    for (edit, stays) in [
        (
            Edit::DeleteUser {
                name: "eve".to_owned(),
            },
            None,
        ),
        (
            Edit::SetUser {
                name: "eve".to_owned(),
                role: None,
                enabled: Some(false),
                password: None,
            },
            None,
        ),
        (
            Edit::SetUser {
                name: "eve".to_owned(),
                role: None,
                enabled: None,
                password: Some((some_hash("other"), false)),
            },
            None,
        ),
        (
            Edit::SetUser {
                name: "eve".to_owned(),
                role: Some(Role::Operator),
                enabled: None,
                password: None,
            },
            Some(Role::Operator),
        ),
        (set("root"), Some(Role::Viewer)),
    ] {
        let mut accounts = two();
        let eve = login(&mut accounts, "eve", at(0)).opened.cookie;
        let root = login(&mut accounts, "root", at(0)).opened.cookie;
        change(&mut accounts, &edit);
        let now = accounts
            .session(&eve, at(1))
            .map(|known| known.principal.role);
        assert_eq!(now, stays, "{edit:?}");
        assert!(accounts.session(&root, at(1)).is_some(), "{edit:?}");
    }
    let mut accounts = two();
    let eve = login(&mut accounts, "eve", at(0)).opened.cookie;
    accounts.logout(&eve);
    assert!(accounts.session(&eve, at(1)).is_none());
}

#[test]
fn a_password_that_changes_during_a_login_fails_it() {
    let mut accounts = two();
    let attempt = accounts.begin_login("eve", Source::Local, at(0)).unwrap();
    let mut edit = set("eve");
    if let Edit::SetUser { password, .. } = &mut edit {
        *password = Some((some_hash("other"), false));
    }
    change(&mut accounts, &edit);
    let done = accounts.finish_login(&attempt, true, at(0), &mut random());
    assert_eq!(done.err().unwrap().code, Code::LoginFailed);
    assert_eq!(accounts.sessions(), 0);
}

#[test]
fn a_user_sees_their_own_sessions_and_ends_all_but_the_one_that_asks() {
    let mut accounts = two();
    let mut random = random();
    let mut open = |accounts: &mut Accounts, user: &str, second| {
        let opened = accounts.open_session(user, at(second), &mut random);
        opened.unwrap().cookie
    };
    let first = open(&mut accounts, "eve", 0);
    let second = open(&mut accounts, "eve", 5);
    let other = open(&mut accounts, "root", 6);
    assert!(accounts.session(&first, at(9)).is_some());
    let all = accounts.sessions_with(&second, at(9));
    let seen = |seconds: u64| Now(seconds * 1_000_000_000);
    let wanted = [(5, 5, true), (0, 9, false)].map(|(began, used, is_this)| OpenSession {
        began: seen(began),
        used: seen(used),
        is_this,
    });
    assert_eq!(all, wanted);
    assert_eq!(accounts.end_other_sessions(&second), 1);
    assert!(accounts.session(&first, at(9)).is_none());
    assert!(accounts.session(&second, at(9)).is_some());
    assert!(accounts.session(&other, at(9)).is_some());
    // Whose cookie nobody knows sees and ends nothing.
    assert_eq!(accounts.sessions_with(&first, at(9)), []);
    assert_eq!(accounts.end_other_sessions(&first), 0);
}

#[test]
fn sessions_are_bounded_for_each_user_and_the_oldest_goes() {
    let mut accounts = two();
    let mut random = random();
    let mut open = |accounts: &mut Accounts, second| {
        let attempt = accounts
            .begin_login("eve", Source::Local, at(second))
            .unwrap();
        let done = accounts.finish_login(&attempt, true, at(second), &mut random);
        done.ok().unwrap().opened.cookie
    };
    let cookies: Vec<Secret> = (0..20).map(|second| open(&mut accounts, second)).collect();
    assert_eq!(accounts.sessions(), 16);
    assert!(accounts.session(&cookies[3], at(21)).is_none());
    assert!(accounts.session(&cookies[4], at(21)).is_some());
}

#[test]
fn the_last_admin_can_be_neither_deleted_nor_demoted_nor_disabled() {
    let document = with(&[create("root", Role::Admin), create("eve", Role::Operator)]);
    let mut edits = vec![Edit::DeleteUser {
        name: "root".to_owned(),
    }];
    for (new_role, on) in [(Some(Role::Operator), None), (None, Some(false))] {
        let mut edit = set("root");
        if let Edit::SetUser { role, enabled, .. } = &mut edit {
            (*role, *enabled) = (new_role, on);
        }
        edits.push(edit);
    }
    for edit in edits {
        assert_eq!(
            document.edit(&edit, 2).unwrap_err().code,
            Code::LastAdmin,
            "{edit:?}"
        );
        let two = document.edit(&create("other", Role::Admin), 2).unwrap();
        two.edit(&edit, 2).unwrap();
    }
}

#[test]
fn a_token_works_until_its_end_and_shows_when_it_was_used() {
    let mut accounts = two();
    let made = new_token(&mut random());
    assert_eq!(made.secret.len(), 68);
    let end = at(100).seconds();
    let edit = Edit::CreateToken {
        id: made.id.clone(),
        name: "backup".to_owned(),
        role: Role::Operator,
        hash: made.hash,
        created_by: "root".to_owned(),
        expires: Some(end),
    };
    change(&mut accounts, &edit);
    let stored = String::from_utf8(accounts.document().write()).unwrap();
    assert!(!stored.contains(made.secret.reveal_text().unwrap()));
    assert!(accounts.token(&secret(&stored), at(1)).is_none());
    assert!(accounts.uses_to_store().is_none());
    let who = accounts.token(&made.secret, at(99)).unwrap();
    assert_eq!(
        (who.name.as_str(), who.role, who.via),
        ("backup", Role::Operator, Via::Token)
    );
    let token = &accounts.document().tokens[0];
    assert_eq!(accounts.last_use(token), Some(at(99).seconds()));
    let use_of_it = accounts.uses_to_store().unwrap();
    change(&mut accounts, &use_of_it);
    assert!(accounts.uses_to_store().is_none(), "it is stored");
    assert_eq!(
        accounts.document().tokens[0].last_use,
        Some(at(99).seconds())
    );
    assert!(
        accounts.token(&made.secret, at(100)).is_none(),
        "it is over"
    );
    change(&mut accounts, &Edit::DeleteToken { id: made.id });
    assert!(accounts.token(&made.secret, at(1)).is_none(), "it is gone");
}

#[test]
fn guessing_is_slow_for_a_user_and_for_an_address_and_a_stranger_cannot_lock_anybody_out_for_long()
{
    let mut accounts = two();
    let source = |number: u32| Source::V4(number);
    // From many addresses at one user.
    let mut tries = 0;
    for second in 0..3600 {
        if accounts
            .begin_login("eve", source(second), at(second.into()))
            .is_ok()
        {
            tries += 1;
        }
    }
    assert!((100..200).contains(&tries), "{tries} in an hour");
    let now = at(3600 + 31);
    assert!(
        accounts.begin_login("eve", source(9999), now).is_ok(),
        "30 s are the longest"
    );
    // From one address at many users.
    let mut accounts = two();
    let mut tries = 0;
    for second in 0..3600_u32 {
        let name = format!("user{second}");
        if accounts
            .begin_login(&name, source(1), at(second.into()))
            .is_ok()
        {
            tries += 1;
        }
    }
    assert!((10..30).contains(&tries), "{tries} in an hour");
    let other = accounts.begin_login("eve", source(2), at(3600));
    assert!(other.is_ok(), "others do not wait for it");
}

#[test]
fn many_attempts_at_once_are_no_way_around_the_throttle() {
    let mut accounts = two();
    let began = (0..100).filter(|_| accounts.begin_login("eve", Source::Local, at(0)).is_ok());
    assert!(began.count() <= 6);
}

#[test]
fn a_right_password_ends_the_waiting_of_its_user_only() {
    let mut accounts = two();
    let from = Source::V4(1);
    for _ in 0..4 {
        accounts.begin_login("eve", from, at(0)).unwrap();
    }
    for _ in 0..20 {
        let attempt = accounts.begin_login("root", Source::V4(2), at(0)).unwrap();
        accounts
            .finish_login(&attempt, true, at(0), &mut random())
            .ok()
            .unwrap();
    }
    // Somebody guesses, and logs in as themselves in between.
    let mut accounts = two();
    let mut guesses = 0;
    for round in 0..100 {
        let name = format!("victim{round}");
        guesses += u32::from(accounts.begin_login(&name, from, at(0)).is_ok());
        if let Ok(attempt) = accounts.begin_login("root", from, at(0)) {
            let _ = accounts.finish_login(&attempt, true, at(0), &mut random());
        }
    }
    assert!(guesses <= 12, "{guesses}");
}

#[test]
fn an_ipv6_network_is_one_source() {
    let source = |text: &str| Source::from(text.parse::<std::net::IpAddr>().unwrap());
    assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:1"));
    assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
    assert_eq!(source("::ffff:10.0.0.1"), source("10.0.0.1"));
}

#[test]
fn what_strangers_make_it_remember_is_bounded_and_does_not_push_out_who_is_guessed() {
    let mut accounts = two();
    for _ in 0..6 {
        let _ = accounts.begin_login("eve", Source::V4(0), at(0));
    }
    for number in 1..6_000_u32 {
        let name = "x".repeat(10_000) + &number.to_string();
        let _ = accounts.begin_login(&format!("{number}{name}"), Source::V4(number), at(0));
    }
    let (users, sources) = accounts.throttled();
    assert!(users <= 4096 && sources <= 4096, "{users} {sources}");
    assert!(
        accounts
            .begin_login("eve", Source::V4(77_777), at(0))
            .is_err()
    );
}

#[test]
fn names_that_are_no_names_make_no_user() {
    let document = with(&[create("root", Role::Admin)]);
    for hostile in [
        "",
        " ",
        "a b",
        "../../etc/passwd",
        "a\nb",
        "a\0b",
        "<script>",
        "a\u{202e}b",
        "rооt",
        ".hidden",
        "-rf",
        &"a".repeat(64),
    ] {
        let refused = document
            .edit(&create(hostile, Role::Viewer), 2)
            .unwrap_err();
        assert_eq!(refused.code, Code::BadRequest, "{hostile:?}");
    }
    let again = document.edit(&create("ROOT", Role::Viewer), 2).unwrap_err();
    assert_eq!(again.code, Code::AlreadyExists);
    let first = Document::default().edit(&create("eve", Role::Viewer), 2);
    assert!(first.is_err(), "the first one is an admin");
}

#[test]
fn a_document_that_is_damaged_or_of_another_version_is_refused_without_showing_it() {
    let good = with(&[create("root", Role::Admin), create("eve", Role::Viewer)]);
    assert_eq!(Document::read(&good.write()).unwrap(), good);
    let text = String::from_utf8(good.write()).unwrap();
    for (from, to) in [
        ("\"schema\": 1", "\"schema\": 2"),
        ("\"root\"", "\"eve\""),
        ("\"root\"", "\"a b\""),
        ("$argon2id$", "$md5$"),
        ("\"admin\"", "\"viewer\""),
        ("\"admin\"", "\"king\""),
        ("\"enabled\"", "\"enabeld\""),
        ("{", ""),
    ] {
        let bad = text.replacen(from, to, 1);
        assert_ne!(bad, text, "{from}");
        let problem = Document::read(bad.as_bytes()).unwrap_err();
        assert_eq!(problem.code, Code::AccountsDamaged, "{from} {to}");
        assert!(!problem.to_string().contains("argon2"), "{problem}");
    }
}

#[test]
fn users_and_tokens_are_bounded() {
    let mut document = with(&[create("root", Role::Admin)]);
    for number in 1..ENTRIES_MAX {
        let edit = create(&format!("u{number}"), Role::Viewer);
        document = document.edit(&edit, 1).unwrap();
    }
    assert!(document.edit(&create("more", Role::Viewer), 1).is_err());
}

#[test]
fn the_use_of_the_token_of_the_file_outlives_a_restart_and_is_of_that_token_alone() {
    let (mine, other) = (secret("of the file"), secret("of another file"));
    let mut accounts = two();
    accounts.use_file_token(at(1));
    assert_eq!(accounts.file_token_use(), None, "there is none");
    accounts.know_file_token(&mine);
    assert_eq!(accounts.file_token_use(), None);
    assert!(accounts.uses_to_store().is_none());
    accounts.use_file_token(at(7));
    let edit = accounts.uses_to_store().unwrap();
    change(&mut accounts, &edit);
    accounts.use_file_token(at(8));
    assert!(accounts.uses_to_store().is_none(), "not each request is");
    let stored = accounts.document().write();
    assert!(!String::from_utf8_lossy(&stored).contains("of the file"));
    let mut again = Accounts::new(Document::read(&stored).unwrap());
    again.know_file_token(&mine);
    assert_eq!(again.file_token_use(), Some(at(7).seconds()));
    again.use_file_token(at(400));
    assert!(again.uses_to_store().is_some());
    again.know_file_token(&other);
    assert_eq!(again.file_token_use(), None, "another one");
}

#[test]
fn whose_token_it_was_is_known_while_an_ended_one_is_listed() {
    let mut accounts = two();
    let made = new_token(&mut |bytes| bytes.fill(7));
    let edit = Edit::CreateToken {
        id: made.id.clone(),
        name: "backup".to_owned(),
        role: Role::Operator,
        hash: made.hash,
        created_by: "root".to_owned(),
        expires: Some(at(50).seconds()),
    };
    change(&mut accounts, &edit);
    assert!(accounts.token(&made.secret, at(51)).is_none());
    let known = accounts.token_that_was(&made.secret).unwrap();
    assert_eq!(known.name, "backup");
    assert!(accounts.token_that_was(&secret("none")).is_none());
}
