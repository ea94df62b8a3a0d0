//! One core's handle on an image.

use super::drive::{parts, write_all, zero};
use super::grace::Ride;
use super::{ImageVolume, On};
use crate::disk::io_error;
use crate::memory::push_extent;
use env::file::is_no_space;
use env::{Answer, CoreHandle, Durable, File, FileDone, FileOp, detach};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use units::{Buf, BufMut, Lba, LbaRange};
use vhdx::{Extent, Piece, Source};
use volume::{
    Done, Durability, ExtentKind, ExtentList, Fence, Io, IoError, IoFuture, IoResult, Lane, Op,
    Provision, Shape, Zeroing,
};

/// Bytes that are zeroed at once where their space stays.
const ZERO_CHUNK_BYTES: u64 = 1 << 20;
/// Blocks of an image whose allocation is reported at once.
const EXTENT_BLOCKS: u64 = 1024;

#[derive(Clone)]
pub(super) struct ImageLane {
    pub(super) files: Rc<[Rc<dyn File>]>,
    pub(super) core: CoreHandle,
    pub(super) volume: Arc<ImageVolume>,
    pub(super) shape: Shape,
}

fn small(bytes: u64) -> usize {
    usize::try_from(bytes).expect("64-bit machines only")
}

impl ImageLane {
    fn on(&self, range: LbaRange, fence: Fence) -> On<'_> {
        On {
            core: &self.core,
            files: &self.files,
            fence,
            lba: range.start(),
        }
    }

    fn bytes(&self, range: LbaRange) -> (u64, u64) {
        let block = u64::from(self.shape.block_size.bytes());
        (range.start().0 * block, range.len().0 * block)
    }

    /// What an error of the file comes to, once it is known whether the image is still there.
    async fn failed(&self, error: &io::Error, range: LbaRange) -> IoError {
        if is_no_space(error) {
            return IoError::SpaceExhausted;
        }
        self.volume.inspect(&self.core).await;
        if self.volume.is_lost() {
            return IoError::Unavailable;
        }
        io_error(error, range)
    }

    fn read(&self, range: LbaRange, into: Option<BufMut>) -> IoFuture {
        if self.volume.is_lost() {
            return Answer::ready(Err(IoError::Unavailable));
        }
        let (at, bytes) = self.bytes(range);
        let rider = self.volume.grace.ride();
        if let Ok(Some(pieces)) = self.volume.chain.lookup(at, bytes)
            && let [
                Piece {
                    from: Source::File { file, place },
                    ..
                },
            ] = pieces[..]
        {
            let into = into.map_or_else(|| self.core.pool().alloc(small(bytes)), Ok);
            let Ok(into) = into else {
                return Answer::ready(Err(IoError::Busy));
            };
            let offset = place;
            let answer = self.files[file].submit(FileOp::Read { offset, into });
            let (ride, lane) = (Ride::new(&self.core, rider, answer), self.clone());
            return Answer::wait(async move {
                match ride.await {
                    Ok(FileDone::Read(data)) => Ok(Done::Data(data.freeze())),
                    Ok(other) => unreachable!("{other:?} is no data"),
                    Err(error) => Err(lane.failed(&error, range).await),
                }
            });
        }
        let lane = self.clone();
        detach(&self.core, async move {
            let gathered = lane.gather(range, into).await;
            drop(rider);
            gathered
        })
    }

    /// Where a range is, with pages of tables that are read for it.
    async fn pieces(&self, range: LbaRange) -> Result<Vec<Piece>, IoError> {
        let (at, bytes) = self.bytes(range);
        let on = self.on(range, Fence::default());
        let found = self
            .volume
            .drive(on, None, self.volume.chain.read(at, bytes));
        match found.await {
            Ok(pieces) => Ok(pieces),
            // Nothing was to be written: the image is asked whether it is there at all.
            Err(failure) => match &failure.io {
                Some(error) => Err(self.failed(error, range).await),
                None => Err(self.volume.failed(&failure, range.start())),
            },
        }
    }

    async fn gather(&self, range: LbaRange, into: Option<BufMut>) -> IoResult {
        let pieces = self.pieces(range).await?;
        let mut all = Buf::empty();
        for piece in pieces {
            let len = small(piece.bytes);
            let data = match piece.from {
                Source::Zero => Buf::zeroes(len),
                Source::File { file, place } => {
                    let into = self.core.pool().alloc(len);
                    let into = into.map_err(|units::Exhausted| IoError::Busy)?;
                    let op = FileOp::Read {
                        offset: place,
                        into,
                    };
                    match self.files[file].submit(op).await {
                        Ok(FileDone::Read(data)) => data.freeze(),
                        Ok(other) => unreachable!("{other:?} is no data"),
                        Err(error) => return Err(self.failed(&error, range).await),
                    }
                }
            };
            all.append_owned(data);
        }
        Ok(Done::Data(match into {
            Some(mut into) => {
                into.copy_all(&all);
                into.freeze()
            }
            None => all,
        }))
    }

    fn write(&self, range: LbaRange, data: Buf, durability: Durability, fence: Fence) -> IoFuture {
        if let Err(error) = self.volume.may_write(fence) {
            return Answer::ready(Err(error));
        }
        self.volume.inspect_sometimes(&self.core);
        let (at, bytes) = self.bytes(range);
        let rider = self.volume.grace.ride();
        let extents = match self.volume.image().lookup_write(at, bytes) {
            Ok(Some(extents)) => extents,
            Ok(None) | Err(_) => {
                let lane = self.clone();
                return detach(&self.core, async move {
                    let on = lane.on(range, fence);
                    let write = lane
                        .volume
                        .change(on, Some(&data), |it| it.write(at, bytes));
                    write.await?;
                    lane.after(durability, range).await
                });
            }
        };
        let is_stable = durability == Durability::Stable;
        // Tables that say where it goes are stable, and the write need be no more than that.
        let by_itself =
            is_stable && self.volume.is_direct() && !self.volume.changed.load(Ordering::SeqCst);
        let lane = self.clone();
        if let [Extent { place, .. }] = extents[..]
            && (by_itself || !is_stable)
        {
            let answer = self.files[0].submit(FileOp::Write {
                offset: place,
                data,
                durable: if by_itself { Durable::Yes } else { Durable::No },
            });
            let ride = Ride::new(&self.core, rider, answer);
            return Answer::wait(async move {
                match ride.await {
                    Ok(_) if lane.volume.is_lost() && !by_itself => Err(IoError::Unavailable),
                    Ok(_) => Ok(Done::Nothing),
                    Err(error) => Err(lane.failed(&error, range).await),
                }
            });
        }
        detach(&self.core, async move {
            lane.volume.may_write(fence)?;
            let written = write_all(&lane.files[0], parts(&data, &extents)).await;
            drop(rider);
            match written {
                Ok(()) => lane.after(durability, range).await,
                Err(error) => Err(lane.failed(&error, range).await),
            }
        })
    }

    /// Makes stable what was just done, where that is asked.
    async fn after(&self, durability: Durability, range: LbaRange) -> IoResult {
        match durability {
            Durability::Cached if self.volume.is_lost() => Err(IoError::Unavailable),
            Durability::Cached => Ok(Done::Nothing),
            Durability::Stable => {
                let flushed = self.volume.flush(self.on(range, Fence::default()));
                flushed.await.map(|()| Done::Nothing)
            }
        }
    }

    async fn write_zeroes(
        self,
        range: LbaRange,
        zeroing: Zeroing,
        durability: Durability,
        fence: Fence,
    ) -> IoResult {
        let ((at, bytes), on) = (self.bytes(range), self.on(range, fence));
        if zeroing == Zeroing::MayUnmap {
            let zeroes = self
                .volume
                .change(on, None, |it| it.write_zeroes(at, bytes));
            zeroes.await?;
            return self.after(durability, range).await;
        }
        for from in (at..at + bytes).step_by(small(ZERO_CHUNK_BYTES)) {
            let len = ZERO_CHUNK_BYTES.min(at + bytes - from);
            self.volume.may_write(fence)?;
            let rider = self.volume.grace.ride();
            if let Ok(Some(extents)) = self.volume.image().lookup_write(from, len) {
                self.zero_places(range, &extents).await?;
                continue;
            }
            drop(rider);
            let zeroes = Buf::zeroes(small(len));
            let write = self
                .volume
                .change(on, Some(&zeroes), |it| it.write(from, len));
            write.await?;
        }
        self.after(durability, range).await
    }

    async fn zero_places(&self, range: LbaRange, extents: &[Extent]) -> Result<(), IoError> {
        for extent in extents {
            if let Err(error) = zero(&self.files[0], extent.place, extent.bytes).await {
                return Err(self.failed(&error, range).await);
            }
        }
        Ok(())
    }

    async fn discard(self, range: LbaRange, durability: Durability, fence: Fence) -> IoResult {
        let ((at, bytes), on) = (self.bytes(range), self.on(range, fence));
        self.volume
            .change(on, None, |it| it.unmap(at, bytes))
            .await?;
        self.after(durability, range).await
    }

    async fn extents(self, range: LbaRange) -> IoResult {
        let block = u64::from(self.shape.block_size.bytes());
        let most = self.shape.limits.discard_granularity.0 * EXTENT_BLOCKS;
        let end = Lba(range.end().0.min(range.start().0.saturating_add(most)));
        let first = LbaRange::between(range.start(), end).expect("the end is behind the start");
        let rider = self.volume.grace.ride();
        let pieces = self.pieces(first).await?;
        drop(rider);
        let (mut list, mut at) = (ExtentList::new(), first.start());
        for piece in pieces {
            let end = Lba(at.0 + piece.bytes / block);
            let kind = match piece.from {
                Source::Zero => ExtentKind::Deallocated,
                Source::File { .. } => ExtentKind::Mapped,
            };
            if !push_extent(&mut list, at, end, kind) {
                break;
            }
            at = end;
        }
        Ok(Done::Extents(list))
    }
}

impl Lane for ImageLane {
    fn submit(&self, io: Io) -> IoFuture {
        let (op, origin) = io.into_parts();
        let fence = origin.fence;
        if let Some(range) = op.range()
            && range.end().0 > self.volume.block_count.load(Ordering::Acquire)
        {
            // The volume has shrunk under this lane.
            return Answer::ready(Err(IoError::Unavailable));
        }
        match op {
            Op::Read { range, into } => self.read(range, into),
            Op::Write {
                range,
                data,
                durability,
            } => self.write(range, data, durability, fence),
            Op::WriteZeroes {
                range,
                zeroing,
                durability,
            } => {
                let work = self.clone().write_zeroes(range, zeroing, durability, fence);
                detach(&self.core, work)
            }
            Op::Discard {
                range,
                to,
                durability,
            } => {
                assert!(to != Provision::Anchored, "announced as absent");
                detach(&self.core, self.clone().discard(range, durability, fence))
            }
            Op::CompareAndWrite { .. } => unreachable!("announced as absent"),
            Op::Extents { range, .. } => detach(&self.core, self.clone().extents(range)),
            Op::Flush => {
                let lane = self.clone();
                detach(&self.core, async move {
                    let whole = lane.shape.whole();
                    let flushed = lane.volume.flush(lane.on(whole, Fence::default()));
                    flushed.await.map(|()| Done::Nothing)
                })
            }
        }
    }
}
