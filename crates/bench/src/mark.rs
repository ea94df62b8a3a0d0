//! The mark of a bench LUN: whose data may be overwritten.
//!
//! The first mebibyte of a target that is written to belongs to the mark, and no operation of a run
//! goes there. A file system or partition table that is made later overwrites it, so that an old
//! mark protects new data too.

use env::CoreHandle;
use std::rc::Rc;
use units::{BlockCount, Buf, BufMut, Lba, LbaRange};
use volume::{Done, Durability, Io, IoError, Lane, Op, Origin, Shape, Volume};

/// Bytes at the start of a bench LUN that no run touches.
pub const RESERVED: u64 = 1 << 20;

const MARK_BYTES: usize = 4096;

const MARK: &str = "CAUSEWAY BENCH LUN 1\n\
    This LUN, device or file was given to `causeway bench --destroy`: everything on it may be\n\
    overwritten at any time. Overwrite this text to end that.\n";

/// What the start of a target looks like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// The mark.
    Bench,
    /// Anything else, in words.
    Other(String),
}

/// What was looked for: offset from the start, bytes, name.
const KNOWN: [(usize, &[u8], &str); 14] = [
    (512, b"EFI PART", "a GPT partition table"),
    (
        4096,
        b"EFI PART",
        "a GPT partition table (4096-byte blocks)",
    ),
    (0x438, &[0x53, 0xEF], "an ext2, ext3 or ext4 file system"),
    (0, b"XFSB", "an XFS file system"),
    (0x10040, b"_BHRfS_M", "a Btrfs file system"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (3, b"\0\0\0\0\0ReFS", "a ReFS file system"),
    (0, b"LUKS\xBA\xBE", "a LUKS encrypted volume"),
    (536, b"LVM2 001", "an LVM physical volume"),
    (0, b"QFI\xFB", "a qcow2 image"),
    (0, b"vhdxfile", "a VHDX image"),
    (0, b"hsqs", "a squashfs image"),
    (0, b"\x7FELF", "a program"),
];

async fn read(lane: &Rc<dyn Lane>, shape: &Shape, from: u64, bytes: u64) -> Result<Buf, IoError> {
    let block = u64::from(shape.block_size.bytes());
    let start = (from / block).min(shape.block_count.0);
    let blocks = bytes.div_ceil(block).min(shape.block_count.0 - start);
    let range = LbaRange::new(Lba(start), BlockCount(blocks)).expect("inside the target");
    let op = Op::Read { range, into: None };
    match lane.submit(Io::new(op, Origin::default())).await? {
        Done::Data(data) => Ok(data),
        Done::Nothing | Done::Logged | Done::Extents(_) => Err(IoError::Unavailable),
    }
}

/// Inspects the start (and the end) of a target.
///
/// # Errors
/// What failed, in words.
pub async fn inspect(
    core: &CoreHandle,
    volume: &std::sync::Arc<dyn Volume>,
) -> Result<Found, String> {
    let lane = std::sync::Arc::clone(volume)
        .open(core)
        .await
        .map_err(|error| error.to_string())?;
    let shape = volume.shape();
    let failed = |error: IoError| format!("its start cannot be read: {error:?}");
    let start = read(&lane, &shape, 0, 128 << 10)
        .await
        .map_err(failed)?
        .to_vec();
    if start.starts_with(MARK.as_bytes()) {
        return Ok(Found::Bench);
    }
    for (at, bytes, name) in KNOWN {
        if start.get(at..at + bytes.len()) == Some(bytes) {
            return Ok(Found::Other(format!("{name}{}", label(at, &start))));
        }
    }
    if start.get(510..512) == Some(&[0x55, 0xAA]) {
        return Ok(Found::Other("a boot record or partition table".to_owned()));
    }
    if start.iter().any(|byte| *byte != 0) {
        return Ok(Found::Other(
            "data of a kind that is not known here".to_owned(),
        ));
    }
    let size = shape.byte_count().0;
    let (mut at, step) = (0, (size / 64).max(1 << 16));
    while at < size {
        let piece = read(&lane, &shape, at, 4096).await.map_err(failed)?;
        if !piece.is_zero() {
            return Ok(Found::Other(
                "zeroes at its start, and data further on".to_owned(),
            ));
        }
        at += step;
    }
    Ok(Found::Other("zeroes wherever it was inspected".to_owned()))
}

/// The label of an ext file system.
fn label(at: usize, start: &[u8]) -> String {
    let text = (at == 0x438)
        .then(|| start.get(0x478..0x488))
        .flatten()
        .unwrap_or(&[]);
    let text: String = text
        .iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| char::from(*byte))
        .collect();
    if text.is_empty() {
        text
    } else {
        format!(" named \"{text}\"")
    }
}

/// Writes the mark, on stable media.
///
/// # Errors
/// What failed, in words.
///
/// # Panics
/// Never: callers have checked that the target is larger than the mark.
pub async fn write(core: &CoreHandle, volume: &std::sync::Arc<dyn Volume>) -> Result<(), String> {
    let lane = std::sync::Arc::clone(volume)
        .open(core)
        .await
        .map_err(|error| error.to_string())?;
    let block = u64::from(volume.shape().block_size.bytes());
    let mut data = BufMut::zeroed(MARK_BYTES);
    data.copy_at(0, MARK.as_bytes());
    let blocks = BlockCount(MARK_BYTES as u64 / block);
    let range = LbaRange::new(Lba(0), blocks).expect("a few blocks from the start on");
    let durability = Durability::Stable;
    let op = Op::Write {
        range,
        data: data.freeze(),
        durability,
    };
    let done = lane.submit(Io::new(op, Origin::default())).await;
    done.map(|_| ())
        .map_err(|error| format!("the bench mark cannot be written: {error:?}"))
}

/// What a refusal says of one target.
#[must_use]
pub fn refusal(name: &str, size: u64, found: &str) -> String {
    let size = crate::options::show_size(size);
    format!("{name} ({size}) is not a bench LUN and would be overwritten: it holds {found}")
}
