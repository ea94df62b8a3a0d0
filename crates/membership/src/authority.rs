//! The cluster's own authority: what it signs, and for whom.
//!
//! Every node has its key, so that each can sign for a node that joins, and the loss of the first
//! one takes nothing away. A signature alone lets nobody in: the record of the node in the arbiter
//! must have the certificate's fingerprint ([`Roster`](crate::roster::Roster)).

use crate::fingerprint::Fingerprint;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SignatureAlgorithm,
    date_time_ymd,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::time::Duration;
use units::WallClock;

const DAY: Duration = Duration::from_secs(86_400);

/// How long a node's certificate is good.
const LIFE: Duration = DAY.saturating_mul(730);

/// So long before the end of its certificate a node gets another one.
pub const EARLY: Duration = DAY.saturating_mul(180);

/// How far clocks may differ: a certificate is believed so long before its time and after it, and
/// no node joins whose clock differs by more.
pub const CLOCK_TOLERANCE: Duration = DAY;

/// What stands at the end of the names of nodes.
const DOMAIN: &str = "causeway.internal";

/// `ecPublicKey` on the curve P-256, as certificates say it.
const P256: &[u8] = &[
    0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d,
    0x03, 0x01, 0x07,
];

/// Which node a certificate is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The cluster's identifier.
    pub cluster: String,
    /// The node's number.
    pub slot: u8,
    /// The node's identifier.
    pub node: String,
}

impl Identity {
    /// As it stands in the certificate, which is a name of a host that there is nowhere.
    #[must_use]
    pub fn name(&self) -> String {
        let Self {
            cluster,
            slot,
            node,
        } = self;
        format!("n{slot}.{node}.{cluster}.{DOMAIN}")
    }

    /// Reads it; `None`: it is none.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_suffix(DOMAIN)?.strip_suffix('.')?;
        let mut words = rest.split('.');
        let slot = words.next()?.strip_prefix('n')?.parse().ok()?;
        let (node, cluster) = (words.next()?.to_owned(), words.next()?.to_owned());
        let it = Self {
            cluster,
            slot,
            node,
        };
        (words.next().is_none() && it.name() == name).then_some(it)
    }

    /// Of a certificate; `None`: it is no node's.
    #[must_use]
    pub fn of(certificate: &[u8]) -> Option<Self> {
        match &x509::facts(certificate)?.names[..] {
            [name] => Self::parse(name),
            _ => None,
        }
    }
}

/// A key of a node or of an authority. No word of it is ever shown.
pub struct SecretKey(KeyPair);

impl SecretKey {
    /// A new one.
    ///
    /// # Errors
    /// The library has no randomness.
    pub fn make() -> Result<Self, rcgen::Error> {
        KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map(Self)
    }

    /// As [`SecretKey::pem`] gave it.
    ///
    /// # Errors
    /// It is none.
    pub fn from_pem(text: &str) -> Result<Self, rcgen::Error> {
        KeyPair::from_pem(text).map(Self)
    }

    /// For the state directory, and for a node that has just been let in.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.serialize_pem()
    }

    /// As TLS takes it.
    #[must_use]
    pub fn der(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.0.serialize_der()).into()
    }

    /// The public half, as it stands in a certificate.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.der_bytes().to_vec())
    }
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKey")
    }
}

/// A point of the curve P-256.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicKey(Vec<u8>);

impl PublicKey {
    /// The one that a certificate is for; `None`: it has another kind, or is none.
    #[must_use]
    pub fn of(certificate: &[u8]) -> Option<Self> {
        let (kind, key) = x509::public_key(certificate)?;
        let is_point = key.len() == 65 && key[0] == 4;
        (kind == P256 && is_point).then_some(Self(key))
    }

    /// SHA-256 of it.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.0)
    }
}

impl PublicKeyData for PublicKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

/// The authority with its key.
#[derive(Debug)]
pub struct Authority {
    key: SecretKey,
    cluster: String,
}

impl Authority {
    /// The one of a cluster that has this key.
    #[must_use]
    pub fn new(cluster: &str, key: SecretKey) -> Self {
        Self {
            key,
            cluster: cluster.to_owned(),
        }
    }

    fn params(&self) -> CertificateParams {
        let mut params = CertificateParams::default();
        let mut name = DistinguishedName::new();
        name.push(DnType::OrganizationName, "Causeway");
        name.push(DnType::CommonName, format!("cluster {}", self.cluster));
        params.distinguished_name = name;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params
    }

    /// Its own certificate. Its end is none that anybody could live to plan for.
    ///
    /// # Errors
    /// The library cannot sign.
    pub fn certificate(&self) -> Result<Vec<u8>, rcgen::Error> {
        let signed = self.params().self_signed(&self.key.0)?;
        Ok(signed.der().to_vec())
    }

    /// Its key, for a node that has just been let in.
    #[must_use]
    pub fn key(&self) -> &SecretKey {
        &self.key
    }

    /// Signs for a node, from a while before `now`.
    ///
    /// # Errors
    /// The library cannot sign.
    pub fn signs(
        &self,
        slot: u8,
        node: &str,
        key: &PublicKey,
        now: WallClock,
    ) -> Result<Vec<u8>, rcgen::Error> {
        let identity = Identity {
            cluster: self.cluster.clone(),
            slot,
            node: node.to_owned(),
        };
        let mut params = CertificateParams::new(vec![identity.name()])?;
        let mut name = DistinguishedName::new();
        name.push(DnType::OrganizationName, "Causeway");
        name.push(DnType::CommonName, format!("node {slot}"));
        params.distinguished_name = name;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.not_before = date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds(now));
        params.not_after = params.not_before + LIFE;
        let issuer = Issuer::new(self.params(), &self.key.0);
        let signed = params.signed_by(key, &issuer)?;
        Ok(signed.der().to_vec())
    }
}

/// A certificate that a node signs for itself, to prove that it has the key that it wants one for.
///
/// # Errors
/// The library cannot sign.
pub fn request(key: &SecretKey) -> Result<Vec<u8>, rcgen::Error> {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, "a node that wants to join");
    params.distinguished_name = name;
    Ok(params.self_signed(&key.0)?.der().to_vec())
}

/// Since 1970.
#[must_use]
pub const fn seconds(at: WallClock) -> u64 {
    at.0 / 1_000_000_000
}

#[cfg(test)]
mod test {
    use super::*;
    use units::rfc3339::{parse, rfc3339};

    #[test]
    fn a_certificate_says_whose_it_is_and_lasts_two_years() {
        let cluster = "c".repeat(32);
        let authority = Authority::new(&cluster, SecretKey::make().unwrap());
        let key = SecretKey::make().unwrap();
        let now = parse("2026-11-27T10:11:12.000Z").unwrap();
        let node = "0123456789abcdef0123456789abcdef";
        let made = authority.signs(63, node, &key.public(), now).unwrap();
        let identity = Identity {
            cluster,
            slot: 63,
            node: node.to_owned(),
        };
        assert_eq!(Identity::of(&made), Some(identity));
        assert_eq!(PublicKey::of(&made), Some(key.public()));
        let facts = x509::facts(&made).unwrap();
        assert_eq!(facts.begins, rfc3339(now));
        assert!(facts.ends.starts_with("2028-11-26"), "{}", facts.ends);
        // Signed once or again, by the key that was kept: the same authority.
        let again = SecretKey::from_pem(&authority.key().pem()).unwrap();
        let again = Authority::new(&authority.cluster, again);
        let issuer = |it: &Authority| x509::facts(&it.certificate().unwrap()).unwrap().issuer;
        assert_eq!(issuer(&again), facts.issuer);
    }

    #[test]
    fn names_of_hosts_are_no_identities() {
        for bad in [
            "",
            "san-a",
            "n1.a.b",
            "n1.a.causeway.internal",
            "n01.a.b.causeway.internal",
            "n1.a.b.c.causeway.internal",
            "1.a.b.causeway.internal",
            "n256.a.b.causeway.internal",
            "n1.a.b.causeway.internal.",
        ] {
            assert_eq!(Identity::parse(bad), None, "{bad}");
        }
        assert!(Identity::parse("n1.a.b.causeway.internal").is_some());
        let request = request(&SecretKey::make().unwrap()).unwrap();
        assert_eq!(Identity::of(&request), None);
    }

    #[test]
    fn a_key_is_never_shown() {
        let authority = Authority::new("c", SecretKey::make().unwrap());
        let shown = format!("{authority:?}");
        assert!(shown.len() < 60, "{shown}");
    }
}
