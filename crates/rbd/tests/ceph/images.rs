//! Images as a whole: making, adopting, resizing, removing.

use crate::bed::{MIB, connect, filled, fresh, lane, open, range, read, turn, whose, write};
use rbd::{ErrorKind, Fullness, Severity};
use std::rc::Rc;
use std::sync::Arc;
use units::{BlockCount, ByteCount};
use volume::{Epoch, IoError, Volume, VolumeEvent};

#[test]
fn an_image_is_made_found_named_and_removed() {
    let Some(turn) = turn() else { return };
    turn.run(async move |core, spec| {
        let cluster = connect(&core, spec).await;
        let size = ByteCount(8 * MIB);
        cluster.create("life", size, whose("a")).await.unwrap();
        let again = cluster.create("life", size, whose("b")).await.unwrap_err();
        assert_eq!(again.kind, ErrorKind::Exists);
        let images = cluster.images(&core).await.unwrap();
        assert!(images.contains(&"life".to_owned()), "{images:?}");
        let found = cluster.describe(&core, "life").await.unwrap();
        assert_eq!((found.size, found.identity), (size, whose("a")));
        assert!(found.has_lock);
        let image = open(&core, &cluster, "life").await;
        assert_eq!((image.id(), image.identity()), (&*found.id, &whose("a")));
        image.set_identity(whose("c")).await.unwrap();
        let named = cluster.describe(&core, "life").await.unwrap();
        assert_eq!(named.identity, whose("c"));
        let open = cluster.remove("life").await.unwrap_err();
        assert_eq!(open.kind, ErrorKind::InUse);
        image.close().await;
        cluster.remove("life").await.unwrap();
        let gone = cluster.describe(&core, "life").await.unwrap_err();
        assert_eq!(gone.kind, ErrorKind::NoImage);
        assert!(gone.cause.contains("image life of pool rbd"), "{gone}");
    });
}

#[test]
fn an_image_that_was_there_is_adopted_unless_it_is_anothers_or_two_could_write_it() {
    let Some(turn) = turn() else { return };
    let bed = turn.bed;
    bed.says("rbd", &["create", "theirs", "--size", "8M"]);
    let shared = ["create", "shared", "--size", "8M", "--image-shared"];
    bed.says("rbd", &shared);
    let spec = bed.spec();
    bed.run(move |core| {
        Box::pin(async move {
            let cluster = connect(&core, spec).await;
            for _ in 0..2 {
                let adopted = cluster.adopt(&core, "theirs", whose("a")).await.unwrap();
                assert_eq!(
                    (adopted.size, adopted.identity),
                    (ByteCount(8 * MIB), whose("a"))
                );
            }
            let anothers = cluster
                .adopt(&core, "theirs", whose("b"))
                .await
                .unwrap_err();
            assert_eq!(anothers.kind, ErrorKind::Taken);
            let shared = cluster
                .adopt(&core, "shared", whose("a"))
                .await
                .unwrap_err();
            assert_eq!(shared.kind, ErrorKind::Unsuitable);
            assert!(shared.next_step.contains("exclusive-lock"), "{shared}");
            for name in ["theirs", "shared"] {
                cluster.remove(name).await.unwrap();
            }
        })
    });
}

#[test]
fn a_resize_is_seen_at_once_whoever_makes_it() {
    let Some(turn) = turn() else { return };
    let bed = turn.bed;
    let spec = bed.spec();
    let (cluster, image) = bed.run(move |core| {
        Box::pin(async move {
            let cluster = connect(&core, spec).await;
            let image = fresh(&core, &cluster, "size").await;
            (cluster, image)
        })
    });
    // Somebody else's resize is made by us, who have the lock.
    let by_others = |size: &'static str, blocks: u64| {
        let image = Arc::clone(&image);
        let resize = bed
            .tool("rbd")
            .args(["resize", "size", "--allow-shrink", "--size", size])
            .spawn();
        let mut resize = resize.unwrap();
        bed.run(move |core| {
            Box::pin(async move {
                let events = Arc::clone(&image).events(&core);
                while image.shape().block_count != BlockCount(blocks) {
                    assert!(matches!(events.next().await, VolumeEvent::Reshaped(_)));
                }
            })
        });
        assert!(resize.wait().unwrap().success());
    };
    by_others("96M", 96 * MIB / 4096);
    let ours = Arc::clone(&image);
    bed.run(move |core| {
        Box::pin(async move {
            let old = lane(&core, &ours).await;
            let beyond = range(100 * MIB / 4096, 1);
            let events = Arc::clone(&ours).events(&core);
            assert_eq!(ours.grow(ByteCount(128 * MIB)).await.unwrap(), Epoch(2));
            assert_eq!(events.next().await, VolumeEvent::Reshaped(Epoch(2)));
            let new = lane(&core, &ours).await;
            write(&new, beyond, 1).await.unwrap();
            assert!(read(&new, beyond).await.unwrap() == filled(beyond, 1));
            for wrong in [ByteCount(64 * MIB), ByteCount(0)] {
                assert_eq!(ours.grow(wrong).await.unwrap_err().kind, ErrorKind::Invalid);
            }
            assert_eq!(
                ours.shrink(ByteCount(0)).await.unwrap_err().kind,
                ErrorKind::Invalid
            );
            ours.shrink(ByteCount(64 * MIB)).await.unwrap();
            for lane in [&old, &new] {
                assert_eq!(
                    write(lane, beyond, 2).await.unwrap_err(),
                    IoError::Unavailable
                );
                let inside = range(0, 1);
                write(lane, inside, 3).await.unwrap();
            }
            drop(Rc::clone(&old));
        })
    });
    by_others("32M", 32 * MIB / 4096);
    bed.run(move |_| {
        Box::pin(async move {
            image.close().await;
            cluster.remove("size").await.unwrap();
        })
    });
}

#[test]
fn a_healthy_cluster_says_so_and_how_much_room_its_pool_has() {
    let Some(turn) = turn() else { return };
    turn.run(async move |core, spec| {
        let cluster = connect(&core, spec).await;
        assert_eq!(cluster.fsid().len(), 36);
        let health = cluster.health(&core).await.unwrap();
        assert_eq!(health.fullness, Fullness::Room, "{health:?}");
        assert!(health.severity < Severity::Error, "{health:?}");
        assert!(health.available > ByteCount(1 << 30), "{health:?}");
    });
}
