//! What an acknowledged write has behind it.

use super::Storage;
use super::facts::{Figure, Metric, Shown};
use super::field::{Changed, OneField, Part, Risk, one_of};
use super::place::{Adoption, PoolBrief, needs_journal};
use crate::field::{Field, live};
use crate::toml_table::Table;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a volatile LUN risks, in one sentence.
pub(crate) const VOLATILE_RISK: &str =
    "writes that were acknowledged and not flushed are lost when power or kernel fail";

/// What an acknowledged write has behind it.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Debug,
)]
#[serde(rename_all = "kebab-case")]
pub enum CacheMode {
    /// Its blocks are on stable media at their place. WCE is 0.
    WriteThrough,
    /// It is on stable media in the pool's journal, and destaged later. WCE is 0.
    WriteBack,
    /// It may sit in volatile memory until the host flushes. WCE is 1; FUA and SYNCHRONIZE CACHE
    /// mean what they say.
    Volatile,
}

impl CacheMode {
    /// Every mode, for files and help.
    pub const ALL: [Self; 3] = [Self::WriteThrough, Self::WriteBack, Self::Volatile];

    /// As files and commands write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WriteThrough => "write-through",
            Self::WriteBack => "write-back",
            Self::Volatile => "volatile",
        }
    }
}

impl fmt::Display for CacheMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CacheMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        one_of(&Self::ALL, text)
    }
}

fn chosen(storage: &Storage, mode: CacheMode) -> Option<Figure> {
    (storage.cache == Some(mode)).then_some(Figure::Number(1))
}

/// Of a mode that somebody chose.
const CHOSEN: Metric = Metric::gauge(
    "causeway_lun_cache",
    "1 under the mode of the cache that was chosen for it: `write-through`, `write-back`, `volatile`; nothing where nobody \
     chose",
    |is, _| chosen(is, CacheMode::WriteThrough),
);

/// The field `cache`: the stored mode is what somebody chose, also where it is the default.
pub(super) struct Cache;

impl OneField for Cache {
    type Value = CacheMode;

    const FIELD: Field = live(
        "lun.cache",
        "`\"write-through\"`, `\"write-back\"`, `\"volatile\"`",
        "by the pool",
        "what an acknowledged write has behind it; write-back needs the pool's journal",
    );

    const PARTS: &'static [Part] = &[Part {
        option: Some("cache"),
        key: "cache",
        value: "MODE",
        words: &["write-back", "write-through", "volatile"],
        example: "cache=MODE",
        help: "What acknowledged writes have behind them: write-through, write-back (needs a journal), or volatile \
               [default: write-back in a pool with a journal, else volatile, where hosts flush what they need]",
    }];

    const METRICS: &'static [Metric] = &[
        CHOSEN.with(&[("mode", "write-through")]),
        Metric {
            figure: |is, _| chosen(is, CacheMode::WriteBack),
            ..CHOSEN.with(&[("mode", "write-back")])
        },
        Metric {
            figure: |is, _| chosen(is, CacheMode::Volatile),
            ..CHOSEN.with(&[("mode", "volatile")])
        },
    ];

    fn slot(storage: &mut Storage) -> &mut Option<CacheMode> {
        &mut storage.cache
    }

    fn read(table: &Table<'_, '_>) -> Option<CacheMode> {
        table.word("cache")
    }

    fn toml(value: CacheMode) -> String {
        format!("\"{value}\"")
    }

    fn parse(_: &Part, word: &str, _: Option<CacheMode>) -> Result<CacheMode, String> {
        word.parse()
    }

    fn in_force(is: Option<CacheMode>) -> Option<CacheMode> {
        Some(is.unwrap_or(CacheMode::Volatile))
    }

    fn fits(value: CacheMode, pool: Option<PoolBrief<'_>>) -> Result<(), String> {
        match value {
            CacheMode::WriteBack => needs_journal(pool),
            CacheMode::WriteThrough | CacheMode::Volatile => Ok(()),
        }
    }

    fn default_in(pool: PoolBrief<'_>) -> Option<CacheMode> {
        if pool.has_journal {
            return Some(CacheMode::WriteBack);
        }
        pool.is_stable.then_some(CacheMode::WriteThrough)
    }

    fn adopted(
        is: Option<CacheMode>,
        Adoption { name, pool, .. }: &Adoption<'_>,
    ) -> (Option<CacheMode>, Option<String>) {
        match is {
            Some(CacheMode::WriteBack) if !pool.has_journal => {
                let notice = format!(
                    "LUN {name} is write-through: pool {} has no journal",
                    pool.name
                );
                (Some(CacheMode::WriteThrough), Some(notice))
            }
            None if pool.is_stable => (Some(CacheMode::WriteThrough), None),
            _ => (is, None),
        }
    }

    fn risk(is: Option<CacheMode>) -> Option<Risk> {
        let mode = is.unwrap_or(CacheMode::Volatile);
        (mode == CacheMode::Volatile).then(|| Risk {
            field: "cache",
            value: mode.name(),
            is_chosen: is.is_some(),
            by_default: "there was no journal",
            detail: VOLATILE_RISK,
        })
    }

    fn changed(was: Option<CacheMode>, is: Option<CacheMode>) -> Changed {
        let mode = |of: Option<CacheMode>| of.unwrap_or(CacheMode::Volatile);
        let (from, to) = (mode(was), mode(is));
        if from == to {
            return format!("cache stays {to}").into();
        }
        let detail = format!("cache from {from} to {to}");
        if to == CacheMode::Volatile {
            return Changed {
                detail: format!("{detail}: {VOLATILE_RISK}"),
                risks_data: true,
            };
        }
        detail.into()
    }

    /// The mode with what it means where that is a risk.
    fn shown(is: Option<CacheMode>, lun: &Shown<'_>) -> (&'static str, String) {
        let mode = is.unwrap_or(CacheMode::Volatile);
        let text = if mode == CacheMode::Volatile && !lun.is_memory {
            format!("{mode}: {VOLATILE_RISK}")
        } else {
            mode.to_string()
        };
        ("cache", text)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn modes_have_one_spelling() {
        for mode in CacheMode::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
        }
        let refused = "writeback".parse::<CacheMode>().unwrap_err();
        assert!(refused.contains("\"write-back\""));
    }
}
