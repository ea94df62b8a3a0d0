//! Files that are damaged, and processes that were killed.

use super::*;

#[test]
fn a_damaged_file_is_set_aside_and_that_is_an_event() {
    let dir = std::env::temp_dir().join(format!("causeway-records-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let codes = |records: &Records| -> Vec<String> {
        let wanted = events::Wanted {
            limit: 100,
            ..events::Wanted::default()
        };
        let listed = records.events().list(wanted);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let listed = runtime.unwrap().block_on(listed).unwrap();
        listed.into_iter().map(|event| event.code).collect()
    };
    let records = Records::start(&dir, "n", HistorySettings::default()).unwrap();
    records.node_stopping();
    records.stop();
    std::fs::write(dir.join(HISTORY_FILE), [7; 8192]).unwrap();
    let records = Records::start(&dir, "n", HistorySettings::default()).unwrap();
    // The thread opens the history in its own time.
    while records.0.history.health().set_aside.is_empty() {
        std::thread::yield_now();
    }
    records.report_set_aside();
    records.report_set_aside();
    let kept = codes(&records);
    assert_eq!(
        kept.iter().filter(|it| *it == "records_damaged").count(),
        1,
        "{kept:?}"
    );
    assert_eq!(records.notices(), [""; 0]);
    records.stop();
    // Killed: nobody said that it stops.
    let records = Records::start(&dir, "n", HistorySettings::default()).unwrap();
    let last = records.events().newest().unwrap();
    assert_eq!(
        (last.code.as_str(), &last.fields["unclean"]),
        ("node_started", &serde_json::Value::from(true))
    );
    records.stop();
    std::fs::remove_dir_all(&dir).unwrap();
}
