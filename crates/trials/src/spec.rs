//! What may be asked of a bench run, within which bounds, and the words of the bench for it.

use manifest::code::Code;
use manifest::problem::{FieldFault, Problem};
use manifest::secret::Secret;
use manifest::size::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MEBIBYTE: u64 = 1 << 20;

/// Bounds of a run.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct Limits {
    /// Measured time and warm-up together, in seconds.
    pub seconds_max: u32,
    /// Threads that submit operations.
    pub threads_max: u32,
    /// Operations in flight of each thread.
    pub outstanding_max: u32,
    /// Bytes of an operation.
    pub block_bytes_max: u64,
    /// Bytes in flight of all threads together.
    pub in_flight_bytes_max: u64,
    /// Bytes of a target in memory.
    pub memory_bytes_max: u64,
}

impl Limits {
    /// Those that hold.
    pub const ALL: Self = Self {
        seconds_max: 3600,
        threads_max: 16,
        outstanding_max: 512,
        block_bytes_max: 16 * MEBIBYTE,
        in_flight_bytes_max: 1024 * MEBIBYTE,
        memory_bytes_max: 1024 * MEBIBYTE,
    };
}

/// A run that somebody asks for: exactly one of `lun`, `memory` and `url`.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, JsonSchema, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct WantedRun {
    /// What people call it; at most 64 characters.
    pub name: Option<String>,
    /// A LUN of this node, by name.
    pub lun: Option<String>,
    /// So much memory of the bench itself: what the bench costs without any storage.
    pub memory: Option<Size>,
    /// A LUN anywhere, as `iscsi://HOST[:PORT]/IQN/LUN`.
    pub url: Option<String>,
    /// Operations: size, order, share of writes, depth, time.
    pub load: Load,
    /// Over which paths.
    pub paths: PathWishes,
    /// The user that is named to the target of a URL.
    pub chap_user: Option<String>,
    /// What proves that user to it.
    pub chap_secret: Option<Secret>,
}

/// Where operations go.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Anywhere.
    #[default]
    Random,
    /// One after the other.
    Sequential,
}

/// What is done to the target.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct Load {
    /// Bytes of an operation: 512 to 16M, a multiple of 512.
    pub block: Size,
    /// Where operations go.
    pub access: Access,
    /// Writes among a hundred operations.
    pub write_percent: u8,
    /// Threads that submit operations: 1 to 16.
    pub threads: u32,
    /// Operations in flight, of each thread: 1 to 512.
    pub outstanding: u32,
    /// The measured time.
    pub seconds: u32,
    /// What runs before it and does not count.
    pub warm_up_seconds: u32,
    /// Only so much of the target is used.
    pub region: Option<Size>,
    /// The most operations a second of each thread.
    pub iops_max: Option<u32>,
    /// A write counts when it is on stable media.
    pub write_through: bool,
    /// What is written carries stamps, what is read is checked, and all is read back at the end.
    pub verify: bool,
    /// All that is used is written once before.
    pub fill: bool,
    /// The seed of the order of operations.
    pub seed: u64,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            block: Size::from_bytes(4096).unwrap_or_default(),
            access: Access::Random,
            write_percent: 0,
            threads: 1,
            outstanding: 32,
            seconds: 10,
            warm_up_seconds: 2,
            region: None,
            iops_max: None,
            write_through: false,
            verify: false,
            fill: false,
            seed: 0,
        }
    }
}

/// Over which paths the target of a URL, or a LUN of this node, is reached.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct PathWishes {
    /// Ports of this machine, by name or address; empty: what the planner chooses.
    pub from: Vec<String>,
    /// The policy, as `causeway attach --policy` takes it.
    pub policy: Option<String>,
    /// Every path is used, without a plan.
    pub no_plan: bool,
}

/// The load as it is shown: sizes in bytes, all defaults filled in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct LoadView {
    /// Bytes of an operation.
    pub block_bytes: u64,
    /// Where operations go.
    pub access: Access,
    /// Writes among a hundred operations.
    pub write_percent: u8,
    /// How many submit operations.
    pub threads: u32,
    /// Operations in flight, of each thread.
    pub outstanding: u32,
    /// The measured time.
    pub seconds: u32,
    /// What does not count before it.
    pub warm_up_seconds: u32,
    /// What of the target is used; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region_bytes: Option<u64>,
    /// The most operations a second of each thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops_max: Option<u32>,
    /// Writes count when they are on stable media.
    pub write_through: bool,
    /// What is read is checked.
    pub verify: bool,
    /// All is written once before.
    pub fill: bool,
    /// One seed gives one order of operations.
    pub seed: u64,
}

/// What the load goes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A LUN of this node.
    Lun(String),
    /// Memory of the bench.
    Memory(u64),
    /// A URL.
    Url(String),
}

impl Kind {
    /// `lun`, `memory` or `url`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Lun(_) => "lun",
            Self::Memory(_) => "memory",
            Self::Url(_) => "url",
        }
    }

    /// What people call it.
    #[must_use]
    pub fn target(&self) -> String {
        match self {
            Self::Lun(name) | Self::Url(name) => name.clone(),
            Self::Memory(bytes) => {
                let size = Size::from_bytes(*bytes).unwrap_or_default();
                format!("memory:{size}")
            }
        }
    }
}

/// A run that may be started: everything about it is within its bounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    /// What people call it.
    pub name: String,
    /// What it goes to.
    pub kind: Kind,
    /// Within its bounds.
    pub load: LoadView,
    /// Over which paths.
    pub paths: PathWishes,
    /// Who it is to the target of a URL.
    pub chap: Option<(String, Secret)>,
}

/// Faults that were found.
#[derive(Default)]
struct Faults(Vec<FieldFault>);

impl Faults {
    fn add(&mut self, field: &str, message: impl Into<String>) {
        self.0.push(FieldFault {
            field: field.to_owned(),
            message: message.into(),
        });
    }

    fn bounds(&mut self, field: &str, value: u64, least: u64, most: u64) {
        if !(least..=most).contains(&value) {
            self.add(field, format!("{value}: write {least} to {most}"));
        }
    }
}

/// A word that can stand behind an option, and is no option itself.
fn is_plain(word: &str) -> bool {
    let plain = |it: char| it.is_ascii_alphanumeric() || ".:_-%".contains(it);
    !word.is_empty() && word.len() <= 64 && !word.starts_with('-') && word.chars().all(plain)
}

impl WantedRun {
    /// The run, where all of it is within its bounds.
    ///
    /// # Errors
    /// Every member that is not.
    pub fn check(self) -> Result<Spec, Problem> {
        let mut faults = Faults::default();
        let name = self.name.unwrap_or_default();
        if name.chars().count() > 64 || name.chars().any(char::is_control) {
            faults.add("name", "at most 64 characters, none of which is a control");
        }
        let memory = self.memory.map(Size::bytes);
        let kind = match (self.lun, memory, self.url) {
            (Some(lun), None, None) => Some(Kind::Lun(lun)),
            (None, Some(bytes), None) => Some(Kind::Memory(bytes)),
            (None, None, Some(url)) => Some(Kind::Url(url)),
            _ => None,
        };
        match &kind {
            None => faults.add("", "name exactly one of lun, memory and url"),
            Some(Kind::Lun(_)) => {}
            Some(Kind::Memory(bytes)) => {
                faults.bounds("memory", *bytes, MEBIBYTE, Limits::ALL.memory_bytes_max);
            }
            Some(Kind::Url(url)) => {
                let fits = url.len() <= 1024 && url.chars().all(|it| it.is_ascii_graphic());
                if !fits || !url.starts_with("iscsi://") {
                    faults.add("url", "write iscsi://HOST[:PORT]/IQN/LUN");
                }
            }
        }
        let is_url = matches!(kind, Some(Kind::Url(_)));
        let chap = match (self.chap_user, self.chap_secret) {
            (None, None) => None,
            (Some(user), Some(secret)) if is_url => {
                if !is_plain(&user) {
                    faults.add("chap_user", "at most 64 letters, digits, and . : _ - %");
                }
                Some((user, secret))
            }
            (Some(_), Some(_)) => {
                faults.add("chap_user", "only the target of a URL asks for it");
                None
            }
            _ => {
                faults.add("chap_user", "chap_user and chap_secret go together");
                None
            }
        };
        let has_paths = self.paths != PathWishes::default();
        if has_paths && matches!(kind, Some(Kind::Memory(_))) {
            faults.add("paths", "memory has none");
        }
        check_paths(&self.paths, &mut faults);
        check_load(&self.load, &mut faults);
        match kind {
            Some(kind) if faults.0.is_empty() => Ok(Spec {
                name,
                kind,
                load: LoadView::of(&self.load),
                paths: self.paths,
                chap,
            }),
            _ => Err(refused("the run", faults.0)),
        }
    }
}

/// A problem that has all faults of a request.
pub(crate) fn refused(what: &str, faults: Vec<FieldFault>) -> Problem {
    let all: Vec<String> = faults
        .iter()
        .map(|fault| match fault.field.as_str() {
            "" => fault.message.clone(),
            field => format!("{field}: {}", fault.message),
        })
        .collect();
    Problem::new(
        Code::BenchUsage,
        format!("{what} cannot be started: {}", all.join("; ")),
    )
    .hint("`GET /api/v1/bench` has the bounds")
    .fields(faults)
}

fn check_paths(paths: &PathWishes, faults: &mut Faults) {
    if paths.from.len() > 16 || !paths.from.iter().all(|word| is_plain(word)) {
        faults.add("paths.from", "at most 16 names or addresses of NICs");
    }
    let policy = paths.policy.as_deref();
    if policy.is_some_and(|policy| !is_plain(policy)) {
        faults.add("paths.policy", "such as round-robin or least-queue-depth");
    }
}

fn check_load(load: &Load, faults: &mut Faults) {
    let all = Limits::ALL;
    let block = load.block.bytes();
    faults.bounds("load.block", block, 512, all.block_bytes_max);
    if !block.is_multiple_of(512) {
        faults.add("load.block", "a multiple of 512");
    }
    faults.bounds("load.write_percent", load.write_percent.into(), 0, 100);
    faults.bounds(
        "load.threads",
        load.threads.into(),
        1,
        all.threads_max.into(),
    );
    let most = all.outstanding_max.into();
    faults.bounds("load.outstanding", load.outstanding.into(), 1, most);
    faults.bounds(
        "load.seconds",
        load.seconds.into(),
        1,
        all.seconds_max.into(),
    );
    let together = u64::from(load.seconds) + u64::from(load.warm_up_seconds);
    if together > u64::from(all.seconds_max) {
        let what = format!("with load.seconds at most {}", all.seconds_max);
        faults.add("load.warm_up_seconds", what);
    }
    let in_flight = block
        .saturating_mul(load.threads.into())
        .saturating_mul(load.outstanding.into());
    if in_flight > all.in_flight_bytes_max {
        let most = all.in_flight_bytes_max;
        let what = format!("{in_flight} bytes would be in flight; at most {most}");
        faults.add("load.outstanding", what);
    }
    if let Some(region) = load.region
        && (region.bytes() < block || !region.bytes().is_multiple_of(512))
    {
        faults.add("load.region", "at least load.block, a multiple of 512");
    }
    if load.iops_max == Some(0) {
        faults.add("load.iops_max", "1 at least");
    }
    if load.verify && !block.is_multiple_of(512) {
        faults.add("load.verify", "needs blocks that are multiples of 512");
    }
}

impl LoadView {
    fn of(load: &Load) -> Self {
        Self {
            block_bytes: load.block.bytes(),
            access: load.access,
            write_percent: load.write_percent,
            threads: load.threads,
            outstanding: load.outstanding,
            seconds: load.seconds,
            warm_up_seconds: load.warm_up_seconds,
            region_bytes: load.region.map(Size::bytes),
            iops_max: load.iops_max,
            write_through: load.write_through,
            verify: load.verify,
            fill: load.fill,
            seed: load.seed,
        }
    }
}

impl Spec {
    /// It changes what is on its target.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.load.write_percent > 0 || self.load.fill
    }

    /// What is on it stays somebody's: memory is the bench's own.
    #[must_use]
    pub fn destroys(&self) -> bool {
        self.writes() && !matches!(self.kind, Kind::Memory(_))
    }

    /// The bench's words, with `target` and `more` behind them; each is a word of its own.
    #[must_use]
    pub fn words(&self, target: &str, more: &[String]) -> Vec<String> {
        let load = &self.load;
        let mut words = vec![format!("-b{}", load.block_bytes)];
        words.push(match load.access {
            Access::Random => "-r".to_owned(),
            Access::Sequential => "-s".to_owned(),
        });
        words.push(format!("-w{}", load.write_percent));
        words.push(format!("-t{}", load.threads));
        words.push(format!("-o{}", load.outstanding));
        words.push(format!("-d{}", load.seconds));
        words.push(format!("-W{}", load.warm_up_seconds));
        words.extend(load.region_bytes.map(|bytes| format!("-f{bytes}")));
        words.extend(load.iops_max.map(|iops| format!("-g{iops}i")));
        words.push(format!("-z{}", load.seed));
        words.push("-D".to_owned());
        let switches = [
            (load.write_through, "-Sw"),
            (load.verify, "--verify"),
            (load.fill, "--fill"),
            (self.destroys(), "--destroy"),
            (self.paths.no_plan, "--no-plan"),
        ];
        let on = switches.iter().filter(|(is_on, _)| *is_on);
        words.extend(on.map(|(_, word)| (*word).to_owned()));
        for nic in &self.paths.from {
            words.extend(["--from".to_owned(), nic.clone()]);
        }
        if let Some(policy) = &self.paths.policy {
            words.extend(["--policy".to_owned(), policy.clone()]);
        }
        words.extend_from_slice(more);
        words.push(target.to_owned());
        words
    }

    /// What a shell would run for it.
    #[must_use]
    pub fn command_line(&self, target: &str) -> String {
        let words = self.words(target, &[]);
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        format!("causeway bench {}", words.join(" "))
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "-_./:,=%[]+@".contains(it);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod test {
    use super::*;
    use serde_json::{Value, json};

    fn check(body: Value) -> Result<Spec, Problem> {
        serde_json::from_value::<WantedRun>(body).unwrap().check()
    }

    #[test]
    fn a_run_is_the_words_of_the_bench() {
        let load = json!({ "block": "8K", "write_percent": 30, "region": "1G", "iops_max": 50, "verify": true });
        let spec = check(
            json!({ "lun": "vm01", "load": load, "paths": { "from": ["eth0"], "policy": "round-robin" } }),
        );
        let spec = spec.unwrap();
        assert!(spec.destroys());
        assert_eq!(
            spec.command_line("iscsi://h/i/0"),
            "causeway bench -b8192 -r -w30 -t1 -o32 -d10 -W2 -f1073741824 -g50i -z0 -D --verify --destroy --from eth0 \
             --policy round-robin iscsi://h/i/0"
        );
        assert_eq!(quoted("a b'c"), "'a b'\\''c'");
    }

    #[test]
    fn memory_is_written_without_asking_and_everything_else_is_not() {
        let writes = json!({ "write_percent": 100 });
        let memory = check(json!({ "memory": "64M", "load": writes })).unwrap();
        assert!(memory.writes() && !memory.destroys());
        assert_eq!(memory.kind.target(), "memory:64MiB");
        let fill = check(json!({ "lun": "a", "load": { "fill": true } })).unwrap();
        assert!(fill.destroys());
        assert!(!check(json!({ "lun": "a" })).unwrap().destroys());
    }

    #[test]
    fn everything_that_is_out_of_bounds_is_named_at_once() {
        let load = json!({ "block": 1000, "threads": 0, "outstanding": 513, "seconds": 3601, "write_percent": 101, "iops_max": 0,
                           "region": 700 });
        let problem = check(json!({ "name": "a\nb", "load": load })).unwrap_err();
        let named: Vec<&str> = problem.fields.iter().map(|it| it.field.as_str()).collect();
        for field in [
            "name",
            "",
            "load.block",
            "load.threads",
            "load.outstanding",
            "load.seconds",
            "load.write_percent",
            "load.iops_max",
            "load.region",
        ] {
            assert!(named.contains(&field), "{field}: {named:?}");
        }
    }

    #[test]
    fn words_that_try_to_be_options_are_refused() {
        for body in [
            json!({ "lun": "a", "paths": { "from": ["--chap"] } }),
            json!({ "lun": "a", "paths": { "policy": "-x" } }),
            json!({ "lun": "a", "paths": { "from": ["eth0 --output x"] } }),
            json!({ "url": "--output=/etc/passwd" }),
            json!({ "url": "/dev/sda" }),
            json!({ "url": "iscsi://h/i/0 -c1G" }),
            json!({ "url": "iscsi://h/i/0", "chap_user": "u" }),
            json!({ "lun": "a", "chap_user": "u", "chap_secret": "secret of 12 bytes" }),
            json!({ "lun": "a", "url": "iscsi://h/i/0" }),
            json!({ "memory": "2G" }),
            json!({ "memory": "1M", "load": { "block": "16M", "outstanding": 512 } }),
        ] {
            assert!(check(body.clone()).is_err(), "{body}");
        }
    }
}
