//! Where etcd is.

use crate::question::Key;
use crate::trouble::{Trouble, TroubleKind};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A member of etcd, as clients reach it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Endpoint {
    /// Its certificate must have this address.
    pub address: SocketAddr,
    /// Over TLS; without it only on this machine.
    pub is_encrypted: bool,
}

impl Endpoint {
    /// Reads `https://10.0.0.5:2379`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Trouble> {
        let refused = |why: &str| {
            let cause = format!("\"{text}\" is no endpoint of etcd: {why}");
            let next = "write https://ADDRESS:PORT for each member, such as https://10.0.0.5:2379";
            Trouble::new(TroubleKind::Refuses, cause, next)
        };
        let (is_encrypted, rest) = match text.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http", rest)) => (false, rest),
            Some(_) | None => return Err(refused("it does not begin with https://")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let address: SocketAddr = rest.parse().map_err(|_| {
            refused("an IP address and a port are needed: a name would make LUNs depend on a name server")
        })?;
        if address.port() == 0 || address.ip().is_unspecified() {
            return Err(refused("nobody can connect there"));
        }
        if !is_encrypted && !address.ip().is_loopback() {
            return Err(refused(
                "without TLS anybody in the network could take LUNs over",
            ));
        }
        Ok(Self {
            address,
            is_encrypted,
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.address)
    }
}

/// Files that say whom to believe, and who this node is, all as PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// Who signs the certificates of etcd's members.
    pub ca: PathBuf,
    /// This node's certificate, with those between it and what etcd believes.
    pub certificate: PathBuf,
    /// The private half of the certificate. No word of it is ever shown.
    pub key: PathBuf,
}

/// How etcd is reached, and what is ours in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EtcdSettings {
    /// Its members, those that are likely nearest first.
    pub endpoints: Vec<Endpoint>,
    /// Needed where an endpoint is encrypted.
    pub tls: Option<TlsFiles>,
    /// All records are below this name.
    pub prefix: Key,
    /// The file in which this node remembers which etcd it is, and how far it was.
    pub memory: PathBuf,
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn an_endpoint_is_an_address_and_encrypted_unless_it_is_on_this_machine() {
        for good in [
            "https://10.0.0.5:2379",
            "https://[fd00::5]:2379",
            "http://127.0.0.1:2379",
            "http://[::1]:1",
        ] {
            assert_eq!(Endpoint::parse(good).unwrap().to_string(), good);
        }
        assert!(Endpoint::parse("https://10.0.0.5:2379/").is_ok());
        for (bad, why) in [
            ("10.0.0.5:2379", "https://"),
            ("unix:/etcd", "https://"),
            ("https://etcd-a:2379", "name server"),
            ("https://10.0.0.5", "a port"),
            ("https://10.0.0.5:2379/v3", "a port"),
            ("https://0.0.0.0:2379", "nobody"),
            ("https://10.0.0.5:0", "nobody"),
            ("http://10.0.0.5:2379", "without TLS"),
        ] {
            let trouble = Endpoint::parse(bad).unwrap_err();
            assert!(trouble.cause.contains(why), "{trouble}");
        }
    }
}
