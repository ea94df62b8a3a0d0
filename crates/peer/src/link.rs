//! What carries frames between two nodes: TCP, TLS over it, and RDMA one day.

use crate::connection::Connection;
use crate::receive::Want;
use crate::transmit::Transmit;
use std::io;
use std::task::Poll;
use units::BufMut;

/// Events that wait for the owner until nothing more is received.
const EVENTS_MAX: usize = 64;

/// One connection of a transport: reliable, in order, in both directions.
///
/// Nothing here waits. `Pending` is answered where nothing can be done now, and the link wakes its
/// driver when that has changed: how it does so is between the two, so that no task or executor is
/// seen here.
///
/// **By reference.** `send` gets the frames themselves. A link over a socket gives
/// [`Transmit::pieces`] to one vectored send. One that sends later takes clones of the `Buf`s of
/// [`Transmit::frames`] and drops them when the other side has the bytes. `receive` gets the place
/// where bytes stay: of data, a part of the slab that its owner gave.
pub trait Link {
    /// Takes a prefix of what waits, which is not empty; answers how many bytes.
    ///
    /// # Errors
    /// The link is over.
    fn send(&mut self, waiting: &Transmit) -> Poll<io::Result<usize>>;

    /// Receives into `into`, which is not empty; 0 bytes mean that the other side has closed.
    ///
    /// # Errors
    /// The link is over.
    fn receive(&mut self, into: &mut [u8]) -> Poll<io::Result<usize>>;
}

/// Sends and receives what is possible now. `memory` gives memory for data, or `None` while there
/// is none: then nothing is received until this is called again. Answers whether anything was sent
/// or received; poll events afterwards, and call it again as long as there were any.
///
/// # Errors
/// That of the link; `UnexpectedEof` where the other side has closed it.
pub fn exchange<L: Link>(
    connection: &mut Connection,
    link: &mut L,
    memory: &mut dyn FnMut(usize) -> Option<BufMut>,
) -> io::Result<bool> {
    let mut any = false;
    while !connection.transmit().is_empty() {
        match link.send(connection.transmit()) {
            Poll::Pending => break,
            Poll::Ready(bytes) => connection.sent(bytes?),
        }
        any = true;
    }
    while connection.events_waiting() < EVENTS_MAX {
        match connection.want() {
            Want::Nothing => break,
            Want::Memory { bytes } => match memory(bytes) {
                Some(memory) => connection.give_memory(memory),
                None => break,
            },
            Want::Head { .. } | Want::Data { .. } => match link.receive(connection.chunk()) {
                Poll::Pending => break,
                Poll::Ready(bytes) => match bytes? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    bytes => connection.filled(bytes),
                },
            },
        }
        any = true;
    }
    Ok(any)
}
