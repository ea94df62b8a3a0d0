//! Reads, from wherever the newest data is.

use super::driver::Ring;
use super::grace::Reader;
use super::log_read::LogRead;
use super::machine::ReadFrom;
use crate::addresses::blocks;
use env::Answer;
use journal::{Piece, Slot, Source};
use std::rc::Rc;
use units::{Buf, BufMut, LbaRange};
use volume::{Done, Io, IoError, IoFuture, IoResult, Lane, Op, Origin};

/// A piece that is on its way.
enum Coming {
    Here(Buf),
    FromBacking(IoFuture),
    FromLog(env::FileFuture, LogRead),
}

impl Ring {
    pub(super) fn read(
        self: &Rc<Self>,
        slot: Slot,
        range: LbaRange,
        into: Option<BufMut>,
        origin: Origin,
    ) -> IoFuture {
        let places = self.machine().read(slot, range);
        match places {
            Ok(ReadFrom::Backing) => self.read_backing(slot, range, into, origin),
            Ok(ReadFrom::Pieces(pieces)) => self.read_pieces(slot, &pieces, into, origin),
            Err(not_now) => self.not_now(not_now, slot, Op::Read { range, into }, origin),
        }
    }

    fn read_backing(
        &self,
        slot: Slot,
        range: LbaRange,
        into: Option<BufMut>,
        origin: Origin,
    ) -> IoFuture {
        let (lane, reader) = self.backing_read(slot);
        let answer = lane.submit(Io::new(Op::Read { range, into }, origin));
        match answer.now() {
            Ok(result) => Answer::ready(result),
            Err(answer) => Answer::wait(async move {
                let result = answer.await;
                drop(reader);
                result
            }),
        }
    }

    fn read_pieces(
        self: &Rc<Self>,
        slot: Slot,
        pieces: &[Piece],
        into: Option<BufMut>,
        origin: Origin,
    ) -> IoFuture {
        // All are asked for in this poll: what is in the backing volume now is at least as new as
        // what the index says.
        let coming: Result<Vec<Coming>, IoError> = pieces
            .iter()
            .map(|piece| self.ask_for(slot, piece, origin))
            .collect();
        let readers = (
            self.log_reads.enter(),
            self.backings().of(slot).reads.enter(),
        );
        let coming = match coming {
            Ok(coming) => coming,
            Err(error) => return Answer::ready(Err(error)),
        };
        let ring = Rc::clone(self);
        Answer::wait(async move {
            let mut data = Buf::empty();
            for piece in coming {
                data.append_owned(piece.bytes(&ring).await?);
            }
            drop(readers);
            Ok(Done::Data(match into {
                None => data,
                Some(mut into) => {
                    into.copy_all(&data);
                    into.freeze()
                }
            }))
        })
    }

    /// A lane of the backing volume, and who reads there.
    fn backing_read(&self, slot: Slot) -> (Rc<dyn Lane>, Reader) {
        let backings = self.backings();
        let lane = Rc::clone(&backings.opened(slot).lane);
        (lane, backings.of(slot).reads.enter())
    }

    fn ask_for(&self, slot: Slot, piece: &Piece, origin: Origin) -> Result<Coming, IoError> {
        let backing = self.backing_of(slot);
        let range = blocks(&piece.sectors, backing.shape.block_size);
        match piece.source {
            Source::Backing => {
                let op = Op::Read { range, into: None };
                Ok(Coming::FromBacking(
                    backing.lane.submit(Io::new(op, origin)),
                ))
            }
            Source::Zeroes(_) => Ok(Coming::Here(Buf::zeroes(backing.shape.bytes_in(range)))),
            Source::Lost => Err(IoError::Integrity { lba: range.start() }),
            Source::Log(at) => {
                let bytes = backing.shape.bytes_in(range);
                let read = LogRead::new(self, at, bytes, (range.start(), backing.shape.block_size));
                Ok(Coming::FromLog(read.begin(self)?, read))
            }
        }
    }
}

impl Coming {
    async fn bytes(self, ring: &Rc<Ring>) -> Result<Buf, IoError> {
        match self {
            Self::Here(data) => Ok(data),
            Self::FromBacking(answer) => data_of(answer.await),
            Self::FromLog(answer, read) => read.end(ring, answer).await,
        }
    }
}

/// The data of a read that has ended.
fn data_of(result: IoResult) -> Result<Buf, IoError> {
    let Done::Data(data) = result? else {
        unreachable!("a read answers data")
    };
    Ok(data)
}
