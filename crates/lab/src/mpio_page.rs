//! The page of `lab mpio`: the topology of each test, its figures, and the published ones beside
//! them.

use crate::mpio::{Measured, MpioReport, MpioRow};
use crate::svg::{self, Group, escape};
use std::fmt::Write as _;

impl MpioReport {
    /// As a page of HTML that needs no other file.
    #[must_use]
    pub fn page(&self) -> String {
        let mut body = format!(
            "<p>Sequential I/O of 4 MiB, one at a time, {} s each, over links of {} and switch ports that hold {} KiB. \
             Everything runs in network namespaces of one machine: compare the shape with the published figures, not the \
             absolute values.</p><p class=\"soft\">Published: {}, {}. {}.</p>",
            self.options.seconds,
            self.options.rate,
            self.options.buffer_kib,
            escape(&self.published_source),
            escape(&self.published_workload),
            escape(&self.published_rig)
        );
        body.push_str(
            "<p class=\"legend\"><span><i style=\"background:var(--read)\"></i>read</span><span><i \
             style=\"background:var(--write)\"></i>write</span><span><i style=\"background:var(--theirs)\"></i>published, \
             on other machines</span></p>",
        );
        for (title, of) in [("Read, MB/s", false), ("Write, MB/s", true)] {
            let _fits = write!(body, "<h2>{title}</h2>{}", self.bars(of));
        }
        body.push_str("<h2>Figures</h2>");
        body.push_str(&self.table());
        body.push_str("<h2>The tests</h2><div class=\"tests\">");
        for row in &self.rows {
            let _fits = write!(
                body,
                "<figure>{}<figcaption><b>{}</b> {}{}</figcaption></figure>",
                svg::topology(&self.topology, &self.lines(row)),
                row.test,
                escape(row.title),
                row.model.map_or(String::new(), |it| format!(
                    "<br><small>A model: {}.</small>",
                    escape(it)
                ))
            );
        }
        body.push_str("</div>");
        svg::page("Causeway lab: eight ways to connect a host", &body)
    }

    fn bars(&self, write: bool) -> String {
        let groups = self.rows.iter().map(|row| {
            let (class, cell) = if write {
                ("write", &row.write)
            } else {
                ("read", &row.read)
            };
            let mut bars = vec![(class, Some(cell.mbps))];
            if let Some(published) = cell.published {
                bars.push(("theirs", Some(published.mbps)));
            }
            Group {
                label: row.test.to_owned(),
                bars,
            }
        });
        svg::bars(&groups.collect::<Vec<_>>(), "MB/s")
    }

    fn table(&self) -> String {
        let mut out = String::from(
            "<table><tr><th class=\"text\">test</th><th class=\"text\"></th><th>MB/s</th><th>against D</th><th>published</th>\
             <th>its D</th><th>ms</th><th>published</th><th>sent again</th></tr>",
        );
        for row in &self.rows {
            for (name, cell) in [("read", &row.read), ("write", &row.write)] {
                let class = if row.test == "ours" {
                    " class=\"ours\""
                } else {
                    ""
                };
                let _fits = write!(
                    out,
                    "<tr{class}><td class=\"text\">{}</td><td class=\"text\">{name}</td><td>{:.1}</td><td>{}</td><td>{}</td>\
                     <td>{}</td><td>{:.1}</td><td>{}</td><td>{}</td></tr>",
                    row.test,
                    cell.mbps,
                    percent(cell.vs_control_pct),
                    number(cell.published.map(|it| it.mbps)),
                    percent(cell.published_vs_control_pct),
                    cell.ms,
                    number(cell.published.map(|it| it.ms)),
                    cell.retransmits
                );
            }
        }
        out + "</table>"
    }

    /// The report as lines for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!(
            "Sequential 4 MiB, one at a time, {} s each; links {}, switch ports hold {} KiB\n\n\
             test          MB/s  against D   published      its D       ms   sent again\n",
            self.options.seconds, self.options.rate, self.options.buffer_kib
        );
        for row in &self.rows {
            for (name, cell) in [("read", &row.read), ("write", &row.write)] {
                let _fits = writeln!(out, "{}", line(row, name, cell));
            }
        }
        out.push('\n');
        for row in &self.rows {
            let model = row
                .model
                .map_or(String::new(), |it| format!(" (a model: {it})"));
            let _fits = writeln!(out, "{:<5} {}{model}", row.test, row.title);
        }
        let _fits = writeln!(out, "\npublished: {}", self.published_rig);
        out
    }
}

fn line(row: &MpioRow, name: &str, cell: &Measured) -> String {
    format!(
        "{:<5}{name:<6}{:>7.1}{:>11}{:>12}{:>11}{:>9.1}{:>13}",
        row.test,
        cell.mbps,
        percent(cell.vs_control_pct),
        number(cell.published.map(|it| it.mbps)),
        percent(cell.published_vs_control_pct),
        cell.ms,
        cell.retransmits
    )
}

pub(crate) fn percent(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |it| format!("{it:+.0} %"))
}

pub(crate) fn number(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |it| format!("{it:.1}"))
}
