//! The administrator's file: what the system or the target says wrong or not at all, and the
//! planner's options.
//!
//! ```toml
//! [planner]
//! max_active = 4
//! [[host_port]]
//! name = "eth2"
//! card = "intel-1"
//! fabric = "left"
//! [[target_port]]
//! portal = "10.1.0.10:3260"
//! controller = "A"
//! speed = "10Gb/s"
//! [[fabric]]
//! name = "left"
//! subnets = ["10.1.0.0/24"]
//! ```

use crate::facts::{Fabric, Facts, Speed};
use crate::plan::options::Options;
use serde::Deserialize;
use std::fmt;
use std::net::SocketAddr;

/// The whole file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// Options.
    pub planner: Options,
    /// About the host's ports.
    pub host_port: Vec<HostOverride>,
    /// About the target's.
    pub target_port: Vec<TargetOverride>,
    /// Names for sets of subnets.
    pub fabric: Vec<Fabric>,
}

/// What is said of a host's port.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostOverride {
    /// The system's name of the port, such as `eth1`.
    pub name: String,
    /// Ports of one card fail together; absent: what the system says.
    pub card: Option<String>,
    /// Absent: what the link negotiated.
    pub speed: Option<Speed>,
    /// Members, if it is a team.
    pub links: Option<u16>,
    /// Ports reach each other only within one fabric; absent: each subnet is one.
    pub fabric: Option<String>,
    /// False: keep off it.
    pub enabled: Option<bool>,
}

/// What is said of a target's port.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetOverride {
    /// Which: one of its portals.
    pub portal: SocketAddr,
    /// Ports of one controller fail together; absent: the portal group stands for it.
    pub controller: Option<String>,
    /// Its card in the controller.
    pub card: Option<String>,
    /// Absent: that of the fastest host port that reaches it.
    pub speed: Option<Speed>,
    /// Members, if it is a team.
    pub links: Option<u16>,
    /// Ports reach each other only within one fabric; absent: each subnet is one.
    pub fabric: Option<String>,
    /// False: keep off it.
    pub enabled: Option<bool>,
}

/// The file does not fit the facts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OverrideError {
    /// No host port has this name.
    NoHostPort(String),
    /// No target port has this portal.
    NoPortal(SocketAddr),
    /// Two entries are about the same thing.
    Twice(String),
    /// A team has at least one link.
    NoLinks(String),
    /// At least one path must be allowed to be active, and sessions must be enough for those.
    TooFew,
}

impl fmt::Display for OverrideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHostPort(name) => write!(f, "host_port: this host has no port {name}"),
            Self::NoPortal(portal) => write!(f, "target_port: the target has no portal {portal}"),
            Self::Twice(name) => write!(f, "{name} is there twice"),
            Self::NoLinks(name) => write!(f, "{name}: links must be at least 1"),
            Self::TooFew => write!(
                f,
                "planner: max_active must be at least 1, and max_sessions at least max_active"
            ),
        }
    }
}

impl std::error::Error for OverrideError {}

fn set<T: Clone>(into: &mut T, from: Option<&T>) {
    if let Some(from) = from {
        *into = from.clone();
    }
}

fn set_some<T: Clone>(into: &mut Option<T>, from: &Option<T>) {
    if from.is_some() {
        into.clone_from(from);
    }
}

impl Overrides {
    /// Corrects `facts`.
    ///
    /// # Errors
    /// [`OverrideError`] where something that it names is not there; the facts may be half changed
    /// then.
    pub fn apply(&self, facts: &mut Facts) -> Result<(), OverrideError> {
        if self.planner.max_active == 0 || self.planner.max_sessions < self.planner.max_active {
            return Err(OverrideError::TooFew);
        }
        for (at, it) in self.host_port.iter().enumerate() {
            if self.host_port[..at]
                .iter()
                .any(|other| other.name == it.name)
            {
                return Err(OverrideError::Twice(it.name.clone()));
            }
            it.apply(facts)?;
        }
        for (at, it) in self.target_port.iter().enumerate() {
            if self.target_port[..at]
                .iter()
                .any(|other| other.portal == it.portal)
            {
                return Err(OverrideError::Twice(it.portal.to_string()));
            }
            it.apply(facts)?;
        }
        for fabric in &self.fabric {
            if facts.fabrics.iter().any(|other| other.name == fabric.name) {
                return Err(OverrideError::Twice(fabric.name.clone()));
            }
            facts.fabrics.push(fabric.clone());
        }
        Ok(())
    }
}

impl HostOverride {
    fn apply(&self, facts: &mut Facts) -> Result<(), OverrideError> {
        let port = facts.hosts.iter_mut().find(|port| port.name == self.name);
        let port = port.ok_or_else(|| OverrideError::NoHostPort(self.name.clone()))?;
        if self.links == Some(0) {
            return Err(OverrideError::NoLinks(self.name.clone()));
        }
        set(&mut port.card, self.card.as_ref());
        set(&mut port.links, self.links.as_ref());
        set(&mut port.enabled, self.enabled.as_ref());
        set_some(&mut port.speed, &self.speed);
        set_some(&mut port.fabric, &self.fabric);
        Ok(())
    }
}

impl TargetOverride {
    fn apply(&self, facts: &mut Facts) -> Result<(), OverrideError> {
        let port = facts
            .targets
            .iter_mut()
            .find(|port| port.portals.contains(&self.portal));
        let port = port.ok_or(OverrideError::NoPortal(self.portal))?;
        if self.links == Some(0) {
            return Err(OverrideError::NoLinks(self.portal.to_string()));
        }
        set(&mut port.links, self.links.as_ref());
        set(&mut port.enabled, self.enabled.as_ref());
        set_some(&mut port.controller, &self.controller);
        set_some(&mut port.card, &self.card);
        set_some(&mut port.speed, &self.speed);
        set_some(&mut port.fabric, &self.fabric);
        Ok(())
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::plan::test_facts::{Build, GIGABIT};

    fn facts() -> Facts {
        Build::default()
            .host("eth0", "card", GIGABIT)
            .target("a0", "A", GIGABIT)
            .facts()
    }

    #[test]
    fn the_file_corrects_what_it_names_and_leaves_the_rest() {
        let text = "[planner]\nmax_active = 2\npriority = \"diversity\"\n[[host_port]]\nname = \"eth0\"\nspeed = \"10Gb/s\"\n\
                    [[target_port]]\nportal = \"10.0.0.100:3260\"\ncontroller = \"B\"\nenabled = false\n\
                    [[fabric]]\nname = \"left\"\nsubnets = [\"10.0.0.0/24\"]\n";
        let file: Overrides = toml::from_str(text).unwrap();
        let mut changed = facts();
        file.apply(&mut changed).unwrap();
        let mut expected = facts();
        expected.hosts[0].speed = Some(Speed::gigabits(10));
        expected.targets[0].controller = Some("B".to_owned());
        expected.targets[0].enabled = false;
        expected.fabrics.push(file.fabric[0].clone());
        assert_eq!(changed, expected);
        assert_eq!(file.planner.max_active, 2);
        assert_eq!(file.planner.max_sessions, 8);
    }

    #[test]
    fn a_file_that_does_not_fit_is_refused_with_the_name_of_what_is_wrong() {
        for (text, says) in [
            ("[[host_port]]\nname = \"eth9\"", "no port eth9"),
            (
                "[[target_port]]\nportal = \"10.0.0.7:3260\"",
                "no portal 10.0.0.7:3260",
            ),
            (
                "[[host_port]]\nname = \"eth0\"\n[[host_port]]\nname = \"eth0\"",
                "eth0 is there twice",
            ),
            (
                "[[host_port]]\nname = \"eth0\"\nlinks = 0",
                "links must be at least 1",
            ),
            ("[planner]\nmax_active = 0", "max_active"),
        ] {
            let file: Overrides = toml::from_str(text).unwrap();
            let error = file.apply(&mut facts()).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        for text in [
            "[planer]",
            "[[host_port]]\nname = \"e\"\nspeed = \"fast\"",
            "[[target_port]]\nportal = \"here\"",
        ] {
            assert!(toml::from_str::<Overrides>(text).is_err(), "{text}");
        }
    }
}
