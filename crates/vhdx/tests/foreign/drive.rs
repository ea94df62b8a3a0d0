//! Real files, driven as an operation asks.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use vhdx::{Access, Action, Answer, Chain, Error, Guids, Image, Operation, Piece, Request, Source};

/// The files of a chain, the image first.
pub(crate) struct Files(Vec<File>);

impl Files {
    pub(crate) fn open(paths: &[&Path]) -> Self {
        let open = |path: &&Path| {
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(path)
                .unwrap()
        };
        Self(paths.iter().map(open).collect())
    }

    pub(crate) fn create(path: &Path) -> Self {
        let mut options = OpenOptions::new();
        Self(vec![
            options
                .read(true)
                .write(true)
                .create_new(true)
                .open(path)
                .unwrap(),
        ])
    }

    fn read(&self, file: usize, at: u64, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        self.0[file].read_exact_at(&mut read, at).unwrap();
        read
    }

    fn answer(&self, request: Request, payload: &[u8]) -> Answer {
        let file = &self.0[request.file];
        let size = |bytes: u64| usize::try_from(bytes).unwrap();
        match request.action {
            Action::Length => return Answer::Length(file.metadata().unwrap().len()),
            Action::Read { at, bytes } => return Answer::Bytes(self.read(request.file, at, bytes)),
            Action::Write(writes) => {
                for (at, bytes) in writes {
                    file.write_all_at(&bytes, at).unwrap();
                }
            }
            Action::Zero { at, bytes } => file.write_all_at(&vec![0; size(bytes)], at).unwrap(),
            Action::Reserve { .. } => {}
            Action::Copy {
                file: other,
                from,
                to,
                bytes,
            } => {
                let read = self.read(other, from, size(bytes));
                file.write_all_at(&read, to).unwrap();
            }
            Action::Payload(extents) => {
                for extent in extents {
                    let part = size(extent.at)..size(extent.at + extent.bytes);
                    file.write_all_at(&payload[part], extent.place).unwrap();
                }
            }
            Action::SetLength(length) => file.set_len(length).unwrap(),
            // A crash of the machine is not what is tried here.
            Action::Sync => {}
        }
        Answer::Done
    }

    pub(crate) fn run<T>(&self, operation: Operation<'_, T>) -> Result<T, Error> {
        operation.run(|request| self.answer(request, &[]))
    }

    /// Zeroes over what is there.
    pub(crate) fn damage(&self, at: u64, bytes: usize) {
        self.0[0].write_all_at(&vec![0; bytes], at).unwrap();
    }

    pub(crate) fn write(&self, image: &Image, at: u64, payload: &[u8]) {
        let bytes = u64::try_from(payload.len()).unwrap();
        let write = image.write(at, bytes);
        write.run(|request| self.answer(request, payload)).unwrap();
    }

    /// The chain, to be changed or read.
    pub(crate) fn chain(&self, access: &Access) -> Chain {
        let images = (0..self.0.len()).map(|file| {
            let access = if file == 0 {
                access.clone()
            } else {
                Access::Read
            };
            self.run(Image::open_as(file, access)).unwrap()
        });
        Chain::new(images.collect()).unwrap()
    }

    pub(crate) fn read_disk(&self, chain: &Chain, at: u64, bytes: u64) -> Vec<u8> {
        self.gather(self.run(chain.read(at, bytes)).unwrap())
    }

    pub(crate) fn gather(&self, pieces: Vec<Piece>) -> Vec<u8> {
        let mut all = Vec::new();
        for piece in pieces {
            let bytes = usize::try_from(piece.bytes).unwrap();
            match piece.from {
                Source::Zero => all.resize(all.len() + bytes, 0),
                Source::File { file, place } => all.extend(self.read(file, place, bytes)),
            }
        }
        all
    }
}

/// Identifiers of a test.
pub(crate) fn guids(seed: u8) -> Guids {
    Guids::new([seed; 16])
}

/// A directory that is gone when the test ends well.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("vhdx-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _before = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _gone = std::fs::remove_dir_all(&self.0);
        }
    }
}
