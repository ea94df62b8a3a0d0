use super::*;
use crate::objects::{
    BackendSpec, Backing, CacheMode, ChapSpec, GrantKey, GrantSpec, HostSpec, LunSpec, Redirect,
    SecretSpec, Storage, TargetSpec, VOLATILE_RISK, export,
};
use crate::secret::Secret;
use crate::size::Size;
use std::collections::{BTreeMap, BTreeSet};

fn gib(n: u64) -> Size {
    Size::from_bytes(n << 30).unwrap()
}

/// Never the same bytes twice in one test, as from the system.
fn counting() -> impl FnMut(&mut [u8]) {
    thread_local!(static NEXT: std::cell::Cell<u64> = const { std::cell::Cell::new(0) });
    move |bytes| {
        let count = NEXT.replace(NEXT.get() + 1);
        bytes.fill(0x5a);
        bytes[..8].copy_from_slice(&count.to_be_bytes());
        let end = bytes.len() - 8;
        bytes[end..].copy_from_slice(&count.to_be_bytes());
    }
}

fn around() -> Surroundings {
    Surroundings {
        pools: vec!["default".to_owned()],
        journals: Vec::new(),
        stable: Vec::new(),
        portal_groups: vec!["default".to_owned()],
        portals: vec![("default".to_owned(), "192.0.2.1:3260".parse().unwrap())],
        sessions: Vec::new(),
        seen_larger: BTreeMap::new(),
    }
}

fn host(name: &str) -> HostSpec {
    HostSpec {
        name: name.to_owned(),
        iqn: vec![format!("iqn.1998-01.com.vmware:{name}")],
        chap: None,
        bytes_in_flight_max: None,
    }
}

fn target(name: &str) -> TargetSpec {
    TargetSpec::new(name)
}

fn grant(host: &str, lun: &str) -> GrantSpec {
    GrantSpec {
        host: host.to_owned(),
        lun: lun.to_owned(),
        target: None,
        lun_id: None,
        read_only: false,
    }
}

fn change(current: &Objects, spec: LunSpec, around: &Surroundings) -> Result<Plan, Problem> {
    let edit = Edit::Set(ObjectSet {
        lun: vec![spec],
        ..ObjectSet::default()
    });
    plan(current, &edit, around, &mut counting())
}

/// Writes that are kept so.
fn kept(cache: Option<CacheMode>) -> Storage {
    Storage {
        cache,
        ..Storage::default()
    }
}

#[test]
fn a_lun_becomes_volatile_only_when_it_is_forced_and_the_risk_is_named() {
    let edit = Edit::Apply {
        set: lab(),
        prune: false,
    };
    let made = plan(&Objects::default(), &edit, &around(), &mut counting()).unwrap();
    assert_eq!(
        made.after.luns["vm01"].storage.cache, None,
        "as it always was"
    );
    let with = |cache| LunSpec {
        storage: kept(Some(cache)),
        ..LunSpec::new("vm01", gib(1))
    };
    let safe = change(&made.after, with(CacheMode::WriteThrough), &around()).unwrap();
    assert_eq!(safe.refusal(), None);
    assert_eq!(
        safe.actions[0].to_string(),
        "change lun vm01: cache from volatile to write-through"
    );
    let risky = change(&safe.after, with(CacheMode::Volatile), &around()).unwrap();
    let refusal = risky.refusal().unwrap();
    assert_eq!(refusal.code, Code::WouldRiskData);
    assert!(refusal.detail.contains(VOLATILE_RISK), "{refusal}");
    let same = change(&risky.after, with(CacheMode::Volatile), &around()).unwrap();
    assert_eq!((same.actions, same.after), (Vec::new(), risky.after));
}

#[test]
fn a_lun_is_made_volatile_only_when_it_is_forced_but_not_where_its_pool_has_nothing_else() {
    let journaled = Surroundings {
        journals: vec!["default".to_owned()],
        ..around()
    };
    let set = |cache| ObjectSet {
        lun: vec![LunSpec {
            storage: kept(cache),
            ..LunSpec::new("vm01", gib(1))
        }],
        ..ObjectSet::default()
    };
    let made = |edit: &Edit, around: &Surroundings| {
        plan(&Objects::default(), edit, around, &mut counting()).unwrap()
    };
    for around in [around(), journaled] {
        let volatile = set(Some(CacheMode::Volatile));
        let prune = false;
        let applied = Edit::Apply {
            set: volatile.clone(),
            prune,
        };
        for edit in [Edit::Create(volatile), applied] {
            let refusal = made(&edit, &around).refusal().unwrap();
            assert_eq!(refusal.code, Code::WouldRiskData);
            let reported = &refusal.detail;
            assert!(reported.contains("create lun vm01"), "{reported}");
            assert!(reported.contains(VOLATILE_RISK), "{reported}");
        }
        for cache in [None, Some(CacheMode::WriteThrough)] {
            let made = made(&Edit::Create(set(cache)), &around);
            assert_eq!(made.refusal(), None, "{cache:?}");
            let reported = made.actions[0].to_string();
            assert!(!reported.contains("volatile"), "{reported}");
        }
    }
}

#[test]
fn a_volatile_lun_that_comes_back_into_service_was_confirmed_before() {
    let volatile = Edit::Create(ObjectSet {
        lun: vec![LunSpec {
            storage: kept(Some(CacheMode::Volatile)),
            ..LunSpec::new("vm01", gib(1))
        }],
        ..ObjectSet::default()
    });
    let mut now = Objects::default();
    let subject = Subject {
        section: Section::Lun,
        name: "vm01".to_owned(),
    };
    for edit in [volatile, Edit::Remove(subject)] {
        now = plan(&now, &edit, &around(), &mut counting()).unwrap().after;
    }
    let back = Edit::Restore("vm01".to_owned());
    let back = plan(&now, &back, &around(), &mut counting()).unwrap();
    assert_eq!(back.refusal(), None);
    assert!(back.after.luns["vm01"].is_volatile());
}

#[test]
fn storage_fields_go_into_an_export_and_back_and_what_is_left_out_stays() {
    let mut luns = BTreeMap::new();
    let edit = Edit::Apply {
        set: lab(),
        prune: false,
    };
    let mut objects = plan(&Objects::default(), &edit, &around(), &mut counting())
        .unwrap()
        .after;
    std::mem::swap(&mut luns, &mut objects.luns);
    for lun in luns.values_mut() {
        lun.storage.cache = Some(CacheMode::WriteThrough);
    }
    objects.luns = luns;
    let export = Edit::Apply {
        set: export(&objects),
        prune: true,
    };
    let again = plan(&objects, &export, &around(), &mut counting()).unwrap();
    assert_eq!(again.actions, []);
    let kept = change(&objects, LunSpec::new("vm01", gib(1)), &around()).unwrap();
    assert_eq!(kept.after, objects);
}

#[test]
fn in_a_pool_with_a_journal_new_luns_are_write_back_and_those_without_stay_as_they_are() {
    let mut with_journal = around();
    with_journal.journals = with_journal.pools.clone();
    let edit = Edit::Apply {
        set: lab(),
        prune: false,
    };
    let made = plan(&Objects::default(), &edit, &with_journal, &mut counting()).unwrap();
    let mode = |objects: &Objects| objects.luns["vm01"].storage.cache;
    assert_eq!(mode(&made.after), Some(CacheMode::WriteBack));
    let lost = change(&made.after, LunSpec::new("vm01", gib(2)), &around());
    let reported = lost.unwrap_err().to_string();
    assert!(reported.contains("has no journal"), "{reported}");
    let old = plan(&Objects::default(), &edit, &around(), &mut counting()).unwrap();
    let kept = change(&old.after, LunSpec::new("vm01", gib(1)), &with_journal).unwrap();
    assert_eq!(mode(&kept.after), None);
}

fn lab() -> ObjectSet {
    ObjectSet {
        lun: vec![LunSpec::new("vm01", gib(1)), LunSpec::new("vm02", gib(2))],
        target: vec![target("t1")],
        host: vec![host("esx01")],
        grant: vec![grant("esx01", "vm01"), grant("esx01", "vm02")],
    }
}

fn session(id: u64) -> SessionBrief {
    SessionBrief {
        id,
        host: "esx01".to_owned(),
        initiator: "iqn.1998-01.com.vmware:esx01".to_owned(),
        target: Some("t1".to_owned()),
        bytes_per_second: None,
    }
}

fn apply(set: ObjectSet) -> Edit {
    Edit::Apply { set, prune: false }
}

fn run(current: &Objects, edit: &Edit) -> Result<Plan, Problem> {
    plan(current, edit, &around(), &mut counting())
}

fn run_in_use(current: &Objects, edit: &Edit) -> Result<Plan, Problem> {
    let mut around = around();
    around.sessions.push(session(7));
    plan(current, edit, &around, &mut counting())
}

fn stored() -> Objects {
    run(&Objects::default(), &apply(lab())).unwrap().after
}

fn reported(plan: &Plan) -> Vec<String> {
    plan.actions.iter().map(ToString::to_string).collect()
}

fn lun(name: &str) -> Subject {
    Subject {
        section: Section::Lun,
        name: name.to_owned(),
    }
}

#[test]
fn an_empty_node_gets_everything_with_numbers_in_order() {
    let plan = run(&Objects::default(), &apply(lab())).unwrap();
    assert_eq!(
        reported(&plan),
        [
            "create lun vm01: 1 GiB, pool default, 512-byte blocks",
            "create lun vm02: 2 GiB, pool default, 512-byte blocks",
            "create target t1: iqn.2026-11.io.causeway:t1, portal group default",
            "create host esx01: iqn.1998-01.com.vmware:esx01, no CHAP",
            "create grant esx01:t1:vm01: number 0",
            "create grant esx01:t1:vm02: number 1",
        ]
    );
    assert_eq!(plan.refusal(), None);
    let naa = &plan.after.luns["vm01"].naa;
    assert_eq!((naa.len(), &naa[..7]), (32, "602ca5e"));
    assert_ne!(naa, &plan.after.luns["vm02"].naa);
    assert_eq!(plan.after.luns["vm01"].serial.len(), 16);
}

#[test]
fn applying_what_is_there_changes_nothing() {
    let now = stored();
    for prune in [false, true] {
        for set in [lab(), export(&now)] {
            let plan = run(&now, &Edit::Apply { set, prune }).unwrap();
            assert_eq!(reported(&plan), Vec::<String>::new());
            assert_eq!(plan.after, now);
        }
    }
}

#[test]
fn without_prune_nothing_goes_and_with_it_luns_keep_their_data() {
    let now = stored();
    let mut set = lab();
    set.lun.pop();
    set.grant.pop();
    let plan = run(&now, &apply(set.clone())).unwrap();
    assert_eq!(plan.after, now);
    let plan = run(
        &now,
        &Edit::Apply {
            set: set.clone(),
            prune: true,
        },
    )
    .unwrap();
    assert_eq!(
        reported(&plan),
        [
            "remove grant esx01:t1:vm02",
            "remove lun vm02: its data stays until `lun purge`; `lun restore` brings it and its grant back",
        ]
    );
    assert_eq!(plan.after.removed["vm02"], now.luns["vm02"]);
    let changes = lun_changes(&now, &plan.after);
    assert_eq!(changes.retired, [now.luns["vm02"].clone()]);
    assert!(changes.purged.is_empty());

    // Applied again it comes back with its identity, number and data.
    let back = run(&plan.after, &apply(lab())).unwrap();
    assert_eq!(back.after, now);
    assert_eq!(lun_changes(&plan.after, &back.after).restored.len(), 1);
    assert!(reported(&back)[0].starts_with("restore lun vm02"));

    // Unless it was purged.
    let purged = run(&plan.after, &Edit::Purge("vm02".to_owned())).unwrap();
    assert_eq!(lun_changes(&plan.after, &purged.after).purged.len(), 1);
    assert!(purged.after.removed.is_empty());
}

#[test]
fn what_goes_over_the_sessions_that_are_hit_is_said_of_each_and_of_all() {
    let mut around = around();
    around.sessions = [(4, Some(38_797_312)), (5, Some(0)), (6, None)]
        .map(|(id, bytes_per_second)| SessionBrief {
            bytes_per_second,
            ..session(id)
        })
        .into();
    let remove = Edit::Remove(lun("vm01"));
    let refused = |around: &Surroundings| {
        let plan = plan(&stored(), &remove, around, &mut counting()).unwrap();
        plan.refusal().unwrap()
    };
    let problem = refused(&around);
    let ends = problem
        .hits
        .iter()
        .map(|hit| hit.split(" on target t1").nth(1));
    let ends: Vec<&str> = ends.map(Option::unwrap).collect();
    assert_eq!(ends, [", 37 MiB/s now", ", idle now", ""]);
    assert!(problem.detail.ends_with(", 3 sessions"), "{problem}");
    around.sessions.pop();
    let detail = refused(&around).detail.clone();
    assert!(
        detail.ends_with(", 2 sessions with 37 MiB/s now"),
        "{detail}"
    );
}

#[test]
fn what_would_disturb_a_session_is_refused_and_names_it() {
    let now = stored();
    let mut smaller = lab();
    smaller.lun[0].size = Size::from_bytes(512).unwrap();
    let mut moved = lab();
    moved.grant[0].lun_id = Some(9);
    let mut read_only = lab();
    read_only.grant[0].read_only = true;
    let mut other_name = lab();
    other_name.target[0].iqn = Some("iqn.2026-11.io.causeway:other".to_owned());
    let mut resting = lab();
    resting.target[0].maintenance = true;
    let mut other_host = lab();
    other_host.host[0].iqn = vec!["iqn.1998-01.com.vmware:new".to_owned()];
    let edits = [
        apply(smaller.clone()),
        Edit::Set(ObjectSet {
            lun: smaller.lun,
            ..ObjectSet::default()
        }),
        apply(moved),
        apply(read_only),
        apply(other_name),
        apply(resting),
        apply(other_host),
        Edit::Remove(lun("vm01")),
        Edit::Remove(Subject {
            section: Section::Target,
            name: "t1".to_owned(),
        }),
        Edit::Remove(Subject {
            section: Section::Host,
            name: "esx01".to_owned(),
        }),
        Edit::Remove(Subject {
            section: Section::Grant,
            name: "esx01:t1:vm01".to_owned(),
        }),
        Edit::Apply {
            set: ObjectSet::default(),
            prune: true,
        },
    ];
    for edit in edits {
        let plan = run_in_use(&now, &edit).unwrap();
        let refusal = plan.refusal().unwrap_or_else(|| panic!("{edit:?}"));
        assert_eq!(refusal.code, Code::InUse, "{edit:?}");
        assert_eq!(
            refusal.hits,
            ["session 7: host esx01 (iqn.1998-01.com.vmware:esx01) on target t1"]
        );
    }
}

#[test]
fn idle_luns_may_be_deleted_and_are_shrunk_and_purged_only_when_that_is_confirmed() {
    let now = stored();
    assert_eq!(
        run(&now, &Edit::Remove(lun("vm01"))).unwrap().refusal(),
        None
    );
    let small = LunSpec::new("vm01", Size::from_bytes(1 << 20).unwrap());
    let set = ObjectSet {
        lun: vec![small],
        ..ObjectSet::default()
    };
    let gone = run(&now, &Edit::Remove(lun("vm01"))).unwrap().after;
    let mut on_device = gone.clone();
    let device = Backing::from(BackendSpec::Block("/dev/x".into()));
    on_device.removed.get_mut("vm01").unwrap().backing = device;
    let purge = Edit::Purge("vm01".to_owned());
    let losing = [
        (&now, Edit::Set(set.clone())),
        (&now, apply(set.clone())),
        // Smaller than it was when it was removed.
        (&gone, apply(set)),
        (&gone, purge.clone()),
    ];
    for (current, edit) in losing {
        let refusal = run(current, &edit).unwrap().refusal();
        let refusal = refusal.unwrap_or_else(|| panic!("{edit:?}"));
        assert_eq!(refusal.code, Code::WouldLoseData, "{edit:?}");
        assert_eq!(refusal.confirm.as_deref(), Some("vm01"), "{edit:?}");
        let lost = &refusal.losses[0];
        let size = lost.contains("4398045462528 hold is lost") || lost.contains("a LUN of");
        assert!(size || lost.contains("hold is lost"), "{lost}");
    }
    assert_eq!(run(&on_device, &purge).unwrap().refusal(), None);
}

#[test]
fn a_lun_that_its_pool_has_seen_larger_says_what_comes_back_and_what_more_is_lost() {
    let now = stored();
    let naa = now.luns["vm01"].naa.clone();
    let around = Surroundings {
        seen_larger: BTreeMap::from([(naa, gib(4))]),
        ..around()
    };
    let half = Size::from_bytes(512 << 20).unwrap();
    let reported = |size| reported(&change(&now, LunSpec::new("vm01", size), &around).unwrap());
    assert_eq!(
        reported(gib(4)),
        [
            "change lun vm01: grow from 1 GiB to 4 GiB: what it held there when it had 4 GiB is there again"
        ]
    );
    assert_eq!(
        reported(half),
        [
            "change lun vm01: shrink from 1 GiB to 512 MiB (its pool has seen it with 4 GiB): what its last 3.5 GiB hold is lost"
        ]
    );
}

#[test]
fn several_losses_are_listed_and_confirmed_by_none_of_their_names() {
    let now = stored();
    let mut set = lab();
    for lun in &mut set.lun {
        lun.size = Size::from_bytes(1 << 20).unwrap();
    }
    let refusal = run(&now, &apply(set)).unwrap().refusal().unwrap();
    assert_eq!(refusal.losses.len(), 2, "{refusal}");
    assert_eq!(refusal.confirm.as_deref(), Some("lose all of this"));
}

#[test]
fn growing_and_granting_is_live_and_chap_is_for_new_sessions() {
    let now = stored();
    let mut set = lab();
    set.lun[0].size = gib(5);
    set.host[0].chap = Some(ChapSpec {
        user: "esx01".to_owned(),
        secret: SecretSpec::Value(Secret::new(b"a long secret".to_vec())),
        mutual_user: None,
        mutual_secret: None,
    });
    set.lun.push(LunSpec::new("vm03", gib(1)));
    set.grant.push(grant("esx01", "vm03"));
    let plan = run_in_use(&now, &apply(set)).unwrap();
    assert_eq!(
        reported(&plan),
        [
            "change lun vm01: grow from 1 GiB to 5 GiB",
            "create lun vm03: 1 GiB, pool default, 512-byte blocks",
            "change host esx01: CHAP changes [new sessions]",
            "create grant esx01:t1:vm03: number 2",
        ]
    );
    assert_eq!(plan.refusal(), None);
    assert_eq!(lun_changes(&now, &plan.after).resized.len(), 1);
}

#[test]
fn a_redirect_is_for_new_sessions_and_the_end_of_maintenance_is_live() {
    let now = stored();
    let mut set = lab();
    set.target[0].redirect = Some(Redirect {
        to: "192.0.2.2:3260".to_owned(),
        permanent: false,
    });
    let plan = run_in_use(&now, &apply(set)).unwrap();
    assert_eq!(
        reported(&plan),
        ["change target t1: logins go to 192.0.2.2:3260 for now [new sessions]"]
    );
    assert_eq!(plan.refusal(), None);
    let moved = plan.after;
    let mut resting = export(&moved);
    assert_eq!(run(&moved, &apply(resting.clone())).unwrap().after, moved);
    resting.target[0].maintenance = true;
    let resting = run(&moved, &apply(resting)).unwrap();
    assert_eq!(
        reported(&resting),
        [
            "change target t1: into maintenance, sessions are asked to log out and ended after 30 seconds"
        ]
    );
    // What a file leaves out is off.
    let back = run_in_use(&resting.after, &apply(lab())).unwrap();
    assert_eq!(
        reported(&back),
        [
            "change target t1: logins are served here again [new sessions]",
            "change target t1: out of maintenance",
        ]
    );
    assert_eq!(back.refusal(), None);
    assert_eq!(back.after, now);
}

#[test]
fn a_new_host_that_takes_an_initiator_over_hits_its_session() {
    let mut everyone = lab();
    everyone.host[0].iqn = vec!["*".to_owned()];
    let now = run(&Objects::default(), &apply(everyone)).unwrap().after;
    let mut new = host("esx01");
    new.name = "own".to_owned();
    let edit = Edit::Create(ObjectSet {
        host: vec![new],
        ..ObjectSet::default()
    });
    assert_eq!(
        run_in_use(&now, &edit).unwrap().refusal().unwrap().code,
        Code::InUse
    );
    let edit = Edit::Create(ObjectSet {
        host: vec![host("esx02")],
        ..ObjectSet::default()
    });
    assert_eq!(run_in_use(&now, &edit).unwrap().refusal(), None);
}

#[test]
fn a_rename_changes_no_identity_and_hits_nobody() {
    let now = stored();
    for (section, from) in [
        (Section::Lun, "vm01"),
        (Section::Target, "t1"),
        (Section::Host, "esx01"),
    ] {
        let subject = Subject {
            section,
            name: from.to_owned(),
        };
        let edit = Edit::Rename {
            subject,
            to: "new".to_owned(),
        };
        let plan = run_in_use(&now, &edit).unwrap();
        assert_eq!(
            reported(&plan),
            [format!("rename {section} {from}: to new")]
        );
        assert_eq!(plan.refusal(), None);
        assert_eq!(lun_changes(&now, &plan.after), LunChanges::default());
        let numbers = |objects: &Objects| -> Vec<u16> {
            objects.grants.values().map(|grant| grant.lun_id).collect()
        };
        let mut all = [numbers(&now), numbers(&plan.after)];
        all.iter_mut().for_each(|numbers| numbers.sort_unstable());
        assert_eq!(all[0], all[1]);
    }
    let renamed = run(
        &now,
        &Edit::Rename {
            subject: lun("vm01"),
            to: "x".to_owned(),
        },
    )
    .unwrap();
    assert_eq!(renamed.after.luns["x"], now.luns["vm01"]);
    assert!(
        renamed
            .after
            .grants
            .contains_key(&"esx01:t1:x".parse::<GrantKey>().unwrap())
    );
    let taken = run(
        &now,
        &Edit::Rename {
            subject: lun("vm01"),
            to: "vm02".to_owned(),
        },
    );
    assert_eq!(taken.unwrap_err().code, Code::AlreadyExists);
    let absent = run(
        &now,
        &Edit::Rename {
            subject: lun("nn"),
            to: "mm".to_owned(),
        },
    );
    assert_eq!(absent.unwrap_err().code, Code::NotFound);
}

#[test]
fn every_broken_reference_is_listed() {
    let mut set = lab();
    set.grant[0].lun = "vm1".to_owned();
    set.grant[1].host = "esx1".to_owned();
    set.lun[0].pool = Some("defualt".to_owned());
    set.target[0].portal_group = Some("none".to_owned());
    let problem = run(&Objects::default(), &apply(set)).unwrap_err();
    assert_eq!(problem.code, Code::InvalidObjects);
    let faults: Vec<String> = problem.faults.iter().map(ToString::to_string).collect();
    assert!(
        faults.contains(
            &"lun \"vm01\", pool: node.toml has no pool \"defualt\", did you mean \"default\"?"
                .to_owned()
        ),
        "{faults:#?}"
    );
    assert!(
        faults.contains(
            &"target \"t1\", portal_group: node.toml has no portal group \"none\"".to_owned()
        ),
        "{faults:#?}"
    );
}

#[test]
fn numbers_and_initiators_belong_to_one() {
    let mut set = lab();
    set.grant[0].lun_id = Some(1);
    set.grant[1].lun_id = Some(1);
    let mut second = host("esx01");
    second.name = "esx02".to_owned();
    set.host.push(second);
    let problem = run(&Objects::default(), &apply(set)).unwrap_err();
    let faults: Vec<String> = problem.faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        faults,
        [
            "host \"esx02\", iqn: host \"esx01\" has iqn.1998-01.com.vmware:esx01 already",
            "grant \"esx01:t1:vm02\", lun_id: number 1 is LUN \"vm01\"'s on this host and target",
        ]
    );
}

#[test]
fn what_hosts_remember_of_a_disk_cannot_change() {
    let now = stored();
    let change: [fn(&mut LunSpec); 4] = [
        |lun| lun.block_size = Some(4096),
        |lun| lun.physical_block_size = Some(4096),
        |lun| lun.thin = Some(false),
        |lun| lun.backend = Some(BackendSpec::Memory),
    ];
    for change in change {
        let mut set = lab();
        change(&mut set.lun[0]);
        let refused = run(&now, &apply(set)).unwrap_err();
        assert_eq!(refused.code, Code::Immutable);
        assert_eq!(refused.faults[0].object, "vm01", "for the line in the file");
        assert!(
            refused.faults[0].message.contains("cannot become"),
            "{refused}"
        );
        assert!(
            refused.hint.starts_with("make a new LUN with the wanted"),
            "{refused}"
        );
    }
}

#[test]
fn a_redirect_that_leads_back_here_is_refused() {
    let mut around = around();
    let any = "[::]:3261".parse().unwrap();
    around.portals.push(("all".to_owned(), any));
    let plan_for = |to: &str| {
        let mut set = lab();
        set.target[0].redirect = Some(Redirect {
            to: to.to_owned(),
            permanent: false,
        });
        plan(&Objects::default(), &apply(set), &around, &mut counting())
    };
    for back in [
        "192.0.2.1:3260",
        "127.0.0.1:3261",
        "[::1]:3261",
        "localhost:3261",
    ] {
        let refused = plan_for(back).unwrap_err();
        assert_eq!(refused.code, Code::InvalidObjects, "{back}");
        assert_eq!(refused.faults[0].key, "redirect.to", "{back}");
    }
    for away in [
        "192.0.2.2:3260",
        "192.0.2.1:3262",
        "localhost:3260",
        "san-b.example:3261",
    ] {
        assert!(plan_for(away).is_ok(), "{away}");
    }
}

#[test]
fn creating_what_exists_and_setting_what_does_not_are_kept_apart() {
    let now = stored();
    let one = |name: &str| ObjectSet {
        lun: vec![LunSpec::new(name, gib(1))],
        ..ObjectSet::default()
    };
    assert_eq!(
        run(&now, &Edit::Create(one("vm01"))).unwrap_err().code,
        Code::AlreadyExists
    );
    assert_eq!(
        run(&now, &Edit::Set(one("vm09"))).unwrap_err().code,
        Code::NotFound
    );
    let removed = run(&now, &Edit::Remove(lun("vm01"))).unwrap().after;
    assert_eq!(
        run(&removed, &Edit::Create(one("vm01"))).unwrap_err().code,
        Code::KeepsData
    );
    assert_eq!(
        run(&now, &Edit::Purge("vm01".to_owned())).unwrap_err().code,
        Code::AlreadyExists
    );
    assert_eq!(
        run(&now, &Edit::Restore("vm01".to_owned()))
            .unwrap_err()
            .code,
        Code::NotFound
    );
    assert_eq!(
        run(&removed, &Edit::Restore("vm01".to_owned()))
            .unwrap()
            .after
            .luns,
        now.luns
    );
}

#[test]
fn a_stored_secret_stays_and_a_missing_one_is_said() {
    let mut set = lab();
    let chap = |secret| ChapSpec {
        user: "u".to_owned(),
        secret,
        mutual_user: None,
        mutual_secret: None,
    };
    set.host[0].chap = Some(chap(SecretSpec::Stored));
    let problem = run(&Objects::default(), &apply(set.clone())).unwrap_err();
    assert_eq!(problem.code, Code::SecretMissing);
    let value = Secret::new(b"a long secret".to_vec());
    set.host[0].chap = Some(chap(SecretSpec::Value(value)));
    let now = run(&Objects::default(), &apply(set.clone())).unwrap().after;
    set.host[0].chap = Some(chap(SecretSpec::Stored));
    assert_eq!(run(&now, &apply(set)).unwrap().after, now);
}

#[test]
fn one_device_is_one_luns() {
    let block = |name: &str| LunSpec {
        backend: Some(BackendSpec::Block("/dev/sdb".into())),
        ..LunSpec::new(name, gib(1))
    };
    let set = ObjectSet {
        lun: vec![block("a"), block("b")],
        ..ObjectSet::default()
    };
    let problem = run(&Objects::default(), &apply(set)).unwrap_err();
    assert_eq!(
        problem.faults[0].to_string(),
        "lun \"b\", backend: LUN \"a\" has this device"
    );
    let one = ObjectSet {
        lun: vec![block("a")],
        ..ObjectSet::default()
    };
    let now = run(&Objects::default(), &apply(one)).unwrap().after;
    assert_eq!(
        now.luns["a"].backing,
        Backing::from(BackendSpec::Block("/dev/sdb".into()))
    );
}

#[test]
fn ten_thousand_luns_are_planned_at_once() {
    let mut set = ObjectSet {
        target: vec![target("t1")],
        host: vec![host("esx01")],
        ..ObjectSet::default()
    };
    for n in 0..10_000 {
        let name = format!("vm{n:05}");
        set.lun.push(LunSpec::new(&name, gib(1)));
        set.grant.push(grant("esx01", &name));
    }
    let plan = run(&Objects::default(), &apply(set)).unwrap();
    assert_eq!(plan.actions.len(), 20_002);
    let last = &plan.after.grants[&"esx01:t1:vm09999".parse::<GrantKey>().unwrap()];
    assert_eq!(last.lun_id, 9_999);
}

mod grants;
mod only;
mod patch;
mod pools;
mod rollback;

#[test]
fn a_restart_hits_each_host_with_its_sessions_and_the_luns_that_it_reaches() {
    let objects = stored();
    let mut other = session(9);
    (other.host, other.target) = ("web".to_owned(), None);
    let hit = hosts_hit(&objects, &[session(8), other, session(7)]);
    let said: Vec<String> = hit.iter().map(ToString::to_string).collect();
    let wanted = [
        "host esx01: sessions 7, 8, LUNs vm01, vm02",
        "host web: session 9, no LUN",
    ];
    assert_eq!(said, wanted);
    let mut many = objects.clone();
    for at in 0..9 {
        let mut key = many.grants.keys().next().unwrap().clone();
        let grant = many.grants[&key];
        key.lun = format!("a{at}");
        many.grants.insert(key, grant);
    }
    let said = hosts_hit(&many, &[session(7)])[0].to_string();
    assert!(
        said.ends_with("LUNs a0, a1, a2, a3, a4 and 6 more"),
        "{said}"
    );
}
