//! What two nodes say to each other before there is a stream between them: a length of four bytes,
//! little-endian, then JSON.

use crate::refusal::{Refusal, RefusalKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Sends it.
///
/// # Errors
/// What the connection says.
pub async fn send(to: &mut (impl AsyncWrite + Unpin), what: &impl Serialize) -> io::Result<()> {
    let body = serde_json::to_vec(what)?;
    let length = u32::try_from(body.len()).map_err(io::Error::other)?;
    to.write_all(&length.to_le_bytes()).await?;
    to.write_all(&body).await?;
    to.flush().await
}

/// Why nothing that is understood was received.
#[derive(Debug)]
pub enum Broken {
    /// The connection ended.
    Ended(io::Error),
    /// What came is none of this protocol.
    Garbled(Refusal),
}

/// Receives one of at most so many bytes. Memory is taken as it comes, not as it is announced.
///
/// # Errors
/// The connection ended, or what came is longer or something else.
pub async fn receive<T: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
    bytes_max: u32,
) -> Result<T, Broken> {
    let mut length = [0; 4];
    from.read_exact(&mut length).await.map_err(Broken::Ended)?;
    let length = u32::from_le_bytes(length);
    if length > bytes_max {
        return Err(garbled(&format!(
            "{length} bytes, at most {bytes_max} are taken"
        )));
    }
    let mut body = Vec::new();
    let mut part = from.take(length.into());
    part.read_to_end(&mut body).await.map_err(Broken::Ended)?;
    if body.len() < length as usize {
        return Err(Broken::Ended(io::ErrorKind::UnexpectedEof.into()));
    }
    serde_json::from_slice(&body).map_err(|error| garbled(&error.to_string()))
}

fn garbled(why: &str) -> Broken {
    Broken::Garbled(Refusal::new(
        RefusalKind::Garbled,
        format!("what the other node says is not understood: {why}"),
        "install the same version of Causeway on both nodes",
    ))
}

#[cfg(test)]
mod test {
    use super::*;
    use std::task::{Context, Poll, Waker};

    /// What is received of these bytes, then an end.
    fn received(mut bytes: &[u8]) -> Result<Vec<u32>, Broken> {
        let mut work = std::pin::pin!(receive(&mut bytes, 100));
        match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done,
            Poll::Pending => panic!("bytes are always there"),
        }
    }

    #[test]
    fn a_frame_comes_whole_and_nothing_else_is_one() {
        let whole = b"\x05\0\0\0[1,2]";
        assert_eq!(received(whole).unwrap(), [1, 2]);
        for end in 0..whole.len() {
            let ended = received(&whole[..end]);
            assert!(matches!(ended, Err(Broken::Ended(_))), "{end}");
        }
        for bad in [
            &b"\x65\0\0\0"[..],
            b"\xff\xff\xff\xff",
            b"\x02\0\0\0{}",
            b"\x01\0\0\0\xff",
        ] {
            let said = received(bad);
            assert!(matches!(said, Err(Broken::Garbled(_))), "{bad:?}");
        }
    }
}
