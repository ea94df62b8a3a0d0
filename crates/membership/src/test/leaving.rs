//! Who may leave, what that needs, and what is left.

use super::bed::{Away, Bed, YEARS, hello, init, join, leave, on_a_core, status, token};
use crate::commands::run;
use crate::listener::begin;
use crate::node::Node;
use crate::records::Standing;
use crate::store::{ETCD_FILE, MEMBER_FILE, NODES_FILE};
use crate::words::{Command, Outcome};
use arbiter::{Key, role};
use env::CoreHandle;
use manifest::code::Code;
use manifest::problem::Problem;
use replica::{CopyId, Epoch, NodeSet, NodeSlot, RoleRecord};
use std::path::Path;
use std::rc::Rc;

const NAA: &str = "6001405cc00000000000000000000001";

/// Nodes 0 and 1 of a cluster.
async fn two(core: &CoreHandle, dir: &Path) -> (Bed, Rc<Node>, Rc<Node>) {
    let bed = Bed::new(core, dir, "one").await;
    let right = Away::by(0);
    let (a, b) = bed.two(&right).await;
    (bed, a, b)
}

async fn tried(node: &Rc<Node>) -> Result<Outcome, Problem> {
    let command = Command::Leave {
        node: None,
        force: false,
        dry_run: true,
    };
    let done = run(node, command).await?;
    Ok(serde_json::from_value(done).unwrap())
}

/// A LUN with a copy on both nodes, of which these have everything.
async fn mirrored(bed: &Bed, in_sync: &[u8]) {
    let record = RoleRecord {
        epoch: Epoch(3),
        step: 1,
        owner: NodeSlot(in_sync[0]),
        in_sync: NodeSet::of(in_sync.iter().copied().map(NodeSlot)),
        copies: vec![(NodeSlot(0), CopyId(7)), (NodeSlot(1), CopyId(8))],
    };
    let key = Key::new(&format!("luns/{NAA}/role")).unwrap();
    bed.puts(&key, role::encode(&record)).await;
}

#[test]
fn a_node_with_a_copy_of_a_lun_stays_unless_it_is_forced() {
    on_a_core("copies", async |core, dir| {
        let (bed, a, b) = two(&core, dir).await;
        for (in_sync, count, what) in [
            (&[0, 1][..], "of 0 of them", "a copy is on it"),
            (&[1], "of 1 of them", "the only copy that has all is on it"),
        ] {
            mirrored(&bed, in_sync).await;
            let hit = format!("LUN {NAA}: {what}");
            for (from, name) in [(&b, None), (&a, Some("san-b"))] {
                let said = leave(from, name, false).await.unwrap_err();
                assert_eq!(said.code, Code::ClusterNeeded, "{said}");
                assert!(said.detail.contains("copies of 1 LUNs"), "{said}");
                assert!(said.detail.contains(count), "{said}");
                assert_eq!(said.hits, [hit.as_str()]);
            }
            assert_eq!(tried(&b).await.unwrap().notices, [hit]);
        }
        // Nothing was changed by all that.
        assert_eq!(hello(&b, 0).await, Ok(()));
        assert_eq!(status(&a).await.nodes[1].standing, Standing::Joined);
        let done = leave(&b, None, true).await.unwrap();
        assert!(done.notices[0].contains("the only copy"), "{done:?}");
        assert_eq!(status(&a).await.nodes[1].standing, Standing::Left);
        // A LUN whose copies are on other nodes keeps nobody.
        bed.answers(&b).await;
        join(&b, &token(&a).await).await.unwrap();
        assert_eq!(leave(&b, None, false).await.unwrap().slot, 2);
    });
}

#[test]
fn the_last_node_ends_the_cluster_by_force_only() {
    on_a_core("last", async |core, dir| {
        let (bed, a, b) = two(&core, dir).await;
        leave(&a, None, false).await.unwrap();
        let said = leave(&b, None, false).await.unwrap_err();
        assert_eq!(said.code, Code::ClusterNeeded);
        assert!(said.detail.contains("the last one"), "{said}");
        assert!(said.hits[0].contains("below causeway/"), "{:?}", said.hits);
        assert_eq!(tried(&b).await.unwrap().notices, said.hits);
        // It can let others in, the first one among them.
        bed.answers(&a).await;
        let joined = join(&a, &token(&b).await).await.unwrap();
        assert_eq!(joined.slot, 2);
        leave(&a, None, false).await.unwrap();
        leave(&b, None, true).await.unwrap();
        let none = run(&b, Command::Status).await.unwrap_err();
        assert_eq!(none.code, Code::ClusterNone);
        bed.answers(&b).await;
        let name = "again".to_owned();
        let said = run(&b, Command::Init { name }).await.unwrap_err();
        assert!(said.detail.contains("all nodes have left"), "{said}");
        assert!(said.hint.contains("cluster.prefix"), "{said}");
    });
}

#[test]
fn a_dead_node_is_removed_by_another_one_and_is_nobody_when_it_comes_back() {
    on_a_core("dead", async |core, dir| {
        let (bed, a, b) = two(&core, dir).await;
        let said = leave(&a, Some("san-b"), false).await.unwrap_err();
        assert!(said.detail.contains("answers"), "{said}");
        let said = leave(&a, Some("san-c"), false).await.unwrap_err();
        assert_eq!(said.code, Code::NotFound);
        let (settings, own) = (b.settings.clone(), b.own.clone());
        drop(b);
        let done = leave(&a, Some("san-b"), false).await.unwrap();
        assert_eq!((done.slot, &*done.node), (1, "san-b"));
        assert_eq!(status(&a).await.nodes[1].standing, Standing::Left);
        // It was off all the time, and learns it.
        let b = bed.opened(settings, own, &Away::by(0)).await;
        begin(&b);
        let said = hello(&b, 0).await.unwrap_err();
        assert!(said.cause.contains("has left the cluster"), "{said}");
        let view = status(&b).await;
        let removed = |it: &String| it.contains("was removed") && it.contains("next step");
        assert!(view.problems.iter().any(removed), "{view:?}");
        let token = token(&a).await;
        assert_eq!(
            join(&b, &token).await.unwrap_err().code,
            Code::ClusterMember
        );
        leave(&b, None, false).await.unwrap();
        for file in [MEMBER_FILE, NODES_FILE, ETCD_FILE] {
            assert!(!b.store.path(file).exists(), "{file}");
        }
        bed.answers(&b).await;
        assert_eq!(join(&b, &token).await.unwrap().slot, 2);
    });
}

#[test]
fn a_node_whose_etcd_was_emptied_goes_on_and_leaves_by_force_only() {
    on_a_core("emptied", async |core, dir| {
        let (_bed, a, b) = two(&core, dir).await;
        let empty = Bed::new(&core, dir, "empty").await;
        empty.answers(&b).await;
        let view = status(&b).await;
        assert!(view.problems[0].contains("etcd has no cluster"), "{view:?}");
        assert!(view.problems[0].contains("next step"), "{view:?}");
        assert_eq!(view.nodes.len(), 2, "what was known is believed");
        assert_eq!(hello(&b, 0).await, Ok(()));
        assert_eq!(hello(&a, 1).await, Ok(()));
        let minutes = 5;
        for command in [
            Command::Token { minutes },
            Command::Leave {
                node: None,
                force: false,
                dry_run: false,
            },
            Command::Leave {
                node: Some("san-a".to_owned()),
                force: true,
                dry_run: false,
            },
        ] {
            let said = run(&b, command).await.unwrap_err();
            assert_eq!(said.code, Code::ClusterArbiter, "{said}");
        }
        assert!(b.store.path(MEMBER_FILE).exists());
        let done = leave(&b, None, true).await.unwrap();
        assert!(
            done.notices[0].contains("leave --node san-b"),
            "{:?}",
            done.notices
        );
        assert!(!b.store.path(MEMBER_FILE).exists());
        assert_eq!(status(&a).await.nodes[1].standing, Standing::Joined);
        assert!(
            !leave(&a, Some("san-b"), true)
                .await
                .unwrap()
                .node
                .is_empty()
        );
    });
}

#[test]
fn an_etcd_with_another_cluster_is_not_believed() {
    on_a_core("other", async |core, dir| {
        let (_bed, _a, b) = two(&core, dir).await;
        let other = Bed::new(&core, dir, "two").await;
        let x = other.node("san-x", 9, &Away::by(YEARS)).await;
        let theirs = init(&x).await;
        other.answers(&b).await;
        let said = run(&b, Command::Token { minutes: 5 }).await.unwrap_err();
        assert_eq!(said.code, Code::ClusterArbiter);
        assert!(said.detail.contains(&theirs.cluster_id), "{said}");
        assert!(said.hint.contains("nothing of it is believed"), "{said}");
        assert_eq!(hello(&b, 0).await, Ok(()));
    });
}
