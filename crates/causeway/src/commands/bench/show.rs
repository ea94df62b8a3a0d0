//! The result in the form that was asked for.

use bench::options::Form;
use bench::report::{self, Machine};
use bench::{Options, RunResult};
use control::code::Code;
use control::problem::Problem;
use std::path::Path;

/// Prints it, or writes it to the file that was named.
pub(super) fn result(
    options: &Options,
    result: &RunResult,
    machine: &Machine,
) -> Result<(), Problem> {
    let text = match options.form {
        Form::Text => report::text(options, result, machine),
        Form::Xml => report::xml(options, result, machine),
        Form::Json => {
            let text = serde_json::to_string_pretty(&report::json(options, result));
            format!("{}\n", text.expect("documents are made of plain data"))
        }
        Form::Html | Form::Svg | Form::Csv => {
            return Err(Problem::new(
                Code::ConfigNotYet,
                "this form of output is not in this version yet",
            ));
        }
    };
    write(options.output.as_deref(), &text)
}

/// To standard output, or to a file.
pub(super) fn write(to: Option<&Path>, text: &str) -> Result<(), Problem> {
    let Some(path) = to else {
        crate::output::print(text);
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
