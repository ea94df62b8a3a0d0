//! Channels over TLS: what they carry, how they end, and that nobody is woken for nothing.

use crate::bed::{Dir, Here, two};
use crate::frames::waiting;
use cluster::{Channel, Transport};
use env::in_time;
use peer::Connection;
use replica::NodeSlot;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

fn bytes_of(connection: &Connection) -> Vec<u8> {
    connection.transmit().pieces().collect::<Vec<_>>().concat()
}

async fn accepted(here: &Here) -> Rc<dyn Channel> {
    here.transport.accept().await.unwrap()
}

async fn send(channel: &dyn Channel, connection: &mut Connection) {
    while !connection.transmit().is_empty() {
        let sent = poll_fn(|cx| channel.poll_send(cx, connection.transmit())).await;
        connection.sent(sent.unwrap());
    }
}

/// Receives so many, with a pause after each part, so that the sender has to wait.
async fn receive(here: &Here, channel: &dyn Channel, len: usize, pause: Duration) -> Vec<u8> {
    let (mut heard, mut size) = (Vec::new(), 1);
    while heard.len() < len {
        let mut into = vec![0; size];
        let received = poll_fn(|cx| channel.poll_receive(cx, &mut into)).await;
        let received = received.unwrap();
        assert!(received > 0, "{} of {len}", heard.len());
        heard.extend(&into[..received]);
        size = size * 3 % 70_001 + 1;
        if size % 5 == 0 {
            here.sleep(pause).await;
        }
    }
    heard
}

/// More than sockets hold.
const PARTS: u8 = 8;

async fn sends_all(channel: &dyn Channel, seed: u8) {
    for part in 0..PARTS {
        send(channel, &mut waiting(seed + part)).await;
    }
}

async fn receives_all(here: &Here, channel: &dyn Channel, seed: u8) {
    here.sleep(Duration::from_millis(300)).await;
    for part in 0..PARTS {
        let expected = bytes_of(&waiting(seed + part));
        let heard = receive(here, channel, expected.len(), Duration::from_millis(3)).await;
        assert!(heard == expected, "part {part} of {seed}");
    }
}

#[test]
fn frames_come_as_they_were_sent_in_both_directions_however_slowly_they_are_taken() {
    let dir = Dir::new("carried");
    let (a, b) = two(&dir);
    let long = Duration::from_secs(60);
    let theirs = b.begin(async move |here| {
        let channel = accepted(&here).await;
        assert_eq!(channel.peer(), Some(NodeSlot(0)));
        let all = async {
            receives_all(&here, &*channel, 0).await;
            sends_all(&*channel, 100).await;
        };
        in_time(&here.core, long, all).await.expect("all comes");
    });
    a.on(async move |here| {
        let channel = here.dialled(NodeSlot(1)).await;
        assert_eq!(channel.peer(), Some(NodeSlot(1)));
        let all = async {
            sends_all(&*channel, 0).await;
            receives_all(&here, &*channel, 100).await;
        };
        in_time(&here.core, long, all).await.expect("all comes");
    });
    theirs.recv().unwrap();
}

#[test]
fn an_end_is_at_once_at_both_ends_in_both_directions() {
    let dir = Dir::new("ended");
    let (a, b) = two(&dir);
    let theirs = b.begin(async |here| {
        let channel = accepted(&here).await;
        here.sleep(Duration::from_millis(300)).await;
        // What was on its way comes, then the end.
        let receiving = async {
            let mut into = vec![0; 64 << 10];
            while let Ok(1..) = poll_fn(|cx| channel.poll_receive(cx, &mut into)).await {}
        };
        let ended = in_time(&here.core, Duration::from_secs(5), receiving).await;
        assert!(ended.is_some(), "it ends");
        // Nor does it take for ever what nobody receives.
        let sending = async {
            let connection = waiting(1);
            while poll_fn(|cx| channel.poll_send(cx, connection.transmit()))
                .await
                .is_ok()
            {}
        };
        let failed = in_time(&here.core, Duration::from_secs(5), sending).await;
        assert!(failed.is_some(), "it fails");
    });
    a.on(async |here| {
        let channel = here.dialled(NodeSlot(1)).await;
        // While it is full, and while somebody waits.
        let filling = async {
            let connection = waiting(1);
            loop {
                let sent = poll_fn(|cx| channel.poll_send(cx, connection.transmit())).await;
                if sent.is_err() {
                    break;
                }
            }
        };
        let ending = async {
            here.sleep(Duration::from_millis(50)).await;
            channel.end();
        };
        let mut into = [0; 64];
        let received = poll_fn(|cx| channel.poll_receive(cx, &mut into));
        let all = futures_util::future::join3(filling, ending, received);
        let all = in_time(&here.core, Duration::from_secs(5), all).await;
        let received = all.expect("both end").2;
        assert!(matches!(received, Ok(0) | Err(_)), "{received:?}");
    });
    theirs.recv().unwrap();
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn who_waits_is_woken_by_what_comes_and_by_nothing_else() {
    let dir = Dir::new("woken");
    let (a, b) = two(&dir);
    let (says, says_now) = std::sync::mpsc::channel::<()>();
    let theirs = b.begin(async move |here| {
        let channel = accepted(&here).await;
        while says_now.try_recv().is_err() {
            here.sleep(Duration::from_millis(5)).await;
        }
        send(&*channel, &mut waiting(1)).await;
        here.sleep(Duration::from_secs(1)).await;
    });
    a.on(async move |here| {
        let channel = here.dialled(NodeSlot(1)).await;
        let woken = Arc::<Woken>::default();
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let mut into = vec![0; 100_000];
        assert!(channel.poll_receive(&mut cx, &mut into).is_pending());
        here.sleep(Duration::from_millis(300)).await;
        assert_eq!(woken.0.load(Ordering::Relaxed), 0, "for nothing");
        says.send(()).unwrap();
        let expected = bytes_of(&waiting(1));
        let (mut heard, mut pending) = (Vec::<u8>::new(), 1);
        while heard.len() < expected.len() {
            match channel.poll_receive(&mut cx, &mut into) {
                Poll::Ready(received) => heard.extend(&into[..received.unwrap()]),
                Poll::Pending => {
                    pending += 1;
                    let before = woken.0.load(Ordering::Relaxed);
                    let comes = async || woken.0.load(Ordering::Relaxed) > before;
                    here.until("it is woken", comes).await;
                }
            }
        }
        assert!(heard == expected);
        // Once for each time that it waited, at most.
        assert!(woken.0.load(Ordering::Relaxed) <= pending);
    });
    theirs.recv().unwrap();
}
