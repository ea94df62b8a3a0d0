//! A wire to a portal that a test cuts and mends: what it carries ends at once, and what comes
//! meanwhile ends too.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) struct Relay {
    pub(crate) portal: SocketAddr,
    cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    /// A good wire to `target`, entered at `ip`. Its threads end with the test's process.
    pub(crate) fn new(ip: &str, target: SocketAddr) -> Self {
        let listener = TcpListener::bind((ip, 0)).expect("a free port");
        let portal = listener.local_addr().expect("it is bound");
        let (cut, open): (Arc<AtomicBool>, Arc<Mutex<Vec<TcpStream>>>) = Default::default();
        let (is_cut, opened) = (Arc::clone(&cut), Arc::clone(&open));
        thread(move || {
            for host in listener.incoming().map_while(Result::ok) {
                if is_cut.load(Ordering::SeqCst) {
                    continue;
                }
                // A target that is away refuses, and the relay with it.
                let Ok(there) = TcpStream::connect(target) else {
                    continue;
                };
                let pair = |one: &TcpStream| one.try_clone().expect("a descriptor is free");
                opened.lock().unwrap().extend([pair(&host), pair(&there)]);
                copy(pair(&host), pair(&there));
                copy(there, host);
            }
        });
        Self { portal, cut, open }
    }

    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
        for stream in self.open.lock().unwrap().drain(..) {
            // One that has ended already needs no end.
            let _ended = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn mend(&self) {
        self.cut.store(false, Ordering::SeqCst);
    }
}

fn thread(work: impl FnOnce() + Send + 'static) {
    let started = std::thread::Builder::new().spawn(work);
    drop(started.expect("a thread can be had"));
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    thread(move || {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ended = to.shutdown(Shutdown::Both);
    });
}
