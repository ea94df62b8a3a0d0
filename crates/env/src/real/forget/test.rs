//! What is left when a runtime that forgets is gone: its memory goes with it, as a killed process's
//! does.

use super::super::test::{Scratch, how, read, start, write};
use super::super::{Driver, FilesMode};
use crate::file::{Create, Durable, File, FileDone, FileOp};
use crate::{CoreHandle, CoreId, LocalFuture};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// One life: a runtime that forgets, which is gone at the end.
fn live<T: Send + 'static>(test: impl FnOnce(CoreHandle) -> LocalFuture<T> + Send + 'static) -> T {
    start(1, Driver::Poll, FilesMode::ForgetUnsynced).run(CoreId(0), test)
}

async fn open(core: &CoreHandle, path: &Path, create: Create) -> Rc<dyn File> {
    let files = core.files();
    files.open(path, how(create, false, false)).await.unwrap()
}

/// A file of these bytes that is there to stay.
fn settled(path: &Path, bytes: &'static [u8]) {
    let ours = path.to_owned();
    live(move |core| {
        Box::pin(async move {
            let file = open(&core, &ours, Create::New).await;
            write(&file, 0, bytes, Durable::No).await;
            file.submit(FileOp::Sync).await.unwrap();
            core.files().sync_dir(ours.parent().unwrap()).await.unwrap();
        })
    });
    assert_eq!(std::fs::read(path).unwrap(), bytes);
}

#[test]
fn what_was_not_synced_is_forgotten_and_what_was_is_not() {
    let scratch = Scratch::new("forget");
    let path = scratch.path("file");
    settled(&path, b"0123456789");
    let ours = path.clone();
    live(move |core| {
        Box::pin(async move {
            let file = open(&core, &ours, Create::No).await;
            write(&file, 2, b"abc", Durable::No).await;
            file.submit(FileOp::Sync).await.unwrap();
            write(&file, 0, b"ZZZZZZ", Durable::No).await;
            write(&file, 8, b"YYYYYY", Durable::Yes).await;
            write(&file, 20, b"XX", Durable::No).await;
            let seen = read(&file, 0, 22).await;
            assert_eq!(seen, b"ZZZZZZ67YYYYYY\0\0\0\0\0\0XX");
        })
    });
    assert_eq!(std::fs::read(&path).unwrap(), b"01abc567YYYYYY");
}

#[test]
fn cut_and_punched_files_come_back_as_they_were_synced() {
    let scratch = Scratch::new("cut");
    let path = scratch.path("file");
    settled(&path, b"0123456789");
    for synced in [false, true] {
        let ours = path.clone();
        live(move |core| {
            Box::pin(async move {
                let file = open(&core, &ours, Create::No).await;
                file.submit(FileOp::SetLen { len: 4 }).await.unwrap();
                file.submit(FileOp::SetLen { len: 8 }).await.unwrap();
                file.submit(FileOp::PunchHole { offset: 0, len: 2 })
                    .await
                    .unwrap();
                assert_eq!(read(&file, 0, 10).await, b"\0\x0023\0\0\0\0\0\0");
                if synced {
                    file.submit(FileOp::Sync).await.unwrap();
                }
                let len = file.submit(FileOp::Len).await.unwrap();
                assert!(matches!(len, FileDone::Len(8)), "{len:?}");
            })
        });
        let expected: &[u8] = if synced {
            b"\0\x0023\0\0\0\0"
        } else {
            b"0123456789"
        };
        assert_eq!(std::fs::read(&path).unwrap(), expected);
    }
}

#[test]
fn names_are_forgotten_until_their_directory_is_synced() {
    let scratch = Scratch::new("names");
    let (old, new) = (scratch.path("old"), scratch.path("new"));
    settled(&old, b"old");
    let names = |scratch: &Scratch| {
        let mut names: Vec<PathBuf> = std::fs::read_dir(&scratch.0)
            .unwrap()
            .map(|entry| PathBuf::from(entry.unwrap().file_name()))
            .collect();
        names.sort();
        names
    };
    for synced in [false, true] {
        let (from, to, directory) = (new.clone(), old.clone(), scratch.0.clone());
        live(move |core| {
            Box::pin(async move {
                let files = core.files();
                let file = open(&core, &from, Create::New).await;
                write(&file, 0, b"new", Durable::Yes).await;
                files.rename(&from, &to).await.unwrap();
                let listed = files.list(&directory).await.unwrap();
                assert_eq!(listed.len(), 1, "{listed:?}");
                let again = open(&core, &to, Create::No).await;
                assert_eq!(read(&again, 0, 3).await, b"new");
                if synced {
                    files.sync_dir(&directory).await.unwrap();
                }
            })
        });
        assert_eq!(names(&scratch), [PathBuf::from("old")]);
        let expected: &[u8] = if synced { b"new" } else { b"old" };
        assert_eq!(std::fs::read(&old).unwrap(), expected);
    }
    for synced in [false, true] {
        let (path, directory) = (old.clone(), scratch.0.clone());
        live(move |core| {
            Box::pin(async move {
                let files = core.files();
                files.remove(&path).await.unwrap();
                assert_eq!(files.list(&directory).await.unwrap(), []);
                if synced {
                    files.sync_dir(&directory).await.unwrap();
                }
            })
        });
        assert_eq!(old.exists(), !synced);
    }
}

#[test]
fn a_renamed_file_that_was_not_synced_is_empty_after_all() {
    let scratch = Scratch::new("empty");
    let (from, to) = (scratch.path("from"), scratch.path("to"));
    let (directory, kept) = (scratch.0.clone(), to.clone());
    live(move |core| {
        Box::pin(async move {
            let file = open(&core, &from, Create::New).await;
            write(&file, 0, b"lost", Durable::No).await;
            core.files().rename(&from, &to).await.unwrap();
            core.files().sync_dir(&directory).await.unwrap();
        })
    });
    assert_eq!(std::fs::read(&kept).unwrap(), b"", "the missing sync shows");
}

#[test]
fn a_directorys_sync_keeps_no_name_of_another_directory() {
    let scratch = Scratch::new("others");
    let (here, there) = (scratch.path("here"), scratch.path("there"));
    let (first, second) = (here.clone(), there.clone());
    live(move |core| {
        Box::pin(async move {
            let files = core.files();
            files.create_dir(&first).await.unwrap();
            files.create_dir(&second).await.unwrap();
            open(&core, &second.join("early"), Create::New).await;
            open(&core, &first.join("kept"), Create::New).await;
            files.sync_dir(&first).await.unwrap();
        })
    });
    assert!(here.join("kept").exists());
    assert!(
        !there.join("early").exists(),
        "its directory was not synced"
    );
    let (first, second) = (here.clone(), there.clone());
    live(move |core| {
        Box::pin(async move {
            let files = core.files();
            open(&core, &second.join("made"), Create::New).await;
            open(&core, &second.join("left"), Create::New).await;
            let (from, to) = (second.join("made"), first.join("moved"));
            files.rename(&from, &to).await.unwrap();
            open(&core, &second.join("late"), Create::New).await;
            files.sync_dir(&first).await.unwrap();
        })
    });
    assert!(here.join("moved").exists() && !there.join("made").exists());
    assert!(
        there.join("left").exists(),
        "older names go along with a rename"
    );
    assert!(!there.join("late").exists(), "newer ones do not");
}
