//! What every core knows of a unit: one immutable value, replaced whole.

use crate::groups::Groups;
use scsi::alua::AccessState;
use scsi::description::{AtomicLimits, Provisioning, UnitDescription, UnitLimits};
use scsi::mode::{ModePages, ModeParameters, ModeUnit};
use scsi::reservation::Reservations;
use units::{BlockCount, BlockSize};
use volume::{OpenError, Shape, Support};

/// What a unit says of itself for ever, whatever its volume is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its name, for people, when it came up; [`crate::LogicalUnit::rename`] changes what logs say.
    pub name: String,
    /// Unit serial number: random, made once.
    pub serial: String,
    /// NAA IEEE Registered Extended identifier: random, made once.
    pub naa: [u8; 16],
    /// Key of what the unit stores.
    pub store_key: String,
    /// Logical block size, also while the volume cannot be opened.
    pub block_size: BlockSize,
    /// Logical blocks in a physical one, as a power of two.
    pub physical_block_exponent: u8,
    /// Thin provisioned.
    pub thin: bool,
}

/// What every core knows of a unit.
#[derive(Clone, Debug)]
pub struct UnitState {
    /// Counts the changes.
    pub version: u64,
    /// The facts that pages are derived from.
    pub description: UnitDescription,
    /// The volume's facts; `None` while it is offline.
    pub shape: Option<Shape>,
    /// Why the unit is offline.
    pub offline: Option<OpenError>,
    /// The mode pages.
    pub modes: ModePages,
    /// TAS, where an administrator has fixed it.
    pub task_aborted_status: Option<bool>,
    /// The asymmetric access state of this node's target port group.
    pub access_state: AccessState,
    /// The nodes that it is reached through.
    pub(crate) groups: Groups,
    /// Who may use the unit.
    pub reservations: Reservations,
}

/// What a unit has stored over a restart.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub(crate) reservations: Reservations,
    pub(crate) modes: Option<ModeParameters>,
}

/// WCE is one where there is a volatile cache, and only there. TAS is one: hosts wait a minute
/// and more for commands that another one aborted, if nobody informs them
/// (`docs/adr/0015-task-aborted-and-unit-attentions.md`).
fn default_modes(shape: Option<Shape>) -> ModeParameters {
    ModeParameters {
        task_aborted_status: true,
        // As long as nobody knows, hosts had better flush.
        write_cache_enabled: shape.is_none_or(|shape| shape.caps.volatile_cache),
        ..ModeParameters::default()
    }
}

/// What was stored, or what is so where nothing was.
fn modes_of(stored: Option<ModeParameters>, shape: Option<Shape>) -> ModeParameters {
    let mut modes = stored.unwrap_or(default_modes(shape));
    // A host may have saved it while there was a cache.
    modes.write_cache_enabled &= shape.is_none_or(|shape| shape.caps.volatile_cache);
    modes
}

/// The largest transfer of one command, in bytes.
const TRANSFER_BYTES_MAX: u64 = 16 << 20;
/// What one VERIFY without data to compare reads at most, in bytes: seconds on any disk. VERIFY
/// (10) cannot ask for more.
const VERIFY_BYTES_MAX: u64 = 1 << 30;
/// What one WRITE SAME may cover, in blocks: 16 MiB or 128 MiB.
const WRITE_SAME_BLOCKS_MAX: u64 = 1 << 15;
/// What one UNMAP may cover, in blocks.
const UNMAP_BLOCKS_MAX: u32 = 1 << 20;
/// COMPARE AND WRITE: blocks.
const COMPARE_BLOCKS_MAX: u8 = 128;

impl UnitState {
    pub(crate) fn new(
        identity: &Identity,
        shape: Option<Shape>,
        stored: Stored,
        offline: Option<&OpenError>,
    ) -> Self {
        Self {
            version: 0,
            description: describe(identity, shape),
            shape,
            offline: offline.cloned(),
            modes: ModePages::from_saved(modes_of(stored.modes, shape)),
            task_aborted_status: None,
            access_state: AccessState::ActiveOptimized,
            groups: Groups::default(),
            reservations: stored.reservations,
        }
    }

    /// What was stored could be read at last: it is what was found at the start, and nobody has
    /// changed it since.
    pub(crate) fn recover(&mut self, stored: Stored) {
        self.reservations = stored.reservations;
        self.modes = ModePages::from_saved(modes_of(stored.modes, self.shape));
        if let Some(reported) = self.task_aborted_status {
            self.modes.set_task_aborted_status(reported);
        }
    }

    /// Writes must be stable before they are answered: there is a volatile cache, and the host
    /// switched it off (WCE is zero).
    #[must_use]
    pub fn write_through(&self) -> bool {
        self.description.write_cache && !self.modes.current.write_cache_enabled
    }

    pub(crate) fn mode_unit(&self, read_only: bool) -> ModeUnit {
        ModeUnit {
            block_size: self.description.block_size,
            block_count: self.description.block_count,
            read_only: read_only || self.description.read_only,
            write_cache_changeable: self.description.write_cache,
            task_set_changeable: true,
            task_aborted_changeable: self.task_aborted_status.is_none(),
            default: ModeParameters {
                task_aborted_status: self.task_aborted_status.unwrap_or(true),
                ..default_modes(self.shape)
            },
        }
    }

    /// Blocks that the unit has.
    #[must_use]
    pub fn block_count(&self) -> BlockCount {
        self.description.block_count
    }
}

fn blocks_in(bytes: u64, block_size: BlockSize) -> u32 {
    u32::try_from(bytes / u64::from(block_size.bytes())).unwrap_or(u32::MAX)
}

/// The facts that the pages report, from the volume's.
pub(crate) fn describe(identity: &Identity, shape: Option<Shape>) -> UnitDescription {
    let block_size = identity.block_size;
    let discard = shape.is_some_and(|shape| identity.thin && shape.caps.discard != Support::Absent);
    let granularity = shape.map_or(1, |shape| {
        u32::try_from(shape.limits.discard_granularity.0).unwrap_or(1)
    });
    let atomic = shape.map_or(0, |shape| {
        // What is cut on its way is not atomic.
        let whole = shape
            .limits
            .atomic_blocks_max
            .min(shape.limits.transfer_blocks_max);
        let most = blocks_in(TRANSFER_BYTES_MAX, block_size);
        u32::try_from(whole.0).unwrap_or(u32::MAX).min(most)
    });
    let atomic = if atomic > 1 { atomic } else { 0 };
    UnitDescription {
        revision: env!("CARGO_PKG_VERSION")
            .chars()
            .filter(|c| *c != '.')
            .collect(),
        serial: identity.serial.clone(),
        naa: identity.naa,
        block_size,
        physical_block_exponent: identity.physical_block_exponent,
        lowest_aligned_lba: 0,
        block_count: shape.map_or(BlockCount(0), |shape| shape.block_count),
        limits: UnitLimits {
            transfer_blocks_max: blocks_in(TRANSFER_BYTES_MAX, block_size),
            verify_blocks_max: blocks_in(VERIFY_BYTES_MAX, block_size).into(),
            transfer_blocks_optimal: blocks_in(1 << 20, block_size),
            transfer_granularity: 1 << identity.physical_block_exponent,
            prefetch_blocks_max: 0,
            unmap_blocks_max: if discard { UNMAP_BLOCKS_MAX } else { 0 },
            unmap_descriptors_max: if discard { 256 } else { 0 },
            unmap_granularity: granularity,
            unmap_alignment: Some(0),
            write_same_blocks_max: WRITE_SAME_BLOCKS_MAX,
            write_same_non_zero: false,
            compare_and_write_blocks_max: COMPARE_BLOCKS_MAX,
            atomic: AtomicLimits {
                blocks_max: atomic,
                alignment: atomic,
                granularity: u32::from(atomic > 0),
                with_boundary_blocks_max: 0,
                boundary_max: 0,
            },
        },
        provisioning: Provisioning {
            thin: discard,
            threshold_exponent: 0,
            reads_zero: discard && shape.is_some_and(|shape| shape.caps.discard_reads_zero),
            unmap: discard,
            write_same_16: discard,
            write_same_10: discard,
            anchor: discard && shape.is_some_and(|shape| shape.caps.anchor != Support::Absent),
        },
        read_only: shape.is_some_and(|shape| !shape.caps.writable),
        write_cache: shape.is_some_and(|shape| shape.caps.volatile_cache),
    }
}
