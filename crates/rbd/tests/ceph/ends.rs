//! The end of a process that has images open.

use crate::bed::{connect, image, lane, range, turn, whose, write};
use env::CoreId;
use env::real::{Runtime, RuntimeConfig};
use rbd::{ClusterSpec, Image};
use std::process::Command;
use std::time::Duration;
use units::{BlockSize, ByteCount};
use volume::Fences;

const STATUS: i32 = 7;
const CONF: &str = "CAUSEWAY_CEPH_CONF";
const IMAGE: &str = "CAUSEWAY_CEPH_IMAGE";

#[test]
fn a_process_that_ends_in_the_middle_of_its_work_ends_with_its_own_status() {
    let Some(turn) = turn() else { return };
    turn.run(async move |core, spec| {
        let cluster = connect(&core, spec).await;
        for name in ["ends-open", "ends-closed"] {
            let made = cluster.create(name, ByteCount(8 << 20), whose("a"));
            made.await.unwrap();
        }
    });
    // Who ends with an image open leaves its lock behind; the next one would have to wait.
    let many = std::iter::repeat_n("ends-closed", 12);
    for name in many.chain(["ends-open"]) {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "ends::works_and_ends",
                "--exact",
                "--ignored",
                "--nocapture",
            ])
            .env(CONF, turn.bed.spec().conf.unwrap())
            .env(IMAGE, name)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(STATUS), "{name}: {output:?}");
    }
}

#[test]
#[ignore = "the process of the test above"]
fn works_and_ends() {
    let spec = ClusterSpec {
        pool: "rbd".to_owned(),
        conf: Some(std::env::var_os(CONF).unwrap().into()),
        user: "admin".to_owned(),
        patience: Duration::from_secs(20),
    };
    let name = std::env::var(IMAGE).unwrap();
    let runtime = Runtime::start(&RuntimeConfig::default()).unwrap();
    let image = runtime.run(CoreId(0), move |core| {
        Box::pin(async move {
            let cluster = connect(&core, spec).await;
            let asked = image(&name, BlockSize::B4096);
            let opened = Image::open(&core, &cluster, asked, Fences::new(1)).await;
            let image = opened.unwrap();
            let lane = lane(&core, &image).await;
            write(&lane, range(0, 1), 1).await.unwrap();
            if name == "ends-open" {
                for at in 0..256 {
                    drop(write(&lane, range(at, 1), 1));
                }
            } else {
                image.close().await;
            }
            image
        })
    });
    // It is closed on a thread, or was before, and so is its connection, while the process ends.
    drop(image);
    std::process::exit(STATUS);
}
