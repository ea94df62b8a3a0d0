//! How the host's TCP is set.

use crate::nic::{number, text};
use crate::roots::Roots;
use env::Files;
use std::path::Path;

/// Settings that matter to storage traffic; absent where the kernel has no such setting.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TcpSettings {
    /// Congestion control of new connections: `cubic`, `bbr`, `reno`.
    pub congestion_control: Option<String>,
    /// Bytes of a connection's receive buffer: least, at first, most.
    pub receive_buffer: Option<[u64; 3]>,
    /// Bytes of a connection's send buffer: least, at first, most.
    pub send_buffer: Option<[u64; 3]>,
    /// Selective acknowledgements.
    pub sack: Option<bool>,
    /// Windows above 64 KiB.
    pub window_scaling: Option<bool>,
    /// Time stamps.
    pub timestamps: Option<bool>,
    /// A connection begins anew after it was idle.
    pub slow_start_after_idle: Option<bool>,
    /// Shortest retransmission timeout, in microseconds.
    pub rto_min_us: Option<u64>,
    /// What one connection learnt is not used for the next.
    pub no_metrics_save: Option<bool>,
}

/// Reads them.
pub(crate) async fn read(files: &dyn Files, roots: &Roots) -> TcpSettings {
    let dir = roots.proc.join("sys/net/ipv4");
    TcpSettings {
        congestion_control: text(files, &dir.join("tcp_congestion_control")).await,
        receive_buffer: three(files, &dir.join("tcp_rmem")).await,
        send_buffer: three(files, &dir.join("tcp_wmem")).await,
        sack: flag(files, &dir.join("tcp_sack")).await,
        window_scaling: flag(files, &dir.join("tcp_window_scaling")).await,
        timestamps: flag(files, &dir.join("tcp_timestamps")).await,
        slow_start_after_idle: flag(files, &dir.join("tcp_slow_start_after_idle")).await,
        rto_min_us: number(files, &dir.join("tcp_rto_min_us")).await,
        no_metrics_save: flag(files, &dir.join("tcp_no_metrics_save")).await,
    }
}

async fn flag(files: &dyn Files, path: &Path) -> Option<bool> {
    let value: u32 = number(files, path).await?;
    Some(value != 0)
}

async fn three(files: &dyn Files, path: &Path) -> Option<[u64; 3]> {
    let reported = text(files, path).await?;
    let words: Option<Vec<u64>> = reported
        .split_whitespace()
        .map(|it| it.parse().ok())
        .collect();
    words?.try_into().ok()
}
