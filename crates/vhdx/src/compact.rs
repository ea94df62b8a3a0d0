//! Making a file shorter: blocks at its end move to where nothing is.

use crate::check::{TABLE_AT_ONCE, Used};
use crate::entry::Entry;
use crate::error::Error;
use crate::geometry::{EntryOf, MIB};
use crate::regions::Area;
use crate::space::Space;
use crate::state::{Claim, Image};
use crate::step::{Operation, Port};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Blocks that move between two passes over the table.
const MOVES_AT_ONCE: usize = 4096;

/// A block that may move.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Movable {
    place: u64,
    number: u64,
}

/// The lowest places where nothing is.
struct Holes {
    next: u64,
}

impl Holes {
    /// A free place of so many bytes below `limit`; it counts as used from now on.
    fn take(&mut self, used: &mut Used, bytes: u64, limit: u64) -> Option<u64> {
        let count = bytes / MIB;
        while (self.next + count) * MIB <= limit {
            match (self.next..self.next + count)
                .rev()
                .find(|mib| used.is_used(*mib))
            {
                Some(mib) => self.next = mib + 1,
                None => {
                    let at = self.next * MIB;
                    used.add(Area { at, bytes });
                    return Some(at);
                }
            }
        }
        None
    }
}

impl Image {
    /// Moves blocks from the file's end to where nothing is, and cuts the file off behind them.
    /// Nobody writes to the disk meanwhile. It may be stopped at any time, and begun anew. It ends
    /// with the file's length.
    #[must_use]
    pub fn compact(&self) -> Operation<'_, u64> {
        Operation::new(async move |port: Port| {
            let port = port.of_file(self.file);
            self.guarded(self.shorten(&port)).await
        })
    }

    async fn shorten(&self, port: &Port) -> Result<u64, Error> {
        let report = self.examine(port).await?;
        if report.worst() == Some(crate::Severity::Damage) {
            return Err(Error::Refused("the image is damaged: check it first"));
        }
        self.claim(port, Claim::File).await?;
        self.commit_pages(port).await?;
        {
            // What is free is found anew.
            let mut state = self.state.get();
            state.space = Space::behind(state.file_bytes);
        }
        let end = loop {
            let (mut used, movable) = self.survey(port).await?;
            if !self.move_some(port, &mut used, movable).await? {
                break used.end();
            }
        };
        self.let_go(port).await?;
        self.cut(port, end).await?;
        Ok(end)
    }

    /// What is in use, and the blocks nearest to the file's end.
    async fn survey(&self, port: &Port) -> Result<(Used, Vec<Movable>), Error> {
        let mut used = {
            let state = self.state.get();
            let mut used = Used::new(state.file_bytes);
            for area in state.fixed_areas() {
                used.add(area);
            }
            used
        };
        let (mut from, mut number, mut last) = (0, 0, BinaryHeap::new());
        loop {
            let words = self.table(port, from).await?;
            if words.is_empty() {
                break;
            }
            from += TABLE_AT_ONCE;
            let state = self.state.get();
            for bits in words {
                let (of, entry) = (state.geometry().entry_of(number), Entry::decode(bits));
                if entry.state.has_place() {
                    used.add(state.area_of(of, entry.place));
                    last.push(Reverse(Movable {
                        place: entry.place,
                        number,
                    }));
                }
                number += 1;
            }
            while last.len() > MOVES_AT_ONCE {
                last.pop();
            }
        }
        let mut movable: Vec<Movable> = last.into_iter().map(|Reverse(it)| it).collect();
        movable.sort_unstable_by_key(|it| Reverse(it.place));
        Ok((used, movable))
    }

    /// Moves blocks down, the last one first. Places that they leave are used in the next round.
    async fn move_some(
        &self,
        port: &Port,
        used: &mut Used,
        movable: Vec<Movable>,
    ) -> Result<bool, Error> {
        let (mut of_blocks, mut of_bitmaps) = (Holes { next: 1 }, Holes { next: 1 });
        let mut moved = Vec::new();
        for Movable { place, number } in movable {
            let (of, area) = {
                let state = self.state.get();
                let of = state.geometry().entry_of(number);
                (of, state.area_of(of, place))
            };
            let holes = match of {
                EntryOf::Block(_) => &mut of_blocks,
                EntryOf::Bitmap(_) => &mut of_bitmaps,
            };
            let Some(to) = holes.take(used, area.bytes, place) else {
                continue;
            };
            let there = self.state.get().file_bytes.saturating_sub(place);
            port.copy(self.file, place, to, area.bytes.min(there))
                .await?;
            moved.push((number, area, to));
        }
        port.sync().await?;
        for (number, _, to) in &moved {
            self.with(port, |state| {
                let entry = Entry::decode(state.bits(number * 8)?);
                state.set_bits(number * 8, Entry::at(entry.state, *to));
                Ok(())
            })
            .await?;
            self.relieve(port).await?;
        }
        self.commit_pages(port).await?;
        let mut state = self.state.get();
        for (_, area, to) in &moved {
            state.pages.forget(area.at, area.end());
            state.pages.forget(*to, to + area.bytes);
        }
        Ok(!moved.is_empty())
    }
}
