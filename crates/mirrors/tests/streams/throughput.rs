//! What TLS costs: bytes a second and processor time, with and without it, in one run.

use crate::bed::{Dir, Site, free_port, two};
use crate::frames::waiting;
use cluster::{Channel, TcpTransport, Transport};
use replica::NodeSlot;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

const GIB: u64 = 1 << 30;
const MIB: f64 = 1_048_576.0;

/// What this thread had of a processor.
fn used() -> Duration {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = said.split_ascii_whitespace().next().unwrap();
    Duration::from_nanos(nanoseconds.parse().unwrap())
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn now() -> Instant {
    Instant::now()
}

/// Sends what waits again and again.
async fn send(channel: Rc<dyn Channel>, bytes: u64) -> Duration {
    let connection = waiting(1);
    let (mut sent, begun) = (0, used());
    while sent < bytes {
        let more = poll_fn(|cx| channel.poll_send(cx, connection.transmit())).await;
        sent += more.unwrap() as u64;
    }
    used() - begun
}

/// Receives at least so many, 64 KiB at most at once, as data of a frame would be.
async fn receive(channel: Rc<dyn Channel>, bytes: u64) -> Duration {
    let mut into = vec![0; 64 << 10];
    let (mut received, begun) = (0, used());
    while received < bytes {
        let more =
            poll_fn(|cx: &mut Context<'_>| -> Poll<_> { channel.poll_receive(cx, &mut into) });
        let more = more.await.unwrap();
        assert!(more > 0, "{received} of {bytes}");
        received += more as u64;
    }
    used() - begun
}

/// MB/s, and microseconds of processor time for each MiB at both ends.
fn measure(name: &str, (a, b): (&Site, &Site), at: Option<SocketAddr>) {
    let transport = move |here: &crate::bed::Here| -> Rc<dyn Transport> {
        let Some(at) = at else {
            return Rc::clone(&here.transport) as Rc<dyn Transport>;
        };
        let is_b = here.membership.present().unwrap().slot == 1;
        let own = if is_b { at } else { free_port() };
        let nodes = BTreeMap::from([(NodeSlot(1), at)]);
        Rc::new(TcpTransport::listen(&here.core, own, nodes).unwrap())
    };
    let (listens, is_there) = std::sync::mpsc::channel();
    let receiving = b.begin(async move |here| {
        let transport = transport(&here);
        listens.send(()).unwrap();
        let channel = transport.accept().await.unwrap();
        receive(channel, GIB).await
    });
    is_there.recv().unwrap();
    let (begun, sending) = a.on(async move |here| {
        let channel = if at.is_some() {
            transport(&here).dial(NodeSlot(1)).await.unwrap()
        } else {
            here.dialled(NodeSlot(1)).await
        };
        (now(), send(channel, GIB).await)
    });
    let receiving = receiving.recv().unwrap();
    let took = begun.elapsed().as_secs_f64();
    let each = |spent: Duration| spent.as_secs_f64() * 1e6 / (GIB as f64 / MIB);
    println!(
        "{name}: {:.0} MB/s; {:.0} us a MiB at the sender, {:.0} at the receiver",
        GIB as f64 / took / 1e6,
        each(sending),
        each(receiving)
    );
}

#[test]
#[ignore = "it measures: cargo test --release -p mirrors --test streams -- --ignored --nocapture"]
fn a_gib_over_loopback_with_tls_and_without() {
    let dir = Dir::new("throughput");
    let (a, b) = two(&dir);
    for _ in 0..3 {
        measure("TCP", (&a, &b), Some(free_port()));
        measure("TLS", (&a, &b), None);
    }
}
