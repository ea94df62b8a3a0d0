//! A Linux guest: booted from the image of `scripts/linux-guest`, driven through a serial port of
//! its own.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Nothing that a guest is asked takes longer, emulated and on a busy machine.
const LIMIT: Duration = Duration::from_secs(400);
/// It is up in 2 s with KVM, and in 10 to 20 s where it is emulated.
const BOOT_LIMIT: Duration = Duration::from_secs(180);

/// What `scripts/linux-guest` has made.
pub(crate) struct Image {
    dir: PathBuf,
    accelerator: String,
}

impl Image {
    /// The image, or why there is none.
    pub(crate) fn find() -> Result<Self, String> {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("linux-guest");
        let text = std::fs::read_to_string(dir.join("accelerator"));
        let accelerator = text
            .ok()
            .and_then(|it| Some(it.split_whitespace().nth(1)?.to_owned()));
        let made = dir.join("made-of").exists();
        let accelerator = accelerator.filter(|_| made).ok_or_else(|| {
            format!(
                "no guest in {}: run scripts/linux-guest first",
                dir.display()
            )
        })?;
        Ok(Self { dir, accelerator })
    }

    /// The release of the first kernel whose name begins with `wanted`, such as `6.12`.
    fn release(&self, wanted: &str) -> String {
        let entries = std::fs::read_dir(&self.dir).expect("the image's directory can be read");
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut releases = names.filter_map(|name| {
            let release = name.strip_prefix("vmlinuz-")?;
            let rest = release.strip_prefix(wanted)?;
            (!rest.starts_with(|c: char| c.is_ascii_digit())).then(|| release.to_owned())
        });
        releases
            .next()
            .unwrap_or_else(|| panic!("no kernel {wanted} in {}", self.dir.display()))
    }
}

/// What a script in the guest came to.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its exit status.
    pub(crate) status: i32,
    /// What it wrote to standard output and standard error.
    pub(crate) said: String,
}

type Waiting = Arc<Mutex<BTreeMap<u64, Sender<Answer>>>>;

/// A guest that runs.
pub(crate) struct Guest {
    qemu: Child,
    to: Mutex<(UnixStream, u64)>,
    waiting: Waiting,
    place: PathBuf,
    /// The kernel that it runs.
    pub(crate) release: String,
}

/// A script that runs in the guest.
pub(crate) struct Running {
    script: String,
    answer: Receiver<Answer>,
}

impl Running {
    /// Its end, which must be a success.
    pub(crate) fn end(self) -> String {
        let answer = self
            .answer
            .recv_timeout(LIMIT)
            .unwrap_or_else(|_| panic!("the guest does not answer: {}", self.script));
        assert_eq!(answer.status, 0, "{}\n{}", self.script, answer.said);
        answer.said
    }

    /// Its end, which must be a failure.
    pub(crate) fn fail(self) -> String {
        let answer = self.answer.recv_timeout(LIMIT);
        let answer = answer.unwrap_or_else(|_| panic!("it does not end: {}", self.script));
        assert_ne!(answer.status, 0, "{}\n{}", self.script, answer.said);
        answer.said
    }

    /// It still runs.
    pub(crate) fn is_running(&mut self) -> bool {
        match self.answer.recv_timeout(Duration::ZERO) {
            Err(_) => true,
            Ok(answer) => {
                // It is given again to whoever asks for its end.
                let (give, take) = channel();
                let _kept = give.send(answer);
                self.answer = take;
                false
            }
        }
    }
}

impl Guest {
    /// Boots it in the namespace `inside`, with a NIC at each of `taps`. Its sockets and its
    /// console are in `place`.
    pub(crate) fn boot(
        image: &Image,
        kernel: &str,
        inside: &str,
        taps: &[&str],
        place: &Path,
    ) -> Self {
        let release = image.release(kernel);
        let file = |name: &str| image.dir.join(name).display().to_string();
        let at = |name: &str| place.join(name).display().to_string();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", inside, "qemu-system-x86_64"]);
        // Of emulated processors each is a thread of its own.
        match image.accelerator.as_str() {
            "kvm" => command.args(["-accel", "kvm", "-cpu", "host"]),
            _ => command.args(["-accel", "tcg,thread=multi", "-cpu", "max"]),
        };
        command
            .args(["-smp", "2", "-m", "768", "-nodefaults", "-no-user-config"])
            .args(["-display", "none", "-no-reboot"])
            .args(["-serial", &format!("file:{}", at("console"))])
            .args(["-kernel", &file(&format!("vmlinuz-{release}"))])
            .args(["-initrd", &file(&format!("initramfs-{release}"))])
            .args([
                "-append",
                "console=ttyS0 panic=-1 net.ifnames=0 mitigations=off",
            ])
            // What the guest writes to its own disk is gone with it.
            .args([
                "-drive",
                &format!("file={},if=virtio,format=raw,snapshot=on", file("disk.img")),
            ])
            // The program under test, byte by byte, as `/dev/vdb`.
            .args([
                "-drive",
                &format!(
                    "file={},if=virtio,format=raw,readonly=on",
                    env!("CARGO_BIN_EXE_causeway")
                ),
            ])
            .args(["-device", "virtio-serial"])
            .args([
                "-chardev",
                &format!("socket,id=agent,path={},server=on,wait=off", at("agent")),
            ])
            .args([
                "-device",
                "virtserialport,chardev=agent,name=causeway.agent",
            ])
            .args(["-qmp", &format!("unix:{},server=on,wait=off", at("qmp"))]);
        for (number, tap) in taps.iter().enumerate() {
            command
                .args([
                    "-netdev",
                    &format!("tap,id=n{number},ifname={tap},script=no,downscript=no"),
                ])
                .args([
                    "-device",
                    &format!("virtio-net-pci,id=nic{number},netdev=n{number},mac=52:54:00:ca:05:0{number}"),
                ]);
        }
        let qemu = command.stdin(Stdio::null()).spawn().expect("QEMU starts");
        Self::meet(qemu, place.to_owned(), release)
    }

    /// Waits until the guest says that it is up.
    fn meet(mut qemu: Child, place: PathBuf, release: String) -> Self {
        let until = Instant::now() + BOOT_LIMIT;
        let stream = loop {
            if let Ok(stream) = UnixStream::connect(place.join("agent")) {
                break stream;
            }
            let ended = qemu.try_wait().expect("it is our child");
            assert!(
                ended.is_none() && Instant::now() < until,
                "QEMU ended: {ended:?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        };
        let waiting = Waiting::default();
        let (up, is_up) = channel();
        let (from, table) = (stream.try_clone().expect("a socket"), waiting.clone());
        let _reader = std::thread::Builder::new()
            .spawn(move || listen(from, &table, &up))
            .expect("a thread can be had");
        let guest = Self {
            qemu,
            to: Mutex::new((stream, 0)),
            waiting,
            place,
            release,
        };
        let ready = is_up.recv_timeout(BOOT_LIMIT);
        assert!(ready.is_ok(), "no guest came up:\n{}", guest.console());
        guest
    }

    /// Starts a script.
    pub(crate) fn start(&self, script: &str) -> Running {
        let (give, take) = channel();
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        to.1 += 1;
        let number = to.1;
        let mut table = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        table.insert(number, give);
        drop(table);
        let text = format!("{number} {}\n{script}", script.len());
        to.0.write_all(text.as_bytes())
            .unwrap_or_else(|error| panic!("{error}: the guest is gone:\n{}", self.console()));
        Running {
            script: script.to_owned(),
            answer: take,
        }
    }

    /// Runs a script to its end, whatever that is.
    pub(crate) fn try_run(&self, script: &str) -> Answer {
        let answer = self.start(script).answer.recv_timeout(LIMIT);
        answer.unwrap_or_else(|_| panic!("no answer to {script}\n{}", self.console()))
    }

    /// Runs a script that must succeed, and gives what it said.
    pub(crate) fn run(&self, script: &str) -> String {
        let answer = self.try_run(script);
        assert_eq!(answer.status, 0, "{script}\n{}", answer.said);
        answer.said
    }

    /// Waits until a script succeeds.
    pub(crate) fn wait_until(&self, script: &str, limit: Duration) -> String {
        let until = Instant::now() + limit;
        loop {
            let answer = self.try_run(script);
            if answer.status == 0 {
                return answer.said;
            }
            assert!(
                Instant::now() < until,
                "not within {limit:?}: {script}\n{}\n{}",
                answer.said,
                self.run("multipath -ll; iscsiadm -m session -P1; dmesg | tail -60")
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Plugs the cable of the NIC `number` in, or pulls it.
    pub(crate) fn set_link(&self, number: usize, up: bool) {
        let stream = UnixStream::connect(self.place.join("qmp")).expect("QEMU has a monitor");
        let mut lines = BufReader::new(stream.try_clone().expect("a socket"));
        let mut line = String::new();
        let commands = [
            json!({ "execute": "qmp_capabilities" }),
            json!({ "execute": "set_link", "arguments": { "name": format!("nic{number}"), "up": up } }),
        ];
        lines.read_line(&mut line).expect("a greeting");
        for command in commands {
            writeln!(&stream, "{command}").expect("the monitor listens");
            loop {
                line.clear();
                lines.read_line(&mut line).expect("an answer");
                let answer: Value = serde_json::from_str(&line).expect("JSON");
                assert!(answer.get("error").is_none(), "{answer}");
                if answer.get("return").is_some() {
                    break;
                }
            }
        }
    }

    /// Everything that its kernel has said.
    pub(crate) fn console(&self) -> String {
        let said = std::fs::read(self.place.join("console")).unwrap_or_default();
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Its kernel is well.
    pub(crate) fn assert_is_well(&mut self) {
        let console = self.console();
        for bad in [
            "Kernel panic",
            "BUG:",
            "Oops",
            "general protection",
            "WARNING: CPU",
            "hung_task",
        ] {
            assert!(!console.contains(bad), "{bad}:\n{console}");
        }
        let ended = self.qemu.try_wait().expect("it is our child");
        assert!(ended.is_none(), "QEMU ended: {ended:?}\n{console}");
    }
}

/// Hands answers to those who wait for them, until the guest is gone: then nobody waits any more.
fn listen(from: UnixStream, waiting: &Waiting, up: &Sender<()>) {
    hand_out(from, waiting, up);
    let mut table = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    table.clear();
}

fn hand_out(from: UnixStream, waiting: &Waiting, up: &Sender<()>) {
    let mut lines = BufReader::new(from);
    let mut line = String::new();
    loop {
        line.clear();
        if !matches!(lines.read_line(&mut line), Ok(more) if more > 0) {
            return;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [number, status, length] = words[..] else {
            assert!(line.starts_with("ready "), "the agent said {line:?}");
            let _nobody_waits_twice = up.send(());
            continue;
        };
        let mut said = vec![0; length.parse().expect("a length")];
        if lines.read_exact(&mut said).is_err() {
            return;
        }
        let answer = Answer {
            status: status.parse().expect("a status"),
            said: String::from_utf8_lossy(&said).into_owned(),
        };
        let number: u64 = number.parse().expect("a number");
        let mut table = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(give) = table.remove(&number) {
            let _may_have_given_up = give.send(answer);
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}
