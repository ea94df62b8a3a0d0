//! `causeway grant ...`.

use super::{Context, Tolerate};
use crate::assign::{assignments, boolean, usage};
use crate::cli::GrantVerb;
use crate::client::segment;
use crate::output::{properties, table};
use control::code::Code;
use control::objects::{GrantKey, GrantSpec};
use control::problem::Problem;
use control::view::GrantView;
use hyper::Method;

pub(super) fn run(context: &Context<'_>, verb: &GrantVerb) -> Result<(), Problem> {
    let of = |name: &str| format!("/api/v1/grants/{}", segment(name));
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
            let named = Named::read(what, host.as_deref(), lun.as_deref(), target.as_deref())?;
            let tolerate = Tolerate::when(*if_not_exists, Code::AlreadyExists);
            let grant = GrantSpec {
                host: named.host,
                lun: named.lun,
                target: named.target,
                lun_id: *lun_id,
                read_only: *read_only,
            };
            context.change_unless(tolerate, Method::POST, "/api/v1/grants", &grant)
        }
        GrantVerb::Ls => {
            let grants: Vec<GrantView> = context.client.get("/api/v1/grants")?;
            context.output.show(&grants, |grants| list(grants));
            Ok(())
        }
        GrantVerb::Show { name } => {
            let grant: GrantView = context.client.get(&of(name))?;
            context.output.show(&grant, page);
            Ok(())
        }
        GrantVerb::Set { name, values } => {
            let given = assignments(values, &["lun_id", "read_only"])?;
            let now: GrantView = context.client.get(&of(name))?;
            let mut grant = GrantSpec {
                host: now.host,
                lun: now.lun,
                target: Some(now.target),
                lun_id: Some(now.lun_id),
                read_only: now.read_only,
            };
            for (key, value) in given {
                if key == "read_only" {
                    grant.read_only = boolean(key, value)?;
                } else {
                    let number = value.parse();
                    let number =
                        number.map_err(|_| usage(format!("lun_id={value}: write 0 to 16383")))?;
                    grant.lun_id = Some(number);
                }
            }
            context.change(Method::PUT, &of(name), &grant)
        }
        GrantVerb::Delete {
            what,
            target,
            if_exists,
        } => {
            let named = Named::read(what, None, None, target.as_deref())?;
            let tolerate = Tolerate::when(*if_exists, Code::NotFound);
            match named.key(context) {
                Ok(key) => context.change_unless(tolerate, Method::DELETE, &of(&key), &()),
                Err(problem) if tolerate == Tolerate::Code(problem.code) => Ok(()),
                Err(problem) => Err(problem),
            }
        }
    }
}

/// A grant as the arguments name it.
struct Named {
    host: String,
    lun: String,
    target: Option<String>,
}

impl Named {
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

fn list(grants: &[GrantView]) -> String {
    let rows: Vec<Vec<String>> = grants
        .iter()
        .map(|grant| {
            vec![
                grant.host.clone(),
                grant.target.clone(),
                grant.lun.clone(),
                grant.lun_id.to_string(),
                writing(grant),
            ]
        })
        .collect();
    table(&["HOST", "TARGET", "LUN", "NUMBER", "ACCESS"], &rows)
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
