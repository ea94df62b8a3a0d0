//! What stands at the start of every member.

use crate::run::Run;
use formats::{Damage, Reader, Writer, crc32c_of};
use std::collections::BTreeMap;

/// Bytes of each of the two places of a superblock.
pub const AREA_BYTES: usize = 1 << 20;

/// Where chunk 0 begins, in bytes from the start of a member.
pub const DATA_OFFSET: u64 = 2 << 20;

/// The newest version of the format that is written and read: it has records, or sidecars of
/// LUNs.
pub const VERSION: u32 = 2;

/// The version of a superblock without either, which earlier programs read as well.
const BARE: u32 = 1;

/// Bytes of a record at most.
pub const RECORD_BYTES_MAX: usize = 4096;

/// Members of a pool at most.
pub const MEMBERS_MAX: usize = 64;

/// Bytes of a chunk: a power of two from here ...
pub const CHUNK_BYTES_MIN: u64 = 1 << 20;

/// The largest chunk, in bytes.
pub const CHUNK_BYTES_MAX: u64 = 1 << 30;

/// Bytes of a pool at most.
pub const POOL_BYTES_MAX: u64 = 1 << 62;

/// Bytes of a stripe unit: a power of two from here to a chunk.
pub const STRIPE_BYTES_MIN: u32 = 4096;

/// The flag of a pool that has a journal.
const JOURNAL: u32 = 1;

const MAGIC: &[u8; 8] = b"CWPOOLMB";

/// Bytes before what the checksum covers.
const SEALED_FROM: usize = 16;

/// Bytes before the table of members.
const HEADER_BYTES: usize = 96;

/// Bytes of an entry in the table of members.
const MEMBER_BYTES: usize = 40;

const _: () = assert!(HEADER_BYTES + MEMBERS_MAX * MEMBER_BYTES < AREA_BYTES);

/// A pool's own number, made at random with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PoolId(pub [u8; 16]);

/// A member's own number, made at random with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MemberId(pub [u8; 16]);

/// Whose part of the pool it is: the LUN's NAA identifier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LunId(pub [u8; 16]);

impl LunId {
    /// No LUN's: records of the pool itself.
    pub const POOL: Self = Self([0; 16]);

    /// The identifier of a sidecar of the LUN; `None` where the LUN's identifier is of
    /// another kind than ours (NAA 6h, SPC-4 7.8.6.6.5), and nothing can be derived from it.
    #[must_use]
    pub const fn sidecar(self, what: SidecarKind) -> Option<Self> {
        let Self(mut bytes) = self;
        if bytes[0] >> 4 != OUR_NAA {
            return None;
        }
        bytes[0] = what.naa() << 4 | bytes[0] & 0xf;
        Some(Self(bytes))
    }

    /// It is a sidecar's: of which LUN, and of what kind.
    #[must_use]
    pub fn as_sidecar(self) -> Option<(Self, SidecarKind)> {
        let Self(mut bytes) = self;
        let all = SidecarKind::ALL.into_iter();
        let what = all.into_iter().find(|it| it.naa() == bytes[0] >> 4)?;
        bytes[0] = OUR_NAA << 4 | bytes[0] & 0xf;
        Some((Self(bytes), what))
    }
}

/// The first digit of identifiers that we give LUNs.
const OUR_NAA: u8 = 6;

/// The kind of a sidecar in a pool, which has chunks of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SidecarKind {
    /// The map of its checksums.
    Checksums,
    /// The history of its changes.
    Changes,
    /// One of both that is on its way here, and counts for nothing yet.
    Coming,
}

impl SidecarKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Checksums, Self::Changes, Self::Coming];

    /// The digit in place of a LUN's first one. No identifier begins with it.
    const fn naa(self) -> u8 {
        match self {
            Self::Checksums => 8,
            Self::Changes => 9,
            Self::Coming => 10,
        }
    }
}

/// How LUNs lie on the members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// A chunk lies on one member.
    Span,
    /// A chunk has the same place on every member, and units of so many bytes take turns.
    Stripe {
        /// Bytes of a unit.
        unit_bytes: u32,
    },
}

/// A member, as all of them know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// Its number.
    pub id: MemberId,
    /// Chunks that it has room for.
    pub chunks: u32,
    /// The last event that was to be written to it.
    pub last_event: u64,
    /// The event that stood on it before that one, and stands there where a crash came between.
    pub before: u64,
}

/// What stands at the start of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// The random identifier that all members of the pool have.
    pub pool: PoolId,
    /// Counts the changes of the pool.
    pub event: u64,
    /// The member that this stands on: its place in `members`.
    pub member: u16,
    /// How LUNs lie.
    pub layout: Layout,
    /// Bytes of a chunk on a member.
    pub chunk_bytes: u64,
    /// Bytes of a physical block, of every member.
    pub physical_block_bytes: u32,
    /// It has a journal, which may hold what is nowhere else.
    pub has_journal: bool,
    /// The members, in order.
    pub members: Vec<Member>,
    /// What is whose, in order of each LUN's addresses.
    pub luns: BTreeMap<LunId, Vec<Run>>,
    /// What LUNs are, in the words of whoever serves them; of the pool itself under
    /// [`LunId::POOL`].
    pub records: BTreeMap<LunId, Vec<u8>>,
}

/// What was found in the two places of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The newer of the superblocks that can be read.
    pub superblock: Superblock,
    /// What is wrong with the other place, where something of ours is.
    pub other: Option<Damage>,
}

/// Where the superblock of an event is written, in bytes from the start of a member.
#[must_use]
pub const fn offset_of(event: u64) -> u64 {
    (event % 2) * (AREA_BYTES as u64)
}

/// What the two places say together.
///
/// # Errors
/// One has another version: its program may have gone on from there. Or neither can be read; what
/// is wrong with the place that is ours.
pub fn find(even: &[u8], odd: &[u8]) -> Result<Found, Damage> {
    let places = [(even, 0), (odd, 1)].map(|(bytes, parity)| {
        let read = Superblock::decode(bytes)?;
        if read.event % 2 != parity {
            return Err(Damage::Contradiction("it stands in the other one's place"));
        }
        Ok(read)
    });
    match places {
        [Err(version @ Damage::Version { .. }), _] | [_, Err(version @ Damage::Version { .. })] => {
            Err(version)
        }
        [Ok(even), Ok(odd)] => {
            let superblock = if even.event > odd.event { even } else { odd };
            Ok(Found {
                superblock,
                other: None,
            })
        }
        [Ok(superblock), Err(damage)] | [Err(damage), Ok(superblock)] => Ok(Found {
            superblock,
            other: Some(damage).filter(|damage| *damage != Damage::Foreign),
        }),
        [Err(Damage::Foreign), Err(damage)] | [Err(damage), Err(_)] => Err(damage),
    }
}

impl Superblock {
    /// The bytes, to be written at [`offset_of`] its event; `None` where they do not fit.
    ///
    /// # Panics
    /// If it breaks the rules that [`Superblock::check`] names.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        assert_eq!(self.check(), Ok(()), "only what can be read is written");
        let mut out = Writer::default();
        let (layout, unit) = match self.layout {
            Layout::Span => (1, 0),
            Layout::Stripe { unit_bytes } => (2, unit_bytes),
        };
        let count = u16::try_from(self.members.len()).ok()?;
        let luns = u32::try_from(self.luns.len()).ok()?;
        let flags = if self.has_journal { JOURNAL } else { 0 };
        let version = if self.is_bare() { BARE } else { VERSION };
        out.u32(version).u32(flags).bytes(&self.pool.0);
        out.u64(self.event).u16(self.member).u16(count);
        out.u16(layout).u16(0).u32(unit);
        out.u32(self.physical_block_bytes).u64(self.chunk_bytes);
        out.u32(luns).u32(0).bytes(&[0; 16]);
        for member in &self.members {
            out.bytes(&member.id.0).u32(member.chunks).u32(0);
            let usual = member.before.saturating_add(1) == member.last_event;
            let before = if usual { 0 } else { member.before };
            out.u64(member.last_event).u64(before);
        }
        for (lun, runs) in &self.luns {
            let count = u32::try_from(runs.len()).ok()?;
            out.bytes(&lun.0).u32(count).u32(0);
            for run in runs {
                out.u32(run.first).u32(run.count);
            }
        }
        if version == VERSION {
            out.u32(u32::try_from(self.records.len()).ok()?).u32(0);
        }
        for (lun, record) in &self.records {
            out.bytes(&lun.0);
            out.u32(u32::try_from(record.len()).ok()?).u32(0);
            out.bytes(record);
        }
        let sealed = out.into_bytes();
        let length = u32::try_from(sealed.len() + SEALED_FROM).ok()?;
        if sealed.len() + SEALED_FROM > AREA_BYTES {
            return None;
        }
        let checksum = crc32c_of([&length.to_le_bytes()[..], &sealed]);
        let mut all = Writer::default();
        all.bytes(MAGIC).u32(checksum).u32(length).bytes(&sealed);
        Some(all.into_bytes())
    }

    /// Reads a superblock from the start of `bytes`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        let mut head = Reader::new(bytes);
        if head.bytes() != Some(*MAGIC) {
            return Err(Damage::Foreign);
        }
        let short = Damage::Checksum;
        let checksum = head.u32().ok_or(short)?;
        let length = head.u32().ok_or(short)?;
        let end = usize::try_from(length).map_err(|_| short)?;
        let sealed = bytes.get(SEALED_FROM..end).ok_or(short)?;
        if crc32c_of([&length.to_le_bytes()[..], sealed]) != checksum {
            return Err(short);
        }
        let mut fields = Reader::new(sealed);
        let version = fields.u32().ok_or(short)?;
        if ![BARE, VERSION].contains(&version) {
            return Err(Damage::Version {
                found: version,
                read: VERSION,
            });
        }
        let soon = Damage::Contradiction("it ends too soon");
        let mut read = read(&mut fields).ok_or(soon)??;
        if version == VERSION {
            read.records = records(&mut fields).ok_or(soon)??;
            if read.is_bare() {
                return Err(Damage::Contradiction("records that are not there"));
            }
        }
        if !fields.is_empty() {
            return Err(Damage::Contradiction("more follows than it describes"));
        }
        read.check().map_err(Damage::Contradiction)?;
        Ok(read)
    }

    /// Earlier programs can read it: it has no records, and no sidecars, which they would
    /// take for LUNs that nobody knows.
    fn is_bare(&self) -> bool {
        let sidecar = self.luns.keys().any(|lun| lun.as_sidecar().is_some());
        self.records.is_empty() && !sidecar
    }

    /// The rules that every superblock keeps.
    ///
    /// # Errors
    /// The first that is broken.
    pub fn check(&self) -> Result<(), &'static str> {
        let rule = |holds: bool, rule: &'static str| if holds { Ok(()) } else { Err(rule) };
        let count = self.members.len();
        rule((1..=MEMBERS_MAX).contains(&count), "the number of members")?;
        rule(usize::from(self.member) < count, "which member it is")?;
        let chunk = self.chunk_bytes;
        let is_chunk =
            chunk.is_power_of_two() && (CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&chunk);
        rule(is_chunk, "the size of chunks")?;
        if let Layout::Stripe { unit_bytes } = self.layout {
            let is_unit = unit_bytes.is_power_of_two()
                && unit_bytes >= STRIPE_BYTES_MIN
                && u64::from(unit_bytes) <= chunk;
            rule(is_unit, "the size of stripe units")?;
        }
        let physical = self.physical_block_bytes;
        let is_block = physical.is_power_of_two() && (512..=1 << 16).contains(&physical);
        rule(is_block, "the size of physical blocks")?;
        let mut ids: Vec<MemberId> = self.members.iter().map(|member| member.id).collect();
        ids.sort();
        ids.dedup();
        rule(ids.len() == count, "two members of one number")?;
        let newest = self
            .members
            .iter()
            .all(|member| member.last_event <= self.event);
        rule(newest, "a member's event is in the future")?;
        let in_order = self
            .members
            .iter()
            .all(|member| member.before < member.last_event);
        rule(in_order, "a member's events are not in order")?;
        let own = self.members.get(usize::from(self.member));
        let is_own = own.is_some_and(|own| own.last_event == self.event);
        rule(is_own, "it is written to a member that it does not expect")?;
        let records = self.records.iter().all(|(lun, record)| {
            let known = *lun == LunId::POOL || self.luns.contains_key(lun);
            known && record.len() <= RECORD_BYTES_MAX
        });
        rule(records, "a record of no LUN, or one that is too long")?;
        let chunks = self.chunk_count().min(u64::from(u32::MAX));
        let bytes = chunks.checked_mul(self.bytes_per_chunk());
        let fits = bytes.is_some_and(|bytes| bytes <= POOL_BYTES_MAX);
        rule(fits, "the size of the pool")?;
        self.check_runs()
    }

    /// No chunk is two LUNs', and none is beyond the end.
    fn check_runs(&self) -> Result<(), &'static str> {
        let mut all: Vec<Run> = self.luns.values().flatten().copied().collect();
        all.sort_by_key(|run| run.first);
        let mut free_from = 0_u64;
        for run in all {
            if run.count == 0 {
                return Err("a run of no chunk");
            }
            if u64::from(run.first) < free_from {
                return Err("a chunk belongs to two LUNs");
            }
            free_from = u64::from(run.first) + u64::from(run.count);
        }
        if free_from > self.chunk_count().min(u64::from(u32::MAX)) {
            return Err("a chunk beyond the end");
        }
        Ok(())
    }
}

/// What is not used yet is zero, so that a superblock means one thing only.
const RESERVED: Damage = Damage::Contradiction("something where nothing belongs");

fn read(fields: &mut Reader<'_>) -> Option<Result<Superblock, Damage>> {
    let flags = fields.u32()?;
    let mut reserved = u64::from(flags & !JOURNAL);
    let pool = PoolId(fields.bytes()?);
    let event = fields.u64()?;
    let (member, count) = (fields.u16()?, fields.u16()?);
    let layout = fields.u16()?;
    reserved |= u64::from(fields.u16()?);
    let unit_bytes = fields.u32()?;
    let layout = match layout {
        1 if unit_bytes == 0 => Layout::Span,
        2 => Layout::Stripe { unit_bytes },
        _ => return Some(Err(Damage::Contradiction("an unknown layout"))),
    };
    let (physical_block_bytes, chunk_bytes) = (fields.u32()?, fields.u64()?);
    let lun_count = fields.u32()?;
    reserved |= u64::from(fields.u32()?) | fields.u64()? | fields.u64()?;
    let mut members = Vec::new();
    for _ in 0..count {
        let id = MemberId(fields.bytes()?);
        let chunks = fields.u32()?;
        reserved |= u64::from(fields.u32()?);
        let (last_event, before) = (fields.u64()?, fields.u64()?);
        let usual = last_event.saturating_sub(1);
        if before != 0 && before == usual {
            return Some(Err(RESERVED));
        }
        members.push(Member {
            id,
            chunks,
            last_event,
            before: if before == 0 { usual } else { before },
        });
    }
    let mut luns: BTreeMap<LunId, Vec<Run>> = BTreeMap::new();
    for _ in 0..lun_count {
        let lun = LunId(fields.bytes()?);
        let count = fields.u32()?;
        reserved |= u64::from(fields.u32()?);
        let mut runs = Vec::new();
        for _ in 0..count {
            let (first, count) = (fields.u32()?, fields.u32()?);
            runs.push(Run { first, count });
        }
        if luns.last_key_value().is_some_and(|(last, _)| *last >= lun) {
            let rule = "LUNs stand twice or out of order";
            return Some(Err(Damage::Contradiction(rule)));
        }
        luns.insert(lun, runs);
    }
    if reserved != 0 {
        return Some(Err(RESERVED));
    }
    Some(Ok(Superblock {
        pool,
        event,
        member,
        layout,
        chunk_bytes,
        physical_block_bytes,
        has_journal: flags & JOURNAL != 0,
        members,
        luns,
        records: BTreeMap::new(),
    }))
}

/// What stands behind the LUNs from version 2 on.
fn records(fields: &mut Reader<'_>) -> Option<Result<BTreeMap<LunId, Vec<u8>>, Damage>> {
    let count = fields.u32()?;
    let mut reserved = fields.u32()?;
    let mut records: BTreeMap<LunId, Vec<u8>> = BTreeMap::new();
    for _ in 0..count {
        let lun = LunId(fields.bytes()?);
        let length = usize::try_from(fields.u32()?).ok()?;
        reserved |= fields.u32()?;
        if length > RECORD_BYTES_MAX {
            return Some(Err(Damage::Contradiction("a record that is too long")));
        }
        let mut record = Vec::with_capacity(length);
        for _ in 0..length {
            record.push(fields.u8()?);
        }
        if records
            .last_key_value()
            .is_some_and(|(last, _)| *last >= lun)
        {
            let rule = "records stand twice or out of order";
            return Some(Err(Damage::Contradiction(rule)));
        }
        records.insert(lun, record);
    }
    if reserved != 0 {
        return Some(Err(RESERVED));
    }
    Some(Ok(records))
}
