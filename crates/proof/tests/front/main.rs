//! The iSCSI front against hosts: portals, logins, sessions, flow control and task management, on a
//! simulated network and on real sockets.

mod attentions;
mod bench;
mod copies;
mod discovery;
mod exports;
mod flow;
mod going;
mod gone;
mod host;
mod hostile;
mod hung;
mod initiator_crate;
mod keyed;
mod limits;
mod logins;
mod parts;
mod patience;
mod placing;
mod portals;
mod ports;
mod raw;
mod real;
mod residuals;
mod sessions;
mod stages;
mod submissions;
mod taken;
mod tasks;
mod unanswered;
#[path = "../common/unit.rs"]
mod unit;
