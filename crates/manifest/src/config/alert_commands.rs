//! `[[alert_command]]` of `node.toml`: programs that may be run with alerts.
//!
//! They stand here and not in what the API changes: whoever may change the API's settings from
//! afar is not to run any program on the node.

use super::read_name;
use crate::toml_table::Table;
use std::time::Duration;

/// How long a program may take where nothing is written, in seconds.
const SECONDS: u64 = 30;

/// The longest that a program may take, in seconds.
const SECONDS_MAX: u64 = 600;

/// A program that may be run with alerts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlertCommand {
    /// By which a receiver of alerts names it.
    pub name: String,
    /// The program, by its absolute path, and its arguments.
    pub argv: Vec<String>,
    /// When it is ended.
    pub time_max: Duration,
}

pub(super) fn read(top: &Table<'_, '_>) -> Vec<AlertCommand> {
    let mut all: Vec<AlertCommand> = Vec::new();
    for table in top.tables("alert_command") {
        let name = read_name(&table, "name = \"pager\"");
        let argv = table.texts("argv");
        if argv.is_none() && !table.keys().any(|key| key == "argv") {
            table.missing("argv", "argv = [\"/usr/local/bin/pager\"]");
        }
        let seconds = table.integer("seconds", 1, SECONDS_MAX);
        table.finish(&[]);
        let (Some(name), Some(argv)) = (name, argv) else {
            continue;
        };
        let argv: Vec<String> = argv.into_iter().map(|word| word.value).collect();
        if argv.iter().any(|word| word.contains('\0')) {
            table.wrong("argv", "a word with a NUL in it");
        }
        if !argv.first().is_some_and(|program| program.starts_with('/')) {
            let rule =
                "write the program with its whole path first, such as [\"/usr/local/bin/pager\"]";
            table.wrong("argv", rule);
        }
        if all.iter().any(|known| known.name == name) {
            table.wrong("name", format!("a second command \"{name}\""));
        }
        all.push(AlertCommand {
            name,
            argv,
            time_max: Duration::from_secs(seconds.map_or(SECONDS, |it| it.value)),
        });
    }
    all
}

#[cfg(test)]
mod test {
    use crate::config;
    use std::path::Path;
    use std::time::Duration;

    fn read(text: &str) -> Result<config::Config, Vec<String>> {
        let whole =
            "[node]\nname = \"a\"\nstate_dir = \"d\"\n[[portal_group]]\nname = \"p\"\ntag = 1\n\
                     listen = [ { ip = \"127.0.0.1\" } ]\n[[pool]]\nname = \"q\"\npath = \"r\"\n\
                     [api]\nlisten = [\"unix:s\"]\n"
                .to_owned()
                + text;
        let read = config::parse(Path::new("node.toml"), &whole);
        read.map_err(|all| all.into_iter().map(|it| it.key).collect())
    }

    #[test]
    fn commands_have_a_name_a_whole_path_and_a_time() {
        assert_eq!(read("").unwrap().alert_commands, []);
        let two = "[[alert_command]]\nname = \"a\"\nargv = [\"/bin/a\", \"-x\"]\n\
                   [[alert_command]]\nname = \"b\"\nargv = [\"/bin/b\"]\nseconds = 5\n";
        let all = read(two).unwrap().alert_commands;
        assert_eq!(
            (all[0].name.as_str(), all[0].argv.as_slice()),
            ("a", &["/bin/a".to_owned(), "-x".to_owned()][..])
        );
        assert_eq!(all[0].time_max, Duration::from_secs(30));
        assert_eq!(all[1].time_max, Duration::from_secs(5));
        for (bad, key) in [
            ("name = \"a\"", "argv"),
            ("argv = [\"/bin/a\"]", "name"),
            ("name = \"a\"\nargv = [\"a\"]", "argv"),
            ("name = \"a\"\nargv = []", "argv"),
            ("name = \"a\"\nargv = \"/bin/a\"", "argv"),
            (
                "name = \"a\"\nargv = [\"/bin/a\"]\nseconds = 601",
                "seconds",
            ),
            ("name = \"a\"\nargv = [\"/bin/a\"]\nshell = true", "shell"),
            (
                "name = \"a\"\nargv = [\"/bin/a\"]\n[[alert_command]]\nname = \"a\"\nargv = [\"/bin/b\"]",
                "name",
            ),
        ] {
            let keys = read(&format!("[[alert_command]]\n{bad}\n")).unwrap_err();
            assert!(keys[0].ends_with(key), "{bad}: {keys:?}");
        }
    }
}
