//! The result in the form that was asked for, and results that were written before.

use bench::compare::{Row, compare, table};
use bench::options::Form;
use bench::report::view::{Document, RunView};
use bench::report::{self, Machine};
use bench::{Options, RunResult};
use manifest::code::Code;
use manifest::problem::Problem;
use serde::Serialize;
use serde_json::error::Category;
use std::path::Path;

/// Prints it, or writes it to the file that was named.
pub(crate) fn result(
    options: &Options,
    result: &RunResult,
    machine: &Machine,
) -> Result<(), Problem> {
    let text = match options.form {
        Form::Text => report::text(options, result, machine),
        Form::Xml => report::xml(options, result, machine),
        Form::Json => {
            let view = RunView::new(options, result);
            json(&view)
        }
        Form::Html => report::html(options, result, machine),
        Form::Svg => report::iops_chart(result),
        Form::Csv => report::csv(result),
    };
    write(options.output.as_deref(), &text)
}

/// A document, as -Rjson has it.
pub(crate) fn json(document: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(document);
    format!("{}\n", text.expect("documents are made of plain data"))
}

/// To standard output, or to a file.
pub(crate) fn write(to: Option<&Path>, text: &str) -> Result<(), Problem> {
    let Some(path) = to else {
        output::print(text);
        return Ok(());
    };
    std::fs::write(path, text).map_err(|error| {
        let detail = format!(
            "the result cannot be written to {}: {error}",
            path.display()
        );
        Problem::new(Code::BenchUsage, detail).hint("name a file that can be written")
    })
}

/// A result that was written with -Rjson.
pub(crate) fn read(path: &Path) -> Result<Document, Problem> {
    let wrong = |why: String| {
        Problem::new(Code::BenchUsage, format!("{}: {why}", path.display()))
            .hint("name a result that `causeway bench -Rjson --output FILE` wrote")
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| {
        wrong(match error.classify() {
            Category::Data => "it is no result of a run or of a profile".to_owned(),
            Category::Io | Category::Syntax | Category::Eof => format!("it is no JSON: {error}"),
        })
    })
}

/// One figure of both results, as a program reads it.
#[derive(Serialize)]
struct RowView<'a> {
    figure: &'a str,
    a: f64,
    b: f64,
    change_pct: Option<f64>,
}

impl<'a> RowView<'a> {
    fn of(row: &'a Row) -> Self {
        Self {
            figure: &row.name,
            a: row.before,
            b: row.after,
            change_pct: row.change(),
        }
    }
}

/// `--compare A.json B.json [-Rjson]`
pub(crate) fn comparison(words: &[String]) -> Result<(), Problem> {
    let json_wanted = words.iter().any(|word| word == "-Rjson" || word == "json");
    let files: Vec<&String> = words
        .iter()
        .filter(|word| !word.starts_with('-') && *word != "json")
        .collect();
    let [before, after] = files.as_slice() else {
        return Err(
            Problem::new(Code::BenchUsage, "--compare takes two results")
                .hint("causeway bench --compare A.json B.json"),
        );
    };
    let (one, other) = (read(Path::new(before))?, read(Path::new(after))?);
    let rows = compare(&one, &other)
        .map_err(|why| Problem::new(Code::BenchUsage, why).hint("compare results of like runs"))?;
    if json_wanted {
        let all: Vec<RowView<'_>> = rows.iter().map(RowView::of).collect();
        output::print(&json(&all));
    } else {
        output::print(&table(&rows));
    }
    Ok(())
}
