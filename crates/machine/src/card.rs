//! Which card a NIC sits on, from where sysfs has it.
//!
//! `/sys/class/net/eth2` leads to `/sys/devices/pci0000:00/0000:00:02.0/0000:03:00.1/net/eth2`: the
//! last PCI function on the way is the NIC's, and the functions of one PCI device (bus and device
//! number) are one card. Two devices behind a bridge of their own on one board look like two cards;
//! the administrator's file can say that they are one.

use std::path::{Path, PathBuf};

/// What hardware a NIC is, by its directory in sysfs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct NicHardware {
    /// What fails with the NIC; `None`: it is no hardware.
    pub(crate) card: Option<String>,
    /// The directory of its PCI function.
    pub(crate) function: Option<PathBuf>,
}

/// Reads it from the path of the NIC's directory, links followed.
pub(crate) fn hardware(nic: &Path) -> NicHardware {
    let mut function = None;
    let (mut usb, mut on_usb) = (None, false);
    let mut at = PathBuf::new();
    for part in nic.components() {
        at.push(part);
        let Some(name) = part.as_os_str().to_str() else {
            continue;
        };
        if is_function(name) {
            function = Some((at.clone(), device_of(name)));
        }
        on_usb |= name.starts_with("usb") && name[3..].parse::<u16>().is_ok();
        if on_usb && is_usb_device(name) {
            usb = Some(format!("usb:{name}"));
        }
    }
    // A USB NIC goes with its plug, not with the controller.
    if usb.is_some() {
        return NicHardware {
            card: usb,
            function: None,
        };
    }
    if let Some((at, device)) = function {
        return NicHardware {
            card: Some(device),
            function: Some(at),
        };
    }
    // Other buses (Hyper-V, Xen, platform devices): the directory that has the NIC is its device.
    let parent = nic.parent().filter(|it| it.ends_with("net"));
    let device = parent.and_then(|net| net.parent()?.file_name()?.to_str());
    NicHardware {
        card: device.filter(|it| *it != "virtual").map(str::to_owned),
        function: None,
    }
}

/// The card of a virtual function is its physical function's.
pub(crate) fn card_of_function(function: &Path) -> Option<String> {
    let name = function.file_name()?.to_str()?;
    is_function(name).then(|| device_of(name))
}

/// `0000:03:00.1`
fn is_function(name: &str) -> bool {
    let hex = |text: &str, most: usize| {
        (2..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
    };
    let mut parts = name.splitn(3, ':');
    let (Some(domain), Some(bus), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let Some((device, function)) = rest.split_once('.') else {
        return false;
    };
    hex(domain, 8)
        && hex(bus, 2)
        && hex(device, 2)
        && function.len() == 1
        && function.bytes().all(|b| b.is_ascii_hexdigit())
}

/// `0000:03:00` of `0000:03:00.1`.
fn device_of(function: &str) -> String {
    let device = function.rsplit_once('.').map_or(function, |(it, _)| it);
    device.to_owned()
}

/// `1-1.2`
fn is_usb_device(name: &str) -> bool {
    name.split_once('-').is_some_and(|(bus, port)| {
        bus.parse::<u16>().is_ok()
            && !port.is_empty()
            && port.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    })
}

#[cfg(test)]
mod test {
    use super::*;

    fn card(path: &str) -> Option<String> {
        hardware(Path::new(path)).card
    }

    #[test]
    fn functions_of_one_device_are_one_card_and_other_devices_are_others() {
        let port = |function: &str| {
            card(&format!(
                "/sys/devices/pci0000:00/0000:00:02.0/{function}/net/eth0"
            ))
        };
        assert_eq!(port("0000:03:00.0"), Some("0000:03:00".to_owned()));
        assert_eq!(port("0000:03:00.0"), port("0000:03:00.1"));
        assert_ne!(port("0000:03:00.0"), port("0000:04:00.0"));
        assert_eq!(
            card("/sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0"),
            Some("0000:00:03".to_owned())
        );
        let at = hardware(Path::new(
            "/sys/devices/pci0000:00/0000:00:03.0/virtio2/net/eth0",
        ));
        assert_eq!(
            at.function,
            Some(PathBuf::from("/sys/devices/pci0000:00/0000:00:03.0"))
        );
    }

    #[test]
    fn what_is_not_on_pci_is_named_by_its_own_bus_and_what_is_virtual_has_no_card() {
        let usb = "/sys/devices/pci0000:00/0000:00:14.0/usb2/2-1/2-1.4/2-1.4:1.0/net/enx0";
        assert_eq!(card(usb), Some("usb:2-1.4".to_owned()));
        let hyperv = "/sys/devices/LNXSYSTM:00/VMBUS:00/f8615163-df3e/net/eth0";
        assert_eq!(card(hyperv), Some("f8615163-df3e".to_owned()));
        assert_eq!(card("/sys/devices/virtual/net/veth0"), None);
        assert_eq!(card("/"), None);
    }
}
