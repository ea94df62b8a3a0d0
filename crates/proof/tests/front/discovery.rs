//! SendTargets: to whom which targets are reported, and at which addresses.

use crate::bench::{
    ALICE, BOB, OTHER, Setup, TARGET, everyone, exported, grant, host_object, open_target, run,
};
use crate::host::{Host, config};
use iscsi_target::{Listen, PortalGroup};
use std::net::SocketAddr;

// spec: RFC 7143 13.3 "SendTargets", appendix C "SendTargets Operation".
#[test]
fn send_targets_reports_only_what_is_granted_to_the_asker() {
    run(Setup::default(), |bench| async move {
        let (alice, bob) = (
            host_object("alice", ALICE, None),
            host_object("bob", BOB, None),
        );
        let first = exported(TARGET, vec![grant(&alice, 0), grant(&bob, 1)]);
        let second = exported(OTHER, vec![grant(&bob, 1)]);
        bench.publish(vec![first, second]).await;
        for (who, expected) in [
            (ALICE, vec![TARGET]),
            (BOB, vec![TARGET, OTHER]),
            ("iqn.2026-11.example:eve", vec![]),
        ] {
            let host = bench.try_login(&config(who, None)).await.unwrap();
            let reported = host.send_targets("All").await;
            let names: Vec<&str> = reported.iter().map(|one| one.name.as_str()).collect();
            assert_eq!(names, expected, "{who}");
            // Asking by name reports no more.
            let one = host.send_targets(OTHER).await;
            assert_eq!(one.is_empty(), !expected.contains(&OTHER), "{who}");
        }
    });
}

// spec: RFC 7143 appendix C "SendTargets Operation".
#[test]
fn a_normal_session_is_reported_of_its_own_target_only() {
    run(Setup::default(), |bench| async move {
        let everyone = everyone();
        bench
            .publish(vec![
                open_target(2),
                exported(OTHER, vec![grant(&everyone, 0)]),
            ])
            .await;
        let host = bench.login(ALICE).await;
        for what in ["", TARGET, &TARGET.to_ascii_uppercase()] {
            let reported = host.send_targets(what).await;
            assert_eq!(reported.len(), 1, "{what:?}");
            assert_eq!(reported[0].name, TARGET);
            assert_eq!(reported[0].addresses[0].address, bench.portal.to_string());
            assert_eq!(reported[0].addresses[0].portal_group_tag, 1);
        }
    });
}

#[test]
fn a_thousand_targets_come_in_one_answer() {
    run(Setup::default(), |bench| async move {
        let everyone = everyone();
        let name = |number: usize| format!("iqn.2026-11.io.causeway:target-{number:04}");
        let targets = (0..1000)
            .map(|number| exported(&name(number), vec![grant(&everyone, 0)]))
            .collect();
        bench.publish(targets).await;
        let mut config = config(ALICE, None);
        for segment in [512, 8192, 1 << 20] {
            config.offer.max_recv_data_segment_length = segment;
            let host = bench.try_login(&config).await.unwrap();
            let reported = host.send_targets("All").await;
            assert_eq!(reported.len(), 1000, "segments of {segment}");
            assert!(reported.iter().enumerate().all(|(number, target)| {
                target.name == name(number) && target.addresses.len() == 1
            }));
        }
    });
}

// spec: RFC 7143 13.8 "TargetAddress".
#[test]
fn through_an_ipv6_portal_the_ipv6_addresses_of_its_group_are_reported() {
    run(Setup::default(), |bench| async move {
        let v6: SocketAddr = "[fd00::1]:3260".parse().unwrap();
        let elsewhere: SocketAddr = SocketAddr::new(bench.san.ip(), 3270);
        let groups = vec![
            PortalGroup {
                cores: Vec::new(),
                name: "both".to_owned(),
                tag: 1,
                listens: vec![Listen::Address(bench.portal), Listen::Address(v6)],
            },
            PortalGroup {
                cores: Vec::new(),
                name: "second".to_owned(),
                tag: 2,
                listens: vec![Listen::Address(elsewhere)],
            },
        ];
        bench.publish_portals(groups).await;
        bench.sleep(std::time::Duration::from_millis(100)).await;
        for (asked, expected) in [
            (v6, vec![v6.to_string()]),
            (bench.portal, vec![bench.portal.to_string()]),
            // No target belongs to the second group.
            (elsewhere, vec![]),
        ] {
            let host = Host::login(&bench.host_core, asked, &config(ALICE, None)).await;
            let reported = host.unwrap().send_targets("All").await;
            let addresses: Vec<String> = reported
                .into_iter()
                .flat_map(|one| one.addresses)
                .map(|portal| portal.address)
                .collect();
            assert_eq!(addresses, expected, "asked at {asked}");
        }
        let host = Host::login(&bench.host_core, v6, &config(ALICE, Some(TARGET))).await;
        host.unwrap().settle(1).await;
    });
}

#[test]
fn a_wildcard_portal_reports_every_address_of_its_family_but_the_loopback() {
    run(Setup::default(), |bench| async move {
        let any: SocketAddr = "0.0.0.0:3260".parse().unwrap();
        bench
            .publish_portals(vec![PortalGroup {
                cores: Vec::new(),
                name: "any".to_owned(),
                tag: 1,
                listens: vec![Listen::Address(any)],
            }])
            .await;
        bench
            .san
            .add_address("eth1", "10.1.0.1".parse().unwrap(), 24);
        bench.sleep(std::time::Duration::from_millis(1500)).await;
        let host = bench.try_login(&config(ALICE, None)).await.unwrap();
        let reported = host.send_targets("All").await;
        let mut addresses: Vec<&str> = reported[0]
            .addresses
            .iter()
            .map(|portal| portal.address.as_str())
            .collect();
        addresses.sort_unstable();
        assert_eq!(addresses, ["10.0.0.1:3260", "10.1.0.1:3260"]);
    });
}
