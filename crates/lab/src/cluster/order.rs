//! What is done to a cluster of a lab, in words: `kill owner`, `hole a.link`, `start all`; and
//! lists of that, each with its time.

use crate::error::LabError;
use crate::port::Harm;
use crate::rate::Rate;
use serde::Serialize;
use std::time::Duration;

/// One of the nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// The one of this place: `a`, `b`.
    Node(usize),
    /// The one that serves the LUN now.
    Owner,
    /// The one that does not.
    Other,
}

/// One or more of the machines of a bed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Machine {
    /// The host.
    Host,
    /// A node.
    Node(Which),
    /// The machine that has nothing but a member of etcd.
    Third,
}

/// Programs that something is done to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Programs {
    /// The daemon of a node.
    Node(Which),
    /// Those of both nodes.
    Nodes,
    /// A member of etcd, from 1.
    Member(usize),
    /// The member that leads.
    Leader,
    /// Two members of three.
    Majority,
    /// All members.
    Etcd,
    /// All of these.
    All,
}

/// What is done to a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// It ends without a warning.
    Kill,
    /// It ends in order.
    Stop,
    /// It begins, where it does not run.
    Start,
    /// It is halted, with its connections open.
    Pause,
    /// It goes on.
    Resume,
    /// A node gives away what it owns.
    Drain,
}

/// Wires that something is done to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wires {
    /// This NIC of a machine, or all of them.
    Of(Machine, Option<String>),
    /// What the nodes have between them.
    Link,
    /// All that are harmed.
    All,
}

/// What is to be broken, or mended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// To programs.
    Program(Act, Programs),
    /// To wires; none: they are brought back to what they were.
    Wire(Option<Harm>, Wires),
}

/// What a slow link carries.
const SLOW: Rate = Rate::megabits(10);

fn wrong(what: impl Into<String>) -> LabError {
    LabError::usage(
        what,
        "an order is kill, stop, start, pause, resume or drain with a, b, owner, other, both, etcd-1 to etcd-3, \
         etcd-leader, etcd-majority, etcd-all or all; or cut, hole, deaf, mute, slow or mend with a link \
         (host.eth0, a.p0, owner.link, other.etcd), a machine, link or all",
    )
}

impl Order {
    /// Reads it.
    ///
    /// # Errors
    /// What there is not.
    pub fn parse(text: &str) -> Result<Self, LabError> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [verb, thing] = words.as_slice() else {
            return Err(wrong(format!("'{text}' is no order")));
        };
        if let Some(act) = act(verb) {
            let all = programs(thing);
            let all = all.ok_or_else(|| wrong(format!("there is no program {thing}")))?;
            let is_node = matches!(all, Programs::Node(_));
            if act == Act::Drain && !is_node {
                return Err(wrong("one node is drained at a time"));
            }
            return Ok(Self::Program(act, all));
        }
        let harm = harm(verb).ok_or_else(|| wrong(format!("there is no order {verb}")))?;
        let wires = wires(thing).ok_or_else(|| wrong(format!("there is no link {thing}")))?;
        if wires == Wires::All && harm.is_some() {
            return Err(wrong("name the links: all of them can only be mended"));
        }
        Ok(Self::Wire(harm, wires))
    }
}

fn act(word: &str) -> Option<Act> {
    Some(match word {
        "kill" => Act::Kill,
        "stop" => Act::Stop,
        "start" => Act::Start,
        "pause" => Act::Pause,
        "resume" => Act::Resume,
        "drain" => Act::Drain,
        _ => return None,
    })
}

fn harm(word: &str) -> Option<Option<Harm>> {
    Some(match word {
        "cut" => Some(Harm::Cut),
        "hole" => Some(Harm::BlackHole),
        "deaf" => Some(Harm::Deaf),
        "mute" => Some(Harm::Mute),
        "slow" => Some(Harm::Slow(SLOW)),
        "mend" => None,
        _ => return None,
    })
}

fn which(word: &str) -> Option<Which> {
    Some(match word {
        "a" => Which::Node(0),
        "b" => Which::Node(1),
        "owner" => Which::Owner,
        "other" => Which::Other,
        _ => return None,
    })
}

fn programs(word: &str) -> Option<Programs> {
    if let Some(which) = which(word) {
        return Some(Programs::Node(which));
    }
    Some(match word {
        "both" => Programs::Nodes,
        "etcd-1" => Programs::Member(0),
        "etcd-2" => Programs::Member(1),
        "etcd-3" => Programs::Member(2),
        "etcd-leader" => Programs::Leader,
        "etcd-majority" => Programs::Majority,
        "etcd-all" => Programs::Etcd,
        "all" => Programs::All,
        _ => return None,
    })
}

fn wires(word: &str) -> Option<Wires> {
    match word {
        "link" => return Some(Wires::Link),
        "all" => return Some(Wires::All),
        _ => {}
    }
    let (machine, nic) = match word.split_once('.') {
        Some((machine, nic)) => (machine, Some(nic)),
        None => (word, None),
    };
    let machine = match machine {
        "host" => Machine::Host,
        "third" => Machine::Third,
        other => Machine::Node(which(other)?),
    };
    let known: &[&str] = match machine {
        Machine::Host => &["eth0", "eth1"],
        Machine::Node(_) => &["p0", "p1", "link", "etcd"],
        Machine::Third => &["etcd"],
    };
    if nic.is_some_and(|nic| !known.contains(&nic)) {
        return None;
    }
    Some(Wires::Of(machine, nic.map(str::to_owned)))
}

/// An order, its time, and how long an operation may take then.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Step {
    /// Seconds from the first one of a load.
    pub at: f64,
    /// The order in words.
    pub order: String,
    /// The longest operation that is well, in milliseconds.
    pub bar_ms: Option<f64>,
}

/// Reads a list: lines of `SECONDS ORDER [within SECONDS]`, and remarks from `#` on.
///
/// # Errors
/// Which line cannot be read, and why.
pub fn steps(text: &str) -> Result<Vec<Step>, LabError> {
    let mut all: Vec<Step> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let said = line.split('#').next().unwrap_or("").trim();
        if said.is_empty() {
            continue;
        }
        let step = step(said).map_err(|error| LabError {
            what: format!("line {}: {}", number + 1, error.what),
            ..error
        })?;
        if all.last().is_some_and(|last| last.at > step.at) {
            return Err(LabError::usage(
                format!("line {}: it comes before the line above", number + 1),
                "sort the lines by their time",
            ));
        }
        all.push(step);
    }
    if all.is_empty() {
        return Err(LabError::usage(
            "the list is empty",
            "write lines such as `0 kill owner within 5`",
        ));
    }
    Ok(all)
}

fn step(line: &str) -> Result<Step, LabError> {
    let bad = || {
        LabError::usage(
            format!("'{line}' is no step"),
            "write SECONDS ORDER, and within SECONDS where there is a bar: `0 kill owner within 5`",
        )
    };
    let (at, rest) = line.split_once(char::is_whitespace).ok_or_else(bad)?;
    let at = seconds(at).ok_or_else(bad)?;
    let (order, bar) = match rest.split_once(" within ") {
        Some((order, bar)) => (order, Some(seconds(bar).ok_or_else(bad)?)),
        None => (rest, None),
    };
    Order::parse(order)?;
    Ok(Step {
        at,
        order: order.split_whitespace().collect::<Vec<_>>().join(" "),
        bar_ms: bar.map(|it| it * 1e3),
    })
}

/// Up to an hour.
fn seconds(text: &str) -> Option<f64> {
    let number: f64 = text.trim().trim_end_matches('s').parse().ok()?;
    (0.0..=3600.0).contains(&number).then_some(number)
}

impl Step {
    pub(super) fn time(&self) -> Duration {
        Duration::from_secs_f64(self.at)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn orders_are_read_as_they_are_said_and_nothing_else_is() {
        let read = |text: &str| Order::parse(text).ok();
        let node = |act, which| Some(Order::Program(act, Programs::Node(which)));
        assert_eq!(read("kill owner"), node(Act::Kill, Which::Owner));
        assert_eq!(read(" pause  b "), node(Act::Pause, Which::Node(1)));
        assert_eq!(read("drain other"), node(Act::Drain, Which::Other));
        let leader = Order::Program(Act::Kill, Programs::Leader);
        assert_eq!(read("kill etcd-leader"), Some(leader));
        let link = Order::Wire(Some(Harm::BlackHole), Wires::Link);
        assert_eq!(read("hole link"), Some(link));
        let nic = Wires::Of(Machine::Node(Which::Owner), Some("etcd".to_owned()));
        assert_eq!(
            read("mute owner.etcd"),
            Some(Order::Wire(Some(Harm::Mute), nic))
        );
        let all = Wires::Of(Machine::Host, None);
        assert_eq!(read("cut host"), Some(Order::Wire(Some(Harm::Cut), all)));
        assert_eq!(read("mend all"), Some(Order::Wire(None, Wires::All)));
        for bad in [
            "",
            "kill",
            "kill c",
            "kill owner now",
            "cut all",
            "cut a.eth0",
            "cut host.p0",
            "drain both",
            "drain etcd-1",
            "kill a.link",
            "burn a",
            "kill etcd-4",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_list_is_read_line_by_line_and_a_wrong_line_is_named() {
        let text = "# a remark\n0 kill owner within 5\n\n2.5s  start   all # back\n";
        let all = steps(text).unwrap();
        let first = Step {
            at: 0.0,
            order: "kill owner".to_owned(),
            bar_ms: Some(5000.0),
        };
        assert_eq!(all[0], first);
        assert_eq!((all[1].at, all[1].order.as_str()), (2.5, "start all"));
        let said = |text: &str| steps(text).unwrap_err().what;
        assert!(said("0 kill owner\n1 kill c").starts_with("line 2: there is no program c"));
        assert!(said("2 kill a\n1 kill b").contains("before the line above"));
        assert!(said("now kill a").contains("is no step"));
        assert!(said("0 kill a within long").contains("is no step"));
        assert!(said("-1 kill a").contains("is no step"));
        assert!(said("# nothing").contains("empty"));
    }
}
