//! Which groups whoever opened a unix socket belongs to.
//!
//! Spec: unix(7); `SO_PEERGROUPS` of asm-generic/socket.h, since Linux 4.13.

#![expect(unsafe_code, reason = "no safe crate of ours has SO_PEERGROUPS")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

const SO_PEERGROUPS: libc::c_int = 59;

/// The most groups that a process can be in (`NGROUPS_MAX`).
const GROUPS_MAX: usize = 65_536;

/// The supplementary groups that the other end of a unix socket had when it connected.
///
/// # Errors
/// The kernel does not say.
pub fn peer_groups(socket: &impl AsFd) -> io::Result<Vec<u32>> {
    let mut groups = vec![0_u32; GROUPS_MAX];
    let bytes = groups.len() * size_of::<u32>();
    let mut length = libc::socklen_t::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: `groups` has `length` bytes for the kernel to write to, and both outlive the call;
    // the descriptor is borrowed for it.
    let refused = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERGROUPS,
            groups.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if refused != 0 {
        return Err(io::Error::last_os_error());
    }
    let written = usize::try_from(length).unwrap_or(0) / size_of::<u32>();
    groups.truncate(written);
    Ok(groups)
}

#[cfg(test)]
mod test {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_groups_of_the_other_end_are_those_of_this_process_where_it_is_the_same() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let Ok(mut reported) = peer_groups(&ours) else {
            println!("skipped: this kernel does not say");
            return;
        };
        let own = rustix::process::getgroups().unwrap();
        let mut own: Vec<u32> = own.iter().map(|group| group.as_raw()).collect();
        own.sort_unstable();
        reported.sort_unstable();
        assert_eq!(reported, own);
    }
}
