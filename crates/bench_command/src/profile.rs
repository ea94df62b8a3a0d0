//! Ready-made sets of runs, with what others published beside them.

use crate::problem::verdict;
use crate::run::Bed;
use crate::{machine, show};
use bench::chart::{Group, bars, escaped};
use bench::options::Form;
use bench::profile::{self, DATABASE_READ_MS, LOG_WRITE_MS};
use bench::report::view::{Document, ProfileView, PublishedView, RunView, StepView};
use bench::report::{self, page};
use bench::{Options, RunResult, Side};
use manifest::code::Code;
use manifest::problem::Problem;
use std::fmt::Write as _;

/// The most operations that `--autotune` has in flight.
const OUTSTANDING_MAX: u32 = 1024;

/// One run of a profile and its result.
struct Row {
    name: String,
    options: Options,
    result: RunResult,
    published: Vec<(String, f64)>,
    /// What must hold, and whether it does.
    passes: Option<(String, bool)>,
}

impl Row {
    fn side(&self) -> Side {
        self.result.total()
    }

    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    fn iops(&self) -> f64 {
        self.side().ios as f64 / self.result.seconds.max(1e-9)
    }

    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    fn megabytes(&self) -> f64 {
        self.side().bytes as f64 / f64::from(1 << 20)
    }
}

/// A set of rows, reported as one.
struct Report {
    name: &'static str,
    command_line: String,
    rows: Vec<Row>,
    /// What the same profile gave before, or elsewhere.
    control: Option<ProfileView>,
    notes: Vec<String>,
}

/// Runs the profile that the options name.
pub(crate) fn run(options: &Options) -> Result<(), Problem> {
    let Some(wanted) = options.profile else {
        unreachable!("the caller has checked");
    };
    let control = options.control.as_deref().map(show::read).transpose()?;
    let control = control.and_then(|document| match document {
        Document::Profile(profile) => Some(profile),
        Document::Run(_) => None,
    });
    let mut report = Report {
        name: name(wanted),
        command_line: options.command_line.clone(),
        rows: Vec::new(),
        control,
        notes: Vec::new(),
    };
    let bed = Bed::start(options)?;
    let room = bed.prepare(&Options {
        write_percent: 100,
        ..options.clone()
    })?;
    let filled = bed.fill(&profile::filled(options, room.start, room.bytes));
    let done = filled.and_then(|()| run_rows(&bed, wanted, options, room, &mut report));
    bed.finish()?;
    done?;
    report.print(options)?;
    report.verdict()
}

fn run_rows(
    bed: &Bed,
    wanted: bench::options::Profile,
    options: &Options,
    room: crate::run::Room,
    report: &mut Report,
) -> Result<(), Problem> {
    match wanted {
        bench::options::Profile::Anvil | bench::options::Profile::Mpio => {
            for step in profile::steps(wanted, options, room.bytes) {
                let result = bed.run(&step.options)?;
                report.rows.push(Row {
                    name: step.name,
                    options: step.options,
                    result,
                    published: step.published,
                    passes: None,
                });
            }
        }
        bench::options::Profile::JetstressLike => jetstress(bed, options, room, report)?,
    }
    Ok(())
}

fn name(profile: bench::options::Profile) -> &'static str {
    match profile {
        bench::options::Profile::Anvil => "anvil",
        bench::options::Profile::Mpio => "mpio",
        bench::options::Profile::JetstressLike => "jetstress-like",
    }
}

/// Database and log at the same time; with --autotune as many operations as the pass lines allow.
fn jetstress(
    bed: &Bed,
    options: &Options,
    room: crate::run::Room,
    report: &mut Report,
) -> Result<(), Problem> {
    let attempt = |outstanding: u32| -> Result<(bool, Vec<Row>), Problem> {
        let both = profile::jetstress(options, room.start, room.bytes, outstanding);
        let results = bed.run_together(&both)?;
        let mut rows = Vec::new();
        for (part, (options, result)) in both.into_iter().zip(results).enumerate() {
            let (name, line, side, what) = if part == 0 {
                let side = result.read();
                (
                    format!("database, {outstanding} outstanding"),
                    DATABASE_READ_MS,
                    side,
                    "reads",
                )
            } else {
                ("log".to_owned(), LOG_WRITE_MS, result.write(), "writes")
            };
            let mean = side.mean().unwrap_or(f64::INFINITY);
            let limit = format!("{what} {mean:.2} ms on average, at most {line:.0} ms");
            rows.push(Row {
                name,
                options,
                result,
                published: Vec::new(),
                passes: Some((limit, mean <= line)),
            });
        }
        let all = |row: &Row| row.passes.as_ref().is_some_and(|(_, passes)| *passes);
        Ok((rows.iter().all(all), rows))
    };
    if !options.autotune {
        report.rows = attempt(options.outstanding)?.1;
        return Ok(());
    }
    let (mut good, mut bad) = (0, OUTSTANDING_MAX + 1);
    let mut next = 1;
    while good + 1 < bad && next <= OUTSTANDING_MAX {
        let (passes, rows) = attempt(next)?;
        let verdict = if passes { "passes" } else { "does not pass" };
        let rate = rows.first().map_or(0.0, Row::iops);
        report.notes.push(format!(
            "{next} outstanding: {rate:.0} database IOPS, {verdict}"
        ));
        if passes {
            good = next;
            report.rows = rows;
        } else {
            bad = next;
            if report.rows.is_empty() {
                report.rows = rows;
            }
        }
        next = if bad > OUTSTANDING_MAX {
            good * 2
        } else {
            good.midpoint(bad)
        };
        // An eighth is close enough.
        if bad <= OUTSTANDING_MAX && bad - good <= (good / 8).max(1) {
            break;
        }
    }
    Ok(())
}

impl Report {
    /// Operations a second of a row in the control.
    fn control_of(&self, name: &str) -> Option<f64> {
        self.control.as_ref()?.step(name)?.run.total.iops
    }

    fn deviation(&self, row: &Row) -> Option<f64> {
        let control = self.control_of(&row.name).filter(|iops| *iops > 0.0)?;
        Some((row.iops() / control - 1.0) * 100.0)
    }

    fn print(&self, options: &Options) -> Result<(), Problem> {
        let text = match options.form {
            Form::Text => self.text(),
            Form::Json => show::json(&self.view()),
            Form::Html => self.html(),
            Form::Svg => self.chart(),
            Form::Xml | Form::Csv => {
                let detail = "a profile is printed as text, JSON, HTML or SVG";
                return Err(Problem::new(Code::BenchUsage, detail)
                    .hint("write -Rtext, -Rjson, -Rhtml or -Rsvg"));
            }
        };
        show::write(options.output.as_deref(), &text)
    }

    fn text(&self) -> String {
        let mut rows = Vec::new();
        for row in &self.rows {
            let deviation = self
                .deviation(row)
                .map_or_else(String::new, |it| format!("{it:+.1}%"));
            rows.push(vec![
                row.name.clone(),
                format!("{:.4}", row.side().mean().unwrap_or(0.0)),
                format!("{:.0}", row.megabytes()),
                format!("{:.2}", row.iops()),
                format!("{:.2}", row.megabytes() / row.result.seconds.max(1e-9)),
                deviation,
            ]);
        }
        let head = ["IO", "Resp. ms", "MiB", "IOPS", "MiB/s", "vs control"];
        let mut out = output::table(&head, &rows);
        for note in &self.notes {
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(out, "{note}");
        }
        for row in &self.rows {
            if let Some((limit, passes)) = &row.passes {
                let verdict = if *passes { "pass" } else { "FAIL" };
                let _ = writeln!(out, "{verdict}: {}: {limit}", row.name);
            }
        }
        if self.rows.iter().any(|row| !row.published.is_empty()) {
            out.push_str(
                "\nPublished by others, on other machines (docs/operate/bench.md says which); IOPS:\n",
            );
            for row in &self.rows {
                let all: Vec<String> = row
                    .published
                    .iter()
                    .map(|(what, iops)| format!("{what} {iops:.2}"))
                    .collect();
                let _ = writeln!(out, "  {}: {}", row.name, all.join("; "));
            }
        }
        out
    }

    fn view(&self) -> ProfileView {
        let published = |(what, iops): &(String, f64)| PublishedView {
            what: what.clone(),
            iops: *iops,
        };
        let step = |row: &Row| StepView {
            name: row.name.clone(),
            run: RunView::new(&row.options, &row.result),
            published_iops: row.published.iter().map(published).collect(),
            vs_control_pct: self.deviation(row),
            pass_line: row.passes.as_ref().map(|(limit, _)| limit.clone()),
            passes: row.passes.as_ref().map(|(_, passes)| *passes),
        };
        ProfileView {
            profile: self.name.to_owned(),
            command_line: self.command_line.clone(),
            notes: self.notes.clone(),
            steps: self.rows.iter().map(step).collect(),
            passes: self.passes(),
        }
    }

    fn chart(&self) -> String {
        let mut series: Vec<&str> = vec!["measured"];
        if self.control.is_some() {
            series.push("control");
        }
        let published = self
            .rows
            .first()
            .map_or(&[][..], |row| row.published.as_slice());
        let published: Vec<String> = published
            .iter()
            .map(|(what, _)| format!("published: {what}"))
            .take(2)
            .collect();
        let of_tables = self.name == "anvil";
        if of_tables {
            series.extend(published.iter().map(String::as_str));
        }
        let group = |row: &Row| {
            let mut values = vec![Some(row.iops())];
            if self.control.is_some() {
                values.push(self.control_of(&row.name));
            }
            if of_tables {
                values.extend(row.published.iter().map(|(_, iops)| Some(*iops)));
            }
            Group {
                name: row.name.clone(),
                values,
            }
        };
        let groups: Vec<Group> = self.rows.iter().map(group).collect();
        bars(&format!("Profile {}", self.name), "IOPS", &series, &groups)
    }

    fn html(&self) -> String {
        let mut body = format!(
            "<h1>causeway bench: profile {}</h1>\n<p><code>{}</code></p>\n{}<pre>{}</pre>\n",
            self.name,
            escaped(&self.command_line),
            self.chart(),
            escaped(&self.text())
        );
        for row in &self.rows {
            let _ = write!(
                body,
                "<details><summary>{}</summary>\n{}{}</details>\n",
                escaped(&row.name),
                report::iops_chart(&row.result),
                report::percentile_chart(&row.result)
            );
        }
        let name = machine::this().name;
        let _ = writeln!(body, "<p class=\"note\">{}</p>", escaped(&name));
        page(&format!("causeway bench: {}", self.name), &body)
    }

    fn passes(&self) -> Option<bool> {
        let lines: Vec<bool> = self
            .rows
            .iter()
            .filter_map(|row| row.passes.as_ref())
            .map(|it| it.1)
            .collect();
        (!lines.is_empty()).then(|| lines.iter().all(|passes| *passes))
    }

    fn verdict(&self) -> Result<(), Problem> {
        for row in &self.rows {
            verdict(&row.result)?;
        }
        if self.passes() == Some(false) {
            let missed: Vec<String> = self
                .rows
                .iter()
                .filter_map(|row| row.passes.as_ref())
                .filter(|(_, passes)| !passes)
                .map(|(missed, _)| missed.clone())
                .collect();
            return Err(Problem::new(Code::BenchFailed, missed.join("; "))
                .hint("the storage is too slow for this load: fewer outstanding operations (-o), or faster storage"));
        }
        Ok(())
    }
}
