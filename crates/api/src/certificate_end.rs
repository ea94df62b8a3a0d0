//! When a certificate ends: as much of X.509 (RFC 5280 4.1 "Basic Certificate Fields") as that
//! takes. Pure.

use manifest::time::parse;
use units::WallClock;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Tag, content and what comes behind them.
type Element<'a> = (u8, &'a [u8], &'a [u8]);

/// The first element of DER.
fn element(der: &[u8]) -> Option<Element<'_>> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            let length = bytes
                .iter()
                .fold(0_usize, |all, byte| (all << 8) | usize::from(*byte));
            (length, rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// The content of the first element, which has this tag, and what comes behind it.
fn expect(der: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = element(der)?;
    (tag == wanted).then_some((content, rest))
}

/// From when on the certificate is no good; `None`: it cannot be read, or has no end.
pub(crate) fn end(der: &[u8]) -> Option<WallClock> {
    let (certificate, _) = expect(der, SEQUENCE)?;
    let (mut fields, _) = expect(certificate, SEQUENCE)?;
    if let Some((_, rest)) = expect(fields, VERSION) {
        fields = rest;
    }
    let (_, fields) = expect(fields, INTEGER)?;
    let (_signature, fields) = expect(fields, SEQUENCE)?;
    let (_issuer, fields) = expect(fields, SEQUENCE)?;
    let (validity, _) = expect(fields, SEQUENCE)?;
    let (_, _, after) = element(validity)?;
    let (tag, text, _) = element(after)?;
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let whole = match tag {
        GENERALIZED_TIME => text.to_owned(),
        UTC_TIME => {
            let year: u8 = text.get(..2)?.parse().ok()?;
            let century = if year < 50 { 20 } else { 19 };
            format!("{century}{text}")
        }
        _ => return None,
    };
    let part = |from: usize, to: usize| whole.get(from..to);
    let (date, time) = (
        [part(0, 4)?, part(4, 6)?, part(6, 8)?].join("-"),
        [part(8, 10)?, part(10, 12)?, part(12, 14)?].join(":"),
    );
    parse(&format!("{date}T{time}.000Z"))
}

#[cfg(test)]
mod test {
    use super::*;
    use manifest::time::rfc3339;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    fn until(year: i32, month: u8, day: u8) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["san-a".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, month, day);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_end_of_a_certificate_is_read_in_both_forms_of_time() {
        for (year, month, day) in [(2027, 2, 28), (2049, 12, 31), (2050, 1, 1), (2300, 6, 5)] {
            let end = end(&until(year, month, day)).map(rfc3339);
            let expected = format!("{year}-{month:02}-{day:02}T00:00:00.000Z");
            assert_eq!(end, Some(expected));
        }
        assert_eq!(end(&until(9999, 12, 31)), None, "never");
    }

    #[test]
    fn whatever_stands_there_is_read_without_a_panic() {
        let good = until(2030, 1, 1);
        for cut in 0..good.len() {
            let _ = end(&good[..cut]);
            let mut bad = good.clone();
            for byte in [0, 0x30, 0x80, 0x84, 0xff] {
                bad[cut] = byte;
                let _ = end(&bad);
            }
        }
        assert_eq!(end(&[]), None);
        assert_eq!(end(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
