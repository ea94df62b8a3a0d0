//! Names that outlive programs, and opens that some or all paths do not answer.

use crate::bench::{San, lane, on, options, read, runtime, write};
use crate::own::{pause, states, status, through_relays, two_portals, until};
use crate::relay::Wire;
use crate::shared::sessions;
use host::{Options, Status};
use std::time::Duration;

fn isids(san: &San) -> Vec<String> {
    let mut all: Vec<String> = sessions(san).into_iter().map(|it| it.isid).collect();
    all.sort();
    all
}

fn all_joined(status: &Status) -> bool {
    let joined = |it: &&str| ["active", "standby"].contains(it);
    states(status).iter().all(joined)
}

/// A runtime that ends without a word is a program that was killed.
#[test]
fn paths_keep_their_isids_over_restarts_and_kills_and_two_programs_have_their_own() {
    let san = San::start(two_portals());
    let url = san.url(0);
    let options = options("isids", 2);
    let open = |options: &Options| {
        let runtime = runtime(1);
        let (url, options) = (url.clone(), options.clone());
        let volume = on(&runtime, move |core| async move {
            let volume = host::open(&core, &url, &options).await.unwrap();
            until(&core, &volume, all_joined).await;
            volume
        });
        (runtime, volume)
    };
    let (first, volume) = open(&options);
    let before = isids(&san);
    assert_eq!(before.len(), 4, "one for each path: {before:?}");
    assert!(before.windows(2).all(|two| two[0] != two[1]), "{before:?}");
    // Another program at the same time ends none of these sessions.
    let (second, other) = open(&options);
    let both = isids(&san);
    assert_eq!(both.len(), 8, "{both:?}");
    assert!(before.iter().all(|it| both.contains(it)), "{both:?}");
    on(&second, move |core| async move { other.stop(&core).await });
    drop(second);
    on(&first, move |core| async move { volume.stop(&core).await });
    drop(first);
    let (killed, _) = open(&options);
    assert_eq!(isids(&san), before, "after an orderly end");
    drop(killed);
    let (last, volume) = open(&options);
    assert_eq!(isids(&san), before, "after a kill");
    on(&last, move |core| async move { volume.stop(&core).await });
}

#[test]
fn an_open_does_not_wait_for_a_portal_that_is_silent() {
    let san = San::start(two_portals());
    let (relays, url) = through_relays(&san, 0);
    relays[0].set(Wire::Silent);
    let runtime = runtime(1);
    on(&runtime, move |core| async move {
        let begun = core.now();
        let volume = host::open(&core, &url, &options("absent", 2))
            .await
            .unwrap();
        let lane = lane(&core, &volume).await;
        write(&*lane, 8, &[4; 512]).await.unwrap();
        assert_eq!(read(&*lane, 8, 1).await.unwrap(), [4; 512]);
        let took = core.now().since(begun);
        assert!(took < Duration::from_secs(4), "{took:?}");
        relays[0].set(Wire::Good);
        until(&core, &volume, all_joined).await;
        volume.stop(&core).await;
    });
}

#[test]
fn where_no_path_answers_an_open_ends_and_reports_the_reason_of_each() {
    let san = San::start(two_portals());
    let (relays, url) = through_relays(&san, 0);
    relays.iter().for_each(|relay| relay.set(Wire::Cut));
    let runtime = runtime(1);
    on(&runtime, move |core| async move {
        let begun = core.now();
        let opened = host::open(&core, &url, &options("gone", 2)).await;
        let error = opened.expect_err("nobody answers");
        for relay in &relays {
            let portal = relay.portal.to_string();
            assert!(error.cause.contains(&portal), "{error}");
        }
        let took = core.now().since(begun);
        assert!(took < Duration::from_secs(25), "{took:?}");
    });
}

/// A target that is away when it is asked, and comes: the same call does it.
#[test]
fn after_an_open_that_failed_the_next_one_is_as_good_as_the_first() {
    let san = San::start(two_portals());
    let (relays, url) = through_relays(&san, 0);
    relays.iter().for_each(|relay| relay.set(Wire::Cut));
    let runtime = runtime(1);
    on(&runtime, move |core| async move {
        let options = options("again", 2);
        host::open(&core, &url, &options).await.unwrap_err();
        relays.iter().for_each(|relay| relay.set(Wire::Good));
        let volume = host::open(&core, &url, &options).await.unwrap();
        until(&core, &volume, all_joined).await;
        pause(&core, Duration::from_millis(100)).await;
        assert!(all_joined(&status(&core, &volume).await));
        volume.stop(&core).await;
    });
}
