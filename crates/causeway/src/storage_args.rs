//! The options for the storage fields of a LUN, made from the table of these fields.

use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use manifest::objects::{FIELDS, Part, Storage, StorageField};
use std::ffi::OsStr;

/// What was said of the storage fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StorageArgs(pub(crate) Storage);

/// Each option, its field and its part of it.
pub(crate) fn options()
-> impl Iterator<Item = (&'static str, &'static dyn StorageField, &'static Part)> {
    let parts = FIELDS
        .into_iter()
        .flat_map(|field| field.parts().iter().map(move |part| (field, part)));
    parts.filter_map(|(field, part)| Some((part.option?, field, part)))
}

fn option(name: &'static str, field: &'static dyn StorageField, part: &'static Part) -> Arg {
    let read = move |word: &str| -> Result<String, String> {
        field.parse(part, word, &mut Storage::default())?;
        Ok(word.to_owned())
    };
    let arg = Arg::new(name)
        .long(name)
        .value_name(part.value)
        .value_parser(ValueParser::new(read))
        .help(part.help);
    if part.words == ["true", "false"] {
        let arg = arg.value_parser(["true", "false"]);
        return arg.num_args(0..=1).default_missing_value("true");
    }
    if part.words.is_empty() {
        return arg;
    }
    arg.add(ArgValueCompleter::new(move |typed: &OsStr| {
        let typed = typed.to_string_lossy();
        let fits = part
            .words
            .iter()
            .filter(|word| word.starts_with(typed.as_ref()));
        fits.map(CompletionCandidate::new).collect::<Vec<_>>()
    }))
}

impl Args for StorageArgs {
    fn augment_args(command: Command) -> Command {
        options().fold(command, |command, (name, field, part)| {
            command.arg(option(name, field, part))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for StorageArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut storage = Storage::default();
        for (name, field, part) in options() {
            if let Some(word) = matches.get_one::<String>(name) {
                let parsed = field.parse(part, word, &mut storage);
                parsed.map_err(|why| Error::raw(ErrorKind::ValueValidation, why))?;
            }
        }
        Ok(Self(storage))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
