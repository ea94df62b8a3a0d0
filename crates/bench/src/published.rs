//! Figures that others published, to stand beside ours. They are facts to compare with, never
//! results of ours.

/// A row of the sector-size table, in operations a second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SectorSize {
    /// The kind of operation.
    pub io: &'static str,
    /// With 512-byte sectors.
    pub sector_512: f64,
    /// With 4096-byte sectors.
    pub sector_4096: f64,
}

/// QNAP TS-1277XU-RP, 8 disks of 6 TB in RAID 6, two 10GbE links in round robin, NTFS with 64K
/// clusters; Anvil 1.1.0.
pub const SECTOR_SIZES: [SectorSize; 10] = [
    row("read seq 4M", 417.45, 403.30),
    row("read 4K", 3001.56, 3164.56),
    row("read 4K QD4", 6021.45, 6006.70),
    row("read 4K QD16", 24228.16, 24062.61),
    row("read 32K", 2742.39, 2807.47),
    row("read 128K", 2628.86, 2620.80),
    row("write seq 4M", 233.20, 230.79),
    row("write 4K", 2090.79, 2165.45),
    row("write 4K QD4", 5976.18, 5983.65),
    row("write 4K QD16", 8254.84, 7874.67),
];

const fn row(io: &'static str, sector_512: f64, sector_4096: f64) -> SectorSize {
    SectorSize {
        io,
        sector_512,
        sector_4096,
    }
}

/// A row of the multipath table: sequential 4 MiB, in megabytes a second and milliseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Topology {
    /// Its letter; D is the control.
    pub test: &'static str,
    /// What was connected how.
    pub what: &'static str,
    /// Reads: response, rate.
    pub read: (f64, f64),
    /// Writes: response, rate.
    pub write: (f64, f64),
}

/// Dell EqualLogic PS4110x with two active 1GbE ports, a host with eight 1GbE NICs; Anvil 1.1.0,
/// one VM disk.
pub const TOPOLOGIES: [Topology; 7] = [
    topology(
        "A",
        "4 NICs in one team",
        (51.3782, 77.85),
        (89.5977, 44.64),
    ),
    topology(
        "B",
        "4 NICs, full mesh, round robin",
        (404.65, 9.89),
        (964.766, 4.15),
    ),
    topology(
        "C",
        "2 NICs, 1:1, round robin",
        (30.4791, 131.24),
        (21.7266, 184.11),
    ),
    topology("D", "1 NIC (control)", (40.2814, 99.30), (36.9883, 108.14)),
    topology(
        "E",
        "4 NICs, full mesh, least queue depth",
        (273.9667, 14.60),
        (1010.7556, 3.96),
    ),
    topology(
        "F",
        "4 NICs, partial mesh, round robin",
        (39.801, 100.50),
        (468.9896, 8.53),
    ),
    topology(
        "G",
        "2 NICs, vendor path manager",
        (60.7197, 65.88),
        (23.8047, 168.03),
    ),
];

const fn topology(
    test: &'static str,
    what: &'static str,
    read: (f64, f64),
    write: (f64, f64),
) -> Topology {
    Topology {
        test,
        what,
        read,
        write,
    }
}
