//! The whole of it but sockets, in simulated time, with an etcd whose members do what they like.

use super::*;
use crate::contract::{self, Counts, insist, key, swap};
use crate::memory::StoreId;
use env::sim::{World, WorldConfig};
use replica::model::Held;
use replica::{Arbitration, CopyId, Durable, Epoch, NodeSet, NodeSlot, RoleRecord};
use serde_json::{Value, json};
use units::base64;

const LIMIT: Duration = Duration::from_secs(600);

const fn ms(span: u64) -> Duration {
    Duration::from_millis(span)
}

/// What a member does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manner {
    Good,
    Slow(u64),
    Hung,
    Refusing,
    /// It has no leader.
    NotReady,
    NotAllowed,
    Garbled,
    /// It is of this cluster.
    Other(u64),
    /// It does what it is asked, and its answer is lost.
    Unheard,
    /// Any of it, by the dice.
    Rough,
}

struct Fake {
    core: CoreHandle,
    held: RefCell<Held<Vec<u8>, Vec<u8>>>,
    manners: Vec<Cell<Manner>>,
    /// What each member was asked.
    posts: Vec<Cell<usize>>,
    at_a_time: Cell<usize>,
    most_at_a_time: Cell<usize>,
}

fn text(value: &Value) -> Vec<u8> {
    base64::decode(value.as_str().unwrap_or_default()).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_str().map_or(0, |it| it.parse().unwrap())
}

impl Fake {
    fn new(core: &CoreHandle, manners: &[Manner]) -> Rc<Self> {
        Rc::new(Self {
            core: Rc::clone(core),
            held: RefCell::new(Held::nothing()),
            manners: manners.iter().map(|manner| Cell::new(*manner)).collect(),
            posts: manners.iter().map(|_| Cell::new(0)).collect(),
            at_a_time: Cell::new(0),
            most_at_a_time: Cell::new(0),
        })
    }

    fn range(&self, asked: &Value) -> Value {
        let held = self.held.borrow();
        let (first, end) = (text(&asked["key"]), text(&asked["range_end"]));
        let (limit, since) = (number(&asked["limit"]), number(&asked["min_mod_revision"]));
        let is_in = |key: &[u8]| {
            if end.is_empty() {
                key == first
            } else {
                key >= &first[..] && key < &end[..]
            }
        };
        let found = held
            .records
            .iter()
            .filter(|(key, (at, _))| is_in(key) && at.0 >= since);
        let found: Vec<Value> = found
            .map(|(key, (at, value))| {
                json!({ "key": base64::encode(key), "mod_revision": at.0.to_string(), "value": base64::encode(value) })
            })
            .collect();
        let most = if limit == 0 {
            found.len()
        } else {
            usize::try_from(limit).unwrap()
        };
        let shown = &found[..found.len().min(most)];
        json!({ "kvs": shown, "more": found.len() > most })
    }

    fn transaction(&self, asked: &Value) -> Value {
        let next = Revision(self.held.borrow().revision.0 + 1);
        self.transaction_at(asked, next)
    }

    fn compares(&self, it: &Value) -> bool {
        let held = self.held.borrow();
        let is = held.records.get(&text(&it["key"])).map_or(0, |it| it.0.0);
        let than = number(&it["mod_revision"]);
        match it["result"].as_str() {
            Some("EQUAL") => is == than,
            Some("GREATER") => is > than,
            other => panic!("{other:?}"),
        }
    }

    fn transaction_at(&self, asked: &Value, next: Revision) -> Value {
        let list = |name: &str| asked[name].as_array().cloned().unwrap_or_default();
        let holds = list("compare").iter().all(|it| self.compares(it));
        let operations = list(if holds { "success" } else { "failure" });
        assert!(operations.len() <= 65 && list("compare").len() <= 65);
        let answers: Vec<Value> = operations
            .iter()
            .map(|it| {
                if it.get("request_range").is_some() {
                    return json!({ "response_range": self.range(&it["request_range"]) });
                }
                if let Some(put) = it.get("request_put") {
                    self.put(put, next);
                    return json!({ "response_put": { "header": { "revision": next.0.to_string() } } });
                }
                json!({ "response_txn": self.transaction_at(&it["request_txn"], next) })
            })
            .collect();
        json!({ "succeeded": holds, "responses": answers })
    }

    fn put(&self, asked: &Value, at: Revision) {
        let mut held = self.held.borrow_mut();
        held.records
            .insert(text(&asked["key"]), (at, text(&asked["value"])));
        held.revision = at;
    }

    fn does(&self, path: &str, body: &[u8], store: u64) -> Vec<u8> {
        let asked: Value = serde_json::from_slice(body).unwrap();
        let mut reply = match path {
            "/v3/kv/txn" => self.transaction(&asked),
            "/v3/kv/range" => self.range(&asked),
            _ => panic!("{path}"),
        };
        let revision = self.held.borrow().revision.0.to_string();
        reply["header"] = json!({ "cluster_id": store.to_string(), "revision": revision });
        reply.to_string().into_bytes()
    }

    fn draw(&self, below: u64) -> u64 {
        let mut bytes = [0; 8];
        self.core.fill_random(&mut bytes);
        u64::from_le_bytes(bytes) % below
    }

    fn sleep(&self, span: Duration) -> LocalFuture<()> {
        self.core.sleep_until(self.core.now().after(span))
    }

    fn manner(&self, endpoint: usize) -> Manner {
        let manner = self.manners[endpoint].get();
        if manner != Manner::Rough {
            return manner;
        }
        match self.draw(10) {
            0 => Manner::Hung,
            1 => Manner::Refusing,
            2 => Manner::NotReady,
            3 => Manner::Garbled,
            4 => Manner::Unheard,
            5 | 6 => Manner::Slow(self.draw(1500)),
            _ => Manner::Good,
        }
    }

    /// A member at work. It goes on when nobody waits for it any more.
    async fn works(self: Rc<Self>, endpoint: usize, path: &'static str, body: Vec<u8>) -> Came {
        let said = |status, text: &str| {
            Came::Said(status, json!({ "message": text }).to_string().into_bytes())
        };
        self.sleep(Duration::from_micros(200 + self.draw(300)))
            .await;
        match self.manner(endpoint) {
            Manner::Good | Manner::Rough => Came::Said(200, self.does(path, &body, 1)),
            Manner::Slow(span) => {
                self.sleep(ms(span / 2)).await;
                let answer = self.does(path, &body, 1);
                self.sleep(ms(span / 2)).await;
                Came::Said(200, answer)
            }
            Manner::Other(store) => Came::Said(200, self.does(path, &body, store)),
            Manner::Hung => pending().await,
            Manner::Unheard => {
                self.does(path, &body, 1);
                pending().await
            }
            Manner::Refusing => {
                let cause = format!("member {endpoint}: connection refused");
                Came::Failed(Trouble::new(TroubleKind::Unreachable, cause, "start it"))
            }
            Manner::NotReady => said(503, "etcdserver: no leader"),
            Manner::NotAllowed => said(403, "etcdserver: permission denied"),
            Manner::Garbled => Came::Said(200, b"<html>".to_vec()),
        }
    }
}

struct Door(Rc<Fake>);

impl Carrier for Door {
    fn post(&self, endpoint: usize, path: &'static str, body: Vec<u8>) -> LocalFuture<Came> {
        let fake = Rc::clone(&self.0);
        fake.posts[endpoint].set(fake.posts[endpoint].get() + 1);
        fake.at_a_time.set(fake.at_a_time.get() + 1);
        fake.most_at_a_time
            .set(fake.most_at_a_time.get().max(fake.at_a_time.get()));
        Box::pin(async move {
            let work = Rc::clone(&fake).works(endpoint, path, body);
            let came = env::detach(&fake.core, work).await;
            fake.at_a_time.set(fake.at_a_time.get() - 1);
            came
        })
    }
}

fn settings() -> EtcdSettings {
    let endpoint = |at| Endpoint::parse(&format!("http://127.0.0.{at}:2379")).unwrap();
    EtcdSettings {
        endpoints: vec![endpoint(1), endpoint(2), endpoint(3)],
        tls: None,
        prefix: Key::new("causeway/test").unwrap(),
        memory: PathBuf::from("/memory"),
    }
}

fn arbiter(core: &CoreHandle, fake: &Rc<Fake>) -> EtcdArbiter {
    let door = Box::new(Door(Rc::clone(fake)));
    EtcdArbiter::over(core, door, &settings(), Memory::default(), Patience::USUAL)
}

fn in_world<T: 'static>(
    seed: u64,
    manners: [Manner; 3],
    run: impl AsyncFnOnce(CoreHandle, Rc<Fake>) -> T + 'static,
) -> T {
    let world = World::new(seed, WorldConfig::default());
    let node = world.node("a");
    let (core, fake) = (node.core(0), Fake::new(&node.core(1), &manners));
    let run = async move { run(core, fake).await };
    world.block_on(&node, LIMIT, run).unwrap()
}

const ALL_GOOD: [Manner; 3] = [Manner::Good; 3];

#[test]
fn etcd_keeps_the_contract() {
    let counts = in_world(1, ALL_GOOD, async |core, fake| {
        let rivals = [(); 4].map(|()| Rc::new(arbiter(&core, &fake)) as Rc<dyn Arbiter>);
        contract::holds(&core, &rivals, "t", Duration::from_secs(60)).await
    });
    assert_eq!(counts.unknown, 0, "{counts:?}");
    assert!(counts.swapped > 40 && counts.refused > 40, "{counts:?}");
}

#[test]
fn whatever_members_do_one_order_explains_the_answers() {
    let mut all = Counts::default();
    for seed in 0..120 {
        let counts = in_world(seed, [Manner::Rough; 3], async move |core, fake| {
            let rivals = [(); 3].map(|()| Rc::new(arbiter(&core, &fake)) as Rc<dyn Arbiter>);
            contract::contend(
                &core,
                &rivals,
                ("t", seed),
                |round| round < 25,
                Duration::from_secs(500),
            )
            .await
        });
        let (counts, _) = counts.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        all.swapped += counts.swapped;
        all.refused += counts.refused;
        all.unknown += counts.unknown;
        all.done_unheard += counts.done_unheard;
    }
    assert!(all.swapped > 1000 && all.refused > 300, "{all:?}");
    assert!(all.unknown > 100 && all.done_unheard > 30, "{all:?}");
}

/// How long each of two reads takes, one after the other.
async fn two_reads(core: &CoreHandle, arbiter: &EtcdArbiter) -> [Duration; 2] {
    let mut took = [Duration::ZERO; 2];
    for span in &mut took {
        let begun = core.now();
        let answers = arbiter.ask(vec![Question::Read(key("t", "a"))]).await;
        assert_eq!(answers, [Answer::Is(None)]);
        *span = core.now().since(begun);
    }
    took
}

#[test]
fn an_endpoint_that_is_not_well_costs_one_span_once() {
    for (manner, first_max) in [
        (Manner::Hung, ms(210)),
        (Manner::Slow(800), ms(210)),
        (Manner::Unheard, ms(210)),
        (Manner::Refusing, ms(5)),
        (Manner::NotReady, ms(5)),
        (Manner::NotAllowed, ms(5)),
        (Manner::Garbled, ms(5)),
        (Manner::Other(7), ms(5)),
    ] {
        let [first, second] = in_world(
            3,
            [manner, Manner::Good, Manner::Good],
            async move |core, fake| {
                let arbiter = arbiter(&core, &fake);
                arbiter
                    .0
                    .rotation
                    .borrow_mut()
                    .memory()
                    .hears((StoreId(1), Revision(1)), Revision(0), "")
                    .unwrap();
                let took = two_reads(&core, &arbiter).await;
                assert_eq!(fake.posts[0].get(), 1, "it is not asked again");
                let endpoints = arbiter.endpoints();
                let [first, second, _] = &endpoints[..] else {
                    panic!("three");
                };
                assert!(first.1.is_some() && second.1.is_none(), "{first:?}");
                took
            },
        );
        assert!(first <= first_max, "{manner:?}: {first:?}");
        assert!(second <= ms(5), "{manner:?}: {second:?}");
    }
}

#[test]
fn nobody_there_is_known_in_time_with_what_each_of_them_does() {
    for (manners, kind, least, words) in [
        (
            [Manner::Hung, Manner::Hung, Manner::Refusing],
            TroubleKind::Unreachable,
            1199,
            "127.0.0.2:2379: nothing for",
        ),
        (
            [Manner::Hung; 3],
            TroubleKind::Silent,
            1199,
            "127.0.0.3:2379: nothing for",
        ),
        (
            [Manner::NotReady; 3],
            TroubleKind::NotReady,
            1199,
            "no leader",
        ),
        (
            [Manner::NotAllowed; 3],
            TroubleKind::NotAllowed,
            0,
            "permission denied",
        ),
        (
            [Manner::NotAllowed, Manner::Refusing, Manner::Refusing],
            TroubleKind::NotAllowed,
            0,
            "connection refused",
        ),
    ] {
        in_world(4, manners, async move |core, fake| {
            let arbiter = arbiter(&core, &fake);
            let begun = core.now();
            let trouble = contract::trouble(&arbiter, &key("t", "a")).await;
            let took = core.now().since(begun);
            assert_eq!(trouble.kind, kind, "{trouble}");
            assert!(trouble.cause.contains(words), "{trouble}");
            assert!(
                took >= ms(least) && took <= ms(least + 10),
                "{manners:?}: {took:?}"
            );
            let posts: usize = fake.posts.iter().map(Cell::get).sum();
            assert!(posts < 50, "{posts}");
        });
    }
}

#[test]
fn a_majority_that_comes_back_is_noticed_within_a_round() {
    in_world(5, [Manner::NotReady; 3], async |core, fake| {
        let arbiter = arbiter(&core, &fake);
        let begun = core.now();
        let later = Rc::clone(&fake);
        core.spawn(Box::pin(async move {
            later.sleep(ms(700)).await;
            later.manners.iter().for_each(|it| it.set(Manner::Good));
        }));
        let answers = arbiter
            .ask(vec![swap(&key("t", "a"), Revision(0), "a")])
            .await;
        assert_eq!(answers, [Answer::Swapped(Revision(2))]);
        let took = core.now().since(begun);
        assert!(took < ms(810), "{took:?}");
    });
}

#[test]
fn a_swap_whose_answer_is_lost_is_found_done_by_the_next_endpoint() {
    in_world(
        6,
        [Manner::Unheard, Manner::Good, Manner::Good],
        async |core, fake| {
            let arbiter = arbiter(&core, &fake);
            let answers = arbiter
                .ask(vec![swap(&key("t", "a"), Revision(0), "a")])
                .await;
            assert_eq!(answers, [Answer::Swapped(Revision(2))]);
            let held = fake.held.borrow();
            let versions: Vec<Revision> = held.records.values().map(|it| it.0).collect();
            assert!(
                versions.contains(&Revision(2)),
                "it was done once: {versions:?}"
            );
        },
    );
}

#[test]
fn an_etcd_that_was_set_back_is_believed_no_more_after_a_restart_either() {
    for to_nothing in [true, false] {
        let cause = in_world(7, ALL_GOOD, async move |core, fake| {
            let arbiter = arbiter(&core, &fake);
            let first = insist(
                &core,
                &arbiter,
                vec![swap(&key("t", "a"), Revision(0), "a")],
            )
            .await;
            assert_eq!(first, [Answer::Swapped(Revision(2))]);
            let backup = fake.held.borrow().clone();
            insist(
                &core,
                &arbiter,
                vec![swap(&key("t", "a"), Revision(2), "b")],
            )
            .await;
            *fake.held.borrow_mut() = if to_nothing { Held::nothing() } else { backup };
            let held = fake.held.borrow().clone();
            let lost = arbiter
                .ask(vec![swap(&key("t", "new"), Revision(0), "a")])
                .await;
            assert!(matches!(lost[..], [Answer::Unknown(_)]), "{lost:?}");
            assert_eq!(*fake.held.borrow(), held, "nothing is written");
            let trouble = contract::trouble(&arbiter, &key("t", "a")).await;
            assert_eq!(trouble.kind, TroubleKind::SetBack);
            drop(arbiter);
            // It goes on without this node.
            fake.held.borrow_mut().revision = Revision(900);
            let memory = remembered(&core, Path::new("/memory")).await.unwrap();
            let door = Box::new(Door(Rc::clone(&fake)));
            let after = EtcdArbiter::over(&core, door, &settings(), memory, Patience::USUAL);
            let still = contract::trouble(&after, &key("t", "a")).await;
            assert_eq!(still.kind, TroubleKind::SetBack);
            trouble.cause
        });
        assert!(
            cause.contains(if to_nothing { "emptied" } else { "restored" }),
            "{cause}"
        );
    }
}

#[test]
fn whatever_members_do_records_change_together_or_not_at_all() {
    let (mut all_done, mut all_refused) = (0, 0);
    for seed in 200..260 {
        let (done, refused) = in_world(seed, [Manner::Rough; 3], async move |core, fake| {
            let rivals = [(); 3].map(|()| Rc::new(arbiter(&core, &fake)) as Rc<dyn Arbiter>);
            contract::contend_together(&core, &rivals, "t", Duration::from_secs(500)).await
        });
        all_done += done;
        all_refused += refused;
    }
    assert!(
        all_done > 500 && all_refused > 500,
        "{all_done} {all_refused}"
    );
}

#[test]
fn what_copies_remember_is_enough_to_know_an_etcd_that_was_emptied() {
    in_world(9, ALL_GOOD, async |core, fake| {
        let record = RoleRecord {
            epoch: Epoch(3),
            step: 0,
            owner: NodeSlot(0),
            in_sync: NodeSet::of([NodeSlot(0)]),
            copies: vec![(NodeSlot(0), CopyId(1))],
        };
        let kept = [7, 40, 9].map(|revision| Durable {
            known: (Revision(revision), record.clone()),
            promised: Epoch(3),
            is_whole: true,
            base: Vec::new(),
        });
        // What it kept itself is lost with the disk that had it.
        let arbiter = arbiter(&core, &fake);
        crate::role::begin(&arbiter, &kept);
        let held = fake.held.borrow().clone();
        let first = crate::role::first(key("t", "role"), &record);
        let answers = arbiter.ask(vec![Question::Swap(first)]).await;
        let [Answer::Unknown(trouble)] = &answers[..] else {
            panic!("{answers:?}")
        };
        assert_eq!(trouble.kind, TroubleKind::SetBack, "{trouble}");
        assert_eq!(crate::role::instead(trouble), Arbitration::Distrusted);
        assert_eq!(*fake.held.borrow(), held, "nothing is written");
        // A cluster that has just begun remembers nothing, and begins.
        let other = self::arbiter(&core, &fake);
        crate::role::begin(&other, &[]);
        let first = crate::role::first(key("t", "role"), &record);
        let answers = other.ask(vec![Question::Swap(first)]).await;
        assert_eq!(answers, [Answer::Swapped(Revision(2))]);
    });
}

#[test]
fn the_roles_of_a_dead_node_are_swapped_in_transactions_of_64_a_few_at_a_time() {
    in_world(8, ALL_GOOD, async |core, fake| {
        let arbiter = arbiter(&core, &fake);
        let all = (0..5000).map(|at| swap(&key("t", &format!("{at}")), Revision(0), "a"));
        let answers = arbiter.ask(all.collect()).await;
        let is_done = |it: &Answer| matches!(it, Answer::Swapped(_));
        assert!(answers.iter().all(is_done));
        let posts: usize = fake.posts.iter().map(Cell::get).sum();
        assert_eq!((posts, fake.most_at_a_time.get()), (79, 4));
        // And whoever follows gets them page by page, and then nothing.
        let changes = arbiter
            .changes(&Key::new("t").unwrap(), Revision(0))
            .await
            .unwrap();
        assert_eq!((changes.records.len(), changes.until), (5000, Revision(80)));
        let changes = arbiter
            .changes(&Key::new("t").unwrap(), changes.until)
            .await
            .unwrap();
        assert_eq!(changes.records, []);
        let posts: usize = fake.posts.iter().map(Cell::get).sum();
        assert_eq!(posts, 79 + 5 + 1);
    });
}
