//! What can happen to a link of a bed.

use crate::bed::{Bed, Side};
use crate::error::LabError;
use crate::port::Harm;
use crate::wire::{self, Wire};

impl Bed {
    /// Does `harm` to the links of `ports` at the same moment.
    ///
    /// # Errors
    /// What the system refused.
    pub async fn harm(&self, side: Side, ports: &[usize], harm: Harm) -> Result<(), LabError> {
        let (all, part) = (self.topology().wires(side), side.namespace());
        let wires: Vec<&Wire> = ports.iter().map(|number| &all[*number]).collect();
        wire::harm(self.claim(), part, &wires, harm, self.topology().medium()).await
    }

    /// Brings the links of `ports` back to what they were.
    ///
    /// # Errors
    /// What the system refused.
    pub async fn mend(&self, side: Side, ports: &[usize], harm: Harm) -> Result<(), LabError> {
        let (all, part) = (self.topology().wires(side), side.namespace());
        let wires: Vec<&Wire> = ports.iter().map(|number| &all[*number]).collect();
        wire::mend(self.claim(), part, &wires, harm, self.topology().medium()).await
    }
}
