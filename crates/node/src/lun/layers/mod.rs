//! The layers of a LUN over its blocks: one file for each, one door, and one table that says how
//! they stand.
//!
//! A new layer is a file here, and a line in [`STACK`].

mod cache;
mod checksums;
mod clip;
mod deferred;
pub(crate) mod door;
mod handles;
mod integrity;
mod limit;
mod live;
mod mirror;
mod plain;
mod read_cache;
mod shares;
pub(crate) mod sidecars;

pub(crate) use cache::journal_id;
pub(crate) use handles::UnitParts;

use checksums::Checksums;
use door::{Layer, LayerKind, Opening};
use env::CoreHandle;
use handles::Handles;
use manifest::objects::{ChecksumFacts, LayerFacts, Lun, Storage};
use std::rc::Rc;
use std::sync::Arc;
use volume::{OpenError, Volume};
use write_back::VolumeId;

/// The stack of every LUN, from top to bottom.
pub(crate) static STACK: [LayerKind; 13] = [
    LayerKind {
        name: "LogicalUnit",
        fields: &["task_aborted_status"],
        ..LayerKind::BLANK
    },
    plain::CHECKED,
    plain::METER,
    limit::KIND,
    read_cache::KIND,
    shares::KIND,
    mirror::KIND,
    cache::KIND,
    integrity::KIND,
    plain::STABLE_WRITE,
    plain::EMULATE,
    clip::KIND,
    LayerKind {
        name: "leaf",
        ..LayerKind::BLANK
    },
];

/// The row that follows this field.
fn kind_of(field: &str) -> &'static LayerKind {
    let kind = STACK.iter().find(|kind| kind.fields.contains(&field));
    kind.expect("each storage field belongs to a row")
}

/// The layers of one LUN.
pub(crate) struct Layers {
    /// In the order of [`STACK`].
    all: Vec<(&'static LayerKind, Box<dyn Layer>)>,
    handles: Rc<Handles>,
}

impl Layers {
    /// Layers as the stored LUN says.
    pub(crate) async fn new(core: &CoreHandle, lun: &Lun, parts: &UnitParts) -> Self {
        let handles = Handles::new(parts);
        let make = |kind: &'static LayerKind| {
            let layer = (kind.make?)(core, &kind.lun(lun), &handles)?;
            Some((kind, layer))
        };
        let all = STACK.iter().filter_map(make).collect();
        let layers = Self { all, handles };
        layers.set_now(core, &lun.storage).await;
        layers
    }

    /// Layers of a LUN whose storage goes away. What those `before` have in sidecars is theirs as
    /// well, until what the journal has was destaged as far as it can be.
    pub(crate) async fn suspended(
        core: &CoreHandle,
        lun: &Lun,
        parts: &UnitParts,
        before: &Self,
    ) -> Self {
        let layers = Self::new(core, lun, parts).await;
        layers.handles.set_checksums(before.handles.checksums());
        layers
    }

    /// The layers over a leaf, which they are put over once.
    ///
    /// # Errors
    /// What keeps one of them from standing there.
    pub(crate) async fn over(
        &self,
        leaf: Arc<dyn Volume>,
        opening: &Opening<'_>,
    ) -> Result<Arc<dyn Volume>, OpenError> {
        let mut volume = leaf;
        for (kind, layer) in self.all.iter().rev() {
            let lun = kind.lun(opening.lun);
            let opening = Opening {
                lun: &lun,
                ..*opening
            };
            volume = layer.over(volume, &opening).await?;
        }
        if let Some(journaled) = self.handles.journaled() {
            for copies in self.all.iter().filter_map(|(_, layer)| layer.copies()) {
                journaled.offer_to(copies);
            }
        }
        let names: Vec<&str> = self.all.iter().map(|(kind, _)| kind.name).collect();
        let layers = names.join(" -> ");
        tracing::debug!(lun = opening.name, layers, "its layers, from top to bottom");
        Ok(volume)
    }

    /// Brings into force at once what can be.
    pub(crate) async fn set_now(&self, core: &CoreHandle, storage: &Storage) {
        for (kind, layer) in &self.all {
            layer.set_now(core, &kind.of(storage)).await;
        }
    }

    /// What lanes do that are opened from now on; `true`: they must be opened for it.
    pub(crate) fn set(&self, storage: &Storage) -> bool {
        let all = self.all.iter();
        let differ = all.filter(|(kind, layer)| layer.set(&kind.of(storage)));
        differ.count() > 0
    }

    /// Fills in what they report of themselves.
    pub(crate) fn report(&self, facts: &mut LayerFacts) {
        for (_, layer) in &self.all {
            layer.report(facts);
        }
    }

    /// What the journal that the LUN's writes go through knows it by.
    pub(crate) fn journaled(&self) -> Option<VolumeId> {
        self.handles.journaled().map(|volume| volume.id())
    }

    /// What the layer of checksums reports, where the LUN has any.
    pub(crate) fn checksums(&self) -> Option<ChecksumFacts> {
        self.handles.checksums().as_ref().map(Checksums::facts)
    }

    /// The LUN has copies on several nodes.
    pub(crate) fn has_copies(&self) -> bool {
        self.all
            .iter()
            .any(|(kind, _)| kind.name == mirror::KIND.name)
    }

    /// Operations that wait now for a limit or for the LUN's share.
    pub(crate) fn waiting(&self) -> u64 {
        self.all.iter().map(|(_, layer)| layer.waiting()).sum()
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use manifest::objects::FIELDS;

    /// The words of the stack that a document draws, from top to bottom.
    fn drawn(text: &str) -> Vec<String> {
        let begin = text.find("LogicalUnit -> ").expect("a stack is drawn");
        let end = text[begin..].find("leaf").expect("down to the leaf") + begin + "leaf".len();
        let all = text[begin..end].replace('\n', " ");
        let all = all.split("->").map(|word| {
            // "Integrity, where it has checksums"
            let word = word.split(',').next().unwrap_or_default();
            word.split_whitespace().collect::<Vec<&str>>().join(" ")
        });
        all.collect()
    }

    #[test]
    fn the_stack_that_is_drawn_is_the_one_that_luns_are_put_together_by() {
        let stack: Vec<&str> = STACK.iter().map(|it| it.name).collect();
        let text = include_str!("../../../../../ARCHITECTURE.md");
        assert_eq!(drawn(text), stack);
    }

    #[test]
    fn only_the_ends_of_the_stack_are_no_layers() {
        let ends = STACK.iter().filter(|kind| kind.make.is_none());
        let ends: Vec<&str> = ends.map(|kind| kind.name).collect();
        assert_eq!(ends, [STACK[0].name, STACK[STACK.len() - 1].name]);
    }

    #[test]
    fn each_storage_field_belongs_to_one_layer_or_end_of_the_stack() {
        let mut owned: Vec<&str> = STACK.iter().flat_map(|it| it.fields).copied().collect();
        owned.sort_unstable();
        let mut known: Vec<&str> = FIELDS.iter().map(|field| field.name()).collect();
        known.sort_unstable();
        assert_eq!(owned, known);
    }

    #[test]
    fn a_layer_sees_the_fields_that_it_names_and_no_other() {
        let storage = Storage {
            shares: Some(7),
            integrity: Some(true),
            ..Storage::default()
        };
        let seen = |name: &str| {
            let kind = STACK.iter().find(|kind| kind.name == name);
            kind.expect("a row").of(&storage)
        };
        let shares = Storage {
            shares: Some(7),
            ..Storage::default()
        };
        assert_eq!(seen("Share"), shares);
        assert!(seen("Integrity").is_checked() && seen("Integrity").shares.is_none());
        assert!(seen("Meter").is_default());
    }
}
