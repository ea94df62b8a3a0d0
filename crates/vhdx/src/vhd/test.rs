//! VHDs that are made here, field by field; `tests/foreign` has those of others.

use super::footer::sum;
use super::{Vhd, VhdChain};
use crate::error::{Error, ParentMismatch};
use crate::test::disk::Disk;
use crate::test::world::gather;

const BLOCK: u64 = 2 << 20;
const DISK: u64 = 7 << 20;

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

fn footer(kind: u32, id: u8) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    put(&mut bytes, 0, b"conectix");
    put(&mut bytes, 12, &0x1_0000_u32.to_be_bytes());
    let header: u64 = if kind == 2 { u64::MAX } else { 512 };
    put(&mut bytes, 16, &header.to_be_bytes());
    put(&mut bytes, 48, &DISK.to_be_bytes());
    put(&mut bytes, 60, &kind.to_be_bytes());
    put(&mut bytes, 68, &[id; 16]);
    let sum = sum(&bytes, 64);
    put(&mut bytes, 64, &sum.to_be_bytes());
    bytes
}

/// A child of `parent`, whose block 1 has the sectors of `bits` filled with `byte`.
fn child(parent: u8, id: u8, bits: &[u64], byte: u8) -> Vec<u8> {
    let mut file = footer(4, id);
    let mut header = vec![0; 1024];
    put(&mut header, 0, b"cxsparse");
    put(&mut header, 16, &1536_u64.to_be_bytes());
    put(&mut header, 28, &4_u32.to_be_bytes());
    put(&mut header, 32, &(BLOCK as u32).to_be_bytes());
    put(&mut header, 40, &[parent; 16]);
    put(&mut header, 64, &[0, b'p']);
    put(&mut header, 576, b"W2ru");
    put(&mut header, 584, &6_u32.to_be_bytes());
    put(&mut header, 592, &2048_u64.to_be_bytes());
    let sum = sum(&header, 36);
    put(&mut header, 36, &sum.to_be_bytes());
    file.extend(header);
    let table = [u32::MAX, 5, u32::MAX, u32::MAX]
        .map(u32::to_be_bytes)
        .concat();
    file.extend(table);
    file.resize(2048, 0);
    file.extend([b'.', 0, b'\\', 0, b'p', 0]);
    file.resize(5 * 512, 0);
    let mut bitmap = vec![0_u8; 512];
    let mut block = vec![0; BLOCK as usize];
    for sector in bits {
        bitmap[*sector as usize / 8] |= 0x80 >> (sector % 8);
        block[*sector as usize * 512..(*sector as usize + 1) * 512].fill(byte);
    }
    file.extend(bitmap);
    file.extend(block);
    file.extend(footer(4, id));
    file
}

fn fixed(id: u8) -> Vec<u8> {
    let disk = (0..DISK / 8).flat_map(u64::to_le_bytes);
    disk.chain(footer(2, id)).collect()
}

fn open(files: &[Vec<u8>]) -> (Disk, Result<VhdChain, Error>) {
    let mut disk = Disk::new(files.len());
    for (file, bytes) in disk.files.iter_mut().zip(files) {
        file.now.write(0, bytes);
    }
    let images = (0..files.len()).map(|file| disk.run(Vhd::open_as(file)));
    let images: Result<Vec<Vhd>, Error> = images.collect();
    let chain = images.and_then(VhdChain::new);
    (disk, chain)
}

#[test]
fn a_chain_of_three_is_read_sector_by_sector() {
    let (older, newer) = ([0, 7, 8, 100, 4095], [8, 9, 4094]);
    let files = [
        child(2, 3, &newer, 0xee),
        child(1, 2, &older, 0xdd),
        fixed(1),
    ];
    let (mut disk, chain) = open(&files);
    let chain = chain.unwrap();
    let mut wanted: Vec<u8> = (0..DISK / 8).flat_map(u64::to_le_bytes).collect();
    for (sectors, byte) in [(&older[..], 0xdd), (&newer, 0xee)] {
        for sector in sectors {
            let at = (BLOCK + sector * 512) as usize;
            wanted[at..at + 512].fill(byte);
        }
    }
    for (at, bytes) in [
        (0, DISK),
        (BLOCK + 512, 8192),
        (BLOCK - 512, BLOCK + 1024),
        (512, 512),
    ] {
        let pieces = disk.run(chain.read(at, bytes)).unwrap();
        let found = gather(&disk, &pieces, bytes);
        assert!(
            found == wanted[at as usize..(at + bytes) as usize],
            "{at} {bytes}"
        );
    }
    assert_eq!(chain.image().parent_paths(), [".\\p", "p"]);
    assert!(disk.run(chain.read(DISK, 512)).is_err());
}

#[test]
fn what_does_not_belong_together_or_is_cut_off_is_refused() {
    let wrong = |files: &[Vec<u8>]| open(files).1.err();
    let of = |why| Some(Error::Parent(why));
    assert_eq!(
        wrong(&[child(9, 2, &[1], 1), fixed(1)]),
        of(ParentMismatch::Linkage)
    );
    assert_eq!(wrong(&[child(1, 2, &[1], 1)]), of(ParentMismatch::Count));
    assert_eq!(wrong(&[fixed(1), fixed(2)]), of(ParentMismatch::Count));
    let whole = fixed(1);
    assert_eq!(wrong(std::slice::from_ref(&whole)), None);
    assert_eq!(
        wrong(&[whole[..whole.len() - 1].to_vec()]),
        None,
        "511 bytes of old programs"
    );
    assert!(wrong(&[whole[..whole.len() - 2].to_vec()]).is_some());
    assert!(
        wrong(&[whole[512..].to_vec()]).is_some(),
        "shorter than its disk"
    );
    // The copy at the beginning, where the end is gone; the block behind it then is, too.
    let whole = child(1, 2, &[1], 1);
    let (mut disk, chain) = open(&[whole[..whole.len() - 600].to_vec(), fixed(1)]);
    let chain = chain.unwrap();
    assert!(disk.run(chain.read(BLOCK, 512)).is_ok());
    let last = disk.run(chain.read(2 * BLOCK - 512, 512));
    assert!(matches!(last, Err(Error::BadBlock { block: 1, .. })));
    for end in [0, 100, 511, 512, 1000, 1536, 1540] {
        assert!(wrong(&[whole[..end].to_vec(), fixed(1)]).is_some(), "{end}");
    }
}

#[test]
fn no_flip_of_a_bit_is_read_as_something_else() {
    let whole = child(1, 2, &[1], 1);
    for at in (0..1536).step_by(13) {
        let mut hurt = whole.clone();
        hurt[at] ^= 1 << (at % 8);
        let end = hurt.len() - 512;
        // Both footers.
        if at < 512 {
            hurt[end + at] ^= 1 << (at % 8);
        }
        assert!(open(&[hurt, fixed(1)]).1.is_err(), "byte {at}");
    }
}
