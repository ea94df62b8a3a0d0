//! `[cluster]` of `node.toml`: where the cluster's records are, and where its nodes reach this one.

use crate::toml_table::Table;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// What all records are below where nothing is written.
const PREFIX: &str = "causeway";

/// More addresses than a machine has networks for.
const LISTEN_MAX: usize = 16;

/// Files by which etcd and this node believe each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EtcdFiles {
    /// Who signs the certificates of etcd's members (PEM).
    pub ca: PathBuf,
    /// This node's certificate for etcd (PEM).
    pub certificate: PathBuf,
    /// Its key (PEM).
    pub key: PathBuf,
}

/// How the node is in a cluster, or may be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterSettings {
    /// Etcd's members.
    pub etcd: Vec<String>,
    /// With which certificates they are reached.
    pub tls: Option<EtcdFiles>,
    /// What all records are below.
    pub prefix: String,
    /// Where the nodes of the cluster reach this one.
    pub listen: Vec<SocketAddr>,
}

pub(super) fn read(top: &Table<'_, '_>, base: &Path) -> Option<ClusterSettings> {
    let table = top.table("cluster")?;
    let etcd = table.texts("etcd");
    if etcd.as_ref().is_none_or(Vec::is_empty) {
        table.missing("etcd", "etcd = [\"https://10.0.0.5:2379\"], each member");
    }
    let tls = read_files(&table, base);
    let prefix = table.text("prefix");
    let listen = read_listen(&table);
    table.finish(&["encrypt"]);
    Some(ClusterSettings {
        etcd: etcd?.into_iter().map(|it| it.value).collect(),
        tls,
        prefix: prefix.map_or_else(|| PREFIX.to_owned(), |it| it.value),
        listen,
    })
}

/// All three, or none.
fn read_files(table: &Table<'_, '_>, base: &Path) -> Option<EtcdFiles> {
    let keys = ["etcd_ca", "etcd_certificate", "etcd_key"];
    let files = keys.map(|key| table.text(key).map(|it| base.join(it.value)));
    let [ca, certificate, key] = match files {
        [Some(ca), Some(certificate), Some(key)] => [ca, certificate, key],
        [None, None, None] => return None,
        some => {
            let lacks = keys.iter().zip(&some).find(|(_, it)| it.is_none());
            let lacks = lacks.map_or("etcd_ca", |(key, _)| key);
            table.missing(lacks, "etcd_ca, etcd_certificate and etcd_key go together");
            return None;
        }
    };
    Some(EtcdFiles {
        ca,
        certificate,
        key,
    })
}

fn read_listen(table: &Table<'_, '_>) -> Vec<SocketAddr> {
    let mut out: Vec<SocketAddr> = Vec::new();
    for text in table.texts("listen").unwrap_or_default() {
        let shown = &text.value;
        let wrong = |why: &str| table.wrong("listen", format!("\"{shown}\": {why}"));
        match shown.parse::<SocketAddr>() {
            Err(_) => wrong("an IP address and a port are needed, such as 10.0.0.1:7420"),
            Ok(at) if at.ip().is_unspecified() => {
                wrong("other nodes connect there: write the address that they use");
            }
            Ok(at) if at.port() == 0 => wrong("other nodes need to know the port"),
            Ok(at) if out.contains(&at) => wrong("it stands here twice"),
            Ok(at) => out.push(at),
        }
    }
    if out.len() > LISTEN_MAX {
        table.wrong("listen", format!("at most {LISTEN_MAX} are possible"));
    }
    out
}

#[cfg(test)]
mod test {
    use crate::config::{Config, parse};
    use std::path::Path;

    const HEAD: &str = "[node]\nname = \"a\"\nstate_dir = \"d\"\n[[portal_group]]\nname = \"p\"\ntag = 1\n\
        listen = [ { ip = \"127.0.0.1\" } ]\n[api]\nlisten = [\"unix:s\"]\n[cluster]\n";

    fn read(rest: &str) -> Result<Config, String> {
        let config = parse(Path::new("/e/node.toml"), &format!("{HEAD}{rest}"));
        config.map_err(|all| all.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_section_says_where_etcd_is_and_this_node() {
        let all = "etcd = [\"https://10.0.0.5:2379\"]\netcd_ca = \"ca.pem\"\netcd_certificate = \"/c/n.pem\"\n\
            etcd_key = \"n.key\"\nprefix = \"san/1\"\nlisten = [\"10.0.0.1:7420\", \"[fd00::1]:7420\"]\n";
        let cluster = read(all).unwrap().cluster.unwrap();
        let tls = cluster.tls.unwrap();
        assert_eq!(tls.ca, Path::new("/e/ca.pem"));
        assert_eq!(tls.certificate, Path::new("/c/n.pem"));
        assert_eq!((cluster.listen.len(), &*cluster.prefix), (2, "san/1"));
        let least = read("etcd = [\"http://127.0.0.1:2379\"]\n").unwrap();
        let cluster = least.cluster.unwrap();
        assert_eq!((cluster.tls, &*cluster.prefix), (None, "causeway"));
    }

    #[test]
    fn what_cannot_work_is_named() {
        let etcd = "etcd = [\"http://127.0.0.1:2379\"]\n";
        for (rest, why) in [
            ("prefix = \"a\"\n", "each member"),
            ("etcd = []\n", "each member"),
            (&*format!("{etcd}etcd_ca = \"a\"\n"), "go together"),
            (&*format!("{etcd}listen = [\"a:1\"]\n"), "a port are needed"),
            (
                &*format!("{etcd}listen = [\"0.0.0.0:1\"]\n"),
                "the address that they use",
            ),
            (&*format!("{etcd}listen = [\"10.0.0.1:0\"]\n"), "the port"),
            (
                &*format!("{etcd}listen = [\"10.0.0.1:1\", \"10.0.0.1:1\"]\n"),
                "twice",
            ),
            (
                &*format!("{etcd}encrypt = false\n"),
                "not in this version yet",
            ),
        ] {
            let said = read(rest).unwrap_err();
            assert!(said.contains(why), "{rest}: {said}");
        }
    }
}
