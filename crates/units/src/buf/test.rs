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
        let mut back = buf.clone();
        let front = back.split_front(to);
        assert_eq!(front.to_vec(), model[..to]);
        assert_eq!(back.to_vec(), model[to..]);
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

#[test]
fn kept_memory_is_written_only_while_nobody_reads_it() {
    let mut slab = Slab::zeroed(8192);
    slab.bytes_mut().unwrap()[5000] = 7;
    let shared = slab.share(4096..8192);
    assert!(slab.bytes_mut().is_none());
    let again = shared.clone();
    drop(shared);
    assert!(slab.bytes_mut().is_none());
    assert_eq!(again.to_vec()[904], 7);
    drop(again);
    slab.bytes_mut().unwrap()[5000] = 8;
    assert_eq!(slab.bytes()[5000], 8);
}

#[test]
fn a_payload_is_kept_without_a_copy_and_its_pool_lends_other_memory_for_it() {
    let pool = Pool::new(128 << 10);
    let payload = |len| pool.alloc_pieces(len, 64 << 10).unwrap().freeze();
    let whole = payload(64 << 10);
    let place = whole.as_contiguous().unwrap().as_ptr();
    let second = whole.clone();
    let whole = Slab::keep(whole, 64 << 10).err().expect("it is shared");
    drop(second);
    let slab = Slab::keep(whole, 64 << 10).expect("nobody else refers to it");
    assert_eq!(slab.bytes().as_ptr(), place);
    assert_eq!(pool.out_bytes(), 0, "it is lent no more");
    assert!(Slab::keep(payload(60 << 10), 64 << 10).is_err(), "a part");
    assert!(
        Slab::keep(payload(128 << 10), 128 << 10).is_err(),
        "two pieces"
    );
    assert_eq!(pool.out_bytes(), 0, "what was refused went back");
    pool.give(slab);
    let lent = payload(64 << 10);
    assert_eq!(
        lent.as_contiguous().unwrap().as_ptr(),
        place,
        "it is lent again"
    );
    let shared = Slab::zeroed(64 << 10);
    let reader = shared.share(0..1);
    pool.give(shared);
    assert_eq!(reader.to_vec(), [0]);
    drop((reader, lent));
    assert_eq!(pool.out_bytes(), 0);
}

/// Takes and gives back at random for all three, and says each answer beforehand from the bytes
/// that are out.
#[test]
fn hosts_never_get_what_is_kept_for_work_that_frees_memory() {
    const LIMIT: usize = 4 << 20;
    let reserves = Reserves {
        write_back: 1 << 20,
        recovery: 512 << 10,
    };
    let front = Pool::with_reserves(LIMIT, reserves);
    let takers = [
        (front.clone(), LIMIT - (1536 << 10)),
        (front.reserve(Reserve::WriteBack), LIMIT - (512 << 10)),
        (front.reserve(Reserve::Recovery), LIMIT),
    ];
    assert_eq!(
        takers[1].0.reserve(Reserve::Front).limit_bytes(),
        takers[0].1
    );
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 33).unwrap() % below
    };
    let mut held: Vec<BufMut> = Vec::new();
    let (mut out, mut refused) = (0, [0; 3]);
    for _ in 0..20_000 {
        if next(3) == 0 && !held.is_empty() {
            let given = held.swap_remove(next(held.len()));
            out -= given.len();
        } else {
            let (who, bytes) = (next(3), [4 << 10, 64 << 10, 256 << 10][next(3)]);
            let (pool, mark) = &takers[who];
            assert_eq!(pool.limit_bytes(), *mark);
            match pool.alloc(bytes) {
                Ok(memory) => {
                    held.push(memory);
                    out += bytes;
                    assert!(out <= *mark, "{who} has taken what is another's");
                }
                Err(Exhausted) => {
                    assert!(out + bytes > *mark, "{who} was refused what it may have");
                    refused[who] += 1;
                }
            }
        }
        assert_eq!(front.out_bytes(), out);
    }
    assert!(refused.iter().all(|&times| times > 0), "{refused:?}");
}

#[test]
fn slabs_of_one_block_never_overlap_and_fresh_ones_are_zeroes_whatever_was_there() {
    const SIZE: usize = 64 << 10;
    let mut kept: Vec<Slab> = Vec::new();
    for round in 1..=3u8 {
        // Three blocks and a part of one, of which some stay.
        let mut slabs: Vec<Slab> = (0..100).map(|_| Slab::zeroed(SIZE)).collect();
        for slab in &mut slabs {
            let bytes = slab.bytes_mut().unwrap();
            assert!(bytes.iter().all(|&byte| byte == 0), "round {round}");
            bytes.fill(round);
        }
        kept.extend(slabs.into_iter().step_by(7));
    }
    let mut places: Vec<usize> = kept
        .iter()
        .map(|slab| slab.bytes().as_ptr().addr())
        .collect();
    places.sort_unstable();
    assert!(places.windows(2).all(|two| two[0] + SIZE <= two[1]));
    let expected = [1, 2, 3].into_iter().flat_map(|round| [round; 15]);
    for (slab, round) in kept.iter().zip(expected) {
        assert!(slab.bytes().iter().all(|&byte| byte == round));
    }
}

/// Takes and gives back memory of every size, and checks whether anybody else has it.
fn come_and_go(stamp: u8) {
    let pool = Pool::new(64 << 20);
    for turn in 0..200usize {
        let size = [4096, 16 << 10, 64 << 10, 256 << 10][turn % 4];
        let mut slabs: Vec<Slab> = (0..8).map(|_| Slab::zeroed(size)).collect();
        let mut lent = pool.alloc(size * 3).unwrap();
        lent.pieces_mut().for_each(|piece| piece.fill(stamp));
        for slab in &mut slabs {
            assert!(slab.bytes().iter().all(|&byte| byte == 0));
            slab.bytes_mut().unwrap().fill(stamp);
        }
        assert!(lent.freeze().to_vec().iter().all(|&byte| byte == stamp));
        assert!(slabs.iter().all(|slab| slab.bytes() == vec![stamp; size]));
    }
}

#[test]
fn slabs_come_and_go_on_many_threads_at_once() {
    std::thread::scope(|scope| {
        for stamp in 1..=4u8 {
            scope.spawn(move || come_and_go(stamp));
        }
    });
}

#[test]
fn a_copy_past_the_cache_copies_every_byte_and_no_other() {
    let source: Vec<u8> = (0..1024u32)
        .map(|at| (at % 251).try_into().unwrap())
        .collect();
    for offset in 0..66 {
        for from in [0, 1, 48] {
            for len in [0, 1, 15, 63, 64, 65, 127, 128, 200, 512, 700] {
                let mut memory = vec![0xff; 1024];
                copy_past_cache(&source[from..from + len], &mut memory[offset..offset + len]);
                assert!(memory[..offset].iter().all(|&byte| byte == 0xff));
                assert_eq!(memory[offset..offset + len], source[from..from + len]);
                assert!(memory[offset + len..].iter().all(|&byte| byte == 0xff));
            }
        }
    }
}
