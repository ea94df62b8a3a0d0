//! Several nodes with few tokens, an arbiter that is late, does things twice, and loses answers.

use crate::admission::Candidate;
use crate::authority::{Authority, PublicKey, SecretKey, seconds};
use crate::fingerprint::Fingerprint;
use crate::fixture;
use crate::records::{Der, Profile, TokenRecord};
use crate::refusal::RefusalKind;
use crate::register::{Admitted, Register, first};
use arbiter::Arbiter;
use arbiter::model::{Manners, ModelArbiter, ModelStore};
use env::CoreHandle;
use env::sim::{World, WorldConfig};
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

const SECRET: &str = "the secret";

/// A node that wants in.
struct Applicant {
    candidate: Candidate,
    key: PublicKey,
    token: String,
}

fn applicant(core: &CoreHandle, number: u8, token: u8) -> Applicant {
    Applicant {
        candidate: Candidate {
            profile: fixture::profile(number),
            naas: Vec::new(),
            clock: seconds(core.wall_clock()),
        },
        key: SecretKey::make().unwrap().public(),
        token: format!("{token:016x}"),
    }
}

fn register(core: &CoreHandle, store: &ModelStore, manners: Manners) -> Register {
    let arbiter: Rc<dyn Arbiter> = Rc::new(ModelArbiter::new(core, store, manners));
    Register::new(core, arbiter)
}

/// Asks until it is known.
async fn insists(
    core: &CoreHandle,
    register: &Register,
    authority: &Authority,
    applicant: &Applicant,
) -> Result<Admitted, RefusalKind> {
    loop {
        let none = BTreeSet::new();
        let who = (&applicant.candidate, &applicant.key);
        let by = ("sponsor", &none, core.wall_clock());
        let token = (applicant.token.as_str(), SECRET);
        match register.admit(authority, by, who, token).await {
            Ok(admitted) => return Ok(admitted),
            Err(refusal) if refusal.kind == RefusalKind::Arbiter => {}
            Err(refusal) => return Err(refusal.kind),
        }
        core.sleep_until(core.now().after(Duration::from_millis(50)))
            .await;
    }
}

/// A cluster with its first node and tokens.
async fn made(core: &CoreHandle, register: &Register, authority: &Authority, tokens: u8) {
    let key = SecretKey::make().unwrap().public();
    let (profile, now): (Profile, _) = (fixture::profile(0), core.wall_clock());
    let cluster = "c".repeat(32);
    let (cluster, node) =
        first(core, (authority, &key), (&cluster, "home"), (&profile, now)).unwrap();
    register.found(&cluster, &node).await.unwrap();
    let expires = seconds(core.wall_clock()) + 100_000;
    for token in 0..tokens {
        let record: TokenRecord = fixture::token_record(SECRET, expires);
        let id = format!("{token:016x}");
        register.keep_token(&id, &record).await.unwrap();
    }
}

/// Who got in of those that came, each by several sponsors at once.
fn contest(
    seed: u64,
    applicants: impl Fn(&CoreHandle) -> Vec<Applicant> + 'static,
) -> (BTreeMap<String, BTreeSet<u8>>, usize) {
    let world = World::new(seed, WorldConfig::default());
    let (here, there) = (world.node("a"), world.node("b"));
    let (core, store) = (here.core(0), ModelStore::new(&there.core(0)));
    let work = async move {
        let authority = Authority::new(&"c".repeat(32), SecretKey::make().unwrap());
        let good = register(&core, &store, Manners::GOOD);
        made(&core, &good, &authority, 2).await;
        let applicants = applicants(&core);
        let sponsors = [(); 2].map(|()| register(&core, &store, Manners::BAD));
        let tries = applicants
            .iter()
            .flat_map(|applicant| sponsors.iter().map(move |sponsor| (applicant, sponsor)));
        let tried = tries.map(async |(applicant, sponsor)| {
            let done = insists(&core, sponsor, &authority, applicant).await;
            (applicant, done)
        });
        let all = join_all(tried).await;
        let roster = good.roster().await.unwrap();
        let mut slots: BTreeMap<String, BTreeSet<u8>> = BTreeMap::new();
        for (applicant, done) in all {
            let Ok(admitted) = done else { continue };
            let known = &roster.nodes[&admitted.slot].record;
            assert_eq!(known.profile.id, applicant.candidate.profile.id);
            assert_eq!(
                known.certificate, admitted.record.certificate,
                "one certificate"
            );
            assert_eq!(
                PublicKey::of(&known.certificate.0),
                Some(applicant.key.clone())
            );
            let all = slots.entry(applicant.token.clone()).or_default();
            all.insert(admitted.slot);
        }
        (slots, roster.joined().count())
    };
    world
        .block_on(&here, Duration::from_secs(10_000), work)
        .unwrap()
}

#[test]
fn a_token_lets_one_node_in_however_many_come_at_once_and_however_often_answers_are_lost() {
    let mut winners = BTreeSet::new();
    for seed in 0..40 {
        let (slots, joined) = contest(seed, |core| {
            vec![
                applicant(core, 1, 0),
                applicant(core, 2, 0),
                applicant(core, 3, 0),
                applicant(core, 4, 1),
            ]
        });
        let of = |token: u8| slots[&format!("{token:016x}")].len();
        assert_eq!((of(0), of(1), joined), (1, 1, 3), "seed {seed}: {slots:?}");
        winners.insert(slots);
    }
    assert!(winners.len() > 1, "both orders came");
}

#[test]
fn two_copies_of_a_node_with_a_token_each_are_one_node_at_most() {
    for seed in 0..20 {
        let (_, joined) = contest(seed, |core| {
            vec![applicant(core, 1, 0), applicant(core, 1, 1)]
        });
        assert_eq!(joined, 2, "seed {seed}: the first node, and one of them");
    }
}

#[test]
fn a_node_that_was_refused_for_itself_leaves_its_token_good() {
    let world = World::new(7, WorldConfig::default());
    let (here, there) = (world.node("a"), world.node("b"));
    let (core, store) = (here.core(0), ModelStore::new(&there.core(0)));
    let work = async move {
        let authority = Authority::new(&"c".repeat(32), SecretKey::make().unwrap());
        let good = register(&core, &store, Manners::GOOD);
        made(&core, &good, &authority, 1).await;
        let mut late = applicant(&core, 1, 0);
        late.candidate.clock += 40_000_000;
        let refused = insists(&core, &good, &authority, &late).await;
        assert_eq!(refused.err(), Some(RefusalKind::Clock));
        let other = Applicant {
            token: format!("{:016x}", 9),
            ..applicant(&core, 1, 0)
        };
        let refused = insists(&core, &good, &authority, &other).await;
        assert_eq!(refused.err(), Some(RefusalKind::Token));
        let admitted = insists(&core, &good, &authority, &applicant(&core, 1, 0)).await;
        assert_eq!(admitted.map(|it| it.slot).ok(), Some(1));
        // It has left: its number is given to nobody, and its token lets nobody in any more.
        good.leaves(1, "x").await.unwrap();
        let again = insists(&core, &good, &authority, &applicant(&core, 1, 0)).await;
        assert_eq!(again.err(), Some(RefusalKind::Token));
        assert_eq!(good.roster().await.unwrap().free_slot(), Some(2));
    };
    world
        .block_on(&here, Duration::from_secs(1000), work)
        .unwrap();
}

#[test]
fn a_cluster_is_made_once_below_a_prefix_and_the_same_again_is_the_same() {
    let world = World::new(7, WorldConfig::default());
    let (here, there) = (world.node("a"), world.node("b"));
    let (core, store) = (here.core(0), ModelStore::new(&there.core(0)));
    let work = async move {
        let register = register(&core, &store, Manners::BAD);
        let make = |name: &str| {
            let key = SecretKey::make().unwrap();
            let authority = Authority::new(&"c".repeat(32), key);
            let key = SecretKey::make().unwrap().public();
            let profile = fixture::profile(0);
            first(
                &core,
                (&authority, &key),
                ("c", name),
                (&profile, core.wall_clock()),
            )
            .unwrap()
        };
        let (cluster, node) = make("home");
        loop {
            match register.found(&cluster, &node).await {
                Ok(_) => break,
                Err(refusal) => assert_eq!(refusal.kind, RefusalKind::Arbiter, "{refusal}"),
            }
        }
        let roster = register.found(&cluster, &node).await.unwrap();
        let certificate: &Der = &roster.nodes[&0].record.certificate;
        assert_eq!(Fingerprint::of(&certificate.0), node.fingerprint);
        let (other, first) = make("other");
        let refusal = register.found(&other, &first).await.unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Member);
        assert!(refusal.cause.contains("home (c)"), "{refusal}");
    };
    world
        .block_on(&here, Duration::from_secs(1000), work)
        .unwrap();
}
