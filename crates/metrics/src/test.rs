//! The text of a controller with an engine that only remembers.

use super::*;
use controller::test_support::{FakeEngine, config, lab, session};
use controller::{Controller, How};
use env::sim::{World, WorldConfig};
use manifest::plan::Edit;
use std::rc::Rc;
use std::time::Duration;

/// What the metrics say of a controller whose engine was prepared so.
fn metrics_of(prepare: impl FnOnce(&FakeEngine) + 'static) -> String {
    let world = World::new(1, WorldConfig::default());
    let machine = world.node("a");
    let engine = Rc::new(FakeEngine::default());
    let (core, shared) = (machine.core(0), Rc::<FakeEngine>::clone(&engine));
    let text = async move {
        let controller = Controller::start(core, config(), shared).await.unwrap();
        let set = lab();
        let apply = Edit::Apply { set, prune: false };
        controller.edit(&apply, How::default()).await.unwrap();
        prepare(&engine);
        text(
            &controller.sample().await,
            &AlertFigures::default(),
            &MachineFigures::default(),
        )
    };
    let minute = Duration::from_secs(60);
    world.block_on(&machine, minute, text).unwrap()
}

#[test]
fn metrics_have_the_promised_names_and_escape_labels() {
    let text = metrics_of(|engine| engine.sessions.borrow_mut().push(session(4)));
    for line in [
        "causeway_config_generation 2",
        "causeway_lun_online{lun=\"l\"} 1",
        "causeway_lun_inflight{lun=\"l\"} 0",
        "causeway_lun_allocated_bytes{lun=\"l\"} 4096",
        "causeway_login_total{result=\"accepted\",code=\"\"} 3",
        "causeway_session_bytes_total{target=\"t\",host=\"h\",portal=\"127.0.0.1:3260\",direction=\"in\"} 10",
        "causeway_session_pdus_received_total{target=\"t\",host=\"h\",portal=\"127.0.0.1:3260\"} 12",
        "causeway_session_receives_total{target=\"t\",host=\"h\",portal=\"127.0.0.1:3260\",waited=\"no\"} 1",
        "causeway_session_receives_total{target=\"t\",host=\"h\",portal=\"127.0.0.1:3260\",waited=\"yes\"} 3",
        "causeway_host_sessions{host=\"h\"} 1",
        "causeway_login_total{result=\"refused\",code=\"CWY2003\"} 1",
        "causeway_core_busy_seconds_total{core=\"1\"} 1.25",
        "causeway_core_load_ratio{core=\"1\"} 0.375",
        "causeway_core_connections{core=\"1\"} 2",
        "causeway_core_disk_engine{core=\"1\",engine=\"threads\"} 1",
        "causeway_core_registered_files{core=\"1\"} 7",
        "causeway_core_registered_bytes{core=\"1\"} 2097152",
        "causeway_session_moves_total{result=\"moved\"} 4",
        "causeway_session_moves_total{result=\"given_up\"} 1",
        "causeway_digest_errors_total{part=\"header\"} 1",
        "causeway_digest_errors_total{part=\"data\"} 2",
        "causeway_pool_used_bytes{pool=\"default\"} 53687091200",
        "causeway_pool_available_bytes{pool=\"default\"} 53687091200",
        "causeway_pool_members{pool=\"default\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[test]
fn a_journal_that_is_missing_is_named_in_metrics() {
    let text = metrics_of(|engine| engine.loses_journal.set(true));
    let line = "causeway_journal_state{pool=\"default\",state=\"missing\"} 1";
    assert!(text.contains(line), "{text}");
    assert!(
        !text.contains("causeway_journal_size_bytes{"),
        "nothing is known of it"
    );
}
