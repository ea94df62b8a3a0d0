//! The simulated world keeps its promises, and breaks what it may break.

use super::*;
use crate::{Access, Create, Durable, File, FileDone, FileOp, Files, OpenHow, Stream};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use units::{Buf, BufMut};

pub(super) const LIMIT: Duration = Duration::from_secs(3600);

pub(super) fn quiet() -> WorldConfig {
    WorldConfig {
        faults: FaultPlan::none(),
        ..WorldConfig::default()
    }
}

fn with(faults: FaultPlan) -> WorldConfig {
    WorldConfig {
        faults,
        ..WorldConfig::default()
    }
}

pub(super) async fn send_all(stream: &dyn Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let n = poll_fn(|cx| stream.poll_send(cx, &[IoSlice::new(bytes)])).await?;
        bytes = &bytes[n..];
    }
    Ok(())
}

async fn receive_all(stream: &dyn Stream) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut piece = [0; 3000];
    loop {
        match poll_fn(|cx| stream.poll_recv(cx, &mut piece)).await? {
            0 => return Ok(out),
            n => out.extend_from_slice(&piece[..n]),
        }
    }
}

async fn echo(stream: Rc<dyn Stream>) {
    let mut piece = [0; 777];
    while let Ok(n) = poll_fn(|cx| stream.poll_recv(cx, &mut piece)).await {
        if n == 0 || send_all(&*stream, &piece[..n]).await.is_err() {
            return;
        }
    }
}

/// Sends what it receives back, on every connection, until that ends.
fn serve_echo(node: &Node) -> SocketAddr {
    let core = node.core(0);
    let listener = core.net().listen(SocketAddr::new(node.ip(), 0)).unwrap();
    let at = listener.local();
    let spawner = Rc::clone(&core);
    core.spawn(Box::pin(async move {
        while let Ok(stream) = poll_fn(|cx| listener.poll_accept(cx)).await {
            let stream = spawner.net().adopt(stream).unwrap();
            spawner.spawn(Box::pin(echo(stream)));
        }
    }));
    at
}

fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng::new(seed).fill(&mut bytes);
    bytes
}

#[test]
fn a_core_is_busy_by_what_runs_on_it_in_each_life() {
    let world = World::new(1, quiet());
    let node = world.node("a");
    let core = node.core(1);
    let inside = Rc::clone(&core);
    core.spawn(Box::pin(async move {
        for _ in 0..99 {
            inside
                .sleep_until(inside.now().after(Duration::from_millis(1)))
                .await;
        }
    }));
    world.run_for(Duration::from_secs(1));
    assert_eq!(core.busy(), quiet().work_per_poll * 100);
    assert_eq!(node.core(0).busy(), Duration::ZERO);
    node.kill();
    node.restart();
    assert_eq!(node.core(1).busy(), Duration::ZERO);
}

/// How often, of 200 times, a task that waits for two moments 20 us apart finds both at once.
fn found_together(plan: FaultPlan) -> (u32, u64) {
    let world = World::new(1, with(plan));
    let core = world.node("a").core(0);
    let inside = Rc::clone(&core);
    let together = Rc::new(Cell::new(0));
    let count = Rc::clone(&together);
    core.spawn(Box::pin(async move {
        for _ in 0..200 {
            let (from, pause) = (inside.now(), Duration::from_micros(20));
            let mut first = inside.sleep_until(from.after(pause));
            let mut second = inside.sleep_until(from.after(2 * pause));
            poll_fn(|cx| {
                let late = second.as_mut().poll(cx).is_ready();
                let early = first.as_mut().poll(cx).is_ready();
                count.set(count.get() + u32::from(early && late));
                if early {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
        }
    }));
    world.run_for(Duration::from_secs(1));
    (together.get(), world.hits().of(Fault::CoreStalled))
}

#[test]
fn a_core_that_stalls_finds_at_once_what_happened_meanwhile() {
    assert_eq!(found_together(FaultPlan::none()), (0, 0));
    let (together, stalls) = found_together(FaultPlan::none().with(Fault::CoreStalled, 300_000));
    assert!(together > 20 && stalls > 50, "{together} of {stalls}");
}

/// A run with network, files, timers, jobs and faults; answers its hash.
fn busy_run(seed: u64) -> (u64, Hits) {
    let faults = FaultPlan::any(&mut Rng::new(seed)).with_stalls_of(seed);
    let world = World::new(seed, with(faults));
    let (a, b) = (world.node("a"), world.node("b"));
    let at = serve_echo(&b);
    for n in 0..4 {
        let core = a.core(0);
        let inside = Rc::clone(&core);
        core.spawn(Box::pin(async move {
            let Ok(stream) = inside.net().connect(at, None).await else {
                return;
            };
            if send_all(&*stream, &pattern(20_000, n)).await.is_ok() {
                let mut piece = [0; 999];
                let _ = poll_fn(|cx| stream.poll_recv(cx, &mut piece)).await;
            }
        }));
        let core = b.core(1);
        let inside = Rc::clone(&core);
        core.spawn(Box::pin(async move {
            let path = format!("/f{n}");
            let Ok(file) = inside.files().open(Path::new(&path), NEW).await else {
                return;
            };
            for i in 0..20 {
                let op = FileOp::ZeroRange {
                    offset: i * 4096,
                    len: 1000,
                };
                let alongside = file.submit(op);
                let _ = write(&*file, i * 4096, &pattern(8192, i), Durable::No).await;
                let _ = alongside.await;
                let _ = file.submit(FileOp::Sync).await;
            }
        }));
    }
    let inside = a.core(1);
    a.core(0).post(
        crate::CoreId(1),
        Box::new(move |core| core.spawn(Box::pin(async {}))),
    );
    drop(inside);
    world.run_for(Duration::from_millis(30));
    b.crash();
    world.run_for(Duration::from_millis(10));
    b.restart();
    let _ = serve_echo(&b);
    world.run_for(Duration::from_secs(600));
    (world.hash(), world.hits())
}

const NEW: OpenHow = OpenHow {
    access: Access::ReadWrite,
    create: Create::IfAbsent,
    direct: false,
    lock: false,
};

async fn write(file: &dyn File, offset: u64, bytes: &[u8], durable: Durable) -> io::Result<()> {
    let data = Buf::copy_of(bytes);
    let op = FileOp::Write {
        offset,
        data,
        durable,
    };
    file.submit(op).await.map(|_| ())
}

async fn read(file: &dyn File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let into = BufMut::zeroed(len);
    match file.submit(FileOp::Read { offset, into }).await? {
        FileDone::Read(bytes) => Ok(bytes.freeze().to_vec()),
        other @ (FileDone::Nothing | FileDone::Extents(_) | FileDone::Len(_)) => {
            panic!("a read answered {other:?}")
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_does_not() {
    let mut hashes = Vec::new();
    for seed in 0..20 {
        let (hash, hits) = busy_run(seed);
        assert_eq!((hash, hits), busy_run(seed), "seed {seed}");
        hashes.push(hash);
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 20, "two seeds gave the same run");
}

#[test]
fn a_busy_run_meets_every_class_of_faults() {
    let mut hits = Hits::default();
    for seed in 100..200 {
        hits.add(&busy_run(seed).1);
    }
    let elsewhere = [
        Fault::FileLyingFlush,
        Fault::Perhaps,
        Fault::NodeKilled,
        Fault::FileReadError,
    ];
    let wanted: Vec<Fault> = (Fault::ALL.iter().copied())
        .filter(|fault| !elsewhere.contains(fault))
        .collect();
    assert_eq!(hits.missing(&wanted), [], "{hits:?}");
}

#[test]
fn a_stream_arrives_whole_and_in_order_however_it_is_cut() {
    for seed in 0..30 {
        let faults = FaultPlan::benign()
            .with(Fault::NetSplit, 700_000)
            .with(Fault::NetShortSend, 500_000)
            .with(Fault::NetShortReceive, 500_000);
        let world = World::new(seed, with(faults));
        let (a, b) = (world.node("a"), world.node("b"));
        let listener = (b.core(0).net())
            .listen(SocketAddr::new(b.ip(), 3260))
            .unwrap();
        let sent = pattern(300_000, seed);
        let expected = sent.clone();
        let (core, at) = (a.core(0), listener.local());
        a.core(0).spawn(Box::pin(async move {
            let stream = core.net().connect(at, None).await.unwrap();
            send_all(&*stream, &sent).await.unwrap();
        }));
        let core = b.core(1);
        let received = world
            .block_on(&b, LIMIT, async move {
                let stream = poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
                let stream = core.net().adopt(stream).unwrap();
                receive_all(&*stream).await.unwrap()
            })
            .unwrap();
        assert!(received == expected, "seed {seed}: the stream changed");
    }
}

#[test]
fn a_sender_waits_until_the_receiver_makes_room() {
    let world = World::new(1, quiet());
    let (a, b) = (world.node("a"), world.node("b"));
    let listener = (b.core(0).net())
        .listen(SocketAddr::new(b.ip(), 1))
        .unwrap();
    let at = listener.local();
    let sent = Rc::new(Cell::new(0));
    let (core, count) = (a.core(0), Rc::clone(&sent));
    a.core(0).spawn(Box::pin(async move {
        let stream = core.net().connect(at, None).await.unwrap();
        loop {
            send_all(&*stream, &[0; 1024]).await.unwrap();
            count.set(count.get() + 1024);
        }
    }));
    world.run_for(Duration::from_secs(1));
    let window = WorldConfig::default().window_bytes;
    assert_eq!(sent.get(), window);
    drop(listener);
}

#[test]
fn a_connect_without_a_listener_is_refused_and_to_nowhere_is_unreachable() {
    let world = World::new(2, quiet());
    let (a, b) = (world.node("a"), world.node("b"));
    let (core, to) = (a.core(0), SocketAddr::new(b.ip(), 9));
    let refused = world.block_on(&a, LIMIT, async move {
        core.net().connect(to, None).await.err()
    });
    assert_eq!(
        refused.unwrap().unwrap().kind(),
        ErrorKind::ConnectionRefused
    );
    let core = a.core(0);
    let nowhere = "10.0.0.77:9".parse().unwrap();
    let lost = world.block_on(&a, LIMIT, async move {
        core.net().connect(nowhere, None).await.err()
    });
    assert_eq!(lost.unwrap().unwrap().kind(), ErrorKind::HostUnreachable);
}

#[test]
fn an_address_that_is_added_can_be_listened_at_and_is_announced() {
    let world = World::new(3, quiet());
    let (a, b) = (world.node("a"), world.node("b"));
    let at: SocketAddr = "192.168.7.1:3260".parse().unwrap();
    let core = b.core(0);
    assert_eq!(
        core.net().listen(at).err().unwrap().kind(),
        ErrorKind::AddrNotAvailable
    );
    let watch = core.net().watch_interfaces().unwrap();
    let changed = Rc::new(Cell::new(0));
    let (count, seen) = (Rc::clone(&changed), Rc::clone(&watch));
    core.spawn(Box::pin(async move {
        loop {
            seen.changed().await;
            count.set(count.get() + 1);
        }
    }));
    world.run_for(Duration::from_secs(1));
    assert_eq!(changed.get(), 0);
    b.add_address("eth1", at.ip(), 24);
    world.run_for(Duration::from_secs(1));
    assert_eq!(changed.get(), 1);
    assert!(
        watch
            .current()
            .iter()
            .any(|it| it.address == at.ip() && it.interface == "eth1")
    );
    let listener = core.net().listen(at).unwrap();
    let core = a.core(0);
    let connected = world.block_on(&a, LIMIT, async move {
        core.net().connect(at, None).await.is_ok()
    });
    assert!(connected.unwrap());
    drop(listener);
}

#[test]
fn a_cut_link_delays_and_loses_nothing() {
    let world = World::new(4, quiet());
    let (a, b) = (world.node("a"), world.node("b"));
    let at = serve_echo(&b);
    let core = a.core(0);
    let stream = (world.block_on(&a, LIMIT, async move { core.net().connect(at, None).await }))
        .unwrap()
        .unwrap();
    world.cut_link(&a, &b);
    let answer = Rc::new(RefCell::new(Vec::new()));
    let (kept, got) = (Rc::clone(&stream), Rc::clone(&answer));
    a.core(0).spawn(Box::pin(async move {
        send_all(&*kept, b"over the gap").await.unwrap();
        let mut piece = [0; 100];
        while got.borrow().len() < 12 {
            let n = poll_fn(|cx| kept.poll_recv(cx, &mut piece)).await.unwrap();
            got.borrow_mut().extend_from_slice(&piece[..n]);
        }
    }));
    world.run_for(Duration::from_secs(5));
    assert!(answer.borrow().is_empty());
    world.mend_link(&a, &b);
    world.run_for(Duration::from_secs(5));
    assert_eq!(*answer.borrow(), b"over the gap");
}

#[test]
fn a_cut_port_holds_up_its_own_connections_and_no_others() {
    let world = World::new(4, quiet());
    let (a, b) = (world.node("a"), world.node("b"));
    let second: IpAddr = "10.9.0.1".parse().unwrap();
    a.add_address("eth1", second, 16);
    let at = serve_echo(&b);
    let core = a.core(0);
    let first = a.ip();
    let streams = world.block_on(&a, LIMIT, async move {
        let net = core.net();
        let through = [first, second].map(|from| net.connect(at, Some(from)));
        let [one, other] = through;
        (one.await.unwrap(), other.await.unwrap())
    });
    let (one, other) = streams.unwrap();
    world.cut_port(second);
    let answers = [one, other].map(|stream| {
        let answer = Rc::new(RefCell::new(Vec::new()));
        let got = Rc::clone(&answer);
        a.core(0).spawn(Box::pin(async move {
            send_all(&*stream, b"receive").await.unwrap();
            let mut piece = [0; 100];
            while got.borrow().len() < 7 {
                let n = poll_fn(|cx| stream.poll_recv(cx, &mut piece))
                    .await
                    .unwrap();
                got.borrow_mut().extend_from_slice(&piece[..n]);
            }
        }));
        answer
    });
    world.run_for(Duration::from_secs(5));
    assert_eq!(*answers[0].borrow(), b"receive");
    assert!(answers[1].borrow().is_empty());
    let core = a.core(0);
    let connecting = async move { core.net().connect(at, Some(second)).await.map(|_| ()) };
    let refused = world.block_on(&a, LIMIT, connecting).unwrap();
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::HostUnreachable);
    world.mend_port(second);
    world.run_for(Duration::from_secs(5));
    assert_eq!(*answers[1].borrow(), b"receive");
}

#[test]
fn a_crash_drops_all_tasks_and_the_peer_learns_of_it_or_not() {
    let (mut reset, mut silent) = (0, 0);
    for seed in 0..80 {
        let may_be_silent = seed % 2 == 0;
        let world = World::new(seed, quiet());
        let (a, b) = (world.node("a"), world.node("b"));
        let at = serve_echo(&b);
        let core = a.core(0);
        let stream = (world.block_on(&a, LIMIT, async move { core.net().connect(at, None).await }))
            .unwrap()
            .unwrap();
        let marker = Rc::new(());
        let held = Rc::clone(&marker);
        b.core(1).spawn(Box::pin(async move {
            std::future::pending::<()>().await;
            drop(held);
        }));
        world.run_for(Duration::from_millis(5));
        // So rare that it is the crash alone which makes a half-open connection.
        let rare = FaultPlan::none().with(Fault::NetHalfOpen, u32::from(may_be_silent));
        world.set_faults(rare);
        b.crash();
        assert_eq!(Rc::strong_count(&marker), 1, "a task outlived its node");
        let end = Rc::new(Cell::new(None));
        let seen = Rc::clone(&end);
        a.core(0).spawn(Box::pin(async move {
            let mut piece = [0; 10];
            let n = poll_fn(|cx| stream.poll_recv(cx, &mut piece)).await;
            seen.set(Some(n.unwrap_err().kind()));
        }));
        world.run_for(Duration::from_secs(30));
        match end.get() {
            Some(kind) => {
                assert_eq!(kind, ErrorKind::ConnectionReset);
                reset += 1;
            }
            None => {
                assert!(
                    may_be_silent,
                    "a plan without half-open connections made one"
                );
                silent += 1;
            }
        }
    }
    assert!(reset > 45 && silent > 5, "{reset} reset, {silent} silent");
}

#[test]
fn a_task_that_waits_for_nothing_is_found_as_a_deadlock() {
    let world = World::new(5, quiet());
    let a = world.node("a");
    let error = world.block_on(&a, LIMIT, std::future::pending::<()>());
    assert_eq!(error, Err(RunError::Deadlock));
    let core = a.core(0);
    let late = core.now().after(LIMIT * 2);
    let error = world.block_on(&a, LIMIT, core.sleep_until(late));
    assert_eq!(error, Err(RunError::OutOfTime));
}

#[test]
fn jobs_of_one_core_arrive_in_order_and_channels_of_tokio_work() {
    for seed in 0..20 {
        let world = World::new(seed, quiet());
        let a = world.node("a");
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        for n in 0..50 {
            let sender = sender.clone();
            let job = Box::new(move |_: &crate::CoreHandle| sender.send(n).unwrap());
            a.core(0).post(crate::CoreId(1), job);
        }
        drop(sender);
        let all = world.block_on(&a, LIMIT, async move {
            let mut all = Vec::new();
            while let Some(n) = receiver.recv().await {
                all.push(n);
            }
            all
        });
        assert_eq!(all.unwrap(), (0..50).collect::<Vec<_>>());
    }
}

/// Opens `/f`, with its name durable.
async fn synced_file(files: &dyn Files) -> Rc<dyn File> {
    let file = files.open(Path::new("/f"), NEW).await.unwrap();
    files.sync_dir(Path::new("/")).await.unwrap();
    file
}

#[test]
fn what_was_synced_survives_a_power_cut_and_sectors_are_never_torn() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..300 {
        let world = World::new(seed, quiet());
        let a = world.node("a");
        let core = a.core(0);
        let limit = Duration::from_secs(10);
        let run = world.block_on(&a, limit, async move {
            let file = synced_file(&*core.files()).await;
            let f = &*file;
            write(f, 0, &[1; 4096], Durable::No).await.unwrap();
            write(f, 4096, &[1; 4096], Durable::No).await.unwrap();
            f.submit(FileOp::Sync).await.unwrap();
            write(f, 0, &[2; 4096], Durable::Yes).await.unwrap();
            // An un-synced write, then a stable one over half of it.
            write(f, 8192, &[3; 1024], Durable::No).await.unwrap();
            write(f, 8192, &[4; 512], Durable::Yes).await.unwrap();
            write(f, 4096, &[5; 4096], Durable::No).await.unwrap();
        });
        run.unwrap();
        a.crash();
        a.restart();
        let core = a.core(0);
        let bytes = world
            .block_on(&a, limit, async move {
                let file = core.files().open(Path::new("/f"), NEW).await.unwrap();
                read(&*file, 0, 9216).await.unwrap()
            })
            .unwrap();
        assert!(
            bytes[..4096].iter().all(|byte| *byte == 2),
            "seed {seed}: a stable write is lost"
        );
        assert!(
            bytes[8192..8704].iter().all(|byte| *byte == 4),
            "seed {seed}: an older write came back"
        );
        for sector in bytes[4096..].chunks(512) {
            assert!(
                sector.iter().all(|byte| *byte == sector[0]),
                "seed {seed}: torn"
            );
        }
        match bytes[4096] {
            1 => lost += 1,
            5 => kept += 1,
            other => panic!("seed {seed}: {other} was never written there"),
        }
    }
    assert!(kept > 50 && lost > 50, "{kept} kept, {lost} lost");
}

#[test]
fn a_name_survives_only_with_its_directory_synced() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..60 {
        let world = World::new(seed, quiet());
        let a = world.node("a");
        let core = a.core(0);
        let run = world.block_on(&a, LIMIT, async move {
            let files = core.files();
            files.create_dir(Path::new("/d")).await.unwrap();
            files.sync_dir(Path::new("/")).await.unwrap();
            for name in ["/d/a", "/d/b"] {
                let file = files.open(Path::new(name), NEW).await.unwrap();
                write(&*file, 0, name.as_bytes(), Durable::Yes)
                    .await
                    .unwrap();
            }
            files.sync_dir(Path::new("/d")).await.unwrap();
            files
                .rename(Path::new("/d/b"), Path::new("/d/a"))
                .await
                .unwrap();
        });
        run.unwrap();
        a.crash();
        a.restart();
        let core = a.core(0);
        let found = world.block_on(&a, LIMIT, async move {
            let files = core.files();
            let names = files.list(Path::new("/d")).await.unwrap().len();
            let file = files.open(Path::new("/d/a"), NEW).await.unwrap();
            (names, read(&*file, 0, 4).await.unwrap())
        });
        match found.unwrap() {
            (1, bytes) if bytes == b"/d/b" => kept += 1,
            (2, bytes) if bytes == b"/d/a" => lost += 1,
            other => panic!("seed {seed}: {other:?} is neither before nor after"),
        }
    }
    assert!(kept > 10 && lost > 10, "{kept} kept, {lost} lost");
}

#[test]
fn a_kill_keeps_what_the_kernel_has() {
    let world = World::new(6, quiet());
    let a = world.node("a");
    let core = a.core(0);
    let run = world.block_on(&a, LIMIT, async move {
        let file = core.files().open(Path::new("/f"), NEW).await.unwrap();
        write(&*file, 0, &[7; 5000], Durable::No).await.unwrap();
    });
    run.unwrap();
    a.kill();
    assert_eq!(world.hits().of(Fault::NodeKilled), 1);
    a.restart();
    let core = a.core(0);
    let bytes = world.block_on(&a, LIMIT, async move {
        let file = core.files().open(Path::new("/f"), NEW).await.unwrap();
        read(&*file, 0, 5000).await.unwrap()
    });
    assert_eq!(bytes.unwrap(), [7; 5000]);
}

#[test]
fn a_lying_flush_loses_what_it_promised() {
    let mut lost = 0;
    for seed in 0..50 {
        let world = World::new(seed, quiet());
        let a = world.node("a");
        let core = a.core(0);
        let disk = a.disk();
        let run = world.block_on(&a, LIMIT, async move {
            let file = synced_file(&*core.files()).await;
            disk.lie_about_flush(true);
            write(&*file, 0, &[9; 512], Durable::Yes).await.unwrap();
            write(&*file, 512, &[9; 512], Durable::No).await.unwrap();
            file.submit(FileOp::Sync).await.unwrap();
        });
        run.unwrap();
        assert_eq!(world.hits().of(Fault::FileLyingFlush), 2);
        a.crash();
        let there = a.disk().durable(Path::new("/f")).unwrap();
        lost += u32::from(there != [9; 1024]);
    }
    assert!(lost > 25, "only {lost} of 50 lost anything");
}

#[test]
fn after_a_failed_sync_the_next_one_does_not_bring_the_data_back() {
    let mut lost = 0;
    for seed in 0..50 {
        let world = World::new(seed, quiet());
        let a = world.node("a");
        let core = a.core(0);
        let file = world.block_on(&a, LIMIT, async move {
            let file = synced_file(&*core.files()).await;
            write(&*file, 0, &[8; 512], Durable::No).await.unwrap();
            file
        });
        let file = file.unwrap();
        world.set_faults(FaultPlan::none().with(Fault::FileSyncError, 1_000_000));
        let again = Rc::clone(&file);
        let failed = world.block_on(&a, LIMIT, async move {
            again.submit(FileOp::Sync).await.is_err()
        });
        assert!(failed.unwrap());
        world.set_faults(FaultPlan::none());
        let fine = world.block_on(
            &a,
            LIMIT,
            async move { file.submit(FileOp::Sync).await.is_ok() },
        );
        assert!(fine.unwrap());
        a.crash();
        lost += u32::from(a.disk().durable(Path::new("/f")).unwrap() != [8; 512]);
    }
    assert!(lost > 10 && lost < 40, "{lost} of 50 lost it");
}

#[test]
fn a_full_disk_says_so_and_a_hung_one_says_nothing_until_released() {
    let world = World::new(7, quiet());
    let a = world.node("a");
    let core = a.core(0);
    let disk = a.disk();
    disk.set_capacity(8192);
    let full = world.block_on(&a, LIMIT, async move {
        let file = core.files().open(Path::new("/f"), NEW).await.unwrap();
        write(&*file, 0, &[1; 8192], Durable::No).await.unwrap();
        write(&*file, 0, &[2; 8192], Durable::No).await.unwrap();
        let full = write(&*file, 8192, &[3; 1], Durable::No).await.unwrap_err();
        (file, full.kind())
    });
    let (file, kind) = full.unwrap();
    assert_eq!(kind, ErrorKind::StorageFull);
    disk.hang();
    let done = Rc::new(Cell::new(false));
    let flag = Rc::clone(&done);
    a.core(0).spawn(Box::pin(async move {
        assert_eq!(read(&*file, 0, 1).await.unwrap(), [2]);
        flag.set(true);
    }));
    world.run_for(Duration::from_secs(7200));
    assert!(!done.get());
    assert_eq!(disk.in_flight(), 1);
    disk.release();
    world.run_for(Duration::from_secs(1));
    assert!(done.get());
}

#[test]
fn the_cores_of_one_process_open_a_locked_file_side_by_side() {
    let world = World::new(8, quiet());
    let a = world.node("a");
    let core = a.core(0);
    let how = OpenHow { lock: true, ..NEW };
    let run = world.block_on(&a, LIMIT, async move {
        let files = core.files();
        let first = files.open(Path::new("/f"), how).await.unwrap();
        let again = OpenHow {
            create: Create::No,
            ..how
        };
        let second = files.open(Path::new("/f"), again).await.unwrap();
        drop((first, second));
    });
    run.unwrap();
}

#[test]
fn direct_io_that_is_not_aligned_is_refused() {
    let world = World::new(9, quiet());
    let a = world.node("a");
    let device = BlockDevice {
        bytes: 1 << 20,
        logical_block_bytes: 4096,
        physical_block_bytes: 4096,
        discard_granularity: 4096,
    };
    a.disk().add_block_device(Path::new("/dev/sda"), device);
    let core = a.core(0);
    let how = OpenHow {
        direct: true,
        create: Create::No,
        ..NEW
    };
    let run = world.block_on(&a, LIMIT, async move {
        let file = core.files().open(Path::new("/dev/sda"), how).await.unwrap();
        assert_eq!(file.facts().alignment, 4096);
        let bad = write(&*file, 512, &[1; 4096], Durable::No)
            .await
            .unwrap_err();
        assert_eq!(bad.kind(), ErrorKind::InvalidInput);
        let bad = read(&*file, 0, 512).await.unwrap_err();
        assert_eq!(bad.kind(), ErrorKind::InvalidInput);
        write(&*file, 4096, &[1; 4096], Durable::No).await.unwrap();
        let beyond = write(&*file, 1 << 20, &[1; 4096], Durable::No)
            .await
            .unwrap_err();
        assert_eq!(beyond.kind(), ErrorKind::StorageFull);
    });
    run.unwrap();
}

#[test]
fn a_replaced_file_holds_the_old_or_the_new_whatever_moment_the_power_goes() {
    let (mut old, mut new) = (0, 0);
    for seed in 0..200 {
        let world = World::new(seed, quiet());
        let a = world.node("a");
        let core = a.core(0);
        let path = Path::new("/state");
        let first = world.block_on(&a, LIMIT, async move {
            let files = core.files();
            crate::durable::replace_file(&*files, path, b"old")
                .await
                .unwrap();
        });
        first.unwrap();
        let acknowledged = Rc::new(Cell::new(false));
        let (core, flag) = (a.core(0), Rc::clone(&acknowledged));
        a.core(0).spawn(Box::pin(async move {
            let files = core.files();
            crate::durable::replace_file(&*files, path, b"new")
                .await
                .unwrap();
            flag.set(true);
        }));
        world.run_for(Duration::from_micros(seed * 8));
        a.crash();
        match a.disk().durable(path).as_deref() {
            Some(b"new") => new += 1,
            Some(b"old") if !acknowledged.get() => old += 1,
            other => panic!("seed {seed}: {other:?}"),
        }
    }
    assert!(old > 20 && new > 20, "{old} old, {new} new");
}

#[test]
fn a_file_that_hangs_holds_up_no_other() {
    let world = World::new(9, quiet());
    let a = world.node("a");
    let (core, disk) = (a.core(0), a.disk());
    let run = world.block_on(&a, LIMIT, async move {
        let files = core.files();
        let (one, two) = (Path::new("/one"), Path::new("/two"));
        let one = files.open(one, NEW).await.unwrap();
        let two = files.open(two, NEW).await.unwrap();
        (one, two)
    });
    let (one, two) = run.unwrap();
    assert!(disk.hang_file(Path::new("/one")));
    assert!(!disk.hang_file(Path::new("/three")));
    a.core(0).spawn(Box::pin(async move {
        drop(write(&*one, 0, &[1; 512], Durable::No).await);
    }));
    let other = async move { write(&*two, 0, &[2; 512], Durable::No).await };
    world.block_on(&a, LIMIT, other).unwrap().unwrap();
    assert_eq!(disk.in_flight(), 1);
    disk.release();
    world.run_for(Duration::from_secs(1));
    assert_eq!(disk.in_flight(), 0);
}

#[test]
fn a_directory_that_hangs_holds_up_names_and_files_in_it_and_no_others() {
    let world = World::new(10, quiet());
    let a = world.node("a");
    let disk = a.disk();
    let core = a.core(0);
    let file = world.block_on(&a, LIMIT, async move {
        let files = core.files();
        for directory in ["/one", "/two"] {
            files.create_dir(Path::new(directory)).await.unwrap();
        }
        files.open(Path::new("/one/file"), NEW).await.unwrap()
    });
    let file = file.unwrap();
    disk.hang_directory(Path::new("/one"));
    let ended = Rc::new(Cell::new(0));
    let jobs: [crate::LocalFuture<()>; 3] = [
        Box::pin({
            let files = a.core(0).files();
            async move { drop(files.open(Path::new("/one/new"), NEW).await) }
        }),
        Box::pin({
            let files = a.core(0).files();
            async move { drop(files.list(Path::new("/one")).await) }
        }),
        Box::pin(async move { drop(write(&*file, 0, &[1; 512], Durable::No).await) }),
    ];
    for job in jobs {
        let ended = Rc::clone(&ended);
        a.core(0).spawn(Box::pin(async move {
            job.await;
            ended.set(ended.get() + 1);
        }));
    }
    let files = a.core(0).files();
    let other = async move { files.open(Path::new("/two/new"), NEW).await.map(drop) };
    world.block_on(&a, LIMIT, other).unwrap().unwrap();
    world.run_for(Duration::from_secs(60));
    assert_eq!(ended.get(), 0);
    disk.release();
    world.run_for(Duration::from_secs(1));
    assert_eq!(ended.get(), 3);
}
