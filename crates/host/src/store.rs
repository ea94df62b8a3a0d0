//! What is kept over restarts: this host's initiator name, the ISIDs of its paths, the policies of
//! its volumes.
//!
//! ```text
//!   initiatorname.iscsi            InitiatorName=iqn...                as iscsid keeps it
//!   isid/TARGET.N                  ISIDs of the N-th program that uses the target (isids.rs)
//!   policy/TARGET,LUN              the policy that was set last
//! ```

use crate::error::HostError;
use crate::url::{Url, check_name};
use env::CoreHandle;
use env::durable::{make_dir, read_file, replace_file};
use paths::Policy;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) const SMALL: u64 = 1 << 20;

/// The state directory.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    dir: PathBuf,
}

pub(crate) fn failed(path: &Path, error: &io::Error) -> HostError {
    HostError::failed(
        format!("{}: {error}", path.display()),
        "name a directory that this user may write: --initiator-state DIR, or CAUSEWAY_INITIATOR_STATE",
    )
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
                let name = format!("iqn.2026-11.io.causeway:host-{}", units::hex(&random));
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

    /// Where ISIDs are kept.
    pub(crate) fn isid_dir(&self) -> PathBuf {
        self.dir.join("isid")
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
        let keep = async || {
            make_dir(&*files, &dir).await?;
            replace_file(&*files, &path, text.as_bytes()).await
        };
        let mut kept = keep().await;
        // A program that runs and a command may keep a policy at the same moment: one renames the
        // other's new file.
        if kept
            .as_ref()
            .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        {
            kept = keep().await;
        }
        kept.map_err(|error| failed(&path, &error))
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
