//! Asking a unit who it is and what it can do.

use super::cdb;
use super::facts::{self, Pages, Tried, UnitFacts};
use super::identity::{Identity, device_identification, serial_number};
use crate::lost::Lost;
use crate::session::Session;
use iscsi::Lun;
use iscsi::bhs::Attribute;
use iscsi::initiator_side::{Completion, InitiatorCommand};
use paths::verdict::{self, Learn, Repeat, Verdict};
use scsi::{Sense, SenseKey, Status};
use std::fmt;
use units::{Buf, BufMut, LbaRange};

/// Unit attentions that are taken before a question is given up: every kind that there is, and a
/// few more.
const TRIES_MAX: u32 = 20;
/// Room for the answer to a question, in bytes.
const ANSWER_BYTES: u16 = 4096;

/// Why a unit does not answer a question.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The session is over.
    Lost(Lost),
    /// It refused.
    Refused(Refusal),
}

/// A status that is no success.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) status: u8,
    pub(super) sense: Option<Sense>,
    pub(super) verdict: Verdict,
    why: &'static str,
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(lost) => write!(f, "{lost}"),
            Self::Refused(refusal) => write!(f, "{refusal}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sense {
            Some(sense) => write!(
                f,
                "{} (sense {:x}h/{:02x}h/{:02x}h)",
                self.why,
                sense.key.code(),
                sense.code.asc,
                sense.code.ascq
            ),
            None => write!(f, "{} (status {:02x}h)", self.why, self.status),
        }
    }
}

impl Refusal {
    /// The unit does not know the command or one of its fields. Some say so without sense data.
    pub(super) fn is_unknown(&self) -> bool {
        match self.sense {
            Some(sense) => sense.key == SenseKey::IllegalRequest && sense.code.asc != 0x25,
            None => self.status == Status::CheckCondition.code(),
        }
    }
}

/// A command of this unit, in any order with others.
pub(super) fn command(lun: Lun, cdb: cdb::Cdb) -> InitiatorCommand {
    InitiatorCommand {
        lun,
        cdb,
        attribute: Attribute::Simple,
        immediate: false,
    }
}

/// What a completion means.
pub(super) fn judge(completion: &Completion) -> Result<(), Refusal> {
    if !completion.target_failure && completion.status == Status::Good.code() {
        return Ok(());
    }
    let sense = Sense::parse(&completion.sense.to_vec());
    // A response other than "completed at target" has no status that means anything.
    let (verdict, why) = if completion.target_failure {
        verdict::of(Status::CheckCondition.code(), None)
    } else {
        verdict::of(completion.status, sense.as_ref())
    };
    if verdict.repeat == Repeat::Done {
        return Ok(());
    }
    Err(Refusal {
        status: completion.status,
        sense,
        verdict,
        why,
    })
}

/// One unit through one session.
pub(super) struct Asker<'a> {
    pub(super) session: &'a Session,
    pub(super) lun: Lun,
}

impl Asker<'_> {
    async fn once(&self, cdb: cdb::Cdb, out: Buf, bytes: usize) -> Result<Buf, NoAnswer> {
        let into = (bytes > 0).then(|| BufMut::zeroed(bytes));
        let answer = self.session.command(command(self.lun, cdb), out, into);
        let completion = answer.await.map_err(NoAnswer::Lost)?;
        judge(&completion).map_err(NoAnswer::Refused)?;
        Ok(completion.data_in)
    }

    /// The answer to a command that only asks, after whatever unit attentions wait.
    pub(super) async fn ask(&self, cdb: cdb::Cdb, bytes: u16) -> Result<Vec<u8>, NoAnswer> {
        self.exchange(cdb, &Buf::empty(), bytes).await
    }

    /// The same for a command that says something.
    pub(super) async fn send(&self, cdb: cdb::Cdb, out: Buf) -> Result<(), NoAnswer> {
        self.exchange(cdb, &out, 0).await.map(|_nothing| ())
    }

    async fn exchange(&self, cdb: cdb::Cdb, out: &Buf, bytes: u16) -> Result<Vec<u8>, NoAnswer> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.once(cdb, out.clone(), usize::from(bytes)).await {
                Ok(data) => return Ok(data.to_vec()),
                Err(NoAnswer::Refused(refusal))
                    if refusal.verdict.repeat == Repeat::Same
                        && refusal.sense.is_some()
                        && tries < TRIES_MAX => {}
                // Another initiator has ended it. What only asks is asked again.
                Err(NoAnswer::Refused(refusal))
                    if refusal.verdict.repeat == Repeat::Uncertain
                        && out.is_empty()
                        && tries < TRIES_MAX => {}
                Err(NoAnswer::Lost(Lost::Aborted)) if out.is_empty() && tries < TRIES_MAX => {}
                Err(other) => return Err(other),
            }
        }
    }

    /// The same, where the answer may be that there is no such thing: then nothing.
    async fn perhaps(&self, cdb: cdb::Cdb, bytes: u16) -> Result<Vec<u8>, NoAnswer> {
        match self.ask(cdb, bytes).await {
            Err(NoAnswer::Refused(refusal)) if refusal.is_unknown() => Ok(Vec::new()),
            other => other,
        }
    }

    async fn page(&self, page: u8) -> Result<Vec<u8>, NoAnswer> {
        let data = self
            .perhaps(cdb::inquiry(Some(page), ANSWER_BYTES), ANSWER_BYTES)
            .await?;
        // A page that is not the one that was asked for says nothing.
        Ok(if data.get(1) == Some(&page) {
            data
        } else {
            Vec::new()
        })
    }

    /// Takes the unit attentions that wait; the last refusal, if the unit is not ready then.
    pub(super) async fn settle(&self) -> Result<Option<Refusal>, NoAnswer> {
        match self.ask(cdb::test_unit_ready(), 0).await {
            Ok(_) => Ok(None),
            Err(NoAnswer::Refused(refusal)) => Ok(Some(refusal)),
            Err(lost) => Err(lost),
        }
    }

    /// Standard INQUIRY data of a disk.
    pub(super) async fn inquiry(&self) -> Result<Vec<u8>, Why> {
        // Some targets refuse to cut their answer.
        let data = self.ask(cdb::inquiry(None, 255), 255).await?;
        match data.first() {
            Some(0x00) => Ok(data),
            Some(byte) if byte >> 5 != 0 => Err(Why::Nothing(
                "the target has no unit at this LUN for this initiator".to_owned(),
            )),
            Some(byte) => Err(Why::Unfit(format!(
                "the unit is no disk (peripheral device type {:02x}h)",
                byte & 0x1f
            ))),
            None => Err(Why::Unfit("INQUIRY returned nothing".to_owned())),
        }
    }

    pub(super) async fn capacity(&self) -> Result<facts::Capacity, Why> {
        let data = self.perhaps(cdb::read_capacity_16(32), 32).await?;
        if data.is_empty() {
            let data = self.ask(cdb::read_capacity_10(), 8).await?;
            return facts::capacity(&data, false).map_err(Why::Unfit);
        }
        facts::capacity(&data, true).map_err(Why::Unfit)
    }

    /// Who the unit is, its capacity, and the target port group that was asked.
    pub(super) async fn identity(&self) -> Result<(Identity, facts::Capacity, Option<u16>), Why> {
        let (designators, group) = device_identification(&self.page(0x83).await?);
        let serial = serial_number(&self.page(0x80).await?);
        let capacity = self.capacity().await?;
        let identity = Identity {
            designators,
            serial,
            block_size: capacity.block_size,
            block_count: capacity.block_count,
        };
        Ok((identity, capacity, group))
    }

    /// Everything.
    pub(super) async fn facts(&self) -> Result<(UnitFacts, Option<u16>), Why> {
        let inquiry = self.inquiry().await?;
        let (identity, capacity, group) = self.identity().await?;
        let block_limits = self.page(0xb0).await?;
        let provisioning = self.page(0xb2).await?;
        let mode = self.perhaps(cdb::mode_sense_6(0x08, 255), 255).await?;
        let supported = self.perhaps(cdb::report_supported(0x93, 64), 64).await?;
        // SUPPORT: 011b in conformance with the standard, 101b in a vendor's way, 001b not
        // supported.
        let write_same = supported.get(1).map(|byte| byte & 0x07 == 0x03);
        let synchronize_16 = self.knows(cdb::synchronize_cache(true), 0).await?;
        let first = LbaRange::between(units::Lba(0), units::Lba(1));
        let lba_status = match first.filter(|_| capacity.provisioned) {
            Some(range) => self.knows(cdb::get_lba_status(range, 24), 24).await?,
            None => false,
        };
        let pages = Pages {
            inquiry: &inquiry,
            block_limits: &block_limits,
            provisioning: &provisioning,
            mode: &mode,
        };
        let tried = Tried {
            write_same,
            synchronize_16,
            lba_status,
        };
        Ok((UnitFacts::new(identity, capacity, &pages, tried), group))
    }

    async fn knows(&self, cdb: cdb::Cdb, bytes: u16) -> Result<bool, NoAnswer> {
        match self.ask(cdb, bytes).await {
            Ok(_) => Ok(true),
            Err(NoAnswer::Refused(refusal)) => Ok(!refusal.is_unknown()),
            Err(lost) => Err(lost),
        }
    }
}

/// Why a unit cannot be used.
#[derive(Debug)]
pub(super) enum Why {
    /// It did not answer.
    NoAnswer(NoAnswer),
    /// There is none.
    Nothing(String),
    /// It is none for us.
    Unfit(String),
}

impl From<NoAnswer> for Why {
    fn from(no: NoAnswer) -> Self {
        Self::NoAnswer(no)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer(no) => write!(f, "{no}"),
            Self::Nothing(why) | Self::Unfit(why) => f.write_str(why),
        }
    }
}

/// A refusal asks for another probe of who the unit is, before anything else is sent to it.
pub(super) fn asks_for_identity(refusal: &Refusal) -> bool {
    match refusal.verdict.learn {
        Learn::Identity | Learn::Everything => true,
        Learn::Nothing
        | Learn::AccessStates
        | Learn::Reservations
        | Learn::ModePages
        | Learn::Readiness
        | Learn::ClearAca => false,
    }
}
