//! Certificates: renewed in time, by a clock that others have, and what is believed meanwhile.

use super::bed::{Away, Bed, YEARS, hello, init, join, leave, on_a_core, status, token};
use crate::Fingerprint;
use crate::listener::begin;
use crate::node::{MemberState, Node};
use crate::records::{Der, NodeRecord};
use crate::refusal::RefusalKind;
use crate::store::{MEMBER_FILE, Member, NODES_FILE};
use crate::upkeep::{renew, round};
use std::rc::Rc;
use std::sync::Arc;

const DAY: i64 = 86_400;

async fn kept(node: &Rc<Node>) {
    let state = node.member().unwrap();
    round(node, &state).await;
}

fn certificate(node: &Rc<Node>) -> Fingerprint {
    Fingerprint::of(&node.member().unwrap().member.certificate.0)
}

/// What the arbiter has of node 1.
async fn record(a: &Rc<Node>) -> NodeRecord {
    a.follow(&a.member().unwrap()).await.unwrap();
    let state = a.member().unwrap();
    let roster = state.roster.borrow();
    roster.nodes[&1].record.clone()
}

#[test]
fn a_certificate_is_renewed_before_its_end_and_the_one_before_is_soon_believed_no_more() {
    on_a_core("renewed", async |core, dir| {
        let bed = Bed::new(&core, dir, "one").await;
        let clock = Away::by(0);
        let (a, b) = bed.two(&clock).await;
        let first = certificate(&b);
        let before = b.member().unwrap();
        clock.set(549 * DAY);
        kept(&b).await;
        assert_eq!(certificate(&b), first, "there is time");
        clock.set(551 * DAY);
        kept(&b).await;
        let second = certificate(&b);
        assert_ne!(second, first);
        // Whoever has not asked the arbiter since believes both, as soon as it has.
        assert_eq!(hello(&b, 0).await, Ok(()));
        let known = record(&a).await;
        assert_eq!(
            (known.fingerprint, known.fingerprint_before),
            (second, Some(first))
        );
        assert_eq!(hello(&a, 1).await, Ok(()));
        let after = b.member().unwrap();
        *b.state.borrow_mut() = Some(Rc::clone(&before));
        assert_eq!(hello(&b, 0).await, Ok(()), "for a while");
        *b.state.borrow_mut() = Some(after);
        kept(&b).await;
        assert_eq!(record(&a).await.fingerprint_before, Some(first));
        clock.set(551 * DAY + 3601);
        kept(&b).await;
        assert_eq!(
            (certificate(&b), record(&a).await.fingerprint_before),
            (second, None)
        );
        // An old certificate, though it is good for half a year.
        let after = b.member().unwrap();
        *b.state.borrow_mut() = Some(before);
        let said = hello(&b, 0).await.unwrap_err();
        assert_eq!(said.kind, RefusalKind::Stranger);
        assert!(said.cause.contains("an old copy of that node"), "{said}");
        *b.state.borrow_mut() = Some(after);
        // Beyond the end of the first ones all is well.
        kept(&a).await;
        kept(&b).await;
        clock.set(740 * DAY);
        assert_eq!(hello(&b, 0).await, Ok(()));
        assert_eq!(hello(&a, 1).await, Ok(()));
        let again = bed.opened(b.settings.clone(), b.own.clone(), &clock).await;
        assert_eq!(certificate(&again), second, "it is kept");
    });
}

#[test]
fn a_renewal_that_was_cut_off_goes_on_with_what_the_arbiter_has() {
    on_a_core("cut-off", async |core, dir| {
        let bed = Bed::new(&core, dir, "one").await;
        let clock = Away::by(0);
        let (a, b) = bed.two(&clock).await;
        let file = b.store.path(MEMBER_FILE);
        let old = std::fs::read(&file).unwrap();
        clock.set(600 * DAY);
        kept(&b).await;
        let known = record(&a).await;
        // Its process ended between the record and the file.
        std::fs::write(&file, old).unwrap();
        let (settings, own) = (b.settings.clone(), b.own.clone());
        drop(b);
        let b = bed.opened(settings, own, &clock).await;
        assert_ne!(certificate(&b), known.fingerprint);
        begin(&b);
        kept(&b).await;
        assert_eq!(certificate(&b), known.fingerprint);
        assert_eq!(record(&a).await, known, "no other one was signed");
        assert_eq!(hello(&b, 0).await, Ok(()));
    });
}

#[test]
fn a_node_whose_clock_is_far_off_is_named_and_signs_nothing_by_it() {
    on_a_core("far-off", async |core, dir| {
        let bed = Bed::new(&core, dir, "one").await;
        let (right, wrong) = (Away::by(0), Away::by(0));
        let a = bed.node("san-a", 1, &right).await;
        let b = bed.node("san-b", 2, &wrong).await;
        init(&a).await;
        join(&b, &token(&a).await).await.unwrap();
        let first = certificate(&b);
        // Within the time of the certificates, and years beyond it.
        for away in [600 * DAY, YEARS, -YEARS] {
            wrong.set(away);
            kept(&b).await;
            assert_eq!(certificate(&b), first, "{away}");
            let view = status(&b).await;
            let said = |it: &String| it.contains("cannot be renewed") && it.contains("next step");
            assert!(view.problems.iter().any(said), "{view:?}");
            let of_a = view.nodes[0].problem.as_ref().unwrap();
            assert!(of_a.contains("clock"), "{of_a}");
        }
        wrong.set(600 * DAY);
        let view = status(&a).await;
        let said = view.nodes[1].problem.as_ref().unwrap();
        assert!(view.nodes[1].answers, "{view:?}");
        assert!(said.contains("the two nodes are 600 days apart"), "{said}");
        wrong.set(0);
        kept(&b).await;
        let view = status(&b).await;
        assert!(view.problems.is_empty(), "{view:?}");
        assert!(view.nodes[0].problem.is_none(), "{view:?}");
    });
}

#[test]
fn a_certificate_that_was_made_by_a_wrong_clock_is_made_anew() {
    on_a_core("future", async |core, dir| {
        let bed = Bed::new(&core, dir, "one").await;
        let clock = Away::by(YEARS);
        let a = bed.node("san-a", 1, &clock).await;
        init(&a).await;
        let first = certificate(&a);
        clock.set(0);
        kept(&a).await;
        assert_ne!(certificate(&a), first);
        let b = bed.node("san-b", 2, &clock).await;
        join(&b, &token(&a).await).await.unwrap();
        assert_eq!(hello(&b, 0).await, Ok(()));
    });
}

#[test]
fn a_round_of_upkeep_that_ends_after_the_node_has_left_brings_nothing_back() {
    on_a_core("zombie", async |core, dir| {
        let bed = Bed::new(&core, dir, "one").await;
        let clock = Away::by(0);
        let (_a, b) = bed.two(&clock).await;
        let state = b.member().unwrap();
        clock.set(600 * DAY);
        leave(&b, None, false).await.unwrap();
        // Each part of a round that had begun before.
        bed.answers(&b).await;
        renew(&b, &state).await.unwrap();
        round(&b, &state).await;
        assert!(b.state().is_none());
        for file in [MEMBER_FILE, NODES_FILE] {
            assert!(!b.store.path(file).exists(), "{file}");
        }
    });
}

#[test]
fn what_was_signed_for_a_node_that_left_meanwhile_is_nothing() {
    on_a_core("left", async |core, dir| {
        let bed = Bed::new(&core, dir, "one").await;
        let clock = Away::by(0);
        let (a, b) = bed.two(&clock).await;
        leave(&a, Some("san-b"), true).await.unwrap();
        clock.set(600 * DAY);
        let state = b.member().unwrap();
        let now = b.now();
        let signed = state
            .authority
            .signs(1, &b.own.id, &state.key.public(), now);
        let member = Member {
            certificate: Der(signed.unwrap()),
            ..state.member.clone()
        };
        let roster = state.roster.borrow().clone();
        let clock = Arc::clone(&b.clock);
        let own = MemberState::new(member, roster, &clock).unwrap();
        *b.state.borrow_mut() = Some(Rc::new(own));
        let said = hello(&b, 0).await.unwrap_err();
        assert_eq!(said.kind, RefusalKind::Stranger, "{said}");
    });
}
