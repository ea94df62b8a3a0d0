//! Starts of one node's program. Each has a random number, so a node that runs twice, with one
//! state directory copied, is found by a start that speaks again after a later one has. Pure.

use crate::refusal::{Refusal, RefusalKind};

/// Starts that are remembered of a node beside its last one.
const BEFORE_MAX: usize = 16;

/// Those of one node that were heard.
#[derive(Clone, Default, Debug)]
pub(crate) struct Runs {
    last: String,
    /// The newest one last.
    before: Vec<String>,
}

impl Runs {
    /// This start of node `slot` speaks. A new one counts from now on; one that had ended, for all
    /// that is known, does not.
    ///
    /// # Errors
    /// Another one of the same node has begun since.
    pub(crate) fn hears(&mut self, run: &str, (slot, name): (u8, &str)) -> Result<(), Refusal> {
        if self.before.iter().any(|it| it == run) {
            return Err(Refusal::new(
                RefusalKind::Twice,
                format!(
                    "node {slot} ({name}) runs twice: another one with its keys has begun after this one"
                ),
                "stop the one that is not meant, and remove cluster*.json from the state directory of a copy before it \
                 starts again: it is a node of its own then, and joins with a token",
            ));
        }
        if self.last != run {
            let before = std::mem::replace(&mut self.last, run.to_owned());
            if !before.is_empty() {
                self.before.push(before);
            }
            let more = self.before.len().saturating_sub(BEFORE_MAX);
            self.before.drain(..more);
        }
        Ok(())
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn of_two_that_run_at_once_the_one_that_began_later_is_heard() {
        let mut runs = Runs::default();
        let mut hears = |run: &str| runs.hears(run, (1, "san-b"));
        assert_eq!((hears("a"), hears("a")), (Ok(()), Ok(())));
        // It was started again.
        assert_eq!((hears("b"), hears("b")), (Ok(()), Ok(())));
        let twice = hears("a").unwrap_err();
        assert_eq!(twice.kind, RefusalKind::Twice);
        assert!(twice.cause.contains("node 1 (san-b) runs twice"), "{twice}");
        assert_eq!(hears("b"), Ok(()), "the later one is believed");
        assert_eq!(hears("c"), Ok(()));
        assert!(hears("a").is_err() && hears("b").is_err());
    }

    #[test]
    fn no_number_of_starts_takes_more_memory_than_a_few() {
        let mut runs = Runs::default();
        for run in 0..1000 {
            assert!(runs.hears(&run.to_string(), (1, "san-b")).is_ok());
        }
        assert_eq!(runs.before.len(), BEFORE_MAX);
        assert!(runs.hears("998", (1, "san-b")).is_err());
    }
}
