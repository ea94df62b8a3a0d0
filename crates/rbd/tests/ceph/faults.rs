//! A cluster that hangs, dies, or is full.

use crate::bed::{
    HASTE, after, connect, discard, filled, fresh, image, lane, range, read, turn, write,
};
use rbd::{ClusterSpec, ErrorKind, Fullness, Image};
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use units::BlockSize;
use volume::{Fences, IoError, IoFuture};

/// The answer is not there yet.
async fn waits(answer: &mut IoFuture) -> bool {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *answer).poll(cx).is_pending())).await
}

#[test]
fn what_a_hung_or_dead_osd_does_not_answer_waits_and_is_done_when_it_is_back() {
    let Some(turn) = turn() else { return };
    let bed = turn.bed;
    for (stop, go_on) in [("pause", "resume"), ("kill", "up")] {
        turn.run(async move |core, spec| {
            let cluster = connect(&core, spec.clone()).await;
            let patience = HASTE;
            let hasty = connect(&core, ClusterSpec { patience, ..spec }).await;
            let ours = fresh(&core, &cluster, "hung").await;
            let lane = lane(&core, &ours).await;
            let at = range(0, 1);
            write(&lane, at, 1).await.unwrap();
            bed.daemon(stop, "osd.0");
            let mut written = write(&lane, at, 2);
            let mut elsewhere = write(&lane, range(5000, 1), 2);
            // Opening does not wait for ever.
            let begun = core.now();
            let asked = image("hung", BlockSize::B4096);
            let opened = Image::open(&core, &hasty, asked, Fences::new(1)).await;
            assert_eq!(opened.err().unwrap().kind, ErrorKind::Unreachable);
            assert!(core.now().since(begun) < HASTE * 2);
            assert!(waits(&mut written).await && waits(&mut elsewhere).await);
            let caller = bed.daemon_later(go_on, "osd.0");
            let begun = core.now();
            written.await.unwrap();
            elsewhere.await.unwrap();
            let took = core.now().since(begun);
            println!("{stop}: done {took:?} after {go_on}");
            // A new OSD has to read its store first.
            assert!(took < Duration::from_secs(60), "{took:?}");
            caller.join();
            assert!(read(&lane, at).await.unwrap() == filled(at, 2));
            ours.close().await;
            // The opening that was given up has had its image closed, too.
            while let Err(error) = cluster.remove("hung").await {
                assert_eq!(error.kind, ErrorKind::InUse, "{error}");
                after(&core, Duration::from_millis(100)).await;
            }
        });
    }
}

#[test]
fn a_full_cluster_refuses_what_needs_room_and_takes_it_again_when_there_is_some() {
    let Some(turn) = turn() else { return };
    let bed = turn.bed;
    let spec = bed.spec();
    let (cluster, ours) = bed.run(move |core| {
        Box::pin(async move {
            let cluster = connect(&core, spec).await;
            let ours = fresh(&core, &cluster, "full").await;
            let lane = lane(&core, &ours).await;
            write(&lane, range(0, 8), 1).await.unwrap();
            (cluster, ours)
        })
    });
    let ratios = |nearfull: &str, backfillfull: &str, full: &str| {
        bed.says("ceph", &["osd", "set-nearfull-ratio", nearfull]);
        bed.says("ceph", &["osd", "set-backfillfull-ratio", backfillfull]);
        bed.says("ceph", &["osd", "set-full-ratio", full]);
    };
    ratios("0.001", "0.002", "0.003");
    let (reported, image) = (Arc::clone(&cluster), Arc::clone(&ours));
    bed.run(move |core| {
        Box::pin(async move {
            let lane = lane(&core, &image).await;
            let mut at = 4000;
            // The OSD reports to the monitor within seconds that it is full.
            let error = loop {
                if let Err(error) = write(&lane, range(at, 8), 2).await {
                    break error;
                }
                at += 8;
                after(&core, Duration::from_millis(100)).await;
            };
            assert_eq!(error, IoError::SpaceExhausted);
            let health = reported.health(&core).await.unwrap();
            assert_eq!(health.fullness, Fullness::Full, "{health:?}");
            // Nothing is lost, and room can be made.
            assert!(read(&lane, range(0, 8)).await.unwrap() == filled(range(0, 8), 1));
            discard(&lane, range(4000, 1024)).await.unwrap();
            assert!(read(&lane, range(4000, 8)).await.unwrap().is_zero());
        })
    });
    ratios("0.85", "0.9", "0.95");
    bed.run(move |core| {
        Box::pin(async move {
            let lane = lane(&core, &ours).await;
            while let Err(error) = write(&lane, range(9000, 8), 3).await {
                assert_eq!(error, IoError::SpaceExhausted);
                after(&core, Duration::from_millis(100)).await;
            }
            ours.close().await;
            cluster.remove("full").await.unwrap();
        })
    });
}
