//! smartctl as a child: one for each disk, with a time and a length that it may take.

use device_health::{Answer, DOCUMENT_BYTES_MAX, read};
use manifest::disks::SmartState;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// What smartctl is asked for: all that it knows, and the statistics that have the standard figure
/// for wear; a disk that sleeps is left alone.
const ARGUMENTS: [&str; 6] = ["--json=c", "-n", "standby,3", "-a", "-l", "devstat"];

/// Where smartctl is, although the PATH of an ordinary user does not say so.
const MORE_PLACES: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// Where smartctl is, or that it is not there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tool(pub Option<PathBuf>);

/// The smartctl at `wanted`, or the first one of the PATH.
#[must_use]
pub fn find_tool(wanted: Option<&Path>) -> Tool {
    if let Some(wanted) = wanted {
        // A name without a directory would be one of the PATH to whoever starts it.
        let whole = std::path::absolute(wanted).ok();
        return Tool(whole.filter(|it| it.is_file()));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(MORE_PLACES.map(PathBuf::from));
    let mut tools = places.map(|place| place.join("smartctl"));
    Tool(tools.find(|tool| tool.is_file()))
}

/// Asks disks; knows which of them do not give back their child.
#[derive(Default)]
pub(crate) struct Asker {
    hanging: BTreeMap<String, Child>,
}

/// What came of a child.
enum Came {
    Bytes(Vec<u8>),
    Failed(io::Error),
    /// It was killed, and may not be gone yet.
    Late(Option<Child>),
}

impl Asker {
    /// What each of these disks says, by name: `device` is its node.
    pub(crate) async fn ask(
        &mut self,
        tool: &Tool,
        devices: &[(String, PathBuf)],
        time: Duration,
    ) -> BTreeMap<String, (Answer, Option<Vec<u8>>)> {
        let mut out = BTreeMap::new();
        let Some(tool) = &tool.0 else {
            for (name, _) in devices {
                let why = "smartctl is not installed: apt install smartmontools";
                let answer = Answer::not(SmartState::NoSmartctl, why);
                out.insert(name.clone(), (answer, None));
            }
            return out;
        };
        self.hanging
            .retain(|_, child| matches!(child.try_wait(), Ok(None)));
        // A few at a time: a shelf of disks is read in seconds, and a machine is not flooded.
        for some in devices.chunks(4) {
            let (free, hanging): (Vec<_>, Vec<_>) = some
                .iter()
                .partition(|(name, _)| !self.hanging.contains_key(name));
            for (name, _) in hanging {
                let why = "the smartctl of an earlier question still hangs in the kernel";
                let answer = Answer::not(SmartState::TimedOut, why);
                out.insert(name.clone(), (answer, None));
            }
            let children = free.iter().map(|(_, device)| run(tool, device, time));
            let came = futures_util::future::join_all(children).await;
            for ((name, _), came) in free.into_iter().zip(came) {
                out.insert(name.clone(), self.answer(name, came, time));
            }
        }
        out
    }

    fn answer(&mut self, name: &str, came: Came, time: Duration) -> (Answer, Option<Vec<u8>>) {
        match came {
            Came::Bytes(bytes) => (read(&bytes), Some(bytes)),
            Came::Failed(error) => {
                let why = format!("smartctl cannot be run: {error}");
                (Answer::not(SmartState::Failed, &why), None)
            }
            Came::Late(child) => {
                self.hanging
                    .extend(child.map(|child| (name.to_owned(), child)));
                let why = format!("smartctl had no answer within {} s", time.as_secs());
                (Answer::not(SmartState::TimedOut, &why), None)
            }
        }
    }
}

async fn run(tool: &Path, device: &Path, time: Duration) -> Came {
    let child = Command::new(tool)
        .args(ARGUMENTS)
        .arg(device)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return Came::Failed(error),
    };
    let Some(output) = child.stdout.take() else {
        return Came::Failed(io::ErrorKind::BrokenPipe.into());
    };
    let mut bytes = Vec::new();
    let most = DOCUMENT_BYTES_MAX as u64 + 1;
    let reads = async {
        let mut output = output.take(most);
        output.read_to_end(&mut bytes).await
    };
    let ended = timeout(time, reads).await;
    match ended {
        // It has said all, or more than anybody reads.
        Ok(Ok(_)) => {
            if timeout(Duration::from_secs(1), child.wait()).await.is_err() {
                // It goes when it is dropped.
                let _ = child.start_kill();
            }
            Came::Bytes(bytes)
        }
        Ok(Err(error)) => Came::Failed(error),
        Err(_) => {
            let _ = child.start_kill();
            let gone = timeout(Duration::from_secs(1), child.wait()).await.is_ok();
            Came::Late((!gone).then_some(child))
        }
    }
}
