//! The certificate of https addresses: made by the daemon or given, and read again while it runs.
//!
//! **Failure model.** A certificate that cannot be used is an error at the start. Later the one
//! before stays, and the log says why.

use crate::own_certificate::OwnCertificate;
use events::{Code as EventCode, Events, Happened, Object};
use manifest::code::Code;
use manifest::config::CertificateFiles;
use manifest::problem::Problem;
use manifest::time::parse;
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
use x509::{Facts, facts};

/// Who made a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    /// The daemon.
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
pub(crate) struct Certificate {
    files: CertificateFiles,
    /// How it is made anew, where the daemon has made it.
    own: Option<OwnCertificate>,
    /// Why that was done last.
    made_for: Mutex<Option<String>>,
    events: Events,
    /// The node's name.
    node: String,
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
    /// Reads a given one.
    ///
    /// # Errors
    /// The files cannot be read, or do not belong together.
    pub(crate) fn given(
        files: CertificateFiles,
        (events, node): (Events, String),
    ) -> Result<Self, Problem> {
        Ok(Self {
            loaded: Mutex::new(load(&files)?),
            files,
            own: None,
            made_for: Mutex::default(),
            events,
            node,
        })
    }

    /// The daemon's own: made where there is none, and anew where it does not do any more.
    ///
    /// # Errors
    /// It can neither be made nor read.
    pub(crate) async fn own(
        own: OwnCertificate,
        events: (Events, String),
    ) -> Result<Self, Problem> {
        own.make_first().await?;
        let certificate = Self::given(own.paths(), events)?;
        let why = own.reason_at_start(&certificate.served()).await?;
        let certificate = Self {
            own: Some(own),
            ..certificate
        };
        if let Some(why) = why {
            certificate.renew(&why).await;
        }
        Ok(certificate)
    }

    /// Who made it.
    pub(crate) fn origin(&self) -> Origin {
        match self.own {
            Some(_) => Origin::Own,
            None => Origin::Given,
        }
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
        facts(&self.served())
    }

    /// The certificate of the node, as it is sent.
    fn served(&self) -> Vec<u8> {
        let loaded = self.lock();
        let first = loaded.key.cert.first().map(|it| it.as_ref().to_vec());
        first.unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// SHA-256 of the certificate, as openssl(1) shows it.
    pub(crate) fn fingerprint(&self) -> String {
        let digest = Sha256::digest(self.served());
        let pairs: Vec<String> = digest.iter().map(|byte| format!("{byte:02X}")).collect();
        pairs.join(":")
    }

    /// When the first of its certificates ends, where that can be read.
    pub(crate) fn end(&self) -> Option<WallClock> {
        let loaded = self.lock();
        let ends = loaded.key.cert.iter();
        ends.filter_map(|it| parse(&facts(it)?.ends)).min()
    }

    /// The file that it is in, for people.
    pub(crate) fn place(&self) -> String {
        self.files.cert.display().to_string()
    }

    /// Reads the files again, where they changed or `anyway`. What cannot be used changes nothing.
    pub(crate) fn refresh(&self, anyway: bool) {
        let stamps = [&self.files.cert, &self.files.key].map(|file| Stamp::of(file));
        if anyway || self.lock().stamps != stamps {
            self.read_again(None);
        }
    }

    /// Makes the daemon's own one anew, where it does not do any more; whether that failed.
    pub(crate) async fn keep_good(&self) -> bool {
        let why = self.own.as_ref().map(|own| own.reason_now(&self.served()));
        let Some(why) = why.flatten() else {
            return false;
        };
        if !self.is_new_reason(&why) {
            return false;
        }
        let has_failed = self.renew(&why).await;
        if has_failed {
            *self.made_for.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        has_failed
    }

    /// What the one that was made for this very reason lacks as well, another one would.
    fn is_new_reason(&self, why: &str) -> bool {
        let mut made_for = self.made_for.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = made_for.as_deref() != Some(why);
        *made_for = Some(why.to_owned());
        is_new
    }

    async fn renew(&self, why: &str) -> bool {
        let Some(own) = &self.own else { return false };
        match own.renew().await {
            Ok(()) => self.read_again(Some(why)),
            Err(problem) => self.refused(&problem),
        }
        self.problem().is_some()
    }

    fn read_again(&self, why: Option<&str>) {
        let before = self.fingerprint();
        let loaded = match load(&self.files) {
            Ok(loaded) => loaded,
            Err(problem) => return self.refused(&problem),
        };
        *self.lock() = loaded;
        let fingerprint = self.fingerprint();
        if fingerprint != before {
            let why = why.unwrap_or("its files changed");
            tracing::info!(fingerprint, "the API has a new certificate: {why}");
            let message = format!("https has a new certificate, {fingerprint}: {why}");
            let event = self.event(EventCode::CertificateReplaced, message, why);
            self.events.emit(event.with("fingerprint", fingerprint));
        }
    }

    /// What is wrong is reported once.
    fn refused(&self, problem: &Problem) {
        let mut loaded = self.lock();
        loaded.stamps = [&self.files.cert, &self.files.key].map(|file| Stamp::of(file));
        let detail = Some(problem.detail.clone());
        if loaded.problem == detail {
            return;
        }
        loaded.problem = detail;
        drop(loaded);
        tracing::error!(code = %problem.code, "the API keeps its certificate: {problem}");
        let why = &problem.detail;
        let message = format!("https goes on with the certificate that it had: {why}");
        let event = self.event(EventCode::CertificateRefused, message, why);
        self.events.emit(event);
    }

    fn event(&self, code: EventCode, message: String, reason: &str) -> Happened {
        let event = Happened::new(code, Object::new("node", &self.node), message);
        event.with("reason", reason)
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

impl std::fmt::Debug for Certificate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Certificate");
        shown.field("files", &self.files).finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.lock().key))
    }
}
