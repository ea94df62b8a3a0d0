//! Figures in two bytes: exact up to 255, above with eight binary digits, so within 1/256.

/// The code of a figure. Codes are in the order of the figures.
pub(crate) fn code(value: u64) -> u16 {
    let digits = 64 - value.leading_zeros();
    let shift = digits.saturating_sub(8);
    if shift == 0 {
        return u16::try_from(value).unwrap_or(u16::MAX);
    }
    let half = 1_u64 << (shift - 1);
    // One that is rounded up to the next power of two has the code of that power.
    let leading = value.saturating_add(half) >> shift;
    u16::try_from(u64::from(shift) * 128 + leading).unwrap_or(u16::MAX)
}

/// The figure of a code.
pub(crate) fn value(code: u16) -> u64 {
    if code < 256 {
        return u64::from(code);
    }
    let shift = u32::from(code / 128 - 1);
    let leading = u64::from(code % 128 + 128);
    leading.checked_shl(shift).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod test {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_figures_are_exact() {
        for small in 0..256 {
            assert_eq!(value(code(small)), small);
        }
    }

    proptest! {
        #[test]
        fn a_figure_comes_back_within_a_256th(bits in 0_u32..64, noise: u64) {
            let figure = noise >> bits;
            let back = value(code(figure));
            prop_assert!(back.abs_diff(figure) <= figure / 256, "{figure} {back}");
        }

        #[test]
        fn codes_are_in_order(a: u64, b: u64, bits in 0_u32..64) {
            let (a, b) = ((a >> bits).min(b >> bits), (a >> bits).max(b >> bits));
            prop_assert!(code(a) <= code(b));
        }

        #[test]
        fn any_code_has_a_figure(any: u16) {
            let _ = value(any);
        }
    }
}
