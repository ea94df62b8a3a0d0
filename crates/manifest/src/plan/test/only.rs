//! Parts of a set.

use super::*;
use crate::plan::export_only;

fn subject(text: &str) -> Subject {
    text.parse().unwrap()
}

fn only(set: &ObjectSet, prune: bool, what: &[&str]) -> Edit {
    let only = what.iter().map(|text| subject(text)).collect();
    let set = set.clone();
    Edit::ApplyOnly { set, only, prune }
}

/// Two targets that share a host and a LUN.
fn two() -> ObjectSet {
    let through = |target: &str, host: &str, lun: &str| GrantSpec {
        target: Some(target.to_owned()),
        ..grant(host, lun)
    };
    let mut second = host("esx02");
    second.iqn = vec!["iqn.1998-01.com.vmware:esx02".to_owned()];
    ObjectSet {
        lun: ["vm01", "vm02", "vm03"]
            .map(|name| LunSpec::new(name, gib(1)))
            .to_vec(),
        target: vec![target("t1"), target("t2")],
        host: vec![host("esx01"), second],
        grant: vec![
            through("t1", "esx01", "vm01"),
            through("t1", "esx02", "vm02"),
            through("t2", "esx01", "vm01"),
            through("t2", "esx01", "vm03"),
        ],
    }
}

fn names(set: &ObjectSet) -> Vec<String> {
    let luns = set.lun.iter().map(|it| it.name.clone());
    let targets = set.target.iter().map(|it| it.name.clone());
    let hosts = set.host.iter().map(|it| it.name.clone());
    let grants = set.grant.iter().map(|it| {
        let target = it.target.as_deref().unwrap_or("?");
        format!("{}:{target}:{}", it.host, it.lun)
    });
    luns.chain(targets).chain(hosts).chain(grants).collect()
}

#[test]
fn one_target_is_saved_with_all_that_it_needs_and_comes_back_on_an_empty_node() {
    let now = run(&Objects::default(), &apply(two())).unwrap().after;
    let saved = export_only(&export(&now), &[subject("target=t2")]).unwrap();
    assert_eq!(
        names(&saved),
        [
            "vm01",
            "vm03",
            "t2",
            "esx01",
            "esx01:t2:vm01",
            "esx01:t2:vm03"
        ]
    );
    let back = run(&Objects::default(), &apply(saved.clone()))
        .unwrap()
        .after;
    assert_eq!(export(&back), saved);
    let same = run(&now, &apply(saved)).unwrap();
    assert_eq!(reported(&same), Vec::<String>::new());
    let error = export_only(&export(&now), &[subject("target=t3")]).unwrap_err();
    assert_eq!(error.code, Code::NotFound);
}

#[test]
fn what_only_grants_name_is_made_where_it_lacks_and_left_as_it_is_elsewhere() {
    let now = run(&Objects::default(), &apply(two())).unwrap().after;
    let mut file = two();
    file.lun[0].size = gib(4);
    file.target[1].maintenance = true;
    let plan = run(&now, &only(&file, false, &["target=t2"])).unwrap();
    assert_eq!(reported(&plan).len(), 1, "{:?}", reported(&plan));
    assert!(plan.after.targets["t2"].maintenance);
    assert_eq!(plan.after.luns["vm01"].size, gib(1));
    let both = ["target=t2", "lun=vm01"];
    let plan = run(&now, &only(&file, false, &both)).unwrap();
    assert_eq!(plan.after.luns["vm01"].size, gib(4));
}

#[test]
fn with_prune_only_that_part_loses_what_the_file_does_not_have() {
    let now = run(&Objects::default(), &apply(two())).unwrap().after;
    let mut file = two();
    file.grant.retain(|grant| grant.lun != "vm03");
    file.lun.retain(|lun| lun.name != "vm02");
    let plan = run(&now, &only(&file, true, &["target=t2"])).unwrap();
    assert_eq!(reported(&plan), ["remove grant esx01:t2:vm03"]);
    file.target.pop();
    file.grant.truncate(1);
    let plan = run(&now, &only(&file, true, &["target=t2"])).unwrap();
    let gone = reported(&plan);
    assert_eq!(gone.len(), 3, "t2 and its two grants: {gone:?}");
    let kept = run(&now, &only(&file, true, &["lun=vm02"])).unwrap();
    assert!(kept.after.removed.contains_key("vm02"), "with its data");
    let error = run(&now, &only(&file, false, &["target=t2"])).unwrap_err();
    assert_eq!(error.code, Code::NotFound, "without prune it must be there");
}

#[test]
fn nothing_else_changes_whatever_part_is_taken() {
    let now = run(&Objects::default(), &apply(two())).unwrap().after;
    let mut file = two();
    for lun in &mut file.lun {
        lun.size = gib(2);
    }
    for target in &mut file.target {
        target.maintenance = true;
    }
    for grant in &mut file.grant {
        grant.read_only = true;
    }
    file.grant.remove(1);
    for what in [
        "lun=vm01",
        "lun=vm02",
        "target=t1",
        "target=t2",
        "host=esx01",
        "grant=esx01:t2:vm01",
    ] {
        let one = subject(what);
        let mut after = run(&now, &only(&file, true, &[what])).unwrap().after;
        let name = &one.name;
        let is_its = |key: &GrantKey| {
            [&key.lun, &key.target, &key.host].contains(&name) || key.to_string() == *name
        };
        let changed = after != now;
        // Without what was meant all is as it was.
        let mut before = now.clone();
        for objects in [&mut before, &mut after] {
            objects.luns.remove(name);
            objects.targets.remove(name);
            objects.grants.retain(|key, _| !is_its(key));
        }
        assert!(changed, "{what}");
        assert_eq!(after, before, "{what}");
    }
}

#[test]
fn what_is_no_kind_of_object_is_named_with_what_would_be_right() {
    for (text, hint) in [
        ("targets=t1", "did you mean \"target\""),
        ("target", "write KIND=NAME"),
        ("target=", "write KIND=NAME"),
    ] {
        let error = text.parse::<Subject>().unwrap_err();
        assert!(error.contains(hint), "{error}");
    }
}
