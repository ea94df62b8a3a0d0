//! Inputs from inputs: what goes wrong on a wire, and what an attacker writes.

use super::INPUT_BYTES_MAX;
use crate::random::Random;

/// What inputs of a target look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Binary fields.
    Bytes,
    /// Words, numbers and separators.
    Text,
    /// iSCSI PDUs one after the other: 48 bytes, additional segments, data, padding.
    Pdus,
    /// Eight bytes of choice, then PDUs.
    Split,
}

/// Numbers at which code changes its mind.
const EDGES: [u64; 14] = [
    0,
    1,
    2,
    7,
    8,
    0x7f,
    0x80,
    0xff,
    0x1ff,
    0x200,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    u64::MAX,
];

/// Words that parsers of text look for.
const WORDS: [&str; 40] = [
    "\0",
    "=",
    ",",
    "\n",
    "\"",
    "'",
    "[",
    "]",
    "[[",
    "{",
    "}",
    "#",
    "*",
    "\\",
    "\u{e9}",
    ".",
    "..",
    "-1",
    "0",
    "0x",
    "0b",
    "Yes",
    "No",
    "None",
    "Reject",
    "NotUnderstood",
    "CRC32C",
    "CHAP",
    "16777216",
    "18446744073709551616",
    "1e9",
    "true",
    "null",
    "schema = 1\n",
    "[[lun]]\n",
    "name = \"a\"\n",
    "size = \"8192TiB\"\n",
    "<stored>",
    "AuthMethod=CHAP\0",
    "\u{0}\u{0}",
];

/// Makes inputs without end.
pub struct Mutator {
    form: Form,
    random: Random,
    seeds: Vec<Vec<u8>>,
}

impl Mutator {
    /// # Panics
    /// If there is no seed.
    #[must_use]
    pub fn new(form: Form, seed: u64, seeds: Vec<Vec<u8>>) -> Self {
        assert!(!seeds.is_empty(), "something to start from");
        Self {
            form,
            random: Random::new(seed),
            seeds,
        }
    }

    /// The next one.
    pub fn next_input(&mut self) -> Vec<u8> {
        // Noise from nothing, now and then.
        let mut out = if self.random.below(32) == 0 {
            let bytes = self.random.below(200);
            (0..bytes).map(|_| self.random.byte()).collect()
        } else {
            self.random.pick(&self.seeds).clone()
        };
        for _ in 0..=self.random.below(5) {
            match self.form {
                Form::Bytes => self.bytes(&mut out),
                Form::Text if self.random.below(3) == 0 => self.bytes(&mut out),
                Form::Text => self.text(&mut out),
                Form::Pdus => self.pdus(&mut out, 0),
                Form::Split => self.pdus(&mut out, 8),
            }
        }
        out.truncate(INPUT_BYTES_MAX);
        out
    }

    fn bytes(&mut self, out: &mut Vec<u8>) {
        let at = self.random.below(out.len());
        match self.random.below(10) {
            0 if !out.is_empty() => out[at] ^= 1 << self.random.below(8),
            1 if !out.is_empty() => out[at] = self.random.byte(),
            2 => self.number(out, at),
            3 => self.length(out, at),
            4 => out.truncate(at),
            5 => {
                let end = at + self.random.below(out.len() - at + 1);
                drop(out.drain(at..end));
            }
            6 => {
                let end = at + self.random.below(out.len() - at + 1).min(64);
                let again = out[at..end].to_vec();
                let to = self.random.below(out.len() + 1);
                drop(out.splice(to..to, again));
            }
            7 => {
                // The head of this one and the tail of another.
                let other = self.random.pick(&self.seeds);
                let from = self.random.below(other.len() + 1);
                out.truncate(at);
                out.extend_from_slice(&other[from..]);
            }
            8 => {
                let bytes = self.random.below(24);
                let noise: Vec<u8> = (0..bytes).map(|_| self.random.byte()).collect();
                drop(out.splice(at..at, noise));
            }
            _ => {
                if let Some(byte) = out.get_mut(at) {
                    *byte = byte.wrapping_add(if self.random.below(2) == 0 { 1 } else { 255 });
                }
            }
        }
    }

    /// An edge, or one beside it, as a big-endian field of one to eight bytes.
    fn number(&mut self, out: &mut [u8], at: usize) {
        let near = *self.random.pick(&[0_u64, 1, u64::MAX]);
        let value = self.random.pick(&EDGES).wrapping_add(near);
        let bytes = *self.random.pick(&[1_usize, 2, 3, 4, 8]);
        overwrite(out, at, &value.to_be_bytes()[8 - bytes..]);
    }

    /// A field that says how many bytes follow it, or nearly.
    fn length(&mut self, out: &mut [u8], at: usize) {
        let bytes = *self.random.pick(&[1_usize, 2, 3, 4]);
        let rest = out.len().saturating_sub(at + bytes);
        let near = *self
            .random
            .pick(&[0_usize, 0, 1, 4, usize::MAX, usize::MAX - 3]);
        let value = u64::try_from(rest.wrapping_add(near)).expect("a length fits 64 bits");
        overwrite(out, at, &value.to_be_bytes()[8 - bytes..]);
    }

    fn text(&mut self, out: &mut Vec<u8>) {
        let at = self.random.below(out.len() + 1);
        match self.random.below(5) {
            0 => {
                let word = self.random.pick(&WORDS).bytes();
                drop(out.splice(at..at, word));
            }
            1 => {
                // A number becomes an edge.
                let end = out[at..].iter().take_while(|byte| byte.is_ascii_digit());
                let end = at + end.count();
                let edge = self.random.pick(&EDGES).to_string();
                drop(out.splice(at..end, edge.into_bytes()));
            }
            2 => {
                // What stands between two separators becomes a word.
                let separator = |byte: &u8| matches!(byte, b'=' | b',' | b'"' | b'\n' | 0 | b' ');
                let start = out[..at]
                    .iter()
                    .rposition(separator)
                    .map_or(0, |found| found + 1);
                let end = out[at..]
                    .iter()
                    .position(separator)
                    .map_or(out.len(), |found| at + found);
                let word = self.random.pick(&WORDS).bytes();
                drop(out.splice(start..end, word));
            }
            3 => self.lines(out),
            _ => {
                let end = at + self.random.below(out.len() - at + 1).min(20);
                drop(out.drain(at..end));
            }
        }
    }

    /// A line (or a text key, which ends with a zero byte) stands twice, elsewhere, or not at all.
    fn lines(&mut self, out: &mut Vec<u8>) {
        let mut lines: Vec<Vec<u8>> = out
            .split_inclusive(|byte| matches!(byte, b'\n' | 0))
            .map(<[u8]>::to_vec)
            .collect();
        self.shuffle(&mut lines);
        *out = lines.concat();
    }

    fn shuffle(&mut self, parts: &mut Vec<Vec<u8>>) {
        if parts.is_empty() {
            return;
        }
        let (from, to) = (
            self.random.below(parts.len()),
            self.random.below(parts.len()),
        );
        match self.random.below(3) {
            0 => drop(parts.remove(from)),
            1 => parts.swap(from, to),
            _ => parts.insert(to, parts[from].clone()),
        }
    }

    /// Keeps PDUs whole most of the time, or nothing past the first wrong length would ever be
    /// read.
    fn pdus(&mut self, out: &mut Vec<u8>, skip: usize) {
        if self.random.below(8) == 0 {
            self.bytes(out);
            return;
        }
        let choice = out.get(..skip).unwrap_or_default().to_vec();
        let mut pdus = split(out.get(skip..).unwrap_or_default());
        let at = self.random.below(pdus.len());
        match self.random.below(6) {
            0 => self.shuffle(&mut pdus),
            1 => {
                let mut other = split(
                    self.random
                        .pick(&self.seeds)
                        .get(skip..)
                        .unwrap_or_default(),
                );
                if !other.is_empty() {
                    let taken = other.swap_remove(self.random.below(other.len()));
                    pdus.insert(at, taken);
                }
            }
            2 => {
                if let Some(pdu) = pdus.get_mut(at) {
                    self.data(pdu);
                }
            }
            _ => {
                if let Some(pdu) = pdus.get_mut(at) {
                    self.field(pdu);
                }
            }
        }
        *out = [choice, pdus.concat()].concat();
    }

    /// A field of a header, but not one that says how long the PDU is.
    fn field(&mut self, pdu: &mut [u8]) {
        // First byte and bytes of: opcode, flags, LUN, ITT, TTT or length, three serial numbers,
        // the rest.
        let fields = [
            (0, 1),
            (1, 1),
            (8, 8),
            (16, 4),
            (20, 4),
            (24, 4),
            (28, 4),
            (32, 4),
            (36, 4),
            (40, 4),
        ];
        let (first, bytes): (usize, usize) = *self.random.pick(&fields);
        let at = first + self.random.below(bytes);
        match self.random.below(3) {
            0 => self.number(&mut pdu[..first + bytes], first),
            1 => pdu[at] = self.random.byte() & 7,
            _ => pdu[at] ^= 1 << self.random.below(8),
        }
    }

    /// A data segment of another length or content, in a PDU that still says its length right.
    fn data(&mut self, pdu: &mut Vec<u8>) {
        let Some(header) = pdu.first_chunk::<48>() else {
            return;
        };
        let start = 48 + usize::from(header[4]) * 4;
        let length = usize::try_from(u32::from_be_bytes([0, header[5], header[6], header[7]]));
        let length = length.expect("24 bits fit");
        let mut data = pdu.get(start..start + length).unwrap_or_default().to_vec();
        pdu.truncate(start.min(pdu.len()));
        if self.random.below(2) == 0 {
            self.text(&mut data);
        } else {
            self.bytes(&mut data);
        }
        data.truncate(INPUT_BYTES_MAX);
        let length = u32::try_from(data.len()).expect("short").to_be_bytes();
        pdu[5..8].copy_from_slice(&length[1..]);
        pdu.extend_from_slice(&data);
        pdu.resize(pdu.len().next_multiple_of(4), 0);
    }
}

fn overwrite(out: &mut [u8], at: usize, with: &[u8]) {
    for (to, from) in out.iter_mut().skip(at).zip(with) {
        *to = *from;
    }
}

/// Cuts where each PDU's own lengths say; what is left at the end, if it is a whole header at
/// least, counts.
fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    while let Some(header) = bytes.first_chunk::<48>() {
        let data = usize::try_from(u32::from_be_bytes([0, header[5], header[6], header[7]]));
        let data = data.expect("24 bits fit").next_multiple_of(4);
        let end = 48 + usize::from(header[4]) * 4 + data;
        let (pdu, rest) = bytes.split_at(end.min(bytes.len()));
        out.push(pdu.to_vec());
        bytes = rest;
    }
    out
}

#[cfg(test)]
mod test {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_same_seed_makes_the_same_inputs_and_another_seed_others() {
        let inputs = |seed| {
            let mut mutator = Mutator::new(Form::Bytes, seed, vec![vec![0; 64]]);
            (0..100).map(|_| mutator.next_input()).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
    }

    #[test]
    fn inputs_of_every_form_are_many_and_short() {
        let mut pdu = [0; 52];
        pdu[7] = 4;
        for form in [Form::Bytes, Form::Text, Form::Pdus, Form::Split] {
            let mut mutator =
                Mutator::new(form, 1, vec![pdu.repeat(3), b"a=b\0c=1\0".to_vec(), vec![]]);
            let inputs: BTreeSet<_> = (0..1000).map(|_| mutator.next_input()).collect();
            assert!(inputs.len() > 250, "{form:?}: {}", inputs.len());
            assert!(inputs.iter().all(|input| input.len() <= INPUT_BYTES_MAX));
        }
    }

    #[test]
    fn most_mutated_streams_are_still_cut_into_whole_pdus() {
        let mut pdu = [0; 52];
        pdu[7] = 4;
        let mut mutator = Mutator::new(Form::Pdus, 1, vec![pdu.repeat(4)]);
        let inputs = (0..1000).map(|_| mutator.next_input());
        let whole = inputs.filter(|input| split(input).concat() == *input && input.len() % 4 == 0);
        let whole = whole.count();
        assert!(whole > 500, "{whole}");
    }
}
