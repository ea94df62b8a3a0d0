//! What a save that failed leaves in the store must not come back after a later change was
//! answered.

use super::SOON;
use super::bench::{Bench, filled, write_10};
use crate::store::{Entry, UnitStore};
use crate::{Attribute, DirectoryStore, Nexus};
use env::sim::{Fault, FaultPlan};
use env::{CoreHandle, LocalFuture};
use scsi::Status;
use scsi::reservation::Reservations;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

/// A store whose saves may fail after they were done, as those of a file whose directory cannot be
/// synced.
#[derive(Default)]
struct Uncertain(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    entries: Vec<(Entry, Vec<u8>)>,
    fails: Option<io::ErrorKind>,
    saves: u32,
}

impl Uncertain {
    fn fails(&self, with: Option<io::ErrorKind>) {
        self.0.lock().unwrap().fails = with;
    }

    fn saves(&self) -> u32 {
        self.0.lock().unwrap().saves
    }

    fn kept(&self, entry: Entry) -> Vec<u8> {
        let kept = self.0.lock().unwrap();
        let mut newest_first = kept.entries.iter().rev();
        let newest = newest_first.find(|(of, _)| *of == entry).unwrap();
        newest.1.clone()
    }
}

impl UnitStore for Uncertain {
    fn load(&self, _: &CoreHandle, _: &str, _: Entry) -> LocalFuture<io::Result<Option<Vec<u8>>>> {
        Box::pin(async { Ok(None) })
    }

    fn save(
        &self,
        _: &CoreHandle,
        _: &str,
        entry: Entry,
        bytes: Vec<u8>,
    ) -> LocalFuture<io::Result<()>> {
        let mut kept = self.0.lock().unwrap();
        kept.saves += 1;
        let answer = kept.fails.map_or(Ok(()), |kind| Err(kind.into()));
        kept.entries.push((entry, bytes));
        Box::pin(async { answer })
    }

    fn forget(&self, _: &CoreHandle, _: &str) -> LocalFuture<io::Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn place(&self) -> String {
        "nowhere".to_owned()
    }
}

/// REGISTER AND IGNORE EXISTING KEY.
fn register(bench: &Bench, nexus: &Rc<Nexus>, key: u8, aptpl: bool) -> Status {
    let mut list = [0; 24];
    (list[15], list[20]) = (key, u8::from(aptpl));
    let cdb = [0x5f, 6, 0, 0, 0, 0, 0, 0, 24, 0];
    let done = bench.start(nexus, &cdb, Attribute::Simple, 1, &list);
    bench.settle(SOON);
    done.response().status
}

#[test]
fn a_registration_that_could_not_be_stored_does_not_come_back_past_a_later_one_without_aptpl() {
    let store = Arc::new(Uncertain::default());
    let bench = Bench::with_store(21, Arc::clone(&store) as Arc<dyn UnitStore>);
    let (first, second) = (bench.nexus(0, "a"), bench.nexus(3, "b"));
    store.fails(Some(io::ErrorKind::Other));
    assert_eq!(register(&bench, &first, 7, true), Status::CheckCondition);
    let stored = |store: &Uncertain| Reservations::from_bytes(&store.kept(Entry::Reservations));
    assert_ne!(stored(&store), Ok(Reservations::new()), "the store has it");
    assert_eq!(
        register(&bench, &second, 8, false),
        Status::CheckCondition,
        "what is kept is not what would be answered"
    );
    store.fails(None);
    assert_eq!(register(&bench, &second, 8, false), Status::Good);
    assert_eq!(stored(&store), Ok(Reservations::new()));
    let saves = store.saves();
    assert_eq!(register(&bench, &first, 7, false), Status::Good);
    assert_eq!(store.saves(), saves, "nothing is unsure any more");
}

#[test]
fn a_store_that_never_keeps_anything_is_not_asked_for_what_nobody_wants_kept() {
    let store = Arc::new(Uncertain::default());
    let bench = Bench::with_store(22, Arc::clone(&store) as Arc<dyn UnitStore>);
    let nexus = bench.nexus(2, "a");
    store.fails(Some(io::ErrorKind::Unsupported));
    assert_eq!(register(&bench, &nexus, 7, true), Status::CheckCondition);
    assert_eq!(register(&bench, &nexus, 7, false), Status::Good);
    assert_eq!(store.saves(), 1);
}

/// MODE SELECT (6) with SP of the control page, with D_SENSE as it is said.
fn select(bench: &Bench, nexus: &Rc<Nexus>, descriptor_sense: bool) -> Status {
    let (list, cdb) = select_of(bench, nexus, descriptor_sense);
    let done = bench.start(nexus, &cdb, Attribute::Simple, 2, &list);
    bench.settle(SOON);
    done.response().status
}

/// Its parameter list and its CDB.
fn select_of(bench: &Bench, nexus: &Rc<Nexus>, descriptor_sense: bool) -> (Vec<u8>, [u8; 6]) {
    let sense = [0x1a, 0x08, 0x0a, 0, 64, 0];
    let sense = bench.start(nexus, &sense, Attribute::Simple, 1, &[]);
    bench.settle(SOON);
    let mut list = sense.response().data_in.to_vec();
    // Reserved in MODE SELECT: the length of the data, and the device-specific parameter.
    (list[0], list[2]) = (0, 0);
    // PS of the page is reserved too.
    list[4] &= 0x3f;
    list[6] = (list[6] & !0x04) | u8::from(descriptor_sense) << 2;
    let len = u8::try_from(list.len()).unwrap();
    (list, [0x15, 0x11, 0, 0, len, 0])
}

#[test]
fn mode_pages_that_could_not_be_stored_do_not_come_back_past_a_later_select() {
    let store = Arc::new(Uncertain::default());
    let bench = Bench::with_store(23, Arc::clone(&store) as Arc<dyn UnitStore>);
    let nexus = bench.nexus(0, "a");
    assert_eq!(select(&bench, &nexus, true), Status::Good);
    assert_eq!(select(&bench, &nexus, false), Status::Good);
    let wanted = store.kept(Entry::ModePages);
    store.fails(Some(io::ErrorKind::Other));
    assert_eq!(select(&bench, &nexus, true), Status::CheckCondition);
    assert_ne!(store.kept(Entry::ModePages), wanted, "the store has it");
    store.fails(None);
    // Nothing of it is new to the unit.
    assert_eq!(select(&bench, &nexus, false), Status::Good);
    assert_eq!(store.kept(Entry::ModePages), wanted);
}

/// Runs `work` on the files of the unit's node.
fn on_files<F: Future<Output = io::Result<()>> + 'static>(
    bench: &Bench,
    work: impl FnOnce(Rc<dyn env::Files>) -> F,
) {
    let work = work(bench.node.core(0).files());
    bench.run(work).unwrap();
}

#[test]
fn what_was_stored_and_is_gone_keeps_the_unit_offline_until_its_record_is_gone_too() {
    let places = [
        ("reservations", "the stored reservations cannot be used"),
        ("mode-pages", "the stored mode pages cannot be used"),
    ];
    // Also where nobody has read it between.
    let inspected = [true, false].into_iter();
    for ((name, reported), inspected) in inspected.flat_map(|it| places.map(|place| (place, it))) {
        let store: Arc<dyn UnitStore> = Arc::new(DirectoryStore::new("/state/units".into()));
        let bench = Bench::with_store(24, Arc::clone(&store));
        let nexus = bench.nexus(0, "a");
        assert_eq!(register(&bench, &nexus, 7, true), Status::Good);
        assert_eq!(select(&bench, &nexus, true), Status::Good);
        let check = |bench: &Bench| {
            let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
            bench.run(async move { unit.check_stored(&core).await })
        };
        if inspected {
            assert_eq!(check(&bench), Ok(()));
        }
        let file = format!("/state/units/vm01.{name}");
        let gone = file.clone();
        on_files(&bench, |files| async move {
            env::durable::remove_file(&*files, std::path::Path::new(&gone)).await
        });
        let refused = check(&bench).unwrap_err();
        assert!(refused.cause.contains(reported), "{refused:?}");
        assert!(
            refused
                .cause
                .contains(&format!("{file} was there and is gone"))
        );
        assert!(
            refused.next_step.contains("/state/units.kept"),
            "{refused:?}"
        );
        // The way out that it names.
        let record = format!("/state/units.kept/vm01.{name}");
        on_files(&bench, |files| async move {
            env::durable::remove_file(&*files, std::path::Path::new(&record)).await
        });
        assert_eq!(check(&bench), Ok(()));
        // What is saved after that is missed again.
        assert_eq!(register(&bench, &nexus, 8, true), Status::Good);
        assert_eq!(select(&bench, &nexus, false), Status::Good);
        let gone = file.clone();
        on_files(&bench, |files| async move {
            env::durable::remove_file(&*files, std::path::Path::new(&gone)).await
        });
        assert!(check(&bench).is_err(), "{name}");
    }
}

/// Moves the file of an entry.
fn rename(bench: &Bench, (from, to): (&str, &str)) {
    let path = |name: &str| std::path::PathBuf::from(format!("/state/units/{name}"));
    let (from, to) = (path(from), path(to));
    on_files(bench, |files| async move {
        files.rename(&from, &to).await?;
        files.sync_dir(std::path::Path::new("/state/units")).await
    });
}

/// What hosts ask while nobody knows what was reported to them last.
#[test]
fn a_unit_that_cannot_read_what_it_keeps_neither_reports_nor_changes_it() {
    for name in ["vm01.reservations", "vm01.mode-pages"] {
        let new = || -> Arc<dyn UnitStore> { Arc::new(DirectoryStore::new("/state/units".into())) };
        let mut bench = Bench::with_store(27, new());
        let nexus = bench.nexus(0, "a");
        assert_eq!(register(&bench, &nexus, 7, true), Status::Good);
        assert_eq!(select(&bench, &nexus, true), Status::Good);
        let (list, cdb) = select_of(&bench, &nexus, false);
        rename(&bench, (name, "aside"));
        let why = bench.starts_again(new()).unwrap_err();
        assert!(why.cause.contains("was there and is gone"), "{why:?}");
        let nexus = bench.nexus(0, "a");
        let keys = [0x5e, 0, 0, 0, 0, 0, 0, 0, 64, 0];
        let mut register = [0; 24];
        (register[15], register[20]) = (8, 1);
        let asked: [(&[u8], &[u8]); 5] = [
            (&[0x5f, 6, 0, 0, 0, 0, 0, 0, 24, 0], &register),
            (&keys, &[]),
            (&cdb, &list),
            (&[0x16, 0, 0, 0, 0, 0], &[]),
            (&[0x17, 0, 0, 0, 0, 0], &[]),
        ];
        for (tag, (cdb, data)) in (1..).zip(asked) {
            let done = bench.start(&nexus, cdb, Attribute::Simple, tag, data);
            bench.settle(SOON);
            assert_eq!(sense(&done).0, scsi::SenseKey::NotReady, "{cdb:?}");
        }
        // Nothing took its place.
        let core = bench.node.core(0);
        let path = format!("/state/units/{name}");
        let there = async move {
            let files = core.files();
            env::file::is_there(&*files, std::path::Path::new(&path)).await
        };
        assert!(!bench.run(there), "{name}");
    }
}

#[test]
fn a_unit_whose_stored_state_is_back_serves_with_what_stands_in_it() {
    let new = || -> Arc<dyn UnitStore> { Arc::new(DirectoryStore::new("/state/units".into())) };
    let mut bench = Bench::with_store(28, new());
    let holder = bench.nexus(0, "a");
    assert_eq!(register(&bench, &holder, 7, true), Status::Good);
    assert_eq!(select(&bench, &holder, true), Status::Good);
    let mut list = [0; 24];
    list[7] = 7;
    // RESERVE, Write Exclusive.
    let cdb = [0x5f, 1, 1, 0, 0, 0, 0, 0, 24, 0];
    let reserved = bench.start(&holder, &cdb, Attribute::Simple, 3, &list);
    bench.settle(SOON);
    assert_eq!(reserved.response().status, Status::Good);
    for name in ["vm01.reservations", "vm01.mode-pages"] {
        rename(&bench, (name, "aside"));
        assert!(bench.starts_again(new()).is_err());
        let (holder, other) = (bench.nexus(2, "a"), bench.nexus(3, "b"));
        let resume = |bench: &Bench| {
            let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
            let medium = Arc::new(bench.medium.clone());
            bench.run(async move { unit.resume(&core, medium).await })
        };
        let still = resume(&bench).unwrap_err();
        assert!(still.cause.contains("was there and is gone"), "{still:?}");
        rename(&bench, ("aside", name));
        assert_eq!(resume(&bench), Ok(()), "{name}");
        let data = filled(1, 1);
        let shut_out = bench.start(&other, &write_10(0, 1), Attribute::Simple, 4, &data);
        let let_in = bench.start(&holder, &write_10(0, 1), Attribute::Simple, 4, &data);
        bench.settle(SOON);
        let conflict = Status::ReservationConflict;
        assert_eq!(shut_out.response().status, conflict, "{name}");
        assert_eq!(let_in.response().status, Status::Good, "{name}");
        // D_SENSE was saved.
        let (list, _) = select_of(&bench, &holder, true);
        let sense = [0x1a, 0x08, 0x0a, 0, 64, 0];
        let sense = bench.start(&holder, &sense, Attribute::Simple, 5, &[]);
        bench.settle(SOON);
        assert_eq!(sense.response().data_in.to_vec()[6], list[6], "{name}");
        // And it may be changed again.
        assert_eq!(register(&bench, &holder, 7, true), Status::Good, "{name}");
    }
}

/// Key, code and qualifier of the sense that ended it.
fn sense(done: &super::bench::Slot) -> (scsi::SenseKey, u8, u8) {
    let bytes = done.response().sense.expect("CHECK CONDITION").to_vec();
    let sense = scsi::Sense::parse(&bytes).unwrap();
    (sense.key, sense.code.asc, sense.code.ascq)
}

#[test]
fn a_store_without_room_is_reported_as_that_changes_nothing_and_works_again_when_there_is_some() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
        let store = Arc::new(Uncertain::default());
        let bench = Bench::with_store(26, Arc::clone(&store) as Arc<dyn UnitStore>);
        let nexus = bench.nexus(0, "a");
        let mut list = [0; 24];
        (list[15], list[20]) = (7, 1);
        let cdb = [0x5f, 6, 0, 0, 0, 0, 0, 0, 24, 0];
        store.fails(Some(kind));
        let refused = bench.start(&nexus, &cdb, Attribute::Simple, 1, &list);
        bench.settle(SOON);
        // INSUFFICIENT REGISTRATION RESOURCES.
        assert_eq!(
            sense(&refused),
            (scsi::SenseKey::IllegalRequest, 0x55, 0x04)
        );
        let keys = [0x5e, 0, 0, 0, 0, 0, 0, 0, 64, 0];
        let read = |bench: &Bench| {
            let keys = bench.start(&nexus, &keys, Attribute::Simple, 2, &[]);
            bench.settle(SOON);
            keys.response().data_in.to_vec()[4..8].to_vec()
        };
        assert_eq!(read(&bench), [0, 0, 0, 0], "no key is registered");
        assert_eq!(select(&bench, &nexus, true), Status::CheckCondition);
        store.fails(None);
        assert_eq!(register(&bench, &nexus, 7, true), Status::Good);
        assert_eq!(read(&bench), [0, 0, 0, 8]);
        assert_eq!(select(&bench, &nexus, true), Status::Good);
        // On a full one, a parameter that is to be saved is one resource too many.
        store.fails(Some(kind));
        let (list, cdb) = select_of(&bench, &nexus, false);
        let refused = bench.start(&nexus, &cdb, Attribute::Simple, 3, &list);
        bench.settle(SOON);
        assert_eq!(
            sense(&refused),
            (scsi::SenseKey::IllegalRequest, 0x55, 0x03)
        );
        store.fails(None);
        assert_eq!(select(&bench, &nexus, false), Status::Good);
    }
}

#[test]
fn a_file_of_a_program_that_made_no_records_gets_one_and_is_missed_from_then_on() {
    let store: Arc<dyn UnitStore> = Arc::new(DirectoryStore::new("/state/units".into()));
    let bench = Bench::with_store(25, Arc::clone(&store));
    let nexus = bench.nexus(0, "a");
    assert_eq!(register(&bench, &nexus, 7, true), Status::Good);
    on_files(&bench, |files| async move {
        let record = std::path::Path::new("/state/units.kept/vm01.reservations");
        env::durable::remove_file(&*files, record).await
    });
    // Another run, which reads it.
    let again = DirectoryStore::new("/state/units".into());
    let core = bench.node.core(0);
    bench.run(async move {
        let load = |entry| again.load(&core, "vm01", entry);
        assert!(load(Entry::Reservations).await.unwrap().is_some());
        assert!(
            load(Entry::ModePages).await.unwrap().is_none(),
            "never saved"
        );
        let file = std::path::Path::new("/state/units/vm01.reservations");
        env::durable::remove_file(&*core.files(), file)
            .await
            .unwrap();
        let gone = load(Entry::Reservations).await;
        assert_eq!(gone.unwrap_err().kind(), io::ErrorKind::NotFound);
        // What is removed for good is not missed.
        again.forget(&core, "vm01").await.unwrap();
        assert!(load(Entry::Reservations).await.unwrap().is_none());
    });
}

#[test]
fn a_first_save_that_failed_is_not_in_force_after_a_restart() {
    let mut failed = 0;
    for seed in 0..60 {
        let store: Arc<dyn UnitStore> = Arc::new(DirectoryStore::new("/state/units".into()));
        let bench = Bench::with_store(seed, Arc::clone(&store));
        let faults = FaultPlan::none().with(Fault::FileSyncError, 200_000);
        bench.world.set_faults(faults);
        let save = |bytes: &[u8]| {
            let saved = store.save(
                &bench.node.core(0),
                "new",
                Entry::Reservations,
                bytes.to_vec(),
            );
            bench.run(saved)
        };
        let saved = save(b"first");
        bench.world.set_faults(FaultPlan::none());
        let load = || bench.run(store.load(&bench.node.core(0), "new", Entry::Reservations));
        if saved.is_ok() {
            assert_eq!(load().unwrap(), Some(b"first".to_vec()), "{seed}");
            continue;
        }
        failed += 1;
        assert_eq!(load().unwrap(), None, "{seed}");
        // It can be tried again.
        save(b"second").unwrap();
        assert_eq!(load().unwrap(), Some(b"second".to_vec()), "{seed}");
    }
    assert!(failed > 10, "{failed}");
}
