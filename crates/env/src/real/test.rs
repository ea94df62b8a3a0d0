//! The real side against what the traits promise, on both disk engines.

use super::handle::Handle;
use super::ring::Ring;
use super::transfer::{Memory, Transfer};
use super::*;
use crate::file::*;
use crate::{CoreHandle, CoreId, LocalFuture};
use rustix::time::ClockId;
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::{Arc, Mutex, mpsc};
use std::task::Context;
use std::time::Duration;
use units::{Buf, BufMut};

/// A directory that goes with the test. On the disk, because /tmp may be memory.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Self {
        let base =
            option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let path = base.join(format!("causeway-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn start(cores: usize, driver: Driver, files: FilesMode) -> Runtime {
    Runtime::start(&RuntimeConfig {
        cores: Cores::List((0..cores).collect()),
        driver,
        pool_limit_bytes: 64 << 20,
        files,
        ..RuntimeConfig::default()
    })
    .unwrap()
}

pub(super) fn how(create: Create, direct: bool, lock: bool) -> OpenHow {
    OpenHow {
        access: Access::ReadWrite,
        create,
        direct,
        lock,
    }
}

async fn open(core: &CoreHandle, path: &Path, create: Create, direct: bool) -> Rc<dyn File> {
    let files = core.files();
    files.open(path, how(create, direct, false)).await.unwrap()
}

pub(super) async fn write(file: &Rc<dyn File>, offset: u64, bytes: &[u8], durable: Durable) {
    let data = Buf::copy_of(bytes);
    let op = FileOp::Write {
        offset,
        data,
        durable,
    };
    file.submit(op).await.unwrap();
}

pub(super) async fn read(file: &Rc<dyn File>, offset: u64, len: usize) -> Vec<u8> {
    let into = BufMut::zeroed(len);
    let done = file.submit(FileOp::Read { offset, into }).await.unwrap();
    let FileDone::Read(into) = done else {
        panic!("{done:?}")
    };
    into.freeze().to_vec()
}

fn draw(core: &CoreHandle, below: u64) -> u64 {
    let mut bytes = [0; 8];
    core.fill_random(&mut bytes);
    u64::from_le_bytes(bytes) % below
}

/// Payload in several segments, some of them not aligned.
fn pieces(core: &CoreHandle, len: usize) -> Buf {
    let mut out = Buf::empty();
    while out.len() < len {
        let left = len - out.len();
        let n = left.min(1 + usize::try_from(draw(core, 9000)).unwrap());
        let byte = u8::try_from(draw(core, 256)).unwrap();
        out.append(&Buf::copy_of(&vec![byte; n]));
    }
    out
}

async fn compare_with_memory(core: CoreHandle, path: PathBuf, direct: bool) {
    const LEN: u64 = 64 << 10;
    let file = open(&core, &path, Create::New, direct).await;
    let unit = if file.facts().direct { 512 } else { 1 };
    let mut model: Vec<u8> = Vec::new();
    for _ in 0..300 {
        let offset = draw(&core, LEN / unit) * unit;
        let len = (1 + draw(&core, 40_000 / unit)) * unit;
        let (at, n) = (
            usize::try_from(offset).unwrap(),
            usize::try_from(len).unwrap(),
        );
        let grown = model.len().max(at + n);
        match draw(&core, 8) {
            0..3 => {
                let data = pieces(&core, n);
                model.resize(grown, 0);
                model[at..at + n].copy_from_slice(&data.to_vec());
                let durable = [Durable::Yes, Durable::No][usize::from(draw(&core, 2) == 0)];
                let op = FileOp::Write {
                    offset,
                    data,
                    durable,
                };
                file.submit(op).await.unwrap();
            }
            3..6 => {
                model.resize(grown, 0);
                let seen = read(&file, offset, n).await;
                assert!(seen == model[at..at + n], "{n} bytes at {at}");
            }
            6 => {
                let end = model.len().min(at + n);
                model[at.min(end)..end].fill(0);
                let zero = [
                    FileOp::PunchHole { offset, len },
                    FileOp::ZeroRange { offset, len },
                ];
                let pick = usize::from(draw(&core, 2) == 0);
                let op = zero.into_iter().nth(pick).unwrap();
                file.submit(op).await.unwrap();
            }
            _ => {
                model.resize(at, 0);
                file.submit(FileOp::SetLen { len: offset }).await.unwrap();
                file.submit(FileOp::Sync).await.unwrap();
            }
        }
    }
    let seen = read(&file, 0, 128 << 10).await;
    model.resize(128 << 10, 0);
    assert!(seen == model);
}

#[test]
fn files_hold_what_was_written_on_both_engines_with_and_without_the_page_cache() {
    let scratch = Scratch::new("compare");
    for driver in [Driver::Auto, Driver::Poll] {
        for mode in [FilesMode::Ordinary, FilesMode::ForgetUnsynced] {
            let runtime = start(1, driver, mode);
            for direct in [true, false] {
                let path = scratch.path(&format!("{driver:?}-{mode:?}-{direct}"));
                runtime.run(CoreId(0), move |core| {
                    Box::pin(compare_with_memory(core, path, direct))
                });
            }
            assert!(runtime.notices().len() <= usize::from(driver == Driver::Auto));
            if mode == FilesMode::Ordinary {
                assert!(
                    runtime.bounce_copies() > 0,
                    "unaligned memory was never used"
                );
            }
        }
    }
}

#[test]
fn a_file_of_a_thousand_pieces_is_written_in_one_go_and_read_back() {
    let scratch = Scratch::new("pieces");
    for driver in [Driver::Auto, Driver::Poll] {
        let path = scratch.path(&format!("{driver:?}"));
        start(1, driver, FilesMode::Ordinary).run(CoreId(0), move |core| {
            Box::pin(async move {
                let file = open(&core, &path, Create::New, true).await;
                let mut data = Buf::empty();
                for n in 0..1500_u32 {
                    let byte = u8::try_from(n % 251).unwrap();
                    data.append(&Buf::copy_of(&[byte; 4096]));
                }
                let expected = data.to_vec();
                let op = FileOp::Write {
                    offset: 4096,
                    data,
                    durable: Durable::No,
                };
                file.submit(op).await.unwrap();
                assert!(read(&file, 4096, expected.len()).await == expected);
            })
        });
    }
}

#[test]
fn many_operations_in_flight_all_come_back() {
    let scratch = Scratch::new("many");
    for driver in [Driver::Auto, Driver::Poll] {
        let path = scratch.path(&format!("{driver:?}"));
        let runtime = start(1, driver, FilesMode::Ordinary);
        runtime.run(CoreId(0), move |core| Box::pin(many_in_flight(core, path)));
    }
}

async fn many_in_flight(core: CoreHandle, path: PathBuf) {
    let file = open(&core, &path, Create::New, false).await;
    let write = |n: u64| {
        file.submit(FileOp::Write {
            offset: n * 8,
            data: Buf::copy_of(&n.to_le_bytes()),
            durable: Durable::No,
        })
    };
    let writes: Vec<_> = (0..6000).map(write).collect();
    for (n, write) in writes.into_iter().enumerate() {
        // Every third answer is dropped: the write is done all the same.
        if n % 3 > 0 {
            write.await.unwrap();
        }
    }
    // A write whose answer was dropped may end later: ask until it is there.
    let expected: Vec<u8> = (0..6000_u64).flat_map(u64::to_le_bytes).collect();
    while read(&file, 0, 48_000).await != expected {}
}

#[test]
fn allocation_is_reported_by_extents_and_taken_by_punching() {
    let scratch = Scratch::new("extents");
    let path = scratch.path("file");
    start(1, Driver::Auto, FilesMode::Ordinary).run(CoreId(0), move |core| {
        Box::pin(async move {
            let file = open(&core, &path, Create::New, false).await;
            file.submit(FileOp::SetLen { len: 1 << 20 }).await.unwrap();
            write(&file, 64 << 10, &[1; 64 << 10], Durable::Yes).await;
            let op = FileOp::Extents {
                offset: 0,
                len: 1 << 20,
            };
            let FileDone::Extents(found) = file.submit(op).await.unwrap() else {
                panic!("no extents")
            };
            let kinds: Vec<_> = found
                .iter()
                .map(|e| (e.offset, e.len, e.allocated))
                .collect();
            assert_eq!(
                kinds,
                [
                    (0, 64 << 10, false),
                    (64 << 10, 64 << 10, true),
                    (128 << 10, 896 << 10, false)
                ]
            );
            let punch = FileOp::PunchHole {
                offset: 0,
                len: 1 << 20,
            };
            file.submit(punch).await.unwrap();
            assert_eq!(
                std::os::unix::fs::MetadataExt::blocks(&path.metadata().unwrap()),
                0
            );
            let FileDone::Len(len) = file.submit(FileOp::Len).await.unwrap() else {
                panic!("no length")
            };
            assert_eq!(len, 1 << 20);
        })
    });
}

#[test]
fn unaligned_direct_writes_are_refused_and_not_torn() {
    let scratch = Scratch::new("unaligned");
    let path = scratch.path("file");
    start(1, Driver::Auto, FilesMode::Ordinary).run(CoreId(0), move |core| {
        Box::pin(async move {
            let file = open(&core, &path, Create::New, true).await;
            if !file.facts().direct {
                println!("skipped: no direct I/O here");
                return;
            }
            let op = FileOp::Write {
                offset: 1,
                data: Buf::copy_of(&[1; 512]),
                durable: Durable::No,
            };
            let refused = file.submit(op).await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        })
    });
}

/// Descriptors of this process that are open at `path`.
fn descriptors(path: &Path) -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    all.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|at| at == path))
        .count()
}

#[test]
fn cores_share_the_descriptors_of_a_file_and_the_last_one_closes_them() {
    let scratch = Scratch::new("descriptors");
    let path = scratch.path("file");
    std::fs::write(&path, vec![7; 8192]).unwrap();
    let path = path.canonicalize().unwrap();
    let runtime = start(4, Driver::Auto, FilesMode::Ordinary);
    type Kept = RefCell<Option<Rc<dyn File>>>;
    for core in 0..4 {
        let at = path.clone();
        let direct = runtime.run(CoreId(core), move |core| -> LocalFuture<bool> {
            Box::pin(async move {
                let how = how(Create::No, true, true);
                let file = core.files().open(&at, how).await.unwrap();
                write(&file, 4096, &[8; 4096], Durable::Yes).await;
                file.submit(FileOp::Sync).await.unwrap();
                assert_eq!(read(&file, 4096, 4096).await, [8; 4096]);
                let direct = file.facts().direct;
                core.locals().get::<Kept>().replace(Some(file));
                direct
            })
        });
        assert!(direct, "the test wants a file system with direct I/O");
        // One for data, and the lock's, which is synced.
        assert_eq!(descriptors(&path), 2, "with core {core}");
    }
    for core in 0..4 {
        runtime.run(CoreId(core), move |core| -> LocalFuture<()> {
            Box::pin(async move {
                core.locals().get::<Kept>().replace(None);
                // The kernel lets go of a registered file in the ring's next turn.
                core.sleep_until(core.now().after(Duration::from_millis(1)))
                    .await;
            })
        });
        assert_eq!(descriptors(&path), if core < 3 { 2 } else { 0 });
    }
}

#[test]
fn a_lock_keeps_other_runtimes_out_and_other_cores_in() {
    let scratch = Scratch::new("lock");
    let path = scratch.path("file");
    let ours = start(2, Driver::Poll, FilesMode::Ordinary);
    let theirs = start(1, Driver::Poll, FilesMode::Ordinary);
    let (release, held) = mpsc::channel::<()>();
    let (reported, outcomes) = mpsc::channel();
    let held = Arc::new(Mutex::new(held));
    for core in 0..2 {
        let (path, reported, held) = (path.clone(), reported.clone(), Arc::clone(&held));
        ours.spawn_on(CoreId(core), move |core| {
            Box::pin(async move {
                let files = core.files();
                let file = files.open(&path, how(Create::IfAbsent, false, true)).await;
                reported.send(file.is_ok()).unwrap();
                let waited = held.lock().unwrap().recv();
                assert!(waited.is_err(), "the test drops its end");
            })
        });
    }
    let try_theirs = |path: PathBuf| {
        theirs.run(CoreId(0), move |core| {
            Box::pin(async move {
                let files = core.files();
                let opened = files.open(&path, how(Create::No, false, true)).await;
                opened.map(|_| ()).map_err(|error| error.kind())
            })
        })
    };
    assert!(outcomes.recv().unwrap() && outcomes.recv().unwrap());
    assert_eq!(try_theirs(path.clone()), Err(io::ErrorKind::WouldBlock));
    drop(release);
    drop(ours);
    assert_eq!(try_theirs(path), Ok(()));
}

#[test]
fn a_lock_that_somebody_gives_up_soon_is_waited_for() {
    let scratch = Scratch::new("lock-soon");
    let path = scratch.path("file");
    let theirs = std::fs::File::create(&path).unwrap();
    theirs.try_lock().unwrap();
    let ours = start(1, Driver::Poll, FilesMode::Ordinary);
    let (began, begun) = mpsc::channel();
    let dying = std::thread::Builder::new().spawn(move || {
        begun.recv().unwrap();
        // Nothing comes: by then it is asked for.
        let nothing = begun.recv_timeout(Duration::from_millis(150));
        drop(theirs);
        nothing
    });
    let opened = ours.run(CoreId(0), move |core| {
        Box::pin(async move {
            began.send(()).unwrap();
            let files = core.files();
            let opened = files.open(&path, how(Create::No, false, true)).await;
            drop(began);
            opened.map(|_| ()).map_err(|error| error.kind())
        })
    });
    assert_eq!(opened, Ok(()));
    let nothing = dying.unwrap().join().unwrap();
    assert_eq!(nothing, Err(mpsc::RecvTimeoutError::Timeout));
}

/// A handle on the reading end of a pipe: its reads hang until something is written.
fn pipe() -> (Arc<Handle>, io::PipeWriter) {
    let (reader, writer) = io::pipe().unwrap();
    let facts = FileFacts {
        kind: FileKind::Regular,
        direct: false,
        alignment: 1,
        logical_block_bytes: 512,
        physical_block_bytes: 4096,
        discard_granularity: 0,
        discard_reads_zero: false,
        identity: None,
    };
    (Arc::new(Handle::bare(reader.into(), facts)), writer)
}

fn with_ring(test: impl FnOnce(Rc<Ring>) -> LocalFuture<()> + Send + 'static) {
    let event_loop = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let inside = event_loop.enter();
    let Ok(ring) = Ring::new(Arc::default()) else {
        println!("skipped: io_uring is refused here");
        return;
    };
    let ring = Rc::new(ring);
    let mut test = test(Rc::clone(&ring));
    event_loop.block_on(poll_fn(|cx| {
        let polled = test.as_mut().poll(cx);
        ring.poll_drive(cx);
        polled
    }));
    drop(inside);
}

#[test]
fn a_hung_read_of_the_ring_holds_up_no_other_and_keeps_its_memory_when_abandoned() {
    with_ring(|ring| {
        Box::pin(async move {
            let (hung, mut release) = pipe();
            let pool = units::Pool::new(1 << 20);
            let memory = Memory::Read(pool.alloc(4096).unwrap());
            let abandoned = ring.submit(Transfer::new(Arc::clone(&hung), 0, memory), None);
            for _ in 0..10 {
                let (quick, mut writer) = pipe();
                writer.write_all(b"there").unwrap();
                drop(writer);
                let memory = Memory::Read(BufMut::zeroed(8));
                let done = ring
                    .submit(Transfer::new(quick, 0, memory), None)
                    .await
                    .unwrap();
                let FileDone::Read(bytes) = done else {
                    panic!("no bytes")
                };
                assert_eq!(bytes.freeze().to_vec(), b"there\0\0\0");
            }
            drop(abandoned);
            assert_eq!(ring.outstanding(), 1);
            assert_eq!(pool.out_bytes(), 4096, "the kernel still has it");
            release.write_all(&[7; 4096]).unwrap();
            poll_fn(|cx: &mut Context<'_>| {
                ring.poll_drive(cx);
                match ring.outstanding() {
                    0 => std::task::Poll::Ready(()),
                    _ => std::task::Poll::Pending,
                }
            })
            .await;
            assert_eq!(pool.out_bytes(), 0);
            assert_eq!(Arc::strong_count(&hung), 1, "the file is let go too");
        })
    });
}

#[test]
fn a_ring_that_must_go_with_work_in_the_kernel_leaks_its_memory() {
    let pool = units::Pool::new(1 << 20);
    let ours = pool.clone();
    with_ring(move |ring| {
        Box::pin(async move {
            let (hung, writer) = pipe();
            std::mem::forget(writer);
            let memory = Memory::Read(ours.alloc(4096).unwrap());
            drop(ring.submit(Transfer::new(hung, 0, memory), None));
            ring.poll_drive(&mut Context::from_waker(std::task::Waker::noop()));
        })
    });
    assert!(pool.out_bytes() == 4096 || pool.out_bytes() == 0 && !uring_works());
}

fn uring_works() -> bool {
    let runtime = start(1, Driver::Auto, FilesMode::Ordinary);
    runtime.notices().is_empty()
}

#[test]
fn jobs_run_in_the_order_in_which_they_were_posted() {
    let runtime = start(2, Driver::Poll, FilesMode::Ordinary);
    let seen = runtime.run(CoreId(0), |core| {
        Box::pin(async move {
            let (reported, mut outcomes) = tokio::sync::mpsc::unbounded_channel();
            for n in 0..1000 {
                let reported = reported.clone();
                core.post(
                    CoreId(1),
                    Box::new(move |core| reported.send((core.id(), n)).unwrap()),
                );
            }
            drop(reported);
            let mut seen = Vec::new();
            while let Some(one) = outcomes.recv().await {
                seen.push(one);
            }
            seen
        })
    });
    let expected: Vec<_> = (0..1000).map(|n| (CoreId(1), n)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_panic_ends_its_task_and_leaves_a_notice() {
    let runtime = start(1, Driver::Poll, FilesMode::Ordinary);
    runtime.spawn_on(CoreId(0), |_| Box::pin(async { panic!("in a task") }));
    runtime.post(CoreId(0), Box::new(|_| panic!("in a job")));
    assert_eq!(runtime.run(CoreId(0), |_| Box::pin(async { 7 })), 7);
    let mut reported: Vec<String> = runtime
        .notices()
        .into_iter()
        .map(|notice| notice.0)
        .collect();
    reported.sort();
    assert_eq!(
        reported,
        [
            "a job on core 0 panicked: in a job",
            "a task on core 0 panicked, so that what it served has ended; the rest goes on: in a task"
        ]
    );
}

#[test]
fn a_core_is_busy_while_it_works_and_not_while_it_waits() {
    let runtime = start(1, Driver::Poll, FilesMode::Ordinary);
    let (waited, worked) = runtime.run(CoreId(0), |core| -> LocalFuture<(Duration, Duration)> {
        Box::pin(async move {
            let begin = core.busy();
            let span = Duration::from_millis(50);
            core.sleep_until(core.now().after(span)).await;
            let waited = core.busy() - begin;
            let until = core.busy() + span;
            while core.busy() < until {}
            (waited, core.busy() - begin - waited)
        })
    });
    assert!(waited < Duration::from_millis(20), "{waited:?}");
    assert!(worked >= Duration::from_millis(50), "{worked:?}");
}

/// What a core's thread takes for a byte that comes and goes, and in the time after it; and what of
/// it was work.
fn after_a_byte(poll: Duration) -> [Duration; 3] {
    let runtime = Runtime::start(&RuntimeConfig {
        cores: Cores::List(vec![0]),
        driver: Driver::Poll,
        poll,
        ..RuntimeConfig::default()
    })
    .unwrap();
    runtime.run(CoreId(0), |core| {
        Box::pin(async move {
            let used = || Duration::from_nanos(super::clock::clock(ClockId::ThreadCPUTime));
            let rest = |span| core.sleep_until(core.now().after(Duration::from_millis(span)));
            let listener = core.net().listen("127.0.0.1:0".parse().unwrap()).unwrap();
            let connecting = core.net().connect(listener.local(), None);
            let client = connecting.await.unwrap();
            let accepted = poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
            let server = core.net().adopt(accepted).unwrap();
            rest(1).await;
            let (begin, work) = (used(), core.busy());
            send_all(&client, b"x").await;
            assert_eq!(receive_all(&server, 1).await, b"x");
            rest(100).await;
            let (spun, worked) = (used() - begin, core.busy() - work);
            let begin = used();
            rest(100).await;
            [spun, worked, used() - begin]
        })
    })
}

#[test]
fn a_core_that_polls_spins_for_its_time_after_a_byte_and_then_rests() {
    let ms = Duration::from_millis;
    let [spun, worked, later] = after_a_byte(ms(40));
    // Others may have had the processor for a part of the time.
    assert!(spun > ms(10) && spun < ms(60), "{spun:?}");
    assert!(worked < ms(8), "what is spun is not work: {worked:?}");
    assert!(later < ms(8), "{later:?}");
    let [spun, _, later] = after_a_byte(Duration::ZERO);
    assert!(spun < ms(8) && later < ms(8), "{spun:?} {later:?}");
}

#[test]
fn a_task_that_pauses_lets_in_what_the_network_has() {
    let runtime = start(1, Driver::Poll, FilesMode::Ordinary);
    let turns = runtime.run(CoreId(0), |core| {
        Box::pin(async move {
            let listener = core.net().listen("127.0.0.1:0".parse().unwrap()).unwrap();
            let connecting = core.net().connect(listener.local(), None);
            let client = connecting.await.unwrap();
            let accepted = poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
            let server = core.net().adopt(accepted).unwrap();
            let came = Rc::new(std::cell::Cell::new(false));
            let (reported, reader) = (Rc::clone(&came), Rc::clone(&server));
            core.spawn(Box::pin(async move {
                receive_all(&reader, 1).await;
                reported.set(true);
            }));
            core.sleep_until(core.now().after(Duration::from_millis(1)))
                .await;
            send_all(&client, b"x").await;
            let (mut turns, pausing) = (0, Rc::clone(&core));
            poll_fn(|cx| {
                if came.get() || turns > 10_000 {
                    return std::task::Poll::Ready(());
                }
                turns += 1;
                pausing.pause(cx);
                std::task::Poll::Pending
            })
            .await;
            turns
        })
    });
    // It is there after the event loop was asked once; a few more if the kernel is slow with it.
    assert!((1..20).contains(&turns), "{turns} turns");
}

#[test]
fn timers_fire_in_order_and_not_early() {
    start(1, Driver::Poll, FilesMode::Ordinary).run(CoreId(0), |core| {
        Box::pin(async move {
            let begin = core.now();
            let order: Rc<RefCell<Vec<u64>>> = Rc::default();
            for ms in [30, 10, 20] {
                let (timer, order) = (
                    core.sleep_until(begin.after(Duration::from_millis(ms))),
                    Rc::clone(&order),
                );
                core.spawn(Box::pin(async move {
                    timer.await;
                    order.borrow_mut().push(ms);
                }));
            }
            core.sleep_until(begin.after(Duration::from_millis(60)))
                .await;
            assert_eq!(*order.borrow(), [10, 20, 30]);
            assert!(core.now().since(begin) >= Duration::from_millis(60));
            core.sleep_until(begin).await;
        })
    });
}

async fn send_all(stream: &Rc<dyn crate::Stream>, bytes: &[u8]) {
    let mut at = 0;
    while at < bytes.len() {
        let (first, second) = bytes[at..].split_at((bytes.len() - at) / 2);
        let pieces = [IoSlice::new(first), IoSlice::new(second)];
        at += poll_fn(|cx| stream.poll_send(cx, &pieces)).await.unwrap();
    }
}

async fn receive_all(stream: &Rc<dyn crate::Stream>, len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut into = [0; 10_000];
    while bytes.len() < len {
        let n = poll_fn(|cx| stream.poll_recv(cx, &mut into)).await.unwrap();
        if n == 0 {
            break;
        }
        bytes.extend_from_slice(&into[..n]);
    }
    bytes
}

/// Receives half of a mebibyte here and half on core 0, and sends all back from there.
fn echo(core: &CoreHandle, accepted: crate::DetachedStream) {
    let stream = core.net().adopt(accepted).unwrap();
    let here = Rc::clone(core);
    core.spawn(Box::pin(async move {
        let mut bytes = receive_all(&stream, 1 << 19).await;
        let given_up = stream.detach().unwrap();
        drop(stream);
        let rest = (1 << 20) - bytes.len();
        let goes_on = move |core: &CoreHandle| {
            let stream = core.net().adopt(given_up).unwrap();
            core.spawn(Box::pin(async move {
                bytes.extend(receive_all(&stream, rest).await);
                send_all(&stream, &bytes).await;
                stream.shutdown();
            }));
        };
        here.post(CoreId(0), Box::new(goes_on));
    }));
}

#[test]
fn a_connection_goes_from_core_to_core_and_loses_nothing() {
    for at in ["127.0.0.1:0", "[::1]:0"] {
        let runtime = start(2, Driver::Poll, FilesMode::Ordinary);
        let echoed = runtime.run(CoreId(0), move |core| {
            Box::pin(async move {
                let net = core.net();
                let listener = net.listen(at.parse().unwrap()).unwrap();
                let to = listener.local();
                let clients_core = Rc::clone(&core);
                core.spawn(Box::pin(async move {
                    let accepted = poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
                    assert_eq!(accepted.local, to);
                    clients_core.post(CoreId(1), Box::new(move |core| echo(core, accepted)));
                }));
                let from = Some(to.ip());
                let client = net.connect(to, from).await.unwrap();
                assert_eq!(client.peer(), to);
                let bytes: Vec<u8> = (0..1_u32 << 18).flat_map(u32::to_le_bytes).collect();
                send_all(&client, &bytes).await;
                let back = receive_all(&client, usize::MAX).await;
                back == bytes
            })
        });
        assert!(echoed, "{at}");
    }
}

#[test]
fn an_address_added_to_an_interface_is_seen_and_a_removed_one_forgotten() {
    let may = rustix::process::geteuid().is_root() && Command::new("ip").arg("-V").output().is_ok();
    if !may {
        println!("skipped: needs root and ip(8)");
        return;
    }
    let runtime = start(1, Driver::Poll, FilesMode::Ordinary);
    runtime.run(CoreId(0), |core| {
        Box::pin(async move {
            // Only this core's thread moves to a network of its own.
            if unshare_network().is_err() {
                println!("skipped: no network namespaces");
                return;
            }
            let watch = core.net().watch_interfaces().unwrap();
            assert_eq!(watch.current(), []);
            let ip = |args: &str| {
                let done = Command::new("ip").args(args.split(' ')).status().unwrap();
                assert!(done.success(), "ip {args}");
            };
            ip("addr add 10.9.8.7/24 dev lo");
            watch.changed().await;
            let now = watch.current();
            assert_eq!(now[0].interface, "lo");
            assert_eq!(now[0].address.to_string(), "10.9.8.7");
            assert_eq!(now[0].prefix_bits, 24);
            ip("addr del 10.9.8.7/24 dev lo");
            while !watch.current().is_empty() {
                watch.changed().await;
            }
        })
    });
}

#[expect(
    unsafe_code,
    reason = "the call is marked unsafe for file descriptor tables only"
)]
fn unshare_network() -> rustix::io::Result<()> {
    // SAFETY: a network namespace of one's own shares and unshares no file descriptors.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }
}

#[test]
fn processors_that_do_not_exist_leave_a_notice() {
    let runtime = Runtime::start(&RuntimeConfig {
        cores: Cores::List(vec![0, 1023]),
        ..RuntimeConfig::default()
    })
    .unwrap();
    let notices = runtime.shutdown();
    assert!(
        notices.iter().any(|notice| notice.0.contains("1023")),
        "{notices:?}"
    );
}

#[test]
fn flushes_of_a_slow_disk_take_turns_and_other_operations_pass_them() {
    const TAKES: Duration = Duration::from_millis(20);
    let scratch = Scratch::new("slow");
    let path = scratch.path("file");
    let runtime = start(1, Driver::Auto, FilesMode::SlowFlush(TAKES));
    let (before_flushes, all) = runtime.run(CoreId(0), move |core| {
        Box::pin(async move {
            let file = open(&core, &path, Create::New, false).await;
            let begin = core.now();
            let mut flushes = vec![file.submit(FileOp::Sync)];
            flushes.extend((0..4).map(|n| {
                file.submit(FileOp::Write {
                    offset: n,
                    data: Buf::copy_of(&[1]),
                    durable: Durable::Yes,
                })
            }));
            write(&file, 100, &[2; 8], Durable::No).await;
            assert_eq!(read(&file, 100, 8).await, [2; 8]);
            let before_flushes = core.now().since(begin);
            for flush in flushes {
                flush.await.unwrap();
            }
            (before_flushes, core.now().since(begin))
        })
    });
    assert!(all >= TAKES * 5, "{all:?}");
    assert!(before_flushes < all - TAKES, "{before_flushes:?}, {all:?}");
}

/// How far the machine's clock that counts its sleep is to be ahead, in seconds.
const SLEPT: u64 = 7_777_777;

/// Set where the test below runs in a time namespace of its own.
const INSIDE: &str = "CAUSEWAY_IN_A_TIME_NAMESPACE";

fn seconds_that_now_is_ahead() -> u64 {
    start(1, Driver::Poll, FilesMode::Ordinary).run(CoreId(0), |core| {
        Box::pin(async move {
            let awake = super::clock::clock(ClockId::Monotonic);
            core.now().0.saturating_sub(awake) / 1_000_000_000
        })
    })
}

#[test]
fn time_counts_while_the_machine_sleeps() {
    if std::env::var_os(INSIDE).is_some() {
        return assert!(seconds_that_now_is_ahead() >= SLEPT);
    }
    let unshared = |words: &[&str]| {
        let mut command = Command::new("unshare");
        let slept = SLEPT.to_string();
        command.args(["--time", "--boottime", &slept, "--fork", "--"]);
        command.args(words).env(INSIDE, "1").output()
    };
    if !unshared(&["true"]).is_ok_and(|it| it.status.success()) {
        println!("skipped: no time namespace can be made here");
        return;
    }
    let this = std::env::current_exe().unwrap();
    let name = "real::test::time_counts_while_the_machine_sleeps";
    let ran = unshared(&[this.to_str().unwrap(), "--exact", name]).unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}
