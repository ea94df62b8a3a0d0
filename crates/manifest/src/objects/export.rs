//! From stored objects back to the form that `apply` reads: `export | apply` changes nothing.

use super::model::{MAINTENANCE_GRACE_SECONDS, Objects};
use super::spec::{ChapSpec, GrantSpec, HostSpec, LunSpec, ObjectSet, SecretSpec, TargetSpec};
use super::storage::{FIELDS, Storage};
use crate::size::Size;
use std::fmt::Write as _;
use std::path::Path;

/// In place of a secret file's name: the secret that the daemon has stays.
pub(super) const STORED: &str = "<stored>";

/// The wanted set that leads to exactly these objects. Secrets are not in it.
#[must_use]
pub fn export(objects: &Objects) -> ObjectSet {
    let lun = objects.luns.iter().map(|(name, lun)| {
        let (pool, backend) = lun.backing.to_spec();
        LunSpec {
            block_size: Some(lun.block_size),
            physical_block_size: Some(lun.physical_block_size),
            thin: Some(lun.thin),
            pool,
            backend,
            bytes_in_flight_max: lun.bytes_in_flight_max,
            storage: lun.storage,
            ..LunSpec::new(name, lun.size)
        }
    });
    let target = objects.targets.iter().map(|(name, target)| TargetSpec {
        name: name.clone(),
        iqn: Some(target.iqn.clone()),
        portal_group: Some(target.portal_group.clone()),
        redirect: target.redirect.clone(),
        maintenance: target.maintenance,
        maintenance_grace_seconds: Some(target.maintenance_grace_seconds)
            .filter(|seconds| *seconds != MAINTENANCE_GRACE_SECONDS),
    });
    let host = objects.hosts.iter().map(|(name, host)| HostSpec {
        name: name.clone(),
        iqn: host.iqn.clone(),
        chap: host.chap.as_ref().map(|chap| ChapSpec {
            user: chap.user.clone(),
            secret: SecretSpec::Stored,
            mutual_user: chap.mutual.as_ref().map(|mutual| mutual.user.clone()),
            mutual_secret: chap.mutual.as_ref().map(|_| SecretSpec::Stored),
        }),
        bytes_in_flight_max: host.bytes_in_flight_max,
    });
    let grant = objects.grants.iter().map(|(key, grant)| GrantSpec {
        host: key.host.clone(),
        lun: key.lun.clone(),
        target: Some(key.target.clone()),
        lun_id: Some(grant.lun_id),
        read_only: grant.read_only,
    });
    ObjectSet {
        lun: lun.collect(),
        target: target.collect(),
        host: host.collect(),
        grant: grant.collect(),
    }
}

/// The set as `objects.toml`. A secret that is not yet stored is left to the reader to name.
#[must_use]
pub fn to_toml(set: &ObjectSet) -> String {
    let mut out = String::from(
        "# Causeway objects. Change and bring back with: causeway apply -f FILE\n\
         # secret_file = \"<stored>\" keeps the secret that the daemon has.\n\
         schema = 1\n",
    );
    // Writing to a String cannot fail.
    for lun in &set.lun {
        let _ = writeln!(
            out,
            "\n[[lun]]\nname = {}\nsize = \"{}\"",
            q(&lun.name),
            lun.size
        );
        write_lun(&mut out, lun);
    }
    for target in &set.target {
        let _ = writeln!(out, "\n[[target]]\nname = {}", q(&target.name));
        write_text(&mut out, "iqn", target.iqn.as_deref());
        write_text(&mut out, "portal_group", target.portal_group.as_deref());
        write_absence(&mut out, target);
    }
    for host in &set.host {
        let names: Vec<String> = host.iqn.iter().map(|iqn| q(iqn)).collect();
        let names = names.join(", ");
        let _ = writeln!(out, "\n[[host]]\nname = {}\niqn = [{names}]", q(&host.name));
        if let Some(chap) = &host.chap {
            write_chap(&mut out, chap);
        }
        write_in_flight(&mut out, host.bytes_in_flight_max);
    }
    for grant in &set.grant {
        let _ = writeln!(
            out,
            "\n[[grant]]\nhost = {}\nlun = {}",
            q(&grant.host),
            q(&grant.lun)
        );
        write_text(&mut out, "target", grant.target.as_deref());
        if let Some(id) = grant.lun_id {
            let _ = writeln!(out, "lun_id = {id}");
        }
        if grant.read_only {
            out.push_str("read_only = true\n");
        }
    }
    out
}

fn write_lun(out: &mut String, lun: &LunSpec) {
    if let Some(bytes) = lun.block_size {
        let _ = writeln!(out, "block_size = {bytes}");
    }
    if let Some(bytes) = lun.physical_block_size {
        let _ = writeln!(out, "physical_block_size = {bytes}");
    }
    if let Some(thin) = lun.thin {
        let _ = writeln!(out, "thin = {thin}");
    }
    write_text(out, "pool", lun.pool.as_deref());
    if let Some(backend) = &lun.backend {
        let _ = writeln!(out, "backend = {}", backend.to_toml(q_path));
    }
    write_in_flight(out, lun.bytes_in_flight_max);
    write_storage(out, &lun.storage);
}

fn write_storage(out: &mut String, storage: &Storage) {
    for field in FIELDS {
        if let Some(value) = field.toml(storage) {
            let _ = writeln!(out, "{} = {value}", field.name());
        }
    }
}

fn write_in_flight(out: &mut String, most: Option<Size>) {
    if let Some(most) = most {
        let _ = writeln!(out, "bytes_in_flight_max = \"{most}\"");
    }
}

/// Why a target does not serve here, where it does not.
fn write_absence(out: &mut String, target: &TargetSpec) {
    if let Some(redirect) = &target.redirect {
        let permanent = if redirect.permanent {
            ", permanent = true"
        } else {
            ""
        };
        let _ = writeln!(out, "redirect = {{ to = {}{permanent} }}", q(&redirect.to));
    }
    if target.maintenance {
        out.push_str("maintenance = true\n");
    }
    if let Some(seconds) = target.maintenance_grace_seconds {
        let _ = writeln!(out, "maintenance_grace_seconds = {seconds}");
    }
}

fn write_chap(out: &mut String, chap: &ChapSpec) {
    let _ = write!(
        out,
        "chap = {{ user = {}, secret_file = \"{STORED}\"",
        q(&chap.user)
    );
    if let Some(user) = &chap.mutual_user {
        let user = q(user);
        let _ = write!(
            out,
            ", mutual_user = {user}, mutual_secret_file = \"{STORED}\""
        );
    }
    out.push_str(" }\n");
}

fn write_text(out: &mut String, key: &str, text: Option<&str>) {
    if let Some(text) = text {
        let _ = writeln!(out, "{key} = {}", q(text));
    }
}

fn q(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn q_path(path: &Path) -> String {
    q(&path.to_string_lossy())
}
