//! TCP_INFO: what the kernel measured of a connection.
//!
//! Spec: tcp(7); struct tcp_info of linux/tcp.h, which grows at its end only.

#![expect(
    unsafe_code,
    reason = "no safe crate of ours reads the fields that newer kernels add"
)]

use crate::net::StreamMeasures;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;

/// Where the fields stand, in bytes (linux/tcp.h; the order is part of the kernel's interface).
const RTT_AT: usize = 68;
const TOTAL_RETRANS_AT: usize = 100;
const SEGS_OUT_AT: usize = 136;
const MIN_RTT_AT: usize = 148;
/// As much of the struct as is read.
const BYTES: usize = 192;

/// `None` where the kernel refuses, as for a socket that is no TCP.
pub(super) fn of(socket: &impl AsFd) -> Option<StreamMeasures> {
    let mut info = [0_u8; BYTES];
    let mut length = libc::socklen_t::try_from(BYTES).expect("a small constant");
    // SAFETY: `info` has `length` bytes for the kernel to write to, and both outlive the call; the
    // descriptor is borrowed for it.
    let refused = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let reported = info.get(..usize::try_from(length).ok()?)?;
    let field = |at: usize| {
        let bytes = reported.get(at..)?.first_chunk::<4>()?;
        Some(u32::from_ne_bytes(*bytes))
    };
    (refused == 0).then_some(())?;
    Some(StreamMeasures {
        retransmitted: field(TOTAL_RETRANS_AT)?,
        segments_sent: field(SEGS_OUT_AT).unwrap_or(0),
        round_trip_us: field(RTT_AT)?,
        round_trip_min_us: field(MIN_RTT_AT).unwrap_or(0),
    })
}

#[cfg(test)]
mod test {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_fields_stand_where_the_system_headers_have_them() {
        assert_eq!(offset_of!(libc::tcp_info, tcpi_rtt), RTT_AT);
        assert_eq!(
            offset_of!(libc::tcp_info, tcpi_total_retrans),
            TOTAL_RETRANS_AT
        );
        assert_eq!(offset_of!(libc::tcp_info, tcpi_segs_out), SEGS_OUT_AT);
        assert_eq!(offset_of!(libc::tcp_info, tcpi_min_rtt), MIN_RTT_AT);
    }
}
