//! The rules that an object must keep by itself, whatever else exists.

use super::backing::BackendSpec;
use super::model::ONE_HOST_ANY;
use super::sections::{SECTION_GRANT, SECTION_HOST, SECTION_LUN, SECTION_TARGET};
use super::spec::{ChapSpec, GrantSpec, HostSpec, LunSpec, ObjectSet, SecretSpec, TargetSpec};
use super::storage::FIELDS;
use crate::name::{check_object_name, check_target_address, normal_iscsi_name};
use crate::problem::Fault;
use crate::size::Size;
use std::collections::BTreeSet;

/// The block sizes that exist.
pub const BLOCK_SIZES: [u32; 2] = [512, 4096];

/// The largest LUN number: flat space addressing has 14 bits (SAM-5 4.7.7.3 "Flat space addressing
/// method").
pub const LUN_ID_MAX: u16 = 16_383;

/// The shortest CHAP secret, in bytes: without IPsec it has at least 96 bits (RFC 7143 9.2.1 "CHAP
/// Considerations").
pub const SECRET_BYTES_MIN: usize = 12;

/// The longest CHAP secret and user name, in bytes (RFC 7143 12.1.3 "CHAP": implementations take at
/// least 255).
pub const CHAP_BYTES_MAX: usize = 255;

/// The longest that sessions may stay at a target in maintenance, in seconds.
pub const MAINTENANCE_GRACE_SECONDS_MAX: u16 = 3600;

/// Everything that is wrong in the set without regard to what exists.
#[must_use]
pub fn check_each(set: &ObjectSet) -> Vec<Fault> {
    let mut faults = Vec::new();
    for lun in &set.lun {
        check_lun(lun, &mut faults);
    }
    for target in &set.target {
        check_target(target, &mut faults);
    }
    for host in &set.host {
        check_host(host, &mut faults);
    }
    for grant in &set.grant {
        check_grant(grant, &mut faults);
    }
    twice(
        SECTION_LUN,
        set.lun.iter().map(|lun| &lun.name),
        &mut faults,
    );
    twice(
        SECTION_TARGET,
        set.target.iter().map(|target| &target.name),
        &mut faults,
    );
    twice(
        SECTION_HOST,
        set.host.iter().map(|host| &host.name),
        &mut faults,
    );
    faults
}

fn twice<'a>(section: &str, names: impl Iterator<Item = &'a String>, faults: &mut Vec<Fault>) {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            faults.push(Fault::new(section, name, "name", "it stands twice"));
        }
    }
}

fn check_name(section: &str, name: &str, faults: &mut Vec<Fault>) {
    if let Err(rule) = check_object_name(name) {
        faults.push(Fault::new(section, name, "name", rule));
    }
}

fn check_lun(lun: &LunSpec, faults: &mut Vec<Fault>) {
    check_name(SECTION_LUN, &lun.name, faults);
    let mut wrong = |key: &str, message: String| {
        faults.push(Fault::new(SECTION_LUN, &lun.name, key, message));
    };
    let block_size = lun.block_size.unwrap_or(512);
    if !BLOCK_SIZES.contains(&block_size) {
        wrong(
            "block_size",
            format!("{block_size} is neither 512 nor 4096"),
        );
        return;
    }
    if let Some(physical) = lun.physical_block_size {
        if !BLOCK_SIZES.contains(&physical) {
            wrong(
                "physical_block_size",
                format!("{physical} is neither 512 nor 4096"),
            );
        } else if lun.block_size.is_some() && physical < block_size {
            let rule = format!("{physical} is less than the logical block of {block_size} bytes");
            wrong("physical_block_size", rule);
        }
    }
    if lun.size.bytes() == 0 {
        wrong("size", "a LUN has at least one block".to_owned());
    } else if let Err(rule) = check_whole_blocks(lun.size, block_size) {
        wrong("size", rule);
    }
    if lun.pool.is_some() && lun.backend.is_some() {
        wrong("backend", "write either pool or backend".to_owned());
    }
    if let Some(Err(rule)) = lun.backend.as_ref().map(BackendSpec::check) {
        wrong("backend", rule);
    }
    for field in FIELDS {
        field.check(&lun.storage, &mut wrong);
    }
}

/// A size that hosts can see is a whole number of logical blocks; one that is not is named with its
/// neighbours, because decimal sizes such as 100MB rarely are.
///
/// # Errors
/// The rule, with sizes that keep it.
pub(crate) fn check_whole_blocks(size: Size, block_size: u32) -> Result<(), String> {
    let (bytes, block) = (size.bytes(), u64::from(block_size));
    if bytes.is_multiple_of(block) {
        return Ok(());
    }
    let below = bytes - bytes % block;
    let above = below + block;
    let nearest = if below == 0 {
        format!("the least is {above}")
    } else {
        format!("the nearest are {below} and {above}")
    };
    Err(format!(
        "{bytes} bytes are not a whole number of blocks of {block_size} bytes; {nearest}"
    ))
}

fn check_target(target: &TargetSpec, faults: &mut Vec<Fault>) {
    check_name(SECTION_TARGET, &target.name, faults);
    if let Some(Err(rule)) = target.iqn.as_deref().map(normal_iscsi_name) {
        faults.push(Fault::new(SECTION_TARGET, &target.name, "iqn", rule));
    }
    if let Some(redirect) = &target.redirect
        && let Err(rule) = check_target_address(&redirect.to)
    {
        let fault = Fault::new(SECTION_TARGET, &target.name, "redirect.to", rule);
        faults.push(fault);
    }
    if let Some(seconds) = target.maintenance_grace_seconds
        && seconds > MAINTENANCE_GRACE_SECONDS_MAX
    {
        let key = "maintenance_grace_seconds";
        let rule = format!("{seconds} is outside 0 to {MAINTENANCE_GRACE_SECONDS_MAX}");
        faults.push(Fault::new(SECTION_TARGET, &target.name, key, rule));
    }
}

fn check_host(host: &HostSpec, faults: &mut Vec<Fault>) {
    check_name(SECTION_HOST, &host.name, faults);
    let mut wrong = |key: &str, message: String| {
        faults.push(Fault::new(SECTION_HOST, &host.name, key, message));
    };
    if host.iqn.is_empty() {
        let rule = "no initiator name; write iqn = [\"iqn...\"], or [\"*\"] for every initiator";
        wrong("iqn", rule.to_owned());
    }
    let mut seen = BTreeSet::new();
    for iqn in &host.iqn {
        if iqn == ONE_HOST_ANY {
            if host.iqn.len() > 1 {
                wrong(
                    "iqn",
                    "\"*\" already means every initiator; write it alone".to_owned(),
                );
            }
            continue;
        }
        match normal_iscsi_name(iqn) {
            Err(rule) => wrong("iqn", rule),
            Ok(normal) => {
                if !seen.insert(normal) {
                    wrong("iqn", format!("\"{iqn}\" stands twice"));
                }
            }
        }
    }
    if let Some(chap) = &host.chap {
        check_chap(chap, &mut |key, message| wrong(key, message));
    }
}

fn check_chap(chap: &ChapSpec, wrong: &mut dyn FnMut(&str, String)) {
    check_user("chap.user", &chap.user, wrong);
    check_secret("chap.secret_file", &chap.secret, wrong);
    match (&chap.mutual_user, &chap.mutual_secret) {
        (None, None) => {}
        (Some(user), Some(secret)) => {
            check_user("chap.mutual_user", user, wrong);
            check_secret("chap.mutual_secret_file", secret, wrong);
            if let (SecretSpec::Value(one), SecretSpec::Value(other)) = (&chap.secret, secret)
                && one == other
            {
                wrong("chap.mutual_secret_file", SAME_SECRET.to_owned());
            }
        }
        (Some(_), None) => wrong(
            "chap.mutual_secret_file",
            "missing beside mutual_user".to_owned(),
        ),
        (None, Some(_)) => wrong(
            "chap.mutual_user",
            "missing beside mutual_secret_file".to_owned(),
        ),
    }
}

/// RFC 7143 9.2.1 "CHAP Considerations": one secret must not serve both directions.
pub(crate) const SAME_SECRET: &str = "both directions have the same secret, which the standard forbids: \
    whoever knows it can pose as either side; choose another one for the target";

fn check_user(key: &str, user: &str, wrong: &mut dyn FnMut(&str, String)) {
    if user.is_empty() || user.len() > CHAP_BYTES_MAX || user.chars().any(char::is_control) {
        wrong(
            key,
            format!("a user has 1 to {CHAP_BYTES_MAX} bytes and no control characters"),
        );
    }
}

fn check_secret(key: &str, secret: &SecretSpec, wrong: &mut dyn FnMut(&str, String)) {
    let SecretSpec::Value(secret) = secret else {
        return;
    };
    if secret.len() < SECRET_BYTES_MIN {
        let len = secret.len();
        wrong(
            key,
            format!("the secret has {len} bytes; the standard demands at least {SECRET_BYTES_MIN}"),
        );
    }
    if secret.len() > CHAP_BYTES_MAX {
        wrong(
            key,
            format!("the secret is longer than {CHAP_BYTES_MAX} bytes"),
        );
    }
    if secret.reveal().iter().any(u8::is_ascii_control) {
        wrong(
            key,
            "the secret has control characters, which initiators cannot be given".to_owned(),
        );
    }
}

fn check_grant(grant: &GrantSpec, faults: &mut Vec<Fault>) {
    if let Some(id) = grant.lun_id
        && id > LUN_ID_MAX
    {
        let target = grant.target.as_deref().unwrap_or("?");
        let name = format!("{}:{target}:{}", grant.host, grant.lun);
        let rule = format!("{id} is outside 0 to {LUN_ID_MAX}");
        faults.push(Fault::new(SECTION_GRANT, &name, "lun_id", rule));
    }
}
