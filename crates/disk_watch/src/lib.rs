//! The watch of disks in the daemon: what the thread of [`disks`] needs of core 0, and what the
//! controller needs of that thread.

use controller::{Controller, Handle};
use disks::{Roots, Settings, Watch, World};
use env::{LocalFuture, durable};
use manifest::config::Config;
use manifest::disks::DiskReport;
use manifest::problem::Problem;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::watch;

/// What is remembered of disks, in the state directory.
const FILE: &str = "disks.json";

/// Its largest size: a thousand disks with their samples of two years.
const BYTES_MAX: u64 = 32 << 20;

/// Core 0, from the thread that watches.
struct Node {
    handle: Handle,
    dir: PathBuf,
}

impl Node {
    /// Does it with the files of core 0.
    async fn with_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(Rc<Controller>) -> LocalFuture<io::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        let done = self.handle.call(work).await;
        done.map_err(|problem| io::Error::other(problem.to_string()))?
    }
}

impl World for Node {
    async fn uses(&self) -> Vec<(String, PathBuf)> {
        let places = self
            .handle
            .call(|controller| Box::pin(async move { controller.places() }));
        places.await.unwrap_or_default()
    }

    async fn load(&self) -> io::Result<Vec<u8>> {
        let (dir, path) = (self.dir.clone(), self.dir.join(FILE));
        self.with_files(move |controller| {
            Box::pin(async move {
                let files = controller.core().files();
                durable::settle_dir(&*files, &dir).await?;
                durable::read_file(&*files, &path, BYTES_MAX).await
            })
        })
        .await
    }

    async fn put_aside(&self) -> io::Result<()> {
        let path = self.dir.join(FILE);
        let aside = path.with_extension("json.aside");
        self.with_files(move |controller| {
            Box::pin(async move { controller.core().files().rename(&path, &aside).await })
        })
        .await
    }

    async fn store(&self, bytes: Vec<u8>) -> io::Result<()> {
        let path = self.dir.join(FILE);
        self.with_files(move |controller| {
            Box::pin(async move {
                durable::replace_file(&*controller.core().files(), &path, &bytes).await
            })
        })
        .await
    }

    async fn publish(&self, report: DiskReport) {
        let published = self
            .handle
            .call(move |controller| Box::pin(async move { controller.set_disks(report) }));
        // Without core 0 nobody asks.
        let _ = published.await;
    }
}

/// Has disks asked as often as the settings say by now.
async fn follow(watch: Watch, mut live: watch::Receiver<Arc<Config>>) {
    let mut every = live.borrow().health.every;
    while live.changed().await.is_ok() {
        let now = live.borrow_and_update().health.every;
        if now != every {
            every = now;
            watch.ask_every(every);
        }
    }
}

/// Starts the watch. Where it cannot be had the daemon serves without.
///
/// # Errors
/// The controller is gone.
pub async fn start(
    handle: &Handle,
    config: &Config,
    live: Option<watch::Receiver<Arc<Config>>>,
) -> Result<(), Problem> {
    let made_up = |at: &PathBuf| Roots {
        sys: at.join("sys"),
        proc: at.join("proc"),
        dev: at.join("dev"),
    };
    let settings = Settings {
        roots: config.machine.as_ref().map(made_up).unwrap_or_default(),
        every: config.health.every,
        smartctl: config.health.smartctl.clone(),
        report: config.health.report.clone(),
    };
    let node = Node {
        handle: handle.clone(),
        dir: config.state_dir.clone(),
    };
    let watch = match Watch::start(settings, node) {
        Ok(watch) => watch,
        Err(error) => {
            tracing::warn!("disks are not watched: {error}");
            return Ok(());
        }
    };
    if let Some(live) = live {
        tokio::spawn(follow(watch.clone(), live));
    }
    let forget = move |name: String| -> LocalFuture<bool> {
        let watch = watch.clone();
        Box::pin(async move { watch.forget(&name).await })
    };
    handle
        .call(|controller| Box::pin(async move { controller.set_forget_disk(Box::new(forget)) }))
        .await
}
