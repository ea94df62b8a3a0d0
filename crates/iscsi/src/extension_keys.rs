//! What a target of ours and an initiator of ours say beyond the standard, in keys of our own.
//!
//! ```text
//!   X-org.causeway.Fence=400001370000,0012     end this other session of mine for good
//!   X-org.causeway.Fence=Fenced                nothing of it is carried out any more
//!   X-org.causeway.Ports=?                     what stands behind your portals? (see [`port`])
//!   X-org.causeway.Nic=eth2,card:0000:03:00    my NIC of this session, at its login (see [`nic`])
//! ```
//!
//! Others answer such keys `NotUnderstood` and go on.
//!
//! Spec: RFC 7143 6.3 "Text Mode Negotiation" (keys `X-` with a reversed domain name), 12.22
//! "X-...".

pub mod nic;
pub mod port;

use crate::ids::{Isid, Tsih};

/// Key of the Text Request, in a normal session, that asks for the end of another session of the
/// same initiator with the same target. The target answers when every task of it is over or in
/// quarantine, and none can begin any more.
pub const FENCE: &str = "X-org.causeway.Fence";

/// The value of the answer then.
pub const FENCED: &str = "Fenced";

/// The value of the answer where it could not be done.
pub(crate) const NOT_FENCED: &str = "NotFenced";

/// The session that is to end, as the value of [`FENCE`].
#[must_use]
pub fn fence_value(isid: Isid, tsih: Tsih) -> String {
    let isid: String = isid.0.iter().map(|it| format!("{it:02x}")).collect();
    format!("{isid},{:04x}", tsih.0)
}

/// Reads what [`fence_value`] wrote.
pub(crate) fn parse_fence(value: &str) -> Option<(Isid, Tsih)> {
    let (isid, tsih) = value.split_once(',')?;
    let digits = |text: &str, length| {
        let whole = text.len() == length && text.bytes().all(|it| it.is_ascii_hexdigit());
        whole.then(|| u64::from_str_radix(text, 16).ok()).flatten()
    };
    let [_, _, isid @ ..] = digits(isid, 12)?.to_be_bytes();
    let tsih = u16::try_from(digits(tsih, 4)?).ok()?;
    Some((Isid(isid), Tsih(tsih)))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_fence_is_read_as_it_was_written_and_nothing_else_is_one() {
        let (isid, tsih) = (Isid([0x80, 0, 1, 0xAB, 0xFF, 7]), Tsih(0x12));
        let value = fence_value(isid, tsih);
        assert_eq!(value, "800001abff07,0012");
        assert_eq!(parse_fence(&value), Some((isid, tsih)));
        for wrong in [
            "",
            ",",
            "800001abff07",
            "800001abff07,",
            "800001abff07,12",
            "800001abff0,0012",
            "800001abff0g,0012",
            "+00001abff07,0012",
            "800001abff07,+012",
            "800001abff07,0012,",
        ] {
            assert_eq!(parse_fence(wrong), None, "{wrong}");
        }
    }
}
