//! A host of these tests: the project's initiator machine on a stream, with every event in reach,
//! on a simulated network or a real one. It can be made deaf, so that it neither reads nor answers.

use env::{CoreHandle, LocalFuture, Stream};
use iscsi::bhs::Attribute;
use iscsi::discovery::TargetRecord;
use iscsi::initiator_side::{
    Completion, InitiatorCommand, InitiatorConfig, InitiatorConnection, InitiatorEvent,
};
use iscsi::{CloseReason, Isid, Itt, LoginStatus, Lun, Want};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::oneshot;
use units::{Buf, BufMut, Now};

/// What a login that failed was answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refused {
    pub status: Option<LoginStatus>,
    pub redirect: Option<String>,
    pub reason: String,
}

/// One session of a host.
pub(crate) struct Host {
    inner: Rc<Inner>,
}

struct Inner {
    core: CoreHandle,
    stream: Rc<dyn Stream>,
    state: RefCell<State>,
    waker: RefCell<Option<Waker>>,
    deaf: Cell<bool>,
}

struct State {
    machine: InitiatorConnection,
    partial: Vec<u8>,
    timer: Option<(Now, LocalFuture<()>)>,
    login: Option<oneshot::Sender<Result<u16, Refused>>>,
    commands: BTreeMap<Itt, oneshot::Sender<Completion>>,
    functions: BTreeMap<Itt, oneshot::Sender<u8>>,
    texts: BTreeMap<Itt, oneshot::Sender<Vec<u8>>>,
    asyncs: Vec<(u8, [u16; 3])>,
    logged_out: Option<u8>,
    closed: Option<Option<CloseReason>>,
    waiting: Vec<Waker>,
}

/// A command that was sent.
pub(crate) struct Sent {
    pub itt: Itt,
    answer: oneshot::Receiver<Completion>,
}

impl Sent {
    /// Its end; `None` where there will be none.
    pub(crate) async fn end(self) -> Option<Completion> {
        self.answer.await.ok()
    }

    /// Its end, if it is there already.
    pub(crate) fn ended(&mut self) -> Option<Completion> {
        self.answer.try_recv().ok()
    }
}

/// The configuration of a usual login.
pub(crate) fn config(initiator: &str, target: Option<&str>) -> InitiatorConfig {
    let mut config = InitiatorConfig::new(initiator, target, Isid([0x80, 0, 0, 0, 0, 1]));
    // Who pings is the matter of these tests; the host does not of its own accord.
    config.ping_after = None;
    config.login_timeout = Duration::from_secs(60);
    config
}

/// The LUN field of a small LUN.
pub(crate) fn lun(number: u8) -> Lun {
    Lun([0, number, 0, 0, 0, 0, 0, 0])
}

impl Host {
    /// Connects and logs in.
    pub(crate) async fn login(
        core: &CoreHandle,
        portal: SocketAddr,
        config: &InitiatorConfig,
    ) -> Result<Self, Refused> {
        Self::login_from(core, None, portal, config).await
    }

    /// The same, from an address of the host's own choice.
    pub(crate) async fn login_from(
        core: &CoreHandle,
        from: Option<IpAddr>,
        portal: SocketAddr,
        config: &InitiatorConfig,
    ) -> Result<Self, Refused> {
        let connected = core.net().connect(portal, from).await;
        let stream = connected.map_err(|error| Refused {
            status: None,
            redirect: None,
            reason: format!("no connection: {error}"),
        })?;
        Self::over(core, stream, config).await
    }

    /// Logs in over a stream.
    pub(crate) async fn over(
        core: &CoreHandle,
        stream: Rc<dyn Stream>,
        config: &InitiatorConfig,
    ) -> Result<Self, Refused> {
        let (reported, answer) = oneshot::channel();
        let state = State {
            machine: InitiatorConnection::new(core.now(), config),
            partial: Vec::new(),
            timer: None,
            login: Some(reported),
            commands: BTreeMap::new(),
            functions: BTreeMap::new(),
            texts: BTreeMap::new(),
            asyncs: Vec::new(),
            logged_out: None,
            closed: None,
            waiting: Vec::new(),
        };
        let inner = Rc::new(Inner {
            core: Rc::clone(core),
            stream,
            state: RefCell::new(state),
            waker: RefCell::default(),
            deaf: Cell::new(false),
        });
        let pump = Rc::clone(&inner);
        core.spawn(Box::pin(async move {
            poll_fn(|cx| pump.turn(cx)).await;
        }));
        let result = answer.await.unwrap_or_else(|_| {
            Err(Refused {
                status: None,
                redirect: None,
                reason: "the connection was closed".to_owned(),
            })
        });
        let host = Self { inner };
        result.map(|_| host)
    }

    fn wake(&self) {
        if let Some(waker) = self.inner.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Sends a command.
    pub(crate) fn send(&self, number: u8, cdb: &[u8], data_out: &[u8], reads: usize) -> Sent {
        self.send_as(lun(number), cdb, data_out, reads, Attribute::Simple, false)
    }

    /// Sends a command with all its particulars.
    pub(crate) fn send_as(
        &self,
        lun: Lun,
        cdb: &[u8],
        data_out: &[u8],
        reads: usize,
        attribute: Attribute,
        immediate: bool,
    ) -> Sent {
        let mut whole = [0; 16];
        whole[..cdb.len()].copy_from_slice(cdb);
        let command = InitiatorCommand {
            lun,
            cdb: whole,
            attribute,
            immediate,
        };
        let data_in = (reads > 0).then(|| BufMut::zeroed(reads));
        let (reported, answer) = oneshot::channel();
        let mut state = self.inner.state.borrow_mut();
        let itt = state
            .machine
            .submit(command, Buf::copy_of(data_out), data_in);
        state.commands.insert(itt, reported);
        drop(state);
        self.wake();
        Sent { itt, answer }
    }

    /// Sends a command at once; gives its end.
    pub(crate) fn command(
        &self,
        number: u8,
        cdb: &[u8],
        data_out: &[u8],
        reads: usize,
    ) -> impl Future<Output = Completion> + use<> {
        let sent = self.send(number, cdb, data_out, reads);
        async { sent.end().await.expect("the command ends") }
    }

    /// Takes the unit attentions that wait at a LUN.
    pub(crate) async fn settle(&self, number: u8) {
        while self.command(number, &[0; 6], &[], 0).await.status != 0 {}
    }

    /// Sends a task management function; gives its response code.
    pub(crate) fn function(
        &self,
        code: u8,
        lun: Lun,
        referenced: Option<Itt>,
    ) -> oneshot::Receiver<u8> {
        let (reported, answer) = oneshot::channel();
        let mut state = self.inner.state.borrow_mut();
        let itt = state.machine.task_management(code, lun, referenced);
        state.functions.insert(itt, reported);
        drop(state);
        self.wake();
        answer
    }

    /// Asks SendTargets.
    pub(crate) async fn send_targets(&self, what: &str) -> Vec<TargetRecord> {
        let (reported, answer) = oneshot::channel();
        let itt = self.inner.state.borrow_mut().machine.send_targets(what);
        self.inner.state.borrow_mut().texts.insert(itt, reported);
        self.wake();
        let text = answer.await.expect("SendTargets is answered");
        iscsi::discovery::decode(&text).expect("a well-formed answer")
    }

    /// Asks to log out.
    pub(crate) fn logout(&self) {
        self.inner.state.borrow_mut().machine.logout();
        self.wake();
    }

    /// The response to the logout, if there was one.
    pub(crate) fn logged_out(&self) -> Option<u8> {
        self.inner.state.borrow().logged_out
    }

    /// Neither reads nor answers from now on, or does so again.
    pub(crate) fn set_deaf(&self, deaf: bool) {
        self.inner.deaf.set(deaf);
        self.wake();
    }

    /// Closes the connection without a word.
    pub(crate) fn hang_up(&self) {
        self.inner.stream.shutdown();
        self.wake();
    }

    /// The connection is over.
    pub(crate) fn is_closed(&self) -> bool {
        self.inner.state.borrow().closed.is_some()
    }

    /// Waits until the connection is over.
    pub(crate) async fn closed(&self) {
        self.until(|state| state.closed.is_some()).await;
    }

    /// The asynchronous messages so far.
    pub(crate) fn asyncs(&self) -> Vec<(u8, [u16; 3])> {
        self.inner.state.borrow().asyncs.clone()
    }

    /// Waits for an asynchronous message.
    pub(crate) async fn until_async(&self) -> (u8, [u16; 3]) {
        self.until(|state| !state.asyncs.is_empty()).await;
        self.asyncs()[0]
    }

    async fn until(&self, done: impl Fn(&State) -> bool) {
        poll_fn(|cx| {
            let mut state = self.inner.state.borrow_mut();
            if done(&state) {
                return Poll::Ready(());
            }
            state.waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.inner.stream.shutdown();
        self.wake();
    }
}

impl Inner {
    fn turn(&self, cx: &mut Context<'_>) -> Poll<()> {
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        let mut state = self.state.borrow_mut();
        let over = loop {
            let mut moved = false;
            if !self.deaf.get() {
                match state.receive(&*self.stream, self.core.now(), cx) {
                    Poll::Ready(Ok(())) => moved = true,
                    Poll::Ready(Err(())) => break true,
                    Poll::Pending => {}
                }
                while let Some(event) = state.machine.poll_event() {
                    moved = true;
                    state.event(event);
                }
            }
            match state.send(&*self.stream, cx) {
                Poll::Ready(Ok(())) => moved = true,
                Poll::Ready(Err(())) => break true,
                Poll::Pending => {}
            }
            if state.closed.is_some() {
                break true;
            }
            if !moved && state.arm(&self.core, cx).is_pending() {
                break false;
            }
            state.machine.tick(self.core.now());
        };
        let wakers = std::mem::take(&mut state.waiting);
        if over {
            self.stream.shutdown();
            state.closed.get_or_insert(None);
            state.login = None;
            state.commands.clear();
            state.functions.clear();
            state.texts.clear();
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        if over { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl State {
    fn event(&mut self, event: InitiatorEvent) {
        match event {
            InitiatorEvent::LoggedIn { tsih, .. } => {
                if let Some(login) = self.login.take() {
                    drop(login.send(Ok(tsih.0)));
                }
            }
            InitiatorEvent::LoginFailed {
                status,
                reason,
                redirect,
            } => {
                if let Some(login) = self.login.take() {
                    let refused = Refused {
                        status,
                        redirect,
                        reason,
                    };
                    drop(login.send(Err(refused)));
                }
            }
            InitiatorEvent::Response { itt, completion } => {
                if let Some(reported) = self.commands.remove(&itt) {
                    drop(reported.send(completion));
                }
            }
            InitiatorEvent::TaskManagement { itt, response } => {
                if let Some(reported) = self.functions.remove(&itt) {
                    // Nobody may be waiting any more.
                    let _ = reported.send(response);
                }
            }
            InitiatorEvent::Text { itt, text } => {
                if let Some(reported) = self.texts.remove(&itt) {
                    drop(reported.send(text));
                }
            }
            InitiatorEvent::Pong { .. } => {}
            InitiatorEvent::LoggedOut { response } => self.logged_out = Some(response),
            InitiatorEvent::Rejected { reason, .. } => panic!("a PDU was rejected: {reason:#x}"),
            InitiatorEvent::Async { event, parameters } => self.asyncs.push((event, parameters)),
            InitiatorEvent::Closed(CloseReason::Violation(violation)) => {
                panic!("the target broke the protocol: {violation:?}")
            }
            InitiatorEvent::Closed(reason) => self.closed = Some(Some(reason)),
        }
    }

    fn receive(
        &mut self,
        stream: &dyn Stream,
        now: Now,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), ()>> {
        let (bytes, is_header) = match self.machine.want() {
            Want::Nothing => return Poll::Pending,
            Want::Data { .. } => {
                let received = stream.poll_recv(cx, self.machine.data_chunk());
                return received.map(|received| match received {
                    Ok(0) | Err(_) => Err(()),
                    Ok(n) => {
                        self.machine.data_filled(n);
                        Ok(())
                    }
                });
            }
            Want::Header { bytes } => (bytes, true),
            Want::Trailer { bytes } => (bytes, false),
        };
        let mut piece = [0; 1024];
        let room = bytes - self.partial.len();
        let n = match stream.poll_recv(cx, &mut piece[..room]) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(())),
            Poll::Ready(Ok(n)) => n,
        };
        self.partial.extend_from_slice(&piece[..n]);
        if self.partial.len() == bytes {
            let whole = std::mem::take(&mut self.partial);
            // A breach comes as an event, too, which says more.
            let handed = if is_header {
                self.machine.receive_header(now, &whole)
            } else {
                self.machine.receive_trailer(now, &whole)
            };
            let (Ok(()) | Err(_)) = handed;
        }
        Poll::Ready(Ok(()))
    }

    fn send(&mut self, stream: &dyn Stream, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        let pieces: Vec<IoSlice<'_>> = (self.machine.transmit().pieces())
            .take(1024)
            .map(IoSlice::new)
            .collect();
        if pieces.is_empty() {
            return Poll::Pending;
        }
        let sent = stream.poll_send(cx, &pieces);
        drop(pieces);
        sent.map(|sent| match sent {
            Ok(n) => {
                self.machine.sent(n);
                Ok(())
            }
            Err(_) => Err(()),
        })
    }

    fn arm(&mut self, core: &CoreHandle, cx: &mut Context<'_>) -> Poll<()> {
        let Some(next) = self.machine.next_tick() else {
            return Poll::Pending;
        };
        if self.timer.as_ref().is_none_or(|(at, _)| next != *at) {
            self.timer = Some((next, core.sleep_until(next)));
        }
        let over = self
            .timer
            .as_mut()
            .map_or(Poll::Pending, |(_, timer)| timer.as_mut().poll(cx));
        if over.is_ready() {
            self.timer = None;
        }
        over
    }
}
