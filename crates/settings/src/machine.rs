//! Whether this machine has what a change of settings names, before a start would have to say it.

use manifest::code::Code;
use manifest::config::{Config, ConfigPatch, Listen, NewPool, Pool};
use manifest::problem::{FieldFault, Problem};
use rustix::fs::{Access, OFlags, StatVfsMountFlags, access, statvfs};
use std::fs::{Metadata, OpenOptions, metadata, read_dir};
use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// So much of a device is read to see whether anything is on it, in bytes.
const BEGIN: u64 = 1 << 20;

/// Where a directory of interfaces is.
const INTERFACES: &str = "/sys/class/net";

/// What the node knows of its machine.
pub struct Here {
    /// The machine's addresses.
    pub addresses: Vec<String>,
    /// Where the node listens now.
    pub listening: Vec<SocketAddr>,
    /// Pools that it serves now.
    pub pools: Vec<Pool>,
}

/// `config`: as `patch` makes it.
///
/// # Errors
/// What is not there, or cannot be used.
pub fn check(patch: &ConfigPatch, config: &Config, here: &Here) -> Result<(), Problem> {
    let mut faults = Vec::new();
    if let Some(portals) = &patch.portals {
        let named = portals.group.as_ref();
        let mut groups = config.portal_groups.iter();
        let group = groups.find(|group| named.is_none_or(|name| group.name == *name));
        let listens = group.map(|group| &group.listen).into_iter().flatten();
        for (at, listen) in listens.enumerate() {
            if let Err(message) = reached(listen, here) {
                let field = format!("portals.listen[{at}]");
                faults.push(FieldFault { field, message });
            }
        }
    }
    // One that is served is as it should be: it was to be removed, and is not any more.
    let is_served = |pool: &NewPool| {
        let mut wanted = config.pools.iter();
        let wanted = wanted.find(|it| it.name == pool.name);
        wanted.is_some_and(|it| here.pools.contains(it))
    };
    if let Some(pool) = patch.add_pool.as_ref().filter(|it| !is_served(it)) {
        faults.extend(of_pool(pool, config).into_iter().map(|(key, message)| {
            let field = format!("add_pool.{key}");
            FieldFault { field, message }
        }));
    }
    if faults.is_empty() {
        return Ok(());
    }
    let lines = faults
        .iter()
        .map(|it| format!("{}: {}", it.field, it.message));
    let detail = lines.collect::<Vec<String>>().join("; ");
    Err(Problem::new(Code::ConfigEnvironment, detail).fields(faults))
}

fn reached(listen: &Listen, here: &Here) -> Result<(), String> {
    let address = match listen {
        Listen::Interface { name, .. } => {
            if Path::new(INTERFACES).join(name).exists() {
                return Ok(());
            }
            return Err(format!("this machine has no interface \"{name}\""));
        }
        Listen::Address(address) => *address,
    };
    let ip = address.ip();
    let known = here.addresses.iter().any(|it| *it == ip.to_string());
    if !known && !ip.is_unspecified() && !ip.is_loopback() {
        let all = here.addresses.join(", ");
        return Err(format!("this machine has no address {ip}; it has {all}"));
    }
    // What the node itself listens at is as it should be.
    let own = |it: &&SocketAddr| {
        let is_all = it.ip().is_unspecified() || ip.is_unspecified();
        it.port() == address.port() && (is_all || it.ip() == ip)
    };
    if address.port() == 0 || here.listening.iter().any(|it| own(&it)) {
        return Ok(());
    }
    let bound = TcpListener::bind(address);
    bound
        .map(drop)
        .map_err(|why| format!("{address} cannot be listened at: {why}"))
}

/// What is wrong with a pool, by its keys.
fn of_pool(pool: &NewPool, config: &Config) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    if let Err(why) = of_place(Path::new(&pool.path), config) {
        wrong.push(("path", why));
    }
    if let Some(journal) = &pool.journal {
        let made = config.pools.iter().find(|it| it.name == pool.name);
        let size = made.map_or(0, |it| it.journal_size.bytes());
        if let Err(why) = of_journal(Path::new(journal), size) {
            wrong.push(("journal", why));
        }
    }
    wrong
}

fn found(path: &Path) -> Result<Option<Metadata>, String> {
    match metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(None),
        Err(why) => Err(format!("{}: {why}", path.display())),
    }
}

fn of_place(path: &Path, config: &Config) -> Result<(), String> {
    let shown = path.display();
    let Some(found) = found(path)? else {
        return may_make(path);
    };
    if found.file_type().is_block_device() {
        return blank(path);
    }
    if !found.is_dir() {
        return Err(format!("{shown} is neither a directory nor a block device"));
    }
    if config.state_dir.starts_with(path) {
        return Err(format!("{shown} holds the node's own state"));
    }
    may_write(path)?;
    let entries = read_dir(path).map_err(|why| format!("{shown}: {why}"))?;
    let names = entries.filter_map(Result::ok).map(|it| it.file_name());
    let names: Vec<_> = names.filter(|name| name != "lost+found").collect();
    if names.is_empty() || names.iter().any(|name| name == "pool.toml") {
        return Ok(());
    }
    Err(format!(
        "{shown} has other things in it; name a directory that is empty or not there yet"
    ))
}

fn of_journal(path: &Path, size: u64) -> Result<(), String> {
    let shown = path.display();
    match found(path)? {
        Some(found) if found.file_type().is_block_device() => return blank(path),
        Some(_) => {
            return Err(format!(
                "{shown} is there already; name a file that is not, or a block device"
            ));
        }
        None => may_make(path)?,
    }
    let parent = path.parent().unwrap_or(path);
    let room = statvfs(parent).map_err(|why| format!("{}: {why}", parent.display()))?;
    let room = room.f_bavail.saturating_mul(room.f_frsize);
    if room < size {
        return Err(format!(
            "{} has room for {} MiB, and the journal is to have {} MiB",
            parent.display(),
            room >> 20,
            size >> 20
        ));
    }
    Ok(())
}

fn may_make(path: &Path) -> Result<(), String> {
    let parent = path.parent().unwrap_or(path);
    match found(parent)? {
        Some(found) if found.is_dir() => may_write(parent),
        Some(_) => Err(format!("{} is no directory", parent.display())),
        None => Err(format!("{} is not there", parent.display())),
    }
}

fn may_write(dir: &Path) -> Result<(), String> {
    access(dir, Access::WRITE_OK | Access::EXEC_OK).map_err(|why| {
        let shown = dir.display();
        // A unit of systemd shows most directories as if their file system were read-only.
        let is_read_only = statvfs(dir).is_ok_and(|it| it.f_flag.contains(StatVfsMountFlags::RDONLY));
        let unit = format!("below a unit of systemd it takes `systemctl edit causeway`: ReadWritePaths={shown} in [Service], then systemctl restart causeway");
        let chown = format!("give it to the daemon's user: chown causeway: {shown}");
        let next = match (is_read_only, why == rustix::io::Errno::ACCESS) {
            (true, true) => format!("{chown}; {unit}"),
            (true, false) => unit,
            (false, _) => chown,
        };
        format!("the daemon may not write into {shown}: {why}; {next}")
    })
}

/// A device that nobody uses and that has nothing at its beginning.
fn blank(device: &Path) -> Result<(), String> {
    let shown = device.display();
    // Exclusive: not one that is mounted, or a part of something else.
    let flags = i32::try_from(OFlags::EXCL.bits()).unwrap_or_default();
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags)
        .open(device);
    let opened = opened.map_err(|why| format!("{shown} cannot be had: {why}"))?;
    let mut begin = Vec::new();
    let read = opened.take(BEGIN).read_to_end(&mut begin);
    read.map_err(|why| format!("{shown} cannot be read: {why}"))?;
    if begin.iter().any(|byte| *byte != 0) {
        return Err(format!(
            "{shown} has data on it. If nobody needs that: wipefs --all {shown}, and zeroes over its first MiB"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod test {
    use super::*;
    use manifest::config::{OwnSettings, parse, parse_with};
    use serde_json::{Value, json};
    use std::path::PathBuf;

    struct Bed(PathBuf);

    impl Bed {
        fn new(name: &str) -> Self {
            let id = std::process::id();
            let dir = std::env::temp_dir().join(format!("causeway-settings-{name}-{id}"));
            std::fs::create_dir_all(dir.join("state/sub")).unwrap();
            std::fs::create_dir_all(dir.join("empty")).unwrap();
            std::fs::create_dir_all(dir.join("other")).unwrap();
            std::fs::write(dir.join("other/photo"), "x").unwrap();
            Self(dir)
        }

        /// What is said of a change, of which `DIR` is this directory.
        fn check(&self, patch: &Value, here: &Here) -> Vec<FieldFault> {
            let dir = self.0.to_str().unwrap();
            let patch = patch.to_string().replace("DIR", dir);
            let patch: ConfigPatch = serde_json::from_str(&patch).unwrap();
            let text = format!(
                "[node]\nname = \"a\"\nstate_dir = \"{dir}/state\"\n[[portal_group]]\nname = \"p\"\ntag = 1\n\
                 listen = [ {{ ip = \"127.0.0.1\" }} ]\n[api]\nlisten = [\"unix:s\"]\n"
            );
            let file = Path::new("/n.toml");
            parse(file, &text).unwrap();
            let own = OwnSettings::default().patched(&text, &patch).unwrap();
            let config = parse_with(file, &text, Path::new("own"), &own).unwrap();
            match check(&patch, &config, here) {
                Ok(()) => Vec::new(),
                Err(problem) => problem.fields.clone(),
            }
        }
    }

    impl Drop for Bed {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn here() -> Here {
        Here {
            addresses: vec!["192.0.2.7".to_owned()],
            listening: vec!["192.0.2.7:3260".parse().unwrap()],
            pools: Vec::new(),
        }
    }

    #[test]
    fn places_that_have_something_else_in_them_are_refused_by_their_key() {
        let bed = Bed::new("places");
        let long = "1024TiB";
        for (pool, wanted) in [
            (json!({ "path": "DIR/empty" }), vec![]),
            (json!({ "path": "DIR/new" }), vec![]),
            (
                json!({ "path": "DIR/state/new", "journal": "DIR/j", "journal_size": "16MiB" }),
                vec![],
            ),
            (json!({ "path": "DIR/other" }), vec!["add_pool.path"]),
            (json!({ "path": "DIR/other/photo" }), vec!["add_pool.path"]),
            (json!({ "path": "DIR/no/such" }), vec!["add_pool.path"]),
            (json!({ "path": "DIR/state" }), vec!["add_pool.path"]),
            (json!({ "path": "DIR" }), vec!["add_pool.path"]),
            (json!({ "path": "/dev/null" }), vec!["add_pool.path"]),
            (
                json!({ "path": "DIR/new", "journal": "DIR/other/photo" }),
                vec!["add_pool.journal"],
            ),
            (
                json!({ "path": "DIR/other", "journal": "DIR/no/j" }),
                vec!["add_pool.path", "add_pool.journal"],
            ),
            (
                json!({ "path": "DIR/new", "journal": "DIR/j", "journal_size": long }),
                vec!["add_pool.journal"],
            ),
        ] {
            let mut pool = pool;
            pool["name"] = json!("fast");
            let faults = bed.check(&json!({ "add_pool": pool }), &here());
            let fields: Vec<&str> = faults.iter().map(|it| it.field.as_str()).collect();
            assert_eq!(fields, wanted, "{pool}: {faults:?}");
        }
        assert_eq!(std::fs::read(bed.0.join("other/photo")).unwrap(), b"x");
        assert!(!bed.0.join("new").exists(), "nothing is made by a check");
    }

    #[test]
    fn addresses_and_interfaces_are_this_machines_and_free() {
        let bed = Bed::new("portals");
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = other.local_addr().unwrap().to_string();
        let listen = [
            "192.0.2.7",
            "lo",
            "127.0.9.9:0",
            "192.0.2.8",
            "nothere0",
            taken.as_str(),
        ];
        let faults = bed.check(&json!({ "portals": { "listen": listen } }), &here());
        let fields: Vec<&str> = faults.iter().map(|it| it.field.as_str()).collect();
        let wanted = [
            "portals.listen[3]",
            "portals.listen[4]",
            "portals.listen[5]",
        ];
        assert_eq!(fields, wanted, "{faults:?}");
        assert!(faults[0].message.contains("it has 192.0.2.7"), "{faults:?}");
    }
}
