//! Documents that are cut, damaged or made to hurt: an answer always comes, and what is shown of it
//! is text.

use super::*;
use proptest::prelude::*;

/// Whatever is said is one line without control characters, and not long.
fn is_clean(answer: &Answer) {
    let shown = match answer {
        Answer::Not { why, .. } => vec![why.clone()],
        Answer::Read(reading) => {
            let (identity, facts) = (&reading.identity, &reading.facts);
            let mut all = vec![
                identity.model.clone(),
                identity.serial.clone(),
                identity.firmware.clone(),
                identity.wwn.clone(),
                facts.self_test.clone().unwrap_or_default(),
            ];
            all.extend(facts.failing_attributes.clone());
            all
        }
    };
    for text in shown {
        assert!(text.chars().count() <= 200, "{text}");
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
}

fn whole(bytes: &[u8]) {
    is_clean(&read(bytes));
    let report = report(bytes);
    assert_eq!(report.disks.len(), 1);
    let id = &report.disks[0].id;
    assert!(!id.is_empty() && !id.contains('/'), "{id}");
}

#[test]
fn documents_that_are_cut_at_any_byte_are_refused() {
    for (name, bytes) in recorded() {
        let text = bytes.trim_ascii_end();
        // Every byte of small documents; of large ones each 31st.
        let step = if text.len() < 3000 { 1 } else { 31 };
        for end in (0..text.len()).step_by(step) {
            match read(&text[..end]) {
                Answer::Read(_) => panic!("{name}: {end} bytes"),
                not @ Answer::Not { .. } => is_clean(&not),
            }
        }
    }
}

/// What stands in places of values.
const VALUES: [&str; 14] = [
    "null",
    "true",
    "-1",
    "0",
    "255",
    "256",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "-9223372036854775808",
    "0.5",
    "\"\\u001b[31m\\n<script>\"",
    "[]",
    "{\"passed\": 7}",
];

/// Each value of a document gives its place to each of [`VALUES`].
#[test]
fn every_member_may_be_anything() {
    for name in [
        "nvme-micron-7450",
        "scsi-seagate-uncorrected",
        "ata-hdd-hitachi-failing",
    ] {
        let document: Value = serde_json::from_slice(&recorded()[name]).unwrap();
        let mut places = Vec::new();
        pointers(&document, String::new(), &mut places);
        for (index, place) in places.iter().enumerate() {
            // Every value at every place of small documents, one of them in large ones.
            for (number, value) in VALUES.iter().enumerate() {
                if places.len() > 100 && number != index % VALUES.len() {
                    continue;
                }
                let mut changed = document.clone();
                *changed.pointer_mut(place).unwrap() = serde_json::from_str(value).unwrap();
                whole(&serde_json::to_vec(&changed).unwrap());
            }
        }
    }
}

fn pointers(of: &Value, at: String, out: &mut Vec<String>) {
    match of {
        Value::Object(members) => {
            for (name, value) in members {
                pointers(value, format!("{at}/{name}"), out);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                pointers(value, format!("{at}/{index}"), out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    if !at.is_empty() {
        out.push(at);
    }
}

#[test]
fn what_is_nested_or_long_without_end_is_refused() {
    for open in ["[", "{\"smartctl\":", "{\"device\":["] {
        whole(open.repeat(100_000).as_bytes());
    }
    let long = format!(
        "{{\"smartctl\":{{}},\"serial_number\":\"{}\"}}",
        "x".repeat(5 << 20)
    );
    assert!(matches!(read(long.as_bytes()), Answer::Not { .. }));
    let long = long.replace(&"x".repeat(3 << 20), "");
    whole(long.as_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn bytes_that_are_changed_at_random_do_no_harm(
        which in 0_usize..20,
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let all = recorded();
        let mut bytes = all.values().nth(which % all.len()).unwrap().clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        whole(&bytes);
    }

    #[test]
    fn bytes_of_no_meaning_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        whole(&bytes);
    }
}
