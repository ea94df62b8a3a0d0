//! A child process that works for a daemon: it says lines, takes lines, and never outlives whoever
//! started it.
//!
//! **Contract.** A line is never longer than the bound, or the child is a failed one. Its end is
//! asked for by the end of its standard input; who does not end in time is killed, and every child
//! is waited for. Dropping one kills it. Where the daemon itself is killed, the child sees the end
//! of its standard input.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{self, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// What of standard error is kept, in bytes.
const SAID_MAX: usize = 4096;

/// A child that runs.
#[derive(Debug)]
pub struct Child {
    process: process::Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// The part of a line that has come.
    partial: Vec<u8>,
    line_max: usize,
    said: Arc<Mutex<VecDeque<u8>>>,
    /// Reads what the child says to standard error, until its end.
    listens: Option<JoinHandle<()>>,
}

/// Keeps the last of what is said.
async fn keep(mut from: ChildStderr, said: Arc<Mutex<VecDeque<u8>>>) {
    let mut bytes = [0; 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend(bytes.iter().take(read));
        let over = said.len().saturating_sub(SAID_MAX);
        said.drain(..over);
    }
}

impl Child {
    /// Starts `program` with `words`, of which no line is longer than `line_max` bytes. On a thread
    /// with a tokio runtime.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: &Path, words: &[String], line_max: usize) -> io::Result<Self> {
        let mut process = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let said = Arc::default();
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let errors = process.stderr.take();
        let listens = errors.map(|errors| tokio::spawn(keep(errors, Arc::clone(&said))));
        Ok(Self {
            process,
            input,
            output: BufReader::new(output.expect("it is piped")),
            partial: Vec::new(),
            line_max,
            said,
            listens,
        })
    }

    /// The next line, without its end; `None`: there are no more. A call that is dropped loses
    /// nothing.
    ///
    /// # Errors
    /// It cannot be read, or is too long.
    pub async fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let there = self.output.fill_buf().await?;
            if there.is_empty() {
                let rest = std::mem::take(&mut self.partial);
                return Ok((!rest.is_empty()).then_some(rest));
            }
            let end = there.iter().position(|byte| *byte == b'\n');
            let part = there.get(..end.unwrap_or(there.len())).unwrap_or_default();
            if self.partial.len() + part.len() > self.line_max {
                let why = format!("a line of more than {} bytes", self.line_max);
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            self.partial.extend_from_slice(part);
            let taken = part.len() + usize::from(end.is_some());
            self.output.consume(taken);
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.partial)));
            }
        }
    }

    /// Says a line to it; `false`: it does not listen any more.
    pub async fn say(&mut self, line: &str) -> bool {
        let Some(input) = &mut self.input else {
            return false;
        };
        input.write_all(line.as_bytes()).await.is_ok() && input.flush().await.is_ok()
    }

    /// Asks it to end: its standard input does.
    pub fn ask_to_end(&mut self) {
        self.input = None;
    }

    /// The last of what it wrote to standard error.
    #[must_use]
    pub fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = said.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until it is gone; kills it when that takes longer than `patience`. `true`: it ended by
    /// itself. What it wrote to standard error is there then, all of it, unless a child of its own
    /// holds that open for longer than `patience`.
    pub async fn end(&mut self, patience: Duration) -> bool {
        let itself = self.wait(patience).await;
        if let Some(listens) = &mut self.listens
            && timeout(patience, listens).await.is_ok()
        {
            self.listens = None;
        }
        itself
    }

    /// Waits until it is gone, or kills it.
    async fn wait(&mut self, patience: Duration) -> bool {
        self.input = None;
        if timeout(patience, self.process.wait()).await.is_ok() {
            return true;
        }
        let number = self.process.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = number.and_then(Pid::from_raw) {
            let _gone = kill_process(pid, Signal::KILL);
        }
        // Who was killed is gone soon, but for one that hangs in a call of the system.
        let _gone = timeout(patience, self.process.wait()).await;
        false
    }
}

#[cfg(test)]
mod test;
