//! The plainest volume there is: bytes in memory, every answer at once, nothing that can fail.

use env::{Answer, CoreHandle, LocalFuture};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::{BlockCount, BlockSize, Buf, LbaRange};
use volume::{
    Done, Extent, ExtentKind, ExtentList, Io, IoFuture, IoResult, Lane, Op, OpenError, Shape,
    Volume, VolumeEvent, VolumeEvents,
};

/// Bytes behind a lock.
pub struct Plain {
    shape: Shape,
    bytes: Mutex<Vec<u8>>,
}

impl Plain {
    /// A volume of zeroes of this size, all mapped, without a cache.
    ///
    /// # Panics
    /// If it does not fit into memory.
    pub fn make(block_size: BlockSize, block_count: BlockCount) -> Arc<dyn Volume> {
        let shape = Shape::of_memory(block_size, block_count);
        let len = usize::try_from(shape.byte_count().0).expect("a test's volume fits into memory");
        let bytes = Mutex::new(vec![0; len]);
        Arc::new(Self { shape, bytes })
    }

    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn first_byte(&self, range: LbaRange) -> usize {
        let first = usize::try_from(range.start().0).expect("the volume fits into memory");
        first * self.shape.block_size.bytes() as usize
    }

    fn put(&self, range: LbaRange, data: &Buf) -> IoResult {
        let at = self.first_byte(range);
        let mut bytes = self.bytes();
        data.copy_to(0, &mut bytes[at..at + data.len()]);
        Ok(Done::Nothing)
    }

    fn run(&self, op: Op) -> IoResult {
        match op {
            Op::Read { range, into } => {
                let at = self.first_byte(range);
                let bytes = self.bytes();
                let data = &bytes[at..at + self.shape.bytes_in(range)];
                let Some(mut into) = into else {
                    return Ok(Done::Data(Buf::copy_of(data)));
                };
                into.copy_at(0, data);
                Ok(Done::Data(into.freeze()))
            }
            Op::Write { range, data, .. } => self.put(range, &data),
            Op::WriteZeroes { range, .. } | Op::Discard { range, .. } => {
                self.put(range, &Buf::zeroes(self.shape.bytes_in(range)))
            }
            Op::CompareAndWrite { .. } => unreachable!("announced as absent"),
            Op::Extents { range, .. } => {
                let mut all = ExtentList::new();
                let kind = ExtentKind::Mapped;
                all.push(Extent { range, kind });
                Ok(Done::Extents(all))
            }
            Op::Flush => Ok(Done::Nothing),
        }
    }
}

struct PlainLane(Arc<Plain>);

impl Lane for PlainLane {
    fn submit(&self, io: Io) -> IoFuture {
        Answer::ready(self.0.run(io.into_parts().0))
    }
}

struct Never;

impl VolumeEvents for Never {
    fn next(&self) -> LocalFuture<VolumeEvent> {
        Box::pin(std::future::pending())
    }
}

impl Volume for Plain {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn open(self: Arc<Self>, _core: &CoreHandle) -> LocalFuture<Result<Rc<dyn Lane>, OpenError>> {
        Box::pin(async move { Ok(Rc::new(PlainLane(self)) as Rc<dyn Lane>) })
    }

    fn events(self: Arc<Self>, _core: &CoreHandle) -> Rc<dyn VolumeEvents> {
        Rc::new(Never)
    }
}
