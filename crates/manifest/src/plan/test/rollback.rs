//! Back to a kept generation.

use super::*;
use crate::objects::Storage;

fn changed(now: &Objects, edit: impl FnOnce(&mut Objects)) -> Objects {
    let mut objects = now.clone();
    edit(&mut objects);
    objects
}

fn back(now: &Objects, then: &Objects) -> Result<Plan, Problem> {
    let edit = Edit::RollBack(Box::new(then.clone()));
    plan(now, &edit, &around(), &mut counting())
}

#[test]
fn objects_that_name_what_the_node_no_longer_has_do_not_come_back() {
    let now = stored();
    let target = changed(&now, |it| {
        it.targets.get_mut("t1").unwrap().portal_group = "storage".into();
    });
    let storage = |storage: Storage| {
        changed(&now, |it| {
            it.luns.get_mut("vm01").unwrap().storage = storage;
        })
    };
    let write_back = storage(Storage {
        cache: Some(CacheMode::WriteBack),
        ..Storage::default()
    });
    let checked = storage(Storage {
        integrity: Some(true),
        ..Storage::default()
    });
    let pool = changed(&now, |it| {
        it.luns.get_mut("vm01").unwrap().backing = Backing::Pool("fast".into());
    });
    let retired = run(&pool, &Edit::Remove(lun("vm01"))).unwrap().after;
    let cases = [
        (
            &now,
            &target,
            "target \"t1\", portal_group: node.toml has no portal group \"storage\"",
        ),
        (
            &now,
            &write_back,
            "lun \"vm01\", cache: pool \"default\" has no journal",
        ),
        (
            &now,
            &checked,
            "lun \"vm01\", integrity: pool \"default\" has no journal",
        ),
        (
            &retired,
            &pool,
            "lun \"vm01\", pool: node.toml has no pool \"fast\"",
        ),
    ];
    for (current, then, wanted) in cases {
        let problem = back(current, then).unwrap_err();
        assert_eq!(problem.code, Code::InvalidObjects);
        let reported = problem.to_string();
        assert!(reported.contains(wanted), "{wanted}: {reported}");
        assert!(problem.hint.contains("restart the daemon"), "{reported}");
        // What is so already is no reason.
        assert_eq!(back(then, then).unwrap().actions, []);
    }
    let (a, b) = (&target, &now);
    assert_eq!(back(a, b).unwrap().after.targets, now.targets);
}
