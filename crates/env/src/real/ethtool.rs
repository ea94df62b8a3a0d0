//! What a NIC's driver reports and takes by the ethtool calls.
//!
//! Layouts: `ifreq` of linux/if.h; `ethtool_value`, `ethtool_ringparam`, `ethtool_pauseparam`,
//! `ethtool_cmd` and `ethtool_drvinfo` of linux/ethtool.h, all host-endian.

#![expect(unsafe_code, reason = "SIOCETHTOOL takes a pointer to its block")]

use crate::net::DriverFacts;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const NAME_BYTES: usize = 16;

const GET_SETTINGS: u32 = 0x01;
const GET_DRIVER: u32 = 0x03;
const GET_RING: u32 = 0x10;
const GET_PAUSE: u32 = 0x12;
const GET_SEND_CHECKSUM: u32 = 0x16;

const SETTINGS_BYTES: usize = 44;
const DRIVER_BYTES: usize = 196;
const AUTONEGOTIATION_AT: usize = 18;

/// Work that a NIC or its driver does for the network stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offload {
    /// The NIC cuts large TCP packets (TSO).
    Segmentation,
    /// The stack cuts large packets as late as it can (GSO).
    GenericSegmentation,
    /// The stack puts received packets together (GRO).
    GenericReceive,
}

impl Offload {
    fn commands(self) -> (u32, u32) {
        match self {
            Self::Segmentation => (0x1e, 0x1f),
            Self::GenericSegmentation => (0x23, 0x24),
            Self::GenericReceive => (0x2b, 0x2c),
        }
    }
}

/// The calls, on the interfaces of one network namespace.
#[derive(Debug)]
pub struct Ethtool(OwnedFd);

impl Ethtool {
    /// Those of the caller's namespace.
    ///
    /// # Errors
    /// Where no socket can be had.
    pub fn here() -> io::Result<Self> {
        let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
        Ok(Self(socket_with(family, kind, SocketFlags::CLOEXEC, None)?))
    }

    /// Those of the namespace that has a name at `path`, such as `/run/netns/blue`.
    ///
    /// # Errors
    /// Where there is none, or the caller may not enter it.
    pub fn of_namespace(path: &Path) -> io::Result<Self> {
        let namespace = File::open(path)?;
        // A socket belongs for good to the namespace in which it is made. A thread goes there,
        // makes it, and ends.
        let thread = std::thread::Builder::new().name("ethtool".to_owned());
        let made = thread.spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Self::here()
        })?;
        made.join()
            .map_err(|_| io::Error::other("the thread in the namespace panicked"))?
    }

    /// Whether an offload is on.
    ///
    /// # Errors
    /// What the driver says; `EOPNOTSUPP` where it has no such offload.
    pub fn offload(&self, interface: &str, offload: Offload) -> io::Result<bool> {
        let [value] = self.words(interface, offload.commands().0)?;
        Ok(value != 0)
    }

    /// Turns an offload on or off.
    ///
    /// # Errors
    /// What the driver says; `EPERM` without the right to change the network.
    pub fn set_offload(&self, interface: &str, offload: Offload, on: bool) -> io::Result<()> {
        let mut block = [0; 8];
        block[..4].copy_from_slice(&offload.commands().1.to_ne_bytes());
        block[4..].copy_from_slice(&u32::from(on).to_ne_bytes());
        self.call(interface, &mut block)
    }

    /// Everything that the driver reports.
    ///
    /// # Errors
    /// Where there is no such interface. What the driver refuses to report is absent.
    pub fn facts(&self, interface: &str) -> io::Result<DriverFacts> {
        let mut driver = [0; DRIVER_BYTES];
        driver[..4].copy_from_slice(&GET_DRIVER.to_ne_bytes());
        let mut facts = DriverFacts::default();
        match self.call(interface, &mut driver) {
            Ok(()) => {
                facts.driver = text(&driver[4..36]);
                facts.firmware = text(&driver[68..100]);
            }
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return Err(error),
            Err(_) => {}
        }
        let ring = self.words::<8>(interface, GET_RING);
        if let Ok([rx_max, _, _, tx_max, rx, _, _, tx]) = ring {
            facts.receive_ring = (rx_max > 0).then_some((rx, rx_max));
            facts.send_ring = (tx_max > 0).then_some((tx, tx_max));
        }
        let mut settings = [0; SETTINGS_BYTES];
        settings[..4].copy_from_slice(&GET_SETTINGS.to_ne_bytes());
        if self.call(interface, &mut settings).is_ok() {
            facts.negotiates = Some(settings[AUTONEGOTIATION_AT] != 0);
        }
        if let Ok([_, rx, tx]) = self.words(interface, GET_PAUSE) {
            facts.pause = Some((rx != 0, tx != 0));
        }
        let checksum = self.words::<1>(interface, GET_SEND_CHECKSUM);
        facts.checksum_offload = checksum.ok().map(|[on]| on != 0);
        facts.segmentation_offload = self.offload(interface, Offload::Segmentation).ok();
        facts.receive_offload = self.offload(interface, Offload::GenericReceive).ok();
        Ok(facts)
    }

    /// The words that a command answers with, behind its own.
    fn words<const N: usize>(&self, interface: &str, command: u32) -> io::Result<[u32; N]> {
        let mut block = vec![0; 4 + 4 * N];
        block[..4].copy_from_slice(&command.to_ne_bytes());
        self.call(interface, &mut block)?;
        let mut words = [0; N];
        for (word, bytes) in words.iter_mut().zip(block[4..].chunks_exact(4)) {
            *word = u32::from_ne_bytes(*bytes.first_chunk().expect("a chunk of four"));
        }
        Ok(words)
    }

    /// Hands a command's block to the driver, which fills it. The block must have the command's
    /// full length.
    fn call(&self, interface: &str, block: &mut [u8]) -> io::Result<()> {
        let name = interface.as_bytes();
        if name.is_empty() || name.len() >= NAME_BYTES || name.contains(&0) {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        // SAFETY: all bytes zero are a valid `ifreq`, which is integers, arrays of them, and
        // pointers.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name) {
            *to = libc::c_char::from_ne_bytes([*from]);
        }
        request.ifr_ifru.ifru_data = block.as_mut_ptr().cast();
        // SAFETY: the request names an interface with a terminating zero and points to `block`,
        // which is exclusively ours for the call; every caller above makes it as long as the
        // structure of its command.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    let text = bytes.split(|byte| *byte == 0).next()?;
    let text = String::from_utf8_lossy(text).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn the_loopback_reports_what_the_kernel_shows_elsewhere_and_no_interface_is_an_error() {
        let here = Ethtool::here().unwrap();
        // The loopback's features are fixed by the kernel: it cuts nothing itself, and can always.
        assert!(here.offload("lo", Offload::Segmentation).unwrap());
        assert_eq!(here.facts("lo").unwrap().receive_ring, None);
        let error = here.facts("nosuch0").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        assert!(
            here.offload("a-name-that-is-too-long", Offload::Segmentation)
                .is_err()
        );
    }
}
