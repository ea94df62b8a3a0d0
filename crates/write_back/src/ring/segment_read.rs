//! Reads a segment of the log as it lies on the device.

use super::driver::Ring;
use journal::Segment;
use std::io;
use units::{Buf, BufMut};

/// Its bytes.
pub(crate) async fn read_segment(ring: &Ring, segment: &Segment) -> io::Result<Buf> {
    let mut data = Buf::empty();
    for (at, bytes) in segment.reads() {
        let offset = ring.device.log_at + at;
        let into = BufMut::zeroed(bytes);
        let op = env::FileOp::Read { offset, into };
        let env::FileDone::Read(read) = ring.device.file.submit(op).await? else {
            unreachable!("a read answers data")
        };
        data.append_owned(read.freeze());
    }
    Ok(data)
}
