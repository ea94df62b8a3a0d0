//! Nodes of another version, nodes that run twice, clocks of nodes that join.

use super::bed::token;
use super::bed::{
    Away, Bed, YEARS, all_answer, connected, free_port, hello, init, join, on_a_core, status,
};
use crate::client;
use crate::commands::run;
use crate::listener::begin;
use crate::node::{Node, Settings};
use crate::records::{ClusterRecord, cluster_key, encode, node_key};
use crate::refusal::RefusalKind;
use crate::words::Command;
use manifest::code::Code;
use rustls::ClientConfig;
use std::fs;
use std::rc::Rc;
use std::sync::Arc;

const DAY: i64 = 86_400;

#[test]
fn a_node_of_another_version_is_notified() {
    on_a_core("versions", async |core, dir| {
        let bed = Bed::new(&core, dir, "one").await;
        let right = Away::by(0);
        let (_a, b) = bed.two(&right).await;
        let state = b.member().unwrap();
        let roster = state.roster.borrow().clone();
        let mut later = ClientConfig::clone(&state.to_node);
        for (spoken, want) in [
            (&b"causeway-node/2"[..], Some(RefusalKind::Version)),
            (b"causeway-node/1", None),
        ] {
            later.alpn_protocols = vec![spoken.to_vec()];
            let config = Arc::new(later.clone());
            let said = client::hello(&b, &config, &roster, (1, 0)).await.err();
            assert_eq!(said.as_ref().map(|it| it.kind), want, "{said:?}");
            if let Some(said) = said {
                assert!(said.cause.contains("this version of Causeway"), "{said}");
                assert!(said.next_step.contains("the same version"), "{said}");
            }
        }
        // Whoever names no protocol at all is no node.
        later.alpn_protocols.clear();
        let said = client::hello(&b, &Arc::new(later), &roster, (1, 0)).await;
        assert!(said.is_err());
    });
}

#[test]
fn what_a_later_version_has_written_is_not_guessed_at() {
    on_a_core("later", async |core, dir| {
        let bed = Bed::new(&core, dir, "one").await;
        let right = Away::by(0);
        let (a, _b) = bed.two(&right).await;
        let known = a.member().unwrap().roster.borrow().clone();
        let minutes = 5;
        // The form of a record, and the level of the cluster.
        let node = String::from_utf8(encode(&known.nodes[&1].record)).unwrap();
        let later = node.replacen("\"format\":1", "\"format\":2", 1);
        bed.puts(&node_key(1), later.into_bytes()).await;
        let said = run(&a, Command::Token { minutes }).await.unwrap_err();
        assert!(said.detail.contains("format 2"), "{said}");
        assert!(said.hint.contains("update this node"), "{said}");
        bed.puts(&node_key(1), node.into_bytes()).await;
        assert!(run(&a, Command::Token { minutes }).await.is_ok());
        let cluster = ClusterRecord {
            level: 2,
            ..known.cluster.record.clone()
        };
        bed.puts(&cluster_key(), encode(&cluster)).await;
        let said = run(&a, Command::Token { minutes }).await.unwrap_err();
        assert_eq!(said.code, Code::ClusterJoinRefused);
        assert!(said.detail.contains("the cluster has level 2"), "{said}");
        let view = status(&a).await;
        assert!(view.problems[0].contains("level 2"), "{view:?}");
        assert_eq!((view.level, view.nodes.len()), (1, 2), "as it was known");
    });
}

/// The state of a node on another machine, at another address.
async fn copy_of(bed: &Bed, node: &Rc<Node>, right: &Arc<Away>) -> Rc<Node> {
    let state_dir = bed.dir.join("copy");
    fs::create_dir_all(&state_dir).unwrap();
    for name in ["cluster.json", "cluster-nodes.json"] {
        fs::copy(node.store.path(name), state_dir.join(name)).unwrap();
    }
    let settings = Settings {
        state_dir,
        listen: vec![free_port()],
        ..node.settings.clone()
    };
    bed.opened(settings, node.own.clone(), right).await
}

#[test]
fn of_a_node_that_runs_twice_the_one_that_began_first_is_refused() {
    on_a_core("twice", async |core, dir| {
        let bed = Bed::new(&core, dir, "one").await;
        let right = Away::by(0);
        let (a, b) = bed.two(&right).await;
        drop(connected(&core, b.settings.listen[0]).await);
        let copy = copy_of(&bed, &b, &right).await;
        assert_eq!(hello(&b, 0).await, Ok(()));
        assert_eq!(hello(&copy, 0).await, Ok(()), "as after a restart");
        let said = hello(&b, 0).await.unwrap_err();
        assert_eq!(said.kind, RefusalKind::Twice);
        assert!(said.cause.contains("node 1 (san-b) runs twice"), "{said}");
        assert_eq!(hello(&copy, 0).await, Ok(()));
        // Where the other one is asked it is said as well.
        let view = status(&a).await;
        let problem = view.nodes[1].problem.as_ref().unwrap();
        assert!(
            problem.contains("runs twice") && !view.nodes[1].answers,
            "{view:?}"
        );
        // The right one is started again, and the copy is the older one now.
        let (settings, own) = (b.settings.clone(), b.own.clone());
        drop(b);
        let b = bed.opened(settings, own, &right).await;
        assert_eq!(hello(&b, 0).await, Ok(()));
        assert_eq!(hello(&copy, 0).await.unwrap_err().kind, RefusalKind::Twice);
        drop(copy);
        begin(&b);
        for node in [&a, &b] {
            all_answer(node).await;
        }
    });
}

#[test]
fn a_node_whose_clock_is_far_off_is_not_let_in_and_its_token_stays_good() {
    on_a_core("late", async |core, dir| {
        let bed = Bed::new(&core, dir, "one").await;
        let clock = Away::by(0);
        let a = bed.node("san-a", 1, &Away::by(0)).await;
        let b = bed.node("san-b", 2, &clock).await;
        init(&a).await;
        let token = token(&a).await;
        for away in [YEARS, -YEARS, 30 * DAY, -2 * DAY] {
            clock.set(away);
            let said = join(&b, &token).await.unwrap_err();
            assert_eq!(said.code, Code::ClusterJoinRefused, "{said}");
            assert!(said.detail.contains("clock"), "{said}");
            assert!(said.hint.contains("set the clock that is wrong"), "{said}");
            for node in [&a, &b] {
                let date = units::rfc3339::rfc3339(node.now());
                let is_said = said.detail.contains(&date[..10]);
                // Of the certificate's node its beginning or its end is known.
                let is_known = is_said || (Rc::ptr_eq(node, &a) && away.abs() == YEARS);
                assert!(is_known, "{date}: {said}");
            }
            assert_eq!(status(&a).await.nodes.len(), 1);
        }
        clock.set(DAY - 60);
        assert_eq!(join(&b, &token).await.unwrap().slot, 1);
    });
}
