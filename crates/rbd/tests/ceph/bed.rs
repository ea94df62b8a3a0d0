//! The cluster that the tests of this file share, and what they do with it again and again.

use env::real::{Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId, LocalFuture};
use rbd::{Cluster, ClusterSpec, Identity, Image, ImageSpec};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::rc::Rc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf, ByteCount, Lba, LbaRange};
use volume::{
    Done, Durability, Fences, Io, IoFuture, IoResult, Lane, Op, Origin, Provision, Volume, Zeroing,
};

pub(crate) const MIB: u64 = 1 << 20;

/// How long the tests wait for a cluster that answers, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(20);

/// And for one that does not.
pub(crate) const HASTE: Duration = Duration::from_secs(3);

pub(crate) struct Bed {
    runtime: Runtime,
    dir: PathBuf,
    conf: PathBuf,
    queue: Queue,
    _follower: Child,
}

/// One test's turn at the cluster.
pub(crate) struct Turn {
    pub(crate) bed: &'static Bed,
    _watch: Watch,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.bed.queue.next();
    }
}

/// Tests in the order in which they come, which is the one of their names: a lock that the first to
/// ask again gets would let the OSD be stopped after tests that it must not be stopped after.
#[derive(Default)]
struct Queue {
    /// How many came, and how many have ended.
    counts: Mutex<(u64, u64)>,
    moved: Condvar,
}

impl Queue {
    fn wait(&self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let own = counts.0;
        counts.0 += 1;
        while counts.1 < own {
            counts = self
                .moved
                .wait(counts)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn next(&self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.1 += 1;
        self.moved.notify_all();
    }
}

/// Longer than this no test takes, whatever the machine does beside it.
const TURN_MAX: Duration = Duration::from_secs(240);

/// Ends the process, and says how the cluster is, when a test waits for ever: a cluster that does
/// not answer holds up whoever waits for it, and nobody would learn where.
struct Watch(#[expect(dead_code, reason = "its end is the message")] Sender<()>);

impl Watch {
    fn begin(bed: &'static Bed) -> Self {
        let (ends, ended) = channel::<()>();
        let test = std::thread::current().name().unwrap_or("?").to_owned();
        let watch = move || {
            if ended.recv_timeout(TURN_MAX) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{test} has not ended after {TURN_MAX:?}");
                for what in ["status", "osd tree"] {
                    let mut ask = bed.tool("ceph");
                    ask.args(["--connect-timeout", "10"]).args(what.split(' '));
                    let said = ask.output().map(|it| it.stdout).unwrap_or_default();
                    eprintln!("ceph {what}: {}", String::from_utf8_lossy(&said));
                }
                for daemon in ["mon.a", "osd.0"] {
                    let log = std::fs::read_to_string(bed.dir.join(format!("log/{daemon}.log")));
                    let log = log.unwrap_or_default();
                    let last: Vec<&str> = log.lines().rev().take(40).collect();
                    eprintln!("{daemon}, the last line first:\n{}", last.join("\n"));
                }
                std::process::abort();
            }
        };
        std::thread::Builder::new().spawn(watch).unwrap();
        Self(ends)
    }
}

fn script(words: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/ceph");
    Command::new(script).args(words).output().unwrap()
}

fn started() -> Result<Bed, String> {
    let dir = std::env::temp_dir().join(format!("causeway-ceph-{}", std::process::id()));
    let at = dir.to_str().unwrap();
    let output = script(&["start", at]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        // What is not installed cannot be tested; whatever else goes wrong is a failure.
        assert!(said.contains("is missing"), "{said}");
        return Err(said.lines().next().unwrap_or_default().to_owned());
    }
    // The cluster goes when this process does, however that ends.
    let follower = Command::new("setsid")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/ceph"))
        .args(["follow", at, &std::process::id().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Ok(Bed {
        _follower: follower,
        runtime: Runtime::start(&RuntimeConfig::default()).unwrap(),
        conf: dir.join("ceph.conf"),
        dir,
        queue: Queue::default(),
    })
}

/// A turn at the cluster; `None`, and said so, where Ceph is not installed.
pub(crate) fn turn() -> Option<Turn> {
    static BED: OnceLock<Result<Bed, String>> = OnceLock::new();
    match BED.get_or_init(started) {
        Ok(bed) => {
            bed.queue.wait();
            let _watch = Watch::begin(bed);
            Some(Turn { bed, _watch })
        }
        Err(why) => {
            println!("skipped: Ceph is not here: {why}");
            None
        }
    }
}

impl Turn {
    /// Runs `body` on core 0, with what to connect to.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        body: impl AsyncFnOnce(CoreHandle, ClusterSpec) -> T + Send + 'static,
    ) -> T {
        let spec = self.bed.spec();
        self.bed
            .run(move |core| Box::pin(async move { body(core, spec).await }))
    }
}

impl Bed {
    pub(crate) fn run<T: Send + 'static>(
        &self,
        make: impl FnOnce(CoreHandle) -> LocalFuture<T> + Send + 'static,
    ) -> T {
        self.runtime.run(CoreId(0), make)
    }

    pub(crate) fn spec(&self) -> ClusterSpec {
        ClusterSpec {
            pool: "rbd".to_owned(),
            conf: Some(self.conf.clone()),
            user: "admin".to_owned(),
            patience: PATIENCE,
        }
    }

    /// `scripts/ceph COMMAND DAEMON`.
    pub(crate) fn daemon(&self, command: &str, daemon: &str) {
        let output = script(&[command, self.dir.to_str().unwrap(), daemon]);
        assert!(output.status.success(), "{output:?}");
    }

    /// The same from a core, whose other tasks go on.
    pub(crate) fn daemon_later(&self, command: &'static str, daemon: &'static str) -> Caller {
        let dir = self.dir.to_str().unwrap().to_owned();
        Caller(
            std::thread::Builder::new()
                .spawn(move || {
                    let output = script(&[command, &dir, daemon]);
                    assert!(output.status.success(), "{output:?}");
                })
                .unwrap(),
        )
    }

    /// A tool of Ceph's (`rbd`, `ceph`).
    pub(crate) fn tool(&self, tool: &str) -> Command {
        let mut command = Command::new(tool);
        command.arg("--conf").arg(&self.conf);
        command
    }

    /// Runs `rbd ...` or `ceph ...` to its end.
    pub(crate) fn says(&self, tool: &str, words: &[&str]) -> String {
        let mut call = Command::new("timeout");
        call.args(["60", tool, "--conf"])
            .arg(&self.conf)
            .args(words);
        let output = call.output().unwrap();
        assert!(output.status.success(), "{tool} {words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// A thread that calls the script.
pub(crate) struct Caller(std::thread::JoinHandle<()>);

impl Caller {
    pub(crate) fn join(self) {
        self.0.join().unwrap();
    }
}

pub(crate) fn whose(lun: &str) -> Identity {
    Identity(BTreeMap::from([("lun".to_owned(), lun.to_owned())]))
}

pub(crate) fn image(name: &str, block_size: BlockSize) -> ImageSpec {
    ImageSpec {
        name: name.to_owned(),
        block_size,
        physical_block_exponent: 0,
    }
}

pub(crate) async fn connect(core: &CoreHandle, spec: ClusterSpec) -> Arc<Cluster> {
    Cluster::connect(core, spec).await.unwrap()
}

/// A new image of 64 MiB, open with blocks of 4096 bytes.
pub(crate) async fn fresh(core: &CoreHandle, cluster: &Arc<Cluster>, name: &str) -> Arc<Image> {
    let size = ByteCount(64 * MIB);
    cluster.create(name, size, whose(name)).await.unwrap();
    open(core, cluster, name).await
}

pub(crate) async fn open(core: &CoreHandle, cluster: &Arc<Cluster>, name: &str) -> Arc<Image> {
    let spec = image(name, BlockSize::B4096);
    let opened = Image::open(core, cluster, spec, Fences::new(2)).await;
    opened.unwrap()
}

pub(crate) async fn lane(core: &CoreHandle, image: &Arc<Image>) -> Rc<dyn Lane> {
    let volume: Arc<dyn Volume> = Arc::clone(image) as Arc<dyn Volume>;
    volume.open(core).await.unwrap()
}

pub(crate) fn range(start: u64, len: u64) -> LbaRange {
    LbaRange::new(Lba(start), BlockCount(len)).unwrap()
}

fn ask(lane: &Rc<dyn Lane>, op: Op) -> IoFuture {
    lane.submit(Io::new(op, Origin::default()))
}

pub(crate) fn write_op(at: LbaRange, data: Buf) -> Op {
    let durability = Durability::Cached;
    Op::Write {
        range: at,
        data,
        durability,
    }
}

/// Blocks of 4096 bytes that all hold `byte`.
pub(crate) fn filled(at: LbaRange, byte: u8) -> Buf {
    let len = usize::try_from(at.len().0).unwrap() * 4096;
    Buf::from(vec![byte; len])
}

pub(crate) fn write(lane: &Rc<dyn Lane>, at: LbaRange, byte: u8) -> IoFuture {
    ask(lane, write_op(at, filled(at, byte)))
}

pub(crate) async fn read(lane: &Rc<dyn Lane>, at: LbaRange) -> Result<Buf, volume::IoError> {
    let op = Op::Read {
        range: at,
        into: None,
    };
    match ask(lane, op).await? {
        Done::Data(data) => Ok(data),
        other @ (Done::Nothing | Done::Logged | Done::Extents(_)) => panic!("{other:?} is no data"),
    }
}

pub(crate) async fn discard(lane: &Rc<dyn Lane>, at: LbaRange) -> IoResult {
    let durability = Durability::Cached;
    let to = Provision::Deallocated;
    ask(
        lane,
        Op::Discard {
            range: at,
            to,
            durability,
        },
    )
    .await
}

pub(crate) async fn zero(lane: &Rc<dyn Lane>, at: LbaRange, zeroing: Zeroing) -> IoResult {
    let durability = Durability::Stable;
    ask(
        lane,
        Op::WriteZeroes {
            range: at,
            zeroing,
            durability,
        },
    )
    .await
}

pub(crate) async fn compare_and_write(
    lane: &Rc<dyn Lane>,
    at: LbaRange,
    expected: Buf,
    data: Buf,
) -> IoResult {
    let durability = Durability::Stable;
    ask(
        lane,
        Op::CompareAndWrite {
            range: at,
            expected,
            data,
            durability,
        },
    )
    .await
}

pub(crate) async fn extents(lane: &Rc<dyn Lane>, at: LbaRange) -> volume::ExtentList {
    let op = Op::Extents {
        range: at,
        since: None,
    };
    match ask(lane, op).await.unwrap() {
        Done::Extents(extents) => extents,
        other @ (Done::Nothing | Done::Logged | Done::Data(_)) => {
            panic!("{other:?} are no extents")
        }
    }
}

pub(crate) async fn flush(lane: &Rc<dyn Lane>) -> IoResult {
    ask(lane, Op::Flush).await
}

pub(crate) async fn after(core: &CoreHandle, span: Duration) {
    core.sleep_until(core.now().after(span)).await;
}
