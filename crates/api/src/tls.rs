//! The certificate of https addresses: made at the first start or given, and read again while the
//! daemon runs.
//!
//! **Failure model.** A certificate that cannot be used is an error at the start. Later the one
//! before stays, and the log says why.

use crate::certificate_end;
use crate::outside::now;
use crate::x509::{Facts, facts};
use controller::StateFiles;
use manifest::code::Code;
use manifest::config::CertificateFiles;
use manifest::problem::Problem;
use manifest::time::rfc3339;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use units::WallClock;

/// The certificate of our own, and its key, in the state directory.
pub const CERTIFICATE_FILE: &str = "api-cert.pem";
pub(crate) const KEY_FILE: &str = "api-key.pem";

/// How long a certificate of our own is good, in years. Clients know it by itself or by its
/// fingerprint, so that an early end would only break them.
const YEARS: i32 = 10;

/// Who made a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    /// The daemon, at its first start.
    Own,
    /// Somebody else: `node.toml` names its file.
    Given,
}

/// What changes when somebody writes a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stamp([i64; 3]);

impl Stamp {
    fn of(file: &Path) -> Option<Self> {
        let found = std::fs::metadata(file).ok()?;
        let inode = i64::try_from(found.ino()).unwrap_or(i64::MAX);
        Some(Self([found.mtime(), found.mtime_nsec(), inode]))
    }
}

#[derive(Debug)]
struct Loaded {
    key: Arc<CertifiedKey>,
    stamps: [Option<Stamp>; 2],
    /// Why what stands in the files now is not used.
    problem: Option<String>,
}

/// The certificate that is in force.
#[derive(Debug)]
pub(crate) struct Certificate {
    files: CertificateFiles,
    origin: Origin,
    loaded: Mutex<Loaded>,
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn failed(file: &Path, why: &dyn std::fmt::Display) -> Problem {
    let detail = format!("{}: {why}", file.display());
    Problem::new(Code::ConfigEnvironment, detail).hint(
        "certificate and key are PEM files, the certificate of the node first, and the key is that certificate's",
    )
}

fn load(files: &CertificateFiles) -> Result<Loaded, Problem> {
    let stamps = [&files.cert, &files.key].map(|file| Stamp::of(file));
    let chain = CertificateDer::pem_file_iter(&files.cert);
    let chain = chain.and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| failed(&files.cert, &error))?;
    if chain.is_empty() {
        return Err(failed(&files.cert, &"no certificate stands in it"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key);
    let key = key.map_err(|error| failed(&files.key, &error))?;
    let pair = CertifiedKey::from_der(chain, key, &provider());
    let pair = pair.map_err(|error| failed(&files.cert, &error))?;
    Ok(Loaded {
        key: Arc::new(pair),
        stamps,
        problem: None,
    })
}

impl Certificate {
    /// Reads the files.
    ///
    /// # Errors
    /// They cannot be read, or do not belong together.
    pub(crate) fn read(files: CertificateFiles, origin: Origin) -> Result<Arc<Self>, Problem> {
        let loaded = Mutex::new(load(&files)?);
        Ok(Arc::new(Self {
            files,
            origin,
            loaded,
        }))
    }

    /// Who made it.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// The file that it came from.
    pub(crate) fn file(&self) -> &Path {
        &self.files.cert
    }

    /// Why what stands in the files now is not used.
    pub(crate) fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }

    /// What stands in it, where it can be read.
    pub(crate) fn facts(&self) -> Option<Facts> {
        let loaded = self.lock();
        loaded.key.cert.first().and_then(|it| facts(it.as_ref()))
    }

    fn lock(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// SHA-256 of the certificate, as openssl(1) shows it.
    pub(crate) fn fingerprint(&self) -> String {
        let loaded = self.lock();
        let first = loaded.key.cert.first().map(|it| it.as_ref());
        let digest = Sha256::digest(first.unwrap_or_default());
        let pairs: Vec<String> = digest.iter().map(|byte| format!("{byte:02X}")).collect();
        pairs.join(":")
    }

    /// When the first of its certificates ends, where that can be read.
    pub(crate) fn end(&self) -> Option<WallClock> {
        let loaded = self.lock();
        let ends = loaded.key.cert.iter();
        ends.filter_map(|it| certificate_end::end(it)).min()
    }

    /// The file that it is in, for people.
    pub(crate) fn place(&self) -> String {
        self.files.cert.display().to_string()
    }

    /// Reads the files again, where they changed or `anyway`. What cannot be used changes nothing.
    pub(crate) fn refresh(&self, anyway: bool) {
        let stamps = [&self.files.cert, &self.files.key].map(|file| Stamp::of(file));
        if !anyway && self.lock().stamps == stamps {
            return;
        }
        match load(&self.files) {
            Ok(loaded) => {
                *self.lock() = loaded;
                let fingerprint = self.fingerprint();
                tracing::info!(fingerprint, "the API has a new certificate");
            }
            Err(problem) => {
                // Once for each change.
                let mut loaded = self.lock();
                loaded.stamps = stamps;
                loaded.problem = Some(problem.detail.clone());
                drop(loaded);
                tracing::error!(code = %problem.code, "the API keeps its certificate: {problem}");
            }
        }
    }

    /// How https is served with it: TLS 1.2 or 1.3, HTTP/2 or 1.1.
    ///
    /// # Errors
    /// The library refuses its own defaults.
    pub(crate) fn server(self: &Arc<Self>) -> Result<Arc<ServerConfig>, Problem> {
        let builder = ServerConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        let resolver = Arc::<Self>::clone(self);
        let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.lock().key))
    }
}

/// The files of the certificate of our own, which is made where there is none; `names` are names
/// and addresses of the node.
///
/// # Errors
/// They cannot be made.
pub(crate) async fn own(
    files: &StateFiles,
    node: &str,
    names: Vec<String>,
) -> Result<CertificateFiles, Problem> {
    let paths = CertificateFiles {
        cert: files.path(CERTIFICATE_FILE),
        key: files.path(KEY_FILE),
    };
    let there = files.read(CERTIFICATE_FILE).await?.is_some();
    if there && files.read(KEY_FILE).await?.is_some() {
        return Ok(paths);
    }
    let wrong =
        |error: rcgen::Error| Problem::new(Code::Internal, format!("a certificate: {error}"));
    let (cert, key) = make(node, names, &rfc3339(now().wall)).map_err(wrong)?;
    // The certificate last: without it both are made anew.
    files.write(KEY_FILE, key.into_bytes()).await?;
    files.write(CERTIFICATE_FILE, cert.into_bytes()).await?;
    Ok(paths)
}

/// A certificate and its key as PEM, good from the day of `now`.
fn make(node: &str, names: Vec<String>, now: &str) -> Result<(String, String), rcgen::Error> {
    let mut parameters = CertificateParams::new(names)?;
    parameters.distinguished_name.push(DnType::CommonName, node);
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let mut date = now
        .split(['-', 'T'])
        .map(|part| part.parse::<i32>().unwrap_or(1));
    let (year, month, day) = (date.next(), date.next(), date.next());
    let year = year.unwrap_or(2026);
    // A day that every month has; and not after today's, for clients whose clock is late.
    let small = |part: Option<i32>| u8::try_from(part.unwrap_or(1)).unwrap_or(1);
    let (month, day) = (small(month).clamp(1, 12), small(day).clamp(1, 28));
    parameters.not_before = date_time_ymd(year, month, 1);
    parameters.not_after = date_time_ymd(year + YEARS, month, day);
    let key = KeyPair::generate()?;
    let certificate = parameters.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}
