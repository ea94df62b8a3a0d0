//! What the kernel measured of a connection (TCP_INFO), and how fast it is to send (SO_MAX_PACING_RATE).
//!
//! Spec: tcp(7); struct tcp_info of linux/tcp.h, which grows at its end only; socket(7).

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
/// As much of the struct as is read.
const BYTES: usize = 192;

/// `None` where the kernel refuses, as for a socket that is no TCP.
pub(super) fn of(socket: &impl AsFd) -> Option<StreamMeasures> {
    let mut info = [0_u8; BYTES];
    let mut length = libc::socklen_t::try_from(BYTES).expect("a small constant");
    // SAFETY: `info` has `length` bytes for the kernel to write to, and both outlive the call; the descriptor is borrowed for it.
    let refused = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let told = info.get(..usize::try_from(length).ok()?)?;
    let field = |at: usize| {
        let bytes = told.get(at..)?.first_chunk::<4>()?;
        Some(u32::from_ne_bytes(*bytes))
    };
    (refused == 0).then_some(())?;
    Some(StreamMeasures {
        retransmitted: field(TOTAL_RETRANS_AT)?,
        segments_sent: field(SEGS_OUT_AT).unwrap_or(0),
        round_trip_us: field(RTT_AT)?,
    })
}

/// The connection sends no more than so many bytes per second; `None`: as fast as it can. A kernel that does not know it goes on as before.
pub(super) fn pace(socket: &impl AsFd, bytes_per_second: Option<u64>) {
    // All bits set: no limit.
    let rate = bytes_per_second.unwrap_or(u64::MAX);
    let length = libc::socklen_t::try_from(size_of::<u64>()).expect("a small constant");
    // SAFETY: `rate` has `length` bytes for the kernel to read, and outlives the call; the descriptor is borrowed for it.
    let _refused = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const rate).cast(),
            length,
        )
    };
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "how long the system takes is what is asked"
    )]
    fn a_connection_keeps_to_the_pace_that_it_was_told() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sends = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receives, _) = listener.accept().unwrap();
        let seconds = |sends: &mut std::net::TcpStream, receives: &mut std::net::TcpStream| {
            let (payload, mut taken) = (vec![0; 1 << 20], vec![0; 1 << 20]);
            let begun = std::time::Instant::now();
            std::thread::scope(|scope| {
                scope.spawn(|| sends.write_all(&payload).unwrap());
                receives.read_exact(&mut taken).unwrap();
            });
            begun.elapsed().as_secs_f64()
        };
        pace(&sends, Some(10 << 20));
        let held_back = seconds(&mut sends, &mut receives);
        assert!(
            held_back > 0.05,
            "a tenth of a second at least: {held_back}"
        );
        pace(&sends, None);
        let free = seconds(&mut sends, &mut receives);
        assert!(free < held_back, "{free} {held_back}");
    }
    use std::mem::offset_of;

    #[test]
    fn the_fields_stand_where_the_system_headers_have_them() {
        assert_eq!(offset_of!(libc::tcp_info, tcpi_rtt), RTT_AT);
        assert_eq!(
            offset_of!(libc::tcp_info, tcpi_total_retrans),
            TOTAL_RETRANS_AT
        );
        assert_eq!(offset_of!(libc::tcp_info, tcpi_segs_out), SEGS_OUT_AT);
    }
}
