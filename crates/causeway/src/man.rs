//! Manual pages, made from what the program itself says: one for each command, and one for
//! `node.toml`.

use crate::args::NODE_TOML;
use crate::cli::Cli;
use clap::CommandFactory as _;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use manifest::code::Code;
use manifest::field::Field;
use manifest::fields::node_fields;
use manifest::problem::Problem;
use std::io;
use std::path::{Path, PathBuf};

/// The page of `node.toml`, and where files have their pages.
const NODE_PAGE: &str = "causeway-node.toml.5";
const MANUAL: &str = "Causeway";
const EXAMPLE: &str = include_str!("../../../dist/node.toml");

/// Writes all pages.
pub(crate) fn write(dir: &Path) -> Result<(), Problem> {
    let written = || -> io::Result<()> {
        std::fs::create_dir_all(dir)?;
        for (name, text) in commands() {
            std::fs::write(dir.join(name), text)?;
        }
        let of_files = of_files(dir);
        std::fs::create_dir_all(&of_files)?;
        std::fs::write(of_files.join(NODE_PAGE), node_page())
    };
    written().map_err(|error| {
        let detail = format!("{}: {error}", dir.display());
        Problem::new(Code::ConfigUnreadable, detail)
    })
}

/// Beside a directory of section 1 there is one of section 5, where `man` looks for it.
fn of_files(dir: &Path) -> PathBuf {
    if dir.file_name().is_some_and(|name| name == "man1") {
        return dir.with_file_name("man5");
    }
    dir.to_owned()
}

/// File names and texts of the pages of all commands that people are shown.
fn commands() -> Vec<(String, String)> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut all = Vec::new();
    of_command(&root, &mut all);
    all
}

fn of_command(command: &clap::Command, all: &mut Vec<(String, String)>) {
    for verb in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        of_command(verb, all);
    }
    // Options of `bench` are not of the kind that clap reads, and stand in its help.
    if command.get_name() == "bench" {
        all.push(("causeway-bench.1".to_owned(), bench_page()));
        return;
    }
    let page = Man::new(command.clone()).manual(MANUAL);
    let mut text = Vec::new();
    // Writing to memory cannot fail.
    let _ = page.render(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    all.push((page.get_filename(), text));
}

fn head(name: &str, section: &str, what: &str) -> Roff {
    let mut page = Roff::new();
    page.control("TH", [name, section, "", "", MANUAL]);
    page.control("SH", ["NAME"]);
    page.text([roman(format!("{name} - {what}"))]);
    page
}

/// Text whose lines stay as they are.
fn as_it_is(page: &mut Roff, text: &str) {
    page.control("nf", []);
    for line in text.lines() {
        page.text([roman(line)]);
    }
    page.control("fi", []);
}

fn bench_page() -> String {
    let mut page = head(
        "causeway-bench",
        "1",
        "measure volumes with diskspd's options",
    );
    page.control("SH", ["DESCRIPTION"]);
    as_it_is(&mut page, bench::options::HELP);
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("causeway"), roman("(1)")]);
    page.render()
}

/// The page of `node.toml`: its keys in their sections, and the example that is installed.
fn node_page() -> String {
    let what = "where a Causeway node listens and keeps its data";
    let mut page = head("causeway-node.toml", "5", what);
    page.control("SH", ["DESCRIPTION"]);
    page.text(words(
        "The file is local to the node; only its administrator writes it. It is TOML. Relative \
         paths start at the file. Unknown keys are refused. `causeway serve --config FILE` reads \
         it at the start; a mistake is reported with file, line and key, and the daemon does not \
         start. A change takes effect at the next start, but for certificates.",
    ));
    let fields = node_fields();
    for of_section in fields.chunk_by(|a, b| section(a) == section(b)) {
        keys(&mut page, of_section);
    }
    page.control("SH", ["FILES"]);
    page.control("TP", []);
    page.text([bold(NODE_TOML)]);
    page.text([roman("where the package and the unit have it")]);
    page.control("SH", ["EXAMPLE"]);
    as_it_is(&mut page, EXAMPLE);
    page.control("SH", ["SEE ALSO"]);
    page.text([
        bold("causeway"),
        roman("(1), "),
        bold("causeway-serve"),
        roman("(1)"),
    ]);
    page.render()
}

fn section(field: &Field) -> &'static str {
    field.key.split_once('.').map_or("", |(section, _)| section)
}

fn keys(page: &mut Roff, fields: &[Field]) {
    let title = match fields.first().map_or("", section) {
        "" => "THE FILE".to_owned(),
        // Tables of which there may be several.
        name @ ("portal_group" | "pool") => format!("[[{name}]]"),
        name => format!("[{name}]"),
    };
    page.control("SH", [title.as_str()]);
    for field in fields {
        page.control("TP", []);
        let mut line = vec![bold(field.name()), roman(" = ")];
        line.extend(words(field.values));
        page.text(line);
        let mut meaning = words(&format!("{}. Default: {}.", field.meaning, field.default));
        if field.default == "required" {
            meaning = words(&format!("{}. Required.", field.meaning));
        }
        page.text(meaning);
    }
}

/// A text of the reference: what stands in backticks is bold, and links are their words.
fn words(text: &str) -> Vec<Inline> {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let (_, behind) = after.split_once(')').unwrap_or(("", after));
        let (head, word) = before.rsplit_once('[').unwrap_or((before, ""));
        plain.push_str(head);
        plain.push_str(word);
        rest = behind;
    }
    plain.push_str(rest);
    let parts = plain.split('`').enumerate();
    parts
        .filter(|(_, part)| !part.is_empty())
        .map(|(at, part)| if at % 2 == 1 { bold(part) } else { roman(part) })
        .collect()
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn each_key_of_the_reference_is_in_the_page_below_its_section() {
        let page = node_page();
        let mut rest = page.as_str();
        for field in node_fields() {
            let wanted = format!("\n\\fB{}\\fR = ", field.name().replace('-', "\\-"));
            let at = rest.find(&wanted).unwrap_or_else(|| panic!("{wanted}"));
            rest = &rest[at + wanted.len()..];
        }
        for title in ["[node]", "[[pool]]", "[[portal_group]]", "[api]"] {
            assert_eq!(
                page.matches(&format!(".SH {title}\n")).count(),
                1,
                "{title}"
            );
        }
    }

    #[test]
    fn the_example_of_the_page_is_whole_and_can_be_read() {
        let page = node_page();
        for line in EXAMPLE.lines().filter(|line| !line.is_empty()) {
            let line = line.replace('-', "\\-");
            assert!(page.contains(&line.replace('\'', "\\*(Aq")), "{line}");
        }
        let read = manifest::config::parse(Path::new("node.toml"), EXAMPLE);
        assert!(read.is_ok());
    }

    #[test]
    fn marks_of_the_reference_become_fonts() {
        let wanted = [roman("see Pools, "), bold("a"), roman(" or b")];
        assert_eq!(words("see [Pools](operate/pools.md), `a` or b"), wanted);
    }

    #[test]
    fn each_command_has_a_page_and_the_bench_has_its_options() {
        let all = commands();
        let text = |name: &str| {
            let found = all.iter().find(|(it, _)| it == name);
            found.map_or("", |(_, text)| text.as_str())
        };
        for name in ["causeway.1", "causeway-lun.1", "causeway-lun-create.1"] {
            assert!(text(name).contains(".SH NAME"), "{name}");
        }
        assert!(text("causeway-bench.1").contains("\\-\\-autotune"));
    }
}
