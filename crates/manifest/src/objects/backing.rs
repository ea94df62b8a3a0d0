//! What holds a LUN's blocks: the kinds that a LUN can name, and all that depends on which it is.
//!
//! A new kind is written here, and in the table of kinds of the node, which opens it.

use crate::toml_table::Table;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// What holds a LUN's blocks.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Backing {
    /// A pool, which knows the LUN by its NAA identifier.
    Pool(String),
    /// What the LUN names itself instead.
    #[serde(untagged)]
    Own(BackendSpec),
}

/// What holds a LUN's blocks instead of a pool: the kinds that a LUN names itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum BackendSpec {
    /// Memory: gone when the daemon ends.
    Memory,
    /// A block device.
    Block(PathBuf),
    /// A VHDX image.
    Vhdx(PathBuf),
}

impl Backing {
    /// The pool that has them, where one has.
    #[must_use]
    pub fn pool(&self) -> Option<&str> {
        match self {
            Self::Pool(pool) => Some(pool),
            Self::Own(_) => None,
        }
    }

    /// What there is instead of a pool.
    fn own(&self) -> Option<&BackendSpec> {
        match self {
            Self::Pool(_) => None,
            Self::Own(own) => Some(own),
        }
    }

    /// The device or image that is named, which no other LUN may have.
    #[must_use]
    pub fn device(&self) -> Option<&Path> {
        self.own().and_then(BackendSpec::device)
    }

    /// They are gone when the daemon ends, and take memory until then.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        self.own().is_some_and(BackendSpec::is_memory)
    }

    /// The field of a LUN that says it: `pool` or `backend`.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Pool(_) => "pool",
            Self::Own(_) => "backend",
        }
    }

    /// As a request states it: the pool, or what there is instead.
    #[must_use]
    pub fn to_spec(&self) -> (Option<String>, Option<BackendSpec>) {
        (self.pool().map(str::to_owned), self.own().cloned())
    }
}

impl fmt::Display for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool(pool) => write!(f, "pool {pool}"),
            Self::Own(BackendSpec::Memory) => f.write_str("memory"),
            Self::Own(BackendSpec::Block(path)) => write!(f, "block {}", path.display()),
            Self::Own(BackendSpec::Vhdx(path)) => write!(f, "image {}", path.display()),
        }
    }
}

impl From<BackendSpec> for Backing {
    fn from(own: BackendSpec) -> Self {
        Self::Own(own)
    }
}

impl BackendSpec {
    /// As [`Backing::is_memory`].
    #[must_use]
    pub fn is_memory(&self) -> bool {
        match self {
            Self::Memory => true,
            Self::Block(_) | Self::Vhdx(_) => false,
        }
    }

    /// As [`Backing::device`].
    fn device(&self) -> Option<&Path> {
        match self {
            Self::Block(path) | Self::Vhdx(path) => Some(path),
            Self::Memory => None,
        }
    }

    /// Reads the field `backend` of an objects file; `base`: where its paths begin.
    pub(crate) fn read(table: &Table<'_, '_>, base: &Path) -> Option<Self> {
        let value = table.value("backend")?;
        if value.as_str() == Some("memory") {
            return Some(Self::Memory);
        }
        if value.is_table() {
            let inside = table.table("backend")?;
            let spec = if let Some(image) = inside.text("vhdx") {
                Self::Vhdx(base.join(image.value))
            } else {
                let path = inside.required_text("block", "backend = { block = \"/dev/sdb\" }");
                Self::Block(base.join(path?.value))
            };
            inside.finish(&[]);
            return Some(spec);
        }
        let rule = "write \"memory\", { block = \"/dev/...\" } or { vhdx = \"FILE\" }";
        table.wrong("backend", rule);
        None
    }

    /// Reads what a command line has after `backend=`: `memory`, or `block:PATH` or `vhdx:PATH`
    /// with
    /// a path as it is there.
    ///
    /// # Errors
    /// How it is written.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "memory" {
            return Ok(Self::Memory);
        }
        let (kind, path) = text.split_once(':').unwrap_or_default();
        let of = match kind {
            "block" => Self::Block,
            "vhdx" => Self::Vhdx,
            _ => return Err("write memory, block:/dev/... or vhdx:FILE".to_owned()),
        };
        let path = std::path::absolute(path).map_err(|error| format!("{path}: {error}"))?;
        Ok(of(path))
    }

    /// As an objects file has it behind `backend = `; `quoted` writes a path.
    pub(crate) fn to_toml(&self, quoted: impl FnOnce(&Path) -> String) -> String {
        match self {
            Self::Memory => "\"memory\"".to_owned(),
            Self::Block(path) => format!("{{ block = {} }}", quoted(path)),
            Self::Vhdx(path) => format!("{{ vhdx = {} }}", quoted(path)),
        }
    }

    /// What is wrong with it, where something is.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Block(path) | Self::Vhdx(path) if !path.is_absolute() => Err(format!(
                "\"{}\" is no absolute path of a block device or an image",
                path.display()
            )),
            Self::Memory | Self::Block(_) | Self::Vhdx(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_backing_is_written_and_read_in_the_form_that_is_stored() {
        let all = [
            (Backing::Pool("p".to_owned()), json!({ "pool": "p" })),
            (BackendSpec::Memory.into(), json!("memory")),
            (
                BackendSpec::Block("/dev/sdb".into()).into(),
                json!({ "block": "/dev/sdb" }),
            ),
            (
                BackendSpec::Vhdx("/mnt/a.vhdx".into()).into(),
                json!({ "vhdx": "/mnt/a.vhdx" }),
            ),
        ];
        for (backing, form) in all {
            assert_eq!(serde_json::to_value(&backing).unwrap(), form);
            let read: Backing = serde_json::from_value(form).unwrap();
            assert_eq!(read, backing);
        }
        let none = |form: Value| serde_json::from_value::<Backing>(form).is_err();
        assert!(none(json!("pool")) && none(json!({ "disk": "d" })) && none(json!(1)));
        let both = json!({ "pool": "p", "block": "/dev/sdb" });
        assert!(none(both));
    }
}
