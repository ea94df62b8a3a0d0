//! Base64 with padding (RFC 4648 4).

/// Reads it; padding may lack. `None`: it is none.
#[must_use]
pub fn decode(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.trim_end_matches('=');
    if digits.len() % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    let (mut held, mut bits) = (0u32, 0u32);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit.wrapping_sub(b'A'),
            b'a'..=b'z' => digit.wrapping_sub(b'a').wrapping_add(26),
            b'0'..=b'9' => digit.wrapping_sub(b'0').wrapping_add(52),
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        held = held << 6 | u32::from(value);
        bits = bits.saturating_add(6);
        if bits >= 8 {
            bits = bits.saturating_sub(8);
            out.push((held >> bits).to_le_bytes()[0]);
        }
    }
    Some(out)
}

/// Four digits for each three bytes.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let held = (0..3).fold(0u32, |held, at| {
            held << 8 | u32::from(three.get(at).copied().unwrap_or_default())
        });
        for at in 0..4_usize {
            let digit = DIGITS[(held >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= three.len() { digit.into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod test {
    use super::{decode, encode};

    #[test]
    fn it_matches_known_values_in_both_directions() {
        // RFC 4648 10 "Test Vectors".
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
        assert_eq!(encode(&[0xfb, 0xef, 0xff]), "++//");
        for bad in ["A", "Zm9vY", "*A==", "Zm 9v", "é"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }

    #[test]
    fn all_bytes_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        for len in 0..all.len() {
            assert_eq!(decode(&encode(&all[..len])).unwrap(), &all[..len]);
        }
    }
}
