//! `causeway session ...`.

use super::context::{Context, object_path};
use super::user::if_there;
use crate::completion::{CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::Subcommand;
use hyper::Method;
use manifest::ending::{Dropped, Ending};
use manifest::facts::{RefusalFacts, SessionFacts, SessionNic};
use manifest::problem::Problem;
use manifest::size::Size;
use manifest::view::HostView;
use output::{Columns, Table, in_flight, most, properties, rounded};

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["session", "show"], "id", Kind::Session),
    (&["session", "drop"], "id", Kind::Session),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[
    (&["session", "ls"], When::With("refused"), REFUSED),
    (&["session", "ls"], When::Always, COLUMNS),
];

#[derive(Subcommand, Debug)]
pub(crate) enum SessionVerb {
    /// List sessions
    #[command(alias = "list")]
    Ls {
        /// The last logins that were refused, and why
        #[arg(long)]
        refused: bool,
    },
    /// Show all of a session, with what was negotiated
    Show {
        /// Its number
        id: u64,
    },
    /// End a session; its initiator will log in again. It asks where that is its last path
    #[command(aliases = ["delete", "rm"])]
    Drop {
        /// Its number
        id: u64,
        /// Succeed where there is none
        #[arg(long)]
        if_exists: bool,
    },
}

/// How many refusals stand below the sessions.
const REFUSALS_SHOWN: usize = 5;

pub(crate) fn run(context: &Context<'_>, verb: &SessionVerb) -> Result<(), Problem> {
    match verb {
        SessionVerb::Ls { refused: false } => {
            let sessions: Vec<SessionFacts> = context.client.get("/api/v1/sessions")?;
            // A program reads the two lists apart.
            let mut last = Vec::new();
            if !context.output.is_document() {
                last = context.client.get("/api/v1/refusals")?;
            }
            context
                .output
                .list(&sessions, |sessions| list(sessions).above(list_last(&last)));
        }
        SessionVerb::Ls { refused: true } => {
            let refusals: Vec<RefusalFacts> = context.client.get("/api/v1/refusals")?;
            context
                .output
                .list(&refusals, |refusals| list_refusals(refusals));
        }
        SessionVerb::Show { id } => {
            let session: SessionFacts = context.client.get(&format!("/api/v1/sessions/{id}"))?;
            // It may have been renamed or removed since the login.
            let host = context
                .client
                .get::<HostView>(&object_path("host", &session.host));
            let mutual = host.ok().and_then(|host| host.chap?.mutual_user);
            context
                .output
                .show(&session, |session| page(session, mutual.as_deref()));
        }
        SessionVerb::Drop { id, if_exists } => {
            let path = format!("/api/v1/sessions/{id}");
            // A program is shown the session as it was.
            let asked = context.client.get(&path);
            let Some(session) = if_there::<SessionFacts>(context, *if_exists, asked)? else {
                return Ok(());
            };
            let ending: Ending = context.request(Method::DELETE, &path, &())?;
            context.output.show(&Dropped { session, ending }, |it| {
                let after = if it.ending.changed {
                    "its initiator may log in again\n"
                } else {
                    ""
                };
                format!("{}{after}", it.ending)
            });
        }
    }
    Ok(())
}

/// How many PDUs came, how many at once, and how often several were waited for.
fn received(session: &SessionFacts) -> String {
    let (pdus, receives) = (session.pdus_received, session.receives);
    if receives == 0 {
        return pdus.to_string();
    }
    let tenths = pdus.saturating_mul(10) / receives;
    let waited = session.receives_waited.saturating_mul(100) / receives;
    let (whole, tenth) = (tenths / 10, tenths % 10);
    format!("{pdus}, {whole}.{tenth} at once, {waited} % of the times after a wait for several")
}

/// How much of its core's time goes to a session.
fn load(session: &SessionFacts) -> String {
    let permille = session.load_permille;
    format!("{}.{}%", permille / 10, permille % 10)
}

const COLUMNS: Columns = Columns::new(&[
    "ID",
    "HOST",
    "INITIATOR",
    "TARGET",
    "FROM",
    "NIC",
    "PORTAL",
    "CORE",
    "LOAD",
    "IN FLIGHT",
    "IN",
    "OUT",
])
.wide(&["SINCE", "COMMANDS"]);

fn list(sessions: &[SessionFacts]) -> Table {
    let rows: Vec<Vec<String>> = sessions
        .iter()
        .map(|session| {
            vec![
                session.id.to_string(),
                session.host.clone(),
                session.initiator.clone(),
                session
                    .target
                    .clone()
                    .unwrap_or_else(|| "(discovery)".to_owned()),
                session.from.clone(),
                session.nic.as_ref().map_or("-", |nic| &nic.name).to_owned(),
                session.portal.clone(),
                session.core.to_string(),
                load(session),
                in_flight(session.in_flight, session.bytes_in_flight),
                rounded(session.bytes_in),
                rounded(session.bytes_out),
                session.since.clone(),
                session.commands.to_string(),
            ]
        })
        .collect();
    Table::new(COLUMNS, rows)
}

/// The newest refusals, so that nobody must know that there is a list of them.
fn list_last(refusals: &[RefusalFacts]) -> String {
    if refusals.is_empty() {
        return String::new();
    }
    let shown = refusals.get(..REFUSALS_SHOWN).unwrap_or(refusals);
    format!(
        "\nrefused lately, newest first (all: causeway session ls --refused):\n{}",
        list_refusals(shown)
    )
}

fn reason(refusal: &RefusalFacts) -> String {
    let times = match refusal.times {
        0 | 1 => String::new(),
        times => format!(", {times} times"),
    };
    format!("{} (status {}{times})", refusal.reason, refusal.status)
}

const REFUSED: Columns = Columns::new(&[
    "AT",
    "CODE",
    "INITIATOR",
    "FROM",
    "TARGET",
    "PORTAL",
    "REASON",
]);

fn list_refusals(refusals: &[RefusalFacts]) -> Table {
    let rows: Vec<Vec<String>> = refusals
        .iter()
        .map(|refusal| {
            vec![
                refusal.at.clone(),
                refusal.code.to_string(),
                refusal.initiator.clone(),
                refusal.from.clone(),
                refusal.target.clone(),
                refusal.portal.clone(),
                reason(refusal),
            ]
        })
        .collect();
    Table::new(REFUSED, rows)
}

/// `user` is who proved itself; `mutual`: the user that the host's object has for the target's own
/// proof.
fn chap(user: Option<&str>, both: bool, mutual: Option<&str>) -> String {
    match (user, both, mutual) {
        (None, _, _) => "none".to_owned(),
        (Some(user), false, None) => format!("user {user}"),
        (Some(user), false, Some(mutual)) => format!(
            "user {user}, one-way: this initiator did not ask the target to prove itself as {mutual}"
        ),
        (Some(user), true, _) => format!("user {user}, mutual"),
    }
}

/// The host's NIC, as it reported it.
fn nic(of: Option<&SessionNic>) -> String {
    let Some(nic) = of else {
        return "not reported by this host".to_owned();
    };
    let speed = nic
        .bits_per_second
        .map(|bits| paths::Speed(bits).to_string());
    let parts = [
        Some(nic.name.clone()),
        nic.card.as_ref().map(|card| format!("card {card}")),
        speed,
        nic.fabric.as_ref().map(|fabric| format!("fabric {fabric}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

fn page(session: &SessionFacts, mutual: Option<&str>) -> String {
    let keys: Vec<String> = session
        .keys
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let luns: Vec<String> = session
        .luns
        .iter()
        .map(|lun| {
            let how = if lun.read_only { " (read only)" } else { "" };
            format!("{} {}{how}", lun.lun_id, lun.lun)
        })
        .collect();
    properties(&[
        ("session", session.id.to_string()),
        ("host", session.host.clone()),
        ("initiator", session.initiator.clone()),
        (
            "target",
            session
                .target
                .clone()
                .unwrap_or_else(|| "(discovery)".to_owned()),
        ),
        ("from", session.from.clone()),
        ("nic", nic(session.nic.as_ref())),
        ("portal", session.portal.clone()),
        (
            "core",
            format!(
                "{}{}",
                session.core,
                if session.pinned { " (pinned)" } else { "" }
            ),
        ),
        ("load", format!("{} of its core's time", load(session))),
        ("since", session.since.clone()),
        ("bytes in", rounded(session.bytes_in)),
        ("bytes out", rounded(session.bytes_out)),
        (
            "in flight",
            in_flight(session.in_flight, session.bytes_in_flight),
        ),
        (
            "in flight at most",
            most(session.bytes_in_flight_max.and_then(Size::from_bytes)),
        ),
        ("commands", session.commands.to_string()),
        ("PDUs received", received(session)),
        (
            "chap",
            chap(session.chap_user.as_deref(), session.mutual_chap, mutual),
        ),
        ("luns", luns.join("\n")),
        ("negotiated", keys.join("\n")),
    ])
}

#[cfg(test)]
mod test {
    #[test]
    fn a_nic_is_named_with_its_card_and_a_host_that_reports_none_is_said_to() {
        use super::{SessionNic, nic};
        assert_eq!(nic(None), "not reported by this host");
        let with = |card: Option<&str>, bits_per_second| SessionNic {
            name: "eth2".to_owned(),
            card: card.map(str::to_owned),
            fabric: None,
            bits_per_second,
            links: None,
            mtu: None,
            planned: false,
        };
        let known = with(Some("0000:03:00"), Some(10_000_000_000));
        assert_eq!(nic(Some(&known)), "eth2, card 0000:03:00, 10 Gb/s");
        assert_eq!(nic(Some(&with(None, None))), "eth2");
    }

    #[test]
    fn a_one_way_login_of_a_host_with_mutual_chap_is_reported() {
        use super::chap;
        assert_eq!(chap(None, false, None), "none");
        assert_eq!(chap(Some("esx01"), false, None), "user esx01");
        assert_eq!(chap(Some("esx01"), true, Some("san")), "user esx01, mutual");
        let shown = chap(Some("esx01"), false, Some("san"));
        assert!(shown.starts_with("user esx01, one-way: "), "{shown}");
        assert!(shown.ends_with("as san"), "{shown}");
    }
}
