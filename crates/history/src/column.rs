//! Codes of one field, one after the other, in few bytes: differences as varints, and zero
//! differences as a zero and how many there are.

/// Appends a number, seven bits a byte, low ones first.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7F).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or(0));
}

/// Takes a number off the front.
pub(crate) fn take_varint(from: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in (0..32).step_by(7) {
        let (first, rest) = from.split_first()?;
        *from = rest;
        number |= u32::from(first & 0x7F).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Appends codes. How many there are is not written.
pub(crate) fn put(out: &mut Vec<u8>, codes: impl Iterator<Item = u16>) {
    let (mut before, mut same) = (0_u16, 0_u32);
    for code in codes {
        let difference = i32::from(code) - i32::from(before);
        before = code;
        if difference == 0 {
            same += 1;
            continue;
        }
        put_same(out, &mut same);
        // Small ones of either sign become small numbers; zero is none of them.
        put_varint(
            out,
            ((difference << 1) ^ (difference >> 31)).cast_unsigned(),
        );
    }
    put_same(out, &mut same);
}

fn put_same(out: &mut Vec<u8>, same: &mut u32) {
    if *same > 0 {
        out.push(0);
        put_varint(out, std::mem::take(same));
    }
}

/// Takes so many codes off the front.
pub(crate) fn take(from: &mut &[u8], count: usize) -> Option<Vec<u16>> {
    let mut codes = Vec::with_capacity(count);
    let mut before = 0_u16;
    while codes.len() < count {
        match take_varint(from)? {
            0 => {
                let same = usize::try_from(take_varint(from)?).ok()?;
                if same == 0 || same > count - codes.len() {
                    return None;
                }
                codes.resize(codes.len() + same, before);
            }
            folded => {
                let half = (folded >> 1).cast_signed();
                let difference = half ^ -(folded & 1).cast_signed();
                before = u16::try_from(i32::from(before).checked_add(difference)?).ok()?;
                codes.push(before);
            }
        }
    }
    Some(codes)
}

#[cfg(test)]
mod test {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn codes_come_back(codes in vec(prop_oneof![Just(0), Just(7), 0..300_u16, any::<u16>()], 0..80)) {
            let mut bytes = Vec::new();
            put(&mut bytes, codes.iter().copied());
            bytes.push(0xEE);
            let mut rest = &bytes[..];
            prop_assert_eq!(take(&mut rest, codes.len()), Some(codes));
            prop_assert_eq!(rest, [0xEE]);
        }

        #[test]
        fn any_bytes_are_codes_or_none(bytes in vec(any::<u8>(), 0..40), count in 0..80_usize) {
            if let Some(codes) = take(&mut &bytes[..], count) {
                prop_assert_eq!(codes.len(), count);
            }
        }
    }

    #[test]
    fn what_does_not_change_takes_a_few_bytes() {
        let mut bytes = Vec::new();
        put(&mut bytes, std::iter::repeat_n(0, 60));
        assert_eq!(bytes, [0, 60]);
    }
}
