//! Signals that ask a command to end.

use tokio::signal::unix::{SignalKind, signal};

/// Blocks until SIGTERM, SIGHUP or SIGINT comes; `false`, at once: they cannot be waited for here.
#[must_use]
pub fn wait_for_end() -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else { return false };
    runtime.block_on(async {
        let kinds = [
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::interrupt(),
        ];
        let mut signals: Vec<_> = kinds
            .into_iter()
            .filter_map(|kind| signal(kind).ok())
            .collect();
        std::future::poll_fn(|cx| {
            let mut all = signals.iter_mut();
            if all.any(|signal| signal.poll_recv(cx).is_ready()) {
                return std::task::Poll::Ready(());
            }
            std::task::Poll::Pending
        })
        .await;
    });
    true
}
