//! The plainest volume there is, for the tests of layers.

use env::{Answer, CoreHandle, LocalFuture};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use units::{BlockCount, BlockSize, Buf, LbaRange};
use volume::{
    Done, Extent, ExtentKind, ExtentList, Io, IoFuture, IoResult, Lane, Op, OpenError, Shape,
    Volume, VolumeEvent, VolumeEvents,
};

/// Bytes behind a lock.
pub(crate) struct Plain {
    shape: Shape,
    bytes: Mutex<Vec<u8>>,
}

impl Plain {
    pub(crate) fn make(block_size: BlockSize, block_count: BlockCount) -> Arc<dyn Volume> {
        let shape = Shape::of_memory(block_size, block_count);
        let len = usize::try_from(shape.byte_count().0).unwrap();
        let bytes = Mutex::new(vec![0; len]);
        Arc::new(Self { shape, bytes })
    }

    fn put(&self, range: LbaRange, data: &Buf) -> IoResult {
        let first = usize::try_from(range.start().0).unwrap();
        let at = first * self.shape.block_size.bytes() as usize;
        let mut bytes = self.bytes.lock().unwrap();
        data.copy_to(0, &mut bytes[at..at + data.len()]);
        Ok(Done::Nothing)
    }

    fn run(&self, op: Op) -> IoResult {
        match op {
            Op::Read { range, into } => {
                let first = usize::try_from(range.start().0).unwrap();
                let at = first * self.shape.block_size.bytes() as usize;
                let bytes = self.bytes.lock().unwrap();
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
