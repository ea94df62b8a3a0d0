//! Layers that every LUN has, and that no field changes.

use super::door::{LayerKind, Plain};
use layers::{Emulate, StableWrite};
use volume::Checked;

pub(crate) const CHECKED: LayerKind = LayerKind {
    name: "Checked",
    fields: &[],
    make: Some(|_, _, _| Some(Box::new(Plain(Checked)))),
};

pub(crate) const METER: LayerKind = LayerKind {
    name: "Meter",
    fields: &[],
    make: Some(|_, _, handles| Some(Box::new(Plain(handles.parts.meter)))),
};

pub(crate) const STABLE_WRITE: LayerKind = LayerKind {
    name: "StableWrite",
    fields: &[],
    make: Some(|_, _, _| Some(Box::new(Plain(StableWrite)))),
};

pub(crate) const EMULATE: LayerKind = LayerKind {
    name: "Emulate",
    fields: &[],
    make: Some(|_, _, _| Some(Box::new(Plain(Emulate)))),
};
