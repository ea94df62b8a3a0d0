//! The log of a process that serves: lines on standard error, which never hold up what it serves.
//!
//! **Contract.** Whoever logs something goes on at once. Lines wait in a bounded queue for a
//! thread that writes them; where nobody takes them (a pipe that is not read, a terminal that is
//! stopped), those that the queue has no room for are lost, and counted.

use manifest::config::LogFormat;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};

/// Lines that may wait: enough for what a start with ten thousand LUNs logs, and a few MiB.
const LINES_MAX: usize = 1 << 14;

/// Bytes of its end that are kept in memory, for a support bundle.
const TAIL_BYTES: usize = 1 << 20;

/// The log; what waits is written when it is dropped, for at most about a second.
pub struct Log {
    lost: Lost,
    tail: Tail,
    _writer: WorkerGuard,
}

impl Log {
    /// Begins the log of this process.
    pub fn start(format: LogFormat) -> Self {
        let (queue, log) = Self::new(std::io::stderr(), LINES_MAX);
        let lines = tracing_subscriber::fmt()
            .with_writer(queue)
            .with_ansi(false);
        match format {
            LogFormat::Text => lines.with_target(false).init(),
            LogFormat::Json => lines.json().init(),
        }
        log
    }

    fn new(to: impl Write + Send + 'static, lines_max: usize) -> (NonBlocking, Self) {
        let tail = Tail::default();
        let (queue, writer) = NonBlockingBuilder::default()
            .lossy(true)
            .buffered_lines_limit(lines_max)
            .thread_name("log")
            .finish(Kept {
                to,
                tail: tail.clone(),
            });
        let lost = Lost {
            counter: queue.error_counter(),
            logged: Arc::default(),
        };
        let log = Self {
            lost,
            tail,
            _writer: writer,
        };
        (queue, log)
    }

    /// Its end.
    pub fn tail(&self) -> Tail {
        self.tail.clone()
    }

    /// What of it is lost.
    pub fn lost(&self) -> Lost {
        self.lost.clone()
    }
}

/// The end of the log, in memory.
#[derive(Clone, Default)]
pub struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    /// What was written lately, from the beginning of a line on.
    pub fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let is_whole = bytes.len() < TAIL_BYTES;
        match text.find('\n') {
            Some(end) if !is_whole => text[end + 1..].to_owned(),
            _ => text,
        }
    }

    fn keep(&self, line: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(line);
        let over = kept.len().saturating_sub(TAIL_BYTES);
        kept.drain(..over);
    }
}

/// Writes lines, and keeps the last of them: on the log's own thread, which nobody waits for.
struct Kept<W> {
    to: W,
    tail: Tail,
}

impl<W: Write> Write for Kept<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // What nobody takes is kept all the same.
        self.tail.keep(line);
        self.to.write_all(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Lines of the log that nobody will read.
#[derive(Clone)]
pub struct Lost {
    counter: ErrorCounter,
    /// How many the log has a warning of.
    logged: Arc<AtomicUsize>,
}

impl Lost {
    /// How many since the start, in words; nothing where there are none.
    pub fn notice(&self) -> Option<String> {
        let lost = self.counter.dropped_lines();
        (lost > 0).then(|| {
            format!("{lost} lines of the log are lost: standard error takes them too slowly, or not at all")
        })
    }

    /// Logs how many are lost when there are new ones. To be called now and then: this may be lost
    /// as well, and is then logged again.
    pub fn report(&self) {
        let lost = self.counter.dropped_lines();
        if self.logged.swap(lost, Ordering::Relaxed) < lost {
            let notice = self.notice().unwrap_or_default();
            tracing::warn!("{notice}");
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::sync::mpsc::{self, Receiver, Sender};

    /// Says that it has a line, and takes it when it is let.
    struct Reluctant {
        has: Sender<()>,
        may: Receiver<()>,
        took: Sender<Vec<u8>>,
    }

    impl Write for Reluctant {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let over = || io::Error::other("the test is over");
            self.has.send(()).map_err(|_| over())?;
            self.may.recv().map_err(|_| over())?;
            self.took.send(line.to_vec()).map_err(|_| over())?;
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The other side of it.
    struct Reader {
        has: Receiver<()>,
        let_one: Sender<()>,
        lines: Receiver<Vec<u8>>,
    }

    impl Reader {
        /// Waits until a line is being written, which goes no further.
        fn holds(&self) {
            self.has.recv().expect("the log writes");
        }

        /// Lets the line that is held go, and reads it.
        fn read(&self) -> String {
            self.let_one.send(()).expect("the log writes");
            let line = self.lines.recv().expect("the log writes");
            String::from_utf8(line).expect("text")
        }
    }

    fn reluctant() -> (Reluctant, Reader) {
        let ((has, is_held), (let_one, may)) = (mpsc::channel(), mpsc::channel());
        let (took, lines) = mpsc::channel();
        let reader = Reader {
            has: is_held,
            let_one,
            lines,
        };
        (Reluctant { has, may, took }, reader)
    }

    #[test]
    fn lines_that_nobody_takes_hold_up_nobody_and_their_loss_is_reported_as_soon_as_somebody_does()
    {
        let (writer, reader) = reluctant();
        let (queue, log) = Log::new(writer, 4);
        let lines_of = tracing_subscriber::fmt().with_writer(Mutex::new(queue));
        tracing::subscriber::with_default(lines_of.finish(), || {
            assert_eq!(log.lost().notice(), None);
            tracing::info!(number = 0, "line");
            reader.holds();
            for number in 1..100 {
                tracing::info!(number, "line");
            }
            let notice = log.lost().notice().expect("most are lost");
            assert!(notice.contains("95 lines of the log are lost"), "{notice}");
            // Still nobody takes any: this is lost, too.
            log.lost().report();
            log.lost().report();
            for number in 0..5 {
                let line = reader.read();
                assert!(line.contains(&format!("number={number}")), "{line}");
                if number < 4 {
                    reader.holds();
                }
            }
            log.lost().report();
            reader.holds();
            let warning = reader.read();
            assert!(
                warning.contains("97 lines of the log are lost"),
                "{warning}"
            );
            // Once.
            log.lost().report();
            tracing::info!("after");
            reader.holds();
            let after = reader.read();
            assert!(after.contains("after"), "{after}");
        });
    }

    #[test]
    fn the_end_of_the_log_is_kept_from_the_beginning_of_a_line_on() {
        let (tail, to) = (Tail::default(), Vec::new());
        let mut kept = Kept {
            to,
            tail: tail.clone(),
        };
        kept.write_all(b"first\nsecond\n").unwrap();
        assert_eq!(tail.text(), "first\nsecond\n");
        for number in 0..200_000 {
            kept.write_all(format!("line {number}\n").as_bytes())
                .unwrap();
        }
        let text = tail.text();
        assert!(text.len() < TAIL_BYTES && text.len() > TAIL_BYTES - 20);
        assert!(text.starts_with("line ") && text.ends_with("line 199999\n"));
        assert!(kept.to.starts_with(b"first\n"), "all of it was written");
    }
}
