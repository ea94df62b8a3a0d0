//! What every volume does, and what only these do.

use crate::bed::{
    MIB, compare_and_write, connect, discard, extents, filled, flush, fresh, image, lane, range,
    read, turn, whose, write, write_op, zero,
};
use env::{CoreHandle, CoreId, call_all};
use rbd::Image;
use std::sync::Arc;
use units::{BlockCount, BlockSize, Buf, ByteCount};
use volume::{
    ExtentKind, FenceSlot, Fences, Io, IoError, Origin, Support, Volume, Zeroing, assert_shape,
};
use volume_test::model::{Plan, conforms};

#[test]
fn an_image_of_small_objects_conforms_at_both_block_sizes() {
    let Some(turn) = turn() else { return };
    let bed = turn.bed;
    for (block_size, seed) in [(BlockSize::B512, 1), (BlockSize::B4096, 2)] {
        let name = format!("conforms-{seed}");
        // Operations of the model's 64 blocks meet edges of objects all the time.
        let small = ["--size", "16M", "--object-size", "16K"];
        bed.says("rbd", &[&["create", &name][..], &small].concat());
        let spec = bed.spec();
        bed.run(move |core| {
            Box::pin(async move {
                let cluster = connect(&core, spec).await;
                let adopted = cluster.adopt(&core, &name, whose("a")).await;
                assert_eq!(adopted.unwrap().object, ByteCount(16 << 10));
                let spec = image(&name, block_size);
                let opened = Image::open(&core, &cluster, spec, Fences::new(1)).await;
                let image = opened.unwrap();
                let volume: Arc<dyn Volume> = Arc::clone(&image) as Arc<dyn Volume>;
                let shape = volume.shape();
                let tally = conforms(&core, volume, Plan::new(seed)).await;
                tally.assert_covers(&shape);
                image.close().await;
                cluster.remove(&name).await.unwrap();
            })
        });
    }
}

#[test]
fn all_cores_use_one_image_and_each_gets_its_own_answers() {
    let Some(turn) = turn() else { return };
    turn.run(async move |core, spec| {
        let cluster = connect(&core, spec).await;
        let image = fresh(&core, &cluster, "cores").await;
        let shared = Arc::clone(&image);
        let ended = call_all(&core, move |there| {
            let (there, image) = (std::rc::Rc::clone(there), Arc::clone(&shared));
            Box::pin(async move {
                let CoreId(id) = there.id();
                let lane = lane(&there, &image).await;
                let first = 1024 * u64::from(id);
                let byte = u8::try_from(id).unwrap() + 1;
                let answers: Vec<_> = (first..first + 64)
                    .map(|at| write(&lane, range(at, 1), byte))
                    .collect();
                let ended = volume::pieces::all(answers).await;
                assert!(ended.iter().all(Result::is_ok), "{ended:?}");
                let all = range(first, 64);
                assert!(read(&lane, all).await.unwrap() == filled(all, byte));
            })
        });
        assert_eq!(ended.await.len(), usize::from(core.core_count()));
        image.close().await;
        cluster.remove("cores").await.unwrap();
    });
}

#[test]
fn a_comparison_is_native_and_says_where_it_differs() {
    let Some(turn) = turn() else { return };
    turn.run(async move |core, spec| {
        let cluster = connect(&core, spec).await;
        let size = ByteCount(64 * MIB);
        cluster.create("compare", size, whose("a")).await.unwrap();
        for block_size in [BlockSize::B512, BlockSize::B4096] {
            let asked = image("compare", block_size);
            let opened = Image::open(&core, &cluster, asked, Fences::new(1)).await;
            let image = opened.unwrap();
            let caps = image.shape().caps;
            if block_size == BlockSize::B512 {
                assert_eq!(caps.compare_and_write, Support::Native);
            }
            if caps.compare_and_write == Support::Native {
                compares(&core, &image).await;
            }
            image.close().await;
        }
        cluster.remove("compare").await.unwrap();
    });
}

async fn compares(core: &CoreHandle, image: &Arc<Image>) {
    let lane = lane(core, image).await;
    let block = image.shape().block_size.bytes() as usize;
    let of = |byte| Buf::from(vec![byte; block]);
    // A block of an object that was never written, and the last one before an edge between two,
    // hold zeroes.
    let edge = 8 * MIB / block as u64;
    for at in [range(edge + 5, 1), range(edge - 1, 1)] {
        let zeroes = Buf::zeroes(block);
        let done = compare_and_write(&lane, at, zeroes, of(1)).await;
        done.unwrap();
        let mut other = vec![1; block];
        other[100] = 9;
        // In two pieces, as it may come from a network.
        let mut pieces = Buf::from(other[..256].to_vec());
        pieces.append(&Buf::from(other[256..].to_vec()));
        let differs = compare_and_write(&lane, at, pieces, of(2)).await;
        let place = ByteCount(100);
        assert_eq!(differs.unwrap_err(), IoError::Miscompare { at: place });
        assert!(read(&lane, at).await.unwrap() == of(1), "nothing was done");
        let done = compare_and_write(&lane, at, of(1), of(2)).await;
        done.unwrap();
        assert!(read(&lane, at).await.unwrap() == of(2));
    }
    discard(&lane, range(edge - 8, 16)).await.unwrap();
}

#[test]
fn discards_and_zeroes_are_exact_to_4096_bytes() {
    let Some(turn) = turn() else { return };
    turn.run(async move |core, spec| {
        let cluster = connect(&core, spec).await;
        let image = fresh(&core, &cluster, "exact").await;
        let lane = lane(&core, &image).await;
        // Over the edge between two objects.
        let all = range(1000, 100);
        write(&lane, all, 7).await.unwrap();
        discard(&lane, range(1001, 1)).await.unwrap();
        discard(&lane, range(1020, 8)).await.unwrap();
        zero(&lane, range(1040, 3), Zeroing::MayUnmap)
            .await
            .unwrap();
        zero(&lane, range(1050, 3), Zeroing::KeepAllocated)
            .await
            .unwrap();
        flush(&lane).await.unwrap();
        let mut expected = vec![7; 100 * 4096];
        for blocks in [1..2, 20..28, 40..43, 50..53] {
            expected[blocks.start * 4096..blocks.end * 4096].fill(0);
        }
        assert!(read(&lane, all).await.unwrap().to_vec() == expected);
        image.close().await;
        cluster.remove("exact").await.unwrap();
    });
}

#[test]
fn extents_and_what_is_allocated_follow_what_is_written() {
    let Some(turn) = turn() else { return };
    turn.run(async move |core, spec| {
        let cluster = connect(&core, spec).await;
        let image = fresh(&core, &cluster, "extents").await;
        let lane = lane(&core, &image).await;
        let all = image.shape().whole();
        assert_eq!(image.allocated().await.unwrap(), ByteCount(0));
        let none = extents(&lane, all).await;
        assert_eq!((none.len(), none[0].kind), (1, ExtentKind::Deallocated));
        // In the third object of 4 MiB.
        write(&lane, range(2500, 1), 1).await.unwrap();
        let reported = extents(&lane, all).await;
        let mapped: Vec<_> = reported
            .iter()
            .filter(|it| it.kind == ExtentKind::Mapped)
            .collect();
        assert_eq!(mapped.len(), 1);
        assert_eq!(mapped[0].range, range(2048, 1024), "by whole objects");
        assert_eq!(image.allocated().await.unwrap(), ByteCount(4 * MIB));
        discard(&lane, range(2048, 1024)).await.unwrap();
        assert_eq!(image.allocated().await.unwrap(), ByteCount(0));
        image.close().await;
        cluster.remove("extents").await.unwrap();
    });
}

#[test]
fn a_raised_fence_stops_a_write_before_it_is_handed_over() {
    let Some(turn) = turn() else { return };
    turn.run(async move |core, spec| {
        let cluster = connect(&core, spec).await;
        cluster
            .create("fence", ByteCount(MIB), whose("a"))
            .await
            .unwrap();
        let fences = Fences::new(2);
        let spec = image("fence", BlockSize::B4096);
        let opened = Image::open(&core, &cluster, spec, fences.clone()).await;
        let image = opened.unwrap();
        let lane = lane(&core, &image).await;
        let origin = Origin {
            fence: fences.current(FenceSlot(1)),
            ..Origin::default()
        };
        let at = range(0, 1);
        let op = || Io::new(write_op(at, filled(at, 1)), origin);
        lane.submit(op()).await.unwrap();
        fences.raise(FenceSlot(1));
        let refused = lane.submit(op()).now();
        assert!(matches!(refused, Ok(Err(IoError::Fenced))));
        // Others go on, and an answer that nobody waits for is of work that is done (C4).
        drop(write(&lane, at, 2));
        loop {
            let data = read(&lane, at).await.unwrap();
            if data == filled(at, 2) {
                break;
            }
            assert!(data == filled(at, 1));
        }
        image.close().await;
        assert_eq!(write(&lane, at, 3).await.unwrap_err(), IoError::Unavailable);
        cluster.remove("fence").await.unwrap();
    });
}

#[test]
fn what_an_image_announces_is_what_it_does() {
    let Some(turn) = turn() else { return };
    turn.run(async move |core, spec| {
        let cluster = connect(&core, spec).await;
        let image = fresh(&core, &cluster, "shape").await;
        let shape = image.shape();
        assert_shape(&shape);
        assert_eq!(shape.block_count, BlockCount(64 * MIB / 4096));
        assert_eq!(shape.limits.discard_granularity, BlockCount(1));
        assert!(!shape.caps.volatile_cache);
        // The largest of each, at once.
        let lane = lane(&core, &image).await;
        let largest = range(1, shape.limits.transfer_blocks_max.0);
        write(&lane, largest, 3).await.unwrap();
        assert!(read(&lane, largest).await.unwrap() == filled(largest, 3));
        discard(&lane, shape.whole()).await.unwrap();
        assert!(read(&lane, largest).await.unwrap().is_zero());
        image.close().await;
        cluster.remove("shape").await.unwrap();
    });
}
