//! What files, requests, commands, documents, pages and metrics need to know of one storage field
//! of a LUN. Each is a file beside this one and a line of [`FIELDS`](super::FIELDS); everybody else
//! walks that table.

use super::Storage;
use super::facts::{Metric, Shown};
use super::place::{Adoption, PoolBrief};
use crate::field::Field;
use crate::toml_table::Table;
use schemars::{JsonSchema, Schema, SchemaGenerator};
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

/// What is risked by what holds of a field.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Risk {
    /// The field's name.
    pub field: &'static str,
    /// The word of it that risks something.
    pub value: &'static str,
    /// Somebody chose it; else it is what holds where nobody said anything.
    pub is_chosen: bool,
    /// Why it holds where nobody said anything.
    pub by_default: &'static str,
    /// What may be lost, and when, in one sentence.
    pub detail: &'static str,
}

/// How a layer that comes between and goes while hosts work is switched by its field.
pub(super) struct Switch<V> {
    /// The LUN has the layer.
    pub(super) is_on: fn(Option<V>) -> bool,
    /// What a LUN is that it could not be taken from, such as `still checked`.
    pub(super) still: &'static str,
}

/// A layer of a LUN comes between or goes while hosts work. What it keeps beside the LUN is made or
/// removed with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Switched {
    /// The name of the field that says it.
    pub field: &'static str,
    /// It comes.
    pub is_on: bool,
    /// What the LUN is where it could not be taken out, such as `still checked`.
    pub still: &'static str,
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
    type Value: Copy + PartialEq + Serialize + DeserializeOwned + JsonSchema;

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

    /// The schema of what [`OneField::patch`] takes.
    fn patch_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Option<Self::Value>>()
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

    /// Whether it goes with what holds the LUN; `None`: no pool does.
    ///
    /// # Errors
    /// The rule that is broken.
    fn fits(_value: Self::Value, _pool: Option<PoolBrief<'_>>) -> Result<(), String> {
        Ok(())
    }

    /// Whether it goes with what the other fields say.
    ///
    /// # Errors
    /// The rule that is broken.
    fn goes_with(_value: Self::Value, _storage: &Storage) -> Result<(), String> {
        Ok(())
    }

    /// What a new LUN of this pool has where nobody said anything. It is written down, so that the
    /// LUN stays what it is when its pool becomes another.
    fn default_in(_pool: PoolBrief<'_>) -> Option<Self::Value> {
        None
    }

    /// What a LUN has of it that is adopted, and what is to be known of that.
    fn adopted(
        is: Option<Self::Value>,
        _from: &Adoption<'_>,
    ) -> (Option<Self::Value>, Option<String>) {
        (is, None)
    }

    /// The most memory that its layer takes for blocks, in bytes.
    fn memory(_value: Self::Value) -> u64 {
        0
    }

    /// What is risked by what holds.
    fn risk(_is: Option<Self::Value>) -> Option<Risk> {
        None
    }

    /// How its layer is switched, where that comes between and goes while hosts work.
    const SWITCH: Option<Switch<Self::Value>> = None;

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
    /// As a file has it, where it was given: what stands after the `=`.
    fn toml(&self, from: &Storage) -> Option<String>;
    /// As a request or an answer has it, where it was given.
    fn to_json(&self, from: &Storage) -> Option<Value>;
    /// Takes over what a request that makes a LUN, an answer or a stored LUN says.
    ///
    /// # Errors
    /// What is wrong with it.
    fn read_json(&self, given: &Value, into: &mut Storage) -> Result<(), String>;
    /// Takes over what a request that changes a LUN says; `known`: as it is.
    ///
    /// # Errors
    /// What is wrong with it.
    fn patch(&self, said: &Value, known: &Storage, into: &mut Storage) -> Result<(), String>;
    /// The schema of what stands in a document.
    fn schema(&self, generator: &mut SchemaGenerator) -> Schema;
    /// The schema of what a request that changes a LUN says.
    fn patch_schema(&self, generator: &mut SchemaGenerator) -> Schema;
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
    /// Whether it goes with what holds the LUN, and with the other fields; `None`: no pool does.
    ///
    /// # Errors
    /// The rule that is broken.
    fn fits(&self, wanted: &Storage, pool: Option<PoolBrief<'_>>) -> Result<(), String>;
    /// Fills in what a new LUN of this pool has where nobody said anything.
    fn default_in(&self, pool: PoolBrief<'_>, into: &mut Storage);
    /// Makes it what a LUN has that is adopted; what is to be known of that.
    fn adopted(&self, from: &Adoption<'_>, into: &mut Storage) -> Option<String>;
    /// The most memory that its layer takes for blocks, in bytes.
    fn memory(&self, is: &Storage) -> u64;
    /// What is risked by what holds.
    fn risk(&self, is: &Storage) -> Option<Risk>;
    /// Its layer comes between, or goes, while hosts work.
    fn switched(&self, was: &Storage, is: &Storage) -> Option<Switched>;
    /// Forgets what was said.
    fn clear(&self, into: &mut Storage);
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
        F::FIELD.name()
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

    fn to_json(&self, from: &Storage) -> Option<Value> {
        of::<F>(from).and_then(|value| serde_json::to_value(value).ok())
    }

    fn read_json(&self, given: &Value, into: &mut Storage) -> Result<(), String> {
        let value = Option::<F::Value>::deserialize(given).map_err(|error| error.to_string())?;
        *F::slot(into) = value;
        Ok(())
    }

    fn patch(&self, said: &Value, known: &Storage, into: &mut Storage) -> Result<(), String> {
        *F::slot(into) = F::patch(said, of::<F>(known))?;
        Ok(())
    }

    fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        if generator.contract().is_serialize() {
            return generator.subschema_for::<F::Value>();
        }
        generator.subschema_for::<Option<F::Value>>()
    }

    fn patch_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        F::patch_schema(generator)
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

    fn fits(&self, wanted: &Storage, pool: Option<PoolBrief<'_>>) -> Result<(), String> {
        let Some(value) = of::<F>(wanted) else {
            return Ok(());
        };
        F::fits(value, pool)?;
        F::goes_with(value, wanted)
    }

    fn default_in(&self, pool: PoolBrief<'_>, into: &mut Storage) {
        let slot = F::slot(into);
        *slot = slot.or_else(|| F::default_in(pool));
    }

    fn adopted(&self, from: &Adoption<'_>, into: &mut Storage) -> Option<String> {
        let slot = F::slot(into);
        let (is, notice) = F::adopted(*slot, from);
        *slot = is;
        notice
    }

    fn memory(&self, is: &Storage) -> u64 {
        of::<F>(is).map_or(0, F::memory)
    }

    fn risk(&self, is: &Storage) -> Option<Risk> {
        F::risk(of::<F>(is))
    }

    fn switched(&self, was: &Storage, is: &Storage) -> Option<Switched> {
        let Switch { is_on, still } = F::SWITCH?;
        let (was, is) = (is_on(of::<F>(was)), is_on(of::<F>(is)));
        (was != is).then(|| Switched {
            field: self.name(),
            is_on: is,
            still,
        })
    }

    fn clear(&self, into: &mut Storage) {
        *F::slot(into) = None;
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
