//! What keeps a pool or an image from being opened.

use crate::bed::{HASTE, MIB, connect, image, turn, whose};
use rbd::{Cluster, ClusterSpec, ErrorKind, Image};
use std::path::PathBuf;
use std::time::Duration;
use units::{BlockSize, ByteCount};
use volume::Fences;

fn refused(spec: ClusterSpec, bed: &crate::bed::Bed) -> (ErrorKind, Duration) {
    bed.run(move |core| {
        Box::pin(async move {
            let begun = core.now();
            let error = Cluster::connect(&core, spec).await.err().unwrap();
            assert!(!error.next_step.is_empty(), "{error}");
            (error.kind, core.now().since(begun))
        })
    })
}

#[test]
fn a_pool_that_cannot_be_had_says_why_within_its_patience() {
    let Some(turn) = turn() else { return };
    let bed = turn.bed;
    let with = |change: &dyn Fn(&mut ClusterSpec)| {
        let mut spec = bed.spec();
        change(&mut spec);
        refused(spec, bed)
    };
    let missing = PathBuf::from("/nonexistent/ceph.conf");
    let (kind, _) = with(&|spec| spec.conf = Some(missing.clone()));
    assert_eq!(kind, ErrorKind::Configuration);
    let (kind, _) = with(&|spec| spec.pool = "none".to_owned());
    assert_eq!(kind, ErrorKind::NoPool);
    // Nobody listens there.
    let conf = std::env::temp_dir().join(format!("causeway-no-ceph-{}.conf", std::process::id()));
    let text = "[global]\nmon host = [v2:127.0.0.1:9/0]\nauth client required = none\n";
    std::fs::write(&conf, text).unwrap();
    let (kind, took) = with(&|spec| {
        spec.conf = Some(conf.clone());
        spec.patience = HASTE;
    });
    assert_eq!(kind, ErrorKind::Unreachable);
    assert!(took < HASTE * 4, "{took:?}");
    std::fs::remove_file(conf).unwrap();
}

#[test]
fn an_image_whose_options_break_a_promise_is_refused_with_their_name() {
    let Some(turn) = turn() else { return };
    let bed = turn.bed;
    bed.says("rbd", &["create", "cached", "--size", "8M"]);
    bed.says("rbd", &["create", "tiny", "--size", "0"]);
    bed.says(
        "rbd",
        &["config", "image", "set", "cached", "rbd_cache", "true"],
    );
    let spec = bed.spec();
    bed.run(move |core| {
        Box::pin(async move {
            let cluster = connect(&core, spec).await;
            for (name, word) in [("cached", "rbd_cache"), ("tiny", "not one block")] {
                let asked = image(name, BlockSize::B4096);
                let refused = Image::open(&core, &cluster, asked, Fences::new(1)).await;
                let refused = refused.err().unwrap();
                assert_eq!(refused.kind, ErrorKind::Unsuitable, "{refused}");
                assert!(refused.cause.contains(word), "{refused}");
            }
            let asked = image("nobody", BlockSize::B4096);
            let refused = Image::open(&core, &cluster, asked, Fences::new(1)).await;
            assert_eq!(refused.err().unwrap().kind, ErrorKind::NoImage);
            cluster
                .create("twice", ByteCount(MIB), whose("a"))
                .await
                .unwrap();
            cluster.remove("twice").await.unwrap();
        })
    });
    bed.says("rbd", &["rm", "cached", "--no-progress"]);
}
