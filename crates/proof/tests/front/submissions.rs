//! The initiator sends an operation that is one command by a short path, by number or as a future,
//! and one that had to wait by a longer one. However it goes, it ends the same.

use crate::bench::{BLOCK, BOB, Bench, Setup, run};
use crate::host::lun;
use crate::unanswered::config;
use iscsi_initiator::unit::{Unit, UnitPort, probe};
use multipath::{Begun, Ended, Port, Session};
use paths::stale::Nexus;
use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;
use units::{BlockCount, Buf, BufMut, Lba, LbaRange};
use volume::{Done, Durability, Io, IoError, Op, OpKind, Origin};
use volume_test::{Action, FaultRule};

/// LOGICAL UNIT RESET (RFC 7143 11.5.1 "Function").
const UNIT_RESET: u8 = 5;

fn range(start: u64, blocks: u64) -> LbaRange {
    LbaRange::new(Lba(start), BlockCount(blocks)).expect("a small range")
}

fn read(range: LbaRange, into: Option<usize>) -> Op {
    let into = into.map(BufMut::zeroed);
    Op::Read { range, into }
}

fn write(range: LbaRange, bytes: usize, durability: Durability) -> Op {
    let data = Buf::copy_of(&vec![0xA5; bytes]);
    Op::Write {
        range,
        data,
        durability,
    }
}

/// An operation, and what the backend says to it.
type Line = (fn() -> Op, Option<IoError>);

fn script() -> Vec<Line> {
    let lba = Lba(40);
    vec![
        (|| write(range(40, 2), 2 * BLOCK, Durability::Cached), None),
        (|| read(range(40, 2), None), None),
        (|| write(range(40, 1), BLOCK, Durability::Stable), None),
        (|| read(range(41, 1), None), None),
        (|| read(range(40, 1), Some(BLOCK)), None),
        (
            || read(range(40, 1), None),
            Some(IoError::MediumError { lba }),
        ),
        (
            || write(range(40, 1), BLOCK, Durability::Cached),
            Some(IoError::MediumError { lba }),
        ),
        (
            || write(range(40, 1), BLOCK, Durability::Cached),
            Some(IoError::SpaceExhausted),
        ),
        (
            || write(range(40, 1), BLOCK, Durability::Cached),
            Some(IoError::WriteProtected),
        ),
        (|| read(range(40, 1), None), Some(IoError::Busy)),
        (|| read(range(40, 1), None), Some(IoError::TimedOut)),
        (
            || write(range(40, 1), BLOCK, Durability::Cached),
            Some(IoError::Aborted),
        ),
        // Past the end.
        (|| read(range(1 << 40, 1), None), None),
        (|| write(range(1 << 40, 1), BLOCK, Durability::Cached), None),
    ]
}

/// How it is sent.
#[derive(Clone, Copy)]
enum Submission {
    Number,
    Future,
    /// While the session probes who answers there.
    Waited,
}

async fn by_number(session: &dyn Session, io: &Io) -> Ended {
    match session.begin(io) {
        Begun::Numbered(number) => poll_fn(|cx| session.poll_numbered(number, cx)).await,
        Begun::Waiting(future) => future.await,
        Begun::Ended(ended) => ended,
    }
}

/// Another host resets the unit, and the session hears of it: what comes next has to wait.
async fn make_wait(bench: &Bench, session: &Rc<dyn Session>) {
    let bob = bench.login(BOB).await;
    bob.settle(0).await;
    let complete = bob.function(UNIT_RESET, lun(0), None).await;
    assert_eq!(complete, Ok(0));
    let reported = Rc::clone(session);
    bench.spawn(async move {
        let refused = reported.submit(Io::new(read(range(0, 1), None), Origin::default()));
        assert!(
            matches!(refused.await, Ended::Again(..)),
            "a reset is reported"
        );
    });
    for _ in 0..10_000 {
        bench.sleep(Duration::from_micros(5)).await;
        // It has to wait: nothing is sent meanwhile.
        match session.begin(&Io::new(read(range(1, 1), None), Origin::default())) {
            Begun::Waiting(_) => return,
            Begun::Numbered(number) => {
                let _other = poll_fn(|cx| session.poll_numbered(number, cx)).await;
            }
            Begun::Ended(ended) => panic!("{ended:?}"),
        }
    }
    panic!("the session does not probe");
}

async fn ends(bench: &Bench, submission: Submission) -> Vec<String> {
    let core = &bench.host_core;
    let facts = probe(core, &config(bench.portal, 9)).await.expect("facts");
    let unit = Unit::new(facts);
    let port = UnitPort::new(core, config(bench.portal, 1), &unit);
    let nexus = Nexus {
        path: 0,
        session: 1,
    };
    let session = port.connect(nexus).await.expect("a session");
    let mut ends = Vec::new();
    for (op, fault) in script() {
        if matches!(submission, Submission::Waited) {
            make_wait(bench, &session).await;
        }
        bench.faults[0].clear();
        if let Some(error) = fault {
            bench.faults[0].add(FaultRule {
                kinds: vec![OpKind::Read, OpKind::Write],
                range: Some(range(40, 1)),
                skip: 0,
                times: 1,
                action: Action::Fail(error),
            });
        }
        let io = Io::new(op(), Origin::default());
        let ended = match submission {
            Submission::Number => by_number(&*session, &io).await,
            Submission::Future | Submission::Waited => session.submit(io).await,
        };
        ends.push(words(&ended));
    }
    session.close();
    ends
}

fn words(ended: &Ended) -> String {
    if let Ended::Done(Ok(Done::Data(data))) = ended {
        return format!("{:?}", data.to_vec());
    }
    format!("{ended:?}")
}

#[test]
fn an_operation_ends_the_same_by_number_as_a_future_and_after_it_had_to_wait() {
    let setup = || Setup {
        units: 1,
        limit: Duration::from_secs(600),
        ..Setup::default()
    };
    run(setup(), |bench| async move {
        let number = ends(&bench, Submission::Number).await;
        let future = ends(&bench, Submission::Future).await;
        let waited = ends(&bench, Submission::Waited).await;
        assert_eq!(number, future);
        assert_eq!(number, waited);
        let good = |it: &&String| it.starts_with("Done(Ok(") || it.starts_with('[');
        let errors = number.len() - number.iter().filter(good).count();
        assert_eq!(errors, 9, "{number:#?}");
    });
}
