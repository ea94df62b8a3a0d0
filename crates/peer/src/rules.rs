//! Rules that tests break, one at a time, to see that each is needed.

/// What a test breaks.
#[cfg(test)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// The first frame is held against its checksum.
    FirstIsChecked,
    /// Headers are held against their checksum.
    HeadersAreChecked,
    /// Bodies are held against their checksum.
    BodiesAreChecked,
    /// Data is held against the checksums of its records.
    DataIsChecked,
    /// Frames come in order, each once.
    FramesAreInOrder,
    /// No more comes than was granted.
    OverrunEnds,
    /// No more is sent than was granted.
    SenderStops,
    /// Records that came before are not given out again.
    RepeatsAreDropped,
    /// What is missing is noticed.
    GapsAreFound,
    /// A connection begins with everything that was not acknowledged.
    GoesOnFromTheAck,
    /// A connection begins with the acknowledgements that may have been lost.
    AcksAreRepeated,
    /// A connection begins with the commit positions that may have been lost.
    CommitsAreRepeated,
    /// An acknowledgement of an older epoch lets nothing go.
    AcksNameTheirEpoch,
    /// When nothing is held, and too little for a frame is granted, everything is.
    AllIsGrantedWhenNothingIsHeld,
    /// What an earlier connection brought, and is held, is not granted again.
    HeldIsNotGranted,
    /// What has come and was not given out yet, because memory is awaited, is not granted again.
    WhatIsHalfHereCounts,
    /// A connection that is older than the last one takes nothing over.
    OldConnectionsAreRefused,
    /// Records of an epoch that is not followed are not given out.
    EpochIsFollowed,
    /// No more is put behind what waits to be sent than a bound.
    SendAheadIsBounded,
}

#[cfg(test)]
thread_local! {
    static BROKEN: std::cell::Cell<Option<Rule>> = const { std::cell::Cell::new(None) };
}

#[cfg(test)]
pub(crate) fn is_broken(rule: Rule) -> bool {
    BROKEN.get() == Some(rule)
}

/// Runs something with a rule broken.
#[cfg(test)]
pub(crate) fn without<T>(rule: Rule, run: impl FnOnce() -> T) -> T {
    struct Whole;
    impl Drop for Whole {
        fn drop(&mut self) {
            BROKEN.set(None);
        }
    }
    let _whole = Whole;
    BROKEN.set(Some(rule));
    run()
}

/// Whether a rule holds: always, but in tests that break it.
macro_rules! holds {
    ($rule:ident) => {{
        #[cfg(test)]
        let holds = !crate::rules::is_broken(crate::rules::Rule::$rule);
        #[cfg(not(test))]
        let holds = true;
        holds
    }};
}

pub(crate) use holds;
