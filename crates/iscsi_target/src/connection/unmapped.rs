//! Commands to a LUN behind which there is nothing, and REPORT LUNS, which is the target's to
//! answer.

use iscsi::Lun;
use logical_unit::Response;
use scsi::lun::{LunAddress, answer_without_unit, decode};
use scsi::{Command, SenseFormat, Status};
use units::Buf;

/// What a LUN field addresses.
pub(super) fn address(lun: Lun) -> LunAddress {
    decode(lun.0)
}

/// The answer of a LUN without a unit, for an initiator that sees `luns`. REPORT LUNS is answered
/// alike everywhere.
pub(super) fn respond(address: LunAddress, cdb: &[u8], luns: &[u16]) -> Response {
    let parsed = Command::parse(cdb).map_err(|error| error.sense());
    let answered = parsed.and_then(|command| {
        let data = answer_without_unit(address, &command, REVISION, luns)?;
        Ok(cut(data, &command))
    });
    match answered {
        Ok(data) => Response::good(data),
        Err(sense) => Response {
            status: Status::CheckCondition,
            sense: Some(sense.to_bytes(SenseFormat::Fixed).into()),
            data_in: Buf::empty(),
            latency_trace: None,
        },
    }
}

const REVISION: &str = env!("CARGO_PKG_VERSION");

fn cut(mut data: Vec<u8>, command: &Command) -> Buf {
    let limit = command
        .data_in_limit(units::BlockSize::B512)
        .map_or(0, |limit| limit.0);
    data.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Buf::copy_of(&data)
}
