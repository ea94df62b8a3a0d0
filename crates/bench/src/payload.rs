//! What is written.

use crate::options::{Options, Source};
use crate::random::Random;
use units::{Buf, BufMut, Pool};

/// Payload for one thread on one target. Making one costs nothing but with `-Zr`.
#[derive(Clone)]
pub(crate) enum Payload {
    /// Always the same bytes.
    Same(Buf),
    /// A part of these bytes, at random.
    PartOf(Buf),
    /// Random bytes, made anew.
    Fresh,
    /// Pieces made anew, so far zeroes and so often like others, of a hundred.
    Like { compress: u8, dedupe: u8 },
}

/// What storage compresses and finds alike comes in pieces of this size, or in parts of one.
const PIECE: usize = 4096;
/// Pieces that come again and again, by the seeds that they are made from.
const AGAIN: u64 = 8;

/// Where parts of a source begin: on its multiples, so that no copy is needed below.
const STEP: usize = 4096;

impl Payload {
    /// What the options ask for; `file` holds the source's bytes where it is a file.
    ///
    /// # Errors
    /// Where the source is smaller than an operation.
    ///
    /// # Panics
    /// If an operation does not fit into memory.
    pub(crate) fn new(
        options: &Options,
        file: Option<&Buf>,
        random: &mut Random,
    ) -> Result<Self, String> {
        let block = usize::try_from(options.block).expect("an operation fits into memory");
        let enough = |bytes: &Buf| {
            if bytes.len() >= block {
                return Ok(Self::PartOf(bytes.clone()));
            }
            Err(format!(
                "-Z: a source of {} bytes is smaller than an operation of {block}",
                bytes.len()
            ))
        };
        match &options.source {
            Source::Pattern => {
                let mut bytes = BufMut::zeroed(block);
                for piece in bytes.pieces_mut() {
                    // The bytes 0 to 255 over and over, as diskspd writes them.
                    for (byte, value) in piece.iter_mut().zip((0..=u8::MAX).cycle()) {
                        *byte = value;
                    }
                }
                Ok(Self::Same(bytes.freeze()))
            }
            Source::Zeroes => Ok(Self::Same(Buf::zeroes(block))),
            Source::RandomEach => Ok(Self::Fresh),
            Source::Like { compress, dedupe } => Ok(Self::Like {
                compress: *compress,
                dedupe: *dedupe,
            }),
            Source::Random { bytes } => {
                let bytes = usize::try_from(*bytes).expect("a source fits into memory");
                let mut source = BufMut::zeroed(bytes);
                source.pieces_mut().for_each(|piece| random.fill(piece));
                enough(&source.freeze())
            }
            Source::File { .. } => enough(file.expect("the caller has read it")),
        }
    }

    /// The bytes of the next write.
    pub(crate) fn next(&self, block: usize, random: &mut Random, pool: &Pool) -> Buf {
        match self {
            Self::Same(bytes) => bytes.clone(),
            Self::PartOf(bytes) => {
                let starts = (bytes.len() - block) / STEP + 1;
                let at = random.below(starts as u64);
                let at = usize::try_from(at).expect("inside the source") * STEP;
                bytes.slice(at..at + block)
            }
            Self::Fresh => {
                let mut bytes = memory(pool, block);
                bytes.pieces_mut().for_each(|piece| random.fill(piece));
                bytes.freeze()
            }
            Self::Like { compress, dedupe } => {
                let mut bytes = memory(pool, block);
                for piece in bytes.pieces_mut() {
                    for piece in piece.chunks_mut(PIECE) {
                        like(piece, *compress, *dedupe, random);
                    }
                }
                bytes.freeze()
            }
        }
    }
}

fn like(piece: &mut [u8], compress: u8, dedupe: u8, random: &mut Random) {
    let zeroes = piece.len() * usize::from(compress) / 100;
    let (reported, rest) = piece.split_at_mut(piece.len() - zeroes);
    if random.below(100) < u64::from(dedupe) {
        Random::new(random.below(AGAIN)).fill(reported);
    } else {
        random.fill(reported);
    }
    rest.fill(0);
}

/// Memory for an operation: the pool's, or where that has none left some of its own.
pub(crate) fn memory(pool: &Pool, bytes: usize) -> BufMut {
    pool.alloc(bytes).unwrap_or_else(|_| BufMut::zeroed(bytes))
}

#[cfg(test)]
mod test {
    use super::*;

    fn payload(source: Source) -> (Payload, Random) {
        let mut random = Random::new(7);
        let options = Options {
            source,
            block: 8192,
            ..Options::default()
        };
        (Payload::new(&options, None, &mut random).unwrap(), random)
    }

    #[test]
    fn sources_give_what_they_say() {
        let pool = Pool::new(1 << 20);
        let (pattern, mut random) = payload(Source::Pattern);
        let bytes = pattern.next(8192, &mut random, &pool).to_vec();
        assert!(
            bytes
                .iter()
                .enumerate()
                .all(|(at, byte)| at % 256 == usize::from(*byte))
        );
        let (zeroes, mut random) = payload(Source::Zeroes);
        assert!(zeroes.next(8192, &mut random, &pool).is_zero());
        let (fresh, mut random) = payload(Source::RandomEach);
        let one = fresh.next(8192, &mut random, &pool);
        assert_ne!(one, fresh.next(8192, &mut random, &pool));
        let (part, mut random) = payload(Source::Random { bytes: 64 << 10 });
        let all: Vec<Buf> = (0..100)
            .map(|_| part.next(8192, &mut random, &pool))
            .collect();
        assert!(all.iter().any(|other| *other != all[0]));
        assert!(all[1..].iter().any(|other| *other == all[0]));
    }

    #[test]
    fn payload_is_as_compressible_and_as_alike_as_was_asked_for() {
        for (compress, dedupe) in [(0, 0), (50, 0), (25, 40), (100, 0), (0, 100), (60, 75)] {
            let (payload, mut random) = payload(Source::Like { compress, dedupe });
            let pool = Pool::new(64 << 20);
            let (mut seen, mut zeroes) = (std::collections::BTreeSet::new(), 0_usize);
            let all = 4000;
            for _ in 0..all / 2 {
                for piece in payload.next(8192, &mut random, &pool).to_vec().chunks(4096) {
                    // Random bytes are zeroes at times too, but not at the end of nearly every
                    // piece.
                    zeroes += piece.iter().rev().take_while(|byte| **byte == 0).count();
                    seen.insert(piece.to_vec());
                }
            }
            let near = |is: usize, of: usize, percent: u8| {
                let is = is as f64 / of as f64 * 100.0;
                assert!((is - f64::from(percent)).abs() < 3.0, "{is} for {percent}");
            };
            near(zeroes, all * 4096, compress);
            if compress < 100 {
                near(all - seen.len(), all, dedupe);
            }
        }
    }

    #[test]
    fn a_source_smaller_than_an_operation_is_refused() {
        let options = Options {
            source: Source::Random { bytes: 4096 },
            block: 8192,
            ..Options::default()
        };
        let reported = Payload::new(&options, None, &mut Random::new(0)).err();
        assert!(reported.is_some_and(|reported| reported.contains("smaller")));
    }
}
