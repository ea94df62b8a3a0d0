//! Another host resets the unit, or clears its commands, while this one works: what is gone is sent
//! again at once.

use crate::bench::{San, TARGET, Wish, on, options, runtime};
use crate::own::{pause, states, under_load, until};
use env::CoreHandle;
use iscsi::initiator_side::InitiatorConfig;
use iscsi::{Isid, Lun};
use iscsi_initiator::Session;
use std::net::SocketAddr;
use std::time::Duration;
use volume::OpKind;
use volume_test::{Action, FaultRule};

const CLEAR_TASK_SET: u8 = 4;
pub(crate) const LOGICAL_UNIT_RESET: u8 = 5;
pub(crate) const COMPLETE: u8 = 0;
/// Nobody waits longer than that for commands that another host has ended.
pub(crate) const STALL_MAX: Duration = Duration::from_secs(1);

/// Another host.
pub(crate) struct Stranger {
    session: Session,
    lun: Lun,
}

impl Stranger {
    pub(crate) async fn new(
        core: &CoreHandle,
        portal: SocketAddr,
        config: &InitiatorConfig,
        lun: u8,
    ) -> Self {
        let connection = iscsi_initiator::connect(core, portal, None, config).await;
        let session = Session::new(core, connection.expect("the stranger logs in"));
        let lun = Lun([0, lun, 0, 0, 0, 0, 0, 0]);
        Self { session, lun }
    }

    pub(crate) async fn function(&self, function: u8) -> u8 {
        let done = self.session.task_management(function, self.lun, None);
        done.await.expect("answered")
    }
}

/// Under a verified load over two paths, another host ends all commands, again and again.
fn ended_by_another_host(name: &'static str, tas: bool, functions: &'static [u8]) {
    let san = San::start(Wish {
        portals: 2,
        units: 1,
        ..Wish::default()
    });
    let unit = std::sync::Arc::clone(&san.units[0].0);
    on(&san.runtime, move |core| async move {
        unit.fix_task_aborted_status(&core, Some(tas)).await;
    });
    // Every command is with the backend when it is ended, and the backend returns it soon.
    san.faults[0].add(FaultRule {
        kinds: vec![OpKind::Read, OpKind::Write],
        range: None,
        skip: 0,
        times: u64::MAX,
        action: Action::Delay(Duration::from_millis(20)),
    });
    let (url, portal) = (san.url(0), san.portals[0]);
    let runtime = runtime(1);
    let stall = on(&runtime, move |core| async move {
        let config = InitiatorConfig::new(
            "iqn.2026-11.example:stranger",
            Some(TARGET),
            Isid([0x80, 0, 0, 0, 0, 7]),
        );
        let stranger = Stranger::new(&core, portal, &config, 0).await;
        let volume = host::open(&core, &url, &options(name, 2)).await.unwrap();
        until(&core, &volume, |it| {
            states(it).iter().filter(|it| **it == "active").count() == 2
        })
        .await;
        let stall = under_load(&core, &volume, || async {
            for function in functions.iter().cycle().take(8) {
                pause(&core, Duration::from_millis(1100)).await;
                assert_eq!(stranger.function(*function).await, COMPLETE);
            }
            pause(&core, Duration::from_millis(1500)).await;
        })
        .await;
        let now = crate::own::status(&core, &volume).await;
        let active = states(&now).iter().filter(|it| **it == "active").count();
        assert_eq!(active, 2, "no path was given up for it: {now:#?}");
        volume.stop(&core).await;
        stall
    });
    println!("TAS {}: longest stall {stall:?}", u8::from(tas));
    assert!(stall <= STALL_MAX, "{stall:?}");
    let endings = {
        let unit = std::sync::Arc::clone(&san.units[0].0);
        on(&san.runtime, move |core| async move {
            unit.endings(&core).await
        })
    };
    let reported = endings
        .iter()
        .any(|(ending, _)| ending.status == scsi::Status::TaskAborted);
    assert_eq!(reported, tas, "{endings:?}");
}

#[test]
fn resets_of_another_host_stall_this_one_for_less_than_a_second_though_nobody_answers() {
    ended_by_another_host("reset-0", false, &[LOGICAL_UNIT_RESET, CLEAR_TASK_SET]);
}

#[test]
fn resets_of_another_host_stall_this_one_for_less_than_a_second_when_task_aborted_is_answered() {
    ended_by_another_host("reset-1", true, &[LOGICAL_UNIT_RESET, CLEAR_TASK_SET]);
}
