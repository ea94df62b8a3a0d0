//! The copies of a LUN on several nodes: who of them serves its hosts.
//!
//! It stands right over the pool's journal, whose log is what the other nodes get.

use super::door::{Layer, LayerKind, Opening, Over};
use super::handles::Handles;
use crate::backend::door::{Work, done};
use crate::mirrors::Mirrors;
use env::CoreHandle;
use manifest::objects::{LayerFacts, NodeNames, Storage};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use volume::{OpenError, OpenErrorKind, Volume};

pub(crate) const KIND: LayerKind = LayerKind {
    name: "Served",
    fields: &["copies", "min_copies"],
    make: Some(|_, lun, handles| {
        Some(Box::new(Mirror {
            names: lun.storage.copies?,
            naa: lun.naa.clone(),
            min_copies: lun.storage.min_copies.unwrap_or(1).into(),
            handles: Rc::clone(handles),
        }))
    }),
    ..LayerKind::BLANK
};

struct Mirror {
    names: NodeNames,
    naa: String,
    min_copies: Cell<u32>,
    handles: Rc<Handles>,
}

fn refused(cause: &str, next_step: &str) -> OpenError {
    OpenError {
        kind: OpenErrorKind::Refused,
        cause: cause.to_owned(),
        next_step: next_step.to_owned(),
    }
}

impl Mirror {
    fn mirrors(&self) -> Option<&Rc<dyn Mirrors>> {
        self.handles.parts.mirrors.as_ref()
    }

    fn close_now<'a>(&'a self) -> Work<'a, ()> {
        match self.mirrors() {
            Some(mirrors) => mirrors.close(&self.naa),
            None => done(()),
        }
    }
}

impl Layer for Mirror {
    fn over<'a>(&'a self, _below: Arc<dyn Volume>, _: &'a Opening<'a>) -> Over<'a> {
        let Some(mirrors) = self.mirrors() else {
            return done(Err(refused(
                "it has copies on other nodes, and this node is in no cluster",
                "bring [cluster] back into node.toml and restart",
            )));
        };
        let Some(log) = self.handles.journaled() else {
            return done(Err(refused(
                "it has copies on other nodes, which get them from the journal of its pool, and the pool has none",
                "bring the pool's journal back into node.toml and restart",
            )));
        };
        let min_copies = self.min_copies.get();
        mirrors.over((&self.naa, self.names, min_copies), Arc::clone(log))
    }

    fn set_now<'a>(&'a self, _: &'a CoreHandle, storage: &'a Storage) -> Work<'a, ()> {
        let nodes = storage.min_copies.unwrap_or(1);
        self.min_copies.set(nodes);
        if let Some(mirrors) = self.mirrors() {
            mirrors.set_min_copies(&self.naa, nodes);
        }
        done(())
    }

    fn report(&self, facts: &mut LayerFacts) {
        facts.mirror = self.mirrors().and_then(|it| it.facts(&self.naa));
    }

    fn release<'a>(&'a self, _: &'a CoreHandle) -> Work<'a, ()> {
        self.close_now()
    }

    fn leave<'a>(&'a self, _: &'a CoreHandle) -> Work<'a, ()> {
        self.close_now()
    }

    fn close<'a>(&'a self, _: &'a CoreHandle) -> Work<'a, ()> {
        self.close_now()
    }
}
