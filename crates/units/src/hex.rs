//! Bytes as people read and write them.

use std::fmt::Write as _;

/// Two lower-case hexadecimal digits for each byte.
///
/// # Panics
/// Never: a `String` takes what is written to it.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes all");
    }
    text
}

#[cfg(test)]
mod test {
    use super::hex;

    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!(hex(&[]), "");
        assert_eq!(hex(&[0, 0x0f, 0xa0, 0xff]), "000fa0ff");
    }
}
