//! Whom a client of https believes: certificates that somebody named, or one by its fingerprint.

use manifest::code::Code;
use manifest::problem::Problem;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// A connector that believes the certificates in `ca`, or the one with `fingerprint`.
pub(crate) fn connector(
    ca: Option<&Path>,
    fingerprint: Option<&str>,
) -> Result<TlsConnector, Problem> {
    let provider = ring::default_provider();
    let algorithms = provider.signature_verification_algorithms;
    let builder = ClientConfig::builder_with_provider(Arc::new(provider));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let config = if let Some(fingerprint) = fingerprint {
        let pinned = Pinned {
            fingerprint: read_fingerprint(fingerprint)?,
            algorithms,
        };
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(pinned));
        builder.with_no_client_auth()
    } else if let Some(file) = ca {
        builder
            .with_root_certificates(read_roots(file)?)
            .with_no_client_auth()
    } else {
        let detail = "nothing says whose certificate is to be believed";
        return Err(Problem::new(Code::CertificateUnknown, detail));
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn read_roots(file: &Path) -> Result<RootCertStore, Problem> {
    let failed = |why: &dyn std::fmt::Display| {
        let detail = format!("{}: {why}", file.display());
        Problem::new(Code::ConfigUnreadable, detail)
            .hint("--ca names a file of certificates as PEM")
    };
    let mut roots = RootCertStore::empty();
    let all = CertificateDer::pem_file_iter(file).map_err(|error| failed(&error))?;
    for certificate in all {
        let certificate = certificate.map_err(|error| failed(&error))?;
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    if roots.is_empty() {
        return Err(failed(&"no certificate stands in it"));
    }
    Ok(roots)
}

/// 32 bytes as hexadecimal digits, with or without colons, and with `sha256:` before them or not.
fn read_fingerprint(text: &str) -> Result<[u8; 32], Problem> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower
        .strip_prefix("sha256:")
        .unwrap_or(&lower)
        .replace(':', "");
    let mut bytes = [0; 32];
    let is_whole = digits.len() == 64 && digits.bytes().all(|it| it.is_ascii_hexdigit());
    for (at, byte) in bytes.iter_mut().enumerate().filter(|_| is_whole) {
        let pair = digits.get(2 * at..2 * at + 2).unwrap_or_default();
        *byte = u8::from_str_radix(pair, 16).unwrap_or(0);
    }
    if is_whole {
        return Ok(bytes);
    }
    let detail = format!("\"{text}\" is no SHA-256 fingerprint");
    Err(Problem::new(Code::CommandLine, detail)
        .hint("write its 64 hexadecimal digits, as the daemon's log and `openssl x509 -fingerprint -sha256` show them"))
}

/// Believes one certificate, whatever name it has and whoever signed it.
#[derive(Debug)]
struct Pinned {
    fingerprint: [u8; 32],
    /// How whoever has the certificate proves that the key is theirs too.
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found: [u8; 32] = Sha256::digest(certificate).into();
        if found == self.fingerprint {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(
            CertificateError::ApplicationVerificationFailure,
        ))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::server::{ClientHello, ResolvesServerCert};
    use rustls::sign::CertifiedKey;
    use rustls::version::{TLS12, TLS13};
    use rustls::{ClientConnection, ServerConfig, ServerConnection, SupportedProtocolVersion};

    /// Shows one certificate, with a key that may be another one's.
    #[derive(Debug)]
    struct Shown(Arc<CertifiedKey>);

    impl ResolvesServerCert for Shown {
        fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            Some(Arc::clone(&self.0))
        }
    }

    fn made() -> rcgen::CertifiedKey<rcgen::KeyPair> {
        rcgen::generate_simple_self_signed(vec!["san-a".to_owned()]).unwrap()
    }

    /// How a client that knows the certificate `known` meets a server that shows another one.
    fn met(
        version: &'static SupportedProtocolVersion,
        known: &[u8],
        shown: &[u8],
        key: &rcgen::KeyPair,
    ) -> Result<(), Error> {
        let digest = Sha256::digest(known);
        let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let client = connector(None, Some(&digits)).unwrap();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let key = ring::sign::any_supported_type(&key).unwrap();
        let shown = CertifiedKey::new(vec![shown.to_vec().into()], key);
        let provider = Arc::new(ring::default_provider());
        let server = ServerConfig::builder_with_provider(provider);
        let server = server.with_protocol_versions(&[version]).unwrap();
        let server = server
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Shown(Arc::new(shown))));
        let name = ServerName::try_from("any").unwrap();
        let mut client = ClientConnection::new(Arc::clone(client.config()), name)?;
        let mut server = ServerConnection::new(Arc::new(server))?;
        while client.is_handshaking() || server.is_handshaking() {
            let mut wire = Vec::new();
            client.write_tls(&mut wire).unwrap();
            server.read_tls(&mut wire.as_slice()).unwrap();
            server.process_new_packets()?;
            wire.clear();
            server.write_tls(&mut wire).unwrap();
            client.read_tls(&mut wire.as_slice()).unwrap();
            client.process_new_packets()?;
        }
        Ok(())
    }

    #[test]
    fn only_who_has_the_known_certificate_and_its_key_is_believed_by_each_version_of_tls() {
        let (known, other) = (made(), made());
        let [ours, theirs] = [&known, &other].map(|it| it.cert.der());
        for version in [&TLS12, &TLS13] {
            let met = |shown, key| met(version, ours, shown, key);
            assert_eq!(met(ours, &known.signing_key), Ok(()), "{version:?}");
            let failed = |why| Err(Error::InvalidCertificate(why));
            assert_eq!(
                met(theirs, &other.signing_key),
                failed(CertificateError::ApplicationVerificationFailure),
                "another certificate, {version:?}"
            );
            assert_eq!(
                met(ours, &other.signing_key),
                failed(CertificateError::BadSignature),
                "the known one, shown by somebody without its key, {version:?}"
            );
        }
    }

    #[test]
    fn a_fingerprint_is_read_in_each_of_its_forms_and_nothing_else_is() {
        let plain = "00".repeat(31) + "fF";
        let pairs = "00:".repeat(31) + "FF";
        for good in [plain.clone(), pairs, format!("SHA256:{plain}")] {
            assert_eq!(read_fingerprint(&good).unwrap()[31], 255, "{good}");
        }
        for bad in ["", "00", &"0g".repeat(32), &"00".repeat(33)] {
            assert!(read_fingerprint(bad).is_err(), "{bad}");
        }
    }
}
