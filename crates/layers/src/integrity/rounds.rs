//! Writing the map: rounds of all pages that changed, one sync each, shared by all who wait for it.
//!
//! **Contract.** One round at a time, whatever the core. What was set before [`Map::stable`] was
//! called is stable when it answers. A write or sync that fails ends all writing until the map is
//! opened anew; one for which there is no space ends nothing: all that the round had is as before
//! it, to be written to the same places again, which the next one who waits and a task of the map's
//! own try.

use super::Finding;
use super::due::{ABOVE_AFTER, Round};
use super::map::{Map, Tally, place};
use super::map_file::MapFile;
use super::page::{Resident, lock};
use checksums::{Blank, Generation, NodeWrite, Page, PageId, SUPERBLOCKS_AT};
use env::FileOp;
use env::file::is_no_space;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;
use units::Lba;
use volume::IoError;

/// Pages of a round that are on their way at once.
const IN_FLIGHT: usize = 64;

impl Map {
    /// A page has changed.
    pub(super) fn dirtied(&self, page: Arc<Resident>) {
        lock(&self.rounds).dirty.push(page);
    }

    /// Pages that are to be written.
    pub(super) fn dirty_pages(&self) -> usize {
        lock(&self.rounds).dirty.len()
    }

    /// Waits until everything that was set is stable.
    ///
    /// # Errors
    /// The map cannot be written any more.
    pub(super) async fn stable(self: &Arc<Self>, from: &MapFile) -> Result<(), IoError> {
        let wanted = {
            let rounds = lock(&self.rounds);
            match (rounds.dirty.is_empty(), rounds.running) {
                (true, false) => rounds.done,
                (true, true) => rounds.started,
                (false, _) => rounds.started + 1,
            }
        };
        self.done(from, wanted, false).await
    }

    /// One more round, with the pages above; `true` once nothing is left to write.
    pub(super) async fn settle(self: &Arc<Self>, from: &MapFile) -> Result<bool, IoError> {
        let wanted = lock(&self.rounds).started + 1;
        self.done(from, wanted, true).await?;
        let rounds = lock(&self.rounds);
        let idle = rounds.dirty.is_empty() && !rounds.running;
        Ok(idle && lock(&self.tree).is_settled())
    }

    async fn done(
        self: &Arc<Self>,
        from: &MapFile,
        wanted: u64,
        above: bool,
    ) -> Result<(), IoError> {
        let refused = lock(&self.rounds).refused;
        loop {
            let turn = {
                let mut rounds = lock(&self.rounds);
                if self.is_broken() {
                    return Err(IoError::MediumError { lba: Lba(0) });
                }
                if rounds.done >= wanted {
                    return Ok(());
                }
                if rounds.refused != refused {
                    return Err(IoError::SpaceExhausted);
                }
                if rounds.running {
                    let (wake, woken) = oneshot::channel();
                    rounds.waiting.push(wake);
                    Err(woken)
                } else {
                    Ok(rounds.begin(from.core.now(), above))
                }
            };
            match turn {
                // A sender that is dropped wakes as well.
                Err(woken) => drop(woken.await),
                Ok(round) => {
                    let written = self.write(from, round).await;
                    self.end(from, written);
                }
            }
        }
    }

    fn end(self: &Arc<Self>, from: &MapFile, written: io::Result<()>) {
        let refused = written.as_ref().is_err_and(is_no_space);
        let was_full = self.state.full.swap(refused, Ordering::AcqRel);
        match written {
            Ok(()) if was_full => self.report_finding(&Finding::MapHasRoom),
            Err(error) if refused && !was_full => self.report_finding(&Finding::MapFull {
                why: error.to_string(),
            }),
            Err(error) if !refused && !self.state.broken.swap(true, Ordering::AcqRel) => {
                self.report_finding(&Finding::MapBroken {
                    why: error.to_string(),
                });
            }
            Ok(()) | Err(_) => {}
        }
        let mut rounds = lock(&self.rounds);
        rounds.running = false;
        if refused {
            rounds.refused += 1;
        } else {
            rounds.done = rounds.started;
        }
        let more = refused || !lock(&self.tree).is_settled();
        let settle = !rounds.settling && !self.is_broken() && more;
        rounds.settling |= settle;
        let waiting = std::mem::take(&mut rounds.waiting);
        drop(rounds);
        for wake in waiting {
            // Whoever gave up waiting needs no wake.
            let _ = wake.send(());
        }
        if settle {
            self.settle_later(from);
        }
    }

    /// Pages above are written although no flush asks any more.
    fn settle_later(self: &Arc<Self>, from: &MapFile) {
        let (map, from) = (Arc::clone(self), from.clone());
        let core = Rc::clone(&from.core);
        core.spawn(Box::pin(async move {
            from.core
                .sleep_until(from.core.now().after(ABOVE_AFTER))
                .await;
            lock(&map.rounds).settling = false;
            // What fails has been reported, and is over.
            let _ = map.settle(&from).await;
        }));
    }

    async fn write(&self, from: &MapFile, mut round: Round) -> io::Result<()> {
        let mut begun = Begun::default();
        let written = self.write_round(from, &round, &mut begun).await;
        if written.as_ref().is_err_and(is_no_space) {
            self.take_back(&mut round, begun);
        }
        written
    }

    async fn write_round(
        &self,
        from: &MapFile,
        round: &Round,
        begun: &mut Begun,
    ) -> io::Result<()> {
        self.make_sure(from, round).await?;
        let next: Vec<Option<Page>> = round.pages.iter().map(|page| page.next()).collect();
        begun.written = Some(next.iter().map(Option::is_some).collect());
        let pages = self.write_pages(from, next.into_iter()).await?;
        let nodes = if round.above {
            lock(&self.tree).to_write()
        } else {
            Vec::new()
        };
        begun.nodes = nodes.iter().map(|node| node.place).collect();
        let nodes = self.write_nodes(from, nodes).await?;
        if round.above {
            let before = lock(&self.superblock).count;
            let written = self.write_superblock(from, false).await;
            let now = lock(&self.superblock).count;
            begun.superblock = (now != before).then_some(now);
            written?;
        }
        from.file.submit(FileOp::Sync).await?;
        self.are_stable(pages);
        let mut tree = lock(&self.tree);
        for (place, generation) in nodes {
            tree.node_stable(place, generation);
        }
        Tally::add(&self.tally.rounds, 1);
        Ok(())
    }

    /// There was no space for a round: what it had is to be written, to where it was to be written.
    /// The version before stays in the other place of each page, and this one was reported to
    /// nobody.
    fn take_back(&self, round: &mut Round, begun: Begun) {
        if let Some(number) = begun.superblock {
            let mut superblock = lock(&self.superblock);
            if superblock.count == number {
                superblock.count -= 1;
            }
            self.state.superblock_is_new.store(true, Ordering::Release);
        }
        let mut pages = std::mem::take(&mut round.pages);
        if let Some(written) = begun.written {
            // Of the others what was found is stable, and all that there is.
            let mut written = written.into_iter();
            pages.retain(|page| written.next() == Some(true) && page.take_back());
        }
        {
            let mut tree = lock(&self.tree);
            for place in begun.nodes {
                tree.take_back(place);
            }
        }
        let mut rounds = lock(&self.rounds);
        rounds.dirty.append(&mut pages);
        rounds.gone.append(&mut round.gone);
    }

    /// What was found after a crash, and what the file has lost, is stable before something else is
    /// written of the same pages: torn, that leaves what there was.
    async fn make_sure(&self, from: &MapFile, round: &Round) -> io::Result<()> {
        let unsure = round.pages.iter().map(|page| page.unsure());
        let written = self.write_pages(from, unsure).await?;
        for above in &round.gone {
            self.write_again(from, *above).await?;
        }
        if !written.is_empty() || !round.gone.is_empty() {
            from.file.submit(FileOp::Sync).await?;
            self.are_stable(written);
        }
        Ok(())
    }

    fn are_stable(&self, pages: Vec<(u64, Generation)>) {
        let mut tree = lock(&self.tree);
        for (index, generation) in pages {
            tree.stable(index, generation);
        }
    }

    /// Writes those that there are.
    async fn write_pages(
        &self,
        from: &MapFile,
        pages: impl Iterator<Item = Option<Page>>,
    ) -> io::Result<Vec<(u64, Generation)>> {
        let (mut written, mut answers) = (Vec::new(), VecDeque::new());
        let mut result = Ok(());
        for page in pages.flatten() {
            if answers.len() == IN_FLIGHT {
                let oldest: env::FileFuture = answers.pop_front().expect("as many as that");
                result = result.and(oldest.await.map(drop));
            }
            let at = place(page.index).at(page.generation);
            answers.push_back(from.write(at, &page.write(self.id)));
            written.push((page.index, page.generation));
        }
        // All of them end first: what is written to the same places the next time must not be
        // overtaken.
        result.and(ended(answers).await)?;
        Tally::add(&self.tally.page_writes, written.len() as u64);
        Ok(written)
    }

    async fn write_nodes(
        &self,
        from: &MapFile,
        nodes: Vec<NodeWrite>,
    ) -> io::Result<Vec<(PageId, Generation)>> {
        let answers = nodes.iter().map(|node| from.write(node.at, &node.bytes));
        ended(answers.collect()).await?;
        Tally::add(&self.tally.page_writes, nodes.len() as u64);
        Ok(nodes
            .iter()
            .map(|node| (node.place, node.generation))
            .collect())
    }

    /// Writes the superblock where the regions have changed; always, where the map is closed by it.
    pub(super) async fn write_superblock(&self, from: &MapFile, close: bool) -> io::Result<()> {
        let roots = lock(&self.tree).roots_to_write();
        let is_new = self.state.superblock_is_new.swap(false, Ordering::AcqRel);
        if roots.is_none() && !close && !is_new {
            return Ok(());
        }
        let (at, bytes) = {
            let mut superblock = lock(&self.superblock);
            superblock.count += 1;
            // Closed before the journal was replayed, it is as after the crash.
            superblock.clean = close && !self.state.replaying.load(Ordering::Acquire);
            superblock.regions = lock(&self.tree).roots();
            superblock.with_checksum = match superblock.blank {
                Blank::Anything => self.with_checksum(superblock.checksums()),
                Blank::Zeroes => 0,
            };
            (SUPERBLOCKS_AT[superblock.slot()], superblock.write())
        };
        from.write(at, &bytes).await?;
        Ok(())
    }
}

/// Waits for the end of all of them, and answers with the first error.
async fn ended(answers: VecDeque<env::FileFuture>) -> io::Result<()> {
    let mut result = Ok(());
    for answer in answers {
        result = result.and(answer.await.map(drop));
    }
    result
}

/// How far a round has come.
#[derive(Default)]
struct Begun {
    /// The next versions of its pages were taken: for each page, whether there was one.
    written: Option<Vec<bool>>,
    nodes: Vec<PageId>,
    /// The number that the superblock got.
    superblock: Option<u64>,
}
