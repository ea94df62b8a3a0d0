//! Bodies of messages about a LUN.

use crate::refusal::NotSent;
use formats::{Reader, Writer};
use journal::VolumeId;
use replica::{
    Conversation, CopyId, Epoch, Message, Moment, NODES_MAX, NodeSet, NodeSlot, Revision,
    RingSummary, RoleRecord,
};

const HELLO: u8 = 1;
const LEAD: u8 = 2;
const REFUSE: u8 = 3;
const FOLLOW: u8 = 4;
const ASK: u8 = 5;
const GRANT: u8 = 6;
const YIELD: u8 = 7;
const RENEW: u8 = 8;
const WHOLE: u8 = 9;
const LEAVES: u8 = 10;
const LESS: u8 = 11;

/// Rings that a log may have.
const RINGS_MAX: usize = journal::RINGS_MAX as usize;

/// Writes a message; those that have frames of their own have none here.
pub(crate) fn write(volume: VolumeId, message: &Message, to: &mut Writer) -> Result<(), NotSent> {
    to.u64(volume.0);
    let kind = |to: &mut Writer, kind: u8| {
        to.u8(kind).bytes(&[0; 7]);
    };
    let number = |to: &mut Writer, it: u8, number: u64| {
        kind(to, it);
        to.u64(number);
        Ok(())
    };
    match message {
        Message::Hello {
            promised,
            known,
            conversation,
        } => {
            kind(to, HELLO);
            to.u64(promised.0)
                .u64(conversation.own)
                .u64(conversation.heard);
            write_known(known, to)
        }
        Message::Lead {
            known,
            rings,
            acknowledged,
        } => {
            kind(to, LEAD);
            write_known(known, to)?;
            write_count(rings.len(), to)?;
            rings.iter().try_for_each(|it| write_ring(it, to))?;
            write_numbers(acknowledged, to)
        }
        Message::Refuse { promised } => number(to, REFUSE, promised.0),
        Message::Follow {
            epoch,
            next,
            is_whole,
            base,
        } => {
            kind(to, FOLLOW);
            to.u64(epoch.0);
            write_numbers(next, to)?;
            to.u8((*is_whole).into()).bytes(&[0; 7]);
            write_numbers(base, to)
        }
        Message::Renew { epoch, from } => {
            kind(to, RENEW);
            to.u64(epoch.0);
            write_numbers(from, to)
        }
        Message::Whole { epoch } => number(to, WHOLE, epoch.0),
        Message::Less { epoch } => number(to, LESS, epoch.0),
        Message::Ask { sent } => number(to, ASK, sent.0),
        Message::Grant { sent } => number(to, GRANT, sent.0),
        Message::Yield { epoch } => number(to, YIELD, epoch.0),
        Message::Leaves => {
            kind(to, LEAVES);
            Ok(())
        }
        Message::Beacon { .. }
        | Message::Answer { .. }
        | Message::Append { .. }
        | Message::Commit { .. }
        | Message::Ack { .. } => Err(NotSent::OwnFrame),
    }
}

fn write_count(of: usize, to: &mut Writer) -> Result<(), NotSent> {
    let count = u16::try_from(of).map_err(|_| NotSent::TooLong)?;
    to.u16(count).u16(0).u32(0);
    Ok(())
}

fn write_numbers(numbers: &[u64], to: &mut Writer) -> Result<(), NotSent> {
    write_count(numbers.len(), to)?;
    for it in numbers {
        to.u64(*it);
    }
    Ok(())
}

fn write_known(
    (revision, record): &(Revision, RoleRecord),
    to: &mut Writer,
) -> Result<(), NotSent> {
    let count = u8::try_from(record.copies.len()).map_err(|_| NotSent::TooLong)?;
    let in_sync = record.in_sync.iter();
    let in_sync = in_sync.fold(0_u64, |bits, node| bits | 1_u64.wrapping_shl(node.0.into()));
    to.u64(revision.0)
        .u64(record.epoch.0)
        .u64(in_sync)
        .u32(record.step)
        .u8(record.owner.0)
        .u8(count)
        .u16(0);
    for (slot, id) in &record.copies {
        to.bytes(&id.0.to_le_bytes()).u8(slot.0).bytes(&[0; 7]);
    }
    Ok(())
}

fn write_ring(ring: &RingSummary, to: &mut Writer) -> Result<(), NotSent> {
    to.u64(ring.next);
    write_count(ring.epochs.len(), to)?;
    for (epoch, first) in &ring.epochs {
        to.u64(epoch.0).u64(*first);
    }
    Ok(())
}

/// Reads what [`write`] wrote, and nothing else.
pub(crate) fn read(body: &[u8]) -> Option<(VolumeId, Message)> {
    let mut fields = Reader::new(body);
    let volume = VolumeId(fields.u64()?);
    let kind = fields.u8()?;
    zeroes::<7>(&mut fields)?;
    let message = read_kind(kind, &mut fields)?;
    fields.is_empty().then_some((volume, message))
}

fn read_kind(kind: u8, fields: &mut Reader<'_>) -> Option<Message> {
    Some(match kind {
        HELLO => Message::Hello {
            promised: Epoch(fields.u64()?),
            conversation: Conversation {
                own: fields.u64()?,
                heard: fields.u64()?,
            },
            known: read_known(fields)?,
        },
        LEAD => {
            let known = read_known(fields)?;
            let rings = (0..read_rings(fields)?).map(|_| read_ring(fields));
            let rings = rings.collect::<Option<Vec<RingSummary>>>()?;
            Message::Lead {
                known,
                rings,
                acknowledged: read_numbers(fields)?,
            }
        }
        REFUSE => Message::Refuse {
            promised: Epoch(fields.u64()?),
        },
        FOLLOW => {
            let (epoch, next) = (Epoch(fields.u64()?), read_numbers(fields)?);
            let is_whole = match fields.u8()? {
                0 => false,
                1 => true,
                _ => return None,
            };
            zeroes::<7>(fields)?;
            Message::Follow {
                epoch,
                next,
                is_whole,
                base: read_numbers(fields)?,
            }
        }
        RENEW => Message::Renew {
            epoch: Epoch(fields.u64()?),
            from: read_numbers(fields)?,
        },
        WHOLE => Message::Whole {
            epoch: Epoch(fields.u64()?),
        },
        ASK => Message::Ask {
            sent: Moment(fields.u64()?),
        },
        GRANT => Message::Grant {
            sent: Moment(fields.u64()?),
        },
        YIELD => Message::Yield {
            epoch: Epoch(fields.u64()?),
        },
        LEAVES => Message::Leaves,
        LESS => Message::Less {
            epoch: Epoch(fields.u64()?),
        },
        _ => return None,
    })
}

fn zeroes<const N: usize>(fields: &mut Reader<'_>) -> Option<()> {
    (fields.bytes::<N>()? == [0; N]).then_some(())
}

fn read_count(fields: &mut Reader<'_>) -> Option<u16> {
    let count = fields.u16()?;
    zeroes::<6>(fields)?;
    Some(count)
}

fn read_rings(fields: &mut Reader<'_>) -> Option<u16> {
    read_count(fields).filter(|it| usize::from(*it) <= RINGS_MAX)
}

/// A number for each ring.
fn read_numbers(fields: &mut Reader<'_>) -> Option<Vec<u64>> {
    (0..read_rings(fields)?).map(|_| fields.u64()).collect()
}

fn read_slot(fields: &mut Reader<'_>) -> Option<NodeSlot> {
    fields.u8().filter(|it| *it < NODES_MAX).map(NodeSlot)
}

fn read_known(fields: &mut Reader<'_>) -> Option<(Revision, RoleRecord)> {
    let (revision, epoch) = (Revision(fields.u64()?), Epoch(fields.u64()?));
    let bits = fields.u64()?;
    let (step, owner, copies) = (fields.u32()?, read_slot(fields)?, fields.u8()?);
    zeroes::<2>(fields)?;
    let in_sync = (0..NODES_MAX).filter(|slot| bits.wrapping_shr((*slot).into()) & 1 == 1);
    let in_sync = NodeSet::of(in_sync.map(NodeSlot));
    let copies = (0..copies).map(|_| {
        let id = CopyId(u128::from_le_bytes(fields.bytes()?));
        let slot = read_slot(fields)?;
        zeroes::<7>(fields)?;
        Some((slot, id))
    });
    let copies = copies.collect::<Option<Vec<(NodeSlot, CopyId)>>>()?;
    let record = RoleRecord {
        epoch,
        step,
        owner,
        in_sync,
        copies,
    };
    Some((revision, record))
}

fn read_ring(fields: &mut Reader<'_>) -> Option<RingSummary> {
    let next = fields.u64()?;
    let epochs = (0..read_count(fields)?).map(|_| Some((Epoch(fields.u64()?), fields.u64()?)));
    let epochs = epochs.collect::<Option<Vec<(Epoch, u64)>>>()?;
    Some(RingSummary { epochs, next })
}
