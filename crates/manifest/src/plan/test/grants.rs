//! The grants of LUNs that were removed.

use super::*;

#[test]
fn a_restored_lun_has_its_grants_again_unless_their_number_or_host_is_gone() {
    let now = stored();
    let restore = Edit::Restore("vm01".to_owned());
    let removed = run(&now, &Edit::Remove(lun("vm01"))).unwrap().after;
    assert_eq!(removed.removed_grants.len(), 1);
    let back = run(&removed, &restore).unwrap();
    assert_eq!((&back.after, back.notices.len()), (&now, 0));

    // They follow the names of what they tie together.
    let renamed = Edit::Rename {
        subject: Subject {
            section: Section::Host,
            name: "esx01".to_owned(),
        },
        to: "esx09".to_owned(),
    };
    let renamed = run(&removed, &renamed).unwrap().after;
    let back = run(&renamed, &restore).unwrap().after;
    assert!(
        back.grants
            .keys()
            .any(|key| key.to_string() == "esx09:t1:vm01")
    );

    // Another LUN has the number now.
    let mut set = lab();
    set.lun.remove(0);
    set.grant.remove(0);
    set.grant[0].lun_id = Some(now.grants.values().next().unwrap().lun_id);
    let taken = run(&removed, &apply(set)).unwrap().after;
    let back = run(&taken, &restore).unwrap();
    assert_eq!(back.after.grants, taken.grants);
    assert!(
        back.notices[0].contains("number 0 is LUN vm02's now"),
        "{:?}",
        back.notices
    );

    // A host that goes takes what waits for it along, and so does a purge.
    let host = Subject {
        section: Section::Host,
        name: "esx01".to_owned(),
    };
    let without = run(&removed, &Edit::Remove(host)).unwrap().after;
    assert!(without.removed_grants.is_empty());
    let purged = run(&removed, &Edit::Purge("vm01".to_owned()))
        .unwrap()
        .after;
    assert!(purged.removed_grants.is_empty());
}

#[test]
fn a_removed_lun_that_is_applied_has_its_grants_again_and_which_have_not_is_reported() {
    let now = stored();
    let removed = run(&now, &Edit::Remove(lun("vm02"))).unwrap().after;
    let mut alone = lab();
    alone.grant.clear();
    let back = run(&removed, &apply(alone.clone())).unwrap();
    assert_eq!((&back.after, back.notices.len()), (&now, 0));
    let grant = "create grant esx01:t1:vm02: number 1".to_owned();
    assert!(reported(&back).contains(&grant), "{:?}", reported(&back));

    // One that is wanted without a number has the one that it had, also where a lower one is free.
    let without = run(&removed, &Edit::Remove(lun("vm01"))).unwrap().after;
    let mut second = lab();
    second.lun.remove(0);
    second.grant.remove(0);
    let back = run(&without, &apply(second)).unwrap();
    assert!(reported(&back).contains(&grant), "{:?}", reported(&back));

    // With --prune, what is not wanted goes, and is named.
    let prune = |set| Edit::Apply { set, prune: true };
    let back = run(&removed, &prune(alone)).unwrap();
    assert!(back.after.grants.is_empty());
    assert_eq!(
        back.notices,
        [
            "grant esx01:t1:vm02 does not come back: it is not among what is wanted; causeway grant create esx01 vm02 --target t1"
        ]
    );

    // Another LUN has the number now.
    let mut taken = lab();
    taken.grant.pop();
    taken.grant[0].lun_id = Some(1);
    let back = run(&removed, &apply(taken)).unwrap();
    assert!(
        back.notices[0].contains("number 1 is LUN vm01's now"),
        "{:?}",
        back.notices
    );

    // A host or target that goes says which it takes along.
    for (section, name) in [(Section::Host, "esx01"), (Section::Target, "t1")] {
        let subject = Subject {
            section,
            name: name.to_owned(),
        };
        let gone = run(&removed, &Edit::Remove(subject)).unwrap();
        let reported = format!(
            "grant esx01:t1:vm02, which waits for `lun restore vm02`, goes with {section} {name}"
        );
        assert_eq!(gone.notices, [reported]);
    }
    let purged = run(&removed, &Edit::Purge("vm02".to_owned())).unwrap();
    assert_eq!(purged.notices, Vec::<String>::new());
}

#[test]
fn a_lun_with_copies_is_shown_where_each_node_has_room_for_its_port() {
    let mut now = stored();
    let target = now.targets.get_mut("t1").unwrap();
    target.relative_port = 1024;
    let vm02 = now.luns.get_mut("vm02").unwrap();
    vm02.storage.copies = Some(crate::objects::NodeNames::of(["san-a", "san-b"]).unwrap());
    let mut set = lab();
    set.lun.clear();
    let again = apply(set);
    let refused = run(&now, &again).unwrap_err().to_string();
    assert!(refused.contains("identifier 1024"), "{refused}");
    now.targets.get_mut("t1").unwrap().relative_port = 1023;
    run(&now, &again).unwrap();

    // Identifiers of targets stay small as long as that can be.
    let free = |now: &Objects, id: u64| now.free_relative_port(id);
    assert_eq!(free(&now, 7), Some(7));
    assert_eq!(
        (free(&now, 2000), free(&now, u64::MAX)),
        (Some(1022), Some(1))
    );
    for port in 1..=1023 {
        let target = fixture_target(port);
        now.targets.insert(format!("t{port}"), target);
    }
    assert_eq!(free(&now, 2000), Some(2000));
}

fn fixture_target(port: u16) -> crate::objects::Target {
    crate::objects::Target {
        relative_port: port,
        ..crate::objects::fixture::target(&format!("iqn.2026-11.io.causeway:t{port}"))
    }
}
