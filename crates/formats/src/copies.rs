//! The state of something that is kept in several copies.

use crate::Damage;
use std::fmt;

/// What was found in all copies of something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopiesState {
    /// Nothing was ever written to any of their places.
    Blank,
    /// All can be read that were ever written.
    Good,
    /// One can be read, and this is wrong with another one: a crash in the middle of a write leaves
    /// that, and so does a bad disk.
    OneDamaged(Damage),
    /// None can be read.
    Damaged(Damage),
    /// One has another version of the format.
    Version(Damage),
}

impl CopiesState {
    /// Of blocks that `read` reads, each with the number that says which is the newest. As long as
    /// that is `first` at most, only one place has been written.
    pub fn of<'a>(
        blocks: impl IntoIterator<Item = &'a [u8]>,
        first: u64,
        read: impl Fn(&'a [u8]) -> Result<u64, Damage>,
    ) -> Self {
        let (mut newest, mut blank, mut hurt) = (None, false, None);
        for block in blocks {
            match read(block) {
                Ok(number) => newest = newest.max(Some(number)),
                Err(version @ Damage::Version { .. }) => return Self::Version(version),
                Err(Damage::Foreign | Damage::Checksum | Damage::Contradiction(_))
                    if block.iter().all(|&byte| byte == 0) =>
                {
                    blank = true;
                }
                Err(damage @ (Damage::Foreign | Damage::Checksum | Damage::Contradiction(_))) => {
                    hurt = hurt.or(Some(damage));
                }
            }
        }
        match (newest, hurt) {
            (None, None) => Self::Blank,
            (None, Some(damage)) => Self::Damaged(damage),
            (Some(_), Some(damage)) => Self::OneDamaged(damage),
            (Some(newest), None) if blank && newest > first => Self::OneDamaged(Damage::Foreign),
            (Some(_), None) => Self::Good,
        }
    }

    /// Of two things that belong together: how the worse one is.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        if other.rank() > self.rank() {
            other
        } else {
            self
        }
    }

    const fn rank(&self) -> u8 {
        match self {
            Self::Blank => 0,
            Self::Good => 1,
            Self::OneDamaged(_) => 2,
            Self::Damaged(_) => 3,
            Self::Version(_) => 4,
        }
    }

    /// It can be used.
    #[must_use]
    pub const fn is_usable(&self) -> bool {
        match self {
            Self::Blank | Self::Good | Self::OneDamaged(_) => true,
            Self::Damaged(_) | Self::Version(_) => false,
        }
    }
}

impl fmt::Display for CopiesState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => write!(f, "nothing was ever written there"),
            Self::Good => write!(f, "good"),
            Self::OneDamaged(damage) => write!(f, "good, from the copy that is left: {damage}"),
            Self::Damaged(damage) => write!(f, "DAMAGED: {damage}"),
            Self::Version(version) => write!(f, "ANOTHER VERSION: {version}"),
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    const VERSION: Damage = Damage::Version { found: 2, read: 1 };

    /// A block's first byte says what it is.
    fn of(places: &[u8]) -> CopiesState {
        let read = |block: &[u8]| match block.first() {
            Some(0) => Err(Damage::Foreign),
            Some(200) => Err(Damage::Checksum),
            Some(201) => Err(VERSION),
            Some(&number) => Ok(number.into()),
            None => unreachable!("blocks have bytes"),
        };
        CopiesState::of(places.chunks(1), 1, read)
    }

    #[test]
    fn places_are_good_as_long_as_all_that_was_written_can_be_read() {
        for (places, wanted) in [
            (&[0, 0][..], CopiesState::Blank),
            (&[1, 0], CopiesState::Good),
            (&[0, 1], CopiesState::Good),
            (&[3, 2], CopiesState::Good),
            (&[0, 2], CopiesState::OneDamaged(Damage::Foreign)),
            (&[200, 2], CopiesState::OneDamaged(Damage::Checksum)),
            (&[200, 0], CopiesState::Damaged(Damage::Checksum)),
            (&[200, 200], CopiesState::Damaged(Damage::Checksum)),
            (&[200, 201], CopiesState::Version(VERSION)),
            (&[2, 201], CopiesState::Version(VERSION)),
        ] {
            assert_eq!(of(places), wanted, "{places:?}");
            assert_eq!(of(places).and(CopiesState::Blank), wanted);
            let other = CopiesState::Version(VERSION);
            assert_eq!(of(places).and(other), other);
            assert_eq!(
                wanted.is_usable(),
                !matches!(wanted, CopiesState::Damaged(_) | CopiesState::Version(_))
            );
        }
    }
}
