//! The words of the command line: diskspd's, with their values attached, and our long ones.

use super::model::{Access, Form, Mistake, Options, Profile, Rate, Source, Zone, ZoneExtent};
use super::size::size;
use std::path::PathBuf;
use std::time::Duration;

/// Long options of the initiator that have a value, for targets that are URLs.
pub const INITIATOR_VALUES: [&str; 14] = [
    "--from",
    "--policy",
    "--facts",
    "--chap",
    "--mutual-chap",
    "--initiator-name",
    "--digests",
    "--write-failover",
    "--sharing",
    "--no-path-timeout",
    "--initiator-state",
    "--command-timeout",
    "--rediscover",
    "--reservation-key",
];

/// And those that have none.
pub const INITIATOR_FLAGS: [&str; 2] = ["--no-plan", "--no-discover"];

/// Short options of diskspd that mean something on Windows only: what is said of them.
const WINDOWS_ONLY: [(&str, &str); 9] = [
    ("-a", "affinity: threads are spread over the cores in turn"),
    ("-n", "affinity: threads are spread over the cores in turn"),
    ("-e", "event tracing is Windows' own"),
    (
        "-y",
        "events are Windows' own; `--barrier` starts several runs at one moment",
    ),
    ("-I", "priorities of operations are Windows' own"),
    (
        "-l",
        "large pages: payload is pooled and page-aligned already",
    ),
    ("-x", "completion routines: there is one way to wait here"),
    (
        "-N",
        "flushing of mapped memory is for -Sm, which is not here",
    ),
    ("-P", "progress is shown each second on a terminal"),
];

/// What may also stand as a word of its own behind `-R`.
const FORMS: [&str; 6] = ["text", "xml", "json", "html", "svg", "csv"];

/// Reads the words.
///
/// # Errors
/// The first mistake, with what to write instead.
pub fn parse(words: &[String]) -> Result<Options, Mistake> {
    parse_over(Options::default(), words)
}

/// Reads the words over other defaults.
///
/// # Errors
/// As [`parse`].
pub fn parse_over(defaults: Options, words: &[String]) -> Result<Options, Mistake> {
    let mut options = defaults;
    options.command_line = format!("causeway bench {}", words.join(" "));
    // Sizes in blocks need the block, wherever it stands.
    for word in words {
        if let Some(value) = word.strip_prefix("-b") {
            options.block = bytes(word, value, 0)?;
        }
    }
    let mut parser = Parser {
        access: None,
        random_percent: None,
        parallel: false,
        like: (None, None),
        options,
    };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if let Some(name) = word.strip_prefix("--") {
            parser.long(word, name, &mut rest)?;
        } else if word == "-R" {
            let form = rest
                .as_slice()
                .first()
                .filter(|next| FORMS.contains(&next.as_str()));
            let form = form.map_or("", |next| next.as_str());
            if !form.is_empty() {
                rest.next();
            }
            parser.form(word, form)?;
        } else if word.len() > 1 && word.starts_with(['-', '/']) && !is_path(word) {
            parser.short(word)?;
        } else {
            parser.options.targets.push(word.clone());
        }
    }
    parser.finish()
}

/// diskspd takes `/b64K` as well as `-b64K`; here what begins with a slash is a path.
fn is_path(word: &str) -> bool {
    word.starts_with('/')
}

struct Parser {
    options: Options,
    /// `--compress` and `--dedupe`, where they were said.
    like: (Option<u8>, Option<u8>),
    access: Option<Access>,
    random_percent: Option<u8>,
    parallel: bool,
}

fn refuse<T>(word: &str, why: &str, instead: &str) -> Result<T, Mistake> {
    Err(Mistake::new(format!("{word}: {why}"), instead))
}

fn bytes(word: &str, value: &str, block: u64) -> Result<u64, Mistake> {
    let wrong = || {
        let letter = word.get(..2).unwrap_or(word);
        if value.is_empty() {
            Mistake::new(
                format!("{word} has no size"),
                format!("values stand right behind the letter: {letter}64K"),
            )
        } else {
            Mistake::new(
                format!("{word}: {value} is no size"),
                format!("write {letter}4096, {letter}64K, {letter}4M, {letter}1G"),
            )
        }
    };
    match size(value, block) {
        Some(0) | None => Err(wrong()),
        Some(bytes) => Ok(bytes),
    }
}

fn number(word: &str, value: &str, least: u64, most: u64) -> Result<u64, Mistake> {
    let letter = word.get(..2).unwrap_or(word);
    match value.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        Ok(_) => refuse(
            word,
            "out of range",
            &format!("{letter} takes {least} to {most}"),
        ),
        Err(_) if value.is_empty() => refuse(
            word,
            "a number is missing",
            &format!(
                "values stand right behind the letter: {letter}{}",
                least.max(8)
            ),
        ),
        Err(_) => refuse(
            word,
            &format!("{value} is no number"),
            &format!("{letter} takes {least} to {most}"),
        ),
    }
}

fn small(word: &str, value: &str, least: u32, most: u32) -> Result<u32, Mistake> {
    let number = number(word, value, least.into(), most.into())?;
    Ok(u32::try_from(number).expect("no more than a u32"))
}

fn percent(word: &str, value: &str) -> Result<u8, Mistake> {
    let number = number(word, value, 0, 100)?;
    Ok(u8::try_from(number).expect("no more than 100"))
}

/// Seconds, whole or with a point.
fn seconds(word: &str, value: &str) -> Result<Duration, Mistake> {
    let seconds: Option<f64> = value.parse().ok();
    match seconds {
        Some(seconds) if (0.0..=1e8).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => refuse(word, "no number of seconds", "such as -d30"),
    }
}

impl Parser {
    fn short(&mut self, word: &str) -> Result<(), Mistake> {
        let letter = word.get(..2).unwrap_or(word);
        let value = word.get(2..).unwrap_or("");
        let block = self.options.block;
        let options = &mut self.options;
        match letter {
            "-b" => {}
            "-B" => self.range(word, value)?,
            "-c" => options.create = Some(bytes(word, value, block)?),
            "-C" => options.cool_down = seconds(word, value)?,
            "-d" => self.duration(word, value)?,
            "-D" => {
                let millis = if value.is_empty() {
                    1000
                } else {
                    number(word, value, 1, 3_600_000)?
                };
                options.interval = Duration::from_millis(millis);
                options.series = true;
            }
            "-f" if value.chars().all(|c| "rst".contains(c)) && !value.is_empty() => {
                self.warn(word, "hints for Windows' cache");
            }
            "-f" => options.length = Some(bytes(word, value, block)?),
            "-F" => options.threads_total = Some(small(word, value, 1, 4096)?),
            "-g" => self.rate(word, value)?,
            "-h" => self.cache(word, "h")?,
            "-i" => options.burst = Some(small(word, value, 1, u32::MAX)?),
            "-j" => options.think = Duration::from_millis(number(word, value, 1, 3_600_000)?),
            "-L" if value.is_empty() => options.latency = true,
            "-o" => options.outstanding = small(word, value, 1, 4096)?,
            "-O" => options.outstanding_total = Some(small(word, value, 1, 65536)?),
            "-p" if value.is_empty() => self.parallel = true,
            "-r" => self.random(word, value)?,
            "-R" => self.form(word, value)?,
            "-s" => self.sequential(word, value)?,
            "-S" => self.cache(word, value)?,
            "-t" => options.threads = small(word, value, 1, 4096)?,
            "-T" => options.thread_stride = bytes(word, value, block)?,
            "-v" => options.verbose = true,
            "-w" => {
                options.write_percent = if value.is_empty() {
                    0
                } else {
                    percent(word, value)?
                }
            }
            "-W" => options.warm_up = seconds(word, value)?,
            "-z" => {
                options.seed = if value.is_empty() {
                    None
                } else {
                    Some(number(word, value, 0, u64::MAX)?)
                }
            }
            "-Z" => self.source(word, value)?,
            _ => return self.windows(word, letter),
        }
        Ok(())
    }

    fn duration(&mut self, word: &str, value: &str) -> Result<(), Mistake> {
        self.options.duration = seconds(word, value)?;
        if self.options.duration.is_zero() {
            return refuse(word, "a run has a duration", "-d1 or more");
        }
        Ok(())
    }

    fn warn(&mut self, word: &str, what: &str) {
        self.options
            .warnings
            .push(format!("{word} does nothing here: {what}"));
    }

    fn windows(&mut self, word: &str, letter: &str) -> Result<(), Mistake> {
        match WINDOWS_ONLY.iter().find(|(known, _)| *known == letter) {
            Some((_, what)) => {
                self.warn(word, what);
                Ok(())
            }
            None if letter == "-X" => refuse(
                word,
                "diskspd's XML profiles are not read here",
                "write the options out, or use --profile anvil, mpio or jetstress-like",
            ),
            None => refuse(
                word,
                "no such option",
                "`causeway bench --help` lists the options",
            ),
        }
    }

    /// `-B<base>[:<length>]`
    fn range(&mut self, word: &str, value: &str) -> Result<(), Mistake> {
        let block = self.options.block;
        let (base, length) = value
            .split_once(':')
            .map_or((value, None), |(a, b)| (a, Some(b)));
        let base = if base == "0" {
            0
        } else {
            bytes(word, base, block)?
        };
        self.options.base = Some(base);
        if let Some(length) = length {
            self.options.length = Some(bytes(word, length, block)?);
        }
        Ok(())
    }

    fn rate(&mut self, word: &str, value: &str) -> Result<(), Mistake> {
        let most = 1 << 40;
        self.options.rate = Some(match value.strip_suffix('i') {
            Some(iops) => Rate::Iops(number(word, iops, 1, most)?),
            None => Rate::BytesPerMillisecond(number(word, value, 1, most)?),
        });
        Ok(())
    }

    fn choose(&mut self, word: &str, access: Access) -> Result<(), Mistake> {
        let other = |known: &Access| {
            matches!(known, Access::Random { .. }) != matches!(access, Access::Random { .. })
        };
        if self.access.as_ref().is_some_and(other) {
            return refuse(
                word,
                "-r and -s cannot go together",
                "for a mixture write -rs<percent>",
            );
        }
        self.access = Some(access);
        Ok(())
    }

    fn sequential(&mut self, word: &str, value: &str) -> Result<(), Mistake> {
        let (interlocked, value) = value
            .strip_prefix('i')
            .map_or((false, value), |rest| (true, rest));
        let block = self.options.block;
        let stride = if value.is_empty() {
            block
        } else {
            bytes(word, value, block)?
        };
        let access = Access::Sequential {
            stride,
            interlocked,
            parallel: false,
        };
        self.choose(word, access)
    }

    fn random(&mut self, word: &str, value: &str) -> Result<(), Mistake> {
        if let Some(value) = value.strip_prefix("dpct") {
            return self.zones(word, value, false);
        }
        if let Some(value) = value.strip_prefix("dabs") {
            return self.zones(word, value, true);
        }
        if let Some(value) = value.strip_prefix('s') {
            self.random_percent = Some(percent(word, value)?);
            if self.access.is_some() {
                return Ok(());
            }
            let alignment = self.options.block;
            return self.choose(
                word,
                Access::Random {
                    alignment,
                    percent: 100,
                },
            );
        }
        let block = self.options.block;
        let alignment = if value.is_empty() {
            block
        } else {
            bytes(word, value, block)?
        };
        self.choose(
            word,
            Access::Random {
                alignment,
                percent: 100,
            },
        )
    }

    /// `90/10:10/90`: shares of operations and of the target, from its beginning on.
    fn zones(&mut self, word: &str, value: &str, absolute: bool) -> Result<(), Mistake> {
        let help = "pairs of operations and target, such as -rdpct90/10:10/90 or -rdabs80/1G:20/0";
        let mut zones = Vec::new();
        let (mut shares, mut parts) = (0u32, 0u32);
        for pair in value.split(':') {
            let Some((io, part)) = pair.split_once('/') else {
                return refuse(word, &format!("{pair} is no pair"), help);
            };
            let io_percent = percent(word, io)?;
            let extent = match (absolute, part) {
                (_, "0") => ZoneExtent::Rest,
                (true, _) => ZoneExtent::Bytes(bytes(word, part, self.options.block)?),
                (false, _) => ZoneExtent::Percent(percent(word, part)?),
            };
            shares += u32::from(io_percent);
            if let ZoneExtent::Percent(part) = extent {
                parts += u32::from(part);
            }
            zones.push(Zone { io_percent, extent });
        }
        let rest_is_last = zones
            .iter()
            .rev()
            .skip(1)
            .all(|zone| zone.extent != ZoneExtent::Rest);
        if shares > 100 || parts > 100 || !rest_is_last {
            return refuse(
                word,
                "shares of more than 100, or a rest that is not the last",
                help,
            );
        }
        if shares < 100 {
            let io_percent = u8::try_from(100 - shares).expect("no more than 100");
            if zones.iter().any(|zone| zone.extent == ZoneExtent::Rest) {
                return refuse(word, "the shares of operations are less than 100", help);
            }
            zones.push(Zone {
                io_percent,
                extent: ZoneExtent::Rest,
            });
        }
        self.options.zones = zones;
        if self.access.is_none() {
            let alignment = self.options.block;
            return self.choose(
                word,
                Access::Random {
                    alignment,
                    percent: 100,
                },
            );
        }
        Ok(())
    }

    fn form(&mut self, word: &str, value: &str) -> Result<(), Mistake> {
        let value = match value.strip_prefix('p') {
            Some(_) => return refuse(word, "profiles are not printed", "-Rtext, -Rxml or -Rjson"),
            None => value,
        };
        self.options.form = match value.trim() {
            "" | "text" => Form::Text,
            "xml" => Form::Xml,
            "json" => Form::Json,
            "html" => Form::Html,
            "svg" => Form::Svg,
            "csv" => Form::Csv,
            _ => {
                return refuse(
                    word,
                    "no such form",
                    "-Rtext, -Rxml, -Rjson, -Rhtml, -Rsvg or -Rcsv",
                );
            }
        };
        Ok(())
    }

    /// `-S[bhmruw]`
    fn cache(&mut self, word: &str, value: &str) -> Result<(), Mistake> {
        if value.is_empty() {
            self.options.unbuffered = true;
        }
        for letter in value.chars() {
            match letter {
                'h' => {
                    self.options.unbuffered = true;
                    self.options.write_through = true;
                }
                'u' => self.options.unbuffered = true,
                'w' => self.options.write_through = true,
                'b' => self.warn(
                    word,
                    "files are read and written past the page cache where that is possible",
                ),
                'r' => self.warn(word, "remote caches are Windows' own"),
                'm' => {
                    return refuse(
                        word,
                        "a volume is not mapped into memory",
                        "-Su, -Sw or -Sh; for files behind the page cache there is fio --ioengine=mmap",
                    );
                }
                _ => return refuse(word, "no such cache mode", "-Su, -Sw or -Sh"),
            }
        }
        Ok(())
    }

    fn source(&mut self, word: &str, value: &str) -> Result<(), Mistake> {
        self.options.source = match value.split_once(',') {
            None if value.is_empty() => Source::Zeroes,
            None if value == "r" => Source::RandomEach,
            None => Source::Random {
                bytes: bytes(word, value, 0)?,
            },
            Some((size, path)) => Source::File {
                bytes: bytes(word, size, 0)?,
                path: PathBuf::from(path),
            },
        };
        Ok(())
    }

    fn long<'a>(
        &mut self,
        word: &str,
        name: &str,
        rest: &mut impl Iterator<Item = &'a String>,
    ) -> Result<(), Mistake> {
        let (name, attached) = name
            .split_once('=')
            .map_or((name, None), |(a, b)| (a, Some(b)));
        let mut value = || {
            let next = attached.map(str::to_owned).or_else(|| rest.next().cloned());
            next.ok_or_else(|| {
                Mistake::new(format!("--{name} has no value"), "causeway bench --help")
            })
        };
        let options = &mut self.options;
        let full = format!("--{name}");
        if INITIATOR_VALUES.contains(&full.as_str()) {
            options.initiator.push(full);
            options.initiator.push(value()?);
            return Ok(());
        }
        if INITIATOR_FLAGS.contains(&full.as_str()) {
            options.initiator.push(full);
            return Ok(());
        }
        match name {
            "verify" => options.verify = true,
            // What happens anyway, said aloud.
            "plan" | "per-path" => {}
            "record-tcpinfo" => options.record_tcp = true,
            "compress" => self.like.0 = Some(percent(word, &value()?)?),
            "dedupe" => self.like.1 = Some(percent(word, &value()?)?),
            "fault" => {
                return refuse(
                    word,
                    "this program breaks nothing of the host that it runs on",
                    "`causeway lab fault` cuts cables, cards and targets of a test bed under such a load",
                );
            }
            "destroy" => options.destroy = true,
            "fill" => options.fill = true,
            "quiet" => options.quiet = true,
            "barrier" => options.barrier = true,
            "driven" => options.driven = true,
            "autotune" => options.autotune = true,
            "deadline" => options.deadline = seconds(word, &value()?)?,
            "output" => options.output = Some(value()?.into()),
            "control" => options.control = Some(value()?.into()),
            "cores" => {
                let cores = number(word, &value()?, 1, 1024)?;
                options.cores = Some(u16::try_from(cores).expect("no more than 1024"));
            }
            "profile" => options.profile = Some(profile(word, &value()?)?),
            _ => {
                return refuse(
                    word,
                    "no such option",
                    "`causeway bench --help` lists the options",
                );
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Options, Mistake> {
        if let (compress, dedupe) = self.like
            && (compress.is_some() || dedupe.is_some())
        {
            if self.options.source != Source::Pattern {
                return refuse(
                    "-Z",
                    "-Z says what is written, and so do --compress and --dedupe",
                    "leave one of them out",
                );
            }
            self.options.source = Source::Like {
                compress: compress.unwrap_or(0),
                dedupe: dedupe.unwrap_or(0),
            };
        }
        let block = self.options.block;
        let default = Access::Sequential {
            stride: block,
            interlocked: false,
            parallel: false,
        };
        self.options.access = match (self.access.unwrap_or(default), self.random_percent) {
            (Access::Random { alignment, .. }, Some(percent)) => {
                Access::Random { alignment, percent }
            }
            (Access::Sequential { .. }, Some(_)) => {
                return refuse(
                    "-rs",
                    "-rs and -s cannot go together",
                    "leave -s out: -rs mixes both",
                );
            }
            (
                Access::Sequential {
                    interlocked: true, ..
                },
                None,
            ) if self.parallel => {
                return refuse(
                    "-p",
                    "-p and -si cannot go together",
                    "leave one of them out",
                );
            }
            (
                Access::Sequential {
                    stride,
                    interlocked,
                    ..
                },
                None,
            ) => Access::Sequential {
                stride,
                interlocked,
                parallel: self.parallel,
            },
            (access @ Access::Random { .. }, None) => access,
        };
        self.check()
    }

    fn check(mut self) -> Result<Options, Mistake> {
        let options = &mut self.options;
        let random = matches!(options.access, Access::Random { .. });
        if random && self.parallel {
            return refuse(
                "-p",
                "-p is for sequential operations",
                "leave out -r or -p",
            );
        }
        if !options.zones.is_empty() && !random {
            return refuse(
                "-rd",
                "a distribution is for random operations",
                "leave -s out",
            );
        }
        if options.outstanding_total.is_some() && options.threads_total.is_none() {
            return refuse(
                "-O",
                "-O goes with -F",
                "write -o for each target, or add -F<threads>",
            );
        }
        if options.burst.is_some() == options.think.is_zero() {
            return refuse("-i", "-i and -j go together", "such as -i32 -j10");
        }
        if options.verify && options.source != Source::Pattern {
            return refuse(
                "-Z",
                "with --verify every write carries its stamps",
                "leave out -Z or --verify",
            );
        }
        Ok(self.options)
    }
}

fn profile(word: &str, name: &str) -> Result<Profile, Mistake> {
    Ok(match name {
        "anvil" => Profile::Anvil,
        "mpio" => Profile::Mpio,
        "jetstress-like" => Profile::JetstressLike,
        _ => return refuse(word, "no such profile", "anvil, mpio or jetstress-like"),
    })
}
