//! A login shows the unit with its names and more blocks than are known: has it grown, or are these
//! two units under one name?
//!
//! A session that lives is notified of a new size from the target. A login only sees one; whom to
//! believe is a question of what the other paths show, and until that is known nothing is sent by
//! this one.
//!
//! **Contract.** While sessions live they are asked: all of them must show the new size. While none
//! lives, every path is tried once a second; whoever shows the size that is known joins at once and
//! so decides it, and where nobody does for [`CONFIRM`], and all that answer show the same new
//! size, that is the size.

use super::Unit;
use super::within::within;
use env::CoreHandle;
use std::collections::BTreeMap;
use std::time::Duration;
use units::{BlockCount, Now};

/// Every path that answers has been tried within this time of the first one, while none lives.
const CONFIRM: Duration = Duration::from_millis(2500);
/// A path that has not shown its size again for so long does not answer.
const CLAIM_LASTS: Duration = Duration::from_secs(5);
/// A living session that is asked answers within this time, or has no say this time.
const ASK_MAX: Duration = Duration::from_secs(2);

/// What is to be held of a larger size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Growth {
    /// The unit has grown.
    Agreed,
    /// Not all paths that may decide have shown it.
    Open,
    /// Others show another size.
    Denied,
}

/// Sizes that paths have shown while none lives, by the number of the port.
#[derive(Default)]
pub(super) struct Claims(BTreeMap<u64, Claim>);

struct Claim {
    size: BlockCount,
    /// Shown from then on.
    since: Now,
    last: Now,
}

impl Claims {
    fn claim(&mut self, port: u64, size: BlockCount, now: Now) -> Growth {
        self.0.retain(|_, it| now.since(it.last) <= CLAIM_LASTS);
        let known = self.0.get(&port).filter(|it| it.size == size);
        let since = known.map_or(now, |it| it.since);
        let claim = Claim {
            size,
            since,
            last: now,
        };
        self.0.insert(port, claim);
        if self.0.values().any(|it| it.size != size) {
            Growth::Denied
        } else if now.since(since) >= CONFIRM {
            Growth::Agreed
        } else {
            Growth::Open
        }
    }
}

/// What the unit's other paths make of a size that this port's login has shown.
pub(super) async fn judge(core: &CoreHandle, unit: &Unit, port: u64, size: BlockCount) -> Growth {
    let mut agreed = false;
    for session in unit.living() {
        match within(core, ASK_MAX, session.size()).await.flatten() {
            Some(there) if there == size => agreed = true,
            Some(_) => return Growth::Denied,
            None => {}
        }
    }
    if agreed {
        return Growth::Agreed;
    }
    if !unit.living().is_empty() {
        return Growth::Open;
    }
    unit.claims.borrow_mut().claim(port, size, core.now())
}

#[cfg(test)]
mod test {
    use super::*;

    const SIZE: BlockCount = BlockCount(200);

    fn at(millis: u64) -> Now {
        Now::ZERO.after(Duration::from_millis(millis))
    }

    #[test]
    fn a_size_is_believed_when_it_was_shown_long_enough_by_all_that_answer() {
        let mut claims = Claims::default();
        assert_eq!(claims.claim(1, SIZE, at(0)), Growth::Open);
        assert_eq!(claims.claim(2, SIZE, at(1000)), Growth::Open);
        assert_eq!(claims.claim(1, SIZE, at(2499)), Growth::Open);
        assert_eq!(claims.claim(1, SIZE, at(2500)), Growth::Agreed);
    }

    #[test]
    fn two_new_sizes_deny_each_other_for_as_long_as_both_are_shown() {
        let mut claims = Claims::default();
        assert_eq!(claims.claim(1, SIZE, at(0)), Growth::Open);
        assert_eq!(claims.claim(2, BlockCount(300), at(1000)), Growth::Denied);
        assert_eq!(claims.claim(1, SIZE, at(3000)), Growth::Denied);
        // The second one is gone.
        assert_eq!(claims.claim(1, SIZE, at(7000)), Growth::Agreed);
    }

    #[test]
    fn a_path_that_was_away_between_begins_anew() {
        let mut claims = Claims::default();
        assert_eq!(claims.claim(1, SIZE, at(0)), Growth::Open);
        assert_eq!(claims.claim(1, SIZE, at(60_000)), Growth::Open);
    }
}
