//! What can happen to a link of a bed.

use crate::bed::{Bed, Side, nic_queue};
use crate::error::LabError;
use crate::rate::Rate;
use crate::tool::{Tool, batch};

/// What happens to a link. Each is undone by [`Bed::mend`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Harm {
    /// The cable is pulled: both ends lose the carrier.
    Cut,
    /// The switch forwards nothing to it and from it any more, and neither end is notified.
    BlackHole,
    /// It carries this much only.
    Slow(Rate),
}

impl Bed {
    /// Does `harm` to the links of `ports` at the same moment.
    ///
    /// # Errors
    /// What the system refused.
    pub async fn harm(&self, side: Side, ports: &[usize], harm: Harm) -> Result<(), LabError> {
        let ends = ports.iter().map(|number| side.switch_port(*number));
        match harm {
            Harm::Cut => {
                self.on_switch(ends.map(|end| format!("link set {end} down")))
                    .await
            }
            Harm::BlackHole => {
                self.on_switch(ends.map(|end| format!("link set {end} nomaster")))
                    .await
            }
            Harm::Slow(rate) => self.shape(side, ports, |_| rate).await,
        }
    }

    /// Brings the links of `ports` back to what they were.
    ///
    /// # Errors
    /// What the system refused.
    pub async fn mend(&self, side: Side, ports: &[usize], harm: Harm) -> Result<(), LabError> {
        let all = self.topology().ports(side);
        match harm {
            Harm::Cut => {
                let ends = ports.iter().map(|number| side.switch_port(*number));
                self.on_switch(ends.map(|end| format!("link set {end} up")))
                    .await
            }
            Harm::BlackHole => {
                let back = ports.iter().map(|number| {
                    let (end, network) = (side.switch_port(*number), all[*number].network);
                    format!("link set {end} master br{network}")
                });
                self.on_switch(back).await
            }
            Harm::Slow(_) => self.shape(side, ports, |number| all[number].rate).await,
        }
    }

    async fn on_switch(&self, lines: impl Iterator<Item = String>) -> Result<(), LabError> {
        let lines: Vec<String> = lines.collect();
        batch(Tool::Ip, Some(&self.switch()), &lines).await
    }

    /// Gives both directions of the links another rate.
    async fn shape(
        &self,
        side: Side,
        ports: &[usize],
        rate: impl Fn(usize) -> Rate,
    ) -> Result<(), LabError> {
        let (mut near, mut far) = (Vec::new(), Vec::new());
        for number in ports {
            let name = &self.topology().ports(side)[*number].name;
            near.push(nic_queue("change", name, rate(*number)));
            far.push(self.switch_queue("change", &side.switch_port(*number), rate(*number)));
        }
        batch(Tool::Tc, Some(&self.namespace(side)), &near).await?;
        batch(Tool::Tc, Some(&self.switch()), &far).await
    }
}
