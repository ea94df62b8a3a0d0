//! The options that every command of the initiator has: one place for attach, bench and path.

use crate::error::HostError;
use crate::url::Url;
use clap::{Args, ValueEnum};
use iscsi::chap::{ChapAlgorithm, Secret};
use iscsi::initiator_side::{InitiatorChap, TargetProof};
use iscsi::{DigestChoice, Offer};
use iscsi_initiator::unit::COMMAND_TIMEOUT;
use paths::Policy;
use paths::overrides::Overrides;
use paths::stale;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// Shortest secret in bytes that RFC 7143 9.2.1 "CHAP Considerations" lets anybody use without
/// encryption.
const SECRET_BYTES_MIN: usize = 12;
const SECRET_BYTES_MAX: u64 = 4096;

/// How to reach a target, and how its paths are used.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Paths")]
pub struct Options {
    /// Use this port of the host: an address, or the name of an interface. Repeatable; default: all
    /// that reach a portal
    #[arg(long, value_name = "IP|NIC")]
    pub from: Vec<String>,

    /// How the path of a command is chosen: adaptive, failover, round-robin[:N|:bytes=N],
    /// round-robin-subset[:N], least-queue-depth, least-bytes, service-time, weighted-min or
    /// weighted-share. Default: what `path policy` has set, else adaptive
    #[arg(long, value_name = "NAME[:ARG]")]
    pub policy: Option<Policy>,

    /// Use every pair of a host port and a portal, instead of those that the planner chooses
    #[arg(long)]
    pub no_plan: bool,

    /// Use only the portals of the URL; do not ask the target for others
    #[arg(long)]
    pub no_discover: bool,

    /// Ask the target so often for portals that it has got meanwhile; 0: never
    #[arg(long, default_value = "300", value_name = "SECONDS")]
    pub rediscover: RediscoverSeconds,

    /// Facts about ports that the system or the target does not report, and the planner's options
    /// (TOML)
    #[arg(long, value_name = "FILE")]
    pub facts: Option<PathBuf>,

    /// Prove who this host is: CHAP user, and a file that holds the secret
    #[arg(long, value_name = "USER:FILE")]
    pub chap: Option<Credentials>,

    /// The target has to prove itself: CHAP user that it gives, and a file that holds its secret
    #[arg(long, value_name = "USER:FILE", requires = "chap")]
    pub mutual_chap: Option<Credentials>,

    /// The initiator's name; default: one that is made once and kept in the state directory
    #[arg(long, value_name = "IQN")]
    pub initiator_name: Option<String>,

    /// CRC32C over headers and data on the wire
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    pub digests: DigestMode,

    /// What has to show that a path that was lost is at rest, before its writes are repeated or
    /// acknowledged
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    pub write_failover: WriteFailover,

    /// Who else writes to the unit
    #[arg(long, value_enum, default_value_t, value_name = "WHO")]
    pub sharing: Sharing,

    /// Seconds without any path before I/O fails
    #[arg(long, default_value = "60", value_name = "SECONDS")]
    pub no_path_timeout: Seconds,

    /// This host's persistent reservation key: every path registers it before it carries I/O
    #[arg(long, value_name = "HEX")]
    pub reservation_key: Option<ReservationKey>,

    /// Seconds after which a command that is not answered is aborted, and sent again
    #[arg(long, default_value = "30", value_name = "SECONDS")]
    pub command_timeout: CommandSeconds,

    /// Where names, ISIDs and policies are kept; default: /var/lib/causeway/initiator for root,
    /// else $XDG_STATE_HOME/causeway/initiator
    #[arg(
        long,
        env = "CAUSEWAY_INITIATOR_STATE",
        hide_env_values = true,
        value_name = "DIR"
    )]
    pub initiator_state: Option<PathBuf>,
}

/// A whole number of seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seconds(pub u64);

impl Default for Seconds {
    fn default() -> Self {
        Self(60)
    }
}

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds = text.parse().ok().filter(|it| *it <= 86_400 * 365);
        seconds
            .map(Self)
            .ok_or_else(|| format!("\"{text}\" is no number of seconds"))
    }
}

/// A key of persistent reservations (SPC-4 5.13 "Persistent reservations"), not 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReservationKey(pub u64);

impl FromStr for ReservationKey {
    type Err = String;

    /// `1f2e` or `0x1f2e`.
    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        let all = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_hexdigit());
        let key = u64::from_str_radix(digits, 16).ok().filter(|_| all);
        match key {
            Some(0) => Err("the key 0 means none".to_owned()),
            Some(key) => Ok(Self(key)),
            None => Err(format!(
                "\"{text}\" is no key of up to 16 hexadecimal digits"
            )),
        }
    }
}

/// A pause between discoveries, in whole seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RediscoverSeconds(pub u64);

impl Default for RediscoverSeconds {
    fn default() -> Self {
        Self(300)
    }
}

impl FromStr for RediscoverSeconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<Seconds>().map(|it| Self(it.0))
    }
}

/// A time limit of commands: a whole number of seconds, not 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandSeconds(pub u64);

impl Default for CommandSeconds {
    fn default() -> Self {
        Self(COMMAND_TIMEOUT.as_secs())
    }
}

impl FromStr for CommandSeconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<Seconds>()? {
            Seconds(0) => Err("a command needs some time".to_owned()),
            Seconds(seconds) => Ok(Self(seconds)),
        }
    }
}

/// A CHAP user and where the secret is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// CHAP_N.
    pub user: String,
    /// The file with the secret; one line end at its end does not belong to it.
    pub file: PathBuf,
}

impl FromStr for Credentials {
    type Err = String;

    /// `USER:FILE`; the user may be an IQN, so the file begins after the last colon that a path may
    /// follow.
    fn from_str(text: &str) -> Result<Self, String> {
        let form = || {
            format!(
                "\"{text}\" is not USER:FILE; the secret itself is never written on the command line"
            )
        };
        let (user, file) = text.rsplit_once(':').ok_or_else(form)?;
        if user.is_empty() || file.is_empty() {
            return Err(form());
        }
        Ok(Self {
            user: user.to_owned(),
            file: file.into(),
        })
    }
}

impl Credentials {
    /// Reads the secret.
    fn secret(&self) -> Result<Secret, HostError> {
        let named = self.file.display();
        let about = |what: String| {
            HostError::usage(
                format!("{named}: {what}"),
                "the file holds the secret and nothing else, and only its owner may read it",
            )
        };
        let facts = std::fs::metadata(&self.file).map_err(|error| about(error.to_string()))?;
        if facts.len() > SECRET_BYTES_MAX {
            return Err(about("too long for a secret".to_owned()));
        }
        let bytes = crate::secret_file::read(&self.file);
        let bytes = bytes.map_err(|error| about(error.to_string()))?;
        // One line end at its end does not belong to it.
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() < SECRET_BYTES_MIN {
            return Err(about(format!(
                "a secret has at least {SECRET_BYTES_MIN} bytes, this one has {}",
                line.len()
            )));
        }
        Ok(Secret::new(line))
    }
}

/// CRC32C on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum DigestMode {
    /// As the target wishes
    #[default]
    Allowed,
    /// Where the target can
    Preferred,
    /// Or no session
    Required,
    /// Never
    Never,
}

/// What has to show that a lost path is at rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteFailover {
    /// Only proof: a fence, or a new login on that path
    Strict,
    /// Proof, or 30 s
    #[default]
    Timed,
    /// Nothing; what most initiators do. UNSAFE: a late write may undo a newer one
    Fast,
}

/// Who writes to a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Other hosts too, perhaps
    #[default]
    Shared,
    /// This host alone
    Alone,
}

impl From<WriteFailover> for stale::Mode {
    fn from(mode: WriteFailover) -> Self {
        match mode {
            WriteFailover::Strict => Self::Strict,
            WriteFailover::Timed => Self::Timed,
            WriteFailover::Fast => Self::Fast,
        }
    }
}

impl From<Sharing> for stale::Sharing {
    fn from(sharing: Sharing) -> Self {
        match sharing {
            Sharing::Shared => Self::Shared,
            Sharing::Alone => Self::Alone,
        }
    }
}

impl Options {
    /// What is offered to targets.
    #[must_use]
    pub fn offer(&self) -> Offer {
        let digest = match self.digests {
            DigestMode::Allowed => DigestChoice::Allowed,
            DigestMode::Preferred => DigestChoice::Preferred,
            DigestMode::Required => DigestChoice::Required,
            DigestMode::Never => DigestChoice::Never,
        };
        Offer {
            header_digest: digest,
            data_digest: digest,
            ..Offer::default()
        }
    }

    /// The credentials, read from their files.
    pub(crate) fn credentials(&self) -> Result<Option<InitiatorChap>, HostError> {
        let Some(own) = &self.chap else {
            return Ok(None);
        };
        let target = match &self.mutual_chap {
            Some(theirs) => Some(TargetProof {
                user: Some(theirs.user.clone()),
                secret: theirs.secret()?,
                challenge: [0; iscsi::chap::CHALLENGE_BYTES],
                identifier: 0,
            }),
            None => None,
        };
        let secret = own.secret()?;
        if target.as_ref().is_some_and(|it| it.secret.same_as(&secret)) {
            return Err(HostError::usage(
                "both CHAP secrets are the same",
                "RFC 7143 9.2.1 forbids it: whoever knows one could play the other side",
            ));
        }
        Ok(Some(InitiatorChap {
            algorithms: ChapAlgorithm::ALL.to_vec(),
            user: own.user.clone(),
            secret,
            target,
        }))
    }

    /// The administrator's file.
    pub(crate) fn overrides(&self) -> Result<Overrides, HostError> {
        let Some(file) = &self.facts else {
            return Ok(Overrides::default());
        };
        read_overrides(file)
    }

    /// How long operations wait for a path.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(self.no_path_timeout.0)
    }

    /// How often an open volume looks for new portals; `None`: the URL's portals are all.
    pub(crate) fn rediscover(&self, url: &Url) -> Option<Duration> {
        let seconds = self.rediscover.0;
        let asks = !self.no_discover && url.hosts.len() == 1 && seconds > 0;
        asks.then(|| Duration::from_secs(seconds))
    }

    pub(crate) fn command_timeout(&self) -> Duration {
        Duration::from_secs(self.command_timeout.0)
    }

    /// Where state is kept.
    pub(crate) fn state_dir(&self) -> PathBuf {
        if let Some(dir) = &self.initiator_state {
            return dir.clone();
        }
        let absolute = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|it| it.is_absolute())
        };
        if let Some(state) = absolute("XDG_STATE_HOME") {
            return state.join("causeway/initiator");
        }
        match absolute("HOME") {
            Some(home) if home != Path::new("/root") && home != Path::new("/") => {
                home.join(".local/state/causeway/initiator")
            }
            Some(_) | None => "/var/lib/causeway/initiator".into(),
        }
    }
}

fn read_overrides(file: &Path) -> Result<Overrides, HostError> {
    let named = file.display();
    let hint = "docs/operate/multipath.md shows what the file may say";
    let bytes =
        std::fs::read(file).map_err(|error| HostError::usage(format!("{named}: {error}"), hint))?;
    let text = units::text::utf8(bytes)
        .map_err(|wrong| HostError::usage(format!("{named}:{}: {wrong}", wrong.line), hint))?;
    toml::from_str(&text).map_err(|error| {
        let message = error.to_string();
        HostError::usage(format!("{named}: {}", message.trim_end()), hint)
    })
}

#[cfg(test)]
mod test {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    fn parse(words: &[&str]) -> Result<Options, String> {
        let words = ["x"].iter().chain(words);
        Command::try_parse_from(words)
            .map(|it| it.options)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn every_option_of_the_interface_is_understood() {
        let words = [
            "--from",
            "10.0.0.1",
            "--from",
            "eth1",
            "--policy",
            "round-robin:1000",
            "--no-plan",
            "--no-discover",
            "--chap",
            "iqn.a:b:secrets/own",
            "--mutual-chap",
            "san:/etc/secret",
            "--initiator-name",
            "iqn.a:b",
            "--digests",
            "required",
        ];
        let options = parse(&words).unwrap();
        assert_eq!(options.from, ["10.0.0.1", "eth1"]);
        assert_eq!(options.policy.unwrap().to_string(), "round-robin:1000");
        assert!(options.no_plan && options.no_discover);
        let chap = options.chap.clone().unwrap();
        assert_eq!(
            (chap.user.as_str(), chap.file),
            ("iqn.a:b", PathBuf::from("secrets/own"))
        );
        assert_eq!(options.offer().data_digest, DigestChoice::Required);
        assert_eq!(options.patience(), Duration::from_secs(60));
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words() {
        for (words, says) in [
            (&["--policy", "fastest"][..], "is no policy"),
            (&["--chap", "user"], "USER:FILE"),
            (&["--mutual-chap", "a:b"], "--chap"),
            (&["--no-path-timeout", "soon"], "no number of seconds"),
        ] {
            let error = parse(words).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn secrets_come_from_files_and_weak_or_equal_ones_are_refused() {
        let dir = std::env::temp_dir().join(format!("causeway-secrets-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let long = write("long", "twelve-bytes-and-more\n");
        let short = write("short", "short\n");
        let chap = |own: &str, theirs: &str| {
            let (own, theirs) = (format!("me:{own}"), format!("san:{theirs}"));
            parse(&["--chap", &own, "--mutual-chap", &theirs])
                .unwrap()
                .credentials()
        };
        let refused = |result: Result<Option<InitiatorChap>, HostError>| result.unwrap_err().cause;
        assert!(refused(chap(&short, &long)).contains("at least 12 bytes"));
        assert!(refused(chap(&long, &long)).contains("the same"));
        assert!(refused(chap("/nowhere/at-all", &long)).contains("/nowhere/at-all"));
        let other = write("other", "another-secret-here\r\n");
        let both = chap(&long, &other).unwrap().unwrap();
        assert!(both.secret.same_as(&Secret::new(b"twelve-bytes-and-more")));
        let theirs = both.target.unwrap();
        assert!(theirs.secret.same_as(&Secret::new(b"another-secret-here")));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
