//! EXTENDED COPY names its sources and destinations: whatever a host names, only LUNs of its own
//! session are found (field lesson 46, CVE-2020-28374).

use crate::bench::{
    ALICE, BLOCK, BOB, Bench, Setup, TARGET, exported, grant, host_object, read_10, run, sense,
    write_10,
};
use crate::host::Host;
use iscsi::initiator_side::Completion;
use scsi::SenseKey;

/// An identification descriptor as a target descriptor has it: code set, association and type,
/// zero, length, designator.
fn designation(code_set: u8, kind: u8, designator: &[u8]) -> Vec<u8> {
    let length = u8::try_from(designator.len()).expect("short");
    [&[code_set, kind, 0, length], designator].concat()
}

/// Every way in which a unit of the bench can be named.
fn names_of(unit: u8) -> Vec<Vec<u8>> {
    let mut naa = [0x60; 16];
    naa[14..].copy_from_slice(&[0, unit]);
    let t10 = format!("CAUSEWAY{unit:016x}");
    let short = designation(2, 1, &t10.as_bytes()[..20]);
    let mut all = vec![designation(1, 3, &naa), short];
    // EUI-64, vendor specific, name string, relative port, MD5: of the same bytes, none of which we
    // give out.
    for (code_set, kind) in [
        (1, 2),
        (1, 0),
        (3, 8),
        (1, 4),
        (1, 7),
        (2, 3),
        (1, 0x13),
        (1, 0x23),
    ] {
        all.push(designation(code_set, kind, &naa));
    }
    all
}

fn naa_of(unit: u8) -> Vec<u8> {
    names_of(unit).swap_remove(0)
}

async fn copy(host: &Host, from: &[u8], to: &[u8]) -> Completion {
    let mut list = vec![0, 0x10, 0, 64, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 0];
    for name in [from, to] {
        let mut target = vec![0xe4, 0, 0, 0];
        target.extend(name);
        target.resize(28, 0);
        target.extend([0, 0, 2, 0]);
        list.extend(target);
    }
    list.extend([2, 0, 0, 24, 0, 0, 0, 1, 0, 0, 0, 8]);
    list.extend([0; 16]);
    let mut cdb = [0; 16];
    cdb[0] = 0x83;
    cdb[13] = u8::try_from(list.len()).expect("short");
    host.command(0, &cdb, &list, 0).await
}

/// Alice sees units 0 and 2 as LUNs 0 and 2, Bob sees unit 1.
async fn divided(bench: &Bench) -> (Host, Host) {
    let (alice, bob) = (host_object("a", ALICE, None), host_object("b", BOB, None));
    let grants = vec![grant(&alice, 0), grant(&alice, 2), grant(&bob, 1)];
    bench.publish(vec![exported(TARGET, grants)]).await;
    let (alice, bob) = (bench.login(ALICE).await, bench.login(BOB).await);
    alice.settle(0).await;
    alice.settle(2).await;
    bob.settle(1).await;
    (alice, bob)
}

#[test]
fn a_copy_finds_the_luns_of_its_own_session_and_no_other_by_any_name() {
    let setup = Setup {
        units: 3,
        ..Setup::default()
    };
    run(setup, |bench| async move {
        let (alice, bob) = divided(&bench).await;
        let secret = bob.command(1, &write_10(0, 8), &[0xbb; 8 * BLOCK], 0);
        assert_eq!(secret.await.status, 0);
        let own = alice.command(0, &write_10(0, 8), &[0xaa; 8 * BLOCK], 0);
        assert_eq!(own.await.status, 0);
        for foreign in names_of(1) {
            for (from, to) in [(&foreign, &naa_of(2)), (&naa_of(0), &foreign)] {
                let end = copy(&alice, from, to).await;
                assert_eq!(end.status, 2, "{foreign:x?}");
                let (key, asc, ascq) = sense(&end);
                let not_reachable = (key, asc, ascq) == (SenseKey::CopyAborted, 0x0d, 0x02);
                let refused = key == SenseKey::IllegalRequest;
                assert!(
                    not_reachable || refused,
                    "{foreign:x?}: {key:?} {asc:02x} {ascq:02x}"
                );
            }
        }
        // The names that units have, of a unit that is not hers: it is as if there were none.
        for foreign in &names_of(1)[..1] {
            let end = copy(&alice, foreign, &naa_of(2)).await;
            assert_eq!(sense(&end), (SenseKey::CopyAborted, 0x0d, 0x02));
        }
        let untouched = bob.command(1, &read_10(0, 8), &[], 8 * BLOCK).await;
        assert!(untouched.data_in.to_vec() == [0xbb; 8 * BLOCK]);
        let untouched = alice.command(2, &read_10(0, 8), &[], 8 * BLOCK).await;
        assert!(untouched.data_in.to_vec() == [0; 8 * BLOCK]);
        // The same list with names of her own works, and Alice's LUN 2 is not Bob's.
        let end = copy(&alice, &naa_of(0), &naa_of(2)).await;
        assert_eq!(end.status, 0);
        let copied = alice.command(2, &read_10(0, 8), &[], 8 * BLOCK).await;
        assert!(copied.data_in.to_vec() == [0xaa; 8 * BLOCK]);
    });
}
