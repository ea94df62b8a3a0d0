//! Real etcd: three members or one, TLS, and what becomes of them.

mod bed;

use crate::contract::{self, Counts, insist, key, swap};
use crate::{Answer, Arbiter, EtcdArbiter, Question, Trouble, TroubleKind, role};
use bed::{Authority, Bed};
use env::real::{Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId};
use replica::{CopyId, Epoch, NodeSet, NodeSlot, Revision, RoleRecord};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const fn seconds(span: u64) -> Duration {
    Duration::from_secs(span)
}

fn run<T: Send + 'static>(
    runtime: &Runtime,
    body: impl AsyncFnOnce(CoreHandle) -> T + Send + 'static,
) -> T {
    runtime.run(CoreId(0), move |core| {
        Box::pin(async move { body(core).await })
    })
}

fn runtime() -> Runtime {
    Runtime::start(&RuntimeConfig::default()).unwrap()
}

/// How long something takes by the core's clock.
async fn timed<T>(core: &CoreHandle, work: impl Future<Output = T>) -> (T, Duration) {
    let begun = core.now();
    let done = work.await;
    (done, core.now().since(begun))
}

#[test]
fn real_etcd_keeps_the_contract_within_20_seconds() {
    let Some(bed) = Bed::start(3) else { return };
    let settings = bed.settings();
    let counts = run(&runtime(), async move |core| {
        let mut rivals: Vec<Rc<dyn Arbiter>> = Vec::new();
        for first in 0..3 {
            let mut settings = settings.clone();
            settings.endpoints.rotate_left(first);
            rivals.push(Rc::new(EtcdArbiter::open(&core, &settings).await.unwrap()));
        }
        contract::holds(&core, &rivals, "t", seconds(20)).await
    });
    assert!(counts.swapped > 30 && counts.refused > 20, "{counts:?}");
}

/// Rivals ask while `faults` happen: what they were answered, and the longest time without.
fn under(bed: &mut Bed, folder: &'static str, faults: impl FnOnce(&mut Bed)) -> (Counts, Duration) {
    let (settings, is_over) = (bed.settings(), Arc::new(AtomicBool::new(false)));
    let (runtime, goes_on) = (runtime(), Arc::clone(&is_over));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            run(&runtime, async move |core| {
                let mut rivals: Vec<Rc<dyn Arbiter>> = Vec::new();
                for first in 0..3 {
                    let mut settings = settings.clone();
                    settings.endpoints.rotate_left(first);
                    rivals.push(Rc::new(EtcdArbiter::open(&core, &settings).await.unwrap()));
                }
                let goes_on = move |_| !goes_on.load(Ordering::Relaxed);
                contract::contend(&core, &rivals, (folder, 7), goes_on, seconds(30)).await
            })
        });
        std::thread::park_timeout(Duration::from_millis(200));
        faults(bed);
        is_over.store(true, Ordering::Relaxed);
        asking
            .join()
            .unwrap()
            .unwrap_or_else(|why| panic!("{folder}: {why}"))
    })
}

fn pause(span: Duration) {
    // A wake-up that is none of ours makes it shorter, and no oracle needs its length.
    std::thread::park_timeout(span);
}

#[test]
fn a_member_that_dies_or_hangs_costs_less_than_a_second_and_a_leader_less_than_eight() {
    let Some(mut bed) = Bed::start(3) else { return };
    let mut all = Vec::new();
    let follower = |bed: &Bed| (bed.leader() + 1) % 3;
    let it = follower(&bed);
    let killed = under(&mut bed, "follower_killed", |bed| {
        bed.kill(it);
        pause(seconds(1));
    });
    bed.up(&[it]);
    all.push(("a follower killed", killed, seconds(1)));
    let it = follower(&bed);
    let hung = under(&mut bed, "follower_hung", |bed| {
        bed.pause(it);
        pause(seconds(1));
        bed.resume(it);
    });
    all.push(("a follower hung", hung, seconds(1)));
    let it = bed.leader();
    let killed = under(&mut bed, "leader_killed", |bed| {
        bed.kill(it);
        pause(seconds(3));
    });
    bed.up(&[it]);
    all.push(("the leader killed", killed, seconds(5)));
    let it = bed.leader();
    let hung = under(&mut bed, "leader_hung", |bed| {
        bed.pause(it);
        pause(seconds(3));
        bed.resume(it);
    });
    all.push(("the leader hung", hung, seconds(8)));
    for (what, (counts, gap), most) in all {
        println!("{what}: nothing known for {gap:?} at most; {counts:?}");
        assert!(gap < most, "{what}: {gap:?}");
        assert!(counts.swapped > 10, "{what}: {counts:?}");
    }
}

#[test]
fn all_members_gone_is_known_in_two_seconds_and_their_return_in_ten() {
    let Some(mut bed) = Bed::start(3) else { return };
    let (settings, runtime) = (bed.settings(), runtime());
    let (gone, back) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (is_gone, is_back) = (Arc::clone(&gone), Arc::clone(&back));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            run(&runtime, async move |core| {
                let arbiter = EtcdArbiter::open(&core, &settings).await.unwrap();
                let made = insist(
                    &core,
                    &arbiter,
                    vec![swap(&key("t", "a"), Revision(0), "a")],
                )
                .await;
                while !is_gone.load(Ordering::Relaxed) {
                    core.sleep_until(core.now().after(Duration::from_millis(5)))
                        .await;
                }
                let key_of = key("t", "a");
                let asked = contract::trouble(&arbiter, &key_of);
                let (trouble, took) = timed(&core, asked).await;
                assert!(took < seconds(2), "{took:?}");
                for endpoint in &settings.endpoints {
                    let name = endpoint.to_string();
                    assert!(trouble.cause.contains(&name), "{name} is not in {trouble}");
                }
                while !is_back.load(Ordering::Relaxed) {
                    core.sleep_until(core.now().after(Duration::from_millis(5)))
                        .await;
                }
                let read = insist(&core, &arbiter, vec![Question::Read(key("t", "a"))]);
                let (read, took) = timed(&core, read).await;
                assert!(took < seconds(10), "{took:?}");
                let Answer::Swapped(revision) = made[0] else {
                    panic!("{made:?}");
                };
                assert_eq!(read, [Answer::Is(Some((revision, b"a".to_vec())))]);
            });
        });
        pause(Duration::from_millis(500));
        (0..3).for_each(|at| bed.kill(at));
        gone.store(true, Ordering::Relaxed);
        pause(Duration::from_millis(1500));
        bed.up(&[0, 1, 2]);
        back.store(true, Ordering::Relaxed);
        asking.join().unwrap();
    });
}

/// What keeps an arbiter of these settings from being asked, or from answering.
async fn trouble_of(core: &CoreHandle, settings: &crate::etcd::EtcdSettings) -> Trouble {
    match EtcdArbiter::open(core, settings).await {
        Err(trouble) => trouble,
        Ok(arbiter) => contract::trouble(&arbiter, &key("t", "a")).await,
    }
}

#[test]
fn a_certificate_that_is_not_right_is_named_within_two_seconds_and_no_key_is_shown() {
    let Some(bed) = Bed::start(1) else { return };
    let dir = bed.dir().join("other");
    let other = Authority::new("somebody's");
    other.keep(&dir);
    other.signs(&dir, "node");
    let wrong_client = bed.settings_by(&dir, "node");
    let (mut not_believed, mut mixed, mut none, mut missing) = (
        bed.settings(),
        bed.settings(),
        bed.settings(),
        bed.settings(),
    );
    let of = |settings: &mut crate::etcd::EtcdSettings,
              change: &dyn Fn(&mut crate::etcd::TlsFiles)| {
        change(settings.tls.as_mut().unwrap());
    };
    of(&mut not_believed, &|tls| tls.ca = dir.join("ca.pem"));
    of(&mut mixed, &|tls| tls.key = dir.join("node.key"));
    of(&mut missing, &|tls| {
        tls.certificate = dir.join("nothing.pem");
    });
    none.tls = None;
    let secret = std::fs::read_to_string(dir.join("node.key")).unwrap();
    let secret = secret.lines().nth(1).unwrap().to_owned();
    run(&runtime(), async move |core| {
        for (settings, kind, words) in [
            (
                wrong_client,
                TroubleKind::Certificate,
                "does not take this node's certificate",
            ),
            (not_believed, TroubleKind::Certificate, "is not believed"),
            (mixed, TroubleKind::File, "does not fit"),
            (missing, TroubleKind::File, "nothing.pem"),
            (none, TroubleKind::Refuses, "no certificates are named"),
        ] {
            let (trouble, took) = timed(&core, trouble_of(&core, &settings)).await;
            assert_eq!(trouble.kind, kind, "{trouble}");
            assert!(trouble.cause.contains(words), "{trouble}");
            assert!(
                !trouble.to_string().contains(&secret) && took < seconds(2),
                "{took:?}"
            );
        }
    });
}

#[test]
fn compaction_is_not_noticed_and_an_etcd_that_was_set_back_is_refused_at_once() {
    let Some(mut bed) = Bed::start(1) else { return };
    let runtime = runtime();
    // One change more than what is there, and how it is answered.
    let changes = |bed: &Bed, expected: u64, text: &'static str| {
        let settings = bed.settings();
        run(&runtime, async move |core| {
            let arbiter = EtcdArbiter::open(&core, &settings).await.unwrap();
            let answers = insist_or_trouble(
                &core,
                &arbiter,
                swap(&key("t", "a"), Revision(expected), text),
            )
            .await;
            let below = crate::Key::new("t").unwrap();
            let changes = arbiter.changes(&below, Revision(1)).await;
            // What is known is kept after a second.
            core.sleep_until(core.now().after(Duration::from_millis(1300)))
                .await;
            answers.map(|it| (it, changes.map(|it| it.records.len())))
        })
    };
    let (first, _) = changes(&bed, 0, "a").unwrap();
    let Answer::Swapped(first) = first else {
        panic!("{first:?}")
    };
    let snapshot = bed.dir().join("snapshot");
    bed.ctl(0, &["snapshot", "save", snapshot.to_str().unwrap()]);
    let (second, _) = changes(&bed, first.0, "b").unwrap();
    let Answer::Swapped(second) = second else {
        panic!("{second:?}")
    };
    bed.ctl(0, &["compaction", &second.0.to_string()]);
    let (third, seen) = changes(&bed, second.0, "c").unwrap();
    assert!(matches!(third, Answer::Swapped(_)), "{third:?}");
    assert_eq!(seen, Ok(1), "who follows from before the compaction");
    let memory = bed.dir().join("memory");
    let kept = std::fs::read(&memory).unwrap();
    bed.restore(&snapshot);
    let trouble = changes(&bed, second.0, "d").unwrap_err();
    assert_eq!(trouble.kind, TroubleKind::SetBack, "{trouble}");
    assert!(trouble.cause.contains("restored"), "{trouble}");
    bed.empty();
    std::fs::write(&memory, kept).unwrap();
    let trouble = changes(&bed, 0, "e").unwrap_err();
    assert_eq!(trouble.kind, TroubleKind::SetBack, "{trouble}");
    assert!(trouble.cause.contains("emptied"), "{trouble}");
    assert_eq!(
        bed.ctl(0, &["get", "causeway/test/t/a"]),
        "",
        "nothing was written"
    );
}

async fn insist_or_trouble(
    core: &CoreHandle,
    arbiter: &dyn Arbiter,
    question: Question,
) -> Result<Answer, Trouble> {
    for _ in 0..9 {
        match arbiter.ask(vec![question.clone()]).await.pop() {
            Some(Answer::Unknown(trouble)) if trouble.kind.lasts() => return Err(trouble),
            Some(Answer::Unknown(_)) | None => {}
            Some(answer) => return Ok(answer),
        }
        core.sleep_until(core.now().after(Duration::from_millis(50)))
            .await;
    }
    panic!("nothing is known");
}

#[test]
fn an_etcd_with_users_is_refused_with_what_to_do_about_it() {
    let Some(bed) = Bed::start(1) else { return };
    bed.ctl(0, &["user", "add", "root:s3cret"]);
    bed.ctl(0, &["user", "grant-role", "root", "root"]);
    bed.ctl(0, &["auth", "enable"]);
    let settings = bed.settings();
    let trouble = run(&runtime(), async move |core| {
        trouble_of(&core, &settings).await
    });
    assert_eq!(trouble.kind, TroubleKind::NotAllowed, "{trouble}");
    assert!(trouble.next_step.contains("auth enable"), "{trouble}");
}

/// The record of a LUN of two nodes, as it is stored.
fn record(epoch: u64) -> Vec<u8> {
    let (a, b) = (NodeSlot(0), NodeSlot(1));
    role::encode(&RoleRecord {
        epoch: Epoch(epoch),
        step: 0,
        owner: a,
        in_sync: NodeSet::of([a, b]),
        copies: vec![(a, CopyId(u128::MAX / 3)), (b, CopyId(u128::MAX / 5))],
    })
}

#[test]
fn five_thousand_roles_are_swapped_in_five_seconds_and_one_in_a_tenth() {
    let Some(bed) = Bed::start(3) else { return };
    let settings = bed.settings();
    let (mut spans, whole) = run(&runtime(), async move |core| {
        let arbiter = EtcdArbiter::open(&core, &settings).await.unwrap();
        let mut known = Revision(0);
        let mut spans = Vec::new();
        for epoch in 0..300 {
            let ask = vec![swap(&key("one", "role"), known, record(epoch))];
            let (answers, took) = timed(&core, insist(&core, &arbiter, ask)).await;
            let Answer::Swapped(revision) = answers[0] else {
                panic!("{answers:?}");
            };
            known = revision;
            spans.push(took);
        }
        let keys: Vec<_> = (0..5000)
            .map(|at| role::key(&format!("6001405{at:025}")).unwrap())
            .collect();
        let mut versions = vec![Revision(0); keys.len()];
        let mut whole = Vec::new();
        for epoch in 1..4 {
            let all = keys
                .iter()
                .zip(&versions)
                .map(|(key, at)| swap(key, *at, record(epoch)));
            let (answers, took) = timed(&core, insist(&core, &arbiter, all.collect())).await;
            whole.push(took);
            for (version, answer) in versions.iter_mut().zip(answers) {
                let Answer::Swapped(revision) = answer else {
                    panic!("{answer:?}");
                };
                *version = revision;
            }
        }
        (spans, whole)
    });
    spans.sort_unstable();
    let (half, most) = (spans[150], spans[297]);
    println!("a swap: p50 {half:?}, p99 {most:?}; 5,000 of them in transactions of 64: {whole:?}");
    assert!(half < Duration::from_millis(100), "{half:?}");
    assert!(whole.iter().all(|it| *it < seconds(5)), "{whole:?}");
}
