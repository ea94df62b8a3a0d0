//! One connection as a pure machine: bytes in, requests and answers out.

use crate::export::Export;
use crate::handshake::{Handshake, HandshakeProgress, greeting};
use crate::wire::{
    Command, REQUEST_BYTES, REQUEST_MAGIC, RawRequest, Reply, Request, TRANSFER_MAX, Violation,
    errno, flag, reply,
};

/// What became of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// There are not enough of them.
    More,
    /// So many were used; an answer may have been written.
    Took(usize),
    /// So many were used, and this is to be done. With [`Command::Write`] its `length` bytes of
    /// data follow.
    Request(usize, Request),
    /// So many were used, and the next so many bytes are data of a write that was refused.
    Skip(usize, u32),
    /// So many were used; the client wants no more, and what it has asked for is finished first.
    Left(usize),
}

#[derive(Clone, Debug)]
enum Phase {
    Handshake(Handshake),
    Transmission { structured: bool, allocation: bool },
}

/// One connection.
#[derive(Clone, Debug)]
pub struct Machine {
    export: Export,
    phase: Phase,
}

impl Machine {
    /// A connection that has just been accepted, and what it says first.
    #[must_use]
    pub fn new(export: Export, out: &mut Vec<u8>) -> Self {
        greeting(out);
        Self {
            export,
            phase: Phase::Handshake(Handshake::new()),
        }
    }

    /// Takes the next thing off the front of `input`; answers that need no volume are written to
    /// `out`.
    ///
    /// # Errors
    /// Where the connection has to end.
    pub fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, Violation> {
        match &mut self.phase {
            Phase::Handshake(handshake) => match handshake.step(&self.export, input, out)? {
                HandshakeProgress::More => Ok(Step::More),
                HandshakeProgress::Took(used) => Ok(Step::Took(used)),
                HandshakeProgress::Left(used) => Ok(Step::Left(used)),
                HandshakeProgress::Over(used) => {
                    self.phase = Phase::Transmission {
                        structured: handshake.structured,
                        allocation: handshake.allocation,
                    };
                    Ok(Step::Took(used))
                }
            },
            Phase::Transmission {
                structured,
                allocation,
            } => {
                let (structured, allocation) = (*structured, *allocation);
                let Some(raw) = RawRequest::read(input) else {
                    return Ok(Step::More);
                };
                if raw.magic != REQUEST_MAGIC {
                    return Err(Violation("a request does not begin with its magic"));
                }
                self.request(&raw, structured, allocation, out)
            }
        }
    }

    fn request(
        &self,
        raw: &RawRequest,
        structured: bool,
        allocation: bool,
        out: &mut Vec<u8>,
    ) -> Result<Step, Violation> {
        let command = match raw.kind {
            0 => Command::Read,
            1 => Command::Write,
            2 => return Ok(Step::Left(REQUEST_BYTES)),
            3 => Command::Flush,
            4 => Command::Trim,
            6 => Command::WriteZeroes,
            7 => Command::BlockStatus,
            // NBD_CMD_CACHE, NBD_CMD_RESIZE and what is to come: not announced.
            _ => {
                reply(out, structured, raw.cookie, &Reply::Error(errno::EINVAL));
                return Ok(Step::Took(REQUEST_BYTES));
            }
        };
        if command == Command::Write && raw.length > TRANSFER_MAX {
            return Err(Violation("a write is longer than was announced"));
        }
        let request = Request {
            command,
            flags: raw.flags,
            cookie: raw.cookie,
            offset: raw.offset,
            length: raw.length,
        };
        match self.refusal(&request, allocation) {
            None => Ok(Step::Request(REQUEST_BYTES, request)),
            Some(error) => {
                reply(out, structured, raw.cookie, &Reply::Error(error));
                Ok(match command {
                    Command::Write => Step::Skip(REQUEST_BYTES, raw.length),
                    Command::Read
                    | Command::Flush
                    | Command::Trim
                    | Command::WriteZeroes
                    | Command::BlockStatus => Step::Took(REQUEST_BYTES),
                })
            }
        }
    }

    /// Why a request cannot be done at all.
    fn refusal(&self, request: &Request, allocation: bool) -> Option<u32> {
        let mutates = matches!(
            request.command,
            Command::Write | Command::Trim | Command::WriteZeroes
        );
        let flags_known = match request.command {
            Command::Read => flag::DF | flag::FUA,
            Command::Write | Command::Trim | Command::Flush => flag::FUA,
            Command::WriteZeroes => flag::FUA | flag::NO_HOLE | flag::FAST_ZERO,
            Command::BlockStatus => flag::REQ_ONE | flag::FUA,
        };
        if request.flags & !flags_known != 0 {
            return Some(errno::EINVAL);
        }
        if request.command == Command::Flush {
            let clean = request.offset == 0 && request.length == 0;
            return (!clean).then_some(errno::EINVAL);
        }
        if mutates && self.export.read_only {
            return Some(errno::EPERM);
        }
        if request.command == Command::BlockStatus && !allocation {
            return Some(errno::EINVAL);
        }
        let end = request.offset.checked_add(request.length.into());
        if end.is_none_or(|end| end > self.export.size()) {
            let writes = matches!(request.command, Command::Write | Command::WriteZeroes);
            return Some(if writes { errno::ENOSPC } else { errno::EINVAL });
        }
        let block = self.export.shape.block_size.bytes();
        let whole =
            request.offset.is_multiple_of(block.into()) && request.length.is_multiple_of(block);
        if !whole || request.length == 0 {
            return Some(errno::EINVAL);
        }
        if request.command == Command::Read && request.length > TRANSFER_MAX {
            return Some(errno::EOVERFLOW);
        }
        None
    }

    /// Writes the head of the answer to a request.
    pub(crate) fn answer(&self, cookie: u64, what: &Reply, out: &mut Vec<u8>) {
        let structured = match &self.phase {
            Phase::Handshake(_) => false,
            Phase::Transmission { structured, .. } => *structured,
        };
        reply(out, structured, cookie, what);
    }
}
