//! Comparisons of Causeway with itself: two cores with one, 4096-byte blocks with 512, digests with
//! none.

use super::bar::{Bar, Limit};
use super::case::{Case, READ_4K, SECTOR_CASES, WRITE_4K};
use super::cgroup::Cap;
use super::figures::Figures;
use super::load::LoadClient;
use super::plan::Plan;
use super::rounds::{Effort, Row, Variant, compare};
use super::servers::{self, Causeway};

/// The share of a processor that a core may use where two are compared with one.
const CAP_PERCENT: u32 = 40;

/// Rows and bars of a comparison.
#[derive(Default)]
pub struct Found {
    /// Measured rows, with a heading each.
    pub rows: Vec<Row>,
    /// What was asked of the rows, and whether they keep it.
    pub bars: Vec<Bar>,
    /// Charts: names of their files, and what is in them.
    pub charts: Vec<(&'static str, String)>,
}

/// One unit served by two cores and by one, each core capped.
///
/// The client has a thread on each processor in both, with half of the sessions: a command between
/// two processors costs more than one that stays on its processor (the wake-up of another
/// processor, and data in the wrong cache). A client that may run where it likes keeps away from
/// the one core and joins the two, which alone made them 2.8 times as fast.
///
/// # Errors
/// What failed, for people.
pub fn two_cores(plan: &Plan, client: &LoadClient) -> Result<Found, String> {
    let on = |name, cores| Causeway {
        name,
        cores,
        ..Causeway::usual(plan.bytes)
    };
    let one = servers::causeway(&plan.place, &on("one core", &[1]))?;
    let two = servers::causeway(&plan.place, &on("two cores", &[0, 1]))?;
    client.fill(&one.unit)?;
    client.fill(&two.unit)?;
    let caps = [one.process(), two.process()].map(|process| Cap::cores(process, CAP_PERCENT));
    let both = LoadClient::on_two_processors().map_err(|error| error.to_string())?;
    let mut found = Found::default();
    for case in [READ_4K, WRITE_4K].map(|case| case.with_sessions(4)) {
        if let Some(Err(error)) = caps.iter().find(|cap| cap.is_err()) {
            return Err(format!("processor time cannot be capped here: {error}"));
        }
        let variants = [&one, &two].map(|server| Variant {
            name: &server.name,
            unit: &server.unit,
            case,
        });
        let row = compare(&both, &variants, plan.effort)?;
        found.bars.push(Bar {
            what: format!(
                "two cores : one, each capped at {CAP_PERCENT} %, 4 sessions, {}, IOPS",
                case.name
            ),
            value: row.ratio(1, 0, Figures::iops),
            limit: Limit::AtLeast(1.7),
            detail: rates(&row),
        });
        found.rows.push(row);
    }
    Ok(found)
}

/// Names and rates of a row's variants.
#[must_use]
pub fn rates(row: &Row) -> String {
    let all = row.servers.iter().enumerate().map(|(at, name)| {
        let (iops, cost) = (row.of(at, Figures::iops), row.of(at, |f| f.server));
        format!("{name} {:.1}k IOPS, {cost:.2} us", iops / 1000.0)
    });
    all.collect::<Vec<_>>().join("; ")
}

/// 4096-byte blocks beside 512-byte ones, in every row of the published table.
///
/// # Errors
/// What failed, for people.
pub fn sectors(plan: &Plan, client: &LoadClient) -> Result<Found, String> {
    let of = |name, block| Causeway {
        name,
        block,
        ..Causeway::usual(plan.bytes)
    };
    let small = servers::causeway(&plan.place, &of("512", 512))?;
    let large = servers::causeway(&plan.place, &of("4096", 4096))?;
    client.fill(&small.unit)?;
    client.fill(&large.unit)?;
    // Five percent either way is less than a median of few rounds can show.
    let effort = Effort {
        rounds: plan.effort.rounds * 2 + 1,
        ..plan.effort
    };
    let mut found = Found::default();
    for case in SECTOR_CASES {
        let variants = [&small, &large].map(|server| Variant {
            name: &server.name,
            unit: &server.unit,
            case,
        });
        let row = compare(client, &variants, effort)?;
        found.bars.push(Bar {
            what: format!("blocks of 4096 : 512, {}, processor time", case.name),
            value: row.ratio(1, 0, |f| f.server),
            limit: Limit::Within(0.05),
            detail: rates(&row),
        });
        found.rows.push(row);
    }
    Ok(found)
}

/// Both digests beside none.
///
/// # Errors
/// What failed, for people.
pub fn digests(plan: &Plan, client: &LoadClient) -> Result<Found, String> {
    let server = servers::causeway(&plan.place, &Causeway::usual(plan.bytes))?;
    client.fill(&server.unit)?;
    let mut found = Found::default();
    let large = |id| {
        super::case::PEER_CASES
            .iter()
            .find(|case| case.id == id)
            .copied()
    };
    let cases = [
        Some(READ_4K),
        Some(WRITE_4K),
        large("r64k16"),
        large("w64k16"),
    ];
    for case in cases.into_iter().flatten() {
        let of = |name, case: Case| Variant {
            name,
            unit: &server.unit,
            case,
        };
        let variants = [of("no digests", case), of("digests", case.with_digests())];
        let row = compare(client, &variants, plan.effort)?;
        found.bars.push(Bar {
            what: format!("digests : none, {}, IOPS", case.name),
            value: row.ratio(1, 0, Figures::iops),
            limit: Limit::AtLeast(0.9),
            detail: rates(&row),
        });
        found.rows.push(row);
    }
    Ok(found)
}

/// Depth 1 with and without busy polling, beside the null server.
///
/// # Errors
/// What failed, for people.
pub fn polling(plan: &Plan, client: &LoadClient) -> Result<Found, String> {
    let null = servers::null(&plan.place, plan.bytes)?;
    let usual = servers::causeway(&plan.place, &Causeway::usual(plan.bytes))?;
    let polls = Causeway {
        name: "polling",
        poll_us: 50,
        ..Causeway::usual(plan.bytes)
    };
    let polls = servers::causeway(&plan.place, &polls)?;
    client.fill(&usual.unit)?;
    client.fill(&polls.unit)?;
    let mut found = Found::default();
    for id in ["r4k1", "w4k1"] {
        let mut cases = super::case::PEER_CASES.into_iter();
        let Some(case) = cases.find(|case| case.id == id) else {
            continue;
        };
        let variants = [&null, &usual, &polls].map(|server| Variant {
            name: &server.name,
            unit: &server.unit,
            case,
        });
        let row = compare(client, &variants, plan.effort)?;
        let p50 = (0..3).map(|at| format!("{} {:.1} us", row.servers[at], row.of(at, |f| f.p50)));
        found.bars.push(Bar {
            what: format!("poll_us = 50 : null, {}, p50", case.name),
            value: row.ratio(2, 0, |f| f.p50),
            limit: Limit::AtMost(1.25),
            detail: p50.collect::<Vec<_>>().join("; "),
        });
        found.rows.push(row);
    }
    Ok(found)
}
