//! The numbers of the protocol, requests, and the heads of replies.

/// First eight bytes of the server.
pub(crate) const INIT_MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Then, and before each option.
pub(crate) const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
pub(crate) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub(crate) const REQUEST_MAGIC: u32 = 0x2560_9513;
const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Bytes of a request's head.
pub(crate) const REQUEST_BYTES: usize = 28;

/// The largest request with data that is taken, as most clients assume it.
pub const TRANSFER_MAX: u32 = 32 << 20;

/// Errors that a reply may carry ("Error values").
pub(crate) mod errno {
    pub(crate) const EPERM: u32 = 1;
    pub(crate) const EIO: u32 = 5;
    pub(crate) const EINVAL: u32 = 22;
    pub(crate) const ENOSPC: u32 = 28;
    pub(crate) const EOVERFLOW: u32 = 75;
    pub(crate) const ENOTSUP: u32 = 95;
}

/// Flags of requests ("Command flags").
pub(crate) mod flag {
    pub(crate) const FUA: u16 = 1 << 0;
    pub(crate) const NO_HOLE: u16 = 1 << 1;
    pub(crate) const DF: u16 = 1 << 2;
    pub(crate) const REQ_ONE: u16 = 1 << 3;
    pub(crate) const FAST_ZERO: u16 = 1 << 4;
}

/// What is asked ("Request types").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// NBD_CMD_READ
    Read,
    /// NBD_CMD_WRITE
    Write,
    /// NBD_CMD_FLUSH
    Flush,
    /// NBD_CMD_TRIM
    Trim,
    /// NBD_CMD_WRITE_ZEROES
    WriteZeroes,
    /// NBD_CMD_BLOCK_STATUS
    BlockStatus,
}

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The operation that the client asks for.
    pub command: Command,
    /// NBD_CMD_FLAG_*.
    pub flags: u16,
    /// The client's name for it.
    pub cookie: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

/// A head as it came, before anything is believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawRequest {
    pub(crate) magic: u32,
    pub(crate) flags: u16,
    pub(crate) kind: u16,
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// A number in network order; `None` past the end.
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

/// As above.
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

/// As above.
pub(crate) fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_be_bytes)
}

impl RawRequest {
    /// `None` where there are not enough bytes.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            magic: be32(bytes, 0)?,
            flags: be16(bytes, 4)?,
            kind: be16(bytes, 6)?,
            cookie: be64(bytes, 8)?,
            offset: be64(bytes, 16)?,
            length: be32(bytes, 24)?,
        })
    }
}

/// The answer to one request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reply {
    /// It is done.
    Done,
    /// So many bytes follow.
    Data { offset: u64, length: u32 },
    /// The allocation of the range: lengths and flags.
    Extents(Vec<(u32, u32)>),
    /// It failed.
    Error(u32),
}

/// The identifier of `base:allocation`.
pub(crate) const ALLOCATION: u32 = 1;

const DONE: u16 = 1;
const CHUNK_NONE: u16 = 0;
const CHUNK_OFFSET_DATA: u16 = 1;
const CHUNK_BLOCK_STATUS: u16 = 5;
const CHUNK_ERROR: u16 = (1 << 15) + 1;

/// Writes the head of a reply; the data of [`Reply::Data`] follow it.
pub(crate) fn reply(out: &mut Vec<u8>, structured: bool, cookie: u64, reply: &Reply) {
    let chunk = |out: &mut Vec<u8>, kind: u16, length: u32| {
        out.extend_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
        out.extend_from_slice(&DONE.to_be_bytes());
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&cookie.to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
    };
    let simple = |out: &mut Vec<u8>, error: u32| {
        out.extend_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
        out.extend_from_slice(&error.to_be_bytes());
        out.extend_from_slice(&cookie.to_be_bytes());
    };
    match reply {
        Reply::Error(error) if structured => {
            chunk(out, CHUNK_ERROR, 6);
            out.extend_from_slice(&error.to_be_bytes());
            out.extend_from_slice(&0_u16.to_be_bytes());
        }
        Reply::Error(error) => simple(out, *error),
        Reply::Done if structured => chunk(out, CHUNK_NONE, 0),
        Reply::Done => simple(out, 0),
        Reply::Data { offset, length } if structured => {
            chunk(out, CHUNK_OFFSET_DATA, length.saturating_add(8));
            out.extend_from_slice(&offset.to_be_bytes());
        }
        Reply::Data { .. } => simple(out, 0),
        Reply::Extents(extents) => {
            let count = u32::try_from(extents.len()).unwrap_or(u32::MAX);
            chunk(
                out,
                CHUNK_BLOCK_STATUS,
                count.saturating_mul(8).saturating_add(4),
            );
            out.extend_from_slice(&ALLOCATION.to_be_bytes());
            for (length, flags) in extents {
                out.extend_from_slice(&length.to_be_bytes());
                out.extend_from_slice(&flags.to_be_bytes());
            }
        }
    }
}

/// The peer broke the protocol in a way that leaves no way on; the connection ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Violation(pub &'static str);
