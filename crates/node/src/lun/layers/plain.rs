//! Layers that every LUN has, and that no field changes.

use super::door::{LayerKind, Plain};
use layers::{Emulate, StableWrite};
use volume::Checked;

pub(crate) const CHECKED: LayerKind = LayerKind {
    name: "Checked",
    make: Some(|_, _, _| Some(Box::new(Plain(Checked)))),
    ..LayerKind::BLANK
};

pub(crate) const METER: LayerKind = LayerKind {
    name: "Meter",
    make: Some(|_, _, handles| Some(Box::new(Plain(handles.parts.meter)))),
    ..LayerKind::BLANK
};

pub(crate) const STABLE_WRITE: LayerKind = LayerKind {
    name: "StableWrite",
    make: Some(|_, _, _| Some(Box::new(Plain(StableWrite)))),
    ..LayerKind::BLANK
};

pub(crate) const EMULATE: LayerKind = LayerKind {
    name: "Emulate",
    make: Some(|_, _, _| Some(Box::new(Plain(Emulate)))),
    ..LayerKind::BLANK
};
