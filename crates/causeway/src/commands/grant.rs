//! `causeway grant ...`.

use super::context::{Context, Patch, Step, Tolerate, object_path};
use super::share::host_of;
use crate::args::{Assigned, Named};
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::Subcommand;
use hyper::Method;
use manifest::code::Code;
use manifest::objects::{GrantKey, GrantSpec, LUN_ID_MAX, ObjectSet};
use manifest::problem::Problem;
use manifest::view::{GrantView, HostView};
use output::assign::{Keys, assignments, boolean, number, usage};
use output::{Columns, Table, properties};
use serde_json::json;
use std::borrow::Cow;

/// What can be assigned, with the values where they are few.
pub(crate) const ASSIGNMENTS: &[&str] = &["lun_id=", "read_only=true", "read_only=false"];

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["grant", "create"], "what", Kind::HostAndLun),
    (&["grant", "create"], "host", Kind::Name("host")),
    (&["grant", "create"], "lun", Kind::Name("lun")),
    (&["grant", "create"], "target", Kind::Name("target")),
    (&["grant", "show"], "name", Kind::Name("grant")),
    (&["grant", "set"], "name", Kind::Name("grant")),
    (&["grant", "set"], "values", Kind::Assignment(ASSIGNMENTS)),
    (&["grant", "delete"], "what", Kind::GrantOrHostAndLun),
    (&["grant", "delete"], "target", Kind::Name("target")),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[(&["grant", "ls"], When::Always, COLUMNS)];

#[derive(Subcommand, Debug)]
pub(crate) enum GrantVerb {
    /// Let a host use a LUN
    #[command(alias = "add")]
    Create {
        /// HOST LUN, or HOST:TARGET:LUN; an initiator's iSCSI name stands for its host, which is
        /// made where there is none
        #[arg(num_args = 0..=2, value_name = "HOST LUN")]
        what: Vec<String>,
        /// The host
        #[arg(long)]
        host: Option<String>,
        /// The LUN
        #[arg(long)]
        lun: Option<String>,
        /// Through which target [default: the only one]
        #[arg(long)]
        target: Option<String>,
        /// The number by which the host knows the LUN, 0 to 16383 [default: the lowest free one]
        #[arg(long, value_name = "NUMBER")]
        lun_id: Option<u16>,
        /// The host may not write
        #[arg(long)]
        read_only: bool,
        /// Succeed where there is one
        #[arg(long)]
        if_not_exists: bool,
    },
    /// List grants
    #[command(alias = "list")]
    Ls,
    /// Show a grant, whose name is HOST:TARGET:LUN
    Show(Named),
    /// Change properties of HOST:TARGET:LUN: lun_id=7, read_only=true
    Set(Assigned),
    /// Take a grant back
    #[command(alias = "rm")]
    Delete {
        /// HOST:TARGET:LUN, or HOST LUN
        #[arg(num_args = 1..=2, required = true, value_name = "NAME")]
        what: Vec<String>,
        /// Through which target [default: the only one with such a grant]
        #[arg(long)]
        target: Option<String>,
        /// Succeed where there is none
        #[arg(long)]
        if_exists: bool,
    },
}

const NOUN: &str = "grant";

const TIED: &str = "a grant is what it ties together: create the other grant, then delete this one";

const KEYS: Keys = Keys {
    known: Cow::Borrowed(&["lun_id", "read_only"]),
    fixed: &[
        ("host", TIED),
        ("lun", TIED),
        ("target", TIED),
        ("name", TIED),
    ],
    later: &[],
};

pub(crate) fn run(context: &Context<'_>, verb: &GrantVerb) -> Result<(), Problem> {
    let of = |name: &str| object_path(NOUN, name);
    match verb {
        GrantVerb::Create {
            what,
            host,
            lun,
            target,
            lun_id,
            read_only,
            if_not_exists,
        } => {
            let named = Wanted::read(what, host.as_deref(), lun.as_deref(), target.as_deref())?;
            let tolerate = Tolerate::when(*if_not_exists, Code::AlreadyExists);
            // An initiator's name stands for its host, which is made where there is none.
            let hosts: Vec<HostView> = context.client.get("/api/v1/hosts")?;
            let mut set = ObjectSet::default();
            let named = Wanted {
                host: host_of(&mut set, &hosts, &named.host)?,
                ..named
            };
            let grant = GrantSpec {
                host: named.host.clone(),
                lun: named.lun.clone(),
                target: named.target.clone(),
                lun_id: *lun_id,
                read_only: *read_only,
            };
            let made = |spec| Step::new(Method::POST, "/api/v1/hosts", spec);
            let mut steps: Vec<Step> = set.host.iter().map(made).collect();
            steps.push(Step::new(Method::POST, "/api/v1/grants", &grant));
            context.change_object(tolerate, &steps, |outcome| {
                let made = outcome.actions.last().map(|made| made.name.clone());
                let name = made.map_or_else(|| named.key(context), Ok)?;
                Ok(of(&name))
            })
        }
        GrantVerb::Ls => {
            let grants: Vec<GrantView> = context.client.get("/api/v1/grants")?;
            context.output.list(&grants, |grants| list(grants));
            Ok(())
        }
        GrantVerb::Show(Named { name }) => {
            let grant: GrantView = context.client.get(&of(name))?;
            context.output.show(&grant, page);
            Ok(())
        }
        GrantVerb::Set(assigned) => set(context, assigned),
        GrantVerb::Delete {
            what,
            target,
            if_exists,
        } => {
            let named = Wanted::read(what, None, None, target.as_deref())?;
            let tolerate = Tolerate::when(*if_exists, Code::NotFound);
            let key = match named.key(context) {
                // The daemon says so of the name.
                Err(problem) if problem.code == Code::NotFound => named.shown(),
                key => key?,
            };
            context.change(tolerate, &Step::new(Method::DELETE, of(&key), &()))
        }
    }
}

fn set(context: &Context<'_>, assigned: &Assigned) -> Result<(), Problem> {
    let mut patch = Patch::new();
    for (key, value) in assignments(&assigned.values, &KEYS)? {
        let value = match key {
            "read_only" => json!(boolean(key, value)?),
            _ => json!(number(key, value, LUN_ID_MAX)?),
        };
        patch.insert(key.to_owned(), value);
    }
    context.patch(NOUN, &assigned.name, &patch, None)
}

/// A grant as the arguments name it.
struct Wanted {
    host: String,
    lun: String,
    target: Option<String>,
}

impl Wanted {
    fn read(
        what: &[String],
        host: Option<&str>,
        lun: Option<&str>,
        target: Option<&str>,
    ) -> Result<Self, Problem> {
        let target = target.map(ToOwned::to_owned);
        let named = |host: &str, lun: &str| Self {
            host: host.to_owned(),
            lun: lun.to_owned(),
            target: target.clone(),
        };
        match (what, host, lun) {
            ([host, lun], None, None) => Ok(named(host, lun)),
            ([], Some(host), Some(lun)) => Ok(named(host, lun)),
            ([whole], None, None) => {
                let key: GrantKey = whole.parse().map_err(usage)?;
                let target = Some(key.target);
                Ok(Self {
                    host: key.host,
                    lun: key.lun,
                    target,
                })
            }
            _ => Err(usage(
                "name the grant: HOST LUN, or HOST:TARGET:LUN, or --host HOST --lun LUN",
            )),
        }
    }

    /// As it was named, as far as it was.
    fn shown(&self) -> String {
        let target = self.target.as_deref().unwrap_or("*");
        format!("{}:{target}:{}", self.host, self.lun)
    }

    /// The grant's full name; where the target was left out, the only one that fits.
    fn key(&self, context: &Context<'_>) -> Result<String, Problem> {
        let (host, lun) = (&self.host, &self.lun);
        if let Some(target) = &self.target {
            return Ok(format!("{host}:{target}:{lun}"));
        }
        let grants: Vec<GrantView> = context.client.get("/api/v1/grants")?;
        let fitting: Vec<&GrantView> = grants
            .iter()
            .filter(|grant| grant.host == *host && grant.lun == *lun)
            .collect();
        match fitting.as_slice() {
            [only] => Ok(only.name.clone()),
            [] => Err(Problem::not_found("grant", &format!("{host} {lun}"))),
            many => {
                let names: Vec<&str> = many.iter().map(|grant| grant.target.as_str()).collect();
                Err(usage(format!(
                    "say through which target: {}",
                    names.join(", ")
                )))
            }
        }
    }
}

fn writing(grant: &GrantView) -> String {
    if grant.read_only {
        "read-only"
    } else {
        "read-write"
    }
    .to_owned()
}

const COLUMNS: Columns =
    Columns::new(&["HOST", "TARGET", "LUN", "NUMBER", "ACCESS"]).wide(&["NAME"]);

fn list(grants: &[GrantView]) -> Table {
    let rows: Vec<Vec<String>> = grants
        .iter()
        .map(|grant| {
            vec![
                grant.host.clone(),
                grant.target.clone(),
                grant.lun.clone(),
                grant.lun_id.to_string(),
                writing(grant),
                grant.name.clone(),
            ]
        })
        .collect();
    Table::new(COLUMNS, rows)
}

fn page(grant: &GrantView) -> String {
    properties(&[
        ("name", grant.name.clone()),
        ("host", grant.host.clone()),
        ("target", grant.target.clone()),
        ("lun", grant.lun.clone()),
        ("number", grant.lun_id.to_string()),
        ("access", writing(grant)),
    ])
}
