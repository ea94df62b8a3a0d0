//! Bytes over a stream, for tests.

use crate::NodeStream;
use env::{CoreHandle, in_time};
use std::future::poll_fn;
use std::io::{self, IoSlice, Read, Write};
use std::time::Duration;

/// Bytes that no two seeds have in common.
pub(super) fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Sends all of it.
pub(super) async fn say(stream: &mut NodeStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let taken = stream.tls.writer().write(bytes)?;
        bytes = &bytes[taken..];
        let mut out = Vec::new();
        while stream.tls.wants_write() {
            stream.tls.write_tls(&mut out)?;
        }
        let mut out = &out[..];
        while !out.is_empty() {
            let pieces = [IoSlice::new(out)];
            let sent = poll_fn(|cx| stream.wire.poll_send(cx, &pieces)).await?;
            out = &out[sent..];
        }
    }
    Ok(())
}

/// Receives so many bytes: no more were said.
pub(super) async fn hear(stream: &mut NodeStream, len: usize) -> io::Result<Vec<u8>> {
    let mut heard = Vec::new();
    drain(stream, &mut heard)?;
    while heard.len() < len {
        let mut came = [0; 3000];
        let received = poll_fn(|cx| stream.wire.poll_recv(cx, &mut came)).await?;
        if received == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut came = &came[..received];
        while !came.is_empty() {
            stream.tls.read_tls(&mut came)?;
            let said = stream.tls.process_new_packets();
            said.map_err(io::Error::other)?;
            drain(stream, &mut heard)?;
        }
    }
    assert_eq!(heard.len(), len, "more was heard than was said");
    Ok(heard)
}

fn drain(stream: &mut NodeStream, into: &mut Vec<u8>) -> io::Result<()> {
    match stream.tls.reader().read_to_end(into) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Whether the other side, or this one, has ended it within this time.
pub(super) async fn is_over(core: &CoreHandle, stream: &mut NodeStream, time: Duration) -> bool {
    let heard = in_time(core, time, hear(stream, 1)).await;
    match heard {
        None => false,
        Some(Ok(bytes)) => panic!("{bytes:?}"),
        Some(Err(_)) => true,
    }
}
