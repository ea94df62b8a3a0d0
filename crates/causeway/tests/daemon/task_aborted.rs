//! Whether a host gets TASK ABORTED for commands that another one has aborted, as an administrator
//! sees and sets it.

use crate::journal::{LUN, MODE_PARAMETERS_CHANGED, objects, served};
use crate::mode_sense::CachingPage;
use crate::place::Place;

#[test]
fn what_a_host_is_reported_of_its_aborted_commands_is_set_shown_exported_and_kept() {
    let place = Place::new("task-aborted");
    let daemon = place.start();
    place.run(0, "lun create vm01 --size 1M --backend memory");
    let is = || place.json("lun show vm01")["task_aborted_status"].clone();
    assert_eq!(is(), "host");
    assert!(!place.run(0, "export").contains("task_aborted_status"));
    let output = place.run(0, "lun set vm01 task_aborted_status=off");
    assert!(output.contains("a host is not notified"), "{output}");
    assert_eq!(is(), "off");
    let export = place.run(0, "export");
    assert!(export.contains("task_aborted_status = \"off\""), "{export}");
    place.write("again.toml", &export);
    let again = place.run(0, "apply -f again.toml");
    assert!(again.contains("nothing to change"), "{again}");
    let refused = place.run(2, "lun set vm01 task_aborted_status=sometimes");
    assert!(refused.contains("\"host\", \"on\", \"off\""), "{refused}");
    drop(daemon);
    let _daemon = place.start();
    assert_eq!(is(), "off");
    place.run(0, "lun set vm01 task_aborted_status=host");
    assert_eq!(is(), "host");
    place.run(
        0,
        "lun create vm02 --size 1M --backend memory --task-aborted-status on",
    );
    assert_eq!(place.json("lun show vm02")["task_aborted_status"], "on");
}

/// The host's side of the same, byte by byte.
#[test]
fn what_an_administrator_sets_is_what_hosts_find_at_once_and_after_a_start() {
    let place = Place::new("task-aborted-set");
    place.write("objects.toml", &objects(LUN));
    let daemon = place.start();
    place.run(0, "apply -f objects.toml");
    let mut host = CachingPage::of(&served(&place));
    assert_eq!(host.task_aborted_status(), (true, true));
    place.run(0, "lun set vm01 task_aborted_status=off");
    assert_eq!(host.unit_attention(), MODE_PARAMETERS_CHANGED);
    assert_eq!(host.task_aborted_status(), (false, false));
    daemon.stop();
    let daemon = place.start();
    let mut host = CachingPage::of(&served(&place));
    assert_eq!(host.task_aborted_status(), (false, false));
    place.run(0, "lun set vm01 task_aborted_status=on");
    assert_eq!(host.task_aborted_status(), (true, false));
    place.run(0, "lun set vm01 task_aborted_status=host");
    assert_eq!(host.task_aborted_status(), (true, true));
    daemon.stop();
}
