//! Does with files what an operation of an image asks for.

use env::file::length;
use env::{Answer, Durable, File, FileDone, FileOp, LocalFuture, file::is_no_space};
use std::io;
use std::rc::Rc;
use units::{Buf, BufMut};
use vhdx::{Action, Error, Extent, Operation, Request, Step};

/// Bytes of zeroes in one write, where a range cannot be zeroed otherwise.
const ZERO_CHUNK_BYTES: u64 = 1 << 20;
/// Bytes that are copied at once.
const COPY_CHUNK_BYTES: u64 = 1 << 20;

/// Why an operation of an image failed.
#[derive(Debug)]
pub struct Failure {
    /// What the image says.
    pub error: Error,
    /// What the system said, where it was that.
    pub io: Option<io::Error>,
}

impl Failure {
    /// There was no space.
    #[must_use]
    pub fn lacked_space(&self) -> bool {
        self.io.as_ref().is_some_and(is_no_space)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.io {
            Some(io) => write!(f, "{io}"),
            None => write!(f, "{}", self.error),
        }
    }
}

impl std::error::Error for Failure {}

/// How a file is synced.
pub type SyncFile<'a> = &'a dyn Fn(&Rc<dyn File>) -> LocalFuture<io::Result<()>>;

/// The files of an image and its parents, on one core, and what is written.
#[derive(Clone, Copy)]
pub struct Drive<'a> {
    /// The image's own file first.
    pub files: &'a [Rc<dyn File>],
    /// What [`Action::Payload`] takes its parts of.
    pub payload: Option<&'a Buf>,
    /// Payload may still be written: asked in the poll that writes it.
    pub may_write: &'a dyn Fn() -> bool,
    /// How the image's own file is synced.
    pub sync: SyncFile<'a>,
}

/// A sync without further ado.
#[must_use]
pub fn plain_sync(file: &Rc<dyn File>) -> LocalFuture<io::Result<()>> {
    let synced = file.submit(FileOp::Sync);
    Box::pin(async move { synced.await.map(|_| ()) })
}

impl<'a> Drive<'a> {
    /// For whoever has the files alone and writes no payload.
    #[must_use]
    pub fn of(files: &'a [Rc<dyn File>]) -> Self {
        Self {
            files,
            payload: None,
            may_write: &|| true,
            sync: &plain_sync,
        }
    }

    /// Does all that an operation asks for.
    ///
    /// # Errors
    /// What it ended with.
    pub async fn run<T>(&self, mut operation: Operation<'_, T>) -> Result<T, Failure> {
        let (mut answer, mut io) = (None, None);
        loop {
            match operation.next(answer.take()) {
                Step::Done(Ok(value)) => return Ok(value),
                Step::Done(Err(error)) => return Err(Failure { error, io }),
                Step::Ask(request) => answer = Some(self.answered(request, &mut io).await),
            }
        }
    }

    /// An answer, and what the system said where it failed.
    async fn answered(&self, request: Request, said: &mut Option<io::Error>) -> vhdx::Answer {
        let is_payload = matches!(request.action, Action::Payload(_));
        let may_lack_space = is_payload
            || matches!(
                request.action,
                Action::SetLength(_) | Action::Zero { .. } | Action::Reserve { .. }
            );
        if is_payload && !(self.may_write)() {
            return vhdx::Answer::NotDone;
        }
        match self.answer(request).await {
            Ok(answer) => answer,
            Err(error) => {
                let is_no_harm = may_lack_space && is_no_space(&error);
                *said = Some(error);
                if is_no_harm {
                    vhdx::Answer::NotDone
                } else {
                    vhdx::Answer::Failed
                }
            }
        }
    }

    /// Does one thing that an operation asks for, whatever [`Self::may_write`] says.
    ///
    /// # Errors
    /// What the system says.
    pub async fn answer(&self, request: Request) -> io::Result<vhdx::Answer> {
        let file = &self.files[request.file];
        match request.action {
            Action::Length => return length(file).await.map(vhdx::Answer::Length),
            Action::Read { at, bytes } => {
                let read = read_aligned(file, at, bytes).await?;
                return Ok(vhdx::Answer::Bytes(read));
            }
            Action::Write(writes) => {
                let writes = writes.into_iter();
                write_all(file, writes.map(|(at, bytes)| (at, Buf::copy_of(&bytes)))).await?;
            }
            Action::Zero { at, bytes } => zero(file, at, bytes).await?,
            Action::Reserve { at, bytes } => reserve(file, at, bytes).await?,
            Action::Copy {
                file: from_file,
                from,
                to,
                bytes,
            } => copy((&self.files[from_file], from), (file, to), bytes).await?,
            Action::Payload(extents) => {
                let payload = self.payload.cloned().unwrap_or_else(Buf::empty);
                write_all(file, parts(&payload, &extents)).await?;
            }
            Action::SetLength(len) => {
                file.submit(FileOp::SetLen { len }).await?;
            }
            Action::Sync => (self.sync)(file).await?,
        }
        Ok(vhdx::Answer::Done)
    }
}

fn small(bytes: u64) -> usize {
    usize::try_from(bytes).expect("64-bit machines only")
}

/// What goes where of a request's data.
pub(super) fn parts<'a>(
    payload: &'a Buf,
    extents: &'a [Extent],
) -> impl Iterator<Item = (u64, Buf)> + 'a {
    extents.iter().map(|extent| {
        let part = small(extent.at)..small(extent.at + extent.bytes);
        (extent.place, payload.slice(part))
    })
}

/// All of them at once; the first error counts.
pub(super) async fn write_all(
    file: &Rc<dyn File>,
    writes: impl Iterator<Item = (u64, Buf)>,
) -> io::Result<()> {
    let started: Vec<Answer<io::Result<FileDone>>> = writes
        .map(|(offset, data)| {
            file.submit(FileOp::Write {
                offset,
                data,
                durable: Durable::No,
            })
        })
        .collect();
    let mut ended = Ok(());
    for write in started {
        let done = write.await.map(|_| ());
        ended = ended.and(done);
    }
    ended
}

/// Reads as the file's alignment wants it.
async fn read_aligned(file: &Rc<dyn File>, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let alignment = u64::from(file.facts().alignment.max(1));
    let from = at - at % alignment;
    let to = (at + bytes as u64).next_multiple_of(alignment);
    let into = BufMut::zeroed(small(to - from));
    let FileDone::Read(read) = file.submit(FileOp::Read { offset: from, into }).await? else {
        unreachable!("a read answers data")
    };
    let mut read = read.freeze();
    let skipped = small(at - from);
    read = read.slice(skipped..skipped + bytes);
    Ok(read.to_vec())
}

/// Makes a part read as zeroes; its space stays.
pub(super) async fn zero(file: &Rc<dyn File>, offset: u64, len: u64) -> io::Result<()> {
    if len == 0 {
        return Ok(());
    }
    or_zeroes(file, (offset, len), FileOp::ZeroRange { offset, len }).await
}

async fn reserve(file: &Rc<dyn File>, offset: u64, len: u64) -> io::Result<()> {
    or_zeroes(file, (offset, len), FileOp::Allocate { offset, len }).await
}

/// Does it, or writes zeroes there where the file system cannot do it.
async fn or_zeroes(file: &Rc<dyn File>, part: (u64, u64), op: FileOp) -> io::Result<()> {
    match file.submit(op).await {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            write_zeroes(file, part.0, part.1).await
        }
        done => done.map(|_| ()),
    }
}

async fn write_zeroes(file: &Rc<dyn File>, at: u64, bytes: u64) -> io::Result<()> {
    let zeroes = Buf::zeroes(small(ZERO_CHUNK_BYTES.min(bytes)));
    for from in (at..at + bytes).step_by(small(ZERO_CHUNK_BYTES)) {
        let len = small(ZERO_CHUNK_BYTES.min(at + bytes - from));
        let op = FileOp::Write {
            offset: from,
            data: zeroes.slice(0..len),
            durable: Durable::No,
        };
        file.submit(op).await?;
    }
    Ok(())
}

async fn copy(
    (source, from): (&Rc<dyn File>, u64),
    (target, to): (&Rc<dyn File>, u64),
    bytes: u64,
) -> io::Result<()> {
    for done in (0..bytes).step_by(small(COPY_CHUNK_BYTES)) {
        let len = small(COPY_CHUNK_BYTES.min(bytes - done));
        let read = read_aligned(source, from + done, len).await?;
        write_aligned(target, to + done, &read).await?;
    }
    Ok(())
}

/// Writes as the file's alignment wants it: what is around a part of a unit is read and written
/// again.
async fn write_aligned(file: &Rc<dyn File>, at: u64, bytes: &[u8]) -> io::Result<()> {
    let alignment = u64::from(file.facts().alignment.max(1));
    let offset = at - at % alignment;
    let end = (at + bytes.len() as u64).next_multiple_of(alignment);
    let data = if small(end - offset) == bytes.len() {
        Buf::copy_of(bytes)
    } else {
        let mut all = read_aligned(file, offset, small(end - offset)).await?;
        let from = small(at - offset);
        all[from..from + bytes.len()].copy_from_slice(bytes);
        Buf::copy_of(&all)
    };
    let op = FileOp::Write {
        offset,
        data,
        durable: Durable::No,
    };
    file.submit(op).await.map(|_| ())
}
