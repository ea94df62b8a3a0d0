//! tgt and istgt of Debian as targets: discovery, CHAP, data, their death under load, and what
//! another host ends there.

use crate::bench::{lane, on, options, read, runtime, state, write};
use crate::own::{pause, states, status, under_load, until};
use crate::reset::{COMPLETE, LOGICAL_UNIT_RESET, STALL_MAX, Stranger};
use env::CoreHandle;
use futures_util::future::{Either, select};
use host::{Attached, Credentials, Options, Status, Url};
use iscsi::Isid;
use iscsi::initiator_side::InitiatorConfig;
use std::cell::Cell;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use volume::{Lane, Support, Volume};

const TARGET: &str = "iqn.2026-11.io.causeway:foreign";
const BYTES: u64 = 32 << 20;
const OURS: &str = "our-secret-of-chap";
const THEIRS: &str = "their-secret-too";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Tgt,
    Istgt,
}

/// A foreign target with two portals and a LUN over a file.
struct Foreign {
    kind: Kind,
    dir: PathBuf,
    ports: [u16; 2],
    control: u16,
    /// Who logs in must prove itself; to istgt always.
    chap: bool,
    child: Option<Child>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the programs that are waited for live outside of any core"
)]
fn clock() -> Instant {
    Instant::now()
}

fn tool(program: &str, words: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/sbin:/usr/sbin";
    let done = Command::new(program)
        .args(words.split(' '))
        .env("PATH", path)
        .stdin(Stdio::null())
        .output();
    let done = done.unwrap_or_else(|error| {
        panic!("`{program}`: {error}; next step: scripts/install test");
    });
    done.status.success()
}

fn wait_for(what: &str, ready: impl Fn() -> bool) {
    let until = clock() + Duration::from_secs(30);
    while !ready() {
        assert!(clock() < until, "{what} does not come up");
        std::thread::yield_now();
    }
}

impl Foreign {
    fn new(kind: Kind, name: &str, chap: bool) -> Self {
        let dir = state(name).with_extension("target");
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let backing = std::fs::File::create(dir.join("disk")).unwrap();
        backing.set_len(BYTES).unwrap();
        let free = |ip: &str| {
            let listener = TcpListener::bind((ip, 0)).unwrap();
            listener.local_addr().unwrap().port()
        };
        let mut foreign = Self {
            kind,
            dir,
            ports: [free("127.0.0.1"), free("127.0.0.2")],
            control: free("127.0.0.1"),
            chap,
            child: None,
        };
        foreign.start();
        foreign
    }

    fn portal(&self, number: usize) -> String {
        format!("127.0.0.{}:{}", number + 1, self.ports[number])
    }

    fn start(&mut self) {
        match self.kind {
            Kind::Tgt => self.start_tgt(),
            Kind::Istgt => self.start_istgt(),
        }
    }

    fn spawn(&mut self, program: &str, words: &[String]) {
        let path = std::env::var("PATH").unwrap_or_default() + ":/sbin:/usr/sbin";
        let log = std::fs::File::create(self.dir.join("log")).unwrap();
        let child = Command::new(program)
            .args(words)
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.child = Some(child.unwrap_or_else(|error| {
            panic!("`{program}`: {error}; next step: scripts/install test");
        }));
    }

    fn start_tgt(&mut self) {
        // tgt numbers its control sockets up to 32767.
        let control = (self.control % 32_768).to_string();
        let words = [
            "-f",
            "-C",
            &control,
            "--iscsi",
            &format!("portal={}", self.portal(0)),
        ];
        self.spawn("tgtd", &words.map(str::to_owned));
        let adm = |words: &str| tool("tgtadm", &format!("-C {control} --lld iscsi {words}"));
        wait_for("tgtd", || adm("--op show --mode target"));
        let disk = self.dir.join("disk");
        let mut all = vec![
            format!("--op new --mode portal --param portal={}", self.portal(1)),
            format!("--op new --mode target --tid 1 --targetname {TARGET}"),
            format!(
                "--op new --mode logicalunit --tid 1 --lun 1 --backing-store {} --bstype rdwr",
                disk.display()
            ),
        ];
        if self.chap {
            all.extend([
                format!("--op new --mode account --user host --password {OURS}"),
                "--op bind --mode account --tid 1 --user host".to_owned(),
                format!("--op new --mode account --user san --password {THEIRS}"),
                "--op bind --mode account --tid 1 --user san --outgoing".to_owned(),
            ]);
        }
        all.push("--op bind --mode target --tid 1 --initiator-address ALL".to_owned());
        for words in all {
            assert!(adm(&words), "tgtadm {words}");
        }
    }

    fn start_istgt(&mut self) {
        let directory = self.dir.display();
        let auth = format!("[AuthGroup1]\n  Auth \"host\" \"{OURS}\" \"san\" \"{THEIRS}\"\n");
        std::fs::write(self.dir.join("auth.conf"), auth).unwrap();
        let (base, name) = TARGET.split_once(':').unwrap();
        let config = format!(
            "[Global]\n  NodeBase \"{base}\"\n  PidFile {directory}/pid\n  AuthFile {directory}/auth.conf\n  \
             MediaDirectory {directory}\n  LogFacility \"local7\"\n  Timeout 30\n  NopInInterval 20\n  \
             DiscoveryAuthMethod Auto\n  MaxSessions 64\n  MaxConnections 4\n  MaxR2T 32\n  MaxOutstandingR2T 16\n  \
             DefaultTime2Wait 2\n  DefaultTime2Retain 60\n  FirstBurstLength 262144\n  MaxBurstLength 1048576\n  \
             MaxRecvDataSegmentLength 262144\n  InitialR2T Yes\n  ImmediateData Yes\n  DataPDUInOrder Yes\n  \
             DataSequenceInOrder Yes\n  ErrorRecoveryLevel 0\n\
             [UnitControl]\n  AuthMethod None\n  Portal UC1 127.0.0.1:{}\n  Netmask 127.0.0.1\n\
             [PortalGroup1]\n  Portal DA1 {}\n  Portal DA2 {}\n\
             [InitiatorGroup1]\n  InitiatorName \"ALL\"\n  Netmask ALL\n\
             [LogicalUnit1]\n  TargetName {name}\n  TargetAlias \"foreign\"\n  Mapping PortalGroup1 InitiatorGroup1\n  \
             AuthMethod CHAP Mutual\n  AuthGroup AuthGroup1\n  UseDigest Auto\n  UnitType Disk\n  QueueDepth 64\n  \
             LUN0 Storage {directory}/disk {}MB\n",
            self.control,
            self.portal(0),
            self.portal(1),
            BYTES >> 20
        );
        let file = self.dir.join("istgt.conf");
        std::fs::write(&file, config).unwrap();
        let words = ["-D", "-c", &file.display().to_string()];
        self.spawn("istgt", &words.map(str::to_owned));
        let portals = [self.portal(0), self.portal(1)];
        wait_for("istgt", || {
            portals
                .iter()
                .all(|it| std::net::TcpStream::connect(it).is_ok())
        });
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// istgt reports its other portal; tgt reports only the one that it is asked at.
    fn url(&self) -> Url {
        let (hosts, lun) = match self.kind {
            Kind::Tgt => (format!("{},{}", self.portal(0), self.portal(1)), 1),
            Kind::Istgt => (self.portal(0), 0),
        };
        format!("iscsi://{hosts}/{TARGET}/{lun}").parse().unwrap()
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn secrets(dir: &Path, options: Options) -> Options {
    let credentials = |user: &str, secret: &str| {
        let file = dir.join(format!("{user}.secret"));
        std::fs::write(&file, secret).unwrap();
        Some(Credentials {
            user: user.to_owned(),
            file,
        })
    };
    Options {
        no_discover: false,
        chap: credentials("host", OURS),
        mutual_chap: credentials("san", THEIRS),
        ..options
    }
}

/// Everything that the waist can ask and the unit says that it can.
async fn exercise(core: &CoreHandle, volume: &Arc<Attached>) {
    let shape = volume.shape();
    assert_eq!(shape.byte_count().0, BYTES);
    // They read and write files on threads: a read beside a write of the same block may see any
    // words of both.
    let plan = volume_test::model::Plan {
        whole_bytes: 8,
        ..volume_test::model::Plan::new(7)
    };
    let below: Arc<dyn Volume> = Arc::clone(volume) as Arc<dyn Volume>;
    println!("{:?}", shape.caps);
    assert_ne!(shape.caps.stable_write, Support::Absent);
    volume_test::model::conforms(core, below, plan).await;
}

fn over(kind: Kind, name: &'static str) {
    let mut target = Foreign::new(kind, name, true);
    let url = target.url();
    let options = secrets(&target.dir, options(name, 2));
    let wrong = Options {
        chap: Some(Credentials {
            user: "host".to_owned(),
            file: target.dir.join("san.secret"),
        }),
        mutual_chap: None,
        ..options.clone()
    };
    let runtime = runtime(1);
    let (again, reported) = std::sync::mpsc::channel();
    let killer = std::thread::Builder::new().name("killer".to_owned());
    let killer = killer.spawn(move || {
        while let Ok(()) = reported.recv() {
            target.kill();
            target.start();
        }
    });
    let stall = on(&runtime, move |core| async move {
        let error = host::open(&core, &url, &wrong).await.unwrap_err();
        println!("{error}");
        let volume = host::open(&core, &url, &options).await.unwrap();
        let all = until(&core, &volume, |it| {
            it.paths
                .iter()
                .filter(|path| path.state == "active")
                .count()
                == 2
        })
        .await;
        assert_eq!(all.paths.len(), 4, "{all:#?}");
        // It was asked for what only our own target knows, and nothing came of it.
        assert_eq!(all.notices, Vec::<String>::new());
        exercise(&core, &volume).await;
        let first = lane(&core, &volume).await;
        write(&*first, 0, &[5; 1 << 20]).await.unwrap();
        assert!(read(&*first, 0, 2048).await.unwrap() == [5; 1 << 20]);
        let stall = under_load(&core, &volume, || async {
            for _ in 0..2 {
                pause(&core, Duration::from_millis(500)).await;
                again.send(()).unwrap();
                pause(&core, Duration::from_millis(200)).await;
                until(&core, &volume, |it| {
                    it.paths.iter().any(|path| path.state == "active")
                })
                .await;
            }
            pause(&core, Duration::from_secs(1)).await;
        })
        .await;
        println!("{:#?}", status(&core, &volume).await.paths[0]);
        volume.stop(&core).await;
        stall
    });
    killer.unwrap().join().unwrap();
    println!("{kind:?}: killed and started twice under load: longest stall {stall:?}");
}

#[test]
fn tgt_is_found_proves_itself_and_may_die_under_load_without_an_error_or_wrong_data() {
    over(Kind::Tgt, "tgt");
}

#[test]
fn istgt_is_found_proves_itself_and_may_die_under_load_without_an_error_or_wrong_data() {
    over(Kind::Istgt, "istgt");
}

/// Reads that are with tgt at a time beside the verified load, so that some commands are within it
/// when they are ended.
const READERS: u64 = 32;

/// Reads what nobody writes, until it is asked to end; answers how long the longest read took.
async fn reader(core: CoreHandle, lane: Rc<dyn Lane>, at: u64, over: Rc<Cell<bool>>) -> Duration {
    let mut longest = Duration::ZERO;
    while !over.get() {
        let begun = core.now();
        let data = read(&*lane, at, 512).await.expect("a path lives");
        assert!(data.iter().all(|byte| *byte == 0), "what nobody wrote");
        longest = longest.max(core.now().since(begun));
    }
    longest
}

#[test]
fn resets_of_tgt_by_another_host_stall_this_one_for_less_than_a_second() {
    let target = Foreign::new(Kind::Tgt, "tgt-reset", false);
    let (url, portal) = (target.url(), target.portal(0).parse().unwrap());
    let runtime = runtime(1);
    let stall = on(&runtime, move |core| async move {
        let isid = Isid([0x80, 0, 0, 0, 0, 7]);
        let config = InitiatorConfig::new("iqn.2026-11.example:stranger", Some(TARGET), isid);
        let stranger = Stranger::new(&core, portal, &config, 1).await;
        let volume = host::open(&core, &url, &options("tgt-reset", 2))
            .await
            .unwrap();
        let two = |it: &Status| states(it).iter().filter(|it| **it == "active").count() == 2;
        until(&core, &volume, two).await;
        let over = Rc::new(Cell::new(false));
        let mut readers = Vec::new();
        for number in 0..READERS {
            let lane = lane(&core, &volume).await;
            let at = (1 + number) * 1024;
            let work = reader(Rc::clone(&core), lane, at, Rc::clone(&over));
            readers.push(env::detach(&core, work));
        }
        let mut stall = under_load(&core, &volume, || async {
            for _ in 0..8 {
                pause(&core, Duration::from_millis(400)).await;
                // With many commands under way tgt answers some functions never; what it ends it
                // has ended.
                let done = pin!(stranger.function(LOGICAL_UNIT_RESET));
                let given_up = pin!(pause(&core, Duration::from_secs(2)));
                match select(done, given_up).await {
                    Either::Left((answer, _)) => assert_eq!(answer, COMPLETE),
                    Either::Right(_) => println!("tgt does not answer LOGICAL UNIT RESET"),
                }
            }
            pause(&core, Duration::from_millis(1500)).await;
        })
        .await;
        over.set(true);
        for reader in readers {
            stall = stall.max(reader.await);
        }
        let now = until(&core, &volume, two).await;
        println!("{:#?}", now.paths[0]);
        volume.stop(&core).await;
        stall
    });
    println!("tgt: eight resets by another host: longest stall {stall:?}");
    assert!(stall <= STALL_MAX, "{stall:?}");
}
