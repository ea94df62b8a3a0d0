//! How figures are written, and a frame as plain text.

use super::frame::{CoreRow, Frame, LunRow, Rates, SessionRow};
use output::table;

/// A count a second: four characters at most that mean something.
pub(crate) fn count(value: f64) -> String {
    match value {
        value if value < 0.05 => "0".to_owned(),
        value if value < 10.0 => format!("{value:.1}"),
        value if value < 9_999.5 => format!("{value:.0}"),
        value if value < 999_950.0 => format!("{:.1}k", value / 1e3),
        value => format!("{:.2}M", value / 1e6),
    }
}

/// Mebibytes a second, as every size and rate for people is shown in binary units.
#[must_use]
pub fn mebibytes(bytes: f64) -> String {
    match bytes / 1_048_576.0 {
        value if value < 0.005 => "0".to_owned(),
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// A part of the whole.
pub(crate) fn percent(part: f64) -> String {
    match part * 100.0 {
        value if value < 0.05 => "0".to_owned(),
        value if value < 9.95 => format!("{value:.1}%"),
        value => format!("{value:.0}%"),
    }
}

/// A time in microseconds, or nothing.
pub(crate) fn time(micros: Option<u64>) -> String {
    let Some(micros) = micros else {
        return "-".to_owned();
    };
    #[expect(clippy::cast_precision_loss, reason = "three digits of it are shown")]
    let value = micros as f64;
    match value {
        value if value < 1e3 => format!("{value:.0} us"),
        value if value < 9_950.0 => format!("{:.1} ms", value / 1e3),
        value if value < 1e6 => format!("{:.0} ms", value / 1e3),
        value => format!("{:.1} s", value / 1e6),
    }
}

/// The name of a session's host, or of its initiator where no host is known by that name.
pub(crate) fn who(session: &SessionRow) -> &str {
    if session.host.is_empty() {
        &session.initiator
    } else {
        &session.host
    }
}

/// A session's target.
pub(crate) fn target(session: &SessionRow) -> &str {
    session.target.as_deref().unwrap_or("(discovery)")
}

/// A frame as lines.
#[must_use]
pub fn page(frame: &Frame) -> String {
    let Rates {
        iops,
        bytes_per_second,
        in_flight,
        latency_us,
        ..
    } = frame.total;
    let head = format!(
        "node {}, {:.1} s: {} IOPS, {} MiB/s, p99 {}, {in_flight} in flight\n\n",
        frame.node,
        frame.seconds,
        count(iops),
        mebibytes(bytes_per_second),
        time(latency_us.p99),
    );
    let luns: Vec<Vec<String>> = frame.luns.iter().map(lun).collect();
    let luns = table(
        &[
            "LUN",
            "IOPS",
            "R IOPS",
            "W IOPS",
            "R MiB/s",
            "W MiB/s",
            "MEAN",
            "P50",
            "P99",
            "NETWORK",
            "QUEUE",
            "JOURNAL",
            "BACKEND",
            "IN FLIGHT",
        ],
        &luns,
    );
    let sessions: Vec<Vec<String>> = frame.sessions.iter().map(session).collect();
    let sessions = table(
        &[
            "SESSION",
            "HOST",
            "TARGET",
            "FROM",
            "CORE",
            "LOAD",
            "IOPS",
            "R MiB/s",
            "W MiB/s",
            "MEAN",
            "P50",
            "P99",
            "IN FLIGHT",
        ],
        &sessions,
    );
    let cores: Vec<Vec<String>> = frame.cores.iter().map(core).collect();
    let cores = table(&["CORE", "BUSY", "CONNECTIONS"], &cores);
    format!("{head}{luns}\n{sessions}\n{cores}")
}

fn core(row: &CoreRow) -> Vec<String> {
    vec![
        row.core.to_string(),
        percent(row.busy),
        row.connections.to_string(),
    ]
}

fn lun(row: &LunRow) -> Vec<String> {
    let (rates, stages) = (&row.rates, &row.stages_us);
    let name = if row.online {
        row.name.clone()
    } else {
        format!("{} (offline)", row.name)
    };
    vec![
        name,
        count(rates.iops),
        count(row.read_iops),
        count(row.write_iops),
        mebibytes(rates.read_bytes_per_second),
        mebibytes(rates.write_bytes_per_second),
        time(rates.latency_us.mean),
        time(rates.latency_us.p50),
        time(rates.latency_us.p99),
        time(stages.network),
        time(stages.queue),
        time(stages.journal),
        time(stages.backend),
        rates.in_flight.to_string(),
    ]
}

fn session(row: &SessionRow) -> Vec<String> {
    let rates = &row.rates;
    vec![
        row.id.to_string(),
        who(row).to_owned(),
        target(row).to_owned(),
        row.from.clone(),
        row.core.to_string(),
        percent(row.load),
        count(rates.iops),
        mebibytes(rates.read_bytes_per_second),
        mebibytes(rates.write_bytes_per_second),
        time(rates.latency_us.mean),
        time(rates.latency_us.p50),
        time(rates.latency_us.p99),
        rates.in_flight.to_string(),
    ]
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn figures_are_short_and_keep_their_order_of_magnitude() {
        let counts = [0.0, 0.4, 9.96, 17.0, 9_999.0, 245_120.0, 999_960.0];
        let shown = counts.map(count);
        assert_eq!(shown, ["0", "0.4", "10.0", "17", "9999", "245.1k", "1.00M"]);
        let shown = [0.0, 12_345.0, 44_040_192.0, 5_712_642_048.0].map(mebibytes);
        assert_eq!(shown, ["0", "0.01", "42.0", "5448"]);
        let shown = [None, Some(85), Some(1_250), Some(48_000), Some(3_400_000)].map(time);
        assert_eq!(shown, ["-", "85 us", "1.2 ms", "48 ms", "3.4 s"]);
    }
}
