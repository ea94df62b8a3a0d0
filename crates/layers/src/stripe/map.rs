//! Which blocks of a volume lie where: rows of columns over parts. Pure.
//!
//! ```text
//!   volume:  | row 0: one column | row 1: three columns, units take turns   | row 2 ...
//!   parts:     part 2, from x      part 0, 1, 2, each from y: 0 1 2 0 1 2
//! ```
//!
//! **Invariants.** I1: every block of the volume has one place, and no place is two blocks'. I2:
//! the pieces of a range cover it once, and a piece is one range of one part.

use smallvec::SmallVec;
use std::cmp::Ordering;
use units::{BlockCount, Lba, LbaRange};

/// Where a column begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// Counted from 0, in the order of the volume's parts.
    pub part: usize,
    /// Its first block there.
    pub start: Lba,
}

/// Blocks of the volume in a row, over columns of equal length.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The columns, in order of turns; at least one.
    pub columns: Vec<Column>,
    /// Blocks of each column: a multiple of the unit where there are several columns.
    pub blocks: u64,
}

impl Row {
    pub(super) fn len(&self) -> u64 {
        let columns = u64::try_from(self.columns.len()).unwrap_or(u64::MAX);
        self.blocks.saturating_mul(columns)
    }
}

/// Blocks of a request that lie together in a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment {
    /// Where in the request: blocks from its start.
    pub at: u64,
    /// How many blocks.
    pub len: u64,
}

/// The blocks of a request on one part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Counted from 0, in the order of the volume's parts.
    pub part: usize,
    /// Which blocks of it.
    pub range: LbaRange,
    /// Which blocks of the request they are, in order of the part's.
    pub fragments: SmallVec<[Fragment; 1]>,
}

/// The pieces of a request.
pub type Pieces = SmallVec<[Piece; 2]>;

/// The rows of a volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Map {
    rows: Vec<Row>,
    /// For each row the first block behind it.
    ends: Vec<u64>,
    unit: u64,
}

/// How units take turns over the columns of a row. Blocks of a row and of a column are counted from
/// its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Turns {
    pub(super) unit: u64,
    pub(super) columns: u64,
}

impl Turns {
    /// The column of a block of the row, and its block there.
    pub(super) fn column_of(self, block: u64) -> (usize, u64) {
        let (turn, within) = (block / self.unit, block % self.unit);
        let column = usize::try_from(turn % self.columns).expect("below a small number");
        (column, (turn / self.columns) * self.unit + within)
    }

    /// The block of the row that a block of a column is.
    pub(super) fn row_block(self, column: usize, block: u64) -> u64 {
        let turn = (block / self.unit) * self.columns + as_count(column);
        turn * self.unit + block % self.unit
    }

    /// How many blocks of a column are before a block of the row.
    pub(super) fn before(self, column: usize, block: u64) -> u64 {
        let (turn, within) = (block / self.unit, block % self.unit);
        let whole = turn / self.columns * self.unit;
        let (column, at) = (as_count(column), turn % self.columns);
        match column.cmp(&at) {
            Ordering::Less => whole + self.unit,
            Ordering::Equal => whole + within,
            Ordering::Greater => whole,
        }
    }

    /// The first block of the row behind the unit of a block.
    pub(super) fn unit_end(self, block: u64) -> u64 {
        (block / self.unit + 1) * self.unit
    }
}

fn as_count(columns: usize) -> u64 {
    u64::try_from(columns).expect("a small number")
}

impl Map {
    /// Rows one after the other, in units of so many blocks.
    ///
    /// # Errors
    /// The rule that they break.
    pub fn new(rows: Vec<Row>, unit: u64) -> Result<Self, &'static str> {
        if unit == 0 {
            return Err("a unit has blocks");
        }
        let mut ends = Vec::new();
        let mut end = 0_u64;
        for row in &rows {
            if row.columns.is_empty() || row.blocks == 0 {
                return Err("a row has columns and blocks");
            }
            if row.columns.len() > 1 && !row.blocks.is_multiple_of(unit) {
                return Err("a row over several columns has whole units");
            }
            end = end.checked_add(row.len()).ok_or("too many blocks")?;
            ends.push(end);
        }
        if rows.is_empty() {
            return Err("a volume has rows");
        }
        Ok(Self { rows, ends, unit })
    }

    /// Blocks of the volume.
    #[must_use]
    pub fn blocks(&self) -> BlockCount {
        BlockCount(self.ends.last().copied().unwrap_or(0))
    }

    /// Blocks of a unit.
    #[must_use]
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// In the order of the volume's blocks, without a gap.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Where the blocks of a range inside the volume lie, in order of its first blocks; neighbours
    /// on one part are one piece.
    ///
    /// # Panics
    /// If the range is not inside the volume.
    #[must_use]
    pub fn pieces(&self, range: LbaRange) -> Pieces {
        let mut pieces = Pieces::new();
        let (mut at, end) = (range.start().0, range.end().0);
        while at < end {
            let (part, start, run) = self.place(at);
            let len = run.min(end - at);
            let fragment = Fragment {
                at: at - range.start().0,
                len,
            };
            add(&mut pieces, part, start, fragment);
            at += len;
        }
        pieces
    }

    /// Part and block of a block, and how many blocks from there lie together.
    fn place(&self, block: u64) -> (usize, u64, u64) {
        let (row, start) = self.row_of(block);
        let inside = block - start;
        if row.columns.len() == 1 {
            let column = row.columns.first().expect("a row has columns");
            return (
                column.part,
                column.start.0 + inside,
                start + row.len() - block,
            );
        }
        let turns = self.turns(row);
        let (column, there) = turns.column_of(inside);
        let column = row.columns.get(column).expect("below their count");
        (
            column.part,
            column.start.0 + there,
            turns.unit_end(inside) - inside,
        )
    }

    /// The row of a block, and the block that it begins with.
    pub(super) fn row_of(&self, block: u64) -> (&Row, u64) {
        let number = self.ends.partition_point(|end| *end <= block);
        let row = self.rows.get(number).expect("inside the volume");
        let end = self.ends.get(number).copied().expect("as many as rows");
        (row, end - row.len())
    }

    pub(super) fn turns(&self, row: &Row) -> Turns {
        Turns {
            unit: self.unit,
            columns: as_count(row.columns.len()),
        }
    }
}

/// Adds blocks to the piece that they continue, or as a piece of their own.
fn add(pieces: &mut Pieces, part: usize, start: u64, fragment: Fragment) {
    let continues = |piece: &&mut Piece| piece.part == part && piece.range.end().0 == start;
    if let Some(piece) = pieces.iter_mut().rev().find(continues) {
        let len = BlockCount(piece.range.len().0 + fragment.len);
        piece.range = LbaRange::new(piece.range.start(), len).expect("inside a part");
        match piece.fragments.last_mut() {
            Some(last) if last.at + last.len == fragment.at => last.len += fragment.len,
            _ => piece.fragments.push(fragment),
        }
        return;
    }
    pieces.push(Piece {
        part,
        range: LbaRange::new(Lba(start), BlockCount(fragment.len)).expect("inside a part"),
        fragments: SmallVec::from_buf([fragment]),
    });
}

impl Piece {
    /// The block of the request that a block of the part is, counted from its start.
    #[must_use]
    pub fn request_block(&self, lba: Lba) -> u64 {
        let mut inside = lba.0.saturating_sub(self.range.start().0);
        for fragment in &self.fragments {
            if inside < fragment.len {
                return fragment.at + inside;
            }
            inside -= fragment.len;
        }
        self.fragments.first().map_or(0, |first| first.at)
    }
}
