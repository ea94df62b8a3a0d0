//! What lies in a pool, and what may not be put into one that goes.

use super::*;

#[test]
fn what_lies_in_a_pool_is_named_with_who_uses_it_and_what_was_deleted_too() {
    let objects = stored();
    let mut deleted = objects.clone();
    let lun = deleted.luns.remove("vm02").unwrap();
    deleted.removed.insert("vm02".to_owned(), lun);
    let lies = lies_in(&deleted, "default", &[session(7)]);
    assert_eq!(lies.len(), 2, "{lies:?}");
    assert!(
        lies[0].starts_with("LUN vm01, ") && lies[0].ends_with(": logged in: esx01"),
        "{lies:?}"
    );
    assert!(
        lies[1].contains("vm02") && lies[1].contains("lun purge vm02"),
        "{lies:?}"
    );
    assert_eq!(
        lies_in(&deleted, "other", &[session(7)]),
        Vec::<String>::new()
    );
    let lies = lies_in(&objects, "default", &[]);
    assert!(lies[0].ends_with("no host is logged in"), "{lies:?}");
}

#[test]
fn a_pool_that_goes_gets_no_lun_and_keeps_those_that_it_has() {
    let before = stored();
    let going = |pool: &str| BTreeSet::from([pool.to_owned()]);
    let mut after = before.clone();
    let mut lun = after.luns["vm02"].clone();
    // Renamed, deleted and back in service: it lay there before.
    let gone = after.luns.remove("vm02").unwrap();
    after.luns.insert("other".to_owned(), gone.clone());
    assert_eq!(none_in(&going("default"), &before, &after), Ok(()));
    let mut deleted = before.clone();
    let removed = deleted.luns.remove("vm02").unwrap();
    deleted.removed.insert("vm02".to_owned(), removed);
    assert_eq!(none_in(&going("default"), &deleted, &before), Ok(()));
    lun.naa = "62ca5e0000000000000000000000000f".to_owned();
    after.luns.insert("new".to_owned(), lun);
    let problem = none_in(&going("default"), &before, &after).unwrap_err();
    assert_eq!(problem.code, Code::PoolGoes);
    assert!(
        problem
            .detail
            .starts_with("LUN new would lie in pool default,"),
        "{problem}"
    );
    assert_eq!(none_in(&going("fast"), &before, &after), Ok(()));
    assert_eq!(none_in(&BTreeSet::new(), &before, &after), Ok(()));
}
