//! Sessions that end, or abort, while a unit is being taken away from them; and logins that take
//! too long to be of use.

use crate::bench::{
    ALICE, BLOCK, Bench, Setup, TARGET, everyone, exported, grant, read_10, run, write_10,
};
use crate::host::{Host, Sent, config, lun};
use iscsi_target::{ExportedTarget, Settings};
use std::time::Duration;
use volume::OpKind;

const MOMENT: Duration = Duration::from_millis(200);
const TWO_SECONDS: Duration = Duration::from_secs(2);
const ABORT_TASK: u8 = 1;
const TASK_ABORTED: u8 = 0x40;

/// Another unit under number 0.
fn replaced() -> ExportedTarget {
    let mut other = grant(&everyone(), 0);
    other.unit = logical_unit::UnitId(1);
    exported(TARGET, vec![other])
}

/// A write and a read are at LUN 0, whose backend hangs.
async fn two(bench: &Bench, host: &Host) -> Vec<Sent> {
    host.settle(0).await;
    bench.hang(0, &[OpKind::Write, OpKind::Read]);
    let sent = vec![
        host.send(0, &write_10(0, 8), &[1; 8 * BLOCK], 0),
        host.send(0, &read_10(64, 8), &[], 8 * BLOCK),
    ];
    bench
        .until(TWO_SECONDS, "both hang", || bench.faults[0].hanging() == 2)
        .await;
    sent
}

fn replace_meanwhile(bench: &Bench) {
    let publish = bench.clone();
    bench.spawn(async move { publish.publish(vec![replaced()]).await });
}

#[test]
fn an_abort_of_a_task_waits_for_the_unit_that_has_it_and_not_for_the_one_under_its_number_now() {
    run(Setup::default(), |bench| async move {
        let host = bench.login(ALICE).await;
        let sent = two(&bench, &host).await;
        replace_meanwhile(&bench);
        bench.sleep(MOMENT).await;
        let abort = bench.start(host.function(ABORT_TASK, lun(0), Some(sent[0].itt)));
        bench.sleep(MOMENT).await;
        assert!(abort.borrow().is_none(), "the backend still has the write");
        bench
            .until(TWO_SECONDS, "ABORT TASK", || abort.borrow().is_some())
            .await;
        assert_eq!(*abort.borrow(), Some(Ok(0)));
        for one in sent {
            let end = bench.within(TWO_SECONDS, "an answer", one.end()).await;
            assert_eq!(end.expect("answered").status, TASK_ABORTED);
        }
    });
}

#[test]
fn a_logout_waits_for_the_commands_of_a_unit_that_is_going_away() {
    run(Setup::default(), |bench| async move {
        let host = bench.login(ALICE).await;
        let sent = two(&bench, &host).await;
        replace_meanwhile(&bench);
        bench.sleep(MOMENT).await;
        host.logout();
        bench.sleep(MOMENT).await;
        assert_eq!(host.logged_out(), None, "the backend still has the write");
        bench
            .until(TWO_SECONDS, "the logout", || host.logged_out().is_some())
            .await;
        assert_eq!(host.logged_out(), Some(0));
        drop(sent);
    });
}

/// The session that it takes the place of has a write that hangs, which takes longer than the login
/// may.
#[test]
fn a_login_that_took_too_long_makes_no_session_when_what_it_waited_for_is_over() {
    let settings = Settings {
        login_timeout: Duration::from_millis(500),
        ..Settings::default()
    };
    let setup = Setup {
        settings,
        ..Setup::default()
    };
    run(setup, |bench| async move {
        let host = bench.login(ALICE).await;
        let sent = two(&bench, &host).await;
        let config = config(ALICE, Some(TARGET));
        let again = bench.try_login(&config).await;
        assert!(again.is_err(), "it is not let in later");
        bench.sleep(2 * TWO_SECONDS).await;
        assert_eq!(bench.sessions().await.len(), 0, "and leaves nothing");
        bench.release(0);
        let host = bench.login(ALICE).await;
        host.settle(0).await;
        drop(sent);
    });
}
