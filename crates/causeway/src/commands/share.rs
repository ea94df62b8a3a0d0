//! `causeway share ...`: the one-step way, and how to connect.

use super::context::{Context, Step, Tolerate};
use super::lun::spec;
use crate::args::{Deleted, LunFields, Named, lun_fields};
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::Subcommand;
use client::segment;
use connect::{Export, ExportView, blocks};
use hyper::Method;
use manifest::code::Code;
use manifest::name::normal_iscsi_name;
use manifest::objects::{GrantSpec, HostSpec, ONE_HOST_ANY, ObjectSet, TargetSpec};
use manifest::problem::Problem;
use manifest::size::Size;
use manifest::view::{GrantView, HostView, LunView, Outcome, TargetView};
use output::{Columns, Table, print};
use serde::Serialize;

/// What may stand for the fields of what is made.
pub(crate) const MADE: &[CompletedArgument] = &lun_fields(&["share", "create"]);

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["share", "show"], "name", Kind::Name("lun")),
    (&["share", "delete"], "name", Kind::Name("lun")),
    (&["share", "create"], "hosts", Kind::Hosts),
    (&["share", "create"], "target", Kind::Name("target")),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["share", "ls"], When::Always, COLUMNS)];

#[derive(Subcommand, Debug)]
pub(crate) enum ShareVerb {
    /// Make a LUN, a target and grants, and print how to connect
    #[command(alias = "add")]
    Create {
        /// The LUN's name
        name: String,
        #[command(flatten)]
        fields: Box<LunFields>,
        /// Hosts by name, or initiators by iSCSI name, or * for every initiator (a host is made)
        #[arg(long = "for", required = true, num_args = 1.., value_delimiter = ',', value_name = "HOST")]
        hosts: Vec<String>,
        /// The target; made where there is none of this name [default: the LUN's name]
        #[arg(long)]
        target: Option<String>,
        /// Succeed where a LUN of this name exists; nothing of it is changed
        #[arg(long)]
        if_not_exists: bool,
    },
    /// List the LUNs that hosts may use, with targets, hosts and numbers
    #[command(alias = "list")]
    Ls,
    /// Print how to connect to a LUN
    Show(Named),
    /// Take a LUN and its grants out of service; its data stays, and `lun restore` brings all of it
    /// back
    #[command(alias = "rm")]
    Delete(Deleted),
}

pub(crate) fn run(context: &Context<'_>, verb: &ShareVerb) -> Result<(), Problem> {
    match verb {
        ShareVerb::Create {
            name,
            fields,
            hosts,
            target,
            if_not_exists,
        } => {
            let tolerate = Tolerate::when(*if_not_exists, Code::AlreadyExists);
            let set = wanted(
                context,
                name,
                fields,
                hosts,
                target.as_deref().unwrap_or(name),
            )?;
            let step = Step::new(Method::POST, "/api/v1/objects", &set);
            let outcome = context.run_steps(tolerate, &[step])?;
            if context.is_dry_run() {
                context.print(&outcome);
                return Ok(());
            }
            if !context.output.is_document() {
                context.print(&outcome);
                print("\n");
            }
            show(context, name, Some(&outcome))
        }
        ShareVerb::Ls => ls(context),
        ShareVerb::Show(Named { name }) => show(context, name, None),
        ShareVerb::Delete(deleted) => delete(context, deleted),
    }
}

fn wanted(
    context: &Context<'_>,
    name: &str,
    fields: &LunFields,
    hosts: &[String],
    target: &str,
) -> Result<ObjectSet, Problem> {
    let known_hosts: Vec<HostView> = context.client.get("/api/v1/hosts")?;
    let known_targets: Vec<TargetView> = context.client.get("/api/v1/targets")?;
    let mut set = ObjectSet {
        lun: vec![spec(name, fields)?],
        ..ObjectSet::default()
    };
    if known_targets.iter().all(|known| known.name != target) {
        set.target.push(TargetSpec::new(target));
    }
    for host in hosts {
        let host = host_of(&mut set, &known_hosts, host)?;
        set.grant.push(GrantSpec {
            host,
            lun: name.to_owned(),
            target: Some(target.to_owned()),
            lun_id: None,
            read_only: false,
        });
    }
    Ok(set)
}

/// The host that `named` names: by its name, or by an initiator's, whose host is made where there
/// is none.
///
/// # Errors
/// It begins as an iSCSI name, is no host's, and breaks their rules.
pub(super) fn host_of(
    set: &mut ObjectSet,
    known: &[HostView],
    named: &str,
) -> Result<String, Problem> {
    let iqn = if named == ONE_HOST_ANY {
        named.to_owned()
    } else {
        match normal_iscsi_name(named) {
            Ok(iqn) => iqn,
            Err(rule) if is_meant_as_iscsi_name(known, named) => {
                return Err(Problem::new(Code::InvalidObjects, rule).hint(
                    "copy the name that the initiator uses: `causeway session ls --refused` has those that were refused",
                ));
            }
            Err(_) => return Ok(named.to_owned()),
        }
    };
    let owner = known.iter().find(|known| known.iqn.contains(&iqn));
    let host = owner.map_or_else(|| new_host(set, known, &iqn), |owner| owner.name.clone());
    Ok(host)
}

/// It begins as one, and no host is called so.
fn is_meant_as_iscsi_name(known: &[HostView], named: &str) -> bool {
    let lower = named.to_ascii_lowercase();
    let begins = ["iqn.", "eui.", "naa."];
    begins.iter().any(|it| lower.starts_with(it)) && known.iter().all(|host| host.name != named)
}

/// A host for an initiator that has none, named after what its iSCSI name ends with.
fn new_host(set: &mut ObjectSet, known: &[HostView], iqn: &str) -> String {
    let tail = iqn.rsplit([':', '.']).next().unwrap_or(iqn);
    let mut name: String = tail
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .skip_while(|c| *c == '-')
        .take(40)
        .collect();
    if iqn == ONE_HOST_ANY {
        "everyone".clone_into(&mut name);
    } else if name.is_empty() {
        "host".clone_into(&mut name);
    }
    let base = name.clone();
    let mut number = 1;
    while known.iter().any(|host| host.name == name)
        || set.host.iter().any(|host| host.name == name)
    {
        number += 1;
        name = format!("{base}-{number}");
    }
    set.host.push(HostSpec {
        name: name.clone(),
        iqn: vec![iqn.to_owned()],
        chap: None,
        bytes_in_flight_max: None,
    });
    name
}

/// A share, with what was changed for it.
#[derive(Serialize)]
struct ShareView<'a> {
    lun: &'a str,
    exports: Vec<ExportView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<&'a Outcome>,
}

/// A LUN that somebody may use.
#[derive(Serialize)]
struct SharedView {
    lun: String,
    state: String,
    size: Size,
    grants: Vec<GrantView>,
}

fn show(context: &Context<'_>, name: &str, change: Option<&Outcome>) -> Result<(), Problem> {
    let lun: LunView = context
        .client
        .get(&format!("/api/v1/luns/{}", segment(name)))?;
    let grants: Vec<GrantView> = context.client.get("/api/v1/grants")?;
    let hosts: Vec<HostView> = context.client.get("/api/v1/hosts")?;
    let targets: Vec<TargetView> = context.client.get("/api/v1/targets")?;
    let mut exports = Vec::new();
    for grant in grants.iter().filter(|grant| grant.lun == name) {
        let target = targets.iter().find(|target| target.name == grant.target);
        let host = hosts.iter().find(|host| host.name == grant.host);
        if let (Some(target), Some(host)) = (target, host) {
            exports.push(Export {
                lun: &lun,
                grant,
                target,
                host,
            });
        }
    }
    let share = ShareView {
        lun: &lun.name,
        exports: exports.iter().map(Export::view).collect(),
        change,
    };
    context.output.show(&share, |_| {
        if exports.is_empty() {
            return format!("nobody may use LUN {name} yet: causeway grant create HOST {name}\n");
        }
        blocks(&exports)
    });
    Ok(())
}

/// A LUN with its grants.
fn ls(context: &Context<'_>) -> Result<(), Problem> {
    let luns: Vec<LunView> = context.client.get("/api/v1/luns")?;
    let grants: Vec<GrantView> = context.client.get("/api/v1/grants")?;
    let of = |lun: &LunView| -> Vec<&GrantView> {
        grants
            .iter()
            .filter(|grant| grant.lun == lun.name)
            .collect()
    };
    let shared: Vec<(&LunView, Vec<&GrantView>)> = luns
        .iter()
        .map(|lun| (lun, of(lun)))
        .filter(|(_, grants)| !grants.is_empty())
        .collect();
    let view = |(lun, grants): &'_ (&LunView, Vec<&GrantView>)| SharedView {
        lun: lun.name.clone(),
        state: lun.state.clone(),
        size: lun.size,
        grants: grants.iter().map(|grant| (*grant).clone()).collect(),
    };
    let views: Vec<SharedView> = shared.iter().map(view).collect();
    context.output.list(&views, |_| list(&shared));
    Ok(())
}

const COLUMNS: Columns = Columns::new(&["LUN", "STATE", "SIZE", "TARGET", "HOST", "NUMBER", "MAY"]);

fn list(shared: &[(&LunView, Vec<&GrantView>)]) -> Table {
    let row = |(lun, grant): (&LunView, &GrantView)| {
        vec![
            lun.name.clone(),
            lun.state.clone(),
            lun.size.rounded(),
            grant.target.clone(),
            grant.host.clone(),
            grant.lun_id.to_string(),
            if grant.read_only {
                "read"
            } else {
                "read, write"
            }
            .to_owned(),
        ]
    };
    let each = shared
        .iter()
        .flat_map(|(lun, grants)| grants.iter().map(|grant| (*lun, *grant)));
    let rows: Vec<Vec<String>> = each.map(row).collect();
    Table::new(COLUMNS, rows)
}

/// As `lun delete`, and says what of the share is left.
fn delete(context: &Context<'_>, deleted: &Deleted) -> Result<(), Problem> {
    let name = &deleted.name;
    let of_lun = |grant: &&GrantView| grant.lun == *name;
    let before: Vec<GrantView> = context.client.get("/api/v1/grants")?;
    context.delete("lun", deleted)?;
    if context.output.is_document() || context.is_dry_run() {
        return Ok(());
    }
    let mut targets: Vec<&str> = before.iter().filter(of_lun).map(|it| &*it.target).collect();
    targets.dedup();
    let empty = |target: &&str| {
        let others = before.iter().filter(|grant| grant.lun != *name);
        others.clone().all(|grant| grant.target != **target)
    };
    for target in targets.into_iter().filter(empty) {
        print(&format!(
            "note: target {target} has no LUN any more; without it `lun restore {name}` brings no grant back: \
             causeway target delete {target}\n"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod test {
    use super::*;

    fn host(name: &str, iqn: &str) -> HostView {
        serde_json::from_value(serde_json::json!({
            "name": name, "iqn": [iqn], "sessions": 0,
        }))
        .unwrap()
    }

    #[test]
    fn what_begins_as_an_iscsi_name_is_judged_as_one_and_anything_else_names_a_host() {
        let known = [
            host("esx01", "iqn.1998-01.com.example:esx01"),
            host("iqn.odd", "iqn.1998-01.com.example:odd"),
        ];
        let of = |named: &str| {
            let mut set = ObjectSet::default();
            host_of(&mut set, &known, named).map(|name| (name, set.host.len()))
        };
        for (named, host, made) in [
            ("esx01", "esx01", 0),
            ("nobody", "nobody", 0),
            ("iqn.1998-01.com.example:ESX01", "esx01", 0),
            ("iqn.1998-01.com.example:new", "new", 1),
            ("iqn.odd", "iqn.odd", 0),
            ("*", "everyone", 1),
        ] {
            assert_eq!(of(named), Ok((host.to_owned(), made)), "{named}");
        }
        for (named, why) in [
            ("iqn.a:h1", "after iqn. comes a date"),
            ("iqn.1998-01.com.example:abc_def", "only the letters a-z"),
            ("EUI.12", "16 hexadecimal digits"),
            ("naa.xyz", "16 or 32"),
        ] {
            let problem = of(named).unwrap_err();
            assert!(problem.detail.contains(why), "{named}: {problem}");
            assert!(problem.detail.contains(named), "{named}: {problem}");
        }
    }
}
