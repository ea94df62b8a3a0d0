//! A unit whose hosts another node serves: what goes there, and what becomes of it.

use super::bench::{Bench, UNIT, begin};
use super::groups::{attentions, nexus_at, run};
use crate::{
    Arrival, Attribute, Closing, ForwardEnd, ForwardedCommand, ForwardedReset, Forwarder,
    Forwarding, InitiatorPort, Nexus, NexusPort, NodeNumber, Outcome, Peers, Request,
};
use env::{CoreHandle, LocalFuture};
use scsi::Status;
use std::cell::Cell;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use units::{Buf, Now};
use volume::Access;

const INQUIRY: [u8; 6] = [0x12, 0, 0, 0, 36, 0];
const READ: [u8; 10] = [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
const WRITE: [u8; 10] = [0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0];
const BUSY: u8 = 0x08;

/// The owner, as far as this node sees it.
#[derive(Default)]
struct Owner {
    came: Mutex<Vec<(ForwardedCommand, oneshot::Sender<ForwardEnd>)>>,
    said: Arc<Mutex<Vec<String>>>,
    /// So many resets are lost.
    lost: AtomicU32,
    /// It does not say that a nexus is over.
    holds_ends: Arc<AtomicBool>,
}

impl Owner {
    fn says(&self, what: &str) {
        self.said.lock().unwrap().push(what.to_owned());
    }

    fn said(&self) -> Vec<String> {
        std::mem::take(&mut self.said.lock().unwrap())
    }

    fn ends(&self, end: ForwardEnd) -> ForwardedCommand {
        let (command, done) = self.came.lock().unwrap().remove(0);
        done.send(end).unwrap();
        command
    }
}

impl Forwarder for Owner {
    fn begin(&self, _: &CoreHandle, command: ForwardedCommand) -> Forwarding {
        let (done, ended) = oneshot::channel();
        self.came.lock().unwrap().push((command, done));
        let said = Arc::clone(&self.said);
        Forwarding {
            ended: Box::pin(async move { ended.await.unwrap_or(ForwardEnd::Lost) }),
            abort: Box::new(move || said.lock().unwrap().push("abort".to_owned())),
        }
    }

    fn reset(&self, _: &CoreHandle, _: &NexusPort, what: ForwardedReset) -> LocalFuture<bool> {
        self.says(&format!("{what:?}"));
        let lost = self.lost.load(Ordering::Relaxed);
        self.lost.store(lost.saturating_sub(1), Ordering::Relaxed);
        Box::pin(std::future::ready(lost == 0))
    }

    fn close(&self, core: &CoreHandle, _: &NexusPort, lost: bool) -> LocalFuture<()> {
        self.says(if lost { "lost" } else { "logged out" });
        let (core, holds) = (Rc::clone(core), Arc::clone(&self.holds_ends));
        Box::pin(async move {
            while holds.load(Ordering::Relaxed) {
                core.sleep_until(core.now().after(Duration::from_millis(10)))
                    .await;
            }
        })
    }
}

fn set(bench: &Bench, access: Access) {
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
    bench.run(async move { unit.set_access(&core, access).await });
}

/// Node 1, whose hosts node 0 serves, and a nexus that has heard of it.
fn forwards(seed: u64) -> (Bench, Arc<Owner>, Rc<Nexus>) {
    let (bench, owner) = (Bench::new(seed), Arc::new(Owner::default()));
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
    unit.set_forwarder(Arc::clone(&owner) as Arc<dyn Forwarder>);
    bench.run(async move { unit.set_node(&core, NodeNumber(1)).await });
    set(&bench, Access::Elsewhere(None));
    let nexus = nexus_at(&bench, 0, "iqn.x:a", 5);
    let _first = attentions(&bench, &nexus);
    set(&bench, Access::Forwarded(0));
    assert_eq!(run(&bench, &nexus, &READ, &[]).sense, Some([6, 0x2a, 0x06]));
    (bench, owner, nexus)
}

/// What a command ends with where the owner's part of it ends so.
fn ended(
    (bench, owner, nexus): &(Bench, Arc<Owner>, Rc<Nexus>),
    (cdb, data): (&[u8], &[u8]),
    end: ForwardEnd,
) -> (Outcome, ForwardedCommand) {
    let running = begin(nexus, cdb, Attribute::Simple, 9, data);
    let owner = Arc::clone(owner);
    bench.run(async move {
        let mut running = running;
        let mut end = Some(end);
        let mut command = None;
        let outcome = std::future::poll_fn(|cx| {
            let polled = running.as_mut().poll(cx);
            if let Some(end) = end.take_if(|_| !owner.came.lock().unwrap().is_empty()) {
                command = Some(owner.ends(end));
                cx.waker().wake_by_ref();
            }
            polled
        });
        (outcome.await, command.unwrap())
    })
}

fn owner_of((_, owner, _): &(Bench, Arc<Owner>, Rc<Nexus>)) -> &Owner {
    owner
}

/// Whether this is ready.
fn is_done(bench: &Bench, work: LocalFuture<()>) -> Rc<Cell<bool>> {
    let done = Rc::new(Cell::new(false));
    let says = Rc::clone(&done);
    bench.node.core(0).spawn(Box::pin(async move {
        work.await;
        says.set(true);
    }));
    done
}

/// A nexus of another node's at a unit that is served here.
fn guest(bench: &Bench) -> Rc<Nexus> {
    struct NoPeers;
    impl Peers for NoPeers {
        fn all(&self) -> Vec<Rc<Nexus>> {
            Vec::new()
        }

        fn released(&self) {}
    }
    let port = NexusPort {
        initiator: InitiatorPort {
            name: "iqn.x:g".to_owned(),
            isid: [1; 6],
        },
        target_port: 1025,
    };
    let peers: Weak<dyn Peers> = Weak::<NoPeers>::new();
    Nexus::open_guest(&bench.node.core(0), UNIT, port, Vec::new(), peers).unwrap()
}

fn request(cdb: &[u8], tag: u32, data_out: u64) -> Request<'_> {
    Request {
        cdb,
        attribute: Attribute::Simple,
        tag,
        data_out,
        first_byte: Now::default(),
        whole: Now::default(),
        stands_for: 0,
    }
}

fn status(outcome: &Outcome) -> Option<u8> {
    match outcome {
        Outcome::Respond(response) => Some(response.status.code()),
        Outcome::Silent | Outcome::Disconnect => None,
    }
}

#[test]
fn what_says_what_a_path_is_stays_here_and_the_rest_goes_with_its_data_and_its_nexus() {
    let here = forwards(41);
    let (bench, owner, nexus) = &here;
    let inquiry = run(bench, nexus, &INQUIRY, &[]);
    assert_eq!((inquiry.status, inquiry.data.len()), (0, 36));
    assert!(owner.came.lock().unwrap().is_empty());
    let answer = ForwardEnd::Respond {
        status: Status::CheckCondition,
        sense: Some(Buf::copy_of(&[0x70, 0, 3])),
        data_in: Buf::copy_of(&[8; 512]),
    };
    let (outcome, command) = ended(&here, (&READ, &[]), answer);
    let Outcome::Respond(response) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(response.status, Status::CheckCondition);
    assert_eq!(response.sense.unwrap().to_vec(), [0x70, 0, 3]);
    assert_eq!(response.data_in.to_vec(), [8; 512]);
    assert_eq!(command.cdb, READ);
    assert_eq!(command.from.target_port, 1024 + 5);
    assert_eq!(command.from.initiator.name, "iqn.x:a");
    let good = ForwardEnd::Respond {
        status: Status::Good,
        sense: None,
        data_in: Buf::empty(),
    };
    let (outcome, command) = ended(&here, (&WRITE, &[3; 512]), good);
    assert_eq!(status(&outcome), Some(0));
    assert_eq!(
        (command.announced, command.data.to_vec()),
        (512, vec![3; 512])
    );
    assert_eq!(bench.medium.first_byte(0), 0, "nothing is written here");
}

#[test]
fn what_is_too_long_or_not_allowed_is_refused_here_and_never_goes() {
    let (bench, owner, nexus) = forwards(51);
    let mut long = WRITE;
    long[7..9].copy_from_slice(&[0xff, 0xff]);
    let refused = run(&bench, &nexus, &long, &[1; 512]);
    assert_eq!(refused.sense.map(|it| it[0]), Some(5), "{refused:?}");
    bench.run(nexus.set_read_only(true).unwrap());
    let refused = run(&bench, &nexus, &WRITE, &[1; 512]);
    assert_eq!(refused.sense, Some([7, 0x27, 0]));
    assert!(owner.came.lock().unwrap().is_empty());
}

#[test]
fn where_the_way_is_lost_a_write_ends_the_session_and_a_read_is_busy() {
    let here = forwards(42);
    for (cdb, data, wanted) in [(&READ, &[][..], Some(BUSY)), (&WRITE, &[1; 512][..], None)] {
        let (outcome, _) = ended(&here, (cdb, data), ForwardEnd::Lost);
        assert_eq!(status(&outcome), wanted);
        assert_eq!(wanted.is_none(), matches!(outcome, Outcome::Disconnect));
        let (outcome, _) = ended(&here, (cdb, data), ForwardEnd::NotBegun);
        assert_eq!(status(&outcome), Some(BUSY));
    }
}

#[test]
fn an_aborted_write_is_over_when_the_owner_says_so_however_long_that_takes() {
    let (bench, owner, nexus) = forwards(43);
    let running = bench.start_future(
        &nexus,
        begin(&nexus, &WRITE, Attribute::Simple, 9, &[1; 512]),
    );
    bench.settle(Duration::from_millis(10));
    let aborted = is_done(&bench, nexus.abort_task(9));
    bench.settle(Duration::from_secs(4));
    assert_eq!(owner.said(), ["abort"]);
    assert!(!aborted.get(), "nobody knows yet whether it is written");
    owner.ends(ForwardEnd::Silent);
    bench.settle(Duration::from_millis(10));
    assert!(aborted.get() && running.is_silent());
}

#[test]
fn functions_and_the_end_of_a_nexus_are_the_owners() {
    let here = forwards(44);
    let good = ForwardEnd::Silent;
    assert!(matches!(
        ended(&here, (&READ, &[]), good).0,
        Outcome::Silent
    ));
    let (bench, owner, nexus) = here;
    bench.run(nexus.clear_task_set());
    bench.run(nexus.reset_unit(crate::UnitAttention::LogicalUnitReset));
    bench.run(nexus.close(Closing::LoggedOut));
    let said = owner.said();
    assert_eq!(
        said,
        ["ClearTaskSet", "Reset(LogicalUnitReset)", "logged out"]
    );
    // One that never sent anything there has nothing to end there.
    let other = nexus_at(&bench, 0, "iqn.x:b", 5);
    bench.run(other.close(Closing::Lost));
    assert_eq!(owner.said(), <[String; 0]>::default());
}

#[test]
fn a_reset_that_nobody_answered_is_asked_for_again_and_done_here_by_a_new_owner() {
    let (bench, owner, nexus) = forwards(45);
    owner.lost.store(2, Ordering::Relaxed);
    bench.run(nexus.clear_task_set());
    assert_eq!(owner.said(), ["ClearTaskSet"; 3]);
    owner.lost.store(u32::MAX, Ordering::Relaxed);
    set(&bench, Access::Elsewhere(None));
    let other = nexus_at(&bench, 0, "iqn.x:b", 5);
    let _first = attentions(&bench, &other);
    set(&bench, Access::Forwarded(0));
    assert_eq!(run(&bench, &other, &READ, &[]).sense, Some([6, 0x2a, 0x06]));
    let done = is_done(
        &bench,
        nexus.reset_unit(crate::UnitAttention::LogicalUnitReset),
    );
    bench.settle(Duration::from_secs(2));
    assert!(!done.get(), "nobody knows");
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
    let held = crate::HeldState::default();
    bench
        .run(async move { unit.serve(&core, held).await })
        .unwrap();
    bench.settle(Duration::from_secs(1));
    assert!(done.get());
    let seen = attentions(&bench, &other);
    assert!(seen.contains(&[0x29, 0x03]), "{seen:?}");
}

#[test]
fn a_session_with_a_lost_write_is_over_when_the_owner_says_so_and_others_at_once() {
    for (cdb, data, lost) in [(&READ, &[][..], false), (&WRITE, &[1; 512][..], true)] {
        let here = forwards(46);
        owner_of(&here).holds_ends.store(true, Ordering::Relaxed);
        let _outcome = ended(&here, (cdb, data), ForwardEnd::Lost);
        let (bench, owner, nexus) = here;
        let over = is_done(&bench, Rc::clone(&nexus).close(Closing::Lost));
        bench.settle(Duration::from_secs(60));
        assert_eq!(owner.said(), ["lost"]);
        assert_eq!(over.get(), !lost);
        owner.holds_ends.store(false, Ordering::Relaxed);
        bench.settle(Duration::from_secs(1));
        assert!(over.get());
    }
}

#[test]
fn no_abort_is_confirmed_of_a_write_whose_way_was_lost() {
    let (bench, owner, nexus) = forwards(47);
    let running = begin(&nexus, &WRITE, Attribute::Simple, 9, &[1; 512]);
    let running = bench.start_future(&nexus, running);
    bench.settle(Duration::from_millis(10));
    let aborted = is_done(&bench, nexus.abort_task(9));
    let all = is_done(&bench, nexus.abort_task_set());
    owner.ends(ForwardEnd::Lost);
    bench.settle(Duration::from_secs(60));
    assert!(running.ended() && !running.is_silent());
    assert!(!aborted.get() && !all.get());
}

#[test]
fn a_command_of_another_node_waits_for_room_and_goes_when_it_is_aborted() {
    let bench = Bench::new(48);
    bench.unit.set_bytes_in_flight_max(Some(512));
    let guest = guest(&bench);
    let _first = attentions(&bench, &guest);
    let tasks = [1, 2].map(|tag| {
        let arrival = guest.arrive(request(&WRITE, tag, 512));
        let Arrival::Task { task, .. } = arrival else {
            panic!("it is a task");
        };
        task
    });
    let [first, second] = tasks;
    bench.medium.hang();
    let run = |task: crate::Task, byte: u8| {
        let data = Buf::copy_of(&[byte; 512]);
        let outcome = async move {
            task.waits_in_turn(512).await;
            task.run(data).await
        };
        bench.start_future(&guest, Box::pin(outcome))
    };
    let (first, second) = (run(first, 1), run(second, 2));
    bench.settle(Duration::from_millis(100));
    assert!(!first.ended() && !second.ended());
    assert_eq!(bench.medium.given(), 1, "the other one has no room");
    bench.run(guest.abort_task(2));
    bench.settle(Duration::from_millis(1));
    assert!(second.is_silent(), "its data is not kept");
    bench.medium.release();
    bench.settle(Duration::from_millis(10));
    assert_eq!(first.response().status, Status::Good);
    assert_eq!(bench.medium.first_byte(0), 1);
}

#[test]
fn what_other_nodes_forward_to_one_that_does_not_serve_is_busy() {
    let bench = Bench::new(49);
    let guest = guest(&bench);
    let _first = attentions(&bench, &guest);
    set(&bench, Access::Forwarded(0));
    assert!(!guest.is_served_here());
    assert_eq!(run(&bench, &guest, &WRITE, &[1; 512]).status, BUSY);
    assert_eq!(bench.medium.first_byte(0), 0);
}
