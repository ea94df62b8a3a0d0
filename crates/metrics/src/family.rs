//! What a family of series is, and the text that has all of them.

use std::fmt::{Display, Write as _};

/// The most series that one family shows; the rest is counted in
/// `causeway_metrics_series_dropped`.
pub const SERIES_MAX: usize = 200_000;

/// A family of series, as it is declared: each of its series has a value for each of its labels.
pub(super) struct Family<const LABELS: usize> {
    /// Its name in full.
    pub(super) name: &'static str,
    /// `gauge`, `counter` or `histogram`.
    pub(super) kind: &'static str,
    /// Names of the labels, in their order.
    pub(super) labels: [&'static str; LABELS],
    /// What it reports, without a full stop; words of code between backticks, for the reference.
    pub(super) help: &'static str,
}

impl<const LABELS: usize> Family<LABELS> {
    /// One that only grows.
    pub(super) const fn counter(
        name: &'static str,
        labels: [&'static str; LABELS],
        help: &'static str,
    ) -> Self {
        Self {
            name,
            kind: "counter",
            labels,
            help,
        }
    }

    /// One that goes up and down.
    pub(super) const fn gauge(
        name: &'static str,
        labels: [&'static str; LABELS],
        help: &'static str,
    ) -> Self {
        Self {
            kind: "gauge",
            ..Self::counter(name, labels, help)
        }
    }

    /// One of buckets, with their sum and count.
    pub(super) const fn histogram(
        name: &'static str,
        labels: [&'static str; LABELS],
        help: &'static str,
    ) -> Self {
        Self {
            kind: "histogram",
            ..Self::counter(name, labels, help)
        }
    }
}

/// The text: families one after the other, each with its series.
#[derive(Default)]
pub(super) struct Text {
    text: String,
    in_family: usize,
    dropped: usize,
}

impl Text {
    /// Begins a family.
    pub(super) fn family<const LABELS: usize>(&mut self, family: &Family<LABELS>) {
        self.begin(family.name, family.kind, family.help);
    }

    /// A series of the family that was begun last.
    pub(super) fn series<const LABELS: usize>(
        &mut self,
        family: &Family<LABELS>,
        values: [&str; LABELS],
        value: impl Display,
    ) {
        let labels = family.labels.into_iter().zip(values);
        self.line(family.name, &labels.collect::<Vec<_>>(), value);
    }

    /// A family of one series that has no labels.
    pub(super) fn single(&mut self, family: &Family<0>, value: impl Display) {
        self.family(family);
        self.series(family, [], value);
    }

    /// Begins a family that is declared elsewhere.
    pub(super) fn begin(&mut self, name: &str, kind: &str, help: &str) {
        self.in_family = 0;
        let help = help.replace('`', "");
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}.\n# TYPE {name} {kind}");
    }

    /// A line of the family that was begun last.
    pub(super) fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.in_family += 1;
        if self.in_family > SERIES_MAX {
            self.dropped += 1;
            return;
        }
        self.text.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            let value = value
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            let _ = write!(self.text, "{label}=\"{value}\"");
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    /// How many lines were left out.
    pub(super) const fn dropped(&self) -> usize {
        self.dropped
    }

    /// The lines that were written so far.
    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// Exact decimal seconds, without the rounding of floating point.
pub(super) fn seconds(us: u64) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
