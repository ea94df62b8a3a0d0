//! Goes through the model for a long time, and says what it saw.
//!
//! `cargo run --release -p replica --features model --example model -- [WORLDS] [WALKS]`: so many
//! worlds in order of each bound, and so many walks at random.

use replica::model::{Bounds, Explored, explore, walk};

/// Two nodes, and nothing goes wrong.
const QUIET: Bounds = Bounds {
    writes: 2,
    reads: 2,
    ..Bounds::QUIET
};

/// Much goes wrong, often.
const ROUGH: Bounds = Bounds {
    writes: 6,
    reads: 10,
    crashes: 5,
    cuts: 6,
    lost: 4,
    asks: 6,
    unwell: 2,
    handovers: 3,
    set_backs: 2,
    epochs: 14,
    ..QUIET
};

fn say(name: &str, explored: Explored) -> usize {
    let Explored { worlds, states, .. } = &explored;
    let whole = if explored.is_complete {
        ", which are all"
    } else {
        ""
    };
    let epochs = explored.epochs;
    println!("{name}: {worlds} worlds{whole}, epochs to {epochs}, {states:?}");
    if let Some((wrong, events)) = explored.wrong {
        println!("error: {wrong}, after\n  {}", events.join("\n  "));
        std::process::exit(1);
    }
    explored.worlds
}

/// What may go wrong, by name.
fn cases() -> Vec<(&'static str, Bounds)> {
    vec![
        ("nothing fails", QUIET),
        (
            "a crash",
            Bounds {
                crashes: 1,
                ..QUIET
            },
        ),
        (
            "a cut, an answer lost",
            Bounds {
                cuts: 1,
                lost: 1,
                ..QUIET
            },
        ),
        (
            "a crash, a cut",
            Bounds {
                crashes: 1,
                cuts: 1,
                ..QUIET
            },
        ),
        (
            "reads of a replica",
            Bounds {
                asks: 2,
                unwell: 1,
                ..QUIET
            },
        ),
        (
            "a handover, a crash",
            Bounds {
                handovers: 1,
                crashes: 1,
                ..QUIET
            },
        ),
        (
            "a store that is set back",
            Bounds {
                set_backs: 1,
                crashes: 1,
                unwell: 1,
                ..QUIET
            },
        ),
        ("three nodes", Bounds { nodes: 3, ..QUIET }),
    ]
}

/// The same of copies that come and go.
fn cases_of_copies() -> Vec<(&'static str, Bounds)> {
    vec![
        (
            "copies that are replaced",
            Bounds {
                changes: 2,
                losses: 1,
                asks: 1,
                ..QUIET
            },
        ),
        (
            "somebody goes on by force",
            Bounds {
                crashes: 2,
                promotes: 1,
                ..QUIET
            },
        ),
        (
            "two copies for each write",
            Bounds {
                cuts: 1,
                crashes: 1,
                min_copies: 2,
                ..QUIET
            },
        ),
    ]
}

fn main() {
    let numbers = std::env::args().skip(1).map(|it| it.parse());
    let Ok(numbers) = numbers.collect::<Result<Vec<usize>, _>>() else {
        eprintln!("usage: model [WORLDS] [WALKS]");
        std::process::exit(2);
    };
    let worlds = numbers.first().copied().unwrap_or(1_000_000);
    let walks = numbers.get(1).copied().unwrap_or(10_000) as u64;
    let mut all = 0;
    for (name, bounds) in cases().into_iter().chain(cases_of_copies()) {
        all += say(name, explore(bounds, None, worlds));
    }
    for (name, nodes) in [("walks of two nodes", 2), ("walks of three nodes", 3)] {
        let bounds = Bounds { nodes, ..ROUGH };
        all += say(name, walk(bounds, None, (walks, 1000)));
        let changing = Bounds {
            changes: 5,
            losses: 1,
            promotes: 1,
            min_copies: u32::from(nodes) - 1,
            ..bounds
        };
        let name = format!("{name} whose copies change");
        all += say(&name, walk(changing, None, (walks, 1000)));
    }
    println!("{all} worlds in all, and nothing wrong");
}
