//! What is done to simulated machines from outside: links cut in one direction, pauses, clocks,
//! disks that go back.

use super::test::{LIMIT, quiet, send_all};
use super::*;
use std::cell::Cell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

#[test]
fn what_is_cut_in_one_direction_arrives_in_the_other() {
    let world = World::new(5, quiet());
    let (a, b) = (world.node("a"), world.node("b"));
    let got = [(); 2].map(|()| Rc::new(Cell::new(0)));
    let at = SocketAddr::new(b.ip(), 900);
    let listener = b.core(0).net().listen(at).unwrap();
    let (core, counts) = (b.core(0), got.clone());
    let net = a.core(0).net();
    let ends = world.block_on(
        &a,
        LIMIT,
        async move { net.connect(at, None).await.unwrap() },
    );
    let from_a = ends.unwrap();
    let accepted = world.block_on(&b, LIMIT, async move {
        let next = poll_fn(|cx| listener.poll_accept(cx)).await;
        core.net().adopt(next.unwrap()).unwrap()
    });
    let from_b = accepted.unwrap();
    let both = [(&a, &from_a, &counts[0]), (&b, &from_b, &counts[1])];
    for (node, stream, count) in both {
        let (stream, count) = (Rc::clone(stream), Rc::clone(count));
        node.core(0).spawn(Box::pin(async move {
            let mut piece = [0; 64];
            while let Ok(n) = poll_fn(|cx| stream.poll_recv(cx, &mut piece)).await {
                count.set(count.get() + n);
            }
        }));
    }
    world.cut_one_way(&a, &b);
    for (node, stream, _) in both {
        let stream = Rc::clone(stream);
        let sent = world.block_on(node, LIMIT, async move {
            send_all(&*stream, b"twelve bytes").await
        });
        sent.unwrap().unwrap();
    }
    world.run_for(Duration::from_secs(5));
    assert_eq!([got[0].get(), got[1].get()], [12, 0]);
    world.mend_link(&a, &b);
    world.run_for(Duration::from_secs(5));
    assert_eq!([got[0].get(), got[1].get()], [12, 12]);
}

/// Counts every 10 ms of its node's clock.
fn count_ticks(node: &Node) -> Rc<Cell<u64>> {
    let (core, count) = (node.core(0), Rc::new(Cell::new(0)));
    let counts = Rc::clone(&count);
    node.core(0).spawn(Box::pin(async move {
        let mut at = core.now();
        loop {
            at = at.after(Duration::from_millis(10));
            core.sleep_until(at).await;
            assert!(core.now() >= at);
            counts.set(counts.get() + 1);
        }
    }));
    count
}

#[test]
fn a_clock_that_goes_faster_wakes_earlier_and_one_that_stood_goes_on_where_it_was() {
    let world = World::new(6, quiet());
    let (exact, fast) = (world.node("exact"), world.node("fast"));
    fast.goes_faster(100_000);
    let counts = [count_ticks(&exact), count_ticks(&fast)];
    let ticks = || counts.each_ref().map(|it| it.get());
    world.run_for(Duration::from_millis(1_005));
    assert_eq!(ticks(), [100, 110]);
    // A process that is stopped has missed the time, a machine that stood still has not.
    exact.pause(false);
    fast.pause(true);
    world.run_for(Duration::from_secs(1));
    assert_eq!(ticks(), [100, 110]);
    exact.resume();
    fast.resume();
    world.run_for(Duration::from_secs(1));
    assert!(counts[0].get() > 295, "{:?}", ticks());
    assert!((219..222).contains(&counts[1].get()), "{:?}", ticks());
}

#[test]
fn a_disk_goes_back_to_what_an_image_of_it_holds() {
    let world = World::new(7, quiet());
    let node = world.node("a");
    let write = |name: &'static str, text: &'static [u8]| {
        let core = node.core(0);
        let written = world.block_on(&node, LIMIT, async move {
            let path = Path::new("/").join(name);
            crate::durable::replace_file(&*core.files(), &path, text).await
        });
        written.unwrap().unwrap();
    };
    write("old", b"first");
    let image = node.disk().image();
    write("old", b"second, longer");
    write("new", b"it was not there");
    node.crash();
    node.disk().goes_back_to(&image);
    node.restart();
    let seen = |name: &str| node.disk().seen(&Path::new("/").join(name));
    assert_eq!(seen("old").as_deref(), Some(&b"first"[..]));
    assert_eq!(seen("new"), None);
    write("new", b"now");
    assert_eq!(seen("new").as_deref(), Some(&b"now"[..]));
}
