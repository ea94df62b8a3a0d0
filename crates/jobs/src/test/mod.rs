//! Jobs against what must hold of them.

use crate::{Ending, Jobs, NewJob, Rate};
use manifest::job::JobState;
use units::{Now, WallClock};

mod seen;

fn wall(seconds: u64) -> WallClock {
    WallClock((1_800_000_000 + seconds) * 1_000_000_000)
}

fn both(seconds: u64) -> (Now, WallClock) {
    (Now((5 + seconds) * 1_000_000_000), wall(seconds))
}

fn grow(total: u64) -> NewJob {
    NewJob {
        kind: "lun_grow".to_owned(),
        object: "vm01".to_owned(),
        key: "naa1".to_owned(),
        by: "eve".to_owned(),
        total,
        ..NewJob::default()
    }
}

#[test]
fn a_job_says_how_far_it_is_how_fast_and_how_long_it_takes() {
    let mut jobs = Jobs::default();
    let id = jobs.begin(grow(10_000), wall(0));
    for second in 0..=20 {
        jobs.progress(id, second * 100, 10_000, both(second).0);
    }
    let job = jobs.job(id).unwrap();
    assert_eq!(
        (job.percent, job.rate, job.seconds_left),
        (20, 100, Some(80))
    );
    assert_eq!((job.state, job.by.as_str()), (JobState::Running, "eve"));
    jobs.end(id, &Ending::Finished, wall(30));
    let job = jobs.job(id).unwrap();
    assert_eq!((job.percent, job.rate, job.seconds_left), (100, 0, None));
    let log: Vec<&str> = job.log.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(log, ["begun by eve", "finished"]);
    jobs.end(id, &Ending::Cancelled, wall(31));
    assert_eq!(jobs.job(id).unwrap(), job, "what has ended stays as it is");
}

#[test]
fn a_rate_follows_what_happens_and_never_divides_by_nothing() {
    let mut rate = Rate::default();
    assert_eq!((rate.per_second(), rate.seconds_left(5)), (0, None));
    for second in 0..10 {
        rate.take(both(second).0, second * 1_000);
        rate.take(both(second).0, second * 1_000 + 5);
    }
    assert_eq!(rate.per_second(), 1_000);
    for second in 10..40 {
        rate.take(both(second).0, 9_000 + (second - 9) * 10);
    }
    assert!(
        (9..=12).contains(&rate.per_second()),
        "{}",
        rate.per_second()
    );
    rate.take(both(50).0, 0);
    rate.take(both(49).0, u64::MAX);
    rate.take(both(60).0, u64::MAX);
    assert!(rate.seconds_left(u64::MAX).is_some());
}

#[test]
fn what_is_kept_is_bounded_and_what_runs_is_kept() {
    let mut jobs = Jobs::default();
    let running = jobs.begin(grow(1), wall(0));
    for round in 0..2_000 {
        let id = jobs.begin(grow(1), wall(round));
        jobs.end(id, &Ending::Failed("x\n".repeat(2_000)), wall(round));
    }
    assert!(jobs.list().len() <= 502, "{}", jobs.list().len());
    assert!(jobs.job(running).is_ok());
    for second in 0..1_000 {
        jobs.not_cancelled(running, "no", wall(second));
    }
    let job = jobs.job(running).unwrap();
    assert_eq!(
        (job.log.len(), job.log[0].text.as_str()),
        (100, "begun by eve")
    );
    assert!(
        jobs.list()[0]
            .log
            .iter()
            .all(|line| line.text.len() < 600 && !line.text.contains('\n'))
    );
}

#[test]
fn work_of_which_nobody_knows_how_much_there_is_has_no_percent_until_its_end() {
    let mut jobs = Jobs::default();
    let id = jobs.begin(grow(0), wall(0));
    assert_eq!(
        (jobs.job(id).unwrap().percent, jobs.job(id).unwrap().total),
        (0, 0)
    );
    jobs.link(id, "/api/v1/here");
    jobs.end(id, &Ending::Finished, wall(1));
    jobs.link(id, "/api/v1/there");
    let job = jobs.job(id).unwrap();
    assert_eq!(
        (job.percent, job.link.as_deref()),
        (100, Some("/api/v1/here"))
    );
}
