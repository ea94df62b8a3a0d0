//! What steers the wall clock.

#![expect(unsafe_code, reason = "adjtimex fills a structure by pointer")]

/// adjtimex(2): nobody steers it.
const STA_UNSYNC: libc::c_int = 0x40;

/// See [`crate::Core::clock_is_steered`].
pub(super) fn is_steered() -> Option<bool> {
    // SAFETY: all bytes zero are a valid `timex`, which is made of integers; `modes` 0 only asks.
    let mut reported: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `reported` is exclusively ours and has the layout that the call fills.
    let state = unsafe { libc::adjtimex(&raw mut reported) };
    (state >= 0).then_some(reported.status & STA_UNSYNC == 0)
}
