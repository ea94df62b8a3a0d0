//! Names: of objects, which we choose the rule for, and of iSCSI nodes, which the standard has.
//!
//! **Spec.** RFC 7143 4.2.7 "iSCSI Names", RFC 3722 "String Profile for iSCSI Names", RFC 3980 "T11
//! NAA Naming Format for iSCSI Node Names"; 13.8 "TargetAddress".

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest name of an object, in characters.
pub const NAME_CHARACTERS_MAX: usize = 63;

/// Longest iSCSI name, in bytes (RFC 7143 4.2.7.1 "iSCSI Name Properties").
pub const ISCSI_NAME_BYTES_MAX: usize = 223;

const NAMING_AUTHORITY: &str = "iqn.2026-11.io.causeway:";

/// Whether `name` may name an object.
///
/// # Errors
/// The rule that it breaks.
pub fn check_object_name(name: &str) -> Result<(), String> {
    let rule =
        "a name has 1 to 63 characters: letters A-Z a-z, digits, and . _ - but not at its start";
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    let reads_well = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if starts_well && reads_well && name.len() <= NAME_CHARACTERS_MAX {
        return Ok(());
    }
    Err(format!("\"{name}\" cannot be a name: {rule}"))
}

/// The normalised form of an iSCSI name: lower case, as RFC 3722 maps it.
///
/// Names that need more than ASCII must come in their normalised form already, which has no
/// ASCII-only shape; they are refused rather than compared wrongly.
///
/// # Errors
/// The rule that it breaks.
pub fn normal_iscsi_name(name: &str) -> Result<String, String> {
    let refuse = |rule: &str| Err(format!("\"{name}\" is not an iSCSI name: {rule}"));
    if name.len() > ISCSI_NAME_BYTES_MAX {
        return refuse("it is longer than 223 bytes");
    }
    let lower = name.to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix("iqn.") {
        return match check_iqn(rest) {
            Ok(()) => Ok(lower),
            Err(rule) => refuse(rule),
        };
    }
    if let Some(hex) = lower.strip_prefix("eui.") {
        if hex.len() == 16 && is_hex(hex) {
            return Ok(lower);
        }
        return refuse("after eui. come 16 hexadecimal digits");
    }
    if let Some(hex) = lower.strip_prefix("naa.") {
        if matches!(hex.len(), 16 | 32) && is_hex(hex) {
            return Ok(lower);
        }
        return refuse("after naa. come 16 or 32 hexadecimal digits");
    }
    refuse("it starts with iqn., eui. or naa., such as iqn.1998-01.com.example:host1")
}

/// What follows `iqn.`: a date, a reversed domain name, and what the authority likes after a colon.
fn check_iqn(rest: &str) -> Result<(), &'static str> {
    let date = rest.as_bytes();
    let dated = date.len() > 8
        && date.iter().take(7).enumerate().all(|(at, byte)| {
            if at == 4 {
                *byte == b'-'
            } else {
                byte.is_ascii_digit()
            }
        })
        && date.get(7) == Some(&b'.');
    let month = rest.get(5..7).and_then(|month| month.parse::<u8>().ok());
    if !dated || !matches!(month, Some(1..=12)) {
        return Err(
            "after iqn. comes a date as YYYY-MM and a dot, such as iqn.1998-01.com.example",
        );
    }
    let authority = rest.get(8..).unwrap_or_default();
    let domain = authority.split(':').next().unwrap_or_default();
    if domain.is_empty() || domain.split('.').any(str::is_empty) {
        return Err("after the date comes a reversed domain name, such as com.example");
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':');
    if !authority.chars().all(allowed) {
        return Err("only the letters a-z, digits, and - . : are allowed");
    }
    Ok(())
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether `text` is an address that an initiator can be sent to: `HOST:PORT`, where HOST is a
/// domain name, an IPv4 address, or an IPv6 address in brackets (RFC 7143 13.8 "TargetAddress").
///
/// # Errors
/// The rule that it breaks.
pub fn check_target_address(text: &str) -> Result<(), String> {
    let refuse = |rule: &str| {
        let example = "write HOST:PORT, such as 192.0.2.2:3260 or [2001:db8::2]:3260";
        Err(format!("\"{text}\" is no address: {rule}; {example}"))
    };
    let Some((host, port)) = text.rsplit_once(':') else {
        return refuse("the port is missing");
    };
    if host.contains(':') && !host.starts_with('[') {
        return refuse("an IPv6 address stands in brackets, and its port behind them");
    }
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || !matches!(port.parse::<u16>(), Ok(1..)) {
        return refuse("a port is a number from 1 to 65535");
    }
    let address: Option<IpAddr> = if let Some(inside) = host.strip_prefix('[') {
        let parsed = inside
            .strip_suffix(']')
            .and_then(|inside| inside.parse::<Ipv6Addr>().ok());
        match parsed {
            Some(address) => Some(address.into()),
            None => return refuse("in the brackets is no IPv6 address"),
        }
    } else {
        host.parse::<Ipv4Addr>().ok().map(IpAddr::from)
    };
    match address {
        Some(address) if address.is_unspecified() || address.is_multicast() => {
            refuse("nobody can log in there")
        }
        Some(_) => Ok(()),
        None if is_domain_name(host) => Ok(()),
        None => refuse("its host is neither an address nor a domain name"),
    }
}

/// RFC 1123 2.1 "Host Names and Numbers": the last label is not a number.
fn is_domain_name(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= 253 && !numeric && text.split('.').all(label)
}

/// The iSCSI name that a target gets where nobody chose one.
#[must_use]
pub fn derived_iqn(target: &str) -> String {
    let tail = target.to_ascii_lowercase().replace('_', "-");
    format!("{NAMING_AUTHORITY}{tail}")
}

/// The candidate that `typed` was probably meant to be.
#[must_use]
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = if typed.len() <= 3 { 1 } else { 2 };
    candidates
        .into_iter()
        .map(|candidate| (distance(typed, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

/// `, did you mean "x"?` or nothing.
#[must_use]
pub fn did_you_mean<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(typed, candidates)
        .map_or_else(String::new, |best| format!(", did you mean \"{best}\"?"))
}

/// Insertions, deletions, replacements and swaps of neighbours that make one text of the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn an_address_to_be_sent_to_has_a_host_and_a_port() {
        for good in [
            "192.0.2.2:3260",
            "[2001:db8::2]:3260",
            "san-b.example.com:3260",
            "san-b:1",
            "[::ffff:192.0.2.2]:65535",
        ] {
            assert_eq!(check_target_address(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("", "port is missing"),
            ("192.0.2.2", "port is missing"),
            ("192.0.2.2:", "a port is a number"),
            ("192.0.2.2:0", "a port is a number"),
            ("192.0.2.2:65536", "a port is a number"),
            ("192.0.2.2:+1", "a port is a number"),
            ("192.0.2.2:3260,1", "a port is a number"),
            ("2001:db8::2:3260", "in brackets"),
            ("[2001:db8::2]", "a port is a number"),
            ("[2001:db8::2:3260", "no IPv6 address"),
            ("[fe80::1%eth0]:3260", "no IPv6 address"),
            ("[192.0.2.2]:3260", "no IPv6 address"),
            ("0.0.0.0:3260", "nobody can log in"),
            ("[::]:3260", "nobody can log in"),
            (":3260", "neither an address nor"),
            ("192.0.2:3260", "neither an address nor"),
            ("192.0.2.256:3260", "neither an address nor"),
            ("san_b:3260", "neither an address nor"),
            ("-san:3260", "neither an address nor"),
            ("san b:3260", "neither an address nor"),
        ] {
            let reported = check_target_address(bad).unwrap_err();
            assert!(reported.contains(why), "{bad}: {reported}");
        }
    }

    #[test]
    fn iscsi_names_are_lowered_and_their_form_is_checked() {
        let good = [
            "iqn.1998-01.com.vmware:esx01",
            "IQN.1991-05.com.Microsoft:WIN-1",
            "iqn.2026-11.io.causeway",
            "eui.02004567A425678D",
            "naa.52004567BA64678D",
            "naa.62004567BA64678D0123456789ABCDEF",
        ];
        for name in good {
            assert_eq!(normal_iscsi_name(name).unwrap(), name.to_ascii_lowercase());
        }
        let long = format!("iqn.1998-01.com.example:{}", "x".repeat(200));
        let bad = [
            "",
            "iqn.",
            "iqn.1998-13.com.x",
            "iqn.98-01.com.x",
            "iqn.1998-01.",
            "iqn.1998-01..x",
            "iqn.1998-01.com.x:a_b",
            "iqn.1998-01.com.x:a b",
            "eui.123",
            "naa.123",
            "esx01",
            "iqn.1998-01.com.x:ü",
            long.as_str(),
        ];
        for name in bad {
            assert!(normal_iscsi_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn object_names_are_short_and_plain() {
        for good in ["a", "vm01", "VM-01.disk_2", &"x".repeat(63)] {
            check_object_name(good).unwrap();
        }
        for bad in ["", "-a", ".a", "a b", "a/b", "ü", "a:b", &"x".repeat(64)] {
            assert!(check_object_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_object_name_derives_a_valid_iscsi_name() {
        for name in ["t1", "A_b.C", &"z".repeat(63)] {
            let derived = derived_iqn(name);
            assert_eq!(normal_iscsi_name(&derived).as_ref(), Ok(&derived));
        }
    }

    #[test]
    fn a_slip_of_the_finger_finds_the_word() {
        assert_eq!(nearest("iqm", ["iqn", "name"]), Some("iqn"));
        assert_eq!(
            nearest("portla_group", ["portal_group", "pool"]),
            Some("portal_group")
        );
        assert_eq!(nearest("zebra", ["iqn", "name"]), None);
        assert_eq!(did_you_mean("szie", ["size"]), ", did you mean \"size\"?");
    }
}
