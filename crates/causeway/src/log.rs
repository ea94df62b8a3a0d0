//! The log of a process that serves: lines on standard error, which never hold up what it serves.
//!
//! **Contract.** Whoever tells something goes on at once. Lines wait in a bounded queue for a thread that writes them; where nobody takes
//! them (a pipe that is not read, a terminal that is stopped), those that the queue has no room for are lost, and counted.

use control::config::LogFormat;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};

/// Lines that may wait: enough for what a start with ten thousand LUNs tells, and a few MiB.
const LINES_MAX: usize = 1 << 14;

/// The log; what waits is written when it is dropped, for at most about a second.
pub(crate) struct Log {
    lost: Lost,
    _writer: WorkerGuard,
}

impl Log {
    /// Begins the log of this process.
    pub(crate) fn start(format: LogFormat) -> Self {
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
        let (queue, writer) = NonBlockingBuilder::default()
            .lossy(true)
            .buffered_lines_limit(lines_max)
            .thread_name("log")
            .finish(to);
        let lost = Lost {
            counter: queue.error_counter(),
            told: Arc::default(),
        };
        let log = Self {
            lost,
            _writer: writer,
        };
        (queue, log)
    }

    /// What of it is lost.
    pub(crate) fn lost(&self) -> Lost {
        self.lost.clone()
    }
}

/// Lines of the log that nobody will read.
#[derive(Clone)]
pub(crate) struct Lost {
    counter: ErrorCounter,
    /// How many the log has heard of.
    told: Arc<AtomicUsize>,
}

impl Lost {
    /// How many since the start, in words; nothing where there are none.
    pub(crate) fn notice(&self) -> Option<String> {
        let lost = self.counter.dropped_lines();
        (lost > 0).then(|| {
            format!("{lost} lines of the log are lost: standard error takes them too slowly, or not at all")
        })
    }

    /// Tells the log when there are new ones. To be called now and then: this may be lost as well, and is then told again.
    pub(crate) fn tell(&self) {
        let lost = self.counter.dropped_lines();
        if self.told.swap(lost, Ordering::Relaxed) < lost {
            let notice = self.notice().unwrap_or_default();
            tracing::warn!("{notice}");
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::io;
    use std::sync::Mutex;
    use std::sync::mpsc::{self, Receiver, Sender};
    use std::time::Duration;

    /// Takes a line whenever it is let.
    struct Reluctant(Receiver<()>, Sender<Vec<u8>>);

    impl Write for Reluctant {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            let _ = self.1.send(line.to_vec());
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_nobody_takes_hold_up_nobody_and_their_loss_is_told_as_soon_as_somebody_does() {
        let (let_one, may) = mpsc::channel();
        let (wrote, lines) = mpsc::channel();
        let (queue, log) = Log::new(Reluctant(may, wrote), 4);
        let lines_of = tracing_subscriber::fmt().with_writer(Mutex::new(queue));
        tracing::subscriber::with_default(lines_of.finish(), || {
            assert_eq!(log.lost().notice(), None);
            for number in 0..100 {
                tracing::info!(number, "told");
            }
            let notice = log.lost().notice().expect("most are lost");
            assert!(notice.contains("lines of the log are lost"), "{notice}");
            // Still nobody takes any: this is lost, too.
            log.lost().tell();
            log.lost().tell();
            for _ in 0..100 {
                let_one.send(()).unwrap_or_default();
            }
            let first = lines.recv_timeout(Duration::from_secs(10));
            let first = String::from_utf8(first.unwrap_or_default()).unwrap_or_default();
            assert!(first.contains("number=0"), "{first}");
            while lines.recv_timeout(Duration::from_millis(200)).is_ok() {}
            log.lost().tell();
            let told = lines.recv_timeout(Duration::from_secs(10));
            let told = String::from_utf8(told.unwrap_or_default()).unwrap_or_default();
            assert!(told.contains("lines of the log are lost"), "{told}");
            log.lost().tell();
            assert!(
                lines.recv_timeout(Duration::from_millis(200)).is_err(),
                "once"
            );
        });
    }
}
