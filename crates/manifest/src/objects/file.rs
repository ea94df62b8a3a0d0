//! `objects.toml`: from text to wanted objects, with the line of every key.

use super::backing::BackendSpec;
use super::check::{LUN_ID_MAX, MAINTENANCE_GRACE_SECONDS_MAX, check_each};
use super::export::STORED;
use super::model::Redirect;
use super::sections::{SECTION_GRANT, SECTION_HOST, SECTION_LUN, SECTION_TARGET};
use super::spec::{ChapSpec, GrantSpec, HostSpec, LunSpec, ObjectSet, SecretSpec, TargetSpec};
use super::storage::{FIELDS, Storage};
use crate::code::Code;
use crate::problem::Fault;
use crate::secret::Secret;
use crate::toml_table::{Mistake, Source, Table};
use std::collections::BTreeMap;
use std::path::Path;

/// Reads a secret file.
pub type ReadSecret<'r> = &'r dyn Fn(&Path) -> std::io::Result<Vec<u8>>;

/// By section and name: the line of the object, and of each of its keys.
type Lines = BTreeMap<(&'static str, String), (usize, BTreeMap<String, usize>)>;

/// The objects of a file, and where each stands.
#[derive(Debug)]
pub struct FileObjects {
    /// What is wanted.
    pub set: ObjectSet,
    file: String,
    lines: Lines,
}

impl FileObjects {
    /// A fault with its place in the file, where the object comes from there.
    #[must_use]
    pub fn locate(&self, fault: &Fault) -> String {
        let found = self
            .lines
            .iter()
            .find(|((section, name), _)| *section == fault.section && *name == fault.object);
        let Some((_, (line, keys))) = found else {
            return fault.to_string();
        };
        // A key such as chap.user stands on the line of chap.
        let first = fault.key.split('.').next().unwrap_or_default();
        let line = keys.get(first).unwrap_or(line);
        format!("{}:{line}: {fault}", self.file)
    }
}

/// Reads the text of `file`, whose relative paths start at `base`; `read_secret` reads the files
/// that hold secrets.
///
/// # Errors
/// Every mistake that was found.
pub fn parse(
    file: &Path,
    base: &Path,
    text: &str,
    read_secret: ReadSecret<'_>,
) -> Result<FileObjects, Vec<Mistake>> {
    let source = Source::new(&file.display().to_string(), text);
    let mut out = FileObjects {
        set: ObjectSet::default(),
        file: file.display().to_string(),
        lines: BTreeMap::new(),
    };
    let mut mistakes_of_rules = Vec::new();
    if let Some(table) = source.parse() {
        let reader = Reader { base, read_secret };
        reader.read(&Table::top(&source, &table), &mut out);
        mistakes_of_rules = check_each(&out.set);
    }
    let mut mistakes = source.into_mistakes();
    mistakes.extend(mistakes_of_rules.iter().map(|fault| mistake(&out, fault)));
    mistakes.sort_by_key(|mistake| mistake.line);
    if mistakes.is_empty() {
        return Ok(out);
    }
    Err(mistakes)
}

fn mistake(objects: &FileObjects, fault: &Fault) -> Mistake {
    let located = objects
        .lines
        .iter()
        .find(|((section, name), _)| *section == fault.section && *name == fault.object);
    let first = fault.key.split('.').next().unwrap_or_default();
    let line = located.map_or(0, |(_, (line, keys))| *keys.get(first).unwrap_or(line));
    Mistake {
        file: objects.file.clone(),
        line,
        key: format!("{} \"{}\", {}", fault.section, fault.object, fault.key),
        message: fault.message.clone(),
        code: Code::ConfigValue,
        is_absence: false,
    }
}

struct Reader<'r> {
    base: &'r Path,
    read_secret: ReadSecret<'r>,
}

impl Reader<'_> {
    fn read(&self, top: &Table<'_, '_>, out: &mut FileObjects) {
        if let Some(schema) = top.integer("schema", 0, u64::MAX)
            && schema.value != 1
        {
            top.wrong("schema", "this version reads schema = 1");
        }
        for table in top.tables(SECTION_LUN) {
            if let Some(lun) = self.read_lun(&table) {
                note(out, SECTION_LUN, lun.name.clone(), &table);
                out.set.lun.push(lun);
            }
        }
        for table in top.tables(SECTION_TARGET) {
            if let Some(target) = read_target(&table) {
                note(out, SECTION_TARGET, target.name.clone(), &table);
                out.set.target.push(target);
            }
        }
        for table in top.tables(SECTION_HOST) {
            if let Some(host) = self.read_host(&table) {
                note(out, SECTION_HOST, host.name.clone(), &table);
                out.set.host.push(host);
            }
        }
        for table in top.tables(SECTION_GRANT) {
            if let Some(grant) = read_grant(&table) {
                let target = grant.target.as_deref().unwrap_or("?");
                let name = format!("{}:{target}:{}", grant.host, grant.lun);
                note(out, SECTION_GRANT, name, &table);
                out.set.grant.push(grant);
            }
        }
        top.finish(&["schedule", "user", "mirror", "snapshot"]);
    }

    fn read_lun(&self, table: &Table<'_, '_>) -> Option<LunSpec> {
        let name = table.required_text("name", "name = \"vm01\"");
        let size = table.size("size");
        if size.is_none() && !table.keys().any(|key| key == "size") {
            table.missing("size", "size = \"10GiB\"");
        }
        let number = |key| {
            let placed = table.integer(key, 1, u64::from(u32::MAX));
            placed
                .map(|placed| u32::try_from(placed.value).expect("read with u32::MAX as its limit"))
        };
        let block_size = number("block_size");
        let physical_block_size = number("physical_block_size");
        let thin = table.boolean("thin");
        let pool = table.text("pool").map(|pool| pool.value);
        let backend = BackendSpec::read(table, self.base);
        let most = table.size("bytes_in_flight_max");
        let mut storage = Storage::default();
        for field in FIELDS {
            field.read(table, &mut storage);
        }
        table.finish(&["mirror", "format"]);
        Some(LunSpec {
            block_size,
            physical_block_size,
            thin,
            pool,
            backend,
            bytes_in_flight_max: most.map(|most| most.value),
            storage,
            ..LunSpec::new(&name?.value, size?.value)
        })
    }

    fn read_host(&self, table: &Table<'_, '_>) -> Option<HostSpec> {
        let name = table.required_text("name", "name = \"esx01\"");
        let iqn = table.texts("iqn");
        if iqn.is_none() && !table.keys().any(|key| key == "iqn") {
            table.missing("iqn", "iqn = [\"iqn.1998-01.com.vmware:esx01\"]");
        }
        let chap = table.table("chap");
        let has_chap = chap.is_some();
        let chap = chap.and_then(|chap| self.read_chap(&chap));
        let most = table.size("bytes_in_flight_max");
        table.finish(&[]);
        if has_chap && chap.is_none() {
            // Never the same host without its authentication.
            return None;
        }
        Some(HostSpec {
            name: name?.value,
            iqn: iqn?.into_iter().map(|iqn| iqn.value).collect(),
            chap,
            bytes_in_flight_max: most.map(|most| most.value),
        })
    }

    fn read_chap(&self, table: &Table<'_, '_>) -> Option<ChapSpec> {
        let user = table.required_text("user", "user = \"esx01\"");
        let secret = self.read_secret(table, "secret_file");
        if secret.is_none() && !table.keys().any(|key| key == "secret_file") {
            table.missing("secret_file", "secret_file = \"esx01.secret\"");
        }
        let mutual_user = table.text("mutual_user").map(|user| user.value);
        let mutual_secret = self.read_secret(table, "mutual_secret_file");
        for key in ["secret", "mutual_secret"] {
            if table.keys().any(|written| written == key) {
                let rule = "a secret does not stand in this file; put it into a file of its own, \
                            readable by you only, and name that file";
                table.wrong(key, format!("{rule}: {key}_file = \"...\""));
            }
        }
        // Asked for so that they are reported once, with the rule above.
        table.value("secret");
        table.value("mutual_secret");
        table.finish(&[]);
        Some(ChapSpec {
            user: user?.value,
            secret: secret?,
            mutual_user,
            mutual_secret,
        })
    }

    fn read_secret(&self, table: &Table<'_, '_>, key: &'static str) -> Option<SecretSpec> {
        let path = table.text(key)?.value;
        if path == STORED {
            return Some(SecretSpec::Stored);
        }
        let path = self.base.join(path);
        match (self.read_secret)(&path) {
            Ok(bytes) => {
                let secret = Secret::from_file(bytes);
                if secret.reveal_text().is_none() {
                    table.wrong(key, format!("{} is not UTF-8 text", path.display()));
                    return None;
                }
                Some(SecretSpec::Value(secret))
            }
            Err(error) => {
                table.wrong(key, format!("{}: {error}", path.display()));
                None
            }
        }
    }
}

fn note(out: &mut FileObjects, section: &'static str, name: String, table: &Table<'_, '_>) {
    let keys = table
        .keys()
        .map(|key| (key.to_owned(), table.line_of(key)))
        .collect();
    // Of two objects with one name the second is the mistake.
    out.lines.insert((section, name), (table.line(), keys));
}

fn read_target(table: &Table<'_, '_>) -> Option<TargetSpec> {
    let name = table.required_text("name", "name = \"t1\"");
    let iqn = table.text("iqn").map(|iqn| iqn.value);
    let portal_group = table.text("portal_group").map(|group| group.value);
    let has_redirect = table.keys().any(|key| key == "redirect");
    let redirect = table.table("redirect").and_then(|inside| {
        let to = inside.required_text("to", "redirect = { to = \"192.0.2.2:3260\" }");
        let permanent = inside.boolean("permanent").unwrap_or(false);
        inside.finish(&[]);
        Some(Redirect {
            to: to?.value,
            permanent,
        })
    });
    let maintenance = table.boolean("maintenance").unwrap_or(false);
    let most = u64::from(MAINTENANCE_GRACE_SECONDS_MAX);
    let grace = table.integer("maintenance_grace_seconds", 0, most);
    table.finish(&[]);
    if has_redirect && redirect.is_none() {
        // Never the same target served where it should not be.
        return None;
    }
    Some(TargetSpec {
        name: name?.value,
        iqn,
        portal_group,
        redirect,
        maintenance,
        maintenance_grace_seconds: grace
            .map(|grace| u16::try_from(grace.value).expect("read with a u16 as its limit")),
    })
}

fn read_grant(table: &Table<'_, '_>) -> Option<GrantSpec> {
    let host = table.required_text("host", "host = \"esx01\"");
    let lun = table.required_text("lun", "lun = \"vm01\"");
    let target = table.text("target").map(|target| target.value);
    let lun_id = table.integer("lun_id", 0, u64::from(LUN_ID_MAX));
    let read_only = table.boolean("read_only").unwrap_or(false);
    table.finish(&[]);
    Some(GrantSpec {
        host: host?.value,
        lun: lun?.value,
        target,
        lun_id: lun_id
            .map(|id| u16::try_from(id.value).expect("read with LUN_ID_MAX as its limit")),
        read_only,
    })
}
