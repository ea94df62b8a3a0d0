//! What may fail, what may skip, and why.

use crate::judge::{self, Judged, Verdict};
use crate::{KINDS, Kind, corrected};

/// A test that is wrong about the standard.
pub(crate) struct Excuse {
    /// Its whole name.
    pub(crate) test: &'static str,
    pub(crate) kinds: &'static [Kind],
    /// Where the standard says otherwise.
    pub(crate) clause: &'static str,
    /// What the test gets wrong.
    pub(crate) reason: &'static str,
    /// The same intention, put right: portal and target name come in.
    pub(crate) corrected: fn(&str, &str),
}

/// Every excuse. `docs/conformance/traces/` has what went over the wire.
pub(crate) const EXCUSES: &[Excuse] = &[
    Excuse {
        test: "ALL.iSCSITMF.LUNResetSimpleAsync",
        kinds: &KINDS,
        clause: "RFC 7143 11.6 \"Task Management Function Response\"",
        reason: "it asserts that the reset was answered directly after queueing it, before the request has been sent",
        corrected: corrected::a_reset_behind_a_write_is_answered_and_the_session_goes_on,
    },
    Excuse {
        test: "ALL.WriteSame10.UnmapUntilEnd",
        kinds: &KINDS,
        clause: "SBC-4 4.7.3.4.4 \"WRITE SAME command and unmap operations\"",
        reason: "it sends a block of FFh with UNMAP and expects zeros: with LBPRZ one, only a block of zeros may be \
                 unmapped, because reads afterwards must behave as if the block had been written",
        corrected: corrected::write_same_with_unmap_reads_as_what_was_sent_until_the_end,
    },
    Excuse {
        test: "ALL.GetLBAStatus.UnmapSingle",
        kinds: &[Kind::B512e],
        clause: "SBC-4, GET LBA STATUS, \"LBA status descriptor relationships\"",
        reason: "with more than one logical block in a physical one it asks for the status from LBA i + 1 on and \
                 expects a descriptor that begins at i + 8: the first descriptor begins where was asked",
        corrected: corrected::the_first_lba_status_descriptor_begins_where_was_asked,
    },
];

/// A suite (or one test of it) that may skip.
struct Skip {
    /// Beginning of the test's name.
    test: &'static str,
    kinds: &'static [Kind],
    /// What the test must say.
    says: &'static str,
}

const ALIGNED: &[Kind] = &[Kind::B512, Kind::B4096];
const NO_PHYSICAL_BLOCKS: &str = "LBPPB < 2";

/// Every skip. The reasons are in `docs/conformance/iscsi-test-cu.md`.
const SKIPS: &[Skip] = &[
    // A disk that cannot be taken out.
    Skip {
        test: "ALL.PreventAllow.",
        kinds: &KINDS,
        says: "not removable",
    },
    Skip {
        test: "ALL.StartStopUnit.Simple",
        kinds: &KINDS,
        says: "not removable",
    },
    // SANITIZE is not built.
    Skip {
        test: "ALL.Sanitize.",
        kinds: &KINDS,
        says: "--allow-sanitize",
    },
    // A plain file keeps nothing longer than a block whole through a power cut, so page B0 says
    // zero.
    Skip {
        test: "ALL.WriteAtomic16.",
        kinds: &KINDS,
        says: "WRITEATOMIC16 is not implemented",
    },
    // Only where several logical blocks make a physical one: these run on the 512e LUN.
    Skip {
        test: "ALL.CompareAndWrite.InvalidDataOutSize",
        kinds: ALIGNED,
        says: NO_PHYSICAL_BLOCKS,
    },
    Skip {
        test: "ALL.WriteSame10.InvalidDataOutSize",
        kinds: ALIGNED,
        says: NO_PHYSICAL_BLOCKS,
    },
    Skip {
        test: "ALL.WriteSame10.UnmapUnaligned",
        kinds: ALIGNED,
        says: NO_PHYSICAL_BLOCKS,
    },
    Skip {
        test: "ALL.WriteSame16.InvalidDataOutSize",
        kinds: ALIGNED,
        says: NO_PHYSICAL_BLOCKS,
    },
    Skip {
        test: "ALL.WriteSame16.UnmapUnaligned",
        kinds: ALIGNED,
        says: NO_PHYSICAL_BLOCKS,
    },
];

/// Suites that want a medium that cannot be written: their LUNs are granted read-only.
pub(crate) const READ_ONLY_SUITES: &[&str] = &["ReadOnly"];

/// The excuse of a test.
pub(crate) fn excuse(kind: Kind, test: &str) -> Option<&'static Excuse> {
    EXCUSES
        .iter()
        .find(|excuse| excuse.test == test && excuse.kinds.contains(&kind))
}

/// What is wrong with a result, if anything is.
pub(crate) fn complaint(kind: Kind, judged: &Judged) -> Option<String> {
    let (test, name) = (&judged.test, kind.name());
    match (&judged.verdict, excuse(kind, test)) {
        (Verdict::Passed, None) | (Verdict::Failed(_), Some(_)) => None,
        (Verdict::Passed | Verdict::Skipped(_), Some(excuse)) => Some(format!(
            "{test} on {name} is excused ({}: {}) and does not fail: remove the excuse",
            excuse.clause, excuse.reason
        )),
        (Verdict::Failed(text), None) => Some(format!("{test} on {name} failed: {text}")),
        (Verdict::Skipped(text), None) => {
            let known = SKIPS.iter().any(|skip| {
                test.starts_with(skip.test)
                    && skip.kinds.contains(&kind)
                    && text.contains(skip.says)
            });
            (!known)
                .then(|| format!("{test} on {name} skipped without a reason that we know: {text}"))
        }
    }
}

/// Lines of the tables that speak of no test.
pub(crate) fn leftovers(tests: &[String]) -> impl Iterator<Item = String> {
    let named = EXCUSES.iter().map(|excuse| excuse.test);
    let named = named.chain(SKIPS.iter().map(|skip| skip.test));
    named
        .filter(|name| !tests.iter().any(|test| test.starts_with(name)))
        .map(|name| format!("the tables speak of {name}, which is no test"))
}

#[test]
fn an_excuse_holds_for_a_failure_only() {
    let of = |test: &str, verdict| Judged {
        test: test.into(),
        verdict,
    };
    let excused = EXCUSES[0].test;
    let failed = || Verdict::Failed(String::new());
    let skipped = |text: &str| Verdict::Skipped(text.into());
    assert_eq!(complaint(Kind::B512, &of(excused, failed())), None);
    for verdict in [Verdict::Passed, skipped("x")] {
        let reported = complaint(Kind::B512, &of(excused, verdict)).unwrap();
        assert!(reported.contains("remove the excuse"), "{reported}");
    }
    let only_512e = "ALL.GetLBAStatus.UnmapSingle";
    assert!(complaint(Kind::B512, &of(only_512e, failed())).is_some());
    let sanitize = "ALL.Sanitize.Reset";
    assert_eq!(
        complaint(Kind::B512, &of(sanitize, skipped("--allow-sanitize flag"))),
        None
    );
    assert!(complaint(Kind::B512, &of(sanitize, skipped("other"))).is_some());
    assert!(
        complaint(
            Kind::B512,
            &of("ALL.Read6.Simple", skipped("--allow-sanitize"))
        )
        .is_some()
    );
    assert_eq!(judge::suite(sanitize), "Sanitize");
}
