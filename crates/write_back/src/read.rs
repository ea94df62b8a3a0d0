//! Reads, from wherever the newest data is.

use crate::log_read::LogRead;
use crate::parts::{blocks, sectors};
use crate::shard::Shard;
use env::Answer;
use journal::{Piece, Slot, Source};
use std::rc::Rc;
use units::{Buf, BufMut, LbaRange};
use volume::{Done, Io, IoError, IoFuture, IoResult, Op, Origin};

/// A piece that is on its way.
enum Coming {
    Here(Buf),
    FromHome(IoFuture),
    FromLog(env::FileFuture, LogRead),
}

impl Shard {
    pub(crate) fn read(
        self: &Rc<Self>,
        slot: Slot,
        range: LbaRange,
        into: Option<BufMut>,
        origin: Origin,
    ) -> IoFuture {
        let home = self.home_of(slot);
        let sectors = sectors(range, home.shape.block_size);
        let pieces = {
            let state = self.state.borrow();
            if state.index.is_clear(slot, sectors.clone()) {
                let reader = state.home(slot).reads.enter();
                drop(state);
                let answer = home.lane.submit(Io::new(Op::Read { range, into }, origin));
                return match answer.now() {
                    Ok(result) => Answer::ready(result),
                    Err(answer) => Answer::wait(async move {
                        let result = answer.await;
                        drop(reader);
                        result
                    }),
                };
            }
            state.index.find(slot, sectors)
        };
        // All are asked for in this poll: what is at home now is at least as new as what the index
        // says.
        let coming: Result<Vec<Coming>, IoError> = pieces
            .iter()
            .map(|piece| self.ask(slot, piece, origin))
            .collect();
        let readers = (
            self.grace.enter(),
            self.state.borrow().home(slot).reads.enter(),
        );
        let coming = match coming {
            Ok(coming) => coming,
            Err(error) => return Answer::ready(Err(error)),
        };
        let shard = Rc::clone(self);
        Answer::wait(async move {
            let mut data = Buf::empty();
            for piece in coming {
                data.append_owned(piece.bytes(&shard).await?);
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

    fn ask(&self, slot: Slot, piece: &Piece, origin: Origin) -> Result<Coming, IoError> {
        let home = self.home_of(slot);
        let range = blocks(&piece.sectors, home.shape.block_size);
        match piece.source {
            Source::Backing => {
                let op = Op::Read { range, into: None };
                Ok(Coming::FromHome(home.lane.submit(Io::new(op, origin))))
            }
            Source::Zeroes(_) => Ok(Coming::Here(Buf::zeroes(home.shape.bytes_in(range)))),
            Source::Lost => Err(IoError::Integrity { lba: range.start() }),
            Source::Log(at) => {
                let bytes = home.shape.bytes_in(range);
                let read = LogRead::new(self, at, bytes, (range.start(), home.shape.block_size));
                Ok(Coming::FromLog(read.begin(self)?, read))
            }
        }
    }
}

impl Coming {
    async fn bytes(self, shard: &Shard) -> Result<Buf, IoError> {
        match self {
            Self::Here(data) => Ok(data),
            Self::FromHome(answer) => data_of(answer.await),
            Self::FromLog(answer, read) => read.end(shard, answer).await,
        }
    }
}

/// The data of a read that has ended.
pub(crate) fn data_of(result: IoResult) -> Result<Buf, IoError> {
    let Done::Data(data) = result? else {
        unreachable!("a read answers data")
    };
    Ok(data)
}
