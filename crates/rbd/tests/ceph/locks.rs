//! Two never write one image.

use crate::bed::{after, connect, filled, fresh, image, lane, open, range, read, turn, write};
use env::CoreHandle;
use rbd::{Cluster, ErrorKind, Image};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use units::BlockSize;
use volume::{Fences, IoError, Volume, VolumeEvent};

#[test]
fn a_second_client_is_reported_who_has_the_image_and_gets_it_when_it_is_closed() {
    let Some(turn) = turn() else { return };
    turn.run(async move |core, spec| {
        let first = connect(&core, spec.clone()).await;
        let second = connect(&core, spec).await;
        let ours = fresh(&core, &first, "lock").await;
        let asked = image("lock", BlockSize::B4096);
        for cluster in [&first, &second] {
            let asked = asked.clone();
            let refused = Image::open(&core, cluster, asked, Fences::new(1)).await;
            let refused = refused.err().unwrap();
            let ErrorKind::Locked(holder) = &refused.kind else {
                panic!("{refused}");
            };
            assert_eq!(holder.client, first.client());
            assert!(holder.address.contains("127.0.0.1"), "{holder}");
            assert!(refused.cause.contains(&first.client()), "{refused}");
        }
        let lane_of_ours = lane(&core, &ours).await;
        write(&lane_of_ours, range(0, 1), 1).await.unwrap();
        ours.close().await;
        let theirs = open(&core, &second, "lock").await;
        let lane = lane(&core, &theirs).await;
        assert!(read(&lane, range(0, 1)).await.unwrap() == filled(range(0, 1), 1));
        theirs.close().await;
        second.remove("lock").await.unwrap();
    });
}

#[test]
fn whoever_loses_its_lock_is_shut_out_with_its_whole_connection() {
    let Some(turn) = turn() else { return };
    turn.run(async move |core, spec| {
        let first = connect(&core, spec.clone()).await;
        let second = connect(&core, spec.clone()).await;
        let ours = fresh(&core, &first, "taken").await;
        let neighbour = fresh(&core, &first, "neighbour").await;
        let (old, other) = (lane(&core, &ours).await, lane(&core, &neighbour).await);
        let events = Arc::clone(&ours).events(&core);
        let at = range(0, 1);
        write(&old, at, 1).await.unwrap();
        let asked = image("taken", BlockSize::B4096);
        let refused = Image::open(&core, &second, asked, Fences::new(1)).await;
        let ErrorKind::Locked(holder) = refused.err().unwrap().kind else {
            panic!("it is locked");
        };
        second.break_lock("taken", &holder).await.unwrap();
        let theirs = open(&core, &second, "taken").await;
        let new = lane(&core, &theirs).await;
        write(&new, at, 2).await.unwrap();
        // The old owner, in the middle of its work.
        assert_eq!(write(&old, at, 3).await.unwrap_err(), IoError::Fenced);
        assert_eq!(read(&old, at).await.unwrap_err(), IoError::Fenced);
        assert!(matches!(events.next().await, VolumeEvent::Lost(_)));
        assert!(read(&new, at).await.unwrap() == filled(at, 2));
        // With all else that it had, and for good.
        assert!(first.is_shut_out());
        assert_eq!(write(&other, at, 3).await.unwrap_err(), IoError::Fenced);
        let volume: Arc<dyn Volume> = Arc::clone(&neighbour) as Arc<dyn Volume>;
        assert!(volume.open(&core).await.is_err());
        let asked = image("neighbour", BlockSize::B4096);
        let refused = Image::open(&core, &first, asked, Fences::new(1)).await;
        assert_eq!(refused.err().unwrap().kind, ErrorKind::Blocklisted);
        // A new connection serves again, when the old one has let go.
        ours.close().await;
        neighbour.close().await;
        theirs.close().await;
        let third = connect(&core, spec).await;
        let again = open(&core, &third, "taken").await;
        let lane = lane(&core, &again).await;
        write(&lane, at, 4).await.unwrap();
        again.close().await;
    });
}

/// The image `dead`, or why not, after a moment.
async fn opened(core: &CoreHandle, cluster: &Arc<Cluster>) -> Result<Arc<Image>, ErrorKind> {
    let asked = image("dead", BlockSize::B4096);
    let opened = Image::open(core, cluster, asked, Fences::new(1)).await;
    if opened.is_err() {
        after(core, Duration::from_millis(200)).await;
    }
    opened.map_err(|error| error.kind)
}

#[test]
fn a_client_that_died_leaves_its_lock_to_the_next_and_one_that_lives_does_not() {
    let Some(turn) = turn() else { return };
    let bed = turn.bed;
    bed.says("rbd", &["create", "dead", "--size", "64M"]);
    let load = [
        "bench",
        "dead",
        "--io-type",
        "write",
        "--io-total",
        "100G",
        "--io-pattern",
        "rand",
    ];
    let mut other = bed.tool("rbd");
    let other = other.args(load).stdout(Stdio::null()).stderr(Stdio::null());
    let mut other = other.spawn().unwrap();
    let cluster = turn.run(async move |core, spec| connect(&core, spec).await);
    let open = || {
        let cluster = Arc::clone(&cluster);
        turn.run(async move |core, _| opened(&core, &cluster).await)
    };
    // It takes the lock with its first write, the automatic way, and would give it away if asked.
    let owned = || bed.says("rbd", &["lock", "ls", "dead"]).contains("client.");
    while !owned() {
        assert!(other.try_wait().unwrap().is_none());
    }
    assert!(matches!(open(), Err(ErrorKind::Locked(_))));
    other.kill().unwrap();
    other.wait().unwrap();
    let image = loop {
        match open() {
            Ok(image) => break image,
            Err(kind) => assert!(matches!(kind, ErrorKind::Locked(_)), "{kind:?}"),
        }
    };
    turn.run(async move |core, _| {
        let lane = lane(&core, &image).await;
        write(&lane, range(0, 1), 1).await.unwrap();
        image.close().await;
        cluster.remove("dead").await.unwrap();
    });
}
