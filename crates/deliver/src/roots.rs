//! Which certificates are believed: those of the system, or those that somebody gave.

use crate::failure;
use alerts::Failure;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// The certificates that are believed.
pub(crate) async fn believed(ca: Option<&str>) -> Result<Vec<CertificateDer<'static>>, Failure> {
    if let Some(ca) = ca {
        let all = CertificateDer::pem_slice_iter(ca.as_bytes());
        let all: Result<Vec<CertificateDer<'static>>, _> = all.collect();
        let all = all.map_err(|error| failure("ca", &error))?;
        if all.is_empty() {
            return Err(failure("ca", &"no certificate stands in it"));
        }
        return Ok(all);
    }
    // It reads files.
    let found = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await;
    let found = found.map_err(|error| failure("the system's certificates", &error))?;
    if found.certs.is_empty() {
        let why = "this machine believes no certificates: install the package ca-certificates, or give the receiver a ca";
        return Err(Failure(why.to_owned()));
    }
    Ok(found.certs)
}

/// The same as a store. Certificates that cannot be used are left out.
pub(crate) async fn store(ca: Option<&str>) -> Result<RootCertStore, Failure> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(believed(ca).await?);
    if store.is_empty() {
        return Err(failure("ca", &"no certificate in it can be used"));
    }
    Ok(store)
}
