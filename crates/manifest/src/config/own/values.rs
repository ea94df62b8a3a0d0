//! Plain values that are changed through the API, by their key in `node.toml`.

use super::{Instead, Places, quoted};
use crate::config::changeable::{KEYS, is_changeable};
use crate::problem::FieldFault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// To let everybody on the machine read takes who may write `node.toml`.
const TIGHTENED: &str = "api.token_for_reads";

/// What is given for a setting: the key says which of them it takes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(untagged)]
pub enum SettingValue {
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Number(u64),
    /// A text, such as `2GiB`.
    Text(String),
}

impl SettingValue {
    pub(super) fn toml(&self) -> String {
        match self {
            Self::Flag(is) => is.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => quoted(text),
        }
    }
}

pub(super) type Values = BTreeMap<String, Instead<SettingValue>>;

/// Changes one; without a value it is as `node.toml` says.
pub(super) fn change(
    own: &mut Values,
    places: &Places,
    key: &str,
    value: Option<&SettingValue>,
) -> Result<(), FieldFault> {
    let fault = |message: String| FieldFault {
        field: format!("values.{key}"),
        message,
    };
    if !is_changeable(key) {
        let known = KEYS.join(", ");
        let key = key.escape_debug();
        return Err(fault(format!(
            "\"{key}\" is not changed by its key; these are: {known}. The name, portals, pools and the \
             schedule of scrubs have options of their own, all else is changed in node.toml"
        )));
    }
    let of = places.says(key);
    let value = value.filter(|value| of.as_ref() != Some(&value.toml()));
    let Some(value) = value else {
        own.remove(key);
        return Ok(());
    };
    if key == TIGHTENED && *value == SettingValue::Flag(false) {
        if of.is_some() {
            let message = "node.toml says true, and there alone it is taken back";
            return Err(fault(message.to_owned()));
        }
        own.remove(key);
        return Ok(());
    }
    let value = value.clone();
    own.insert(key.to_owned(), Instead { value, of });
    Ok(())
}

/// As lines of TOML.
pub(super) fn lines(values: &[(String, String)]) -> String {
    let lines = values
        .iter()
        .map(|(key, value)| format!("{key} = {value}\n"));
    lines.collect()
}
