//! Reproducible randomness: a seed gives one run.

/// xoshiro256++ (Blackman and Vigna), started from splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Random([u64; 4]);

/// One step of splitmix64: a good mixture of all bits of `seed`.
#[must_use]
pub(crate) fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Random {
    /// The stream of a seed.
    #[must_use]
    pub(crate) fn new(seed: u64) -> Self {
        let mut at = seed;
        Self([(); 4].map(|()| {
            at = at.wrapping_add(0x9E37_79B9_7F4A_7C15);
            mix(at)
        }))
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        let s = &mut self.0;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// A number below `bound`, which is not 0; the bias is below one in 2^32 for bounds below 2^32.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Fills memory.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        let mut pieces = bytes.chunks_exact_mut(8);
        for piece in &mut pieces {
            piece.copy_from_slice(&self.next().to_le_bytes());
        }
        let rest = pieces.into_remainder();
        let (word, len) = (self.next().to_le_bytes(), rest.len());
        rest.copy_from_slice(&word[..len]);
    }
}
