//! What the arguments of several commands have in common.

use crate::completion::{BLOCK_SIZES, BOOLEANS, CompletedArgument, Kind};
use crate::secret_file;
use crate::storage_args::StorageArgs;
use clap::Args;
use client::{Client, Proofs};
use manifest::problem::Problem;
use manifest::size::Size;
use output::{Every, Format};
use std::path::PathBuf;

/// Where a node's configuration is unless somebody says otherwise.
pub(crate) const NODE_TOML: &str = "/etc/causeway/node.toml";

/// Where the daemon's API is unless somebody says otherwise: as dist/node.toml has it.
pub(crate) const API_DEFAULT: &str = "unix:/run/causeway/api.sock";

// Options of every command. (A doc comment would stand in every command's help.)
#[derive(Args, Debug)]
pub(crate) struct Common {
    /// The daemon's API: unix:PATH, http://HOST:PORT or https://HOST:PORT
    #[arg(
        long,
        global = true,
        help_heading = "Options of every command",
        env = "CAUSEWAY_API",
        value_name = "ADDRESS",
        default_value = API_DEFAULT,
        hide_env_values = true
    )]
    pub(crate) api: String,

    /// File with a token of the API; needed over TCP, for reads too where `token_for_reads` is set
    #[arg(
        long,
        global = true,
        help_heading = "Options of every command",
        env = "CAUSEWAY_TOKEN_FILE",
        value_name = "FILE",
        hide_env_values = true
    )]
    pub(crate) token_file: Option<PathBuf>,

    /// File with the certificates that are believed over https: the daemon's own, or its
    /// authority's
    #[arg(
        long,
        global = true,
        help_heading = "Options of every command",
        env = "CAUSEWAY_CA",
        value_name = "FILE",
        hide_env_values = true
    )]
    pub(crate) ca: Option<PathBuf>,

    /// SHA-256 fingerprint of the certificate that is believed over https, as the daemon's log
    /// shows
    #[arg(
        long,
        global = true,
        help_heading = "Options of every command",
        env = "CAUSEWAY_FINGERPRINT",
        value_name = "HEX",
        hide_env_values = true,
        conflicts_with = "ca"
    )]
    pub(crate) fingerprint: Option<String>,

    /// Form of the output: a table for people, the API's document as JSON or YAML, or names alone
    #[arg(short, long, global = true, help_heading = "Options of every command", value_enum, default_value_t = Format::Table, value_name = "FORM")]
    pub(crate) output: Format,

    /// Lists without the line that names their columns
    #[arg(long, global = true, help_heading = "Options of every command")]
    pub(crate) no_headers: bool,

    /// Lists with these columns, in this order: --columns name,size
    #[arg(
        long,
        global = true,
        help_heading = "Options of every command",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    pub(crate) columns: Vec<String>,

    /// Show it again and again, every two seconds or so many, until Ctrl-C
    #[arg(
        long,
        global = true,
        help_heading = "Options of every command",
        value_name = "SECONDS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2"
    )]
    pub(crate) watch: Option<Every>,

    /// Do it although sessions are disturbed or data is lost
    #[arg(
        long,
        global = true,
        help_heading = "Options of every command",
        alias = "force"
    )]
    pub(crate) yes: bool,

    /// Only show what would be done
    #[arg(long, global = true, help_heading = "Options of every command")]
    pub(crate) dry_run: bool,
}

impl Common {
    /// A client of the daemon that is named.
    pub(crate) fn client(&self) -> Result<Client, Problem> {
        let token = self.token_file.as_deref().map(secret_file::secret);
        let proofs = Proofs {
            token: token.transpose()?,
            ca: self.ca.as_deref(),
            fingerprint: self.fingerprint.as_deref(),
        };
        Client::new(&self.api, proofs)
    }
}

/// One object.
#[derive(Args, Debug)]
pub(crate) struct Named {
    /// Its name, as the list of its kind shows it
    pub(crate) name: String,
}

/// An object and what of it shall change.
#[derive(Args, Debug)]
pub(crate) struct Assigned {
    /// The name of what is changed
    pub(crate) name: String,
    /// What shall change, as the command's summary lists it
    #[arg(required = true, value_name = "KEY=VALUE")]
    pub(crate) values: Vec<String>,
}

/// An object and its new name.
#[derive(Args, Debug)]
pub(crate) struct Renamed {
    /// The name that it has now
    pub(crate) name: String,
    /// Its new name
    pub(crate) to: String,
}

/// An object that shall go.
#[derive(Args, Debug)]
pub(crate) struct Deleted {
    /// The name of what is deleted
    pub(crate) name: String,
    /// Succeed where there is none
    #[arg(long)]
    pub(crate) if_exists: bool,
}

/// The properties of a new LUN.
#[derive(Args, Debug)]
pub(crate) struct LunFields {
    /// Size: 10G = 10GiB, 10GB is decimal, or a number of bytes
    #[arg(long)]
    pub(crate) size: Size,
    /// Bytes in a logical block: 512 or 4096 [default: 512]
    #[arg(long, value_name = "BYTES")]
    pub(crate) block_size: Option<u32>,
    /// Bytes in a physical block: 512 or 4096 [default: the logical block]
    #[arg(long, value_name = "BYTES")]
    pub(crate) physical_block_size: Option<u32>,
    /// Take space when blocks are first written; false takes all of it now [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub(crate) thin: Option<bool>,
    /// The pool that holds it [default: the one called default, or the only one]
    #[arg(long, conflicts_with = "backend")]
    pub(crate) pool: Option<String>,
    /// What holds it instead of a pool: memory, block:/dev/... or vhdx:FILE
    #[arg(long, value_name = "BACKEND")]
    pub(crate) backend: Option<String>,
    /// The most bytes that commands may hold at a time, over all sessions [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) bytes_in_flight_max: Option<Size>,
    /// How its writes are kept and its blocks checked, and what it may use.
    #[command(flatten)]
    pub(crate) storage: StorageArgs,
}

/// What may stand for the fields of a LUN, where a command makes one.
pub(crate) const fn lun_fields(verbs: &'static [&'static str]) -> [CompletedArgument; 5] {
    [
        (verbs, "block_size", Kind::Words(BLOCK_SIZES)),
        (verbs, "physical_block_size", Kind::Words(BLOCK_SIZES)),
        (verbs, "thin", Kind::Words(BOOLEANS)),
        (verbs, "pool", Kind::Name("pool")),
        (verbs, "backend", Kind::Words(&["memory", "block:"])),
    ]
}
