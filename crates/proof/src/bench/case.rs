//! What is measured.

/// How the client sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// All that became ready at once leaves in one vectored send: the `iscsi_initiator` crate.
    Burst,
    /// Each PDU by itself, header and data segment apart, immediate data (open-iscsi's defaults).
    /// All that has come is read before the next command is sent, as the kernel does.
    Linux,
    /// The same, and the next command is sent as soon as an answer was read (fio with
    /// libiscsi's engine).
    Libiscsi,
    /// Each PDU by itself and in one piece, `InitialR2T=Yes`, immediate data (the Microsoft
    /// initiator's defaults).
    Windows,
    /// As `Linux`, and no immediate data: each write waits for an R2T.
    Solicited,
}

/// A workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// Short, for `CASES=` and for files.
    pub id: &'static str,
    /// For people.
    pub name: &'static str,
    /// Bytes of a command.
    pub bytes: usize,
    /// Commands in flight, each session.
    pub depth: usize,
    /// Connections at a time, each with `depth` commands.
    pub sessions: u8,
    /// Of a hundred commands so many read; the others write.
    pub read_percent: u8,
    /// Anywhere in the unit, else one after the other.
    pub random: bool,
    /// FUA in every write.
    pub fua: bool,
    /// CRC32C over headers and data.
    pub digests: bool,
    /// How the client sends.
    pub manner: Manner,
}

const fn case(id: &'static str, name: &'static str, bytes: usize, depth: usize) -> Case {
    Case {
        id,
        name,
        bytes,
        depth,
        sessions: 1,
        read_percent: 100,
        random: true,
        fua: false,
        digests: false,
        manner: Manner::Burst,
    }
}

impl Case {
    const fn writes(mut self) -> Self {
        self.read_percent = 0;
        self
    }

    const fn mixed(mut self) -> Self {
        self.read_percent = 70;
        self
    }

    const fn sequential(mut self) -> Self {
        self.random = false;
        self
    }

    const fn four_sessions(mut self) -> Self {
        self.sessions = 4;
        self
    }

    const fn sent_as(mut self, manner: Manner) -> Self {
        self.manner = manner;
        self
    }

    /// Writes are stable before they are answered.
    #[must_use]
    pub const fn with_fua(mut self) -> Self {
        self.fua = true;
        self
    }

    /// With both digests.
    #[must_use]
    pub const fn with_digests(mut self) -> Self {
        self.digests = true;
        self
    }

    /// So many sessions.
    #[must_use]
    pub const fn with_sessions(mut self, sessions: u8) -> Self {
        self.sessions = sessions;
        self
    }

    /// No command of it changes the unit.
    #[must_use]
    pub const fn reads_only(&self) -> bool {
        self.read_percent == 100
    }
}

const K: usize = 1 << 10;

/// 4 KiB random reads, depth 32, one session.
pub const READ_4K: Case = case("r4k32", "4K random read, depth 32", 4 * K, 32);
/// 4 KiB random writes, depth 32, one session.
pub const WRITE_4K: Case = case("w4k32", "4K random write, depth 32", 4 * K, 32).writes();

/// The cases in which every server is measured.
pub const PEER_CASES: [Case; 13] = [
    READ_4K,
    case("r4k32x4", "4K random read, depth 32, 4 sessions", 4 * K, 32).four_sessions(),
    WRITE_4K,
    case(
        "w4k32x4",
        "4K random write, depth 32, 4 sessions",
        4 * K,
        32,
    )
    .writes()
    .four_sessions(),
    case("r4k1", "4K random read, depth 1", 4 * K, 1),
    case("r4k1x4", "4K random read, depth 1, 4 sessions", 4 * K, 1).four_sessions(),
    case("w4k1", "4K random write, depth 1", 4 * K, 1).writes(),
    case("w4k1x4", "4K random write, depth 1, 4 sessions", 4 * K, 1)
        .writes()
        .four_sessions(),
    case("m4k32", "4K random 70/30, depth 32", 4 * K, 32).mixed(),
    case("r64k16", "64K sequential read, depth 16", 64 * K, 16).sequential(),
    case("w64k16", "64K sequential write, depth 16", 64 * K, 16)
        .writes()
        .sequential(),
    case("r1m8", "1M sequential read, depth 8", 1024 * K, 8).sequential(),
    case("w1m8", "1M sequential write, depth 8", 1024 * K, 8)
        .writes()
        .sequential(),
];

/// The cases in which hosts send as hosts do: each command by itself.
pub const PLAIN_CASES: [Case; 12] = [
    case(
        "plain-r4k32",
        "4K random read, depth 32, as Linux sends",
        4 * K,
        32,
    )
    .sent_as(Manner::Linux),
    case(
        "plain-w4k32",
        "4K random write, depth 32, as Linux sends",
        4 * K,
        32,
    )
    .writes()
    .sent_as(Manner::Linux),
    case(
        "plain-r4k1",
        "4K random read, depth 1, as Linux sends",
        4 * K,
        1,
    )
    .sent_as(Manner::Linux),
    case(
        "plain-w4k1",
        "4K random write, depth 1, as Linux sends",
        4 * K,
        1,
    )
    .writes()
    .sent_as(Manner::Linux),
    case(
        "plain-m4k8",
        "4K random 70/30, depth 8, as Linux sends",
        4 * K,
        8,
    )
    .mixed()
    .sent_as(Manner::Linux),
    case(
        "libiscsi-r4k32",
        "4K random read, depth 32, as libiscsi sends",
        4 * K,
        32,
    )
    .sent_as(Manner::Libiscsi),
    case(
        "libiscsi-w4k32",
        "4K random write, depth 32, as libiscsi sends",
        4 * K,
        32,
    )
    .writes()
    .sent_as(Manner::Libiscsi),
    case(
        "whole-r4k32",
        "4K random read, depth 32, as Windows sends",
        4 * K,
        32,
    )
    .sent_as(Manner::Windows),
    case(
        "whole-w4k32",
        "4K random write, depth 32, as Windows sends",
        4 * K,
        32,
    )
    .writes()
    .sent_as(Manner::Windows),
    case(
        "asked-w4k32",
        "4K random write, depth 32, each asked for",
        4 * K,
        32,
    )
    .writes()
    .sent_as(Manner::Solicited),
    case(
        "asked-w4k1",
        "4K random write, depth 1, each asked for",
        4 * K,
        1,
    )
    .writes()
    .sent_as(Manner::Solicited),
    case(
        "plain-w64k16",
        "64K sequential write, depth 16, as Linux sends",
        64 * K,
        16,
    )
    .writes()
    .sequential()
    .sent_as(Manner::Linux),
];

/// The rows of the published comparison of sector sizes.
pub const SECTOR_CASES: [Case; 10] = [
    case("read seq 4M", "read seq 4M", 4096 * K, 1).sequential(),
    case("read 4K", "read 4K", 4 * K, 1),
    case("read 4K QD4", "read 4K QD4", 4 * K, 4),
    case("read 4K QD16", "read 4K QD16", 4 * K, 16),
    case("read 32K", "read 32K", 32 * K, 1),
    case("read 128K", "read 128K", 128 * K, 1),
    case("write seq 4M", "write seq 4M", 4096 * K, 1)
        .writes()
        .sequential(),
    case("write 4K", "write 4K", 4 * K, 1).writes(),
    case("write 4K QD4", "write 4K QD4", 4 * K, 4).writes(),
    case("write 4K QD16", "write 4K QD16", 4 * K, 16).writes(),
];
