//! The front on real sockets: a network namespace of its own, Debian's `iscsi-ls`, and memory as
//! the system counts it.

use crate::bench::{ALICE, BLOCK, BLOCKS, TARGET, export, open_target, unit};
use crate::host::{Host, config};
use env::real::{Cores, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId, LocalFuture};
use iscsi::Isid;
use iscsi_target::{Export, Listen, PortalGroup, Received, Server, SessionInfo, Settings};
use proof::bench::case::{Case, Manner, WRITE_4K};
use proof::bench::{figures, plain};
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

fn on_two_cores() -> Runtime {
    let config = RuntimeConfig {
        cores: Cores::List(vec![0, 0]),
        ..RuntimeConfig::default()
    };
    Runtime::start(&config).expect("a runtime")
}

async fn serve(core: &CoreHandle, settings: Settings, listens: Vec<Listen>) -> Server {
    let (unit, _) = unit(core, 0, false).await;
    // It lives as long as the process, as its cores do.
    std::mem::forget(unit);
    let portal = "127.0.0.1:0".parse().expect("an address");
    let export = Export {
        portal_groups: vec![PortalGroup {
            cores: Vec::new(),
            name: "default".to_owned(),
            tag: 1,
            listens,
        }],
        ..export(portal, 1, settings, vec![open_target(1)])
    };
    Server::start(core, export)
}

async fn listening(core: &CoreHandle, server: &Server) -> SocketAddr {
    loop {
        if let Some(portal) = server.portals().iter().find(|one| one.error.is_none()) {
            return portal.address;
        }
        let soon = core.now().after(Duration::from_millis(1));
        core.sleep_until(soon).await;
    }
}

/// Memory of this process that is not shared, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kilobytes
        .expect("RssAnon in kB")
        .trim()
        .parse::<u64>()
        .expect("a number")
        * 1024
}

/// Both sides live in this process: what is measured is the session and its host together, and so
/// more than the target takes.
#[test]
fn a_thousand_idle_sessions_take_less_than_64_kib_each() {
    let runtime = on_two_cores();
    let per_session = runtime.run(CoreId(0), |core| -> LocalFuture<u64> {
        Box::pin(async move {
            let listens = vec![Listen::Address("127.0.0.1:0".parse().unwrap())];
            let server = serve(&core, Settings::default(), listens).await;
            let portal = listening(&core, &server).await;
            let mut hosts = Vec::new();
            let mut before = 0;
            for number in 0..1100_u64 {
                // The first hundred warm the pools and the allocator.
                if number == 100 {
                    before = resident();
                }
                let mut config = config(ALICE, Some(TARGET));
                let number = number.to_be_bytes();
                config.isid = Isid([0x80, 0, 0, 0, number[6], number[7]]);
                let host = Host::login(&core, portal, &config).await;
                let host = host.expect("the login is taken");
                host.settle(0).await;
                hosts.push(host);
            }
            let grown = resident() - before;
            assert_eq!(server.sessions(&core).await.len(), 1100);
            grown / 1000
        })
    });
    println!("an idle session and its host: {per_session} bytes");
    assert!(per_session < 64 << 10, "{per_session} bytes a session");
}

/// A host that sends each PDU by itself, small writes 32 deep, so that even a target without
/// optimisation is faster.
fn a_second_of_it(
    portal: SocketAddr,
    manner: Manner,
    digests: bool,
) -> std::thread::JoinHandle<()> {
    let unit = figures::Unit {
        portal,
        target: TARGET.to_owned(),
        lun: 0,
        block: BLOCK,
        bytes: BLOCKS * BLOCK as u64,
        processes: Vec::new(),
    };
    let case = Case {
        bytes: BLOCK,
        manner,
        digests,
        ..WRITE_4K
    };
    let run = move || {
        let done = plain::run(&unit, &case, Duration::ZERO, Duration::from_secs(1));
        done.expect("every command ends well");
    };
    std::thread::Builder::new().spawn(run).expect("a thread")
}

/// The session that there is, a tenth of a second later.
async fn soon_reported(core: &CoreHandle, server: &Server) -> Option<SessionInfo> {
    let soon = core.now().after(Duration::from_millis(100));
    core.sleep_until(soon).await;
    server.sessions(core).await.pop()
}

/// Several PDUs at once, and before a third of the polls they were waited for.
fn are_batches(before: Received, now: Received) -> bool {
    let receives = now.receives - before.receives;
    let waited = now.waited - before.waited;
    receives > 100 && now.pdus - before.pdus >= 3 * receives && 3 * waited >= receives
}

/// One second of it: in some tenth, but the first, it is received in batches. `moves`: its session
/// is asked to the other core after each.
async fn is_seen(core: &CoreHandle, server: &Server, manner: Manner, how: (bool, bool)) -> bool {
    let (digests, moves) = how;
    let portal = listening(core, server).await;
    let client = a_second_of_it(portal, manner, digests);
    let (mut reported, mut seen) = (Vec::new(), false);
    while !client.is_finished() {
        let Some(session) = soon_reported(core, server).await else {
            continue;
        };
        let before = reported.last().copied();
        seen |= before.is_some_and(|before| are_batches(before, session.received));
        reported.push(session.received);
        if moves {
            let to = CoreId(1 - session.core.0);
            server.move_session(core, session.number, to).await;
        }
    }
    client.join().expect("no panic");
    seen
}

/// How long threads of this process were ready to run and did not: second field of
/// `/proc/PID/task/TID/schedstat`.
fn waited_for_processors() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").expect("procfs");
    let waited = threads.flatten().filter_map(|thread| {
        // A thread may end meanwhile.
        let reported = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        reported.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    Duration::from_nanos(waited.sum())
}

/// What a second of it shows.
#[derive(PartialEq, Eq, Debug)]
enum Verdict {
    /// It is received in batches.
    Batches,
    /// It is not, although the processors were there.
    Single,
    /// It is not, and others had the processors: a host that hardly sends has nothing to batch.
    Disturbed,
}

/// Seconds that are given to it, and how many of them have to be undisturbed to refute it.
const SECONDS: usize = 15;
const REFUTED_BY: usize = 10;

/// The part of a second that threads may wait for processors in an undisturbed one.
const WAITED_MAX: Duration = Duration::from_millis(150);

fn is_received_in_batches(manner: Manner, digests: bool, moves: bool) -> Verdict {
    on_two_cores().run(CoreId(0), move |core| -> LocalFuture<Verdict> {
        Box::pin(async move {
            let any = "127.0.0.1:0".parse().expect("an address");
            let listens = vec![Listen::Address(any)];
            let server = serve(&core, Settings::default(), listens).await;
            let (mut single, mut verdict) = (0, Verdict::Disturbed);
            for _ in 0..SECONDS {
                let before = waited_for_processors();
                if is_seen(&core, &server, manner, (digests, moves)).await {
                    verdict = Verdict::Batches;
                    break;
                }
                // Threads that ended take their part along: what was waited is not known then.
                let waited = waited_for_processors().checked_sub(before);
                single += usize::from(waited.is_some_and(|it| it <= WAITED_MAX));
                if single == REFUTED_BY {
                    verdict = Verdict::Single;
                    break;
                }
            }
            assert_eq!(server.moves().0 > 0, moves);
            verdict
        })
    })
}

#[test]
fn a_host_that_sends_each_pdu_by_itself_is_received_in_batches() {
    for (manner, digests, moves) in [
        (Manner::Linux, false, false),
        (Manner::Linux, true, false),
        (Manner::Libiscsi, false, true),
        (Manner::Solicited, true, false),
    ] {
        let verdict = is_received_in_batches(manner, digests, moves);
        let which = format!("{manner:?}, digests {digests}, moves {moves}");
        assert_ne!(verdict, Verdict::Single, "{which}");
        if verdict == Verdict::Disturbed {
            println!("skipped: other programs have the processors ({which})");
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the programs that are waited for live outside of any core"
)]
fn clock() -> Instant {
    Instant::now()
}

fn ip(arguments: &str) -> bool {
    let done = Command::new("ip").args(arguments.split(' ')).output();
    done.is_ok_and(|done| done.status.success())
}

/// A network namespace with a pair of connected interfaces; gone when dropped.
struct Namespace(String);

impl Namespace {
    fn new() -> Option<Self> {
        let name = format!("causeway-front-{}", std::process::id());
        if !ip(&format!("netns add {name}")) {
            return None;
        }
        let made = Self(name);
        let up = made.ip("link set lo up")
            && made.ip("link add cw0 type veth peer name cw1")
            && made.ip("link set cw0 up")
            && made.ip("link set cw1 up");
        up.then_some(made)
    }

    fn ip(&self, arguments: &str) -> bool {
        ip(&format!("-n {} {arguments}", self.0))
    }

    /// Runs a program inside.
    fn run(&self, program: &[&str]) -> Option<String> {
        let done = Command::new("ip")
            .args(["netns", "exec", &self.0])
            .args(program)
            .output()
            .ok()?;
        done.status
            .success()
            .then(|| String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.0));
    }
}

/// Set in the process that is started inside the namespace.
const INSIDE: &str = "CAUSEWAY_FRONT_INSIDE";

/// Not a test: the target inside the namespace, until its input ends.
fn serve_inside() {
    let runtime = on_two_cores();
    runtime.run(CoreId(0), |core| -> LocalFuture<()> {
        Box::pin(async move {
            let listens = vec![Listen::Interface {
                name: "cw0".to_owned(),
                port: 3260,
            }];
            let server = serve(&core, Settings::default(), listens).await;
            std::mem::forget(server);
        })
    });
    let mut until_end = String::new();
    std::io::stdin().read_line(&mut until_end).expect("a pipe");
}

#[test]
fn an_address_added_to_a_real_interface_answers_iscsi_ls_within_a_second() {
    if std::env::var_os(INSIDE).is_some() {
        return serve_inside();
    }
    let has_tool = Command::new("iscsi-ls").arg("--help").output().is_ok();
    let namespace = Namespace::new().filter(|_| has_tool);
    let Some(namespace) = namespace else {
        println!("skipped: needs root, ip netns and iscsi-ls (package libiscsi-bin)");
        return;
    };
    let myself = std::env::current_exe().expect("the test's own program");
    let mut target = Command::new("ip")
        .args(["netns", "exec", &namespace.0])
        .arg(myself)
        .args(["--exact", "--nocapture"])
        .arg("real::an_address_added_to_a_real_interface_answers_iscsi_ls_within_a_second")
        .env(INSIDE, "1")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the target starts");
    assert!(namespace.ip("addr add 192.0.2.1/24 dev cw0"));
    let reports = |address: &str| {
        let url = format!("iscsi://{address}");
        let reported = namespace.run(&["timeout", "1", "iscsi-ls", &url]);
        reported.is_some_and(|reported| reported.contains(TARGET) && reported.contains(address))
    };
    let within = |limit: Duration, what: &str, done: &dyn Fn() -> bool| {
        let began = clock();
        while !done() {
            assert!(began.elapsed() < limit, "not within {limit:?}: {what}");
        }
        began.elapsed()
    };
    within(Duration::from_secs(10), "the target starts", &|| {
        reports("192.0.2.1:3260")
    });
    for address in ["192.0.2.7", "[2001:db8::7]"] {
        let portal = format!("{address}:3260");
        assert!(!reports(&portal));
        let plain = address.trim_matches(['[', ']']);
        let (prefix, flags) = if plain.contains(':') {
            (64, " nodad")
        } else {
            (24, "")
        };
        let change = format!("addr add {plain}/{prefix} dev cw0{flags}");
        assert!(namespace.ip(&change));
        let took = within(Duration::from_secs(1), "discovery", &|| reports(&portal));
        println!("{address}: {took:?}");
        let took = took.as_millis();
        assert!(took < 1000, "{took} ms");
    }
    assert!(namespace.ip("addr del 192.0.2.7/24 dev cw0"));
    within(Duration::from_secs(1), "it is reported no more", &|| {
        let reported = namespace.run(&["timeout", "1", "iscsi-ls", "iscsi://192.0.2.1:3260"]);
        reported
            .is_some_and(|reported| reported.contains(TARGET) && !reported.contains("192.0.2.7"))
    });
    drop(target.stdin.take());
    target.wait().expect("it ends");
}
