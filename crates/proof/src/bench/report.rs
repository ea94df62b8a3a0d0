//! Rows as Markdown.

use super::load::Figures;
use super::rounds::Row;
use std::fmt::Write as _;

fn cell(row: &Row, server: usize) -> String {
    let of = |figure: fn(&Figures) -> f64| row.of(server, figure);
    let rate = of(Figures::iops);
    let shown = if row.case.bytes >= 64 << 10 {
        #[expect(clippy::cast_precision_loss, reason = "lengths of commands are small")]
        let bytes = row.case.bytes as f64;
        format!("{:.0} MB/s", rate * bytes / 1e6)
    } else {
        format!("{:.1}k", rate / 1e3)
    };
    format!(
        "{shown} / {:.0} / {:.0} / {:.2} / {:.2}",
        of(|f| f.p50),
        of(|f| f.p99),
        of(|f| f.server),
        of(|f| f.client)
    )
}

/// One line of a table, with ratios of `ours` to every other server.
#[must_use]
pub fn line(row: &Row) -> String {
    let mut out = format!("| {} |", row.case.name);
    for server in 0..row.servers.len() {
        // Writing to a String cannot fail.
        let _ = write!(out, " {} |", cell(row, server));
    }
    let Some(ours) = row.server("causeway") else {
        return out;
    };
    for other in (0..row.servers.len()).filter(|&server| server != ours) {
        let _ = write!(
            out,
            " {:.2} / {:.2} / {:.2} |",
            row.ratio(ours, other, Figures::iops),
            row.ratio(ours, other, |f| f.p50),
            row.ratio(ours, other, |f| f.server)
        );
    }
    out
}

/// The table's head for these servers.
#[must_use]
pub fn head(servers: &[String]) -> String {
    let mut out = "| case |".to_owned();
    for name in servers {
        let _ = write!(out, " {name} |");
    }
    let others: Vec<&String> = servers.iter().filter(|name| *name != "causeway").collect();
    let compared = others.len() < servers.len();
    for name in others.iter().filter(|_| compared) {
        let _ = write!(out, " causeway : {name} |");
    }
    let columns = out.matches('|').count() - 1;
    format!("{out}\n|{}", "---|".repeat(columns))
}
