//! The generations of all pages, in memory, and what of them is written when.
//!
//! **Invariants.** T1. A page above says of a page below only what is stable below: it is updated
//! by [`Tree::stable`] after a sync.
//!     So after a crash a page is at least as new as the page above says; an older one was lost by
//!     the device. A page that is read and newer than that is perhaps not stable, where a sync
//!     failed before the process died; and it may be, so that others rely on it. A page of
//!     checksums is therefore written once more as it is, to where it is, before another version
//!     of it is and before the page above is updated. On a page above nobody relies before it was
//!     written itself: its next version takes its place.
//! T2. In memory the newest generation of a page is known exactly once it was read or written, and
//! of every page from the
//!     beginning where the map was closed cleanly.
//! T3. A page is written at most once between two syncs, and its two places take turns: a torn one
//! leaves the one before.
//!
//! So a page above may be written whenever it is convenient, with no sync of its own.

use crate::checksum::MapId;
use crate::page::{FAN, Generation, Level, PAGE, Page};
use crate::place::{PageId, REGIONS_MAX};
use crate::superblock::Superblock;
use formats::Damage;

/// What is known of a page's newest generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// Its lower 32 bits; 0 for a page that was never written.
    pub generation: u32,
    /// It is this one and no later one.
    pub exact: bool,
}

impl Recorded {
    /// It was never written: there is nothing to read.
    #[must_use]
    pub const fn is_absent(self) -> bool {
        self.exact && self.generation == 0
    }
}

/// What both places of a page hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// This.
    Page(Page),
    /// Nothing yet.
    Absent,
}

/// Why a page cannot be used. What is known besides: no generation was later than this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unfit {
    /// What is wrong.
    pub why: Damage,
    /// The newest generation that may have been.
    pub generation: Generation,
}

/// Which of both places counts, given what is recorded above.
///
/// # Errors
/// That neither can be it.
pub fn judge(
    recorded: Recorded,
    place: PageId,
    map: MapId,
    slots: [&[u8]; 2],
) -> Result<Found, Unfit> {
    let read = |slot: usize| {
        let page = Page::read(slots[slot], map)?;
        let fits = page.level == place.level && page.index == place.index;
        let turn = usize::from(page.generation.slot()) == slot;
        if fits && turn {
            Ok(page)
        } else {
            Err(Damage::Contradiction("it belongs elsewhere"))
        }
    };
    let both = [read(0), read(1)];
    let newest = both.iter().flatten().map(|page| page.generation).max();
    let unfit = |why| {
        let generation = newest
            .unwrap_or_default()
            .max(Generation(recorded.generation.into()));
        Err(Unfit { why, generation })
    };
    let mut damages = both
        .iter()
        .zip(slots)
        .filter_map(|(read, slot)| match read {
            Err(damage) if slot.iter().any(|&byte| byte != 0) => Some(*damage),
            Err(_) | Ok(_) => None,
        });
    let hurt = damages.next();
    // A later version is never taken for a torn one of ours, whatever the other place has.
    let version = hurt.into_iter().chain(damages);
    let mut version = version.filter(|it| matches!(it, Damage::Version { .. }));
    if let Some(version) = version.next() {
        return unfit(version);
    }
    let Some(newest) = newest else {
        return match (recorded.generation, hurt) {
            // Nothing, or the first write of it was torn: nothing above has it.
            (0, _) => Ok(Found::Absent),
            (_, Some(damage)) => unfit(damage),
            (_, None) => unfit(Damage::Contradiction("what was written is not there")),
        };
    };
    let ahead = newest.low().wrapping_sub(recorded.generation);
    let older = ahead > u32::MAX / 2;
    if older || (recorded.exact && ahead != 0) {
        return unfit(hurt.unwrap_or(Damage::Contradiction(
            "it is not the version that was written last",
        )));
    }
    let page = both
        .into_iter()
        .flatten()
        .find(|page| page.generation == newest);
    Ok(page.map_or(Found::Absent, Found::Page))
}

/// What the next version has to follow of a page above checksums that is newer than recorded: that
/// goes to the same place, so that the version before stays, unless the other place holds none that
/// could be lost.
fn follows(page: &Page, map: MapId, slots: [&[u8]; 2]) -> Generation {
    let other = slots[usize::from(page.generation.next().slot())];
    let has_one =
        Page::read(other, map).is_ok_and(|it| it.level == page.level && it.index == page.index);
    if has_one {
        page.generation.next()
    } else {
        page.generation
    }
}

/// A page above checksums.
#[derive(Clone, Debug)]
struct Node {
    entries: Box<[u32; FAN]>,
    generation: Generation,
    dirty: bool,
}

impl Node {
    fn written(&self, place: PageId, map: MapId) -> NodeWrite {
        let page = Page {
            level: place.level,
            index: place.index,
            generation: self.generation,
            entries: self.entries.clone(),
        };
        NodeWrite {
            place,
            generation: self.generation,
            at: place.at(self.generation),
            bytes: page.write(map),
        }
    }

    fn new() -> Self {
        Self {
            entries: Box::new([0; FAN]),
            generation: Generation(0),
            dirty: false,
        }
    }
}

/// A page above checksums, to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeWrite {
    /// Level and index of the page in the tree.
    pub place: PageId,
    /// Which version of it.
    pub generation: Generation,
    /// Where to, in bytes.
    pub at: u64,
    /// The page as it is written, sealed.
    pub bytes: Vec<u8>,
}

/// All generations of a map: 4 bytes and a bit for each page of checksums.
#[derive(Clone, Debug)]
pub struct Tree {
    map: MapId,
    pages: u64,
    groups: Vec<Node>,
    regions: Vec<Node>,
    roots: Box<[u32; REGIONS_MAX]>,
    roots_dirty: bool,
    /// Where nothing says otherwise, generations are the newest ones.
    exact: bool,
    /// A bit for each page: its generation is the newest one.
    known: Vec<u64>,
}

impl Tree {
    /// Of a map that its superblock describes. Before anything else is asked, all regions and then
    /// all groups are to be [loaded](Tree::load).
    #[must_use]
    pub fn new(superblock: &Superblock) -> Self {
        let pages = superblock.checksums().div_ceil(FAN as u64);
        let mut tree = Self {
            map: superblock.map,
            pages: 0,
            groups: Vec::new(),
            regions: Vec::new(),
            roots: superblock.regions.clone(),
            roots_dirty: false,
            exact: superblock.clean,
            known: Vec::new(),
        };
        tree.grow(pages);
        tree
    }

    /// The volume has become larger.
    pub fn grow(&mut self, pages: u64) {
        let count = |pages: u64| usize::try_from(pages).expect("64-bit machines only");
        let groups = pages.div_ceil(FAN as u64);
        self.pages = self.pages.max(pages);
        let (groups, regions) = (count(groups), count(groups.div_ceil(FAN as u64)));
        self.groups
            .resize_with(self.groups.len().max(groups), Node::new);
        self.regions
            .resize_with(self.regions.len().max(regions), Node::new);
        let words = count(pages.div_ceil(64));
        self.known.resize(self.known.len().max(words), 0);
    }

    /// Pages of checksums.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.pages
    }

    /// The pages above checksums that must be loaded, in this order, and what is recorded of each
    /// one is right only then.
    #[must_use]
    pub fn nodes(&self) -> Vec<PageId> {
        let of = |level, count| (0..count as u64).map(move |index| PageId { level, index });
        let regions = of(Level::Regions, self.regions.len());
        regions
            .chain(of(Level::Groups, self.groups.len()))
            .collect()
    }

    /// Takes a page above checksums from what both its places hold. One that is newer than recorded
    /// is written again.
    ///
    /// # Errors
    /// That it cannot be used. Then only less is known of the pages below it: lost writes from
    /// before are not noticed.
    pub fn load(&mut self, place: PageId, slots: [&[u8]; 2]) -> Result<(), Unfit> {
        let recorded = self.recorded(place);
        let (judged, map) = (judge(recorded, place, self.map, slots), self.map);
        let node = self.node(place);
        match judged {
            Ok(Found::Page(page)) => {
                let reported = page.generation.low() == recorded.generation;
                let generation = if reported {
                    page.generation
                } else {
                    follows(&page, map, slots)
                };
                (node.entries, node.generation) = (page.entries, generation);
                node.dirty |= !reported;
                Ok(())
            }
            Ok(Found::Absent) => Ok(()),
            Err(unfit) => {
                node.generation = unfit.generation;
                node.dirty = true;
                self.exact = false;
                Err(unfit)
            }
        }
    }

    /// What is known of a page.
    #[must_use]
    pub fn recorded(&self, place: PageId) -> Recorded {
        let generation = match place.above() {
            (Some(above), entry) => self.inspect(above).entries[entry],
            (None, entry) => self.roots[entry],
        };
        let exact = match place.level {
            Level::Checksums => self.exact || self.is_known(place.index),
            Level::Groups | Level::Regions => self.exact,
        };
        Recorded { generation, exact }
    }

    /// A page of checksums was read, or its write became stable: this is its newest generation.
    ///
    /// # Panics
    /// If the map has no such page.
    pub fn stable(&mut self, index: u64, generation: Generation) {
        assert!(index < self.pages, "a page of the map");
        let place = PageId {
            level: Level::Checksums,
            index,
        };
        self.update_above(place, generation);
        let (word, bit) = known_at(index);
        self.known[word] |= bit;
    }

    /// The pages above that differ from what is on the device, each at most once until
    /// [`Tree::node_stable`].
    #[must_use]
    pub fn to_write(&mut self) -> Vec<NodeWrite> {
        let mut writes = Vec::new();
        let map = self.map;
        for (level, nodes) in [
            (Level::Groups, &mut self.groups),
            (Level::Regions, &mut self.regions),
        ] {
            for (index, node) in (0..).zip(nodes).filter(|(_, node)| node.dirty) {
                let place = PageId { level, index };
                node.generation = node.generation.next();
                node.dirty = false;
                writes.push(node.written(place, map));
            }
        }
        writes
    }

    /// There was no space for a page above: it is to be written, with the number that
    /// [`Tree::to_write`] gave it.
    pub fn take_back(&mut self, place: PageId) {
        let node = self.node(place);
        node.generation = node.generation.before();
        node.dirty = true;
    }

    /// A page above as it was written last, to where it was: the file no longer holds it. `None`:
    /// its next version is to be written anyway.
    #[must_use]
    pub fn again(&self, place: PageId) -> Option<NodeWrite> {
        let node = self.inspect(place);
        (!node.dirty).then(|| node.written(place, self.map))
    }

    /// A page above is stable.
    pub fn node_stable(&mut self, place: PageId, generation: Generation) {
        self.update_above(place, generation);
    }

    /// What the superblock must say, where that is not what it said.
    pub fn roots_to_write(&mut self) -> Option<Box<[u32; REGIONS_MAX]>> {
        std::mem::take(&mut self.roots_dirty).then(|| self.roots.clone())
    }

    /// What the superblock says.
    #[must_use]
    pub fn roots(&self) -> Box<[u32; REGIONS_MAX]> {
        self.roots.clone()
    }

    /// Everything above pages of checksums is as it was written last.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let mut nodes = self.groups.iter().chain(&self.regions);
        !self.roots_dirty && nodes.all(|node| !node.dirty)
    }

    /// Bytes that it takes.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        (self.groups.len() + self.regions.len()) * PAGE + self.known.len() * 8
    }

    fn update_above(&mut self, place: PageId, generation: Generation) {
        match place.above() {
            (Some(above), entry) => {
                let node = self.node(above);
                node.dirty |= node.entries[entry] != generation.low();
                node.entries[entry] = generation.low();
            }
            (None, entry) => {
                self.roots_dirty |= self.roots[entry] != generation.low();
                self.roots[entry] = generation.low();
            }
        }
    }

    fn is_known(&self, index: u64) -> bool {
        let (word, bit) = known_at(index);
        self.known.get(word).is_some_and(|bits| bits & bit != 0)
    }

    fn inspect(&self, place: PageId) -> &Node {
        let index = usize::try_from(place.index).expect("64-bit machines only");
        match place.level {
            Level::Groups => &self.groups[index],
            Level::Regions => &self.regions[index],
            Level::Checksums => unreachable!("pages of checksums are not kept here"),
        }
    }

    fn node(&mut self, place: PageId) -> &mut Node {
        let index = usize::try_from(place.index).expect("64-bit machines only");
        match place.level {
            Level::Groups => &mut self.groups[index],
            Level::Regions => &mut self.regions[index],
            Level::Checksums => unreachable!("pages of checksums are not kept here"),
        }
    }
}

fn known_at(index: u64) -> (usize, u64) {
    let word = usize::try_from(index / 64).expect("64-bit machines only");
    (word, 1 << (index % 64))
}
