//! What two nodes say to each other about one LUN, over a connection that is there for all of them.
//!
//! ```text
//!   begins anew --greeting(own number, the other one's)--> the other side begins anew as well
//!   all but greetings counts for nothing <--greeting(its number, this one)-- until both know both
//! ```
//!
//! A node that claims a LUN has the other one hear what it promised, before anything counts that
//! that says: on a connection of many LUNs that must not end what is said of the others. Messages
//! come in their order, so what comes behind a greeting with both numbers was said after it.

use replica::Conversation;

/// One with another node, as this one knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Talk {
    own: u64,
    heard: u64,
    is_agreed: bool,
}

/// What a greeting means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Greeted {
    /// The other side began anew: what was said before holds no more.
    pub(crate) is_anew: bool,
    /// Both know both numbers: what comes counts.
    pub(crate) is_agreed: bool,
}

impl Talk {
    /// The first number: none that this LUN had before on this node.
    pub(crate) const fn new(own: u64) -> Self {
        Self {
            own,
            heard: 0,
            is_agreed: false,
        }
    }

    /// This side begins anew.
    pub(crate) const fn begins(&mut self) {
        self.own = self.own.wrapping_add(1);
        self.is_agreed = false;
    }

    /// What counts may come from the other side.
    pub(crate) const fn is_agreed(self) -> bool {
        self.is_agreed
    }

    /// What a greeting of this side says.
    pub(crate) const fn says(self) -> Conversation {
        Conversation {
            own: self.own,
            heard: self.heard,
        }
    }

    /// A greeting came.
    pub(crate) const fn hears(&mut self, said: Conversation) -> Greeted {
        let is_anew = said.own != self.heard;
        self.heard = said.own;
        self.is_agreed = said.heard == self.own;
        Greeted {
            is_anew,
            is_agreed: self.is_agreed,
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use std::collections::VecDeque;

    /// Two sides and what is on its way between them, each direction in its order.
    struct World {
        talks: [Talk; 2],
        queues: [VecDeque<Conversation>; 2],
        greetings: usize,
    }

    impl World {
        fn says(&mut self, side: usize) {
            self.queues[side].push_back(self.talks[side].says());
            self.greetings += 1;
        }

        fn begins(&mut self, side: usize) {
            self.talks[side].begins();
            self.says(side);
        }

        /// The other side hears the next one, and answers where it has to.
        fn delivers(&mut self, from: usize) -> bool {
            let Some(said) = self.queues[from].pop_front() else {
                return false;
            };
            if self.talks[1 - from].hears(said).is_anew {
                self.says(1 - from);
            }
            true
        }
    }

    #[test]
    fn whoever_begins_anew_and_whenever_both_agree_in_the_end_and_nobody_before() {
        // Each bit is a choice: who begins anew, and whose greeting arrives next.
        for choices in 0..1_u32 << 12 {
            let mut world = World {
                talks: [Talk::new(100), Talk::new(500)],
                queues: Default::default(),
                greetings: 0,
            };
            world.begins(0);
            world.begins(1);
            let mut begun = 2;
            for at in 0..6 {
                let side = usize::from(choices >> (2 * at) & 1 == 1);
                if choices >> (2 * at + 1) & 1 == 1 {
                    world.begins(side);
                    begun += 1;
                    assert!(!world.talks[side].is_agreed());
                } else {
                    world.delivers(side);
                }
            }
            while world.delivers(0) || world.delivers(1) {}
            let [one, other] = world.talks;
            assert!(one.is_agreed() && other.is_agreed(), "{choices:b}");
            assert_eq!((one.own, one.heard), (other.heard, other.own));
            assert!(world.greetings <= 2 * begun, "{choices:b}: it ends");
        }
    }

    #[test]
    fn a_greeting_from_before_counts_for_nothing() {
        let (mut one, mut other) = (Talk::new(7), Talk::new(9));
        other.hears(one.says());
        assert!(one.hears(other.says()).is_agreed);
        let late = other.says();
        one.begins();
        assert!(!one.hears(late).is_agreed, "it does not know the number");
        let greeted = other.hears(one.says());
        assert_eq!((greeted.is_anew, greeted.is_agreed), (true, true));
    }
}
