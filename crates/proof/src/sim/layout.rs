//! How the blocks of a volume lie on files or devices.

use layers::stripe::{Column, Map, Row};
use units::Lba;

/// Blocks of a stripe's unit.
const UNIT: u64 = 4;

/// How the blocks of a volume lie on files or devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// All on one.
    One,
    /// The second half behind the first.
    Span,
    /// By turns on three.
    Stripe,
}

impl Layout {
    /// Every layout of a pool.
    pub const ALL: [Self; 3] = [Self::One, Self::Span, Self::Stripe];

    pub(super) const fn columns(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Span => 2,
            Self::Stripe => 3,
        }
    }

    /// A volume has a multiple of so many blocks.
    pub(super) const fn whole_blocks(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Span => 2,
            Self::Stripe => UNIT * self.columns(),
        }
    }

    /// Where the blocks are.
    pub(super) fn map(self, blocks: u64) -> Map {
        let blocks = blocks / self.columns();
        let column = |part| Column {
            part,
            start: Lba(0),
        };
        let row = |columns| Row { columns, blocks };
        let rows = match self {
            Self::One => vec![row(vec![column(0)])],
            Self::Span => vec![row(vec![column(0)]), row(vec![column(1)])],
            Self::Stripe => vec![row((0..3).map(column).collect())],
        };
        Map::new(rows, UNIT).expect("blocks are a multiple of what it takes")
    }
}
