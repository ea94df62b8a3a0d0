//! Whether a history of one register is linearizable, step by step.

/// What the register may be now: each possibility has the writes without an answer that have
/// already taken effect, and the value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Register {
    /// Writes that began and have no answer, as bits.
    open: u16,
    /// Sorted.
    may_be: Vec<(u16, u8)>,
}

impl Register {
    pub(super) fn new() -> Self {
        Self {
            open: 0,
            may_be: vec![(0, 0)],
        }
    }

    /// What was written is lost but for one of these values.
    pub(super) fn is_lost_but(&mut self, values: Vec<u8>) {
        self.open = 0;
        self.may_be = values.into_iter().map(|it| (0, it)).collect();
        self.tidy();
    }

    /// A write of `value` began: values are 1 to 15, each written once.
    pub(super) fn begins(&mut self, value: u8) {
        self.open |= 1 << value;
    }

    /// It was answered. Whether there is still an order that explains all that was seen.
    pub(super) fn ends(&mut self, value: u8) -> bool {
        let bit = 1 << value;
        self.close();
        self.may_be.retain(|(done, _)| done & bit != 0);
        for (done, _) in &mut self.may_be {
            *done &= !bit;
        }
        self.open &= !bit;
        self.tidy()
    }

    /// `value` was read.
    pub(super) fn reads(&mut self, value: u8) -> bool {
        self.close();
        self.may_be.retain(|(_, is)| *is == value);
        self.tidy()
    }

    /// Any write that is open may take effect at any time, once.
    fn close(&mut self) {
        let mut at = 0;
        while let Some(&(done, _)) = self.may_be.get(at) {
            for value in (1..16).filter(|it| self.open >> it & 1 == 1 && done >> it & 1 == 0) {
                let next = (done | 1 << value, value);
                if !self.may_be.contains(&next) {
                    self.may_be.push(next);
                }
            }
            at += 1;
        }
    }

    fn tidy(&mut self) -> bool {
        self.may_be.sort_unstable();
        self.may_be.dedup();
        !self.may_be.is_empty()
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_history_that_no_order_explains_is_found() {
        let mut register = Register::new();
        assert!(register.reads(0));
        register.begins(1);
        let seen = |mut of: Register, values: &[u8]| values.iter().all(|&it| of.reads(it));
        assert!(seen(register.clone(), &[0, 1]), "while it goes on, either");
        assert!(!seen(register.clone(), &[1, 0]), "and never back");
        assert!(register.ends(1));
        assert!(!seen(register.clone(), &[0]), "it was answered");
        register.begins(2);
        register.begins(3);
        assert!(register.ends(3));
        assert!(seen(register.clone(), &[3, 2]), "2 has no answer yet");
        assert!(seen(register.clone(), &[3, 3]));
        assert!(!seen(register, &[2, 3]));
    }
}
