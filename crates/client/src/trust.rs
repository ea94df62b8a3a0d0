//! Whom a client of https believes: certificates that somebody named, or one by its fingerprint.

use manifest::code::Code;
use manifest::problem::Problem;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
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
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let config = if let Some(fingerprint) = fingerprint {
        let pinned = Pinned {
            fingerprint: read_fingerprint(fingerprint)?,
            provider,
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
    provider: Arc<CryptoProvider>,
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
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod test {
    use super::*;

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
