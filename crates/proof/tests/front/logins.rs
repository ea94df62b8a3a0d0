//! Logins that are refused: with which status, and what is reported to people.

use crate::bench::{
    ALICE, BOB, Bench, OTHER, Setup, TARGET, everyone, exported, grant, host_object, open_target,
    run,
};
use crate::host::{Refused, config};
use crate::raw::Raw;
use iscsi::chap::{ChapAlgorithm, Secret};
use iscsi::initiator_side::{InitiatorChap, InitiatorConfig, TargetProof};
use iscsi::{Isid, LoginStatus};
use iscsi_target::{HostChap, Redirect, Settings};
use std::time::Duration;

const SECRET: &[u8] = b"twelve-bytes-and-more";
const TARGET_SECRET: &[u8] = b"another-secret-of-ours";

/// What a host proves itself with.
fn chap(user: &str, secret: &[u8], target: Option<&[u8]>) -> InitiatorChap {
    InitiatorChap {
        algorithms: ChapAlgorithm::ALL.to_vec(),
        user: user.to_owned(),
        secret: Secret::new(secret),
        target: target.map(|secret| TargetProof {
            user: Some("target".to_owned()),
            secret: Secret::new(secret),
            challenge: [7; iscsi::chap::CHALLENGE_BYTES],
            identifier: 9,
        }),
    }
}

fn host_chap(mutual: bool) -> HostChap {
    HostChap {
        user: "alice".to_owned(),
        secret: Secret::new(SECRET),
        mutual: mutual.then(|| ("target".to_owned(), Secret::new(TARGET_SECRET))),
    }
}

/// Refused with this status, and the newest refusal says why.
async fn refused(bench: &Bench, config: &InitiatorConfig, status: LoginStatus, why: &str) {
    let answer = bench.try_login(config).await;
    let reported = answer.err().unwrap_or_else(|| panic!("{why}: was let in"));
    assert_eq!(reported.status, Some(status), "{why}: {reported:?}");
    let newest = bench.server.refusals().list().into_iter().next();
    let newest = newest.unwrap_or_else(|| panic!("{why}: nothing is recorded"));
    assert_eq!(newest.status, status.to_string(), "{why}");
    assert!(
        newest.reason.contains(why),
        "{:?} lacks {why:?}",
        newest.reason
    );
    assert_eq!(
        newest.initiator.as_deref(),
        Some(config.initiator_name.as_str())
    );
    assert_eq!(newest.target, config.target_name);
    assert_eq!(newest.peer.ip(), bench.hosts.ip());
}

// spec: RFC 7143 11.13.5 "Status-Class and Status-Detail".
#[test]
fn every_refusal_has_its_exact_status_and_its_reason_is_recorded() {
    run(Setup::default(), |bench| async move {
        let alice = host_object("alice", ALICE, None);
        let moved = |name: &str, permanent| {
            let mut target = exported(name, vec![grant(&alice, 0)]);
            target.redirect = Some(Redirect {
                address: "192.0.2.9:3260".to_owned(),
                permanent,
            });
            target
        };
        let mut resting = exported("iqn.x:rest", vec![grant(&alice, 0)]);
        resting.maintenance = true;
        let mut elsewhere = exported("iqn.x:group2", vec![grant(&alice, 0)]);
        elsewhere.portal_group_tag = 2;
        bench
            .publish(vec![
                exported(TARGET, vec![grant(&alice, 0)]),
                moved("iqn.x:for-now", false),
                moved("iqn.x:for-good", true),
                resting,
                elsewhere,
            ])
            .await;
        let to = |target: &str| config(ALICE, Some(target));
        use LoginStatus as S;
        refused(&bench, &to(OTHER), S::NotFound, "there is no target").await;
        refused(&bench, &to("iqn.x:group2"), S::NotFound, "portal group 2").await;
        let eve = config("iqn.2026-11.example:eve", Some(TARGET));
        refused(&bench, &eve, S::AuthorizationFailure, "granted nothing").await;
        refused(
            &bench,
            &to("iqn.x:rest"),
            S::ServiceUnavailable,
            "maintenance",
        )
        .await;
        refused(
            &bench,
            &to("iqn.x:for-now"),
            S::TargetMovedTemporarily,
            "192.0.2.9",
        )
        .await;
        refused(
            &bench,
            &to("iqn.x:for-good"),
            S::TargetMovedPermanently,
            "192.0.2.9",
        )
        .await;
        let moved = bench.try_login(&to("iqn.x:for-good")).await.err().unwrap();
        assert_eq!(moved.redirect.as_deref(), Some("192.0.2.9:3260"));
        // A stranger does not learn where a target went.
        let stranger = config("iqn.2026-11.example:eve", Some("iqn.x:for-good"));
        refused(
            &bench,
            &stranger,
            S::AuthorizationFailure,
            "granted nothing",
        )
        .await;
    });
}

#[test]
fn a_target_that_was_removed_is_reported_from_one_that_never_was() {
    run(Setup::default(), |bench| async move {
        let all = everyone();
        let (first, second) = (open_target(2), exported(OTHER, vec![grant(&all, 0)]));
        bench.publish(vec![first.clone(), second.clone()]).await;
        bench.publish(vec![first.clone()]).await;
        let other = config(ALICE, Some(OTHER));
        refused(&bench, &other, LoginStatus::TargetRemoved, "removed").await;
        let never = config(ALICE, Some("iqn.x:never"));
        refused(&bench, &never, LoginStatus::NotFound, "no target").await;
        bench.publish(vec![first, second]).await;
        bench.try_login(&other).await.expect("it is there again");
    });
}

#[test]
fn who_had_no_grant_at_a_removed_target_is_not_reported_that_there_was_one() {
    run(Setup::default(), |bench| async move {
        let alice = host_object("alice", ALICE, None);
        bench
            .publish(vec![exported(OTHER, vec![grant(&alice, 0)])])
            .await;
        bench.publish(vec![open_target(1)]).await;
        let (alice, bob) = (config(ALICE, Some(OTHER)), config(BOB, Some(OTHER)));
        refused(&bench, &alice, LoginStatus::TargetRemoved, "removed").await;
        refused(&bench, &bob, LoginStatus::NotFound, "no target").await;
    });
}

/// The node tries its own portals by a name that nobody else knows.
#[test]
fn a_target_that_is_there_refuses_the_probe_and_nobody_hears_of_it() {
    run(Setup::default(), |bench| async move {
        let name = bench.server.probe_name(&bench.core);
        bench.publish(vec![open_target(1)]).await;
        let probe = |target: &str| config(&name, Some(target));
        // Everybody may log in there, and the probe is no session all the same.
        let answer = bench.try_login(&probe(TARGET)).await.err().unwrap();
        assert_eq!(answer.status, Some(LoginStatus::AuthorizationFailure));
        let answer = bench.try_login(&probe("iqn.x:never")).await.err().unwrap();
        assert_eq!(answer.status, Some(LoginStatus::NotFound));
        bench.publish(Vec::new()).await;
        let answer = bench.try_login(&probe(TARGET)).await.err().unwrap();
        assert_eq!(answer.status, Some(LoginStatus::TargetRemoved));
        assert_eq!(bench.server.refusals().list(), []);
        assert_eq!(bench.server.refusals().counts().refused.len(), 0);
        let bob = config(BOB, Some("iqn.x:never"));
        refused(&bench, &bob, LoginStatus::NotFound, "no target").await;
    });
}

/// All combinations of what is configured and what is offered: only the right ones are let in, with
/// discovery exactly as with a normal session (field lesson 48).
// spec: RFC 7143 12.1.3 "Challenge Handshake Authentication Protocol (CHAP)".
#[test]
fn nobody_gets_in_without_the_proof_that_is_configured_and_discovery_is_no_easier() {
    run(Setup::default(), |bench| async move {
        for configured in [None, Some(host_chap(false)), Some(host_chap(true))] {
            let alice = host_object("alice", ALICE, configured.clone());
            bench
                .publish(vec![exported(TARGET, vec![grant(&alice, 0)])])
                .await;
            for (offer, right) in [
                (None, configured.is_none()),
                // Offered and not asked for: taken, as nothing was to be proved.
                (Some(chap("alice", SECRET, None)), true),
                (
                    Some(chap("alice", b"the-wrong-secret", None)),
                    configured.is_none(),
                ),
                (Some(chap("mallory", SECRET, None)), configured.is_none()),
                (
                    Some(chap("alice", SECRET, Some(TARGET_SECRET))),
                    configured.as_ref().is_some_and(|it| it.mutual.is_some()),
                ),
                (
                    Some(chap("alice", SECRET, Some(b"not-the-target-s"))),
                    false,
                ),
            ] {
                for target in [None, Some(TARGET)] {
                    let mut config = config(ALICE, target);
                    config.chap = offer.clone();
                    let answer = bench.try_login(&config).await;
                    let what = format!(
                        "configured {configured:?} offered {offer:?} to {target:?}: {:?}",
                        answer.as_ref().err()
                    );
                    assert_eq!(answer.is_ok(), right, "{what}");
                    let reported = answer.err().and_then(|reported| reported.status);
                    assert!(
                        reported
                            .is_none_or(|reported| reported == LoginStatus::AuthenticationFailure),
                        "{what}"
                    );
                }
            }
        }
    });
}

#[test]
fn wrong_credentials_are_recorded_with_their_reason_and_without_the_secret() {
    run(Setup::default(), |bench| async move {
        let alice = host_object("alice", ALICE, Some(host_chap(false)));
        bench
            .publish(vec![exported(TARGET, vec![grant(&alice, 0)])])
            .await;
        let mut config = config(ALICE, Some(TARGET));
        let status = LoginStatus::AuthenticationFailure;
        refused(&bench, &config, status, "").await;
        config.chap = Some(chap("alice", b"the-wrong-secret", None));
        refused(&bench, &config, status, "").await;
        config.chap = Some(chap("mallory", SECRET, None));
        refused(&bench, &config, status, "CHAP name").await;
        for refusal in bench.server.refusals().list() {
            assert!(!refusal.reason.is_empty());
            let text = format!("{refusal:?}");
            assert!(!text.contains("wrong-secret") && !text.contains("twelve-bytes"));
        }
    });
}

// spec: RFC 7143 12.1.3 "Challenge Handshake Authentication Protocol (CHAP)".
#[test]
fn a_challenge_sent_back_is_refused_and_challenges_never_repeat() {
    run(Setup::default(), |bench| async move {
        let alice = host_object("alice", ALICE, Some(host_chap(true)));
        bench
            .publish(vec![exported(TARGET, vec![grant(&alice, 0)])])
            .await;
        let mut challenges = std::collections::BTreeSet::new();
        for _ in 0..20 {
            let mut raw = Raw::connect(&bench.host_core, bench.portal).await;
            let (identifier, challenge) = raw.chap_challenge(ALICE, TARGET).await;
            assert!(challenges.insert(challenge.clone()), "a challenge repeats");
            // The right proof, and the target's own challenge for it to answer.
            let bytes = iscsi::text::binary(&challenge, 1024).expect("a challenge");
            let response = ChapAlgorithm::Sha256.response(identifier, &Secret::new(SECRET), &bytes);
            let hexadecimal: String = response.iter().map(|byte| format!("{byte:02x}")).collect();
            let proof =
                format!("CHAP_N=alice\0CHAP_R=0x{hexadecimal}\0CHAP_I=1\0CHAP_C={challenge}\0");
            let (status, _) = raw.login_step(0, None, 0, &proof).await;
            assert_eq!(status, (2, 1));
        }
        let reason = bench.server.refusals().list()[0].reason.clone();
        assert!(
            reason.contains("challenge") || reason.contains("reflect"),
            "{reason}"
        );
    });
}

// spec: RFC 7143 6.3.1 "Login Phase Start".
#[test]
fn a_login_with_a_session_handle_is_kept_apart_from_one_with_an_unknown_handle() {
    run(Setup::default(), |bench| async move {
        let first = bench.login(ALICE).await;
        first.settle(0).await;
        let known = bench.sessions().await[0].tsih;
        for (tsih, expected) in [(known, (2, 6)), (known.wrapping_add(77), (2, 10))] {
            let mut raw = Raw::connect(&bench.host_core, bench.portal).await;
            raw.tsih = tsih;
            let text = format!("InitiatorName={ALICE}\0TargetName={TARGET}\0SessionType=Normal\0");
            let (status, _) = raw.login_step(1, Some(3), 0, &text).await;
            assert_eq!(status, expected, "TSIH {tsih:#x}");
        }
        // The session that was named is not disturbed.
        assert_eq!(first.command(0, &[0; 6], &[], 0).await.status, 0);
    });
}

fn small(settings: Settings) -> Setup {
    Setup {
        settings,
        ..Setup::default()
    }
}

#[test]
fn one_session_too_many_is_out_of_resources_until_one_ends() {
    let settings = Settings {
        sessions_max: 2,
        ..Settings::default()
    };
    run(small(settings), |bench| async move {
        let mut config = config(ALICE, Some(TARGET));
        let first = bench.try_login(&config).await.unwrap();
        config.isid = Isid([0x80, 0, 0, 0, 0, 2]);
        let _second = bench.try_login(&config).await.unwrap();
        config.isid = Isid([0x80, 0, 0, 0, 0, 3]);
        refused(
            &bench,
            &config,
            LoginStatus::OutOfResources,
            "2 sessions exist",
        )
        .await;
        // Reinstatement is no new session.
        config.isid = Isid([0x80, 0, 0, 0, 0, 2]);
        let _third = bench
            .try_login(&config)
            .await
            .expect("it takes its own place");
        first.logout();
        first.closed().await;
        config.isid = Isid([0x80, 0, 0, 0, 0, 3]);
        bench.try_login(&config).await.expect("there is room again");
    });
}

#[test]
fn a_login_that_takes_too_long_is_ended_and_recorded() {
    let settings = Settings {
        login_timeout: Duration::from_secs(3),
        ..Settings::default()
    };
    run(small(settings), |bench| async move {
        let mut raw = Raw::connect(&bench.host_core, bench.portal).await;
        let text = format!("InitiatorName={ALICE}\0TargetName={TARGET}\0AuthMethod=None\0");
        let (status, _) = raw.login_step(0, None, 0, &text).await;
        assert_eq!(status, (0, 0));
        bench.sleep(Duration::from_millis(2900)).await;
        assert!(!raw.is_closed_now(), "not before its time");
        bench.sleep(Duration::from_millis(1200)).await;
        assert!(raw.is_closed().await);
        let newest = bench.server.refusals().list()[0].clone();
        assert_eq!(newest.initiator.as_deref(), Some(ALICE));
        assert_eq!(newest.target.as_deref(), Some(TARGET));
        assert!(newest.reason.contains("long"), "{}", newest.reason);
    });
}

#[test]
fn a_login_one_byte_at_a_time_does_not_outlast_the_time_for_logins() {
    let settings = Settings {
        login_timeout: Duration::from_secs(3),
        ..Settings::default()
    };
    run(small(settings), |bench| async move {
        let mut raw = Raw::connect(&bench.host_core, bench.portal).await;
        for _ in 0..50 {
            raw.send_bytes(&[0x43]).await;
            bench.sleep(Duration::from_millis(100)).await;
        }
        assert!(raw.is_closed().await);
        let reported = bench.server.refusals().list();
        assert_eq!(reported.len(), 1);
        assert!(
            reported[0].reason.contains("long"),
            "{}",
            reported[0].reason
        );
    });
}

#[test]
fn as_many_sessions_as_may_be_turn_a_connection_away_and_that_is_reported() {
    let settings = Settings {
        sessions_max: 2,
        // No login in progress beside them that could go instead.
        logins_in_progress_max: 0,
        ..Settings::default()
    };
    run(small(settings), |bench| async move {
        let first = bench.login(ALICE).await;
        let _second = bench.login(BOB).await;
        assert_eq!(bench.server.refusals().turned_away(), 0);
        let mut third = Raw::connect(&bench.host_core, bench.portal).await;
        let second = Duration::from_secs(1);
        assert!(bench.within(second, "the end", third.is_closed()).await);
        assert_eq!(bench.server.refusals().turned_away(), 1);
        let reported = bench.server.refusals().list();
        assert_eq!(reported.len(), 1);
        let reason = "as many sessions as may be exist";
        assert!(
            reported[0].reason.contains(reason),
            "{}",
            reported[0].reason
        );
        first.logout();
        first.closed().await;
        let third = bench.try_login(&config("iqn.x:third", Some(TARGET))).await;
        third.expect("there is room again");
        assert_eq!(bench.server.refusals().turned_away(), 1);
    });
}

// spec: RFC 7143 4.2.7.1 "iSCSI Name Properties".
#[test]
fn names_are_the_same_in_upper_and_lower_case() {
    run(Setup::default(), |bench| async move {
        let alice = host_object("alice", "iqn.2026-11.EXAMPLE:Alice", None);
        bench
            .publish(vec![exported(TARGET, vec![grant(&alice, 0)])])
            .await;
        let upper = config(
            &ALICE.to_ascii_uppercase(),
            Some(&TARGET.to_ascii_uppercase()),
        );
        let first = bench.try_login(&upper).await.expect("let in");
        first.settle(0).await;
        // The same port in other letters is the same session: reinstated, not a second one.
        let second = bench.login(ALICE).await;
        first.closed().await;
        second.settle(0).await;
        assert_eq!(bench.sessions().await.len(), 1);
    });
}

#[test]
fn after_a_stop_no_login_is_taken() {
    run(Setup::default(), |bench| async move {
        let _old = bench.login(ALICE).await;
        bench
            .server
            .stop(&bench.core, Duration::from_millis(500))
            .await;
        let reported: Option<Refused> = bench.try_login(&config(BOB, Some(TARGET))).await.err();
        assert!(reported.is_some());
    });
}

#[test]
fn a_session_that_was_shut_out_sees_luns_again_only_by_the_proof_that_it_gave() {
    for (secret, stays) in [(SECRET, true), (b"a-secret-of-bobs".as_slice(), false)] {
        run(Setup::default(), move |bench| async move {
            let of = |secret: &[u8]| HostChap {
                secret: Secret::new(secret),
                ..host_chap(false)
            };
            let granted = |secret: &[u8]| {
                let alice = host_object("alice", ALICE, Some(of(secret)));
                vec![exported(TARGET, vec![grant(&alice, 0)])]
            };
            bench.publish(granted(SECRET)).await;
            let mut config = config(ALICE, Some(TARGET));
            config.chap = Some(chap("alice", SECRET, None));
            let host = bench.try_login(&config).await.unwrap();
            host.settle(0).await;
            // The host is deleted, and made again.
            bench.publish(vec![exported(TARGET, Vec::new())]).await;
            bench.publish(granted(secret)).await;
            if stays {
                host.settle(0).await;
                assert_eq!(bench.sessions().await[0].luns, [0]);
            } else {
                let second = Duration::from_secs(1);
                bench.within(second, "the end", host.closed()).await;
                assert!(bench.sessions().await.is_empty());
            }
        });
    }
}
