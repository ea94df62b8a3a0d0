//! Records in etcd, through its JSON gateway.
//!
//! ```text
//!   questions --> Rotation (pure) --> Effects --> Wires: HTTP, TLS, env::Net --> endpoints
//!       ^             |   ^                          |
//!       '-- answers --'   '------- what came --------'
//! ```
//!
//! The swaps of a batch are one transaction, each with a comparison of its own. Leases, watches and
//! deletions of etcd are not used: who follows asks for what changed since a version, which
//! compaction does not touch, and costs a read of one number while nothing changes.

mod endpoint;
mod gateway;
mod health;
mod rotation;
mod said;
mod tls;
mod wire;

#[cfg(test)]
mod fake_test;

pub use endpoint::{Endpoint, EtcdSettings, TlsFiles};

use crate::memory::Memory;
use crate::question::{Answer, Arbiter, Changes, Key, Question, SwapAll, Together};
use crate::trouble::{Trouble, TroubleKind};
use env::durable::{read_file, replace_file};
use env::{CoreHandle, LocalFuture, in_time};
use replica::Revision;
use rotation::{Came, Effect, Patience, Rotation, TryId};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::{pending, poll_fn};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use wire::{Carrier, Wires};

/// Longest file of what is remembered, in bytes.
const MEMORY_BYTES_MAX: u64 = 1 << 16;

/// How long answers wait for the disk that keeps what is remembered.
const KEEP_TIME_MAX: Duration = Duration::from_secs(2);

/// Asks etcd, from one core.
pub struct EtcdArbiter(Rc<Shared>);

struct Shared {
    core: CoreHandle,
    carrier: Box<dyn Carrier>,
    memory: PathBuf,
    rotation: RefCell<Rotation>,
    next: Cell<u64>,
    asked: RefCell<BTreeMap<u64, oneshot::Sender<Answer>>>,
    together: RefCell<BTreeMap<u64, oneshot::Sender<Together>>>,
    followers: RefCell<BTreeMap<u64, oneshot::Sender<Result<Changes, Trouble>>>>,
    /// Dropping one ends its connection.
    tries: RefCell<BTreeMap<TryId, oneshot::Sender<()>>>,
    effects: RefCell<VecDeque<Effect>>,
    is_keeping: Cell<bool>,
    sooner: Notify,
    is_closed: Cell<bool>,
}

impl EtcdArbiter {
    /// Asks the etcd of these settings. Nothing is asked of it yet.
    ///
    /// # Errors
    /// Settings that cannot work, and files that cannot be read.
    pub async fn open(core: &CoreHandle, settings: &EtcdSettings) -> Result<Self, Trouble> {
        let refused = |cause: &str, next: &str| Trouble::new(TroubleKind::Refuses, cause, next);
        if settings.endpoints.is_empty() {
            return Err(refused(
                "no endpoint of etcd is named",
                "name each of its members",
            ));
        }
        if settings.tls.is_none() && settings.endpoints.iter().any(|it| it.is_encrypted) {
            let next =
                "name the files of etcd's authority, of this node's certificate and of its key";
            return Err(refused(
                "etcd is reached by TLS, and no certificates are named",
                next,
            ));
        }
        let memory = remembered(core, &settings.memory).await?;
        let wires = Wires::open(core, settings).await?;
        Ok(Self::over(
            core,
            Box::new(wires),
            settings,
            memory,
            Patience::USUAL,
        ))
    }

    fn over(
        core: &CoreHandle,
        carrier: Box<dyn Carrier>,
        settings: &EtcdSettings,
        memory: Memory,
        patience: Patience,
    ) -> Self {
        let names = settings.endpoints.iter().map(Endpoint::to_string).collect();
        let prefix = format!("{}/", settings.prefix);
        let rotation = Rotation::new((names, &prefix), memory, patience);
        let shared = Rc::new(Shared {
            core: Rc::clone(core),
            carrier,
            memory: settings.memory.clone(),
            rotation: RefCell::new(rotation),
            next: Cell::new(0),
            asked: RefCell::default(),
            together: RefCell::default(),
            followers: RefCell::default(),
            tries: RefCell::default(),
            effects: RefCell::default(),
            is_keeping: Cell::new(false),
            sooner: Notify::new(),
            is_closed: Cell::new(false),
        });
        core.spawn(Box::pin(watch_time(Rc::clone(&shared))));
        Self(shared)
    }

    /// Each endpoint, and what is wrong with it as far as that was seen.
    #[must_use]
    pub fn endpoints(&self) -> Vec<(String, Option<Trouble>)> {
        let rotation = self.0.rotation.borrow();
        let all = rotation.troubles();
        all.map(|(name, trouble)| (name.to_owned(), trouble.cloned()))
            .collect()
    }
}

impl Drop for EtcdArbiter {
    fn drop(&mut self) {
        self.0.is_closed.set(true);
        self.0.tries.borrow_mut().clear();
        self.0.asked.borrow_mut().clear();
        self.0.together.borrow_mut().clear();
        self.0.followers.borrow_mut().clear();
        self.0.sooner.notify_one();
    }
}

impl Arbiter for EtcdArbiter {
    fn ask(&self, questions: Vec<Question>) -> LocalFuture<Vec<Answer>> {
        let (mut numbered, mut waiting) = (Vec::new(), Vec::new());
        for question in questions {
            let number = self.0.number();
            let (answer, answered) = oneshot::channel();
            self.0.asked.borrow_mut().insert(number, answer);
            numbered.push((number, question));
            waiting.push(answered);
        }
        let now = self.0.core.now();
        self.0.rotation.borrow_mut().ask(numbered, now);
        self.0.act();
        Box::pin(async move {
            let mut answers = Vec::with_capacity(waiting.len());
            for answered in waiting {
                let answer = answered.await;
                answers.push(answer.unwrap_or_else(|_| Answer::Unknown(closed())));
            }
            answers
        })
    }

    fn swap_all(&self, swaps: SwapAll) -> LocalFuture<Together> {
        let (number, now) = (self.0.number(), self.0.core.now());
        let (answer, answered) = oneshot::channel();
        self.0.together.borrow_mut().insert(number, answer);
        self.0.rotation.borrow_mut().swap_all(number, swaps, now);
        self.0.act();
        Box::pin(async move {
            answered
                .await
                .unwrap_or_else(|_| Together::Unknown(closed()))
        })
    }

    fn knows(&self, revision: Revision) {
        self.0.rotation.borrow_mut().memory().knows(revision);
    }

    fn changes(&self, below: &Key, since: Revision) -> LocalFuture<Result<Changes, Trouble>> {
        let (number, now) = (self.0.number(), self.0.core.now());
        let (answer, answered) = oneshot::channel();
        self.0.followers.borrow_mut().insert(number, answer);
        let mut rotation = self.0.rotation.borrow_mut();
        rotation.follow(number, below.clone(), since, now);
        drop(rotation);
        self.0.act();
        Box::pin(async move { answered.await.unwrap_or_else(|_| Err(closed())) })
    }
}

impl Shared {
    fn number(&self) -> u64 {
        self.next.set(self.next.get() + 1);
        self.next.get()
    }

    /// Does what is to be done, in its order.
    fn act(self: &Rc<Self>) {
        let effects = self.rotation.borrow_mut().take_effects();
        self.effects.borrow_mut().extend(effects);
        self.sooner.notify_one();
        while !self.is_keeping.get() {
            let Some(effect) = self.effects.borrow_mut().pop_front() else {
                return;
            };
            self.does(effect);
        }
    }

    fn does(self: &Rc<Self>, effect: Effect) {
        match effect {
            Effect::Keep(text) => {
                self.is_keeping.set(true);
                let shared = Rc::clone(self);
                self.core.spawn(Box::pin(async move {
                    shared.keep(&text).await;
                    shared.is_keeping.set(false);
                    shared.act();
                }));
            }
            Effect::Post {
                id,
                endpoint,
                path,
                body,
            } => {
                let (drops, dropped) = oneshot::channel();
                self.tries.borrow_mut().insert(id, drops);
                let posted = self.carrier.post(endpoint, path, body);
                let carried = carry(Rc::downgrade(self), id, posted, dropped);
                self.core.spawn(Box::pin(carried));
            }
            Effect::Drop(id) => {
                self.tries.borrow_mut().remove(&id);
            }
            Effect::Answer(number, answer) => {
                if let Some(asker) = self.asked.borrow_mut().remove(&number) {
                    let _nobody_waits = asker.send(answer);
                }
            }
            Effect::Together(number, together) => {
                if let Some(asker) = self.together.borrow_mut().remove(&number) {
                    let _nobody_waits = asker.send(together);
                }
            }
            Effect::Changes(number, changes) => {
                if let Some(asker) = self.followers.borrow_mut().remove(&number) {
                    let _nobody_waits = asker.send(changes);
                }
            }
        }
    }

    /// What is not kept is known until this process ends, and what it protects is then known by
    /// records alone.
    async fn keep(&self, text: &[u8]) {
        let (core, file) = (&self.core, &self.memory);
        let files = core.files();
        let why = match in_time(core, KEEP_TIME_MAX, replace_file(&*files, file, text)).await {
            Some(Ok(())) => return,
            Some(Err(error)) => error.to_string(),
            None => format!("no answer of the disk within {KEEP_TIME_MAX:?}"),
        };
        tracing::error!("{}: {why}: which etcd this is, is not kept", file.display());
    }
}

/// Waits for what becomes of a request, or until nobody waits for it.
async fn carry(
    shared: Weak<Shared>,
    id: TryId,
    mut posted: LocalFuture<Came>,
    dropped: oneshot::Receiver<()>,
) {
    let mut dropped = pin!(dropped);
    let came = poll_fn(|cx| {
        if dropped.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        posted.as_mut().poll(cx).map(Some)
    });
    let (Some(came), Some(shared)) = (came.await, shared.upgrade()) else {
        return;
    };
    shared.tries.borrow_mut().remove(&id);
    let now = shared.core.now();
    shared.rotation.borrow_mut().came(id, came, now);
    shared.act();
}

/// Has the rotation know of time, as long as it is there.
async fn watch_time(shared: Rc<Shared>) {
    while !shared.is_closed.get() {
        let mut timer = match shared.rotation.borrow().wakes_at() {
            Some(at) => shared.core.sleep_until(at),
            None => Box::pin(pending()),
        };
        let mut sooner = pin!(shared.sooner.notified());
        let is_time = poll_fn(|cx| {
            if sooner.as_mut().poll(cx).is_ready() {
                return Poll::Ready(false);
            }
            timer.as_mut().poll(cx).map(|()| true)
        });
        if is_time.await {
            let now = shared.core.now();
            shared.rotation.borrow_mut().tick(now);
            shared.act();
        }
    }
}

fn closed() -> Trouble {
    Trouble::new(
        TroubleKind::Unreachable,
        "etcd is not asked any more",
        "ask again",
    )
}

async fn remembered(core: &CoreHandle, file: &Path) -> Result<Memory, Trouble> {
    let refused = |why: &dyn std::fmt::Display, next: &str| {
        Trouble::new(
            TroubleKind::File,
            format!("{}: {why}", file.display()),
            next,
        )
    };
    match read_file(&*core.files(), file, MEMORY_BYTES_MAX).await {
        Ok(text) => Memory::parse(&text).map_err(|why| {
            let next = "remove the file once you know that this etcd has the newest role records";
            refused(&why, next)
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Memory::default()),
        Err(error) => Err(refused(&error, "check the disk of state_dir")),
    }
}
