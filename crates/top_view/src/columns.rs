//! The columns of the two tables, and which of them a terminal has room for.

use super::frame::{LunRow, SessionRow, SortKey};
use super::text::{count, mebibytes, percent, target, time, who};

/// How a cell is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tone {
    Plain,
    Quiet,
    Good,
    Warn,
    Bad,
}

/// A latency from which on it is no longer quick, and from which on it is slow, in microseconds.
const WARN_US: u64 = 10_000;
const BAD_US: u64 = 100_000;

/// Heading, least width and cell of one column of `top`, for rows of type `R`.
pub(super) struct Column<R> {
    pub(super) title: &'static str,
    pub(super) width: usize,
    /// Columns of a higher rank go first where there is no room.
    rank: u8,
    pub(super) key: Option<SortKey>,
    pub(super) cell: fn(&R) -> (String, Tone),
}

impl<R> Column<R> {
    /// It has text, not figures.
    pub(super) fn is_text(&self) -> bool {
        ["TARGET", "FROM"].contains(&self.title)
    }
}

/// The least width of the first column, which takes all that is left.
const NAME_WIDTH_MIN: usize = 10;

/// The columns after the first one that `width` has room for, and what is left for the first one.
pub(super) fn fitting<R>(columns: &[Column<R>], width: usize) -> (usize, Vec<&Column<R>>) {
    let mut left = width.saturating_sub(NAME_WIDTH_MIN);
    let mut by_rank: Vec<&Column<R>> = columns.iter().collect();
    by_rank.sort_by_key(|column| column.rank);
    let mut least = u8::MAX;
    for column in by_rank {
        // What matters less does not take the place of what matters more.
        if column.width + 1 > left {
            least = column.rank;
            break;
        }
        left -= column.width + 1;
    }
    let shown = columns
        .iter()
        .filter(|column| column.rank < least)
        .collect();
    (NAME_WIDTH_MIN.min(width) + left, shown)
}

fn rate(text: String) -> (String, Tone) {
    let tone = if text == "0" {
        Tone::Quiet
    } else {
        Tone::Plain
    };
    (text, tone)
}

fn latency(micros: Option<u64>) -> (String, Tone) {
    let tone = match micros {
        None => Tone::Quiet,
        Some(BAD_US..) => Tone::Bad,
        Some(WARN_US..) => Tone::Warn,
        Some(_) => Tone::Good,
    };
    (time(micros), tone)
}

fn stage(micros: Option<u64>) -> (String, Tone) {
    let tone = match micros {
        None | Some(0) => Tone::Quiet,
        Some(_) => Tone::Plain,
    };
    (time(micros), tone)
}

macro_rules! column {
    ($title:literal, $width:literal, $rank:literal, $key:expr, |$row:ident| $cell:expr) => {
        Column {
            title: $title,
            width: $width,
            rank: $rank,
            key: $key,
            cell: |$row| $cell,
        }
    };
}

/// Of LUNs, after the name.
pub(super) const LUNS: &[Column<LunRow>] = &[
    column!("IOPS", 7, 0, Some(SortKey::Iops), |row| rate(count(
        row.rates.iops
    ))),
    column!("R IOPS", 7, 5, None, |row| rate(count(row.read_iops))),
    column!("W IOPS", 7, 6, None, |row| rate(count(row.write_iops))),
    column!("MiB/s", 6, 1, Some(SortKey::Throughput), |row| rate(
        mebibytes(row.rates.bytes_per_second)
    )),
    column!("R MiB/s", 7, 7, None, |row| rate(mebibytes(
        row.rates.read_bytes_per_second
    ))),
    column!("W MiB/s", 7, 8, None, |row| rate(mebibytes(
        row.rates.write_bytes_per_second
    ))),
    column!("MEAN", 7, 4, None, |row| latency(row.rates.latency_us.mean)),
    column!("P50", 7, 12, None, |row| latency(row.rates.latency_us.p50)),
    column!("P99", 7, 2, Some(SortKey::Latency), |row| latency(
        row.rates.latency_us.p99
    )),
    column!("NETWORK", 7, 10, None, |row| stage(row.stages_us.network)),
    column!("QUEUE", 7, 11, None, |row| stage(row.stages_us.queue)),
    column!("JOURNAL", 7, 13, None, |row| stage(row.stages_us.journal)),
    column!("BACKEND", 7, 9, None, |row| stage(row.stages_us.backend)),
    column!("DEPTH", 5, 3, Some(SortKey::InFlight), |row| rate(
        row.rates.in_flight.to_string()
    )),
];

/// Of sessions, after the number and the host.
pub(super) const SESSIONS: &[Column<SessionRow>] = &[
    column!("TARGET", 14, 7, None, |row| (
        target(row).to_owned(),
        Tone::Plain
    )),
    column!("FROM", 21, 9, None, |row| (row.from.clone(), Tone::Quiet)),
    column!("CORE", 4, 5, None, |row| (
        row.core.to_string(),
        Tone::Plain
    )),
    column!("LOAD", 5, 5, None, |row| rate(percent(row.load))),
    column!("IOPS", 7, 0, Some(SortKey::Iops), |row| rate(count(
        row.rates.iops
    ))),
    column!("MiB/s", 6, 1, Some(SortKey::Throughput), |row| rate(
        mebibytes(row.rates.bytes_per_second)
    )),
    column!("R MiB/s", 7, 6, None, |row| rate(mebibytes(
        row.rates.read_bytes_per_second
    ))),
    column!("W MiB/s", 7, 6, None, |row| rate(mebibytes(
        row.rates.write_bytes_per_second
    ))),
    column!("MEAN", 7, 4, None, |row| latency(row.rates.latency_us.mean)),
    column!("P50", 7, 8, None, |row| latency(row.rates.latency_us.p50)),
    column!("P99", 7, 2, Some(SortKey::Latency), |row| latency(
        row.rates.latency_us.p99
    )),
    column!("DEPTH", 5, 3, Some(SortKey::InFlight), |row| rate(
        row.rates.in_flight.to_string()
    )),
];

/// What stands in the first column of a session.
pub(super) fn session_name(row: &SessionRow) -> String {
    format!("{} {}", row.id, who(row))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_narrow_terminal_keeps_what_matters_most() {
        let titles = |width| -> Vec<&str> {
            let (name, shown) = fitting(LUNS, width);
            let used: usize = shown.iter().map(|column| column.width + 1).sum();
            assert_eq!(name + used, width.max(NAME_WIDTH_MIN.min(width)), "{width}");
            shown.iter().map(|column| column.title).collect()
        };
        assert_eq!(titles(200).len(), LUNS.len());
        assert_eq!(
            titles(60),
            ["IOPS", "R IOPS", "MiB/s", "MEAN", "P99", "DEPTH"]
        );
        assert_eq!(titles(40), ["IOPS", "MiB/s", "P99", "DEPTH"]);
        assert_eq!(titles(36), ["IOPS", "MiB/s", "P99"]);
        assert_eq!(titles(20), ["IOPS"]);
        assert!(titles(5).is_empty());
    }
}
