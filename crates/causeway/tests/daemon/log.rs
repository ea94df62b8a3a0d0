//! The daemon's log: whoever reads it, or does not, hosts are served.

use crate::integrity::{load, with_journal};
use crate::place::Place;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::io::{ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::process::Stdio;

/// A pipe that takes nothing more, and how many bytes it holds.
fn full_pipe() -> (PipeReader, PipeWriter, usize) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    let mut held = 0;
    loop {
        match writer.write(&[b'-'; 4096]) {
            Ok(len) => held += len,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer, held)
}

#[test]
fn hosts_and_administrators_are_served_while_nobody_reads_the_log_and_it_is_there_when_somebody_does()
 {
    let place: Place = with_journal("log-unread");
    let (mut reader, writer, held) = full_pipe();
    let daemon = place.start_with(Stdio::from(writer));
    place.run(0, "apply -f objects.toml");
    load(&place, 0, "-b4K -r -w60 -o16 -d1 -W0 --verify --destroy");
    place.run(0, "lun set vm01 integrity=false");
    assert_eq!(place.json("lun show vm01")["state"], "online");
    let mut before = vec![0; held];
    reader.read_exact(&mut before).unwrap();
    assert!(before.iter().all(|byte| *byte == b'-'));
    daemon.stop();
    let mut log = String::new();
    reader.read_to_string(&mut log).unwrap();
    for line in [
        "serving",
        "create lun vm01",
        "session begins",
        "what is read is no longer checked",
        "stopped",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
}
