//! Whether a host is notified that another one has aborted its commands.

use super::Storage;
use super::facts::Shown;
use super::field::{Changed, OneField, Part, one_of};
use crate::field::{Field, live};
use crate::toml_table::Table;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Whether a host is notified that another one has aborted its commands (TAS, SPC-4 7.5.8 "Control
/// mode page").
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum TaskAbortedStatus {
    /// It is, with TASK ABORTED, unless hosts change that by MODE SELECT.
    #[default]
    Host,
    /// It is.
    On,
    /// It is not.
    Off,
}

impl TaskAbortedStatus {
    /// Every value, for files and help.
    pub const ALL: [Self; 3] = [Self::Host, Self::On, Self::Off];

    /// As files and commands write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::On => "on",
            Self::Off => "off",
        }
    }

    /// What it is fixed to, where it is.
    #[must_use]
    pub const fn fixed(self) -> Option<bool> {
        match self {
            Self::Host => None,
            Self::On => Some(true),
            Self::Off => Some(false),
        }
    }
}

impl fmt::Display for TaskAbortedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TaskAbortedStatus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        one_of(&Self::ALL, text)
    }
}

/// The field `task_aborted_status`: `host` is not stored.
pub(super) struct TaskAborted;

impl OneField for TaskAborted {
    type Value = TaskAbortedStatus;

    const FIELD: Field = live(
        "lun.task_aborted_status",
        "`\"on\"`, `\"off\"`, `\"host\"`",
        "`\"host\"`",
        "TAS of the control mode page; see below",
    );

    const PARTS: &'static [Part] = &[Part {
        option: Some("task-aborted-status"),
        key: "task_aborted_status",
        value: "WHO",
        words: &["on", "off", "host"],
        example: "task_aborted_status=on|off|host",
        help: "Whether a host is notified that another one has aborted its commands (TAS): on, off, or host: on, and \
               hosts may change it [default: host]",
    }];

    fn slot(storage: &mut Storage) -> &mut Option<TaskAbortedStatus> {
        &mut storage.task_aborted_status
    }

    fn read(table: &Table<'_, '_>) -> Option<TaskAbortedStatus> {
        table.word("task_aborted_status")
    }

    fn toml(value: TaskAbortedStatus) -> String {
        format!("\"{value}\"")
    }

    fn parse(
        _: &Part,
        word: &str,
        _: Option<TaskAbortedStatus>,
    ) -> Result<TaskAbortedStatus, String> {
        word.parse()
    }

    fn is_nothing(value: TaskAbortedStatus) -> bool {
        value == TaskAbortedStatus::Host
    }

    fn in_force(is: Option<TaskAbortedStatus>) -> Option<TaskAbortedStatus> {
        Some(is.unwrap_or_default())
    }

    fn changed(_: Option<TaskAbortedStatus>, is: Option<TaskAbortedStatus>) -> Changed {
        let detail = match is.unwrap_or_default() {
            TaskAbortedStatus::Host => {
                "hosts say whether they are notified that another one has aborted their commands"
            }
            TaskAbortedStatus::On => {
                "a host is notified that another one has aborted its commands, and cannot change that"
            }
            TaskAbortedStatus::Off => {
                "a host is not notified that another one has aborted its commands: it waits for its own time-outs, 90 s \
                 and more with Linux"
            }
        };
        detail.to_owned().into()
    }

    fn shown(is: Option<TaskAbortedStatus>, _: &Shown<'_>) -> (&'static str, String) {
        ("TASK ABORTED", is.unwrap_or_default().to_string())
    }
}
