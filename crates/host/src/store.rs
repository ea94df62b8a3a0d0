//! What is kept over restarts: this host's initiator name, the ISIDs of its paths, the policies of its volumes.
//!
//! ```text
//!   initiatorname.iscsi            InitiatorName=iqn...                as iscsid keeps it
//!   isid/TARGET,LUN.N              the ISIDs of the N-th program that uses the unit at the same time; locked while it does
//!   policy/TARGET,LUN              the policy that was set last
//! ```
//!
//! A path that logs in again with its ISID ends what its session before had left; so ISIDs outlive the process (R4 of the rules against
//! stale writes). Two programs never share one: each would end the other's sessions.

use crate::error::HostError;
use crate::url::{Url, check_name};
use env::durable::{make_dir, read_file, replace_file};
use env::{Access, CoreHandle, Create, Durable, File, FileDone, FileOp, OpenHow};
use iscsi::Isid;
use paths::Policy;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use units::{Buf, BufMut};

const SMALL: u64 = 1 << 20;
/// Programs that may use one unit at the same time.
const PROGRAMS_MAX: u32 = 256;

/// The state directory.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    dir: PathBuf,
}

/// The ISIDs of one program at one unit. Dropping it lets another program have them.
pub(crate) struct Isids {
    file: Rc<dyn File>,
    base: [u8; 3],
    paths: Vec<String>,
}

fn failed(path: &Path, error: &io::Error) -> HostError {
    HostError::failed(
        format!("{}: {error}", path.display()),
        "name a directory that this user may write: --initiator-state DIR, or CAUSEWAY_INITIATOR_STATE",
    )
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file's name for a unit: iSCSI names have no slash and no comma.
fn file_name(url: &Url) -> String {
    format!("{},{}", url.iqn, url.lun)
}

impl Store {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// This host's name; made where there is none.
    pub(crate) async fn initiator_name(&self, core: &CoreHandle) -> Result<String, HostError> {
        let files = core.files();
        let path = self.dir.join("initiatorname.iscsi");
        match read_file(&*files, &path, SMALL).await {
            Ok(bytes) => of_name_file(&path, &bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut random = [0; 6];
                core.fill_random(&mut random);
                let name = format!("iqn.2026-11.io.causeway:host-{}", hex(&random));
                let text = format!("InitiatorName={name}\n");
                let made = async {
                    make_dir(&*files, &self.dir).await?;
                    replace_file(&*files, &path, text.as_bytes()).await
                };
                made.await.map_err(|error| failed(&path, &error))?;
                Ok(name)
            }
            Err(error) => Err(failed(&path, &error)),
        }
    }

    /// ISIDs for a program that uses the unit from now on.
    pub(crate) async fn isids(&self, core: &CoreHandle, url: &Url) -> Result<Isids, HostError> {
        let files = core.files();
        let dir = self.dir.join("isid");
        make_dir(&*files, &dir)
            .await
            .map_err(|error| failed(&dir, &error))?;
        for number in 0..PROGRAMS_MAX {
            let path = dir.join(format!("{}.{number}", file_name(url)));
            let how = OpenHow {
                access: Access::ReadWrite,
                create: Create::IfAbsent,
                direct: false,
                lock: true,
            };
            match files.open(&path, how).await {
                Ok(file) => {
                    let isids = Isids::load(core, file).await;
                    return isids.map_err(|error| failed(&path, &error));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(failed(&path, &error)),
            }
        }
        Err(HostError::failed(
            format!("{PROGRAMS_MAX} programs use {} already", url.unit()),
            "end some of them",
        ))
    }

    /// The policy that was set last.
    pub(crate) async fn policy(&self, core: &CoreHandle, url: &Url) -> Option<Policy> {
        let path = self.dir.join("policy").join(file_name(url));
        let bytes = read_file(&*core.files(), &path, SMALL).await.ok()?;
        std::str::from_utf8(&bytes).ok()?.trim().parse().ok()
    }

    /// Keeps a policy.
    pub(crate) async fn set_policy(
        &self,
        core: &CoreHandle,
        url: &Url,
        policy: Policy,
    ) -> Result<(), HostError> {
        let files = core.files();
        let dir = self.dir.join("policy");
        let path = dir.join(file_name(url));
        let text = format!("{policy}\n");
        let kept = async {
            make_dir(&*files, &dir).await?;
            replace_file(&*files, &path, text.as_bytes()).await
        };
        kept.await.map_err(|error| failed(&path, &error))
    }
}

fn of_name_file(path: &Path, bytes: &[u8]) -> Result<String, HostError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines().map(str::trim);
    let name = lines.find_map(|line| line.strip_prefix("InitiatorName="));
    let name = name.map(str::trim).unwrap_or_default();
    check_name(name).map_err(|error| {
        HostError::usage(
            format!("{}: {}", path.display(), error.cause),
            "the file has one line, InitiatorName=iqn...; remove it to get a new name",
        )
    })?;
    Ok(name.to_owned())
}

impl Isids {
    async fn load(core: &CoreHandle, file: Rc<dyn File>) -> io::Result<Self> {
        let FileDone::Len(length) = file.submit(FileOp::Len).await? else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let mut text = String::new();
        if length > 0 {
            let into = BufMut::zeroed(usize::try_from(length.min(SMALL)).unwrap_or(0));
            let FileDone::Read(bytes) = file.submit(FileOp::Read { offset: 0, into }).await? else {
                return Err(io::ErrorKind::InvalidData.into());
            };
            text = String::from_utf8_lossy(&bytes.freeze().to_vec()).into_owned();
        }
        let mut lines = text.lines();
        let base = lines.next().and_then(base);
        if let Some(base) = base {
            let paths = lines.map(str::to_owned).collect();
            return Ok(Self { file, base, paths });
        }
        let mut base = [0; 3];
        core.fill_random(&mut base);
        let isids = Self {
            file,
            base,
            paths: Vec::new(),
        };
        isids.save().await?;
        Ok(isids)
    }

    /// The ISID of the path between these two, the same as ever.
    pub(crate) async fn of_path(&mut self, from: IpAddr, portal: SocketAddr) -> io::Result<Isid> {
        let key = format!("{from} {portal}");
        let at = match self.paths.iter().position(|it| *it == key) {
            Some(at) => at,
            None => {
                self.paths.push(key);
                self.save().await?;
                self.paths.len() - 1
            }
        };
        Ok(Isid::random(
            self.base,
            u16::try_from(at).unwrap_or(u16::MAX),
        ))
    }

    /// An ISID for a session that is none of a path's: those count from the other end.
    pub(crate) fn of_probe(&self, number: usize) -> Isid {
        let from_the_end = u16::try_from(number).unwrap_or(0);
        Isid::random(self.base, u16::MAX - from_the_end)
    }

    /// It only grows: a crash in the middle leaves the lines before.
    async fn save(&self) -> io::Result<()> {
        let mut text = format!("isid {}\n", hex(&self.base));
        for path in &self.paths {
            text.push_str(path);
            text.push('\n');
        }
        let data = Buf::copy_of(text.as_bytes());
        let write = FileOp::Write {
            offset: 0,
            data,
            durable: Durable::No,
        };
        self.file.submit(write).await?;
        self.file.submit(FileOp::Sync).await?;
        Ok(())
    }
}

/// `isid abcdef`.
fn base(line: &str) -> Option<[u8; 3]> {
    let text = line.strip_prefix("isid ")?;
    let number = u32::from_str_radix(text, 16)
        .ok()
        .filter(|_| text.len() == 6)?;
    let [_, a, b, c] = number.to_be_bytes();
    Some([a, b, c])
}
