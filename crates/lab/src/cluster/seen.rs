//! What nodes say of the LUN, asked at their sockets.

use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};

/// The LUN that has the copies.
pub(super) const LUN: &str = "vm01";
/// A node that is halted answers nothing.
const ANSWER_MAX: Duration = Duration::from_millis(500);

/// A node's copy, as it says itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Mirror {
    /// `owner`, `solo`, `replica` and so on.
    pub(super) state: String,
    /// Nodes that have all of it, as far as it knows.
    pub(super) in_sync: Vec<String>,
    /// Number of owners so far.
    pub(super) epoch: u64,
    /// Hosts are served by it.
    pub(super) serves: bool,
    /// All of it in a sentence.
    pub(super) text: String,
}

#[derive(Deserialize)]
struct Lun {
    mirror: Mirror,
}

/// The body of an answer of 200.
pub(super) async fn asked(socket: &Path, what: &str) -> Option<String> {
    let ask = async {
        let mut stream = UnixStream::connect(socket).await.ok()?;
        let words =
            format!("GET /api/v1/{what} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n");
        stream.write_all(words.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let is_well = head.split(' ').nth(1) == Some("200");
        is_well.then(|| body.to_owned())
    };
    timeout(ANSWER_MAX, ask).await.ok()?
}

/// What it says of the LUN.
pub(super) async fn mirror(socket: &Path) -> Option<Mirror> {
    let body = asked(socket, &format!("luns/{LUN}")).await?;
    let lun: Lun = serde_json::from_str(&body).ok()?;
    Some(lun.mirror)
}

/// The node that serves, or would as soon as it may.
pub(super) fn owner(both: &[Option<Mirror>; 2]) -> Option<usize> {
    let is = |at: usize, words: &[&str]| {
        let mirror = both[at].as_ref();
        mirror.is_some_and(|it| words.contains(&it.state.as_str()))
    };
    let first = |words: &[&str]| (0..2).find(|at| is(*at, words));
    // One that does not know yet that it was replaced holds.
    first(&["owner", "solo"]).or_else(|| first(&["opening", "removing", "holding", "yielding"]))
}

/// Both have all of it, and say so.
pub(super) fn are_whole(both: &[Option<Mirror>; 2]) -> bool {
    let mut states: Vec<&str> = both.iter().flatten().map(|it| it.state.as_str()).collect();
    states.sort_unstable();
    let all = both.iter().flatten().all(|it| it.in_sync.len() == 2);
    all && states == ["owner", "replica"]
}

/// Seconds, and the state of the copy on each node from then on.
pub(super) type Samples = Rc<RefCell<Vec<(f64, [String; 2])>>>;

/// How often nodes are asked.
const ASKED_EVERY: Duration = Duration::from_millis(100);

/// Notes the states of both as they change.
pub(super) async fn follow(sockets: [PathBuf; 2], began: Instant, found: Samples) {
    loop {
        let both = tokio::join!(mirror(&sockets[0]), mirror(&sockets[1]));
        let both = [both.0, both.1];
        let states = both.map(|it| it.map_or_else(|| SILENT.to_owned(), |it| it.state));
        let is_new = found.borrow().last().is_none_or(|last| last.1 != states);
        if is_new {
            let at = began.elapsed().as_secs_f64();
            found.borrow_mut().push((at, states));
        }
        sleep(ASKED_EVERY).await;
    }
}

/// The state of a node that answers nothing.
pub(super) const SILENT: &str = "silent";

#[cfg(test)]
mod test {
    use super::*;

    fn mirror(state: &str, in_sync: usize) -> Option<Mirror> {
        Some(Mirror {
            state: state.to_owned(),
            in_sync: vec!["san-a".to_owned(); in_sync],
            epoch: 1,
            serves: state == "owner",
            text: String::new(),
        })
    }

    #[test]
    fn copies_are_whole_when_both_nodes_say_so_and_the_owner_is_who_serves() {
        assert!(are_whole(&[mirror("replica", 2), mirror("owner", 2)]));
        assert!(!are_whole(&[mirror("replica", 2), mirror("owner", 1)]));
        assert!(!are_whole(&[mirror("replica", 2), None]));
        assert!(!are_whole(&[mirror("solo", 1), mirror("catching-up", 1)]));
        assert_eq!(owner(&[mirror("replica", 2), mirror("owner", 2)]), Some(1));
        assert_eq!(owner(&[mirror("holding", 2), mirror("solo", 1)]), Some(1));
        assert_eq!(owner(&[mirror("holding", 2), None]), Some(0));
        assert_eq!(owner(&[None, mirror("replica", 2)]), None);
    }
}
