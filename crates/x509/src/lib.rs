//! What of a certificate is shown: for which names, by whom, from when until when. Reads DER
//! (X.690) as far as X.509 (RFC 5280) has these.
//!
//! **Failure model.** Bytes that are no certificate give nothing, whatever they are.

use std::net::IpAddr;

/// What stands in a certificate.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Facts {
    /// Names and addresses that it is for.
    pub names: Vec<String>,
    /// The common name of whoever made it.
    pub issuer: Option<String>,
    /// `O=` of whose it is; the daemon knows by it what it has made.
    pub organization: Option<String>,
    /// The common name of whose it is, where nothing else stands beside it.
    pub common_name_alone: Option<String>,
    /// Whose it is has made it.
    pub is_self_signed: bool,
    /// From when it is good (RFC 3339).
    pub begins: String,
    /// Until when it is good (RFC 3339).
    pub ends: String,
}

const SEQUENCE: u8 = 0x30;
const BITS: u8 = 0x03;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// `id-at-commonName`.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// `id-at-organizationName`.
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
/// `id-ce-subjectAltName`.
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

/// One element: its tag, what is in it, and what follows.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        let octets = rest.get(..count).filter(|_| (1..=4).contains(&count))?;
        let length = octets
            .iter()
            .fold(0, |all, octet| (all << 8) | usize::from(*octet));
        (length, rest.get(count..)?)
    };
    Some((tag, rest.get(..length)?, rest.get(length..)?))
}

/// The elements of a constructed one.
fn elements(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut all = Vec::new();
    while let Some((tag, inside, rest)) = element(bytes) {
        all.push((tag, inside));
        bytes = rest;
    }
    all
}

/// A time as `YYMMDDHHMMSSZ` or with all digits of the year, the two ways of RFC 5280 4.1.2.5.
fn time((tag, text): (u8, &[u8])) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let text = match tag {
        0x17 if text.get(..2)? >= "50" => format!("19{text}"),
        0x17 => format!("20{text}"),
        0x18 => text.to_owned(),
        _ => return None,
    };
    if text.len() != 14 || !text.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let part = |from, to| text.get(from..to);
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    Some(format!(
        "{year}-{month}-{day}T{hour}:{minute}:{second}.000Z"
    ))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The attributes of a distinguished name: the kind of each, and what it says.
fn attributes(name: &[u8]) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
    let parts = elements(name)
        .into_iter()
        .flat_map(|(_, set)| elements(set));
    parts.filter_map(|(_, pair)| match elements(pair)[..] {
        [(_, of), (_, value)] => Some((of, value)),
        _ => None,
    })
}

/// The last attribute of this kind of a distinguished name.
fn attribute(name: &[u8], kind: &[u8]) -> Option<String> {
    let mut named = attributes(name).filter(|(of, _)| *of == kind);
    named.next_back().map(|(_, value)| text(value))
}

/// What a distinguished name of one attribute says, where that is of this kind.
fn only_attribute(name: &[u8], kind: &[u8]) -> Option<String> {
    let one = attributes(name).count() == 1;
    attribute(name, kind).filter(|_| one)
}

fn address(bytes: &[u8]) -> Option<String> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let any = v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from));
    any.ok().map(|address| address.to_string())
}

fn alternative_names(extensions: &[u8]) -> Option<Vec<String>> {
    let (_, all, _) = element(extensions)?;
    let ours = elements(all).into_iter().find_map(|(_, extension)| {
        let parts = elements(extension);
        let is_ours = parts
            .first()
            .is_some_and(|(_, id)| *id == ALTERNATIVE_NAMES);
        parts.last().filter(|_| is_ours).map(|(_, value)| *value)
    })?;
    let (_, names, _) = element(ours)?;
    let name = |(tag, value): (u8, &[u8])| match tag {
        0x82 => Some(text(value)),
        0x87 => address(value),
        _ => None,
    };
    Some(elements(names).into_iter().filter_map(name).collect())
}

/// Reads them; `None`: these bytes are no certificate.
#[must_use]
pub fn facts(certificate: &[u8]) -> Option<Facts> {
    let (_, whole, _) = element(certificate).filter(|(tag, _, _)| *tag == SEQUENCE)?;
    let (_, signed, _) = element(whole).filter(|(tag, _, _)| *tag == SEQUENCE)?;
    let mut parts = elements(signed);
    if parts.first().is_some_and(|(tag, _)| *tag == VERSION) {
        parts.remove(0);
    }
    // Serial number, algorithm, issuer, validity, subject, key, and what may follow.
    let [_, _, (_, issuer), (_, validity), (_, subject), _, rest @ ..] = &parts[..] else {
        return None;
    };
    let [begins, ends] = elements(validity)[..] else {
        return None;
    };
    let extensions = rest.iter().find(|(tag, _)| *tag == EXTENSIONS);
    let names = extensions.and_then(|(_, it)| alternative_names(it));
    Some(Facts {
        names: names.unwrap_or_default(),
        issuer: attribute(issuer, COMMON_NAME),
        organization: attribute(subject, ORGANIZATION),
        common_name_alone: only_attribute(subject, COMMON_NAME),
        is_self_signed: issuer == subject,
        begins: time(begins)?,
        ends: time(ends)?,
    })
}

/// The key that a certificate is for: its kind as it stands there, and its bytes; `None`: these
/// bytes are no certificate.
#[must_use]
pub fn public_key(certificate: &[u8]) -> Option<(&[u8], Vec<u8>)> {
    let (_, whole, _) = element(certificate).filter(|(tag, _, _)| *tag == SEQUENCE)?;
    let (_, signed, _) = element(whole).filter(|(tag, _, _)| *tag == SEQUENCE)?;
    let mut parts = elements(signed);
    if parts.first().is_some_and(|(tag, _)| *tag == VERSION) {
        parts.remove(0);
    }
    let (_, key) = parts.get(5)?;
    match elements(key)[..] {
        // The first byte says how many bits of the last one are none.
        [(SEQUENCE, kind), (BITS, [0, bits @ ..])] => Some((kind, bits.to_vec())),
        _ => None,
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    fn made() -> Vec<u8> {
        let names = ["san-a", "192.0.2.7", "2001:db8::7"].map(str::to_owned);
        let mut parameters = CertificateParams::new(names.to_vec()).unwrap();
        parameters
            .distinguished_name
            .push(DnType::CommonName, "san-a of the test");
        parameters
            .distinguished_name
            .push(DnType::OrganizationName, "An organization");
        parameters.not_before = date_time_ymd(2026, 11, 1);
        parameters.not_after = date_time_ymd(2051, 2, 28);
        let key = KeyPair::generate().unwrap();
        parameters.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn a_certificate_says_for_whom_by_whom_and_until_when_it_is() {
        let wanted = Facts {
            names: ["san-a", "192.0.2.7", "2001:db8::7"]
                .map(str::to_owned)
                .to_vec(),
            issuer: Some("san-a of the test".to_owned()),
            organization: Some("An organization".to_owned()),
            common_name_alone: None,
            is_self_signed: true,
            begins: "2026-11-01T00:00:00.000Z".to_owned(),
            // After 2049 the year has four digits there.
            ends: "2051-02-28T00:00:00.000Z".to_owned(),
        };
        assert_eq!(facts(&made()), Some(wanted));
    }

    #[test]
    fn the_key_is_the_one_that_it_was_made_for() {
        use rcgen::PublicKeyData as _;
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::default();
        let made = parameters.self_signed(&key).unwrap();
        let (kind, bits) = public_key(made.der()).unwrap();
        assert_eq!(bits, key.der_bytes());
        assert!(kind.ends_with(&[0x03, 0x01, 0x07]), "P-256: {kind:?}");
    }

    #[test]
    fn a_part_of_a_certificate_and_any_flipped_byte_of_one_do_no_harm() {
        let whole = made();
        for length in 0..whole.len() {
            assert_eq!(facts(&whole[..length]), None, "{length} bytes");
            assert_eq!(public_key(&whole[..length]), None, "{length} bytes");
        }
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 0xff;
            let _ = (facts(&flipped), public_key(&flipped));
        }
    }
}
