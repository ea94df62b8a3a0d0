//! What holds for any order of events, and for any bytes.

use super::{at, create, random, secret, some_hash, two};
use crate::{Accounts, Document, Edit, PasswordHash, Role, SessionTimes, Source};
use manifest::secret::Secret;
use proptest::prelude::*;
use std::time::Duration;

#[derive(Clone, Debug)]
enum Step {
    Edit(Edit),
    Login(usize),
    Use(usize),
    Logout(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let name = || (0..4_usize).prop_map(|number| ["a", "b", "c", "d"][number].to_owned());
    let role = || (0..3_usize).prop_map(|number| Role::ALL[number]);
    prop_oneof![
        (name(), role()).prop_map(|(name, role)| Step::Edit(create(&name, role))),
        name().prop_map(|name| Step::Edit(Edit::DeleteUser { name })),
        (
            name(),
            proptest::option::of(role()),
            any::<Option<bool>>(),
            any::<Option<u8>>()
        )
            .prop_map(|(name, role, enabled, new)| {
                let password = new.map(|new| (some_hash(&new.to_string()), false));
                Step::Edit(Edit::SetUser {
                    name,
                    role,
                    enabled,
                    password,
                })
            }),
        (0..4_usize).prop_map(Step::Login),
        (0..20_usize).prop_map(Step::Use),
        (0..20_usize).prop_map(Step::Logout),
        (0..3000_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Compared with a list of what every cookie stands for.
    #[test]
    fn a_cookie_works_exactly_as_long_as_its_user_password_and_times_allow(
        steps in proptest::collection::vec(step(), 1..80)
    ) {
        let mut accounts = Accounts::default();
        let mut random = random();
        let mut now = 0;
        // Cookie, user, hash at the login, when it was opened and used; `false`: it is over.
        let mut model: Vec<(Secret, String, PasswordHash, u64, u64, bool)> = Vec::new();
        for step in steps {
            match step {
                Step::Edit(edit) => {
                    if let Ok(after) = accounts.document().edit(&edit, 1) {
                        prop_assert!(after.users.is_empty() || after.has_admin());
                        prop_assert_eq!(&Document::read(&after.write()).unwrap(), &after);
                        for entry in &mut model {
                            let user = after.user(&entry.1).filter(|user| user.enabled);
                            entry.5 &= user.is_some_and(|user| user.hash == entry.2);
                        }
                        accounts.adopt(after);
                    }
                }
                Step::Login(who) => {
                    let name = ["a", "b", "c", "d"][who];
                    let Ok(attempt) = accounts.begin_login(name, Source::Local, at(now)) else {
                        continue;
                    };
                    let user = accounts.document().user(name).filter(|user| user.enabled).cloned();
                    let done = accounts.finish_login(&attempt, true, at(now), &mut random);
                    prop_assert_eq!(done.is_ok(), user.is_some());
                    if let (Ok(done), Some(user)) = (done, user) {
                        model.push((done.opened.cookie, user.name, user.hash, now, now, true));
                    }
                }
                Step::Use(number) => {
                    let count = model.len().max(1);
                    if let Some(entry) = model.get_mut(number % count) {
                        let idle = Duration::from_secs(now - entry.4) >= SessionTimes::default().idle;
                        let old = Duration::from_secs(now - entry.3) >= SessionTimes::default().life;
                        entry.5 &= !idle && !old;
                        let known = accounts.session(&entry.0, at(now));
                        prop_assert_eq!(known.is_some(), entry.5);
                        entry.4 = now;
                    }
                }
                Step::Logout(number) => {
                    let count = model.len().max(1);
                    if let Some(entry) = model.get_mut(number % count) {
                        accounts.logout(&entry.0);
                        entry.5 = false;
                    }
                }
                Step::Wait(seconds) => now += seconds,
            }
        }
    }

    #[test]
    fn any_bytes_as_a_document_or_a_name_are_answered(
        bytes in proptest::collection::vec(any::<u8>(), 0..200), name in ".*", cookie in ".*"
    ) {
        let _ = Document::read(&bytes);
        let mut accounts = two();
        let attempt = accounts.begin_login(&name, Source::Local, at(0)).unwrap();
        let known = ["root", "eve"].contains(&name.as_str());
        let done = accounts.finish_login(&attempt, true, at(0), &mut random());
        prop_assert_eq!(done.is_ok(), known);
        prop_assert!(accounts.session(&secret(&cookie), at(0)).is_none());
        prop_assert!(accounts.token(&secret(&cookie), at(0)).is_none());
    }
}
