//! The `iscsi_initiator` crate against our target, in a simulated world.

use crate::bench::{
    ALICE, BLOCK, BOB, Bench, OTHER, Setup, TARGET, exported, grant, host_object, read_10, run,
    write_10,
};
use iscsi::CloseReason;
use iscsi::bhs::Attribute;
use iscsi::chap::{ChapAlgorithm, Secret};
use iscsi::extension_keys::{FENCE, fence_value};
use iscsi::initiator_side::{InitiatorChap, InitiatorCommand, InitiatorConfig, TargetProof};
use iscsi::{DigestChoice, Isid, LoginStatus, Lun, Offer, Tsih};
use iscsi_initiator::{Answer, LoginError, Lost, Session, connect, discover};
use iscsi_target::HostChap;
use std::time::Duration;
use units::Buf;
use volume::OpKind;

const GOOD: u8 = 0;
const ABORT_TASK_SET: u8 = 2;

fn config(target: Option<&str>) -> InitiatorConfig {
    InitiatorConfig::new(ALICE, target, Isid([0x80, 1, 2, 3, 4, 5]))
}

fn command(cdb: &[u8]) -> InitiatorCommand {
    let mut whole = [0; 16];
    whole[..cdb.len()].copy_from_slice(cdb);
    InitiatorCommand {
        lun: Lun::default(),
        cdb: whole,
        attribute: Attribute::Simple,
        immediate: false,
    }
}

/// A session that has heard of the power on.
async fn session(bench: &Bench, config: &InitiatorConfig) -> Session {
    let connection = connect(&bench.host_core, bench.portal, None, config).await;
    let session = Session::new(&bench.host_core, connection.expect("the login is taken"));
    while session
        .command(command(&[0; 6]), Buf::empty(), None)
        .await
        .expect("a small number, and a session that stands")
        .status
        != GOOD
    {}
    session
}

fn write(session: &Session, block: u32, data: &[u8]) -> Answer {
    let blocks =
        u16::try_from(data.len() / BLOCK).expect("a small number, and a session that stands");
    session.command(command(&write_10(block, blocks)), Buf::copy_of(data), None)
}

fn read(bench: &Bench, session: &Session, block: u32, bytes: usize) -> Answer {
    let blocks = u16::try_from(bytes / BLOCK).expect("a small number, and a session that stands");
    let into = bench
        .host_core
        .pool()
        .alloc(bytes)
        .expect("a small number, and a session that stands");
    session.command(command(&read_10(block, blocks)), Buf::empty(), Some(into))
}

fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    let byte = |at| {
        u8::try_from((at * 31 + seed * 7 + at / 251) % 256)
            .expect("a small number, and a session that stands")
    };
    (0..bytes).map(byte).collect()
}

#[test]
fn what_is_written_is_read_back_in_every_size_with_and_without_digests() {
    for (seed, digest) in [(1, DigestChoice::Never), (2, DigestChoice::Required)] {
        let setup = Setup {
            seed,
            ..Setup::default()
        };
        run(setup, move |bench| async move {
            let mut config = config(Some(TARGET));
            config.offer = Offer {
                header_digest: digest,
                data_digest: digest,
                ..Offer::default()
            };
            let session = session(&bench, &config).await;
            // In bulk, received where it belongs, and with R2Ts; all in flight at once.
            let sizes = [BLOCK, 4096, 16 << 10, 40 << 10, 256 << 10, 1 << 20];
            let places = [0, 8, 64, 128, 512, 2048];
            let jobs = || sizes.into_iter().zip(places);
            let written: Vec<Answer> = jobs()
                .map(|(bytes, at)| write(&session, at, &pattern(bytes, bytes)))
                .collect();
            for answer in written {
                assert_eq!(answer.await.unwrap().status, GOOD);
            }
            let found: Vec<Answer> = jobs()
                .map(|(bytes, at)| read(&bench, &session, at, bytes))
                .collect();
            for (answer, bytes) in found.into_iter().zip(sizes) {
                let completion = answer.await.unwrap();
                assert_eq!(completion.status, GOOD);
                assert!(
                    completion.data_in.to_vec() == pattern(bytes, bytes),
                    "{bytes} bytes differ"
                );
            }
            session.logout().await;
            assert!(matches!(
                session.ended().await,
                Lost::Protocol(CloseReason::LoggedOut)
            ));
            let late = read(&bench, &session, 0, BLOCK).await;
            assert!(late.is_err(), "a command after the logout");
        });
    }
}

#[test]
fn both_sides_prove_themselves_and_a_wrong_secret_is_refused() {
    run(Setup::default(), |bench| async move {
        let ours = b"twelve-bytes-and-more";
        let theirs = b"another-secret-of-ours";
        let chap = HostChap {
            user: "alice".to_owned(),
            secret: Secret::new(ours),
            mutual: Some(("target".to_owned(), Secret::new(theirs))),
        };
        let alice = host_object("alice", ALICE, Some(chap));
        bench
            .publish(vec![exported(TARGET, vec![grant(&alice, 0)])])
            .await;
        let mut config = config(Some(TARGET));
        let proof = |secret: &[u8]| InitiatorChap {
            algorithms: ChapAlgorithm::ALL.to_vec(),
            user: "alice".to_owned(),
            secret: Secret::new(secret),
            target: Some(TargetProof {
                user: Some("target".to_owned()),
                secret: Secret::new(theirs),
                challenge: [0; iscsi::chap::CHALLENGE_BYTES],
                identifier: 0,
            }),
        };
        config.chap = Some(proof(ours));
        let session = session(&bench, &config).await;
        assert_eq!(read(&bench, &session, 0, 4096).await.unwrap().status, GOOD);
        config.chap = Some(proof(b"a-wrong-secret-of-theirs"));
        let refused = connect(&bench.host_core, bench.portal, None, &config).await;
        let Err(LoginError::Refused { status, .. }) = refused else {
            panic!("a wrong secret was let in, or the refusal was lost");
        };
        assert_eq!(status, Some(LoginStatus::AuthenticationFailure));
    });
}

#[test]
fn every_command_ends_when_its_connection_does() {
    run(Setup::default(), |bench| async move {
        let session = session(&bench, &config(Some(TARGET))).await;
        bench.hang(0, &[OpKind::Read]);
        let waiting: Vec<Answer> = (0..8)
            .map(|at| read(&bench, &session, at * 8, 4096))
            .collect();
        let abandoned = read(&bench, &session, 0, 4096);
        drop(abandoned);
        let number = bench.sessions().await[0].number;
        assert!(bench.server.drop_session(&bench.core, number).await);
        for answer in waiting {
            assert!(answer.await.is_err(), "a command whose connection is gone");
        }
        assert!(matches!(
            session.ended().await,
            Lost::PeerClosed | Lost::Socket(_)
        ));
        bench.release(0);
    });
}

#[test]
fn a_task_management_function_is_answered_next_to_hanging_commands() {
    run(Setup::default(), |bench| async move {
        let session = session(&bench, &config(Some(TARGET))).await;
        bench.hang(0, &[OpKind::Read]);
        let hanging = read(&bench, &session, 0, 4096);
        let function = session.task_management(ABORT_TASK_SET, Lun::default(), None);
        let response = bench.within(Duration::from_secs(3), "the function is answered", function);
        assert_eq!(response.await.unwrap(), 0, "function complete");
        assert!(matches!(hanging.await, Err(Lost::Aborted)));
        bench.release(0);
        assert_eq!(read(&bench, &session, 8, 4096).await.unwrap().status, GOOD);
    });
}

#[test]
fn the_last_handle_that_is_dropped_logs_out() {
    run(Setup::default(), |bench| async move {
        let session = session(&bench, &config(Some(TARGET))).await;
        assert_eq!(bench.sessions().await.len(), 1);
        drop(session);
        for _ in 0..1000 {
            if bench.sessions().await.is_empty() {
                return;
            }
            bench.sleep(Duration::from_millis(1)).await;
        }
        panic!("the session stays");
    });
}

#[test]
fn discovery_reports_the_targets_and_an_unknown_one_is_refused() {
    run(Setup::default(), |bench| async move {
        let found = discover(&bench.host_core, bench.portal, &config(None)).await;
        let found = found.expect("discovery is answered");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, TARGET);
        assert!(found[0].addresses[0].address.ends_with(":3260"));
        let unknown = connect(&bench.host_core, bench.portal, None, &config(Some(OTHER))).await;
        let Err(LoginError::Refused { status, .. }) = unknown else {
            panic!("an unknown target was let in, or the refusal was lost");
        };
        assert_eq!(status, Some(LoginStatus::NotFound));
    });
}

async fn fence(session: &Session, isid: Isid, tsih: u16) -> String {
    let value = fence_value(isid, Tsih(tsih));
    let answer = session.text(&[(FENCE, &value)]).await;
    String::from_utf8(answer.expect("the session stands")).expect("text")
}

const FENCED: &str = "X-org.causeway.Fence=Fenced\0";

#[test]
fn a_fence_ends_the_other_session_on_its_core_and_what_its_backend_still_has_loses() {
    for seed in 0..20 {
        let mut setup = Setup {
            seed,
            ..Setup::default()
        };
        setup.world.cores = 3;
        run(setup, move |bench| async move {
            let (first, second) = (Isid([0x80, 0, 0, 0, 0, 1]), Isid([0x80, 0, 0, 0, 0, 2]));
            let of = |initiator, isid| InitiatorConfig::new(initiator, Some(TARGET), isid);
            let old = session(&bench, &of(ALICE, first)).await;
            let tsih = bench.sessions().await[0].tsih;
            let new = session(&bench, &of(ALICE, second)).await;
            let bob = session(&bench, &of(BOB, first)).await;
            bench.hang(0, &[OpKind::Write]);
            let pending = write(&old, 0, &[1; 8 * BLOCK]);
            bench.sleep(Duration::from_millis(50)).await;
            assert_eq!(bench.faults[0].hanging(), 1);

            // Of another initiator: none of its sessions is that one.
            assert_eq!(fence(&bob, first, tsih).await, FENCED);
            // Of another login of the same port: over already.
            assert_eq!(fence(&new, first, tsih + 100).await, FENCED);
            assert_eq!(bench.sessions().await.len(), 3);

            let asked = fence(&new, first, tsih);
            let answer = bench
                .within(Duration::from_secs(2), "the fence", asked)
                .await;
            assert_eq!(answer, FENCED);
            assert_eq!(bench.sessions().await.len(), 2, "it is over on every core");
            assert!(pending.await.is_err(), "it was never acknowledged");
            old.ended().await;

            // What overlaps waits for what the backend still has, and wins.
            bench.faults[0].clear();
            let newer = write(&new, 0, &[2; 8 * BLOCK]);
            bench.sleep(Duration::from_secs(3)).await;
            bench.release(0);
            assert_eq!(newer.await.expect("it stands").status, GOOD);
            let found = read(&bench, &new, 0, 8 * BLOCK).await.expect("it stands");
            assert!(found.data_in.to_vec().iter().all(|byte| *byte == 2));

            // Nobody fences the branch that he sits on.
            let own = bench.sessions().await;
            let own = own.iter().find(|it| it.initiator == ALICE);
            let own = fence(&new, second, own.expect("it stands").tsih).await;
            assert_eq!(own, "X-org.causeway.Fence=NotFenced\0");
        });
    }
}
