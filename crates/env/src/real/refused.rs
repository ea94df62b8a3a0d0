//! What the kernel may refuse, refused: io_uring by a filter of system calls, locked memory by its
//! limit. And what it gives where it refuses nothing.

#![expect(
    unsafe_code,
    reason = "filters of system calls are installed by the system's own calls"
)]

use super::test::{Scratch, how, start, write};
use super::*;
use crate::file::*;
use crate::{CoreHandle, CoreId, LocalFuture};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// Answers a system call with EPERM in this thread and those that it starts.
fn refuse(call: libc::c_long) {
    let call = u32::try_from(call).unwrap();
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = [
        // The call's number; equal: refuse; else: allow.
        step(0x20, 0, 0, 0),
        step(0x15, 0, 1, call),
        step(0x06, 0, 0, 0x0005_0001),
        step(0x06, 0, 0, 0x7fff_0000),
    ];
    let program = libc::sock_fprog {
        len: 4,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the program is valid for the calls, which change this thread only.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::c_int::from(libc::syscall(libc::SYS_seccomp, 1, 0, &raw const program) != 0)
    };
    assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
}

/// In a thread of its own, so that what is refused there is refused nowhere else.
fn apart<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().spawn(test);
    thread.unwrap().join().unwrap()
}

async fn open(core: &CoreHandle, path: &Path) -> Rc<dyn File> {
    let how = how(Create::No, true, true);
    core.files().open(path, how).await.unwrap()
}

/// Writes and reads with memory of the pool; answers what carried it.
fn use_disk(runtime: &Runtime, path: PathBuf) -> DiskEngine {
    runtime.run(CoreId(0), move |core| -> LocalFuture<DiskEngine> {
        Box::pin(async move {
            let file = open(&core, &path).await;
            for (at, len) in [(0, 4096), (4096, 16 << 10), (1 << 20, 1 << 20), (512, 3072)] {
                let byte = u8::try_from(len / 512 % 251).unwrap();
                let mut data = core.pool().alloc(len).unwrap();
                data.copy_at(0, &vec![byte; len]);
                let op = FileOp::Write {
                    offset: at,
                    data: data.freeze(),
                    durable: Durable::Yes,
                };
                file.submit(op).await.unwrap();
                let into = core.pool().alloc(len).unwrap();
                let done = file
                    .submit(FileOp::Read { offset: at, into })
                    .await
                    .unwrap();
                let FileDone::Read(read) = done else {
                    panic!("{done:?}")
                };
                assert!(read.freeze().to_vec() == vec![byte; len], "{len} at {at}");
            }
            file.submit(FileOp::Sync).await.unwrap();
            core.files().engine()
        })
    })
}

fn file_of_2_mib(scratch: &Scratch) -> PathBuf {
    let path = scratch.path("file");
    std::fs::write(&path, vec![0; 2 << 20]).unwrap();
    path
}

#[test]
fn disks_go_on_on_threads_where_any_part_of_io_uring_is_refused() {
    for call in [
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
    ] {
        apart(move || {
            let scratch = Scratch::new(&format!("refused-{call}"));
            refuse(call);
            let runtime = start(1, Driver::Auto, FilesMode::Ordinary);
            let engine = use_disk(&runtime, file_of_2_mib(&scratch));
            assert_eq!(engine, DiskEngine::default(), "threads, nothing registered");
            let notices = runtime.notices();
            assert_eq!(notices.len(), 1, "{notices:?}");
            let reported = &notices[0].0;
            assert!(reported.contains("io_uring is refused"), "{reported}");
            assert!(reported.contains("Operation not permitted"), "{reported}");
            let insisted = Runtime::start(&RuntimeConfig {
                driver: Driver::Uring,
                ..RuntimeConfig::default()
            });
            assert!(insisted.is_err(), "who insists on io_uring gets an error");
        });
    }
}

#[test]
fn files_and_memory_are_registered_when_used_and_files_forgotten_when_closed() {
    let scratch = Scratch::new("registered");
    let runtime = start(1, Driver::Auto, FilesMode::Ordinary);
    let engine = use_disk(&runtime, file_of_2_mib(&scratch));
    if engine.kind == EngineKind::Threads {
        println!("skipped: io_uring is refused here");
        return;
    }
    let limit = getrlimit(Resource::Memlock).current;
    if limit.is_none_or(|bytes| bytes >= 64 << 20) || has_ipc_lock() {
        // A huge page for each of the sizes that were used, at most.
        assert!(
            (2 << 20..=8 << 20).contains(&engine.registered_bytes),
            "{engine:?}"
        );
    }
    let path = file_of_2_mib(&scratch);
    runtime.run(CoreId(0), move |core| -> LocalFuture<()> {
        Box::pin(async move {
            let files = || core.files().engine().registered_files;
            let turn = || core.sleep_until(core.now().after(Duration::from_millis(1)));
            turn().await;
            assert_eq!(files(), 0, "the first was closed");
            let file = open(&core, &path).await;
            assert_eq!(files(), 0, "nothing was read yet");
            write(&file, 0, &[1; 4096], Durable::No).await;
            assert_eq!(files(), 1);
            drop(file);
            turn().await;
            assert_eq!(files(), 0);
        })
    });
}

fn has_ipc_lock() -> bool {
    let mine = capabilities(None).unwrap();
    mine.effective.contains(CapabilitySet::IPC_LOCK)
}

#[test]
fn disks_go_on_with_memory_that_is_not_registered_where_locked_memory_is_refused() {
    apart(|| {
        let scratch = Scratch::new("locked-memory");
        let path = file_of_2_mib(&scratch);
        let mut mine = capabilities(None).unwrap();
        mine.effective.remove(CapabilitySet::IPC_LOCK);
        mine.permitted.remove(CapabilitySet::IPC_LOCK);
        set_capabilities(None, mine).unwrap();
        let limit = getrlimit(Resource::Memlock);
        let none = Rlimit {
            current: Some(0),
            ..limit
        };
        // For the process: tests beside this one register nothing meanwhile, where they have no
        // privilege.
        setrlimit(Resource::Memlock, none).unwrap();
        let runtime = start(1, Driver::Auto, FilesMode::Ordinary);
        let engine = use_disk(&runtime, path);
        setrlimit(Resource::Memlock, limit).unwrap();
        if engine.kind == EngineKind::Threads {
            println!("skipped: io_uring is refused here");
            return;
        }
        assert_eq!(engine.registered_bytes, 0);
        let reported = runtime.notices();
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(reported[0].0.contains("LimitMEMLOCK"), "{reported:?}");
    });
}
