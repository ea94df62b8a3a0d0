//! What files, requests, commands, documents, pages and metrics need to know of one storage field
//! of a LUN. Each is a file beside this one and a line of [`FIELDS`](super::FIELDS); everybody else
//! walks that table.

use super::Storage;
use super::facts::{Metric, Shown};
use crate::field::Field;
use crate::toml_table::Table;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a change of a field does, for a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Changed {
    /// In one sentence, without the LUN's name.
    pub detail: String,
    /// It may lose data that a host believes is safe.
    pub risks_data: bool,
}

impl From<String> for Changed {
    fn from(detail: String) -> Self {
        Self {
            detail,
            risks_data: false,
        }
    }
}

/// What is said in one word: an option of the commands that make a LUN, and a key of `lun set`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The option without its dashes, such as `limit-iops`; `None`: of `lun set` alone.
    pub option: Option<&'static str>,
    /// What `lun set` calls it, such as `limit.iops`.
    pub key: &'static str,
    /// What stands for its value in help.
    pub value: &'static str,
    /// All values where they are few; true and false: the option alone means true.
    pub words: &'static [&'static str],
    /// What help shows for `lun set`, such as `cache=MODE`.
    pub example: &'static str,
    /// The option's help.
    pub help: &'static str,
}

/// A field of one value. `None`: nobody said anything.
pub(super) trait OneField: Sync {
    /// What it is.
    type Value: Copy + PartialEq + Serialize + DeserializeOwned;

    /// How documents describe it.
    const FIELD: Field;

    /// How commands say it.
    const PARTS: &'static [Part];

    /// What the layer that follows it counts.
    const METRICS: &'static [Metric] = &[];

    /// Where it stands.
    fn slot(storage: &mut Storage) -> &mut Option<Self::Value>;

    /// Reads it from a section of a file, which gets the mistakes.
    fn read(table: &Table<'_, '_>) -> Option<Self::Value>;

    /// As a file has it, after the `=`.
    fn toml(value: Self::Value) -> String;

    /// Follows a word of a command over what was said before.
    ///
    /// # Errors
    /// What is wrong with the word.
    fn parse(part: &Part, word: &str, before: Option<Self::Value>) -> Result<Self::Value, String>;

    /// What a word of `lun set` is in a request.
    ///
    /// # Errors
    /// What is wrong with the word, also beside `before`, what earlier words made.
    fn assign(part: &Part, word: &str, _before: Option<&Value>) -> Result<Value, String> {
        let value = Self::parse(part, word, None)?;
        serde_json::to_value(value).map_err(|error| error.to_string())
    }

    /// What a request that changes a LUN says of it; `known`: as it is.
    ///
    /// # Errors
    /// What is wrong with it.
    fn patch(said: &Value, _known: Option<Self::Value>) -> Result<Option<Self::Value>, String> {
        Option::<Self::Value>::deserialize(said).map_err(|error| error.to_string())
    }

    /// It says no more than nothing does: a stored LUN does not have it.
    fn is_nothing(_value: Self::Value) -> bool {
        false
    }

    /// What holds where nobody said anything, for a page.
    fn in_force(is: Option<Self::Value>) -> Option<Self::Value> {
        is
    }

    /// The rules that hold whatever else exists: `wrong` gets key and rule.
    fn check(_value: Self::Value, _wrong: &mut dyn FnMut(&str, String)) {}

    /// What a change of it does.
    fn changed(was: Option<Self::Value>, is: Option<Self::Value>) -> Changed;

    /// Its line of `lun show`: title and text.
    fn shown(is: Option<Self::Value>, lun: &Shown<'_>) -> (&'static str, String);
}

/// Any of the fields, as those who walk the table see it.
pub trait StorageField: Sync {
    /// How documents describe it.
    fn documented(&self) -> Field;
    /// Its name in files and requests.
    fn name(&self) -> &'static str;
    /// How commands say it.
    fn parts(&self) -> &'static [Part];
    /// What the layer that follows it counts.
    fn metrics(&self) -> &'static [Metric];
    /// Reads it from a section of a file, which gets the mistakes.
    fn read(&self, table: &Table<'_, '_>, into: &mut Storage);
    /// As a file has it, where somebody said something: what stands after the `=`.
    fn toml(&self, from: &Storage) -> Option<String>;
    /// As a request or an answer has it, where somebody said something.
    fn say(&self, from: &Storage) -> Option<Value>;
    /// Takes over what a request that makes a LUN, an answer or a stored LUN says.
    ///
    /// # Errors
    /// What is wrong with it.
    fn hear(&self, said: &Value, into: &mut Storage) -> Result<(), String>;
    /// Takes over what a request that changes a LUN says; `known`: as it is.
    ///
    /// # Errors
    /// What is wrong with it.
    fn patch(&self, said: &Value, known: &Storage, into: &mut Storage) -> Result<(), String>;
    /// Takes over a word of a command.
    ///
    /// # Errors
    /// What is wrong with it.
    fn parse(&self, part: &Part, word: &str, into: &mut Storage) -> Result<(), String>;
    /// What a word of `lun set` is in a request, over what earlier words made of this field.
    ///
    /// # Errors
    /// What is wrong with it.
    fn assign(&self, part: &Part, word: &str, before: Option<&Value>) -> Result<Value, String>;
    /// `into` as `wanted` says, where it says something.
    fn follow(&self, wanted: &Storage, into: &mut Storage);
    /// Fills in what holds where nobody said anything, for a page.
    fn resolve(&self, into: &mut Storage);
    /// The rules that hold whatever else exists: `wrong` gets key and rule.
    fn check(&self, wanted: &Storage, wrong: &mut dyn FnMut(&str, String));
    /// What a change of it does; `None`: it is what it was.
    fn changed(&self, was: &Storage, is: &Storage) -> Option<Changed>;
    /// Its line of `lun show`: title and text.
    fn shown(&self, is: &Storage, lun: &Shown<'_>) -> (&'static str, String);
}

/// What a field is in there.
fn of<F: OneField>(storage: &Storage) -> Option<F::Value> {
    let mut copy = *storage;
    *F::slot(&mut copy)
}

impl<F: OneField> StorageField for F {
    fn documented(&self) -> Field {
        F::FIELD
    }

    fn name(&self) -> &'static str {
        let key = F::FIELD.key;
        key.rsplit_once('.').map_or(key, |(_, name)| name)
    }

    fn parts(&self) -> &'static [Part] {
        F::PARTS
    }

    fn metrics(&self) -> &'static [Metric] {
        F::METRICS
    }

    fn read(&self, table: &Table<'_, '_>, into: &mut Storage) {
        *F::slot(into) = F::read(table);
    }

    fn toml(&self, from: &Storage) -> Option<String> {
        of::<F>(from).map(F::toml)
    }

    fn say(&self, from: &Storage) -> Option<Value> {
        of::<F>(from).and_then(|value| serde_json::to_value(value).ok())
    }

    fn hear(&self, said: &Value, into: &mut Storage) -> Result<(), String> {
        let value = Option::<F::Value>::deserialize(said).map_err(|error| error.to_string())?;
        *F::slot(into) = value;
        Ok(())
    }

    fn patch(&self, said: &Value, known: &Storage, into: &mut Storage) -> Result<(), String> {
        *F::slot(into) = F::patch(said, of::<F>(known))?;
        Ok(())
    }

    fn parse(&self, part: &Part, word: &str, into: &mut Storage) -> Result<(), String> {
        let slot = F::slot(into);
        *slot = Some(F::parse(part, word, *slot)?);
        Ok(())
    }

    fn assign(&self, part: &Part, word: &str, before: Option<&Value>) -> Result<Value, String> {
        F::assign(part, word, before)
    }

    fn follow(&self, wanted: &Storage, into: &mut Storage) {
        if let Some(value) = of::<F>(wanted) {
            *F::slot(into) = Some(value).filter(|value| !F::is_nothing(*value));
        }
    }

    fn resolve(&self, into: &mut Storage) {
        let slot = F::slot(into);
        *slot = F::in_force(*slot);
    }

    fn check(&self, wanted: &Storage, wrong: &mut dyn FnMut(&str, String)) {
        if let Some(value) = of::<F>(wanted) {
            F::check(value, wrong);
        }
    }

    fn changed(&self, was: &Storage, is: &Storage) -> Option<Changed> {
        let (was, is) = (of::<F>(was), of::<F>(is));
        (was != is).then(|| F::changed(was, is))
    }

    fn shown(&self, is: &Storage, lun: &Shown<'_>) -> (&'static str, String) {
        F::shown(of::<F>(is), lun)
    }
}

/// Finds the one of these values that a word names.
pub(super) fn one_of<T: Copy + std::fmt::Display>(all: &[T], word: &str) -> Result<T, String> {
    let found = all.iter().find(|one| one.to_string() == word);
    found.copied().ok_or_else(|| {
        let all: Vec<String> = all.iter().map(|one| format!("\"{one}\"")).collect();
        format!("\"{word}\" is none of {}", all.join(", "))
    })
}
