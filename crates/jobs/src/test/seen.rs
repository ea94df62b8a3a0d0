//! Work that is seen, changes, restarts, and whatever else happens.

use super::{both, grow, wall};
use crate::{Document, Ending, Jobs, NewJob, Sighting, What};
use manifest::code::Code;
use manifest::job::JobState;
use manifest::time::rfc3339;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn scrub(key: &str, started: u64, done: u64, ended: Option<Ending>) -> Sighting {
    Sighting {
        kind: "scrub",
        object: format!("lun {key}"),
        key: key.to_owned(),
        started: rfc3339(wall(started)),
        done,
        total: 1_000,
        rate: (10, Some(7)),
        link: format!("/luns/{key}/scrub"),
        ended,
    }
}

#[test]
fn a_restart_interrupts_what_ran_and_numbers_go_on() {
    let mut jobs = Jobs::default();
    let first = jobs.begin(grow(10), wall(0));
    jobs.observe(&[scrub("a", 1, 5, None)], &["scrub"], both(2));
    let read = Document::read(&jobs.document().write()).unwrap();
    let mut jobs = Jobs::new(read, &["scrub"], wall(100));
    assert!(jobs.running().next().is_none());
    let job = jobs.job(first).unwrap();
    assert_eq!(
        (job.state, job.ended),
        (JobState::Interrupted, Some(rfc3339(wall(100))))
    );
    // The scrub goes on by itself where it was: it is the same job.
    jobs.observe(&[scrub("a", 1, 6, None)], &["scrub"], both(103));
    let job = jobs.job(first + 1).unwrap();
    assert_eq!((job.state, job.ended.as_deref()), (JobState::Running, None));
    assert_eq!(job.log.last().unwrap().text, "goes on where it was");
    assert!(jobs.begin(grow(1), wall(104)) > first + 1);
    for bad in ["", "{}", "{\"schema\":1,\"jobs\":[]}"] {
        let unread = Document::read(bad.as_bytes()).unwrap_err();
        assert!(!unread.is_newer && unread.why.contains("damaged"), "{bad}");
    }
    let newer = Document::read(b"{\"schema\":2,\"tasks\":[]}").unwrap_err();
    assert!(newer.is_newer && newer.why.contains("version 2"));
}

#[test]
fn work_that_is_seen_is_one_job_from_its_beginning_to_its_end() {
    let mut jobs = Jobs::default();
    jobs.want("scrub", "a", "eve");
    jobs.observe(
        &[scrub("a", 1, 0, None), scrub("b", 1, 0, None)],
        &["scrub"],
        both(1),
    );
    jobs.observe(
        &[scrub("a", 1, 500, None), scrub("b", 1, 0, None)],
        &["scrub"],
        both(2),
    );
    let all = jobs.list();
    assert_eq!(
        (all.len(), all[1].by.as_str(), all[0].by.as_str()),
        (2, "eve", "schedule")
    );
    assert_eq!(
        (all[1].percent, all[1].rate, all[1].seconds_left),
        (50, 10, Some(7))
    );
    // Somebody stops one, the other cannot go on.
    let (a, b) = (all[1].id, all[0].id);
    assert_eq!(jobs.cancel(a, "kim", wall(3)).unwrap().key, "a");
    let stopped = Ending::Failed("stopped".to_owned());
    let failed = Ending::Failed("the disk is gone".to_owned());
    let now = [
        scrub("a", 1, 600, Some(stopped)),
        scrub("b", 1, 1, Some(failed)),
    ];
    jobs.observe(&now, &["scrub"], both(4));
    assert_eq!(jobs.job(a).unwrap().state, JobState::Cancelled);
    let job = jobs.job(b).unwrap();
    assert_eq!(
        (job.state, job.reason.as_deref()),
        (JobState::Failed, Some("the disk is gone"))
    );
    assert_eq!(
        jobs.cancel(b, "kim", wall(5)).unwrap_err().code,
        Code::JobOver
    );
    assert_eq!(
        jobs.cancel(99, "kim", wall(5)).unwrap_err().code,
        Code::NotFound
    );
    // The same ended work is seen for ever, and makes no job.
    jobs.observe(&now, &["scrub"], both(6));
    assert_eq!(jobs.list().len(), 2);
    // One that began and ended between two moments is a job all the same.
    jobs.observe(
        &[scrub("b", 6, 1_000, Some(Ending::Finished))],
        &["scrub"],
        both(9),
    );
    assert_eq!(
        (jobs.list().len(), jobs.list()[0].state),
        (3, JobState::Finished)
    );
    // A LUN that is deleted takes its scrub along.
    jobs.observe(&[scrub("c", 9, 1, None)], &["scrub"], both(10));
    let grow = jobs.begin(grow(1), wall(10));
    jobs.observe(&[], &["scrub"], both(11));
    assert_eq!(jobs.list()[1].state, JobState::Failed);
    assert_eq!(
        jobs.job(grow).unwrap().state,
        JobState::Running,
        "of another kind"
    );
}

/// What is said of changes: the number, and what.
fn taken(jobs: &mut Jobs) -> Vec<(u64, What)> {
    let changes = jobs.take_changes().into_iter();
    changes.map(|change| (change.id, change.what)).collect()
}

#[test]
fn each_beginning_and_each_end_is_one_change() {
    let mut jobs = Jobs::default();
    let first = jobs.begin(grow(10), wall(0));
    jobs.note(first, "half", wall(1));
    jobs.end(first, &Ending::Failed("no".to_owned()), wall(2));
    jobs.end(first, &Ending::Finished, wall(3));
    let change = &jobs.take_changes()[1];
    assert_eq!(change.what, What::Failed);
    assert_eq!(change.reason.as_deref(), Some("no"));
    let second = jobs.begin(grow(10), wall(4));
    jobs.observe(&[scrub("a", 1, 5, None)], &["scrub"], both(5));
    let third = second + 1;
    assert_eq!(
        taken(&mut jobs),
        [(second, What::Began), (third, What::Began)]
    );
    // A scrub goes on after a restart: only what does not is an end.
    let mut jobs = Jobs::new(jobs.document(), &["scrub"], wall(9));
    assert_eq!(taken(&mut jobs), [(second, What::Failed)]);
    jobs.observe(&[scrub("a", 1, 6, None)], &["scrub"], both(10));
    assert_eq!(taken(&mut jobs), [(third, What::Began)]);
    let over = scrub("a", 1, 9, Some(Ending::Finished));
    jobs.observe(std::slice::from_ref(&over), &["scrub"], both(11));
    jobs.observe(std::slice::from_ref(&over), &["scrub"], both(12));
    assert_eq!(taken(&mut jobs), [(third, What::Finished)]);
    for _ in 0..3_000 {
        jobs.begin(grow(1), wall(20));
    }
    assert_eq!(jobs.take_changes().len(), 1_000, "nobody takes them");
}

#[test]
fn work_that_had_ended_before_anybody_saw_it_is_no_job_and_none_comes_twice() {
    let mut jobs = Jobs::new(Document::default(), &["scrub"], wall(100));
    let finished = |key: &str, started| scrub(key, started, 9, Some(Ending::Finished));
    jobs.observe(&[finished("a", 50)], &["scrub"], both(101));
    assert_eq!(jobs.list(), []);
    jobs.observe(&[finished("a", 150)], &["scrub"], both(160));
    assert_eq!(jobs.list().len(), 1);
    // More than are kept: the same, seen again, makes none of them anew.
    let many: Vec<Sighting> = (0..700)
        .map(|key| finished(&key.to_string(), 150))
        .collect();
    jobs.observe(&many, &["scrub"], both(161));
    let newest = jobs.list()[0].id;
    assert_eq!(jobs.list().len(), 500);
    jobs.observe(&many, &["scrub"], both(166));
    assert_eq!(jobs.list()[0].id, newest);
    // One that ended while the daemon was away.
    jobs.observe(&[scrub("x", 170, 1, None)], &["scrub"], both(171));
    let mut jobs = Jobs::new(jobs.document(), &["scrub"], wall(180));
    jobs.observe(&[finished("x", 170)], &["scrub"], both(181));
    assert_eq!(jobs.list()[0].state, JobState::Finished);
}

#[test]
fn whoever_wants_work_is_not_taken_for_who_began_later_work() {
    let mut jobs = Jobs::default();
    jobs.want("scrub", "a", "eve");
    jobs.unwant("scrub", "a");
    jobs.observe(&[scrub("a", 1, 0, None)], &["scrub"], both(1));
    assert_eq!(jobs.list()[0].by, "schedule");
}

#[derive(Clone, Debug)]
enum Event {
    Begin(u8),
    Progress(u64, u64),
    End(u64, u8),
    Cancel(u64),
    /// Scrubs of these keys: how far, and whether each has ended.
    Observe(BTreeMap<u8, (u64, u64, u8)>),
    Restart,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let seen = prop::collection::btree_map(0..3_u8, (0..3_u64, 0..1_200_u64, 0..4_u8), 0..4);
    let one = prop_oneof![
        2 => (0..3_u8).prop_map(Event::Begin),
        2 => (0..30_u64, 0..3_000_u64).prop_map(|(id, done)| Event::Progress(id, done)),
        2 => (0..30_u64, 0..3_u8).prop_map(|(id, how)| Event::End(id, how)),
        1 => (0..30_u64).prop_map(Event::Cancel),
        3 => seen.prop_map(Event::Observe),
        1 => Just(Event::Restart),
    ];
    prop::collection::vec(one, 1..80)
}

fn ending(how: u8) -> Ending {
    match how {
        0 => Ending::Finished,
        1 => Ending::Cancelled,
        _ => Ending::Failed("why".to_owned()),
    }
}

proptest! {
    #[test]
    fn whatever_happens_numbers_rise_and_what_has_ended_stays(events in events()) {
        let (mut jobs, mut now, mut newest) = (Jobs::default(), 0, 0);
        let mut over: BTreeMap<u64, String> = BTreeMap::new();
        for event in events {
            now += 3;
            match event {
                Event::Begin(object) => {
                    let key = object.to_string();
                    let new = NewJob { key, ..grow(1_000) };
                    let id = jobs.begin(new, wall(now));
                    prop_assert!(id > newest);
                }
                Event::Progress(id, done) => jobs.progress(id, done, 1_000, both(now).0),
                Event::End(id, how) => jobs.end(id, &ending(how), wall(now)),
                Event::Cancel(id) => {
                    let runs = jobs.job(id).is_ok_and(|job| job.state == JobState::Running);
                    prop_assert_eq!(jobs.cancel(id, "kim", wall(now)).is_ok(), runs);
                    prop_assert_eq!(jobs.is_cancelling(id), runs);
                }
                Event::Observe(seen) => {
                    let seen: Vec<Sighting> = seen
                        .into_iter()
                        .map(|(key, (started, done, how))| {
                            let ended = (how < 3).then(|| ending(how));
                            scrub(&key.to_string(), started, done, ended)
                        })
                        .collect();
                    jobs.observe(&seen, &["scrub"], both(now));
                    for sighting in &seen {
                        let runs = jobs.running().any(|job| job.key == sighting.key && job.started == sighting.started);
                        prop_assert_eq!(runs, sighting.ended.is_none());
                    }
                }
                Event::Restart => {
                    let read = Document::read(&jobs.document().write()).unwrap();
                    prop_assert_eq!(&read.jobs.len(), &jobs.list().len());
                    jobs = Jobs::new(read, &["scrub"], wall(now));
                    prop_assert!(jobs.running().next().is_none());
                }
            }
            let all = jobs.list();
            newest = all.first().map_or(newest, |job| job.id.max(newest));
            for job in &all {
                prop_assert!(job.percent <= 100 && job.done <= job.total);
                prop_assert_eq!(job.ended.is_none(), job.state == JobState::Running);
                prop_assert!(!job.cancelling || job.state == JobState::Running);
                // Work that goes on by itself may go on where it was.
                if job.kind != "scrub" && job.state != JobState::Running {
                    let text = format!("{job:?}");
                    let before = over.entry(job.id).or_insert_with(|| text.clone());
                    prop_assert_eq!(&*before, &text);
                }
            }
        }
    }
}
