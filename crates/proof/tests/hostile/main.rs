//! The real daemon, on the real clock, among hosts that are silent, slow, dead or mean harm.

#![expect(
    clippy::disallowed_methods,
    reason = "what is tested is time as it passes outside of any core"
)]
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

#[path = "../common/mod.rs"]
mod common;
mod crowd;
mod silence;
mod starving;

use common::client::Client;
use common::daemon::{Daemon, IQN};
use std::time::{Duration, Instant};

/// A LUN that every initiator may use.
fn objects(daemon: &Daemon) {
    daemon.apply(
        "[[lun]]\nname = \"d\"\nsize = \"256MiB\"\n[[target]]\nname = \"t\"\n[[host]]\nname = \"all\"\n\
         iqn = [\"*\"]\n[[grant]]\nhost = \"all\"\nlun = \"d\"\ntarget = \"t\"\nlun_id = 0\n",
    );
}

fn target() -> String {
    format!("{IQN}:t")
}

/// A session of `initiator`, past its unit attentions.
fn login(daemon: &Daemon, initiator: &str) -> Client {
    let config = common::client::config(initiator, &target());
    let mut client = Client::login(&daemon.portals[0], &config).unwrap();
    client.settle();
    client
}

fn now() -> Instant {
    Instant::now()
}

fn rest(span: Duration) {
    std::thread::sleep(span);
}
