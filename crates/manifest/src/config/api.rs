//! `[api]`: where the API listens, and who may reach it how.

use crate::code::Code;
use crate::toml_table::{Placed, Source, Table};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Where the API is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ApiAddress {
    /// A unix socket.
    Unix(PathBuf),
    /// A TCP address, in plain text.
    Tcp(SocketAddr),
    /// A TCP address, by TLS.
    Https(SocketAddr),
}

impl fmt::Display for ApiAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "http://{address}"),
            Self::Https(address) => write!(f, "https://{address}"),
        }
    }
}

impl ApiAddress {
    /// Other machines reach it, and everybody on the network reads what goes over it.
    fn is_open(&self) -> bool {
        matches!(self, Self::Tcp(at) if !at.ip().to_canonical().is_loopback())
    }
}

/// The files of a certificate that somebody gave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CertificateFiles {
    /// The certificate, and those that lead to its authority, as PEM.
    pub cert: PathBuf,
    /// Its private key, as PEM.
    pub key: PathBuf,
}

/// What `[api]` says beside the addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiSettings {
    /// Over TCP, all reading takes a login or a token.
    pub token_for_reads: bool,
    /// Addresses that other machines reach may be served in plain text.
    pub allow_plain_http: bool,
    /// Names of the node beside its own, by which pages and programs may ask for it.
    pub names: Vec<String>,
    /// No settings may be changed through the API.
    pub fixed_settings: bool,
    /// The certificate; `None`: one of our own.
    pub certificate: Option<CertificateFiles>,
    /// A login that is not used for so long is over, in seconds.
    pub login_idle_seconds: u64,
    /// A login is over so long after it was made, in seconds.
    pub login_life_seconds: u64,
}

impl Default for ApiSettings {
    fn default() -> Self {
        Self {
            token_for_reads: false,
            allow_plain_http: false,
            names: Vec::new(),
            fixed_settings: false,
            certificate: None,
            login_idle_seconds: 30 * 60,
            login_life_seconds: 12 * 3600,
        }
    }
}

/// The longest times of logins, in seconds: a day idle, a month in all.
const IDLE_SECONDS_MAX: u64 = 86_400;
const LIFE_SECONDS_MAX: u64 = 30 * 86_400;
/// The shortest of both: somebody reads a screen for so long.
const LOGIN_SECONDS_MIN: u64 = 10;

/// What is to be known of addresses that are served in plain text.
pub(super) fn in_plain_text(listen: &[ApiAddress]) -> Vec<String> {
    let open = listen.iter().filter(|address| address.is_open());
    open.map(|address| {
        format!(
            "api.listen {address}: passwords, tokens and answers cross the network in plain text (allow_plain_http = \
             true); write https:// before the address"
        )
    })
    .collect()
}

/// Reads `[api]`.
pub(super) fn read(
    source: &Source<'_>,
    top: &Table<'_, '_>,
    base: &Path,
) -> (Vec<ApiAddress>, ApiSettings) {
    let Some(table) = top.table("api") else {
        if !top.keys().any(|key| key == "api") {
            top.missing("api", "[api] with listen = [\"unix:data/api.sock\"]");
        }
        return Default::default();
    };
    let listen = table.texts("listen");
    let wrong = listen.is_none() && table.keys().any(|key| key == "listen");
    if !wrong && listen.as_ref().is_none_or(Vec::is_empty) {
        table.missing("listen", "listen = [\"unix:data/api.sock\"]");
    }
    let settings = ApiSettings {
        token_for_reads: table.boolean("token_for_reads").unwrap_or(false),
        allow_plain_http: table.boolean("allow_plain_http").unwrap_or(false),
        names: read_names(&table),
        fixed_settings: table.boolean("change_settings") == Some(false),
        certificate: read_certificate(&table, base),
        login_idle_seconds: seconds(&table, "login_idle_seconds", IDLE_SECONDS_MAX)
            .unwrap_or(ApiSettings::default().login_idle_seconds),
        login_life_seconds: seconds(&table, "login_life_seconds", LIFE_SECONDS_MAX)
            .unwrap_or(ApiSettings::default().login_life_seconds),
    };
    let mut out = Vec::new();
    for item in listen.unwrap_or_default() {
        match address(&item, base) {
            Ok(address) if address.is_open() && !settings.allow_plain_http => {
                let message = format!(
                    "\"{}\" would carry passwords, tokens and answers in plain text to whoever reads the network: write \
                     \"https://{}\" (a certificate is made by itself), a loopback address such as \"127.0.0.1:8480\", or \
                     allow_plain_http = true below [api] if that is meant",
                    item.value,
                    item.value.trim_start_matches("http://")
                );
                source.report(Code::ConfigPlainHttp, item.at, "api.listen", message);
            }
            Ok(address) => out.push(address),
            Err(message) => table.wrong("listen", message),
        }
    }
    table.finish(&["metrics", "tls"]);
    (out, settings)
}

fn seconds(table: &Table<'_, '_>, key: &'static str, most: u64) -> Option<u64> {
    let read = table.integer(key, LOGIN_SECONDS_MIN, most);
    read.map(|seconds| seconds.value)
}

/// Names as a Host header has them.
fn read_names(table: &Table<'_, '_>) -> Vec<String> {
    let names = table.texts("names").unwrap_or_default();
    let is_name = |name: &str| {
        let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
        !name.is_empty() && name.len() <= 253 && name.chars().all(plain)
    };
    for name in names.iter().filter(|name| !is_name(&name.value)) {
        let shown = &name.value;
        table.wrong(
            "names",
            format!(
                "\"{shown}\" is no host's name: write it as in \"san.example.org\", without a port"
            ),
        );
    }
    let names = names
        .into_iter()
        .map(|name| name.value.to_ascii_lowercase());
    names.collect()
}

fn read_certificate(table: &Table<'_, '_>, base: &Path) -> Option<CertificateFiles> {
    let files = table.table("certificate")?;
    let example = "certificate = { cert = \"api.crt\", key = \"api.key\" }";
    let cert = files.required_text("cert", example);
    let key = files.required_text("key", example);
    files.finish(&[]);
    Some(CertificateFiles {
        cert: base.join(cert?.value),
        key: base.join(key?.value),
    })
}

fn address(item: &Placed<String>, base: &Path) -> Result<ApiAddress, String> {
    let text = item.value.as_str();
    if let Some(path) = text.strip_prefix("unix:") {
        let path = base.join(path);
        // sun_path holds 108 bytes with the zero at its end (unix(7)); the socket is made under a
        // name that is four longer.
        if path.as_os_str().len() > 103 {
            return Err(format!(
                "\"{text}\" is longer than the 103 bytes that a socket's path may have"
            ));
        }
        return Ok(ApiAddress::Unix(path));
    }
    let parsed = match text.strip_prefix("https://") {
        Some(at) => at.parse().map(ApiAddress::Https),
        None => {
            let at = text.strip_prefix("http://").unwrap_or(text);
            at.parse().map(ApiAddress::Tcp)
        }
    };
    parsed.map_err(|_| {
        format!("\"{text}\" is no API address: write \"unix:PATH\", \"127.0.0.1:8480\" or \"https://0.0.0.0:8443\"")
    })
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::config::parse;

    fn with(api: &str) -> Result<(Vec<String>, ApiSettings), String> {
        let text = format!(
            "[node]\nname = \"a\"\nstate_dir = \"d\"\n[[portal_group]]\nname = \"p\"\ntag = 1\n\
             listen = [ {{ ip = \"127.0.0.1\" }} ]\n[api]\n{api}\n"
        );
        match parse(Path::new("/e/node.toml"), &text) {
            Ok(config) => {
                let shown = config.api.iter().map(ToString::to_string).collect();
                Ok((shown, config.api_settings))
            }
            Err(mistakes) => {
                assert_eq!(mistakes.len(), 1, "{mistakes:?}");
                Err(format!("{} {}", mistakes[0].code, mistakes[0]))
            }
        }
    }

    #[test]
    fn plain_text_for_other_machines_takes_a_word_and_loopback_and_https_do_not() {
        for open in [
            "0.0.0.0:80",
            "[::]:80",
            "10.0.0.1:80",
            "http://[2001:db8::1]:80",
        ] {
            let wrong = with(&format!("listen = [\"{open}\"]")).unwrap_err();
            assert!(
                wrong.starts_with("CWY1009 /e/node.toml:9: api.listen: "),
                "{wrong}"
            );
            assert!(wrong.contains("allow_plain_http = true"), "{wrong}");
            let (shown, _) =
                with(&format!("listen = [\"{open}\"]\nallow_plain_http = true")).unwrap();
            assert_eq!(shown.len(), 1, "{open}");
        }
        let closed =
            "listen = [\"unix:s\", \"127.0.0.1:80\", \"[::1]:80\", \"https://0.0.0.0:443\"]";
        let (shown, settings) = with(closed).unwrap();
        assert_eq!(shown[3], "https://0.0.0.0:443");
        assert_eq!(settings, ApiSettings::default());
    }

    #[test]
    fn names_and_the_files_of_a_certificate_are_read_and_checked() {
        let listen = "listen = [\"unix:s\"]\n";
        let (_, settings) = with(&format!(
            "{listen}names = [\"San.Example.org\"]\ncertificate = {{ cert = \"c\", key = \"/k\" }}"
        ))
        .unwrap();
        assert_eq!(settings.names, ["san.example.org"]);
        let files = settings.certificate.unwrap();
        assert_eq!((files.cert, files.key), ("/e/c".into(), "/k".into()));
        for wrong in ["a:80", "a/b", ""] {
            let wrong = with(&format!("{listen}names = [\"{wrong}\"]")).unwrap_err();
            assert!(wrong.contains("is no host's name"), "{wrong}");
        }
        let half = with(&format!("{listen}certificate = {{ cert = \"c\" }}")).unwrap_err();
        assert!(half.contains("certificate.key"), "{half}");
    }
}
