//! Good inputs to start from: those of the crates, and what hosts send.

use super::{Form, FuzzTarget};

/// The inputs that a target starts with; never none.
#[must_use]
pub fn seeds_of(target: &FuzzTarget) -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = match target.name {
        "cdb" => cdbs(),
        "sense" => senses(),
        "mode_select" => mode_lists(),
        "reservations" | "stored_reservations" => reservation_lists(),
        "parameter_lists" => vec![extended_copy()],
        "lun" => luns(),
        "nbd_talk" => nbd::fuzz::seeds(),
        _ => Vec::new(),
    };
    let wanted = |name: &str| match target.form {
        Form::Split => name == "session",
        Form::Bytes | Form::Text | Form::Pdus => name.starts_with(target.name),
    };
    let named = iscsi::fuzz::seeds()
        .into_iter()
        .chain(manifest::fuzz::seeds())
        .chain(checksums::fuzz::seeds())
        .chain(members::fuzz::seeds())
        .chain(journal::fuzz::seeds())
        .chain(peer::fuzz::seeds())
        .chain(vhdx::fuzz::seeds());
    let named = named.filter(|(name, _)| wanted(name));
    out.extend(named.map(|(_, bytes)| match target.form {
        Form::Split => [vec![7; 8], bytes].concat(),
        Form::Bytes | Form::Text | Form::Pdus => bytes,
    }));
    let is_map = ["map_", "pool_", "journal_", "peer_", "vhdx_"]
        .iter()
        .any(|of| target.name.starts_with(of));
    if out.is_empty() || (target.form == Form::Bytes && !is_map) {
        out.extend(scsi::fuzz::seeds().into_iter().map(|(_, bytes)| bytes));
    }
    out
}

/// One CDB for each row of the operation code table, with small numbers in its fields.
fn cdbs() -> Vec<Vec<u8>> {
    const CODES: [(u8, u8); 40] = [
        (0x00, 0),
        (0x03, 0),
        (0x08, 0),
        (0x0a, 0),
        (0x12, 0),
        (0x15, 0x10),
        (0x16, 0),
        (0x17, 0),
        (0x1a, 0),
        (0x1b, 0),
        (0x1d, 4),
        (0x1e, 0),
        (0x25, 0),
        (0x28, 0),
        (0x2a, 8),
        (0x2e, 0),
        (0x2f, 2),
        (0x34, 0),
        (0x35, 0),
        (0x37, 0),
        (0x41, 8),
        (0x42, 0),
        (0x4d, 0),
        (0x55, 0x10),
        (0x5a, 0),
        (0x5e, 0),
        (0x5f, 0),
        (0x83, 0),
        (0x84, 0),
        (0x88, 0),
        (0x89, 0),
        (0x8a, 0),
        (0x8b, 0),
        (0x8f, 0),
        (0x91, 0),
        (0x93, 1),
        (0x9c, 0),
        (0x9e, 0x10),
        (0xa0, 0),
        (0xa3, 0x0c),
    ];
    let more = [
        (0x9e, 0x12),
        (0xa3, 0x0a),
        (0xa3, 0x0d),
        (0xa8, 0),
        (0xaa, 0),
        (0xae, 0),
        (0xaf, 0),
        (0xb7, 0),
    ];
    let codes = CODES.into_iter().chain(more);
    codes
        .map(|(code, second)| {
            let mut cdb = vec![code, second, 0, 0, 0, 8, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0];
            match code >> 5 {
                0 => cdb.truncate(6),
                1 | 2 => cdb.truncate(10),
                5 => cdb.truncate(12),
                _ => {}
            }
            cdb
        })
        .collect()
}

fn senses() -> Vec<Vec<u8>> {
    let mut fixed = vec![
        0xf0, 0, 5, 0, 0, 0, 9, 10, 0, 0, 0, 0, 0x24, 0, 0, 0xc0, 0, 2,
    ];
    fixed.resize(18, 0);
    let information = [0, 0x0a, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    let key_specific = [2, 6, 0, 0, 0xcb, 0, 4, 0];
    let mut descriptors = vec![0x72, 0x0e, 0x1d, 0, 0, 0, 0, 20];
    descriptors.extend(information);
    descriptors.extend(key_specific);
    vec![
        fixed,
        descriptors,
        vec![0x70, 0, 2, 0, 0, 0, 0, 10, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0],
    ]
}

/// The first byte chooses between the six- and the ten-byte form, and whether to save.
fn mode_lists() -> Vec<Vec<u8>> {
    let caching = [
        8, 0x12, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    let control = [0x0a, 0x0a, 6, 0x10, 8, 0, 0, 0, 0xff, 0xff, 0, 0];
    let exceptions = [0x1c, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let block = [0, 0, 0x10, 0, 0, 0, 2, 0];
    let six = [&[0_u8, 0, 0, 0, 8][..], &block, &caching].concat();
    let ten = [
        &[3_u8, 0, 0, 0, 0, 0, 0, 0, 0][..],
        &caching,
        &control,
        &exceptions,
    ]
    .concat();
    vec![six, ten, [&[2_u8, 0, 0, 0, 0][..], &control].concat()]
}

/// Histories: who, service action, scope and type, length, parameter list.
fn reservation_lists() -> Vec<Vec<u8>> {
    let basic = |who: u8, action: u8, kind: u8, keys: (u8, u8), flags: u8| {
        let mut step = vec![who, action, kind, 24];
        step.extend([0, 0, 0, 0, 0, 0, 0, keys.0, 0, 0, 0, 0, 0, 0, 0, keys.1]);
        step.extend([0, 0, 0, 0, flags, 0, 0, 0]);
        step
    };
    let two = [basic(0, 0, 0, (0, 1), 1), basic(1, 0, 0, (0, 2), 0)].concat();
    let preempt = [
        two.clone(),
        basic(0, 1, 5, (1, 0), 0),
        basic(1, 4, 5, (2, 1), 0),
    ]
    .concat();
    let all = [
        two.clone(),
        basic(0, 1, 8, (1, 0), 0),
        basic(0, 2, 8, (1, 0), 0),
        basic(1, 3, 0, (2, 0), 0),
    ]
    .concat();
    // TransportID of format 01b: name and ISID (SPC-4 7.6.4.6 "TransportID for initiator ports
    // using SCSI over iSCSI").
    let mut id = vec![0x45, 0, 0, 20];
    id.extend(b"iqn.b,i,0x000000000000\0\0");
    id[3] = u8::try_from(id.len() - 4).expect("short");
    let mut named = basic(0, 0, 0, (0, 3), 8);
    named[3] = u8::try_from(28 + id.len()).expect("short");
    named.extend([0, 0, 0, u8::try_from(id.len()).expect("short")]);
    named.extend(&id);
    let mut moved = vec![0, 7, 0, 24];
    moved.extend([
        0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0,
    ]);
    moved.push(u8::try_from(id.len()).expect("short"));
    moved[3] = u8::try_from(24 + id.len()).expect("short");
    moved.extend(&id);
    let moved = [two.clone(), basic(0, 1, 3, (1, 0), 0), moved].concat();
    let spc2 = vec![
        0, 0x10, 0, 0, 1, 0x10, 0, 0, 0, 0x11, 0, 0, 1, 0x12, 0, 0, 0, 0x13, 0, 0,
    ];
    vec![two, preempt, all, named, moved, spc2, id]
}

/// Two units named by NAA identifiers, one segment from block to block (SPC-4 6.4 "EXTENDED
/// COPY(LID1)").
fn extended_copy() -> Vec<u8> {
    let unit = |last: u8| {
        let mut target = vec![0xe4, 0, 0, 0, 1, 3, 0, 16];
        target.extend([0x60; 15]);
        target.extend([last, 0, 0, 0, 0, 0, 0, 2, 0]);
        target.resize(32, 0);
        target
    };
    let mut segment = vec![2, 0, 0, 24, 0, 0, 0, 1, 0, 0, 0, 8];
    segment.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8]);
    let mut list = vec![1, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 0];
    list.extend(unit(0x60));
    list.extend(unit(0x61));
    list.extend(segment);
    list
}

fn luns() -> Vec<Vec<u8>> {
    [
        [0, 5],
        [0x40, 0],
        [0x7f, 0xff],
        [0x80, 1],
        [0xc1, 1],
        [0xd2, 0],
    ]
    .iter()
    .map(|head| [&head[..], &[0; 6]].concat())
    .collect()
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::fuzz::TARGETS;

    #[test]
    fn every_target_has_seeds_and_none_breaks_an_oracle() {
        for target in TARGETS {
            let seeds = seeds_of(target);
            assert!(!seeds.is_empty(), "{}", target.name);
            for seed in seeds {
                (target.run)(&seed);
            }
        }
    }

    #[test]
    fn seeds_are_understood() {
        for cdb in cdbs() {
            assert_eq!(scsi::cdb::Command::parse(&cdb).err(), None, "{cdb:02x?}");
        }
        for sense in senses() {
            assert!(scsi::sense::Sense::parse(&sense).is_some(), "{sense:02x?}");
        }
        let list = extended_copy();
        let length = u32::try_from(list.len()).unwrap();
        let copy = scsi::copy::ExtendedCopy::parse(&list, length)
            .unwrap()
            .unwrap();
        assert_eq!((copy.targets.len(), copy.segments.len()), (2, 1));
        let id = reservation_lists().pop().unwrap();
        assert!(scsi::reservation::TransportId::parse(&id).is_some());
    }
}
