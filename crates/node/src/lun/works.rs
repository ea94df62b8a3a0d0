//! Storage of LUNs that is being made or made larger: how far that is, and stopping it.
//!
//! **Contract.** What is stopped fails, and its change is undone like any other that failed.

use backends::Progress;
use manifest::code::Code;
use manifest::objects::Lun;
use manifest::problem::Problem;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

type All = Rc<RefCell<BTreeMap<String, Rc<Progress>>>>;

/// By NAA identifier.
#[derive(Default)]
pub(crate) struct Works(All);

/// Work that goes on until this is dropped.
pub(crate) struct Working {
    naa: String,
    progress: Rc<Progress>,
    all: All,
}

impl Works {
    /// Storage of so many bytes is made for a LUN.
    pub(crate) fn begin(&self, lun: &Lun, bytes: u64) -> Working {
        let progress = Rc::new(Progress::of(bytes));
        let known = Rc::clone(&progress);
        self.0.borrow_mut().insert(lun.naa.clone(), known);
        Working {
            naa: lun.naa.clone(),
            progress,
            all: Rc::clone(&self.0),
        }
    }

    /// Bytes that are done and that there are to do, while something is made.
    pub(crate) fn progress(&self, naa: &str) -> Option<(u64, u64)> {
        self.0.borrow().get(naa).map(|progress| progress.now())
    }

    /// Has it stop; `false`: nothing is made.
    pub(crate) fn stop(&self, naa: &str) -> bool {
        let all = self.0.borrow();
        let Some(progress) = all.get(naa) else {
            return false;
        };
        progress.stop();
        true
    }
}

impl Working {
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Why it failed, in better words where somebody stopped it.
    pub(crate) fn failed(&self, problem: Problem) -> Problem {
        if self.progress.is_stopped() {
            let (done, total) = self.progress.now();
            let detail = format!("it was cancelled after {done} of {total} bytes");
            return Problem::new(Code::JobCancelled, detail);
        }
        problem
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.all.borrow_mut().remove(&self.naa);
    }
}
