//! For tests: TCP ports that no other test takes, nor a connection that goes out.
//!
//! A port that the kernel gave, and that was given back, goes to whoever asks next: to a test of
//! another process, or to a connection. So these lie below those that the kernel gives
//! (`net.ipv4.ip_local_port_range`), and each is locked in a file as long as the process lives.

use std::fs::{self, File, OpenOptions};
use std::net::TcpListener;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Where they lie: the kernel gives those from 32768 on.
const PORTS: Range<u16> = 12_000..32_000;

/// Those of this process, and where the search goes on.
struct Taken {
    next: Option<u16>,
    locks: Vec<File>,
}

static TAKEN: Mutex<Taken> = Mutex::new(Taken {
    next: None,
    locks: Vec::new(),
});

fn lock_dir() -> PathBuf {
    std::env::temp_dir().join("causeway-test-ports")
}

/// The lock of a port, if nobody has it.
fn locked(dir: &Path, port: u16) -> Option<File> {
    let path = dir.join(port.to_string());
    let made = OpenOptions::new().create_new(true).write(true).open(&path);
    // It may be another user's: to lock it, reading will do.
    let file = made.or_else(|_| File::open(&path)).ok()?;
    file.try_lock().ok()?;
    Some(file)
}

/// A port of 127.0.0.1 that nobody listens at, and that is this process' as long as it lives.
///
/// # Panics
/// All of them are taken.
#[must_use]
pub fn free_port() -> u16 {
    let dir = lock_dir();
    let _there = fs::create_dir_all(&dir);
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let count = u32::from(PORTS.end - PORTS.start);
    // Processes begin at different ones, so that they seldom meet.
    let first = taken.next.unwrap_or_else(|| at(std::process::id() * 61));
    let offset = u32::from(first - PORTS.start);
    for port in (0..count).map(|it| at(offset + it)) {
        let Some(lock) = locked(&dir, port) else {
            continue;
        };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            taken.locks.push(lock);
            taken.next = Some(at(u32::from(port - PORTS.start) + 1));
            return port;
        }
    }
    panic!("all ports from {} to {} are taken", PORTS.start, PORTS.end);
}

/// The port at this place of all, which begin anew behind the last one.
fn at(offset: u32) -> u16 {
    let count = u32::from(PORTS.end - PORTS.start);
    let offset = u16::try_from(offset % count).expect("there are fewer than 65536");
    PORTS.start + offset
}

#[cfg(test)]
mod test {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn nobody_gets_a_port_twice_and_none_that_somebody_listens_at() {
        let first = free_port();
        // Somebody who asks nobody.
        let next = at(u32::from(first - PORTS.start) + 1);
        let _listener = TcpListener::bind(("127.0.0.1", next));
        let more: BTreeSet<u16> = (0..50).map(|_| free_port()).collect();
        assert_eq!(more.len(), 50);
        assert!(!more.contains(&first) && !more.contains(&next));
        assert!(more.iter().all(|it| PORTS.contains(it)));
    }

    #[test]
    fn another_process_does_not_get_it_either() {
        let port = free_port();
        assert!(
            locked(&lock_dir(), port).is_none(),
            "a second description of the file cannot be locked"
        );
    }
}
