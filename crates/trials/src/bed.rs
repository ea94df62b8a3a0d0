//! Lab beds: within which bounds they are asked for, and how one is, from what its child says.

use crate::bed_view::{
    BedLoadView, BedNote, BedPath, BedPlan, BedState, BedView, TopologyView, WantedBed,
};
use crate::line::{BedLine, PathSecond, Second};
use crate::second::PATHS_MAX;
use crate::spec::refused;
use manifest::code::Code;
use manifest::problem::{FieldFault, Problem};
use manifest::size::Size;

/// The most that happens to a bed and is kept.
const NOTES_MAX: usize = 200;

impl WantedBed {
    /// The words behind `causeway lab drive`, where everything is within its bounds; `topologies`
    /// and `is_rate`: what there is.
    ///
    /// # Errors
    /// Every member that is not.
    pub fn check(
        &self,
        topologies: &[TopologyView],
        is_rate: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>, Problem> {
        let mut faults = Vec::new();
        let mut add = |field: &str, message: String| {
            let field = field.to_owned();
            faults.push(FieldFault { field, message });
        };
        if !topologies.iter().any(|it| it.id == self.topology) {
            let all: Vec<&str> = topologies.iter().map(|it| it.id.as_str()).collect();
            add("topology", format!("there are {}", all.join(", ")));
        }
        let rate = self.rate.as_deref().unwrap_or("250M");
        if !is_rate(rate) {
            add(
                "rate",
                "write it like 250M or 1G, from 1M to 10G".to_owned(),
            );
        }
        let block = self.load.block.parse::<Size>().map_or(0, Size::bytes);
        if !(4096..=1 << 20).contains(&block) || !block.is_multiple_of(512) {
            add("load.block", "4K to 1M, a multiple of 512".to_owned());
        }
        if !(1..=64).contains(&self.load.outstanding) {
            add("load.outstanding", "1 to 64".to_owned());
        }
        if self.load.write_percent > 100 {
            add("load.write_percent", "0 to 100".to_owned());
        }
        if !(10..=3600).contains(&self.load.seconds) {
            add("load.seconds", "10 to 3600".to_owned());
        }
        if !faults.is_empty() {
            return Err(refused("the bed", faults));
        }
        let load = &self.load;
        Ok(vec![
            self.topology.clone(),
            format!("--rate={rate}"),
            format!("--block={block}"),
            format!("--outstanding={}", load.outstanding),
            format!("--write-percent={}", load.write_percent),
            format!("--seconds={}", load.seconds),
        ])
    }
}

/// A bed, from what its child says.
#[derive(Clone, PartialEq, Debug)]
pub struct BedRecord {
    /// As far as its child has said.
    pub view: BedView,
}

impl BedRecord {
    /// A bed that is about to be built.
    #[must_use]
    pub fn new(id: u64, topology: &TopologyView, by: &str, at: String, words: &[String]) -> Self {
        Self {
            view: BedView {
                id,
                topology: topology.id.clone(),
                title: topology.title.clone(),
                state: BedState::Starting,
                by: by.to_owned(),
                started: at,
                ended: None,
                problem: None,
                namespaces: Vec::new(),
                command_line: format!("causeway lab drive {}", words.join(" ")),
                plan: topology.plan.clone(),
                paths: Vec::new(),
                load: BedLoadView::default(),
                seconds: Vec::new(),
                log: Vec::new(),
            },
        }
    }

    /// Takes a line of its child; `true`: nothing comes after it.
    pub fn take(&mut self, line: BedLine) -> bool {
        match line {
            BedLine::Built(facts) => {
                let view = &mut self.view;
                view.state = BedState::Running;
                view.namespaces = facts.namespaces;
                view.plan = facts.plan;
                view.load.command_line = facts.load;
                self.note("the bed stands, and the load begins".to_owned());
            }
            BedLine::Second(second) => self.second(second),
            BedLine::Link(order) => {
                let links = &mut self.view.plan.links;
                if let Some(link) = links.iter_mut().find(|it| it.id == order.link) {
                    link.state = order.state;
                    let text = format!("link {} is {}", link.id, order.state.word());
                    self.note(text);
                }
            }
            BedLine::Refused(problem) => self.note(problem.detail.clone()),
            BedLine::LoadEnded(problem) => {
                match problem {
                    Some(problem) => {
                        self.note(format!("the load has ended: {}", problem.detail));
                        self.view.problem = Some(problem);
                    }
                    None => self.note("the load has ended, and all it read was right".to_owned()),
                }
                self.stopping();
            }
            BedLine::Failed(problem) => {
                self.view.problem = Some(problem);
                return true;
            }
        }
        false
    }

    fn second(&mut self, mut second: Second) {
        let view = &mut self.view;
        second.paths.truncate(PATHS_MAX);
        let before = std::mem::take(&mut view.paths);
        view.load.elapsed_seconds = second.elapsed;
        view.load.whole_seconds = second.whole;
        view.load.errors = second.errors;
        view.paths = second.paths.iter().map(|it| view.plan.path(it)).collect();
        let mut changed = Vec::new();
        for path in &view.paths {
            let was = before.iter().find(|it| it.now.path == path.now.path);
            if was.is_some_and(|was| was.now.state != path.now.state) {
                let (now, why) = (&path.now.state, &path.now.why);
                let why = if why.is_empty() {
                    String::new()
                } else {
                    format!(": {why}")
                };
                changed.push(format!("path {} to {} is {now}{why}", path.nic, path.port));
            }
        }
        // A minute more than the longest load has.
        if view.seconds.len() < 3660 {
            view.seconds.push(second);
        }
        for text in changed {
            self.note(text);
        }
    }

    /// Something happened to it.
    pub fn note(&mut self, text: String) {
        let log = &mut self.view.log;
        if log.len() < NOTES_MAX {
            let second = self.view.seconds.last().map_or(0, |it| it.second);
            log.push(BedNote { second, text });
        }
    }

    /// It is torn down.
    pub fn stopping(&mut self) {
        if !self.view.state.is_over() {
            self.view.state = BedState::Stopping;
        }
    }

    /// It is gone; `said`: the last of what its child wrote to standard error.
    pub fn end(&mut self, at: String, wished: bool, said: &str) {
        let view = &mut self.view;
        let was = view.state;
        view.ended = Some(at);
        let by_itself = was == BedState::Stopping;
        view.state = if view.problem.is_some() || !(wished || by_itself) {
            BedState::Failed
        } else {
            BedState::Stopped
        };
        view.paths.clear();
        if view.state == BedState::Failed && view.problem.is_none() {
            let last: String = said.trim().chars().take(500).collect();
            let detail = format!("the lab ended by itself: {last}");
            view.problem = Some(Problem::new(Code::LabFailed, detail));
        }
    }

    /// What somebody sees who knows the seconds up to `since`.
    #[must_use]
    pub fn detail(&self, since: u64) -> BedView {
        let new = self.view.seconds.iter().filter(|it| it.second > since);
        BedView {
            seconds: new.cloned().collect(),
            ..self.brief()
        }
    }

    /// It without its seconds.
    #[must_use]
    pub fn brief(&self) -> BedView {
        BedView {
            seconds: Vec::new(),
            ..self.view.clone()
        }
    }
}

impl BedPlan {
    /// A path with the names of its ends.
    fn path(&self, now: &PathSecond) -> BedPath {
        let ip = |text: &str| text.rsplit_once(':').map_or(text, |(ip, _)| ip).to_owned();
        let named = |kind: &str, address: &str| {
            let machine = self.machines.iter().find(|it| it.kind == kind)?;
            let port = machine.ports.iter().find(|it| it.address == address)?;
            Some(port.name.clone())
        };
        BedPath {
            nic: named("host", &ip(&now.from)).unwrap_or_default(),
            port: named("target", &ip(&now.portal)).unwrap_or_default(),
            now: now.clone(),
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::bed_view::BedFacts;
    use crate::bed_view::{BedLink, BedLoad, BedMachine, BedPort};
    use crate::line::{LinkOrder, LinkState, Phase};

    fn port(name: &str, address: &str) -> BedPort {
        BedPort {
            name: name.to_owned(),
            card: String::new(),
            controller: None,
            address: address.to_owned(),
            rate_bits: 1,
            network: 0,
            link: name.to_owned(),
        }
    }

    fn topology() -> TopologyView {
        let machine = |kind: &str, port| BedMachine {
            name: kind.to_owned(),
            kind: kind.to_owned(),
            ports: vec![port],
        };
        TopologyView {
            id: "two".to_owned(),
            title: String::new(),
            paths: String::new(),
            plan: BedPlan {
                machines: vec![
                    machine("host", port("eth0", "10.77.0.1")),
                    machine("target", port("p0", "10.77.0.101")),
                ],
                switches: Vec::new(),
                links: vec![BedLink {
                    id: "eth0".to_owned(),
                    machine: "host".to_owned(),
                    port: "eth0".to_owned(),
                    switch: "br0".to_owned(),
                    state: LinkState::Up,
                }],
            },
        }
    }

    fn second(number: u64, state: &str) -> BedLine {
        BedLine::Second(Second {
            second: number,
            phase: Phase::Measuring,
            elapsed: 1.0,
            whole: 10.0,
            iops: 1.0,
            read_iops: None,
            write_iops: None,
            bytes_per_second: 0.0,
            errors: 0,
            p50_us: None,
            p99_us: None,
            max_us: None,
            paths: vec![PathSecond {
                path: "a".to_owned(),
                from: "10.77.0.1".to_owned(),
                portal: "10.77.0.101:3260".to_owned(),
                state: state.to_owned(),
                ..PathSecond::default()
            }],
        })
    }

    #[test]
    fn a_bed_shows_its_links_and_paths_and_what_happened_to_them() {
        let topology = topology();
        let mut record = BedRecord::new(1, &topology, "admin", "t".to_owned(), &[]);
        let built = BedFacts {
            namespaces: vec!["n-host".to_owned()],
            plan: topology.plan.clone(),
            load: "causeway bench".to_owned(),
        };
        assert!(!record.take(BedLine::Built(built)));
        assert_eq!(record.view.state, BedState::Running);
        record.take(second(1, "active"));
        let path = &record.view.paths[0];
        assert_eq!((path.nic.as_str(), path.port.as_str()), ("eth0", "p0"));
        let order = LinkOrder {
            link: "eth0".to_owned(),
            state: LinkState::Cut,
        };
        record.take(BedLine::Link(order));
        assert_eq!(record.view.plan.links[0].state, LinkState::Cut);
        record.take(second(2, "down"));
        let log: Vec<&str> = record.view.log.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(log[1..], ["link eth0 is cut", "path eth0 to p0 is down"]);
        assert_eq!(record.detail(1).seconds.len(), 1);
        record.end("u".to_owned(), true, "");
        assert_eq!(record.view.state, BedState::Stopped);
    }

    #[test]
    fn a_child_that_dies_is_a_bed_that_failed_and_one_whose_load_ended_is_not() {
        let mut record = BedRecord::new(1, &topology(), "admin", "t".to_owned(), &[]);
        record.end("u".to_owned(), false, "killed");
        assert_eq!(record.view.state, BedState::Failed);
        let mut record = BedRecord::new(1, &topology(), "admin", "t".to_owned(), &[]);
        record.take(BedLine::LoadEnded(None));
        record.end("u".to_owned(), false, "");
        assert_eq!(record.view.state, BedState::Stopped);
    }

    #[test]
    fn what_is_out_of_bounds_is_named_and_never_becomes_a_word() {
        let wanted = WantedBed {
            topology: "--config=/etc/passwd".to_owned(),
            rate: Some("x".to_owned()),
            load: BedLoad {
                block: "1".to_owned(),
                outstanding: 0,
                write_percent: 101,
                seconds: 1,
            },
        };
        let problem = wanted.check(&[topology()], |_| false).unwrap_err();
        assert_eq!(problem.fields.len(), 6, "{problem}");
        let wanted = WantedBed {
            topology: "two".to_owned(),
            rate: None,
            load: BedLoad::default(),
        };
        let words = wanted.check(&[topology()], |_| true).unwrap();
        assert_eq!(words[..3], ["two", "--rate=250M", "--block=65536"]);
    }
}
