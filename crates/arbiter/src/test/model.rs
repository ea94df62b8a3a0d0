use super::{in_world, shared};
use crate::contract::{self, Counts, insist, key, swap};
use crate::model::{Manners, ModelArbiter, ModelStore};
use crate::{Answer, Arbiter, Question, StoreId, TroubleKind};
use replica::Revision;
use replica::model::Held;
use std::rc::Rc;
use std::time::Duration;

#[test]
fn the_model_keeps_the_contract() {
    let counts = in_world(1, |core, there| {
        Box::pin(async move {
            let store = ModelStore::new(&there);
            let rivals = [(); 4].map(|()| shared(ModelArbiter::new(&core, &store, Manners::GOOD)));
            contract::holds(&core, &rivals, "t", Duration::from_secs(60)).await
        })
    });
    assert_eq!(counts.unknown, 0, "{counts:?}");
    assert!(counts.swapped > 40 && counts.refused > 40, "{counts:?}");
}

#[test]
fn answers_that_are_late_twice_or_lost_are_explained_by_one_order() {
    let mut all = Counts::default();
    for seed in 0..150 {
        let counts = in_world(seed, |core, there| {
            Box::pin(async move {
                let store = ModelStore::new(&there);
                let rivals =
                    [(); 3].map(|()| shared(ModelArbiter::new(&core, &store, Manners::BAD)));
                let limit = Duration::from_secs(500);
                contract::contend(&core, &rivals, ("t", seed), |round| round < 25, limit).await
            })
        });
        let (counts, _) = counts.unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        all.swapped += counts.swapped;
        all.refused += counts.refused;
        all.unknown += counts.unknown;
        all.done_unheard += counts.done_unheard;
    }
    assert!(all.swapped > 1000 && all.refused > 500, "{all:?}");
    assert!(all.unknown > 1000 && all.done_unheard > 500, "{all:?}");
}

#[test]
fn records_change_together_or_not_at_all_where_answers_are_late_twice_or_lost() {
    let (mut all_done, mut all_refused) = (0, 0);
    for seed in 300..360 {
        let (done, refused) = in_world(seed, |core, there| {
            Box::pin(async move {
                let store = ModelStore::new(&there);
                let rivals =
                    [(); 3].map(|()| shared(ModelArbiter::new(&core, &store, Manners::BAD)));
                let limit = Duration::from_secs(500);
                contract::contend_together(&core, &rivals, "t", limit).await
            })
        });
        all_done += done;
        all_refused += refused;
    }
    assert!(
        all_done > 500 && all_refused > 500,
        "{all_done} {all_refused}"
    );
}

#[test]
fn a_store_that_is_emptied_restored_or_another_one_is_not_believed() {
    let set_back = |to_nothing: bool| {
        in_world(5, move |core, there| {
            Box::pin(async move {
                let store = ModelStore::new(&there);
                let arbiter = ModelArbiter::new(&core, &store, Manners::GOOD);
                let key = key("t", "a");
                let first = insist(&core, &arbiter, vec![swap(&key, Revision(0), "a")]).await;
                let Answer::Swapped(first) = first[0] else {
                    panic!("{first:?}");
                };
                let backup = store.backup();
                insist(&core, &arbiter, vec![swap(&key, first, "b")]).await;
                store.becomes(StoreId(9));
                let trouble = contract::trouble(&arbiter, &key).await;
                assert_eq!(trouble.kind, TroubleKind::OtherStore);
                store.becomes(StoreId(1));
                insist(&core, &arbiter, vec![Question::Read(key.clone())]).await;
                store.set_back(if to_nothing { Held::nothing() } else { backup });
                let trouble = contract::trouble(&arbiter, &key).await;
                assert_eq!(trouble.kind, TroubleKind::SetBack);
                let other: Rc<dyn Arbiter> =
                    Rc::new(ModelArbiter::new(&core, &store, Manners::GOOD));
                let held = store.backup();
                let lost = swap(&contract::key("t", "new"), Revision(0), "a");
                let answers = arbiter.ask(vec![lost]).await;
                assert!(matches!(answers[..], [Answer::Unknown(_)]), "{answers:?}");
                assert_eq!(store.backup(), held, "nothing is written");
                // Who knew nothing of it believes what is there; and it goes on.
                for number in 0..9 {
                    let key = contract::key("t", &format!("x{number}"));
                    insist(&core, &*other, vec![swap(&key, Revision(0), "a")]).await;
                }
                let still = contract::trouble(&arbiter, &key).await;
                assert_eq!(still.kind, TroubleKind::SetBack);
                trouble.cause
            })
        })
    };
    assert!(set_back(true).contains("emptied"));
    assert!(set_back(false).contains("restored"));
}

#[test]
fn a_store_that_is_away_leaves_everything_unknown_and_nothing_else() {
    in_world(6, |core, there| {
        Box::pin(async move {
            let store = ModelStore::new(&there);
            let arbiter = ModelArbiter::new(&core, &store, Manners::GOOD);
            store.is_away(true);
            let key = key("t", "a");
            let begun = core.now();
            let trouble = contract::trouble(&arbiter, &key).await;
            assert_eq!(trouble.kind, TroubleKind::Silent);
            let waited = core.now().since(begun);
            assert!(waited <= Duration::from_millis(1001), "{waited:?}");
            store.is_away(false);
            let read = insist(&core, &arbiter, vec![Question::Read(key)]).await;
            assert_eq!(read, [Answer::Is(None)]);
        })
    });
}
