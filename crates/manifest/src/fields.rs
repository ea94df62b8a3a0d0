//! What `node.toml` and the objects may say: every key with its values, default and meaning, for
//! people. The tables of `docs/interface.md` are made from it.

use crate::config::pool_fields;
use crate::field::{Field, live, node};
use crate::objects::{FIELDS, StorageField};

/// The keys of `node.toml` up to those that say what holds a pool's LUNs.
const NODE_BEFORE: [Field; 8] = [
    node("schema", "`1`", "required", "the form of the file"),
    node(
        "node.name",
        "name",
        "required",
        "the node's name; a random `id` is made once and kept in `state_dir`",
    ),
    node(
        "node.state_dir",
        "path",
        "required",
        "where the node keeps its state",
    ),
    node(
        "portal_group.name",
        "name",
        "required",
        "by which targets name it",
    ),
    node(
        "portal_group.tag",
        "number",
        "required",
        "target portal group tag: stable, and unique across nodes that share a target",
    ),
    live(
        "portal_group.listen",
        "list",
        "required",
        "`{ ip, port }`, or `{ iface, port }`, which follows the interface's addresses live",
    ),
    node(
        "portal_group.cores",
        "list of numbers",
        "all",
        "only these cores serve its connections, which then never move; numbered as `session \
         ls` shows them",
    ),
    node("pool.name", "name", "required", "by which LUNs name it"),
];

/// The keys of `node.toml` behind those that say what holds a pool's LUNs.
const NODE_AFTER: [Field; 33] = [
    node(
        "pool.journal",
        "path",
        "none",
        "a file or block device; without one the pool has no write-back",
    ),
    node(
        "pool.journal_size",
        "size",
        "`1GiB`",
        "how large the journal's file is made; a device is used whole",
    ),
    node(
        "api.listen",
        "list",
        "required",
        "`unix:PATH`, `IP:PORT` (http, on loopback addresses) or `https://IP:PORT`",
    ),
    live(
        "api.token_for_reads",
        "boolean",
        "`false`",
        "over loopback addresses, too, all reading and `/metrics` take a login or a token; only \
         `/healthz` and `/readyz` do not",
    ),
    node(
        "api.allow_plain_http",
        "boolean",
        "`false`",
        "addresses that other machines reach may be served in plain text; `status` names them",
    ),
    live(
        "api.names",
        "list of names",
        "none",
        "names by which the node is asked for, beside its own, the host's and addresses: requests \
         for other names are refused",
    ),
    node(
        "api.change_settings",
        "boolean",
        "`true`",
        "admins may change some of these settings through the API and the page, which the daemon keeps in its state \
         directory; `false`: what this file says is all that holds of them",
    ),
    node(
        "api.login_idle_seconds",
        "10 to 86400",
        "1800",
        "a login to the page that is not used for so long is over; a page that is open uses it",
    ),
    node(
        "api.login_life_seconds",
        "10 to 2592000",
        "43200",
        "a login to the page is over so long after it was made, however it is used",
    ),
    node(
        "api.certificate",
        "`{ cert, key }`",
        "made at the first start",
        "files (PEM) for https; read again on SIGHUP and when they change",
    ),
    node(
        "cluster.etcd",
        "list of texts",
        "required",
        "the members of etcd that hold the cluster's records: `https://IP:PORT`, or `http://IP:PORT` on this machine",
    ),
    node(
        "cluster.etcd_ca",
        "path",
        "none",
        "who signs the certificates of etcd's members (PEM); needed with https, as are the two below",
    ),
    node(
        "cluster.etcd_certificate",
        "path",
        "none",
        "the certificate by which etcd knows this node (PEM)",
    ),
    node("cluster.etcd_key", "path", "none", "its key (PEM)"),
    node(
        "cluster.prefix",
        "text",
        "`\"causeway\"`",
        "all records of the cluster are below this name in etcd: several clusters may use one etcd",
    ),
    node(
        "cluster.listen",
        "list of addresses",
        "none",
        "where the other nodes reach this one: `IP:PORT`, such as `10.0.0.1:7420`; a node without one can neither make \
         nor join a cluster",
    ),
    live(
        "alert_command.name",
        "name",
        "required",
        "by which a receiver of alerts names it",
    ),
    live(
        "alert_command.argv",
        "list of texts",
        "required",
        "a program, by its whole path, and its arguments: it is run with each message about alerts",
    ),
    live(
        "alert_command.seconds",
        "1 to 600",
        "30",
        "it is ended after so long",
    ),
    live(
        "scrub.every_days",
        "0 to 3650",
        "0",
        "each LUN is scrubbed so often by itself, one after the other; 0: when somebody asks",
    ),
    live(
        "health.every_minutes",
        "0 to 10080",
        "60",
        "so often each disk of the machine is asked for its health, by smartctl; 0: never",
    ),
    node(
        "health.smartctl",
        "path",
        "the one of the PATH",
        "the program that asks; with another path than that of a file: none",
    ),
    node(
        "health.report",
        "path",
        "`/run/causeway-disks/disks.json`",
        "what root has read of the disks (`causeway disk scan --to`), which counts before what \
         the daemon would read itself",
    ),
    live(
        "history.max_bytes",
        "16MiB to 64GiB",
        "`1GiB`",
        "the most that the file of the history takes; beyond, the finest figures go first, the oldest of them",
    ),
    live(
        "session.login_seconds",
        "1 to 300",
        "15",
        "from the connection to the end of the login, whatever comes meanwhile",
    ),
    live(
        "session.ping_after_seconds",
        "1 to 3600",
        "15",
        "a session, also one for discovery, from which nothing comes for so long is asked \
         (NOP-In)",
    ),
    live(
        "session.ping_timeout_seconds",
        "1 to 3600",
        "10",
        "it is ended where nothing comes for so long then either; so is one that reads \
         nothing for the sum of both",
    ),
    live(
        "session.data_seconds",
        "1 to 3600",
        "30",
        "the data of a write is there so long after it may be sent, and a second later for \
         each MiB that its session is to send; else the write ends with ABORTED COMMAND, \
         INITIATOR RESPONSE TIMEOUT (4Bh/06h)",
    ),
    node(
        "runtime.cores",
        "`\"auto\"`, list of processors",
        "`\"auto\"`",
        "which processors are used",
    ),
    node(
        "runtime.driver",
        "`\"auto\"`, `\"uring\"`, `\"poll\"`",
        "`\"auto\"`",
        "io_uring, or threads where that is refused; the others insist",
    ),
    node(
        "runtime.poll_us",
        "0 to 10000",
        "0",
        "after I/O, a core looks for more for so many microseconds before it sleeps: shorter \
         latency for processor time",
    ),
    live(
        "runtime.coalesce_us",
        "0 to 1000",
        "150",
        "while a host keeps many commands going, a connection waits so long for several of \
         them at most, and three times as long now and then to see that the host has them; 0: \
         it takes each as it comes",
    ),
    node(
        "log.format",
        "`\"text\"`, `\"json\"`",
        "`\"text\"`",
        "the format of log lines",
    ),
];

/// The keys of `node.toml`. What holds a pool's LUNs is said by the fields of its kind.
#[must_use]
pub fn node_fields() -> Vec<Field> {
    let before = NODE_BEFORE.into_iter().chain(pool_fields());
    before.chain(NODE_AFTER).collect()
}

/// The fields of objects but for the storage fields of LUNs.
const OBJECTS: [Field; 23] = [
    live("lun.name", "name", "required", "the LUN's name"),
    live(
        "lun.size",
        "size",
        "required",
        "K, M, G, T are binary; KB, MB, GB decimal; or a number of bytes",
    ),
    node(
        "lun.block_size",
        "`512`, `4096`",
        "512",
        "bytes of a logical block",
    ),
    node(
        "lun.physical_block_size",
        "`512`, `4096`",
        "`block_size`",
        "bytes of a physical block; 4096 with logical blocks of 512 is 512e",
    ),
    node(
        "lun.thin",
        "boolean",
        "`true`",
        "space is taken when blocks are first written",
    ),
    node(
        "lun.pool",
        "name",
        "`default`, or the only one",
        "the pool that holds it",
    ),
    node(
        "lun.backend",
        "`\"memory\"`, `{ block = PATH }`, `{ vhdx = PATH }`",
        "none",
        "what holds it instead of a pool",
    ),
    live(
        "lun.bytes_in_flight_max",
        "size",
        "0: no limit",
        "the most that its commands may hold, over all cores and sessions",
    ),
    live("target.name", "name", "required", "the target's name"),
    live(
        "target.iqn",
        "iSCSI name",
        "from the name",
        "its iSCSI name",
    ),
    live(
        "target.portal_group",
        "name",
        "`default`, or the only one",
        "where it can be reached",
    ),
    live(
        "target.redirect",
        "`{ to, permanent }`",
        "none",
        "logins are sent there (0101h, or 0102h for good); HOST:PORT, IPv6 in brackets; a \
         portal of this node itself is refused",
    ),
    live(
        "target.maintenance",
        "boolean",
        "`false`",
        "logins are refused (0301h); sessions are asked to log out, and ended after the grace",
    ),
    live(
        "target.maintenance_grace_seconds",
        "0 to 3600",
        "30",
        "how long sessions have to log out; each maintenance uses the value it begins with",
    ),
    live("host.name", "name", "required", "the host's name"),
    live(
        "host.iqn",
        "list of iSCSI names",
        "required",
        "its initiators; `\"*\"` is every initiator",
    ),
    live(
        "host.chap",
        "`{ user, secret_file, mutual_user, mutual_secret_file }`",
        "none",
        "how it proves who it is",
    ),
    live(
        "host.bytes_in_flight_max",
        "size",
        "0: no limit",
        "the most that the commands of each of its sessions may hold, over all LUNs",
    ),
    node("grant.host", "names", "required", "who may use what"),
    node("grant.lun", "names", "required", "who may use what"),
    node(
        "grant.target",
        "name",
        "the only one",
        "through which target",
    ),
    live(
        "grant.lun_id",
        "0 to 16383",
        "lowest free",
        "the number by which the host knows the LUN: flat addressing above 255, stable for ever",
    ),
    live(
        "grant.read_only",
        "boolean",
        "`false`",
        "the host may not write",
    ),
];

/// The fields of objects: those of a section stand together.
#[must_use]
pub fn object_fields() -> Vec<Field> {
    let is_of_lun = |field: &&Field| field.key.starts_with("lun.");
    let own = OBJECTS.iter().take_while(is_of_lun);
    let storage = FIELDS.into_iter().map(StorageField::documented);
    let others = OBJECTS.iter().skip_while(is_of_lun);
    own.copied().chain(storage).chain(others.copied()).collect()
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::config::{self, SessionTimes};
    use crate::golden;
    use crate::objects;
    use markdown::{MarkdownTable, with_block};
    use std::collections::BTreeSet;
    use std::path::Path;

    const NODE_FILE: &str = "zzz = 1\n[node]\nzzz = 1\n[[portal_group]]\nzzz = 1\n[[pool]]\nzzz = 1\n[[pool]]\nmembers = [\"m\"]\nzzz = 1\n\
                             [api]\nzzz = 1\n[cluster]\nzzz = 1\n[[alert_command]]\nzzz = 1\n[scrub]\nzzz = 1\n[health]\nzzz = 1\n[history]\nzzz = 1\n[session]\nzzz = 1\n[runtime]\nzzz = 1\n\
                             [log]\nzzz = 1\n";
    const OBJECT_FILE: &str =
        "[[lun]]\nzzz = 1\n[[target]]\nzzz = 1\n[[host]]\nzzz = 1\n[[grant]]\nzzz = 1\n";

    /// The table of `node.toml`.
    fn node_table() -> String {
        table(
            &["Key", "Values", "Default", "Live", "Meaning"],
            node_fields(),
        )
    }

    fn table(heads: &[&str], fields: Vec<Field>) -> String {
        let mut table = MarkdownTable::new(heads);
        for field in fields {
            let key = format!("`{}`", field.key);
            let live = match field.class() {
                "new-sessions" => "new sessions",
                "live" => "yes",
                _ => "no",
            };
            table.row(&[&key, field.values, field.default, live, field.meaning]);
        }
        table.into_text()
    }

    /// The fields of all objects as a table of Markdown, for the reference.
    fn object_table() -> String {
        table(
            &["Field", "Values", "Default", "Live", "Meaning"],
            object_fields(),
        )
    }

    /// What a reader says that it knows, of each section that has an unknown key.
    fn known(mistakes: impl Iterator<Item = (String, String)>) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        for (key, message) in mistakes.filter(|(key, _)| key.ends_with("zzz")) {
            let section = key.trim_end_matches("zzz").trim_end_matches('.');
            let section = section.split('[').next().unwrap_or_default();
            let (_, list) = message.split_once("(known here: ").expect("it lists them");
            for name in list.trim_end_matches(')').split(", ") {
                let dot = if section.is_empty() { "" } else { "." };
                out.insert(format!("{section}{dot}{name}"));
            }
        }
        out
    }

    fn of(fields: &[Field]) -> BTreeSet<String> {
        fields.iter().map(|field| field.key.to_owned()).collect()
    }

    #[test]
    fn every_key_that_node_toml_may_have_is_in_the_table_and_no_other() {
        let mistakes = config::parse(Path::new("node.toml"), NODE_FILE).unwrap_err();
        let mut read = known(mistakes.into_iter().map(|it| (it.key, it.message)));
        let sections = [
            "node",
            "portal_group",
            "pool",
            "api",
            "cluster",
            "alert_command",
            "scrub",
            "health",
            "history",
            "session",
            "runtime",
            "log",
        ];
        for section in sections {
            assert!(read.remove(section), "{section}");
        }
        // For tests and benches only.
        assert!(read.remove("testing"));
        assert_eq!(read, of(&node_fields()));
    }

    #[test]
    fn every_field_that_an_object_may_have_is_in_the_table_and_no_other() {
        let never = |_: &Path| Err(std::io::Error::other("none"));
        let mistakes =
            objects::parse(Path::new("o.toml"), Path::new("."), OBJECT_FILE, &never).unwrap_err();
        let read = known(mistakes.into_iter().map(|it| (it.key, it.message)));
        assert_eq!(read, of(&object_fields()));
    }

    #[test]
    fn defaults_are_what_the_table_says() {
        let text = "[node]\nname = \"a\"\nstate_dir = \"d\"\n[[portal_group]]\nname = \"p\"\ntag = 1\n\
                    listen = [ { ip = \"127.0.0.1\" } ]\n[[pool]]\nname = \"q\"\npath = \"r\"\n\
                    [api]\nlisten = [\"unix:s\"]\n";
        let config = config::parse(Path::new("node.toml"), text).unwrap();
        let default = |key: &str| {
            let fields = node_fields();
            let field = fields.iter().find(|field| field.key == key);
            field
                .expect("it is there")
                .default
                .trim_matches('`')
                .to_owned()
        };
        let SessionTimes {
            login,
            ping_after,
            ping_timeout,
            data,
        } = config.session;
        for (key, is) in [
            ("session.login_seconds", login.as_secs().to_string()),
            (
                "session.ping_after_seconds",
                ping_after.as_secs().to_string(),
            ),
            (
                "session.ping_timeout_seconds",
                ping_timeout.as_secs().to_string(),
            ),
            ("session.data_seconds", data.as_secs().to_string()),
            ("runtime.poll_us", config.poll_us.to_string()),
            (
                "runtime.coalesce_us",
                config.coalesce.as_micros().to_string(),
            ),
            (
                "history.max_bytes",
                crate::size::Size::from_bytes(config.history.max_bytes)
                    .unwrap()
                    .to_string(),
            ),
            (
                "pool.journal_size",
                config.pools[0].journal_size.to_string(),
            ),
            (
                "api.token_for_reads",
                config.api_settings.token_for_reads.to_string(),
            ),
        ] {
            assert_eq!(default(key), is, "{key}");
        }
    }

    #[test]
    fn the_tables_of_the_interface_are_these() {
        let page = golden::on_disk("docs/interface.md");
        let page = with_block(&page, "node.toml", &node_table()).expect("a place for the keys");
        let page = with_block(&page, "objects", &object_table()).expect("a place for the fields");
        golden::assert_page("docs/interface.md", &page);
    }
}
