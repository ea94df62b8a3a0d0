//! Buffers against plain vectors.

use super::*;

fn numbered(pool: &Pool, len: usize) -> (Buf, Vec<u8>) {
    let bytes: Vec<u8> = (0..len)
        .map(|i| ((i * 7 + i / 251) % 256).try_into().unwrap())
        .collect();
    let mut memory = pool.alloc(len).unwrap();
    memory.copy_at(0, &bytes);
    (memory.freeze(), bytes)
}

#[test]
fn slices_of_scattered_memory_equal_slices_of_a_vector() {
    let pool = Pool::new(64 << 20);
    let (one, mut model) = numbered(&pool, 5000);
    let (two, more) = numbered(&pool, (2 << 20) + 77);
    let mut buf = one;
    buf.append(&two);
    model.extend_from_slice(&more);
    for (from, to) in [
        (0, 0),
        (0, 1),
        (4999, 5001),
        (1, model.len()),
        (1 << 20, (1 << 20) + 9000),
    ] {
        assert_eq!(buf.slice(from..to).to_vec(), model[from..to]);
        let mut copy = vec![0; to - from];
        buf.copy_to(from, &mut copy);
        assert_eq!(copy, model[from..to]);
    }
    assert!(buf.segment_count() > 2);
}

#[test]
fn the_first_difference_is_found_across_segment_borders() {
    let pool = Pool::new(64 << 20);
    let (whole, model) = numbered(&pool, 3000);
    let mut split = Buf::empty();
    for cut in model.chunks(700) {
        split.append(&Buf::copy_of(cut));
    }
    assert_eq!(whole, split);
    for at in [0, 699, 700, 2999] {
        let mut other = model.clone();
        other[at] ^= 1;
        assert_eq!(split.first_difference(&Buf::copy_of(&other)), Some(at));
    }
}

#[test]
fn a_pool_refuses_beyond_its_limit_and_takes_slabs_back_from_any_thread() {
    let pool = Pool::new(3 << 20);
    let first = pool.alloc(2 << 20).unwrap().freeze();
    assert_eq!(pool.out_bytes(), 2 << 20);
    assert_eq!(pool.alloc((1 << 20) + 1).unwrap_err(), Exhausted);
    assert_eq!(
        pool.out_bytes(),
        2 << 20,
        "a refused request leaves nothing out"
    );
    let part = first.slice(10..20);
    drop(first);
    assert_eq!(
        pool.out_bytes(),
        1 << 20,
        "the slab that the part uses stays"
    );
    std::thread::scope(|scope| {
        scope.spawn(move || drop(part));
    });
    assert_eq!(pool.out_bytes(), 0);
}

#[test]
fn every_piece_is_page_aligned() {
    let pool = Pool::new(8 << 20);
    for len in [1, 512, 4096, 4097, 65536, (1 << 20) + 1] {
        let mut memory = pool.alloc(len).unwrap();
        assert_eq!(memory.len(), len);
        assert!(
            memory
                .pieces_mut()
                .all(|piece| piece.as_ptr().align_offset(4096) == 0)
        );
    }
}

#[test]
fn zeroes_and_repeats_share_memory() {
    let zeroes = Buf::zeroes((3 << 20) + 5);
    assert_eq!(zeroes.len(), (3 << 20) + 5);
    assert!(zeroes.is_zero());
    let pattern = Buf::copy_of(&[1, 2, 3]);
    assert_eq!(pattern.repeat_to(8).to_vec(), [1, 2, 3, 1, 2, 3, 1, 2]);
}
