//! `iscsi://HOST[:PORT][,HOST[:PORT]...]/IQN/LUN`.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// The port where none is named (RFC 7143 15 "IANA Considerations").
pub(crate) const PORT: u16 = 3260;
const SCHEME: &str = "iscsi://";
const FORM: &str = "iscsi://HOST[:PORT][,HOST[:PORT]...]/IQN/LUN";
/// The longest iSCSI name in bytes (RFC 7143 4.2.7.1 "iSCSI Name Properties").
const NAME_BYTES_MAX: usize = 223;

/// A host name or address, and a port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HostPort {
    /// A name, or an address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A unit of a target, and where to look for the target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Url {
    /// At least one.
    pub hosts: Vec<HostPort>,
    /// The target's name.
    pub iqn: String,
    /// The unit's number, 0 to 16383.
    pub lun: u16,
}

/// Not such a URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UrlError {
    /// What is wrong with it.
    pub cause: String,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; write it as {FORM}", self.cause)
    }
}

impl std::error::Error for UrlError {}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<String> = self.hosts.iter().map(ToString::to_string).collect();
        write!(f, "{SCHEME}{}/{}/{}", hosts.join(","), self.iqn, self.lun)
    }
}

fn wrong(cause: impl Into<String>) -> UrlError {
    let cause = cause.into();
    UrlError { cause }
}

impl FromStr for HostPort {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest
                .split_once(']')
                .ok_or_else(|| wrong(format!("\"{text}\" lacks the closing bracket")))?;
            if !matches!(host.parse(), Ok(IpAddr::V6(_))) {
                return Err(wrong(format!("\"{host}\" is no IPv6 address")));
            }
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err(wrong(format!("\"{rest}\" follows the address"))),
            }
        } else if text.matches(':').count() > 1 {
            return Err(wrong(format!(
                "\"{text}\": an IPv6 address stands in brackets"
            )));
        } else {
            match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            }
        };
        let port = match port {
            None => PORT,
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| wrong(format!("\"{port}\" is no port (1 to 65535)")))?,
        };
        let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_' | ':');
        if host.is_empty() || !host.chars().all(fits) {
            return Err(wrong(format!("\"{host}\" is no host")));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

/// An iSCSI name: `iqn.`, `eui.` or `naa.`, and what such names are made of.
pub(crate) fn check_name(name: &str) -> Result<(), UrlError> {
    let known = ["iqn.", "eui.", "naa."]
        .iter()
        .any(|it| name.starts_with(it));
    if !known {
        return Err(wrong(format!(
            "\"{name}\" is no iSCSI name: it begins with iqn., eui. or naa."
        )));
    }
    let fits = |it: char| {
        matches!(it, '.' | '-' | ':')
            || it.is_ascii_digit()
            || it.is_lowercase()
            || (it.is_alphabetic() && !it.is_uppercase())
    };
    if let Some(bad) = name.chars().find(|it| !fits(*it)) {
        return Err(wrong(format!(
            "\"{name}\" is no iSCSI name: it contains \"{bad}\"; small letters, digits, dots, dashes and colons may be there"
        )));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(wrong(format!(
            "the name has {} bytes; iSCSI names have at most {NAME_BYTES_MAX}",
            name.len()
        )));
    }
    Ok(())
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let rest = text
            .strip_prefix(SCHEME)
            .ok_or_else(|| wrong(format!("\"{text}\" does not begin with {SCHEME}")))?;
        let parts: Vec<&str> = rest.split('/').collect();
        let [hosts, iqn, lun] = parts.as_slice() else {
            return Err(wrong(format!(
                "\"{text}\" has {} parts after {SCHEME}, not 3: hosts, target, LUN",
                parts.len()
            )));
        };
        if hosts.contains('@') {
            return Err(wrong(
                "credentials do not stand in a URL: --chap USER:FILE reads the secret from a file",
            ));
        }
        let mut found: Vec<HostPort> = Vec::new();
        for host in hosts.split(',') {
            let host: HostPort = host.parse()?;
            if found.contains(&host) {
                return Err(wrong(format!("{host} is there twice")));
            }
            found.push(host);
        }
        check_name(iqn)?;
        let number = lun
            .parse::<u16>()
            .ok()
            .filter(|it| *it <= scsi::lun::LUN_MAX);
        let digits = !lun.is_empty() && lun.bytes().all(|it| it.is_ascii_digit());
        let lun = number
            .filter(|_| digits)
            .ok_or_else(|| wrong(format!("\"{lun}\" is no LUN (0 to {})", scsi::lun::LUN_MAX)))?;
        Ok(Self {
            hosts: found,
            iqn: (*iqn).to_owned(),
            lun,
        })
    }
}

impl Url {
    /// The addresses of its hosts, each once. Asks the system's resolver where a host is a name,
    /// and then blocks: call it where that does not matter.
    ///
    /// # Errors
    /// A name that cannot be resolved.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, UrlError> {
        let mut found = Vec::new();
        for at in &self.hosts {
            if let Ok(ip) = at.host.parse::<IpAddr>() {
                found.push(SocketAddr::new(ip, at.port));
                continue;
            }
            let addresses = (at.host.as_str(), at.port).to_socket_addrs();
            let addresses = addresses
                .map_err(|error| wrong(format!("\"{}\" cannot be resolved: {error}", at.host)))?;
            found.extend(addresses);
        }
        let mut once: Vec<SocketAddr> = Vec::new();
        for address in found {
            if !once.contains(&address) {
                once.push(address);
            }
        }
        Ok(once)
    }

    /// The unit, without where to look for it: names what is kept of it over restarts.
    #[must_use]
    pub fn unit(&self) -> String {
        format!("{}/{}", self.iqn, self.lun)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    const IQN: &str = "iqn.2026-11.io.causeway:t1";

    #[test]
    fn urls_go_round_through_their_text() {
        for (text, hosts, lun) in [
            ("iscsi://10.0.0.1/iqn.2026-11.io.causeway:t1/0", 1, 0),
            (
                "iscsi://10.0.0.1:3261,san-b:99/iqn.2026-11.io.causeway:t1/7",
                2,
                7,
            ),
            (
                "iscsi://[fd00::1]:3260,[::1]/iqn.2026-11.io.causeway:t1/16383",
                2,
                16383,
            ),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!((url.hosts.len(), url.lun), (hosts, lun));
            assert_eq!(url.iqn, IQN);
            assert_eq!(url.to_string().parse(), Ok(url));
        }
        let url: Url = "iscsi://10.0.0.1,[::1]:7/iqn.2026-11.io.causeway:t1/0"
            .parse()
            .unwrap();
        let addresses = ["10.0.0.1:3260".parse().unwrap(), "[::1]:7".parse().unwrap()];
        assert_eq!(url.resolve(), Ok(addresses.to_vec()));
    }

    #[test]
    fn what_is_no_url_is_refused_with_what_is_wrong() {
        for (text, says) in [
            ("", "does not begin with"),
            ("http://a/iqn.a:b/0", "does not begin with"),
            ("iscsi://a/iqn.a:b", "2 parts"),
            ("iscsi://a/iqn.a:b/0/1", "4 parts"),
            ("iscsi:///iqn.a:b/0", "is no host"),
            ("iscsi://a,/iqn.a:b/0", "is no host"),
            ("iscsi://a,a/iqn.a:b/0", "twice"),
            ("iscsi://a:0/iqn.a:b/0", "no port"),
            ("iscsi://a:x/iqn.a:b/0", "no port"),
            ("iscsi://::1/iqn.a:b/0", "brackets"),
            ("iscsi://[::1/iqn.a:b/0", "closing bracket"),
            ("iscsi://[10.0.0.1]/iqn.a:b/0", "no IPv6 address"),
            ("iscsi://[::1]x/iqn.a:b/0", "follows"),
            ("iscsi://user%pw@a/iqn.a:b/0", "--chap"),
            ("iscsi://a/t1/0", "begins with iqn."),
            ("iscsi://a/iqn.A:b/0", "contains \"A\""),
            ("iscsi://a/iqn.a b/0", "contains \" \""),
            ("iscsi://a/iqn.a:b/16384", "no LUN"),
            ("iscsi://a/iqn.a:b/+1", "no LUN"),
            ("iscsi://a/iqn.a:b/", "no LUN"),
        ] {
            let error = text.parse::<Url>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
            assert!(error.contains(FORM));
        }
        let long = format!("iscsi://a/iqn.{}/0", "a".repeat(300));
        assert!(
            long.parse::<Url>()
                .unwrap_err()
                .cause
                .contains("at most 223")
        );
    }
}
