//! Portals that follow the interfaces while the target runs.

use crate::bench::{ALICE, BOB, Bench, Setup, TARGET, TEST_UNIT_READY, run};
use crate::host::{Host, Refused, config};
use iscsi_target::{Listen, PortalGroup};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn group(listens: Vec<Listen>) -> Vec<PortalGroup> {
    vec![PortalGroup {
        cores: Vec::new(),
        name: "default".to_owned(),
        tag: 1,
        listens,
    }]
}

fn on_interface(name: &str) -> Vec<PortalGroup> {
    group(vec![Listen::Interface {
        name: name.to_owned(),
        port: 3260,
    }])
}

async fn discover(bench: &Bench, portal: SocketAddr) -> Result<Vec<String>, Refused> {
    let host = Host::login(&bench.host_core, portal, &config(ALICE, None)).await?;
    let targets = host.send_targets("All").await;
    Ok(targets
        .into_iter()
        .flat_map(|target| target.addresses)
        .map(|portal| portal.address)
        .collect())
}

/// Tries until it works; panics after a second.
async fn discover_within_a_second(bench: &Bench, portal: SocketAddr) -> Vec<String> {
    let work = async {
        loop {
            if let Ok(addresses) = discover(bench, portal).await {
                return addresses;
            }
            bench.sleep(Duration::from_millis(20)).await;
        }
    };
    bench.within(SECOND, "discovery is answered", work).await
}

#[test]
fn an_address_added_to_an_interface_answers_discovery_and_login_within_a_second() {
    for text in ["10.0.0.77", "fd00::77"] {
        run(Setup::default(), move |bench| async move {
            bench.publish_portals(on_interface("eth0")).await;
            let address: IpAddr = text.parse().unwrap();
            let portal = SocketAddr::new(address, 3260);
            let old = discover_within_a_second(&bench, bench.portal).await;
            assert!(!old.contains(&portal.to_string()));
            discover(&bench, portal)
                .await
                .expect_err("nobody has the address yet");

            bench.san.add_address("eth0", address, 64);
            let reported = discover_within_a_second(&bench, portal).await;
            assert!(reported.contains(&portal.to_string()), "{reported:?}");
            let host = Host::login(&bench.host_core, portal, &config(ALICE, Some(TARGET))).await;
            host.expect("a login is taken").settle(0).await;
        });
    }
}

#[test]
fn an_interface_that_comes_later_is_followed_too() {
    run(Setup::default(), |bench| async move {
        bench.publish_portals(on_interface("eth7")).await;
        bench.sleep(SECOND).await;
        discover(&bench, bench.portal)
            .await
            .expect_err("eth0 is not listened at any more");
        bench
            .san
            .add_address("eth7", "10.0.7.1".parse().unwrap(), 24);
        discover_within_a_second(&bench, "10.0.7.1:3260".parse().unwrap()).await;
    });
}

#[test]
fn an_address_that_is_removed_stops_listening_and_sessions_elsewhere_go_on() {
    run(Setup::default(), |bench| async move {
        bench.publish_portals(on_interface("eth0")).await;
        let second: IpAddr = "10.0.0.78".parse().unwrap();
        let portal = SocketAddr::new(second, 3260);
        bench.san.add_address("eth0", second, 24);
        discover_within_a_second(&bench, portal).await;
        let first = bench.login(ALICE).await;
        let over_second = Host::login(&bench.host_core, portal, &config(BOB, Some(TARGET))).await;
        let over_second = over_second.expect("the login is taken");
        first.settle(0).await;
        over_second.settle(0).await;
        let numbers = |sessions: Vec<iscsi_target::SessionInfo>| -> Vec<u64> {
            sessions.iter().map(|session| session.number.0).collect()
        };
        let before = numbers(bench.sessions().await);

        bench.san.remove_address(second);
        let server = bench.server.clone();
        bench
            .until(SECOND, "the portal is gone", || {
                server
                    .portals()
                    .iter()
                    .all(|portal| portal.address.ip() != second)
            })
            .await;
        let reported = discover(&bench, bench.portal).await.unwrap();
        assert!(!reported.contains(&portal.to_string()), "{reported:?}");
        assert_eq!(first.command(0, &TEST_UNIT_READY, &[], 0).await.status, 0);

        // The session over the address that went is not ended by us: it goes on when the address is
        // back.
        bench.san.add_address("eth0", second, 24);
        let alive = over_second.command(0, &TEST_UNIT_READY, &[], 0);
        let alive = bench.within(SECOND, "the old session goes on", alive).await;
        assert_eq!(alive.status, 0);
        assert_eq!(numbers(bench.sessions().await), before);
        discover_within_a_second(&bench, portal).await;
    });
}

#[test]
fn a_portal_that_is_closed_takes_no_connection_from_then_on() {
    run(Setup::default(), |bench| async move {
        discover(&bench, bench.portal).await.unwrap();
        bench.publish_portals(group(vec![])).await;
        bench.sleep(Duration::from_millis(100)).await;
        discover(&bench, bench.portal)
            .await
            .expect_err("nothing listens");
    });
}

#[test]
fn a_port_that_cannot_be_bound_is_shown_and_tried_again_until_it_can() {
    run(Setup::default(), |bench| async move {
        let taken: SocketAddr = SocketAddr::new(bench.san.ip(), 3999);
        let squatter = bench.core.net().listen(taken).expect("the port is free");
        let both = vec![Listen::Address(bench.portal), Listen::Address(taken)];
        bench.publish_portals(group(both)).await;
        bench.sleep(Duration::from_millis(1500)).await;
        let status = bench.server.portals();
        let failed: Vec<_> = status.iter().filter(|one| one.error.is_some()).collect();
        assert_eq!(failed.len(), 1, "{status:?}");
        assert_eq!(failed[0].address, taken);
        // The other portal of the group works, and does not report this one.
        let reported = discover(&bench, bench.portal).await.unwrap();
        assert_eq!(reported, [bench.portal.to_string()]);

        drop(squatter);
        let server = bench.server.clone();
        let all_well = || server.portals().iter().all(|portal| portal.error.is_none());
        bench
            .until(Duration::from_millis(1100), "the port is bound", all_well)
            .await;
        let reported = discover(&bench, taken).await.unwrap();
        assert_eq!(reported.len(), 2, "{reported:?}");
    });
}

#[test]
fn an_address_that_two_portal_groups_name_belongs_to_one_and_the_other_is_shown_as_refused() {
    run(Setup::default(), |bench| async move {
        let mut groups = group(vec![Listen::Address(bench.portal)]);
        groups.push(PortalGroup {
            cores: Vec::new(),
            name: "second".to_owned(),
            tag: 2,
            listens: vec![Listen::Address(bench.portal)],
        });
        bench.publish_portals(groups).await;
        bench.sleep(Duration::from_millis(100)).await;
        let status = bench.server.portals();
        let refused: Vec<u16> = status
            .iter()
            .filter(|one| one.error.is_some())
            .map(|one| one.portal_group_tag)
            .collect();
        assert_eq!(refused, [2], "{status:?}");
    });
}
