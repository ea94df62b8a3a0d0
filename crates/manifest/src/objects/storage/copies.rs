//! The nodes of the cluster that have a copy of a LUN.

use super::Storage;
use super::cache::CacheMode;
use super::facts::{Figure, Metric, Shown};
use super::field::{Changed, OneField, Part};
use super::node_names::{COPIES, NodeNames};
use super::place::{PoolBrief, needs_journal};
use crate::field::{Field, node};
use crate::toml_table::Table;
use copy_documents::{MirrorFacts, ResyncFacts};

fn count(nodes: &[String]) -> Option<Figure> {
    u64::try_from(nodes.len()).ok().map(Figure::Number)
}

fn resyncs(of: &MirrorFacts, bytes: impl Fn(&ResyncFacts) -> u64) -> Option<Figure> {
    Some(Figure::Number(of.resyncs.iter().map(bytes).sum()))
}

fn flag(is: bool) -> Option<Figure> {
    Some(Figure::Number(u64::from(is)))
}

/// The field `copies`.
pub(super) struct Copies;

impl OneField for Copies {
    type Value = NodeNames;

    const FIELD: Field = node(
        "lun.copies",
        "list of nodes, 1 or 2",
        "none",
        "the nodes of the cluster that have a copy of it, this one among them: what is acknowledged is stable on all that \
         are in sync; `lun mirror` changes it",
    );

    const PARTS: &'static [Part] = &[Part {
        option: Some("copies"),
        key: "copies",
        value: "NODE,NODE",
        words: &[],
        example: "copies=NODE,NODE",
        help: "The nodes of the cluster that have a copy of it, this one among them [default: none, the LUN is on this \
               node alone]",
    }];

    const METRICS: &'static [Metric] = &[
        Metric::gauge(
            "causeway_lun_copies_in_sync",
            "Copies of a LUN on several nodes that have all that was acknowledged, as this node knows it",
            |_, it| count(&it.mirror.as_ref()?.in_sync),
        ),
        Metric::gauge(
            "causeway_lun_copies",
            "Copies that a LUN on several nodes has",
            |_, it| count(&it.mirror.as_ref()?.copies),
        ),
        Metric::gauge(
            "causeway_lun_served_here",
            "Whether this node serves the hosts of a LUN with copies: 1 for the node that does",
            |_, it| flag(it.mirror.as_ref()?.serves),
        ),
        Metric::gauge(
            "causeway_lun_resync_left_bytes",
            "Bytes of a LUN with copies that its owner has still to compare with a copy that was away; 0 where none was",
            |_, it| resyncs(it.mirror.as_ref()?, |one| one.left_bytes),
        ),
        Metric::gauge(
            "causeway_lun_resync_sent_bytes",
            "Bytes of data that the owner of a LUN has sent to a copy that is compared, so far",
            |_, it| resyncs(it.mirror.as_ref()?, |one| one.sent_bytes),
        ),
    ];

    fn slot(storage: &mut Storage) -> &mut Option<NodeNames> {
        &mut storage.copies
    }

    fn read(table: &Table<'_, '_>) -> Option<NodeNames> {
        let texts = table.texts("copies")?;
        let names = NodeNames::of(texts.iter().map(|it| &*it.value));
        names.map_err(|rule| table.wrong("copies", rule)).ok()
    }

    fn toml(value: NodeNames) -> String {
        let names: Vec<String> = value.iter().map(|it| format!("\"{it}\"")).collect();
        format!("[{}]", names.join(", "))
    }

    fn parse(_: &Part, word: &str, _: Option<NodeNames>) -> Result<NodeNames, String> {
        NodeNames::of(word.split(',').map(str::trim))
    }

    fn check(value: NodeNames, wrong: &mut dyn FnMut(&str, String)) {
        if !(1..=COPIES).contains(&value.iter().count()) {
            let rule = format!("{value}: a LUN has copies on 1 or {COPIES} nodes, or none");
            wrong("copies", rule);
        }
    }

    fn fits(_: NodeNames, pool: Option<PoolBrief<'_>>) -> Result<(), String> {
        needs_journal(pool)
    }

    fn goes_with(_: NodeNames, storage: &Storage) -> Result<(), String> {
        if storage.cache_mode() == CacheMode::Volatile {
            return Err(
                "what a LUN with copies acknowledges is stable: it cannot have cache = \"volatile\""
                    .to_owned(),
            );
        }
        if storage.read_cache.is_some() {
            return Err(
                "a LUN with copies has no read cache yet: it could answer with what the other node has changed"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn changed(_: Option<NodeNames>, is: Option<NodeNames>) -> Changed {
        let detail = is.map_or_else(
            || "no copies on other nodes".to_owned(),
            |names| format!("copies on {names}"),
        );
        detail.into()
    }

    /// Who has copies, and how they are.
    fn shown(is: Option<NodeNames>, lun: &Shown<'_>) -> (&'static str, String) {
        let text = match (is, &lun.layers.mirror) {
            (None, _) => "none".to_owned(),
            (Some(names), None) => names.to_string(),
            (Some(names), Some(facts)) => format!("{names}; {}", facts.text),
        };
        ("copies", text)
    }
}
