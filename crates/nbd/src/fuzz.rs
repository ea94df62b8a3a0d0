//! The entry point of fuzzers: any bytes as a client's talk.

use crate::export::Export;
use crate::machine::{Machine, Step};
use crate::wire::Command;
use units::{BlockCount, BlockSize};
use volume::Shape;

const SIZE_BLOCKS: u64 = 2048;

/// The most steps of one talk, far more than its bytes can give.
const STEPS_MAX: usize = 10_000;

/// A volume of a mebibyte that can do everything.
fn export() -> Export {
    let mut shape = Shape::of_memory(BlockSize::B512, BlockCount(SIZE_BLOCKS));
    shape.physical_block_exponent = 3;
    shape.limits.discard_granularity = BlockCount(8);
    Export::new(shape, "fuzzed", false)
}

/// What came of a talk that arrived in pieces of so many bytes: the steps that did something, and
/// all answers.
fn received(bytes: &[u8], piece: usize) -> (Vec<Step>, Vec<u8>, bool) {
    let mut out = Vec::new();
    let mut machine = Machine::new(export(), &mut out);
    let (mut at, mut there, mut steps) = (0_usize, piece.min(bytes.len()), Vec::new());
    for _ in 0..STEPS_MAX {
        let Some(input) = bytes.get(at..there.max(at).min(bytes.len())) else {
            break;
        };
        match machine.step(input, &mut out) {
            Err(_) => return (steps, out, true),
            Ok(Step::More) if there >= bytes.len() => break,
            Ok(Step::More) => there = there.saturating_add(piece).min(bytes.len()),
            Ok(step) => {
                steps.push(step);
                let used = |used: usize| {
                    assert!(used > 0 && used <= input.len(), "it uses what it was given");
                    used
                };
                match step {
                    Step::Took(some) => at += used(some),
                    Step::Left(_) | Step::More => break,
                    Step::Skip(some, length) => at += used(some) + to_usize(length),
                    Step::Request(some, request) => {
                        let end = request.offset.checked_add(request.length.into());
                        assert!(
                            end.is_some_and(|end| end <= SIZE_BLOCKS * 512),
                            "{request:?}"
                        );
                        let data = if request.command == Command::Write {
                            request.length
                        } else {
                            0
                        };
                        at += used(some) + to_usize(data);
                    }
                }
            }
        }
    }
    (steps, out, false)
}

fn to_usize(length: u32) -> usize {
    usize::try_from(length).expect("64-bit machines only")
}

/// A talk means the same in whatever pieces it arrives, and no answer is much longer than what
/// asked for it.
///
/// # Panics
/// Where that is not so.
pub fn talk(input: &[u8]) {
    let Some((first, bytes)) = input.split_first() else {
        return;
    };
    let whole = received(bytes, bytes.len().max(1));
    let pieces = received(bytes, usize::from(*first).max(1));
    assert_eq!(whole, pieces, "cut into pieces of {first}");
    assert!(
        whole.1.len() <= 64 + 16 * bytes.len(),
        "{} bytes of answers",
        whole.1.len()
    );
}

/// Good talks to start from.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let option = |kind: u32, data: &[u8]| {
        let length = u32::try_from(data.len()).unwrap_or(0);
        [
            b"IHAVEOPT",
            &kind.to_be_bytes()[..],
            &length.to_be_bytes(),
            data,
        ]
        .concat()
    };
    let request = |flags: u16, kind: u16, offset: u64, length: u32| {
        let magic = 0x2560_9513_u32.to_be_bytes();
        let (flags, kind, cookie) = (flags.to_be_bytes(), kind.to_be_bytes(), 7_u64.to_be_bytes());
        [
            &magic[..],
            &flags,
            &kind,
            &cookie,
            &offset.to_be_bytes(),
            &length.to_be_bytes(),
        ]
        .concat()
    };
    let context = [
        &[0; 4][..],
        &1_u32.to_be_bytes(),
        &15_u32.to_be_bytes(),
        b"base:allocation",
    ]
    .concat();
    let flags = 3_u32.to_be_bytes().to_vec();
    let modern = [
        vec![16],
        flags.clone(),
        option(8, &[]),
        option(3, &[]),
        option(9, &[0; 8]),
        option(10, &context),
        option(6, &[0, 0, 0, 0, 0, 2, 0, 1, 0, 3]),
        option(7, &[0; 6]),
        request(0, 0, 4096, 4096),
        request(0, 7, 0, 65536),
        request(1, 6, 512, 512),
        request(1, 1, 0, 512),
        vec![9; 512],
        request(0, 3, 0, 0),
        request(0, 2, 0, 0),
    ];
    let old = [
        vec![1],
        flags.clone(),
        option(1, &[]),
        request(0, 4, 0, 512),
        request(0, 0, 1 << 40, 512),
    ];
    let lists = [
        vec![200],
        flags,
        option(5, &[]),
        option(7, b"\0\0\0\x05other\0\0"),
        option(2, &[]),
    ];
    vec![modern.concat(), old.concat(), lists.concat()]
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn the_seeds_are_talks_that_lead_somewhere() {
        for seed in seeds() {
            talk(&seed);
        }
        let modern = &seeds()[0];
        let (steps, out, broken) = received(&modern[1..], modern.len());
        let requests = steps
            .iter()
            .filter(|step| matches!(step, Step::Request(..)))
            .count();
        assert_eq!(
            (requests, steps.last(), broken),
            (5, Some(&Step::Left(28)), false)
        );
        assert!(out.len() > 200);
    }
}
