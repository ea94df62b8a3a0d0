//! TLS 1.3 between nodes: both show a certificate of the cluster's authority. And with a node that
//! has none yet: it knows the authority by its fingerprint, and shows that it has the key that it
//! wants a certificate for.
//!
//! **Failure model.** A certificate that is not of this time is refused with what both clocks say
//! as far as that is known here; nothing is resumed, so that who has left is not believed by what
//! was agreed before.

use crate::authority::{CLOCK_TOLERANCE, Identity, PublicKey, SecretKey};
use crate::fingerprint::Fingerprint;
use crate::refusal::{Refusal, RefusalKind};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, CipherSuite, ClientConfig, DigitallySignedStruct,
    DistinguishedName, Error, RootCertStore, ServerConfig, SignatureScheme,
};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use units::WallClock;
use units::rfc3339::{parse, rfc3339};

/// What a node that wants to join asks for.
pub const JOIN: &[u8] = b"causeway-join/1";

/// What a node of the cluster asks for.
pub const NODE: &[u8] = b"causeway-node/1";

/// What a node of the cluster asks for that makes a stream.
pub const STREAM: &[u8] = b"causeway-stream/1";

/// What a node shows.
pub struct Shown<'a> {
    /// The certificate of the cluster's authority.
    pub authority: &'a [u8],
    /// The node's own.
    pub certificate: &'a [u8],
    /// The private half of `certificate`.
    pub key: &'a SecretKey,
}

impl Shown<'_> {
    fn chain(&self) -> Vec<CertificateDer<'static>> {
        let both = [self.certificate, self.authority];
        both.map(|it| CertificateDer::from(it.to_vec())).to_vec()
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// For streams, which carry all data.
///
/// AES-128 comes first where the processor has instructions for it, and for GHASH: it is then the
/// fastest of the three, and no search finds a key of 128 bits. Without them ChaCha20 does, which
/// needs none. The order of the node that dials decides ([`ServerConfig::ignore_client_order`] is
/// off): both know all three.
fn stream_provider() -> Arc<CryptoProvider> {
    let first = if has_aes() {
        CipherSuite::TLS13_AES_128_GCM_SHA256
    } else {
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
    };
    let mut provider = ring::default_provider();
    let suites = &mut provider.cipher_suites;
    suites.sort_by_key(|it| it.suite() != first);
    Arc::new(provider)
}

#[cfg(target_arch = "x86_64")]
fn has_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes() -> bool {
    false
}

fn roots(authority: &[u8]) -> Result<Arc<RootCertStore>, Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(authority.to_vec()))?;
    Ok(Arc::new(roots))
}

/// For nodes of the cluster that connect.
///
/// # Errors
/// The certificates or the key cannot be used.
pub fn for_nodes(
    shown: &Shown<'_>,
    clock: Arc<dyn TimeProvider>,
) -> Result<Arc<ServerConfig>, Error> {
    let with = (provider(), clock);
    server(shown, of_nodes(shown)?, with, NODE)
}

/// For streams of nodes of the cluster.
///
/// # Errors
/// The certificates or the key cannot be used.
pub fn for_streams(
    shown: &Shown<'_>,
    clock: Arc<dyn TimeProvider>,
) -> Result<Arc<ServerConfig>, Error> {
    let with = (stream_provider(), clock);
    server(shown, of_nodes(shown)?, with, STREAM)
}

fn of_nodes(shown: &Shown<'_>) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    let roots = roots(shown.authority)?;
    let inner = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
    let inner = inner.map_err(|error| Error::General(error.to_string()))?;
    Ok(Arc::new(OfNodes(inner)))
}

/// For nodes that want to join.
///
/// # Errors
/// The certificates or the key cannot be used.
pub fn for_candidates(
    shown: &Shown<'_>,
    clock: Arc<dyn TimeProvider>,
) -> Result<Arc<ServerConfig>, Error> {
    let with = (provider(), clock);
    server(shown, Arc::new(AnyKey(provider())), with, JOIN)
}

fn server(
    shown: &Shown<'_>,
    whom: Arc<dyn ClientCertVerifier>,
    (provider, clock): (Arc<CryptoProvider>, Arc<dyn TimeProvider>),
    protocol: &[u8],
) -> Result<Arc<ServerConfig>, Error> {
    let builder = ServerConfig::builder_with_details(provider, clock);
    let builder = builder.with_protocol_versions(&[&TLS13])?;
    let builder = builder.with_client_cert_verifier(whom);
    let mut config = builder.with_single_cert(shown.chain(), shown.key.der())?;
    config.alpn_protocols = vec![protocol.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// To a node of the cluster.
///
/// # Errors
/// The certificates or the key cannot be used.
pub fn to_node(
    shown: &Shown<'_>,
    clock: Arc<dyn TimeProvider>,
) -> Result<Arc<ClientConfig>, Error> {
    let whom = of_node(shown.authority)?;
    let shown = (shown.chain(), shown.key);
    client(shown, Arc::new(whom), (provider(), clock), NODE)
}

/// To a node of the cluster, for a stream.
///
/// # Errors
/// The certificates or the key cannot be used.
pub fn to_stream(
    shown: &Shown<'_>,
    clock: Arc<dyn TimeProvider>,
) -> Result<Arc<ClientConfig>, Error> {
    let whom = of_node(shown.authority)?;
    let shown = (shown.chain(), shown.key);
    client(shown, Arc::new(whom), (stream_provider(), clock), STREAM)
}

/// To a node of a cluster whose authority has this fingerprint, with a certificate that this node
/// has signed itself.
///
/// # Errors
/// The certificate or the key cannot be used.
pub fn to_cluster(
    cluster: &str,
    authority: Fingerprint,
    request: Vec<u8>,
    key: &SecretKey,
    clock: Arc<dyn TimeProvider>,
) -> Result<Arc<ClientConfig>, Error> {
    let whom = Pinned {
        cluster: cluster.to_owned(),
        authority,
        provider: provider(),
    };
    let chain = vec![CertificateDer::from(request)];
    client((chain, key), Arc::new(whom), (provider(), clock), JOIN)
}

fn client(
    (chain, key): (Vec<CertificateDer<'static>>, &SecretKey),
    whom: Arc<dyn ServerCertVerifier>,
    (provider, clock): (Arc<CryptoProvider>, Arc<dyn TimeProvider>),
    protocol: &[u8],
) -> Result<Arc<ClientConfig>, Error> {
    let builder = ClientConfig::builder_with_details(provider, clock);
    let builder = builder.with_protocol_versions(&[&TLS13])?;
    let builder = builder.dangerous().with_custom_certificate_verifier(whom);
    let mut config = builder.with_client_auth_cert(chain, key.der())?;
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

/// As of when a certificate is verified, so that it is good as far as clocks may differ.
fn moment(certificate: &[u8], now: UnixTime) -> Result<UnixTime, Error> {
    let bad = || Error::InvalidCertificate(CertificateError::BadEncoding);
    let facts = x509::facts(certificate).ok_or_else(bad)?;
    let second = |text: &str| parse(text).map(crate::authority::seconds).ok_or_else(bad);
    let (begins, ends) = (second(&facts.begins)?, second(&facts.ends)?);
    let (at, tolerance) = (now.as_secs(), CLOCK_TOLERANCE.as_secs());
    let time = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    if at.saturating_add(tolerance) < begins {
        return Err(Error::InvalidCertificate(
            CertificateError::NotValidYetContext {
                time: now,
                not_before: time(begins),
            },
        ));
    }
    if at > ends.saturating_add(tolerance) {
        return Err(Error::InvalidCertificate(
            CertificateError::ExpiredContext {
                time: now,
                not_after: time(ends),
            },
        ));
    }
    Ok(time(at.clamp(begins, ends)))
}

fn of_node(authority: &[u8]) -> Result<ToNodes, Error> {
    let builder = WebPkiServerVerifier::builder_with_provider(roots(authority)?, provider());
    let inner = builder.build();
    inner
        .map(ToNodes)
        .map_err(|error| Error::General(error.to_string()))
}

/// Signatures of TLS 1.3 alone: no other is spoken.
macro_rules! signatures {
    ($provider:expr) => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("TLS 1.3 alone is spoken".to_owned()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let known = $provider(self);
            verify_tls13_signature(
                message,
                certificate,
                signed,
                &known.signature_verification_algorithms,
            )
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            let known = $provider(self);
            known.signature_verification_algorithms.supported_schemes()
        }
    };
}

/// Nodes that are connected to.
#[derive(Debug)]
struct ToNodes(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for ToNodes {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let at = moment(certificate, now)?;
        self.0
            .verify_server_cert(certificate, others, name, ocsp, at)
    }

    signatures!(|_: &Self| provider());
}

/// Nodes that connect.
#[derive(Debug)]
struct OfNodes(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for OfNodes {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let at = moment(certificate, now)?;
        self.0.verify_client_cert(certificate, others, at)
    }

    signatures!(|_: &Self| provider());
}

/// Anybody who has the key of a certificate of any kind: who it is, the token says.
#[derive(Debug)]
struct AnyKey(Arc<CryptoProvider>);

impl ClientCertVerifier for AnyKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let unfit = CertificateError::BadEncoding;
        PublicKey::of(certificate).ok_or(Error::InvalidCertificate(unfit))?;
        Ok(ClientCertVerified::assertion())
    }

    signatures!(|it: &Self| Arc::clone(&it.0));
}

/// A node of the cluster whose authority has this fingerprint.
#[derive(Debug)]
struct Pinned {
    cluster: String,
    authority: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let stranger = || Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let authority = others
            .iter()
            .find(|it| Fingerprint::of(it) == self.authority);
        let authority = authority.ok_or_else(stranger)?;
        let identity = Identity::of(certificate).filter(|it| it.cluster == self.cluster);
        let name = identity.ok_or_else(stranger)?.name();
        let name = ServerName::try_from(name).map_err(|_| stranger())?;
        of_node(authority)?.verify_server_cert(certificate, &[], &name, ocsp, now)
    }

    signatures!(|it: &Self| Arc::clone(&it.provider));
}

/// What the end of a connection with `whom` means.
#[must_use]
pub fn refusal(whom: &str, error: &io::Error) -> Refusal {
    let tls = error.get_ref().and_then(|it| it.downcast_ref::<Error>());
    let refused =
        |kind, cause: String, next: &str| Refusal::new(kind, format!("{whom}: {cause}"), next);
    let clocks = "set the clock that is wrong: a time server keeps it right";
    let other = "check that it is a node of this cluster, and that the token is of it";
    let shown = |time: &UnixTime| rfc3339(WallClock(time.as_secs().saturating_mul(1_000_000_000)));
    match tls {
        Some(Error::InvalidCertificate(CertificateError::NotValidYetContext { time, not_before })) => refused(
            RefusalKind::Clock,
            format!(
                "its certificate begins at {}, and this node's clock has {}: one of the two clocks is wrong",
                shown(not_before),
                shown(time)
            ),
            clocks,
        ),
        Some(Error::InvalidCertificate(CertificateError::ExpiredContext { time, not_after })) => refused(
            RefusalKind::Clock,
            format!(
                "its certificate has ended at {}, and this node's clock has {}: one of the two clocks is wrong, or \
                 that node was off for very long",
                shown(not_after),
                shown(time)
            ),
            clocks,
        ),
        Some(Error::AlertReceived(AlertDescription::CertificateExpired)) => refused(
            RefusalKind::Clock,
            "by its clock this node's certificate is not of this time: one of the two clocks is wrong".to_owned(),
            clocks,
        ),
        Some(Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => refused(
            RefusalKind::Version,
            "it does not speak what this version of Causeway speaks between nodes".to_owned(),
            "install the same version of Causeway on both nodes",
        ),
        Some(Error::InvalidCertificate(why)) => refused(
            RefusalKind::Stranger,
            format!("its certificate is not one of this cluster's authority ({why:?})"),
            other,
        ),
        Some(Error::AlertReceived(alert)) => refused(
            RefusalKind::Stranger,
            format!("it does not believe this node ({alert:?}): it is of another cluster"),
            other,
        ),
        Some(why) => refused(
            RefusalKind::Stranger,
            format!("it does not speak as a node does ({why})"),
            "check which program answers at this address",
        ),
        None => refused(
            RefusalKind::Unreachable,
            error.to_string(),
            "check that Causeway runs there, its `cluster.listen`, and that a firewall lets this node through",
        ),
    }
}
