//! `causeway portal ...`: where hosts reach targets. Over what is said of the node's settings.

use super::config::{self, Started};
use super::confirm;
use super::context::Context;
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::{ArgGroup, Args, Subcommand};
use manifest::code::Code;
use manifest::config::{portal, portals};
use manifest::facts::{PortalFacts, SessionFacts};
use manifest::problem::Problem;
use manifest::view::StatusView;
use output::assign::usage;
use output::{Columns, Table, properties};
use serde_json::json;

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["portal", "show"], "portal", Kind::Portal),
    (&["portal", "delete"], "portal", Kind::Portal),
    (&["portal", "create"], "portal_group", Kind::PortalGroup),
    (&["portal", "delete"], "portal_group", Kind::PortalGroup),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["portal", "ls"], When::Always, COLUMNS)];

/// A portal as it is typed.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("which").args(["portal", "ip", "iface"]).required(true))]
pub(crate) struct Which {
    /// An address or an interface, with or without a port: 192.0.2.1, [2001:db8::1]:3260, eth1
    portal: Option<String>,
    /// The address
    #[arg(long, value_name = "ADDRESS")]
    ip: Option<std::net::IpAddr>,
    /// The interface, whose addresses are followed
    #[arg(long, value_name = "NAME")]
    iface: Option<String>,
    /// The port, where it is not 3260
    #[arg(long, conflicts_with = "portal")]
    port: Option<u16>,
    /// Its portal group [default: the first one]
    #[arg(long, value_name = "GROUP")]
    portal_group: Option<String>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum PortalVerb {
    /// List portals, with whether they listen
    #[command(alias = "list")]
    Ls,
    /// Show one, with the sessions over it
    Show {
        /// Its address, as `portal ls` shows it
        portal: String,
    },
    /// Have a portal group listen there as well; at once, and no session notices
    #[command(alias = "add")]
    Create {
        #[command(flatten)]
        which: Which,
        /// Succeed where it is there
        #[arg(long)]
        if_not_exists: bool,
    },
    /// Have a portal group listen there no more; sessions over it stay, and do not come back over
    /// it
    #[command(alias = "rm")]
    Delete {
        #[command(flatten)]
        which: Which,
        /// Succeed where there is none
        #[arg(long)]
        if_exists: bool,
    },
}

const COLUMNS: Columns =
    Columns::new(&["PORTAL", "GROUP", "TAG", "INTERFACE", "SESSIONS", "STATE"]);

pub(crate) fn run(context: &Context<'_>, verb: &PortalVerb) -> Result<(), Problem> {
    match verb {
        PortalVerb::Ls => {
            let (all, sessions) = (known(context)?, sessions(context)?);
            context.output.list(&all, |all| list(all, &sessions));
            Ok(())
        }
        PortalVerb::Show { portal: name } => {
            let wanted = portal(name).map_err(usage)?;
            let all = known(context)?;
            let found = all.iter().find(|it| it.address == wanted);
            let found = found.ok_or_else(|| Problem::not_found("portal", name))?;
            let sessions = sessions(context)?;
            context.output.show(found, |it| page(it, &sessions));
            Ok(())
        }
        PortalVerb::Create {
            which,
            if_not_exists,
        } => create(context, which, *if_not_exists),
        PortalVerb::Delete { which, if_exists } => delete(context, which, *if_exists),
    }
}

fn known(context: &Context<'_>) -> Result<Vec<PortalFacts>, Problem> {
    let status: StatusView = context.client.get("/api/v1/status")?;
    Ok(status.portals)
}

fn sessions(context: &Context<'_>) -> Result<Vec<SessionFacts>, Problem> {
    context.client.get("/api/v1/sessions")
}

impl Which {
    /// With its port, as the settings have it.
    fn name(&self) -> Result<String, Problem> {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        let text = match (&self.portal, &self.ip, &self.iface) {
            (Some(portal), ..) => portal.clone(),
            (None, Some(std::net::IpAddr::V6(ip)), _) if self.port.is_some() => {
                format!("[{ip}]{port}")
            }
            (None, Some(ip), _) => format!("{ip}{port}"),
            (None, None, iface) => format!("{}{port}", iface.as_deref().unwrap_or_default()),
        };
        portal(&text).map_err(usage)
    }
}

/// The portal group that is meant, and where it listens by the settings.
fn listen(started: &Started, which: &Which) -> Result<(String, Vec<String>), Problem> {
    let groups = started.of_sections("portal_group", "name");
    let wanted = which.portal_group.as_deref();
    let found = groups
        .iter()
        .find(|(_, name)| wanted.is_none_or(|wanted| name == wanted));
    let Some((section, name)) = found else {
        let names: Vec<&str> = groups.iter().map(|(_, name)| name.as_str()).collect();
        let problem = Problem::not_found("portal group", wanted.unwrap_or_default());
        return Err(problem.hint(format!("there is {}", names.join(", "))));
    };
    let value = started.value(&format!("{section}.listen"));
    Ok((name.clone(), portals(&value.unwrap_or_default())))
}

fn create(context: &Context<'_>, which: &Which, if_not_exists: bool) -> Result<(), Problem> {
    let portal = which.name()?;
    let started = Started::read(context)?;
    let (group, mut all) = listen(&started, which)?;
    if all.contains(&portal) {
        let detail = format!("portal group {group} listens at {portal} already");
        if if_not_exists {
            started.nothing(context, detail);
            return Ok(());
        }
        return Err(Problem::new(Code::AlreadyExists, detail));
    }
    all.push(portal);
    let body = json!({ "portals": { "group": group, "listen": all } });
    config::change(context, &started, &body)
}

fn delete(context: &Context<'_>, which: &Which, if_exists: bool) -> Result<(), Problem> {
    let portal = which.name()?;
    let started = Started::read(context)?;
    let (group, all) = listen(&started, which)?;
    let rest: Vec<&String> = all.iter().filter(|it| **it != portal).collect();
    if rest.len() == all.len() {
        let problem = Problem::not_found("portal", &portal).hint(format!(
            "portal group {group} listens at {}; another one: --portal-group NAME",
            all.join(", ")
        ));
        if if_exists {
            started.nothing(context, problem.detail.clone());
            return Ok(());
        }
        return Err(problem);
    }
    let last = rest.is_empty();
    if last {
        let detail = format!(
            "{portal} is the last portal of portal group {group}: no host would reach its targets"
        );
        return Err(Problem::new(Code::InUse, detail)
            .hint("add another portal first: causeway portal create ADDRESS"));
    }
    let over = over(&portal, &known(context)?, sessions(context)?);
    if !over.is_empty() && !context.is_forced() && !context.is_dry_run() {
        let refused = refusal(&portal, &over);
        if !confirm::typed(&refused) {
            return Err(refused);
        }
    }
    let body = json!({ "portals": { "group": group, "listen": rest } });
    if !context.output.is_document() {
        let lines = over.iter().map(|it| format!("hits {it}\n"));
        output::print(&lines.collect::<String>());
    }
    config::change(context, &started, &body)
}

/// The sessions over a portal, or over the addresses of an interface.
fn over(portal: &str, known: &[PortalFacts], sessions: Vec<SessionFacts>) -> Vec<String> {
    let interface = portal.rsplit_once(':').map_or(portal, |(name, _)| name);
    let of_it =
        |it: &&PortalFacts| it.address == portal || it.interface.as_deref() == Some(interface);
    let addresses: Vec<&str> = known
        .iter()
        .filter(of_it)
        .map(|it| it.address.as_str())
        .collect();
    let over = sessions
        .into_iter()
        .filter(|it| addresses.contains(&it.portal.as_str()));
    over.map(|it| {
        format!(
            "host {}: session {} stays, and cannot log in over {portal} again",
            it.host, it.id
        )
    })
    .collect()
}

fn refusal(portal: &str, over: &[String]) -> Problem {
    let detail = format!("{portal} is in use");
    Problem::new(Code::InUse, detail)
        .hits(over.to_vec())
        .confirm(portal, Vec::new())
}

fn list(all: &[PortalFacts], sessions: &[SessionFacts]) -> Table {
    let row = |it: &PortalFacts| {
        let over = sessions
            .iter()
            .filter(|session| session.portal == it.address);
        vec![
            it.address.clone(),
            it.group.clone(),
            it.tag.to_string(),
            it.interface.clone().unwrap_or_default(),
            over.count().to_string(),
            state(it),
        ]
    };
    Table::new(COLUMNS, all.iter().map(row).collect())
}

fn state(portal: &PortalFacts) -> String {
    let problem = portal.problem.clone();
    problem.unwrap_or_else(|| "listening".to_owned())
}

fn page(it: &PortalFacts, sessions: &[SessionFacts]) -> String {
    let over = sessions
        .iter()
        .filter(|session| session.portal == it.address);
    let over = over.map(|it| format!("{} {} from {}", it.id, it.host, it.from));
    properties(&[
        ("portal", it.address.clone()),
        ("portal group", it.group.clone()),
        ("tag", it.tag.to_string()),
        ("interface", it.interface.clone().unwrap_or_default()),
        ("state", state(it)),
        ("sessions", over.collect::<Vec<String>>().join("\n")),
    ])
}

#[cfg(test)]
mod test {
    use super::*;

    fn which(
        portal: Option<&str>,
        ip: Option<&str>,
        iface: Option<&str>,
        port: Option<u16>,
    ) -> Which {
        Which {
            portal: portal.map(str::to_owned),
            ip: ip.map(|ip| ip.parse().unwrap()),
            iface: iface.map(str::to_owned),
            port,
            portal_group: None,
        }
    }

    #[test]
    fn a_portal_is_an_address_or_an_interface_with_its_port() {
        let name = |it: Which| it.name().unwrap();
        assert_eq!(
            name(which(Some("10.0.0.1"), None, None, None)),
            "10.0.0.1:3260"
        );
        assert_eq!(
            name(which(None, Some("2001:db8::1"), None, None)),
            "[2001:db8::1]:3260"
        );
        assert_eq!(
            name(which(None, Some("2001:db8::1"), None, Some(861))),
            "[2001:db8::1]:861"
        );
        assert_eq!(name(which(None, None, Some("eth1"), Some(861))), "eth1:861");
        assert!(which(Some("10.0.0"), None, None, None).name().is_err());
    }

    #[test]
    fn sessions_over_an_interface_are_those_over_its_addresses() {
        let portal = |address: &str, interface: Option<&str>| PortalFacts {
            group: "default".to_owned(),
            tag: 1,
            address: address.to_owned(),
            interface: interface.map(str::to_owned),
            problem: None,
        };
        let known = [
            portal("10.0.0.1:3260", Some("eth1")),
            portal("10.0.1.1:3260", Some("eth2")),
        ];
        let session = |id: u64, portal: &str| -> SessionFacts {
            let document = json!({ "id": id, "host": "esx01", "initiator": "i", "from": "10.0.0.9:1", "portal": portal,
                "since": "s", "core": 0, "bytes_in": 0, "bytes_out": 0, "pdus_received": 0, "in_flight": 0,
                "bytes_in_flight": 0, "commands": 0, "keys": {} });
            serde_json::from_value(document).unwrap()
        };
        let sessions = || vec![session(1, "10.0.0.1:3260"), session(2, "10.0.1.1:3260")];
        let found = over("eth1:3260", &known, sessions());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].starts_with("host esx01: session 1 stays"),
            "{found:?}"
        );
        assert_eq!(over("10.0.1.1:3260", &known, sessions()).len(), 1);
        assert!(over("10.0.2.1:3260", &known, sessions()).is_empty());
    }
}
