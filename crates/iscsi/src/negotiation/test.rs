//! Every key against every kind of offer and every own value, by an oracle written from the
//! standard's text.

use super::*;

const NUMBERS: [u32; 9] = [0, 1, 2, 511, 512, 8192, 65_536, LENGTH_MAX, LENGTH_MAX + 1];

fn answer(negotiation: &mut Negotiation, name: &str, value: &str) -> Option<String> {
    match negotiation.answer(name, value).unwrap() {
        Reply::Silent => None,
        Reply::Value(value) => Some(value),
    }
}

fn with_number(name: &str, value: u32) -> Option<Offer> {
    let mut offer = Offer::default();
    let short = u16::try_from(value).ok();
    match name {
        "MaxConnections" => offer.max_connections = short?,
        "MaxBurstLength" => offer.max_burst_length = value,
        "FirstBurstLength" => offer.first_burst_length = value,
        "DefaultTime2Wait" => offer.default_time2wait = short?,
        "DefaultTime2Retain" => offer.default_time2retain = short?,
        "MaxOutstandingR2T" => offer.max_outstanding_r2t = short?,
        "ErrorRecoveryLevel" => offer.error_recovery_level = u8::try_from(value).ok()?,
        _ => return None,
    }
    Some(offer)
}

/// Name, smallest, largest, whether the larger wins.
const NUMERIC: [(&str, u32, u32, bool); 7] = [
    ("MaxConnections", 1, 65_535, false),
    ("MaxBurstLength", 512, 16_777_215, false),
    ("FirstBurstLength", 512, 16_777_215, false),
    ("DefaultTime2Wait", 0, 3600, true),
    ("DefaultTime2Retain", 0, 3600, false),
    ("MaxOutstandingR2T", 1, 65_535, false),
    ("ErrorRecoveryLevel", 0, 2, false),
];

// spec: RFC 7143 6.2 "Text Mode Negotiation", 13 "Login/Text Operational Text Keys".
#[test]
fn every_number_is_the_result_of_its_function_or_rejected_out_of_range() {
    for (name, min, max, larger) in NUMERIC {
        let own = NUMBERS.into_iter().filter(|own| (min..=max).contains(own));
        for (own, offered) in own.flat_map(|own| NUMBERS.map(|offered| (own, offered))) {
            let Some(offer) = with_number(name, own) else {
                continue;
            };
            let mut target = Negotiation::new(offer.clone(), false);
            let mut expected = if larger {
                own.max(offered)
            } else {
                own.min(offered)
            };
            if name == "FirstBurstLength" {
                expected = expected.min(262_144);
            }
            let inside = (min..=max).contains(&offered);
            let expected = if inside {
                expected.to_string()
            } else {
                "Reject".into()
            };
            let got = answer(&mut target, name, &offered.to_string());
            assert_eq!(
                got.as_deref(),
                Some(&*expected),
                "{name}={offered}, own {own}"
            );
            // The other side takes exactly such an answer, and both then hold the same value.
            let Some(offer) = with_number(name, offered).filter(|_| inside) else {
                continue;
            };
            let mut initiator = Negotiation::new(offer, false);
            initiator.conclude(name, &expected).unwrap();
            if name != "FirstBurstLength" {
                let (mut a, b) = (target.parameters(), initiator.parameters());
                a.own_max_recv_data_segment_length = b.own_max_recv_data_segment_length;
                assert_eq!(a, b, "{name}");
            }
        }
    }
}

// spec: RFC 7143 6.2 "Text Mode Negotiation".
#[test]
fn every_boolean_is_the_result_of_its_function() {
    type Own = fn(&mut Offer) -> &mut bool;
    let keys: [(&str, bool, Own); 4] = [
        ("InitialR2T", true, |offer| &mut offer.initial_r2t),
        ("ImmediateData", false, |offer| &mut offer.immediate_data),
        ("DataPDUInOrder", true, |offer| &mut offer.data_pdu_in_order),
        ("DataSequenceInOrder", true, |offer| {
            &mut offer.data_sequence_in_order
        }),
    ];
    for (name, or, own_of) in keys {
        for own in [false, true] {
            for (offered, theirs) in [
                ("Yes", Some(true)),
                ("No", Some(false)),
                ("yes", None),
                ("", None),
            ] {
                let mut offer = Offer::default();
                *own_of(&mut offer) = own;
                let got = answer(&mut Negotiation::new(offer, false), name, offered).unwrap();
                let expected = match theirs {
                    None => "Reject",
                    Some(theirs) if (if or { own || theirs } else { own && theirs }) => "Yes",
                    Some(_) => "No",
                };
                assert_eq!(got, expected, "{name}={offered}, own {own}");
            }
        }
    }
}

// spec: RFC 7143 13.1 "HeaderDigest and DataDigest".
#[test]
fn every_digest_choice_meets_every_list() {
    use DigestChoice::{Allowed, Never, Preferred, Required};
    let table = [
        ("None", ["None", "None", "None", "Reject"]),
        ("CRC32C", ["Reject", "CRC32C", "CRC32C", "CRC32C"]),
        ("None,CRC32C", ["None", "None", "CRC32C", "CRC32C"]),
        ("CRC32C,None", ["None", "CRC32C", "CRC32C", "CRC32C"]),
        (
            "X-other,CRC32C,None",
            ["None", "CRC32C", "CRC32C", "CRC32C"],
        ),
        ("X-other", ["Reject"; 4]),
        ("", ["Reject"; 4]),
    ];
    for (list, expected) in table {
        for (choice, expected) in [Never, Allowed, Preferred, Required]
            .into_iter()
            .zip(expected)
        {
            for name in ["HeaderDigest", "DataDigest"] {
                let offer = Offer {
                    header_digest: choice,
                    data_digest: choice,
                    ..Offer::default()
                };
                let mut target = Negotiation::new(offer, false);
                assert_eq!(
                    answer(&mut target, name, list).unwrap(),
                    expected,
                    "{choice:?} {list}"
                );
                assert!(
                    choice != Required || target.missing_digest(),
                    "the other one is missing"
                );
            }
        }
    }
}

// spec: RFC 7143 13.21 "SessionType".
#[test]
fn what_has_no_meaning_in_discovery_is_irrelevant_there() {
    for key in KEYS.iter().filter(|key| !key.discovery) {
        let mut target = Negotiation::new(Offer::default(), true);
        assert_eq!(
            answer(&mut target, key.name, key.default).unwrap(),
            "Irrelevant",
            "{}",
            key.name
        );
    }
}

#[test]
fn every_key_twice_is_an_error_and_keys_of_the_target_are_never_taken() {
    for key in KEYS {
        let mut target = Negotiation::new(Offer::default(), false);
        let allowed = key.sender != Sender::Target
            && !matches!(key.phase, Phase::Security | Phase::FullFeature);
        assert_eq!(
            target.answer(key.name, "1").is_ok(),
            allowed,
            "{}",
            key.name
        );
        assert!(target.answer(key.name, "1").is_err(), "{} twice", key.name);
    }
    for unknown in ["X-com.example.key", "MaxBurstlength", "Z"] {
        let mut target = Negotiation::new(Offer::default(), false);
        assert_eq!(answer(&mut target, unknown, "1").unwrap(), "NotUnderstood");
        assert_eq!(answer(&mut target, unknown, "NotUnderstood"), None);
    }
}

#[test]
fn keys_that_the_standard_took_away_are_never_not_understood() {
    for (key, expected) in [
        ("IFMarker", "No"),
        ("OFMarker", "No"),
        ("IFMarkInt", "Irrelevant"),
        ("OFMarkInt", "Irrelevant"),
    ] {
        let mut target = Negotiation::new(Offer::default(), false);
        assert_eq!(answer(&mut target, key, "No").unwrap(), expected);
    }
}

// spec: RFC 7143 13.14 "FirstBurstLength".
#[test]
fn first_burst_length_follows_the_keys_it_depends_on_in_any_order() {
    let mut target = Negotiation::new(Offer::default(), false);
    let mut out = Vec::new();
    target
        .answer_all(
            &[("FirstBurstLength", "65536"), ("MaxBurstLength", "16384")],
            &mut out,
        )
        .unwrap();
    assert_eq!(out, b"MaxBurstLength=16384\0FirstBurstLength=16384\0");
    let mut target = Negotiation::new(Offer::default(), false);
    let pairs = [
        ("FirstBurstLength", "65536"),
        ("InitialR2T", "Yes"),
        ("ImmediateData", "No"),
    ];
    out.clear();
    target.answer_all(&pairs, &mut out).unwrap();
    assert!(out.ends_with(b"FirstBurstLength=Irrelevant\0"));
    let mut target = Negotiation::new(Offer::default(), false);
    assert_eq!(
        answer(&mut target, "MaxBurstLength", "1024").unwrap(),
        "1024"
    );
    assert_eq!(
        target.parameters().first_burst_length,
        1024,
        "the default is cut as well"
    );
}

#[test]
fn an_initiator_takes_no_answer_that_its_offer_does_not_allow() {
    let cases = [
        ("MaxBurstLength", "16777216"),
        ("MaxBurstLength", "511"),
        ("ErrorRecoveryLevel", "1"),
        ("DefaultTime2Wait", "1"),
        ("InitialR2T", "Maybe"),
        ("InitiatorName", "x"),
        ("MaxRecvDataSegmentLength", "100"),
    ];
    for (name, value) in cases {
        assert!(
            Negotiation::new(Offer::default(), false)
                .conclude(name, value)
                .is_err(),
            "{name}={value}"
        );
    }
    let never = Offer {
        header_digest: DigestChoice::Never,
        ..Offer::default()
    };
    assert!(
        Negotiation::new(never, false)
            .conclude("HeaderDigest", "CRC32C")
            .is_err()
    );
    let no = Offer {
        immediate_data: false,
        ..Offer::default()
    };
    assert!(
        Negotiation::new(no, false)
            .conclude("ImmediateData", "Yes")
            .is_err()
    );
}
