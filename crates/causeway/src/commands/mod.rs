//! The commands, a file per noun: its arguments, what it does, and what may stand where.

pub(crate) mod adopt;
pub(crate) mod api;
pub(crate) mod apply;
pub(crate) mod bench;
mod confirm;
pub(crate) mod context;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod grant;
pub(crate) mod host;
pub(crate) mod journal;
pub(crate) mod lab;
pub(crate) mod lun;
pub(crate) mod path;
pub(crate) mod pool;
pub(crate) mod pool_check;
pub(crate) mod scrub;
pub(crate) mod session;
pub(crate) mod share;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod target;
pub(crate) mod token;
pub(crate) mod top;
pub(crate) mod user;
