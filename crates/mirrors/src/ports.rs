//! A node's ports to a LUN, as nodes say them to each other: JSON.

use logical_unit::{NodeElsewhere, NodeNumber, PortElsewhere, PortFacts};
use replica::NodeSlot;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

#[derive(Serialize, Deserialize)]
struct Said {
    target: String,
    tag: u16,
    port: u16,
    any: bool,
    names: BTreeSet<String>,
}

pub(crate) fn encode(ports: &[PortElsewhere]) -> Vec<u8> {
    let said = ports.iter().map(|it| Said {
        target: it.port.target_name.clone(),
        tag: it.port.portal_group_tag,
        port: it.port.relative_port,
        any: it.any,
        names: it.names.clone(),
    });
    serde_json::to_vec(&said.collect::<Vec<Said>>()).expect("texts and numbers")
}

/// What a node said; what cannot be is left out.
pub(crate) fn decode(of: NodeSlot, text: &[u8]) -> NodeElsewhere {
    let said: Vec<Said> = serde_json::from_slice(text).unwrap_or_else(|why| {
        tracing::warn!(node = of.0, %why, "the ports of another node cannot be read");
        Vec::new()
    });
    let sound = |it: &Said| (1..NodeNumber::PORTS).contains(&it.port);
    let ports = said.into_iter().filter(sound).map(|it| PortElsewhere {
        port: PortFacts {
            relative_port: it.port,
            target_name: it.target,
            portal_group_tag: it.tag,
        },
        any: it.any,
        names: it.names,
    });
    NodeElsewhere {
        number: NodeNumber(of.0),
        ports: ports.collect(),
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn ports_are_read_as_they_were_said_and_those_that_cannot_be_are_left_out() {
        let port = |relative_port: u16, any: bool| PortElsewhere {
            port: PortFacts {
                relative_port,
                target_name: "iqn.2026-11.io.causeway:t".to_owned(),
                portal_group_tag: 2,
            },
            any,
            names: ["iqn.a", "iqn.b"].map(str::to_owned).into(),
        };
        let good = vec![port(1, true), port(1023, false)];
        let said = decode(NodeSlot(4), &encode(&good));
        let wanted = NodeElsewhere {
            number: NodeNumber(4),
            ports: good.clone(),
        };
        assert_eq!(said, wanted);
        let bad = [good, vec![port(0, true), port(1024, true)]].concat();
        assert_eq!(decode(NodeSlot(4), &encode(&bad)), wanted);
        assert_eq!(decode(NodeSlot(4), b"[").ports, []);
    }
}
