//! Whom to believe, and who this node is.

use super::endpoint::TlsFiles;
use crate::trouble::{Trouble, TroubleKind};
use env::Files;
use env::durable::read_file;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, ClientConfig, RootCertStore};
use std::error::Error;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// Longest file of certificates, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A connector of these files. No word of an error has anything of the key.
pub(super) async fn connector(files: &dyn Files, tls: &TlsFiles) -> Result<TlsConnector, Trouble> {
    let mut roots = RootCertStore::empty();
    for root in certificates(files, &tls.ca).await? {
        roots.add(root).map_err(|error| unfit(&tls.ca, &error))?;
    }
    let chain = certificates(files, &tls.certificate).await?;
    let text = text(files, &tls.key).await?;
    let key = PrivateKeyDer::from_pem_slice(&text);
    let key = key.map_err(|_| unfit(&tls.key, &"no private key stands in it"))?;
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| unfit(&tls.ca, &error))?;
    let config = builder
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key);
    let config = config.map_err(|error| {
        let why = format!("it does not fit {}: {error}", tls.certificate.display());
        unfit(&tls.key, &why)
    })?;
    Ok(TlsConnector::from(Arc::new(config)))
}

async fn certificates(
    files: &dyn Files,
    file: &Path,
) -> Result<Vec<CertificateDer<'static>>, Trouble> {
    let text = text(files, file).await?;
    let all = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| unfit(file, &error))?;
    if all.is_empty() {
        return Err(unfit(file, &"no certificate stands in it"));
    }
    Ok(all)
}

async fn text(files: &dyn Files, file: &Path) -> Result<Vec<u8>, Trouble> {
    let read = read_file(files, file, FILE_BYTES_MAX).await;
    read.map_err(|error| unfit(file, &error))
}

fn unfit(file: &Path, why: &dyn Display) -> Trouble {
    let next =
        "give the files of etcd's authority, of this node's certificate and of its key, as PEM";
    Trouble::new(
        TroubleKind::File,
        format!("{}: {why}", file.display()),
        next,
    )
}

/// What a connection's end means.
pub(super) fn trouble(at: &str, error: &(dyn Error + 'static)) -> Trouble {
    if let Some(tls) = tls_error(error) {
        return refused(at, tls);
    }
    let mut why = error.to_string();
    let mut source = error.source();
    while let Some(deeper) = source {
        why = format!("{why}: {deeper}");
        source = deeper.source();
    }
    let next = "check that etcd runs there, and that a firewall lets this node through";
    Trouble::new(TroubleKind::Unreachable, format!("{at}: {why}"), next)
}

fn refused(at: &str, error: &rustls::Error) -> Trouble {
    use rustls::Error::{AlertReceived, InvalidCertificate, NoCertificatesPresented};
    let is_ours = matches!(error, AlertReceived(alert) if is_of_certificate(*alert));
    let is_theirs = matches!(error, InvalidCertificate(_) | NoCertificatesPresented);
    let (why, next) = if is_ours {
        (
            "etcd does not take this node's certificate",
            "give this node a certificate that etcd's authority (--trusted-ca-file) signed, for clients",
        )
    } else if is_theirs {
        (
            "the certificate of etcd is not believed",
            "give the authority that signed it; it must have this address as one of its names, and be valid now",
        )
    } else {
        (
            "there is no TLS with it",
            "check that this is etcd, that its --listen-client-urls begins with https://, and both clocks",
        )
    };
    Trouble::new(
        TroubleKind::Certificate,
        format!("{at}: {why}: {error}"),
        next,
    )
}

const fn is_of_certificate(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::CertificateRequired
    )
}

/// The error of TLS that is below another one.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(tls);
        }
        let within = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        at = match within {
            Some(within) => Some(within as &(dyn Error + 'static)),
            None => error.source(),
        };
    }
    None
}
