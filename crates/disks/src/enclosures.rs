//! The bays of enclosures, as the kernel's `ses` driver shows them in sysfs.

use crate::roots::{Roots, names, text};
use device_health::SeenBay;
use std::path::Path;

/// Every bay, once, whatever the number of paths to its enclosure.
pub(crate) fn bays(roots: &Roots) -> Vec<SeenBay> {
    let class = roots.sys.join("class/enclosure");
    let mut all: Vec<SeenBay> = Vec::new();
    for enclosure in names(&class) {
        let at = class.join(&enclosure);
        let id = text(&at.join("id"));
        let id = id.strip_prefix("0x").unwrap_or(&id);
        // Its place on the bus outlives no restart, and is better than nothing.
        let id = if id.is_empty() { &enclosure } else { id };
        let bays = names(&at);
        for bay in bays.iter().filter_map(|name| bay(&at.join(name), id, name)) {
            merge(&mut all, bay);
        }
    }
    all
}

/// The same bay through another path shows another device for the same disk.
fn merge(all: &mut Vec<SeenBay>, bay: SeenBay) {
    let same = |it: &&mut SeenBay| it.enclosure == bay.enclosure && it.slot == bay.slot;
    match all.iter_mut().find(same) {
        Some(known) => {
            known.has_device |= bay.has_device;
            known.is_faulty |= bay.is_faulty;
            known.names.extend(bay.names);
        }
        None => all.push(bay),
    }
}

fn bay(at: &Path, enclosure: &str, name: &str) -> Option<SeenBay> {
    let status = at.join("status");
    // "device" and "array device" are for disks; others are fans, power supplies and sensors.
    if !status.exists() || !text(&at.join("type")).ends_with("device") {
        return None;
    }
    let slot = text(&at.join("slot"));
    let slot = if slot.is_empty() { name.trim() } else { &slot };
    let device = at.join("device");
    Some(SeenBay {
        enclosure: enclosure.to_owned(),
        slot: slot.to_owned(),
        status: text(&status),
        is_faulty: text(&at.join("fault")) == "1",
        has_device: device.exists(),
        names: names(&device.join("block")),
    })
}
