//! Rules and forms of the storage fields.

use super::*;

fn faults(spec: Storage) -> Vec<String> {
    let mut faults = Vec::new();
    for field in FIELDS {
        field.check(&spec, &mut |key, rule| {
            faults.push(format!("{key}: {rule}"));
        });
    }
    faults
}

fn limit(iops: Option<u64>, bytes: Option<u64>, burst: Option<u32>) -> Storage {
    Storage {
        limit: Some(Limit {
            iops,
            bytes_per_second: bytes.and_then(Size::from_bytes),
            burst_seconds: burst,
        }),
        ..Storage::default()
    }
}

#[test]
fn limits_that_would_stop_a_lun_or_mean_nothing_are_refused() {
    for (spec, wanted) in [
        (limit(Some(0), None, None), "limit.iops: 0 would stop"),
        (
            limit(None, Some(0), None),
            "limit.bytes_per_second: 0 would stop",
        ),
        (
            limit(None, None, Some(5)),
            "limit.burst_seconds: a burst is of",
        ),
        (
            limit(Some(1), None, Some(3601)),
            "limit.burst_seconds: 3601 is outside",
        ),
        (
            limit(Some(u64::MAX), None, None),
            "limit.iops: 18446744073709551615 is outside",
        ),
        (
            Storage {
                shares: Some(10_001),
                ..Storage::default()
            },
            "shares: 10001 is outside 1 to 10000",
        ),
    ] {
        let reported = faults(spec);
        assert!(
            reported.iter().any(|reported| reported.contains(wanted)),
            "{reported:?}"
        );
    }
}

fn pool(has_journal: bool, is_stable: bool) -> PoolBrief<'static> {
    PoolBrief {
        name: "p",
        has_journal,
        is_stable,
    }
}

#[test]
fn a_new_lun_is_kept_as_its_pool_can_unless_somebody_said_how() {
    let mode = |said, pool| {
        let mut storage = Storage {
            cache: said,
            ..Storage::default()
        };
        storage.default_in(pool);
        let rest = Storage {
            cache: None,
            ..storage
        };
        assert!(rest.is_default(), "{rest:?}");
        storage.cache
    };
    assert_eq!(mode(None, pool(true, false)), Some(CacheMode::WriteBack));
    assert_eq!(mode(None, pool(false, true)), Some(CacheMode::WriteThrough));
    assert_eq!(mode(None, pool(false, false)), None);
    let said = Some(CacheMode::Volatile);
    assert_eq!(mode(said, pool(true, false)), said);
}

#[test]
fn an_adopted_lun_loses_what_its_pool_does_not_have_and_somebody_learns_of_it() {
    let checked = Storage {
        cache: Some(CacheMode::WriteBack),
        integrity: Some(true),
        shares: Some(7),
        ..Storage::default()
    };
    let adopted = |mut storage: Storage, has_checksums, pool| {
        let notices = storage.adopt(&Adoption {
            name: "a",
            has_checksums,
            pool,
        });
        (storage, notices)
    };
    let (is, notices) = adopted(checked, true, pool(true, false));
    assert_eq!((is, notices.len()), (checked, 0));
    let (is, notices) = adopted(checked, false, pool(true, false));
    assert_eq!(is, checked.without("integrity"));
    assert!(
        matches!(notices.as_slice(), [one] if one.contains("LUN a is no longer checked")),
        "{notices:?}"
    );
    let (is, notices) = adopted(checked, true, pool(false, false));
    let through = Some(CacheMode::WriteThrough);
    assert_eq!(
        (is.cache, is.integrity, is.shares),
        (through, None, Some(7))
    );
    assert_eq!(notices.len(), 2, "{notices:?}");
    let (is, notices) = adopted(Storage::default(), false, pool(false, true));
    assert_eq!((is.cache, notices.len()), (through, 0));
}

#[test]
fn only_what_may_lose_acknowledged_writes_is_a_risk_and_it_says_who_chose_it() {
    let risks = |cache| {
        let storage = Storage {
            cache,
            ..Storage::default()
        };
        let risks = FIELDS.iter().filter_map(|field| field.risk(&storage));
        risks
            .map(|risk| (risk.field, risk.value, risk.is_chosen))
            .collect::<Vec<_>>()
    };
    assert_eq!(risks(None), [("cache", "volatile", false)]);
    let volatile = risks(Some(CacheMode::Volatile));
    assert_eq!(volatile, [("cache", "volatile", true)]);
    assert_eq!(risks(Some(CacheMode::WriteBack)), []);
    assert_eq!(risks(Some(CacheMode::WriteThrough)), []);
}

#[test]
fn memory_is_what_the_read_cache_may_hold() {
    let storage = Storage {
        read_cache: Size::from_bytes(5 << 20),
        shares: Some(7),
        ..Storage::default()
    };
    assert_eq!(storage.memory(), 5 << 20);
    assert_eq!(Storage::default().memory(), 0);
}

#[test]
fn checksums_are_switched_where_a_lun_gets_or_loses_them_and_by_nothing_else() {
    let with = |integrity, shares| Storage {
        integrity,
        shares,
        ..Storage::default()
    };
    let switched = |was: Storage, is: Storage| {
        let all = FIELDS.iter().filter_map(|it| it.switched(&was, &is));
        all.map(|it| (it.field, it.is_on)).collect::<Vec<_>>()
    };
    let (without, checked) = (with(None, None), with(Some(true), None));
    assert_eq!(switched(without, checked), [("integrity", true)]);
    assert_eq!(switched(checked, without), [("integrity", false)]);
    assert_eq!(switched(checked, with(Some(true), Some(3))), []);
    assert_eq!(switched(without, with(Some(false), None)), []);
}

#[test]
fn what_needs_a_journal_is_refused_where_there_is_none() {
    let wants = |cache, integrity: bool| Storage {
        cache,
        integrity: Some(integrity),
        ..Storage::default()
    };
    let write_back = wants(Some(CacheMode::WriteBack), true);
    assert_eq!(check_place(&write_back, Some(pool(true, false))), []);
    let reported = check_place(&write_back, Some(pool(false, false)));
    assert_eq!(
        reported.iter().map(|(key, _)| *key).collect::<Vec<_>>(),
        ["cache", "integrity"]
    );
    assert!(
        reported[0].1.contains("pool \"p\" has no journal"),
        "{reported:?}"
    );
    assert!(
        check_place(&write_back, None)[0]
            .1
            .contains("no pool holds")
    );
    assert_eq!(
        check_place(&wants(Some(CacheMode::WriteThrough), false), None),
        []
    );
}

#[test]
fn shares_are_of_a_pool() {
    let has = Storage {
        shares: Some(200),
        ..Storage::default()
    };
    assert_eq!(check_place(&has, Some(pool(false, false))), []);
    let reported = check_place(&has, None);
    assert_eq!(reported[0].0, "shares");
    assert!(
        reported[0].1.contains("no pool holds this one"),
        "{reported:?}"
    );
}

#[test]
fn a_wish_for_what_is_changes_nothing_and_an_empty_limit_lifts() {
    let is = everything();
    assert_eq!(is.over(is), is);
    assert_eq!(Storage::default().over(is), is);
    let lifted = limit(None, None, None).over(is);
    assert_eq!(lifted.limit, None);
    let off = Storage {
        read_cache: Size::from_bytes(0),
        ..Storage::default()
    };
    assert_eq!(off.over(is).read_cache, None);
    let none = Storage {
        shares: Some(0),
        ..Storage::default()
    };
    assert_eq!(none.over(is).shares, None);
    let hosts = Storage {
        task_aborted_status: Some(TaskAbortedStatus::Host),
        ..Storage::default()
    };
    assert_eq!(hosts.over(is).task_aborted_status, None);
}

/// A word for each option.
fn a_word(part: &Part) -> &'static str {
    match part.value {
        "SIZE" => "1M",
        "NUMBER" | "SECONDS" => "3",
        "NODE,NODE" => "san-a,san-b",
        _ => part.words[0],
    }
}

/// Something said of each field.
fn everything() -> Storage {
    let mut all = Storage::default();
    for field in FIELDS {
        for part in field.parts().iter().filter(|part| part.option.is_some()) {
            field.parse(part, a_word(part), &mut all).unwrap();
        }
    }
    all
}

#[test]
fn each_field_is_one_member_of_json_and_comes_back_from_it() {
    let json = serde_json::to_value(everything()).unwrap();
    let names: Vec<&str> = FIELDS.iter().map(|field| field.name()).collect();
    for name in &names {
        assert!(json.get(name).is_some(), "{name}: {json}");
    }
    assert_eq!(json.as_object().unwrap().len(), names.len());
    assert_eq!(
        serde_json::from_value::<Storage>(json).unwrap(),
        everything()
    );
    let refused = serde_json::from_str::<Storage>("{ \"integrty\": true }").unwrap_err();
    assert!(
        refused.to_string().contains("did you mean \"integrity\""),
        "{refused}"
    );
}

#[test]
fn a_part_of_a_limit_that_is_named_changes_and_the_others_stay() {
    let patched = |text: &str| {
        let patch: StoragePatch = serde_json::from_str(text).unwrap();
        patch.over(&everything()).over(everything()).limit
    };
    let known = everything().limit.unwrap();
    assert_eq!(patched("{}"), Some(known));
    assert_eq!(
        patched("{ \"limit\": { \"iops\": 7, \"burst_seconds\": null } }"),
        Some(Limit {
            iops: Some(7),
            burst_seconds: None,
            ..known
        })
    );
    assert_eq!(patched("{ \"limit\": null }"), None);
    let lifted = "{ \"limit\": { \"iops\": null, \"bytes_per_second\": null } }";
    assert_eq!(patched(lifted), None);
    let wrong = serde_json::from_str::<StoragePatch>("{ \"limit\": { \"iosp\": 7 } }");
    assert!(wrong.unwrap_err().to_string().contains("limit: unknown"));
}

#[test]
fn every_word_of_a_command_says_what_a_request_says() {
    for field in FIELDS {
        for part in field.parts().iter().filter(|part| part.option.is_some()) {
            let word = a_word(part);
            let mut by_option = Storage::default();
            field.parse(part, word, &mut by_option).unwrap();
            let json = field.assign(part, word, None).unwrap();
            let mut by_set = Storage::default();
            field
                .patch(&json, &Storage::default(), &mut by_set)
                .unwrap();
            assert_eq!(by_option, by_set, "{}", part.key);
            assert!(!by_option.is_default(), "{}", part.key);
        }
    }
}

#[test]
fn a_layer_sees_no_more_than_the_fields_that_it_names() {
    let all = everything();
    let seen = all.only(&["cache", "shares"]);
    let wanted = Storage {
        cache: all.cache,
        shares: all.shares,
        ..Storage::default()
    };
    assert_eq!(seen, wanted);
    assert!(all.only(&[]).is_default());
}

#[test]
fn series_of_one_metric_follow_each_other_and_differ_in_their_labels() {
    let all: Vec<&Metric> = layer_metrics().collect();
    let families = all.chunk_by(|one, next| one.name == next.name);
    let mut names = Vec::new();
    for family in families {
        let head = family[0];
        assert!(!names.contains(&head.name), "{} is torn", head.name);
        names.push(head.name);
        for (index, one) in family.iter().enumerate() {
            assert_eq!((one.kind, one.help), (head.kind, head.help), "{}", one.name);
            assert!(one.label_names().eq(head.label_names()), "{}", one.name);
            let others = family[..index].iter();
            assert!(
                others.into_iter().all(|it| it.labels != one.labels),
                "{}",
                one.name
            );
        }
    }
}

/// The figures of a LUN, by metric and labels.
fn figures(storage: &Storage, layers: &LayerFacts, name: &str) -> Vec<(&'static str, u64)> {
    let of = layer_metrics().filter(|metric| metric.name == name);
    let reported = of.filter_map(|metric| {
        let label = metric.labels.first().map_or("", |(_, value)| *value);
        match (metric.figure)(storage, layers)? {
            Figure::Number(figure) | Figure::Micros(figure) => Some((label, figure)),
        }
    });
    reported.collect()
}

#[test]
fn what_caches_hold_is_reported_of_each_that_there_is() {
    let bytes = |cache, cached, pending_bytes| {
        let storage = Storage {
            cache,
            ..Storage::default()
        };
        let layers = LayerFacts {
            cached,
            pending_bytes,
            ..LayerFacts::default()
        };
        figures(&storage, &layers, "causeway_cache_bytes")
    };
    let held = ReadCacheFacts {
        bytes: 8192,
        ..ReadCacheFacts::default()
    };
    let (back, through) = (Some(CacheMode::WriteBack), Some(CacheMode::WriteThrough));
    assert_eq!(bytes(None, None, None), []);
    assert_eq!(
        bytes(back, Some(held), Some(4096)),
        [("clean", 8192), ("dirty", 4096)]
    );
    assert_eq!(bytes(back, None, Some(0)), [("dirty", 0)]);
    assert_eq!(bytes(back, Some(held), None), [("clean", 8192)], "missing");
    assert_eq!(bytes(through, None, Some(0)), []);
    assert_eq!(bytes(through, None, Some(512)), [("dirty", 512)]);
}

#[test]
fn the_mode_of_the_cache_and_the_checksums_are_reported_by_their_own_fields() {
    let (nobody, chose) = (Storage::default(), everything());
    let none = LayerFacts::default();
    let mode = |storage| figures(storage, &none, "causeway_lun_cache");
    assert_eq!(mode(&nobody), []);
    assert_eq!(mode(&chose), [("write-back", 1)]);

    let name = "causeway_integrity_map_pages_total";
    assert_eq!(figures(&chose, &none, name), []);
    let checked = LayerFacts {
        checksums: Some(ChecksumFacts {
            block_bytes: 4096,
            unchecked_blocks: 25,
            pages_read: 1,
            pages_written: 2,
            pages_lost: 3,
            ..ChecksumFacts::default()
        }),
        ..LayerFacts::default()
    };
    let pages = [("read", 1), ("written", 2), ("lost", 3)];
    assert_eq!(figures(&chose, &checked, name), pages);

    let line = |layers, is_memory, title| {
        let lun = Shown {
            name: "vm01",
            block_count: 100,
            is_memory,
            layers,
        };
        let mut lines = FIELDS.iter().map(|field| field.shown(&nobody, &lun));
        lines.find(|line| line.0 == title).expect("a line").1
    };
    assert!(line(&none, false, "cache").contains(VOLATILE_RISK));
    assert_eq!(line(&none, true, "cache"), "volatile");
    assert_eq!(line(&none, false, "integrity"), "no");
    let found = line(&checked, false, "integrity");
    assert!(
        found.contains("25 of 100 blocks (25 %)") && found.contains("causeway scrub start vm01"),
        "{found}"
    );
}
