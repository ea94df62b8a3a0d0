//! Memory for blocks that may be read again.
//!
//! **Contract.** A read is answered from memory only with what a read of the volume below could
//! answer. It is filled by reads, and by what a journal destages ([`Copies`]); a write replaces
//! what is there, zeroes and discards take it out, when they go down, not when they are answered.
//! Large transfers pass it by; a scrub always reads the volume. It takes no more memory than it
//! may, with its index. What is seldom read again (a scan) leaves first.
//!
//! All cores share the pages ([`pages`], `docs/adr/0011-read-cache.md`). A lane keeps what was so
//! when it was opened: whoever changes the size opens new lanes, with nothing in flight.

mod frames;
pub mod pages;
mod shard;
#[cfg(test)]
mod test;

pub use frames::PAGE;
pub use pages::Tally;

use env::{Answer, CoreHandle};
use pages::{Change, Fill, Pages};
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};
use volume::{Class, Copies, Done, Io, IoError, IoFuture, IoResult, Lane, Op, Shape, Wrap};

/// Larger transfers are not kept, and not looked for.
const TRANSFER_BYTES_MAX: usize = 128 << 10;

/// A volume's read cache; clones are one.
#[derive(Clone)]
pub struct ReadCache(Arc<Inner>);

struct Inner {
    page_blocks: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    bytes: u64,
    pages: Option<Arc<Pages>>,
    /// The volume's size when lanes were opened last.
    blocks: Option<BlockCount>,
}

impl ReadCache {
    /// A cache of so many bytes (0: none) for a volume of such blocks.
    #[must_use]
    pub fn new(bytes: u64, block_size: BlockSize) -> Self {
        let page = u64::try_from(PAGE).expect("a small number");
        let state = State {
            bytes,
            ..State::default()
        };
        Self(Arc::new(Inner {
            page_blocks: page / u64::from(block_size.bytes()),
            state: Mutex::new(state),
        }))
    }

    /// What lanes that are opened from now on have. What was there is forgotten.
    pub fn set(&self, bytes: u64) {
        let mut state = self.lock();
        state.bytes = bytes;
        if let Some(pages) = state.pages.take() {
            pages.clear();
        }
    }

    /// The size that was set last.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Forgets everything.
    pub fn clear(&self) {
        if let Some(pages) = self.pages() {
            pages.clear();
        }
    }

    /// How often it had what was asked for.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.pages().map(|pages| pages.tally()).unwrap_or_default()
    }

    /// Whoever is about to find out what the newest contents of these blocks are asks first, and
    /// gives them to [`ReadCache::fill`]; what was changed in between is not taken. `None`: there
    /// is no cache, or no whole page.
    fn begin_fill(&self, range: LbaRange) -> Option<Fill> {
        let pages = self.whole_pages(range);
        if pages.is_empty() {
            return None;
        }
        Some(self.pages()?.begin_fill(pages))
    }

    /// The newest contents of the whole pages of the range of `fill`, as they were at some moment
    /// since it began. `data` is of the whole range.
    fn fill(&self, fill: Fill, range: LbaRange, data: &Buf) {
        let Some(pages) = self.pages() else { return };
        let whole = self.whole_pages(range);
        let skip = whole.start * self.0.page_blocks - range.start().0;
        let block = PAGE / usize::try_from(self.0.page_blocks).expect("at most 8");
        let skip = usize::try_from(skip).expect("less than a page") * block;
        let count = usize::try_from(whole.end - whole.start).expect("pages of a payload");
        pages.fill(fill, &data.slice(skip..skip + count * PAGE));
    }

    fn whole_pages(&self, range: LbaRange) -> Range<u64> {
        let each = self.0.page_blocks;
        range.start().0.div_ceil(each)..range.end().0 / each
    }

    fn pages(&self) -> Option<Arc<Pages>> {
        self.lock().pages.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pages for a lane on a volume of this size; none of another size.
    fn open(&self, cores: u16, shape: &Shape) -> Option<Arc<Pages>> {
        let mut state = self.lock();
        if state.bytes == 0 {
            return None;
        }
        let resized = state.blocks.replace(shape.block_count) != Some(shape.block_count);
        let bytes = state.bytes;
        let pages = state
            .pages
            .get_or_insert_with(|| Arc::new(Pages::new(bytes, cores)));
        if resized {
            // What was cut off must not come back when the volume grows again.
            pages.clear();
        }
        Some(Arc::clone(pages))
    }
}

impl Copies for ReadCache {
    fn offer(&self, range: LbaRange, data: &Buf, write_bytes: u64, is_newest: &dyn Fn() -> bool) {
        if write_bytes > TRANSFER_BYTES_MAX as u64 {
            return;
        }
        let Some(fill) = self.begin_fill(range) else {
            return;
        };
        if is_newest() {
            self.fill(fill, range, data);
        }
    }
}

impl Wrap for ReadCache {
    fn lane(&self, core: &CoreHandle, below: Rc<dyn Lane>, shape: Shape) -> Rc<dyn Lane> {
        let Some(pages) = self.open(core.core_count(), &shape) else {
            return below;
        };
        Rc::new(ReadCacheLane {
            core: Rc::clone(core),
            below,
            pages,
            shape,
            page_blocks: self.0.page_blocks,
        })
    }
}

struct ReadCacheLane {
    core: CoreHandle,
    below: Rc<dyn Lane>,
    pages: Arc<Pages>,
    shape: Shape,
    page_blocks: u64,
}

impl Lane for ReadCacheLane {
    fn submit(&self, io: Io) -> IoFuture {
        match io.op() {
            Op::Read { range, .. } => {
                let range = *range;
                let is_large = self.shape.bytes_in(range) > TRANSFER_BYTES_MAX;
                if is_large || io.origin().class == Class::Scrub {
                    return self.below.submit(io);
                }
                self.read(io, range)
            }
            Op::Write { range, data, .. } => {
                let (range, data) = (*range, data.clone());
                let keep = self.is_whole(range) && data.len() <= TRANSFER_BYTES_MAX;
                self.change(io, range, keep.then_some(data))
            }
            Op::WriteZeroes { range, .. }
            | Op::Discard { range, .. }
            | Op::CompareAndWrite { range, .. } => {
                let range = *range;
                self.change(io, range, None)
            }
            Op::Extents { .. } | Op::Flush => self.below.submit(io),
        }
    }
}

impl ReadCacheLane {
    /// The pages that the range touches.
    fn touched(&self, range: LbaRange) -> Range<u64> {
        let each = self.page_blocks;
        range.start().0 / each..range.end().0.div_ceil(each)
    }

    fn is_whole(&self, range: LbaRange) -> bool {
        let each = self.page_blocks;
        range.start().0.is_multiple_of(each) && range.end().0.is_multiple_of(each)
    }

    /// The blocks of these pages, where the volume has all of them.
    fn blocks(&self, pages: &Range<u64>) -> Option<LbaRange> {
        let start = pages.start * self.page_blocks;
        let len = (pages.end - pages.start) * self.page_blocks;
        let wide = LbaRange::new(Lba(start), BlockCount(len))?;
        let fits = len <= self.shape.limits.transfer_blocks_max.0;
        (fits && self.shape.whole().contains(wide)).then_some(wide)
    }

    fn read(&self, io: Io, range: LbaRange) -> IoFuture {
        let pages = self.touched(range);
        let skip = range.start().0 - pages.start * self.page_blocks;
        let block = usize::try_from(self.shape.block_size.bytes()).expect("4096 at most");
        let skip = usize::try_from(skip).expect("less than a page") * block;
        let part = skip..skip + self.shape.bytes_in(range);
        if let Some(all) = self.pages.get(pages.clone()) {
            self.pages.count(self.core.id().0, true);
            let (op, _) = io.into_parts();
            return Answer::ready(Ok(Done::Data(give(op, all, part))));
        }
        self.pages.count(self.core.id().0, false);
        if self.is_whole(range) {
            let (fill, answer) = (self.pages.begin_fill(pages), self.below.submit(io));
            return self.then_fill(answer, fill);
        }
        match self.blocks(&pages) {
            Some(wide) => self.read_wide(io, pages, wide, part),
            None => self.below.submit(io),
        }
    }

    /// Puts in what `answer` reads.
    fn then_fill(&self, answer: IoFuture, fill: Fill) -> IoFuture {
        let finish = |pages: &Pages, result: IoResult| {
            if let Ok(Done::Data(data)) = &result {
                pages.fill(fill, data);
            }
            result
        };
        match answer.now() {
            Ok(result) => Answer::ready(finish(&self.pages, result)),
            Err(answer) => {
                let pages = Arc::clone(&self.pages);
                Answer::wait(async move { finish(&pages, answer.await) })
            }
        }
    }

    /// Reads whole pages where a part of them is asked for. Where a neighbour cannot be read, only
    /// what was asked for counts.
    fn read_wide(&self, io: Io, pages: Range<u64>, wide: LbaRange, part: Range<usize>) -> IoFuture {
        let fill = self.pages.begin_fill(pages);
        let whole = Op::Read {
            range: wide,
            into: None,
        };
        let answer = self.below.submit(Io::new(whole, io.origin()));
        let (kept, below) = (Arc::clone(&self.pages), Rc::clone(&self.below));
        Answer::wait(async move {
            match answer.await {
                Ok(Done::Data(all)) => {
                    kept.fill(fill, &all);
                    let (op, _) = io.into_parts();
                    Ok(Done::Data(give(op, all, part)))
                }
                Ok(Done::Nothing | Done::Logged | Done::Extents(_)) => {
                    unreachable!("a read answers data, as `Checked` asserts")
                }
                Err(IoError::MediumError { .. } | IoError::Integrity { .. }) => {
                    below.submit(io).await
                }
                Err(error) => Err(error),
            }
        })
    }

    /// Hands a change down; `data` is what its pages hold then.
    fn change(&self, io: Io, range: LbaRange, data: Option<Buf>) -> IoFuture {
        let change = self.pages.begin_change(self.touched(range));
        match self.below.submit(io).now() {
            Ok(result) => {
                let data = data.filter(|_| result.is_ok());
                self.pages.end_change(change, data.as_ref());
                Answer::ready(result)
            }
            Err(answer) => Answer::wait(Changing {
                core: Rc::clone(&self.core),
                pages: Arc::clone(&self.pages),
                state: Some((answer, change, data)),
            }),
        }
    }
}

/// What was asked for, of all that is there, in the memory that was meant for it.
fn give(mut op: Op, all: Buf, part: Range<usize>) -> Buf {
    let into = op.take_into();
    let asked = if part.len() == all.len() {
        all
    } else {
        all.slice(part)
    };
    let Some(mut into) = into else {
        return asked;
    };
    into.copy_all(&asked);
    into.freeze()
}

type Waiting = Pin<Box<dyn Future<Output = IoResult>>>;

/// A change that is under way below. It is over when it is over there, even if nobody waits for the
/// answer.
struct Changing {
    core: CoreHandle,
    pages: Arc<Pages>,
    state: Option<(Waiting, Change, Option<Buf>)>,
}

impl Future for Changing {
    type Output = IoResult;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<IoResult> {
        let this = self.get_mut();
        let (answer, ..) = this.state.as_mut().expect("polled until it is ready");
        let Poll::Ready(result) = answer.as_mut().poll(cx) else {
            return Poll::Pending;
        };
        let (_, change, data) = this.state.take().expect("there just now");
        let data = data.filter(|_| result.is_ok());
        this.pages.end_change(change, data.as_ref());
        Poll::Ready(result)
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        let Some((answer, change, _)) = self.state.take() else {
            return;
        };
        let pages = Arc::clone(&self.pages);
        self.core.spawn(Box::pin(async move {
            drop(answer.await);
            pages.end_change(change, None);
        }));
    }
}
