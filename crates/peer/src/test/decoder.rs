//! A second implementation of the format, written from `docs/formats/peer.md` alone: places are
//! counted, the checksum goes bit by bit, and nothing of the first one is used.

/// What is said of a unit, by its code less one.
const SUBJECTS: [&str; 6] = ["ports", "state", "stable", "lived", "compare", "compared"];

/// CRC-32C, bit by bit: reflected polynomial 0x82F63B78.
pub(crate) fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ 0x82F6_3B78
            } else {
                crc >> 1
            };
        }
    }
    !crc
}

pub(crate) fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let mut eight = [0; 8];
    eight[..len].copy_from_slice(&bytes[at..at + len]);
    u64::from_le_bytes(eight)
}

/// A frame as the document has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) sequence: u32,
    pub(crate) body: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

impl Frame {
    /// As it goes over the wire.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = vec![self.kind, self.flags, 0, 0];
        out.extend((u32::try_from(self.body.len()).unwrap()).to_le_bytes());
        out.extend((u32::try_from(self.data.len()).unwrap()).to_le_bytes());
        out.extend(crc(&self.body).to_le_bytes());
        out.extend(self.sequence.to_le_bytes());
        out.extend(crc(&out.clone()).to_le_bytes());
        out.extend(&self.body);
        out.extend(&self.data);
        out
    }
}

/// All frames of a side, after its first one.
pub(crate) fn frames(mut bytes: &[u8]) -> Vec<Frame> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let (body, data) = (number(bytes, 4, 4), number(bytes, 8, 4));
        let (body, data) = (
            usize::try_from(body).unwrap(),
            usize::try_from(data).unwrap(),
        );
        assert_eq!(number(bytes, 20, 4), crc(&bytes[..20]).into());
        let frame = Frame {
            kind: bytes[0],
            flags: bytes[1],
            sequence: u32::try_from(number(bytes, 16, 4)).unwrap(),
            body: bytes[24..24 + body].to_vec(),
            data: bytes[24 + body..24 + body + data].to_vec(),
        };
        assert_eq!(number(bytes, 2, 2), 0);
        assert_eq!(number(bytes, 12, 4), crc(&frame.body).into());
        out.push(frame);
        bytes = &bytes[24 + body + data..];
    }
    out
}

/// What a body says, field by field, as text: so that nothing of the first implementation's types
/// is needed.
pub(crate) fn said(frame: &Frame) -> String {
    let b = &frame.body;
    match frame.kind {
        1 => message(b),
        2 => records(b, &frame.data),
        3 | 4 => {
            let what = if frame.kind == 3 { "acks" } else { "commits" };
            let count = usize::try_from(number(b, 0, 2)).unwrap();
            assert_eq!(b.len(), 8 + 24 * count);
            assert_eq!(number(b, 3, 5), 0);
            let each = (0..count).map(|at| {
                let at = 8 + 24 * at;
                let (epoch, below) = (number(b, at + 8, 8), number(b, at + 16, 8));
                format!(" {}:{epoch}:{below}", number(b, at, 8))
            });
            format!("{what} ring {}{}", b[2], each.collect::<String>())
        }
        5 => format!("credits {} {}", number(b, 0, 8), number(b, 8, 8)),
        6 => format!("beacon {}", number(b, 0, 8)),
        7 => format!("answer {}", number(b, 0, 8)),
        8 => {
            assert_eq!((b.len(), number(b, 2, 6)), (8, 0));
            format!("bye {}", number(b, 0, 2))
        }
        9 => {
            assert_eq!((number(b, 10, 2), number(b, 36, 4)), (0, 0));
            let what = SUBJECTS[usize::from(b[8]) - 1];
            format!(
                "{what} of {} lived {} in {} as {}: {} bytes at {} of {}",
                number(b, 0, 8),
                b[9],
                number(b, 16, 8),
                number(b, 24, 8),
                b.len() - 40,
                number(b, 32, 4),
                number(b, 12, 4)
            )
        }
        kind => format!("kind {kind} of {} bytes", b.len()),
    }
}

fn records(b: &[u8], mut data: &[u8]) -> String {
    let field = |at: usize| number(b, at, 8);
    let count = usize::try_from(number(b, 42, 2)).unwrap();
    assert_eq!((b[41], number(b, 44, 4)), (0, 0));
    assert_eq!(b.len(), 48 + 20 * count);
    let mut out = format!(
        "records of {}:{} numbered in {} from {} committed {} ring {}",
        field(0),
        field(8),
        field(16),
        field(24),
        field(32),
        b[40]
    );
    for at in 0..count {
        let r = &b[48 + 20 * at..68 + 20 * at];
        assert_eq!(number(r, 14, 2), 0);
        let (start, blocks, kind) = (number(r, 0, 8), number(r, 8, 4), r[12]);
        let bytes = if kind == 1 {
            usize::try_from(blocks << r[13]).unwrap()
        } else {
            0
        };
        let own = &data[..bytes];
        data = &data[bytes..];
        let checksum = if kind == 1 { crc(own) } else { 0 };
        assert_eq!(number(r, 16, 4), checksum.into());
        out += &format!(" [{kind} {start}+{blocks} of 2^{}, {bytes} bytes]", r[13]);
    }
    assert!(data.is_empty());
    out
}

/// Reads fields one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take(&mut self, len: usize) -> u64 {
        let value = number(self.0, 0, len);
        self.0 = &self.0[len..];
        value
    }

    fn count(&mut self) -> u64 {
        let (count, zero) = (self.take(2), self.take(6));
        assert_eq!(zero, 0);
        count
    }

    fn record(&mut self) -> String {
        let (revision, epoch, in_sync) = (self.take(8), self.take(8), self.take(8));
        let (step, owner, copies, zero) = (self.take(4), self.take(1), self.take(1), self.take(2));
        assert_eq!(zero, 0);
        let copies = (0..copies).map(|_| {
            let (low, high) = (self.take(8), self.take(8));
            let (slot, zero) = (self.take(1), self.take(7));
            assert_eq!(zero, 0);
            format!(" copy {slot}={high:x}:{low:x}")
        });
        let copies: String = copies.collect();
        format!("({revision}) {epoch}.{step} owner {owner} in sync {in_sync:b}{copies}")
    }
}

fn message(b: &[u8]) -> String {
    let mut f = Fields(b);
    let (volume, kind, zero) = (f.take(8), f.take(1), f.take(7));
    assert_eq!(zero, 0);
    let what = match kind {
        1 => {
            let (promised, own, heard) = (f.take(8), f.take(8), f.take(8));
            format!("hello {promised} in {own}/{heard} {}", f.record())
        }
        2 => {
            let mut out = format!("lead {}", f.record());
            for _ in 0..f.count() {
                out += &format!(" ring to {}", f.take(8));
                for _ in 0..f.count() {
                    out += &format!(" {}@{}", f.take(8), f.take(8));
                }
            }
            out += " has";
            for _ in 0..f.count() {
                out += &format!(" {}", f.take(8));
            }
            out
        }
        3 => format!("refuse {}", f.take(8)),
        4 | 8 => {
            let name = if kind == 4 { "follow" } else { "renew" };
            let mut out = format!("{name} {}", f.take(8));
            for _ in 0..f.count() {
                out += &format!(" {}", f.take(8));
            }
            if kind == 4 {
                let whole = f.take(1);
                assert!(whole < 2);
                assert_eq!(f.take(7), 0);
                out += if whole == 1 { " whole had" } else { " had" };
                for _ in 0..f.count() {
                    out += &format!(" {}", f.take(8));
                }
            }
            out
        }
        5 => format!("ask {}", f.take(8)),
        6 => format!("grant {}", f.take(8)),
        7 => format!("yield {}", f.take(8)),
        9 => format!("whole {}", f.take(8)),
        10 => "leaves".to_owned(),
        11 => format!("less {}", f.take(8)),
        kind => format!("message {kind}"),
    };
    assert!(f.0.is_empty());
    format!("of {volume}: {what}")
}
