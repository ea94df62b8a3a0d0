//! Residuals, for every way in which the length that a host expects and the length that the CDB
//! says can differ (field lesson 33: a host formats nothing on a target that gets one of them
//! wrong).
//!
//! The oracle is the arithmetic of RFC 7143 11.4.5 "Residual Count" and of SAM-5: what moves is the
//! smaller length, in whole blocks to the medium; the difference is reported, with its sign.

use crate::bench::{ALICE, BLOCK, Bench, Setup, TARGET, read_10, run, write_10};
use crate::host::{Host, config};
use iscsi::{Offer, Residual};

use std::time::Duration;

/// Lengths that a host expects, in bytes: around blocks, bursts and segments.
const EXPECTED: [usize; 16] = [
    0, 1, 511, 512, 513, 1023, 1024, 2048, 2049, 4095, 4096, 4097, 8192, 8193, 12_288, 65_536,
];

/// Lengths that the CDB says, in blocks.
const BLOCKS: [u16; 8] = [0, 1, 2, 4, 8, 15, 16, 24];

/// Data that comes with the command, unasked, by R2T only; in bursts and segments of several sizes.
fn offers() -> impl Iterator<Item = Offer> {
    let cases = [(true, false), (false, false), (true, true), (false, true)];
    cases.into_iter().flat_map(|(immediate_data, initial_r2t)| {
        [
            (1024, 4096, 512),
            (4096, 8192, 4096),
            (65_536, 262_144, 8192),
        ]
        .map(
            |(first_burst_length, max_burst_length, max_recv_data_segment_length)| Offer {
                immediate_data,
                initial_r2t,
                first_burst_length,
                max_burst_length,
                max_recv_data_segment_length,
                ..Offer::default()
            },
        )
    })
}

fn residual(wanted: usize, expected: usize) -> Residual {
    let count = u32::try_from(wanted.abs_diff(expected)).expect("small");
    match wanted.cmp(&expected) {
        std::cmp::Ordering::Equal => Residual::None,
        std::cmp::Ordering::Less => Residual::Underflow(count),
        std::cmp::Ordering::Greater => Residual::Overflow(count),
    }
}

async fn login(bench: &Bench, offer: Offer) -> Host {
    let mut config = config(ALICE, Some(TARGET));
    config.offer = offer;
    let host = bench.try_login(&config).await.expect("the login is taken");
    host.settle(0).await;
    host
}

fn setup() -> Setup {
    Setup {
        limit: Duration::from_secs(3600),
        ..Setup::default()
    }
}

// spec: RFC 7143 11.4.5 "Residual Count".
#[test]
fn a_read_of_any_length_reports_exactly_how_much_it_differs_from_what_was_expected() {
    run(setup(), |bench| async move {
        let pattern: Vec<u8> = (0..253).cycle().take(64 * BLOCK).collect();
        let writer = bench.login("iqn.x:writer").await;
        writer.settle(0).await;
        let wrote = writer.command(0, &write_10(0, 64), &pattern, 0);
        assert_eq!(wrote.await.status, 0);
        for offer in offers() {
            let host = login(&bench, offer).await;
            for blocks in BLOCKS {
                for expected in EXPECTED {
                    let wanted = usize::from(blocks) * BLOCK;
                    let end = host.command(0, &read_10(0, blocks), &[], expected).await;
                    let what = format!("{blocks} blocks into {expected} bytes");
                    assert_eq!(end.status, 0, "{what}");
                    assert_eq!(end.residual, residual(wanted, expected), "{what}");
                    let moved = wanted.min(expected);
                    assert!(end.data_in.to_vec() == pattern[..moved], "{what}");
                }
            }
        }
    });
}

// spec: RFC 7143 11.4.5 "Residual Count".
#[test]
fn a_write_of_any_length_moves_whole_blocks_and_reports_exactly_what_is_left() {
    run(setup(), |bench| async move {
        let reader = bench.login("iqn.x:reader").await;
        reader.settle(0).await;
        let mut fill = 0_u8;
        for offer in offers() {
            let host = login(&bench, offer).await;
            for blocks in BLOCKS {
                for expected in EXPECTED {
                    fill = fill.wrapping_add(1);
                    let what = format!("{blocks} blocks from {expected} bytes");
                    let blank = reader.command(0, &write_10(0, 130), &[0; 130 * BLOCK], 0);
                    assert_eq!(blank.await.status, 0);
                    let wanted = usize::from(blocks) * BLOCK;
                    let end = host.command(0, &write_10(0, blocks), &vec![fill; expected], 0);
                    let end = end.await;
                    assert_eq!(end.status, 0, "{what}");
                    assert_eq!(end.residual, residual(wanted, expected), "{what}");
                    let moved = wanted.min(expected) / BLOCK * BLOCK;
                    let read = reader.command(0, &read_10(0, 130), &[], 130 * BLOCK).await;
                    let read = read.data_in.to_vec();
                    assert!(read[..moved].iter().all(|byte| *byte == fill), "{what}");
                    assert!(read[moved..].iter().all(|byte| *byte == 0), "{what}");
                }
            }
        }
    });
}

#[test]
fn a_command_that_fails_reports_that_nothing_moved() {
    run(setup(), |bench| async move {
        for offer in offers() {
            let host = login(&bench, offer).await;
            for expected in EXPECTED.into_iter().filter(|bytes| *bytes > 0) {
                let end = host.command(0, &read_10(u32::MAX, 1), &[], expected).await;
                let all = u32::try_from(expected).expect("small");
                assert_eq!((end.status, end.residual), (2, Residual::Underflow(all)));
                assert_eq!(end.data_in.len(), 0);
                let end = host.command(0, &write_10(u32::MAX, 1), &vec![1; expected], 0);
                let end = end.await;
                // The data that came was the CDB's: only what goes beyond that is left.
                assert_eq!((end.status, end.residual), (2, residual(BLOCK, expected)));
            }
        }
    });
}
