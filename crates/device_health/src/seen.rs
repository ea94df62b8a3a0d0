//! What whoever reads the machine has seen of it.

use crate::reading::Answer;
use manifest::disks::DiskIdentity;
use std::collections::BTreeMap;

/// A disk as the system shows it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SeenDisk {
    /// The system's name for it, such as `sda`.
    pub name: String,
    /// What the system says of it; what the disk itself says comes before that.
    pub identity: DiskIdentity,
    /// The state that the system has for it, such as `running`, `offline`, `live`; empty: none.
    pub state: String,
    /// It comes and goes, as a USB stick does.
    pub is_portable: bool,
    /// It is made up by a hypervisor.
    pub is_virtual: bool,
    /// What lies on it.
    pub used_by: Vec<String>,
}

/// A bay as an enclosure shows it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SeenBay {
    /// The enclosure's identifier, which outlives restarts.
    pub enclosure: String,
    /// The slot's number, or its name.
    pub slot: String,
    /// The status that the enclosure has for it (SES).
    pub status: String,
    /// The enclosure says that it is faulty.
    pub is_faulty: bool,
    /// A device answers there.
    pub has_device: bool,
    /// The block devices that came of it.
    pub names: Vec<String>,
}

/// What a disk answered, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Seconds since 1970.
    pub at: u64,
    /// What it said.
    pub answer: Answer,
}

/// The machine at one moment.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Seen {
    /// Seconds since 1970.
    pub at: u64,
    /// Every disk, by each path to it.
    pub disks: Vec<SeenDisk>,
    /// Every bay of every enclosure.
    pub bays: Vec<SeenBay>,
    /// What disks answered, by the system's name; those that were not asked are not in it.
    pub asked: BTreeMap<String, Asked>,
}
