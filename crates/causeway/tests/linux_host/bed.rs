//! A Linux host and a target with two portals, and two networks between them.
//!
//! ```text
//!    NAME-host                                                    NAME-target
//!    guest eth0 10.99.0.2 === tap0 - [b0, a bridge] - v0 ===veth=== p0 10.99.0.1  causeway serve
//!    guest eth1 10.99.1.2 === tap1 - [b1, a bridge] - v1 ===veth=== p1 10.99.1.1
//! ```

use crate::guest::{Guest, Image};
use crate::place::{Place, text_of};
use lab::Claim;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The host's iSCSI name.
pub(crate) const HOST: &str = "iqn.1993-08.org.debian:01:guest";
/// A journal for the pool, in the node's configuration.
pub(crate) const JOURNAL: &str = "journal = \"data/journal\"\njournal_size = \"64MiB\"";
/// The addresses of the portals.
pub(crate) const PORTALS: [&str; 2] = ["10.99.0.1", "10.99.1.1"];

/// iscsid and multipathd in the foreground, as their packages' units run them; what they say is
/// kept with the guest's time. Each waits until its socket is there.
const DAEMONS: &str = "(setsid iscsid -f -d 3 2>&1 </dev/null 3>&- | while read -r line; do read -r now _ </proc/uptime; \
    echo \"$now $line\"; done >/tmp/iscsid.log &)\n\
    (setsid multipathd -d -v3 >/tmp/multipathd.log 2>&1 </dev/null 3>&- &)\n\
    until grep -q ISCSIADM_ABSTRACT /proc/net/unix && multipathd show status >/dev/null 2>&1; do sleep 0.1; done";

/// One bed at a time: what is measured in seconds must not wait for another.
static ALONE: Mutex<()> = Mutex::new(());

/// The bed. The order of its parts is the order of their end.
pub(crate) struct Bed {
    pub(crate) guest: Guest,
    daemon: Option<Child>,
    pub(crate) place: Place,
    claim: Claim,
    since: Instant,
    _alone: MutexGuard<'static, ()>,
}

impl Bed {
    /// A bed with a daemon whose pool has nothing behind it but files, and a host that has seen
    /// nothing; `None`, said plainly, where this machine cannot have one.
    pub(crate) fn make() -> Option<Self> {
        Self::with("")
    }

    /// The same with more keys for the pool of `node.toml`.
    pub(crate) fn with(pool: &str) -> Option<Self> {
        let image = match can_have_one() {
            Ok(image) => image,
            Err(why) => {
                println!("skipped: {why}");
                return None;
            }
        };
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let since = Instant::now();
        let claim = Claim::take().expect("namespaces can be had");
        networks(&claim);
        let place = Place::new("linux");
        let kernel = std::env::var("CAUSEWAY_GUEST_KERNEL").unwrap_or_else(|_| "6.1".to_owned());
        let inside = claim.namespace("host");
        let guest = Guest::boot(&image, &kernel, &inside, &["tap0", "tap1"], claim.dir());
        let mut bed = Self {
            guest,
            daemon: None,
            place,
            claim,
            since,
            _alone: alone,
        };
        bed.place.write("node.toml", &node(pool));
        bed.start_daemon();
        bed.guest.run(&format!(
            "for n in 0 1; do ip addr add 10.99.$n.2/24 dev eth$n; ip link set eth$n up; done\n\
             echo InitiatorName={HOST} > /etc/iscsi/initiatorname.iscsi\n\
             {DAEMONS}\n\
             for p in {} {}; do until ip route get $p >/dev/null && ip neigh get $p dev eth${{p:6:1}} 2>/dev/null | grep -q lladdr || \
             (exec 3<>/dev/tcp/$p/3260) 2>/dev/null; do sleep 0.1; done; done",
            PORTALS[0], PORTALS[1]
        ));
        let (release, took) = (&bed.guest.release, bed.since.elapsed());
        println!("a guest with Linux {release}, ready after {took:.0?}");
        Some(bed)
    }

    /// Starts the daemon, and waits until it serves.
    pub(crate) fn start_daemon(&mut self) {
        let socket = self.place.path("notify.sock");
        let _old = std::fs::remove_file(&socket);
        let ready = UnixDatagram::bind(&socket).expect("a socket");
        ready
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("a limit");
        let log = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.place.path("serve.log"))
            .expect("a log");
        let child = Command::new("ip")
            .args(["netns", "exec", &self.claim.namespace("target")])
            .arg(env!("CARGO_BIN_EXE_causeway"))
            .args(["serve", "--config", "node.toml"])
            .current_dir(self.place.path("."))
            .env("NOTIFY_SOCKET", &socket)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the daemon starts");
        self.daemon = Some(child);
        let mut message = [0; 64];
        let len = ready.recv(&mut message);
        let len = len.unwrap_or_else(|_| panic!("it does not serve:\n{}", self.log()));
        assert_eq!(&message[..len], b"READY=1\n");
        // It reports again and again that it lives, and waits where nobody listens.
        let _listens = std::thread::Builder::new()
            .spawn(move || while ready.recv(&mut message).is_ok() {})
            .expect("a thread can be had");
    }

    fn end_daemon(&mut self, signal: Signal) {
        self.signal(signal);
        let mut child = self.daemon.take().expect("it runs");
        child.wait().expect("it is our child");
    }

    /// Ends it without a warning.
    pub(crate) fn kill_daemon(&mut self) {
        self.end_daemon(Signal::KILL);
    }

    /// Ends it as systemd would.
    pub(crate) fn stop_daemon(&mut self) {
        self.end_daemon(Signal::TERM);
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let child = self.daemon.as_ref().expect("it runs");
        kill_process(Pid::from_child(child), signal).expect("it runs");
    }

    /// Everything that the daemons have logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.place.path("serve.log")).unwrap_or_default()
    }

    /// Network `number` takes frames and gives none, without a sign at either end; or works again.
    pub(crate) fn set_black_hole(&self, number: usize, on: bool) {
        let state = if on { "0" } else { "3" };
        let inside = self.claim.namespace("host");
        let words = ["netns", "exec", &inside, "bridge", "link", "set", "dev"];
        let mut command = Command::new("ip");
        command
            .args(words)
            .arg(format!("v{number}"))
            .args(["state", state]);
        text_of(&command.output().expect("bridge runs"), 0, "bridge");
    }

    /// `ip` in the target's namespace.
    pub(crate) fn ip(&self, words: &str) {
        ip(&self.claim.namespace("target"), words);
    }

    /// The block of a share's text for Linux, as it is printed.
    pub(crate) fn linux_text(&self, lun: &str) -> String {
        let page = self.place.run(0, &format!("share show {lun}"));
        let from = page.find("# --- Linux").expect("a block for Linux");
        let rest = &page[from..];
        let to = rest[1..].find("# --- ").expect("other blocks");
        rest[..=to].to_owned()
    }

    /// Makes a LUN with these options, shares it with the host, and has the host paste what is
    /// printed. Gives the name of its map, of which both paths work.
    pub(crate) fn share(&self, lun: &str, options: &str) -> String {
        self.share_as(lun, options, str::to_owned)
    }

    /// The same with a text that was changed.
    pub(crate) fn share_as(&self, lun: &str, options: &str, change: fn(&str) -> String) -> String {
        self.paste(lun, options, change);
        self.map_of(lun)
    }

    /// The host pastes what is printed of a LUN that is shared already.
    pub(crate) fn share_again(&self, lun: &str) -> String {
        // That it is logged in already is an error to iscsiadm, and none to a shell.
        self.guest.try_run(&self.linux_text(lun));
        self.map_of(lun)
    }

    /// Makes and shares a LUN; the host pastes a changed text.
    pub(crate) fn paste(&self, lun: &str, options: &str, change: fn(&str) -> String) {
        self.place
            .run(0, &format!("share create {lun} --for {HOST} {options}"));
        self.guest.run(&change(&self.linux_text(lun)));
    }

    fn map_of(&self, lun: &str) -> String {
        let shown = self.place.json(&format!("lun show {lun}"));
        let map = format!("3{}", shown["naa"].as_str().expect("a name"));
        self.wait_for_paths(&map, 2);
        map
    }

    /// How a check of the doctor stands on the host, where the program that was built here runs
    /// there.
    pub(crate) fn doctor(&self, check: &str) -> Option<String> {
        let words = "doctor -o json --api unix:/nowhere --from eth0 --from eth1";
        let answer = self.guest.try_run(&format!(
            "[ -x /tmp/causeway ] || {{ cp /dev/vdb /tmp/causeway; chmod +x /tmp/causeway; }}\n\
             /tmp/causeway {words} 2>/tmp/said || [ $? = 1 ] || cat /tmp/said"
        ));
        if answer.said.contains("GLIBC") {
            println!("skipped: the doctor: {}", answer.said);
            return None;
        }
        let report: serde_json::Value = serde_json::from_str(&answer.said)
            .unwrap_or_else(|error| panic!("{error}: {answer:?}"));
        let findings = report["findings"].as_array().expect("findings");
        let finding = findings.iter().find(|it| it["check"] == check);
        let verdict = &finding.unwrap_or_else(|| panic!("{report}"))["verdict"];
        Some(verdict.as_str().expect("a word").to_owned())
    }

    /// Waits until so many paths of a map work.
    pub(crate) fn wait_for_paths(&self, map: &str, count: usize) {
        self.guest.wait_until(
            &format!("[ $(multipath -ll {map} | grep -c 'active ready *running') = {count} ]"),
            Duration::from_secs(60),
        );
    }

    /// What both ends have said: for a scene that took longer than it should.
    pub(crate) fn said(&self) -> String {
        let daemons = self
            .guest
            .try_run("tail -n 2000 /tmp/iscsid.log /tmp/multipathd.log");
        let (log, console) = (self.log(), self.guest.console());
        format!("{log}\n{console}\n{}", daemons.said)
    }

    /// Nothing has broken, at either end.
    pub(crate) fn assert_is_well(&mut self) {
        self.guest.assert_is_well();
        let log = self.log();
        assert!(!log.contains("panicked"), "{log}");
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        println!("the scene took {:.0?}", self.since.elapsed());
        if let Some(child) = &mut self.daemon {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            println!("the daemon's log:\n{}", self.log());
            let console = self.guest.console();
            let lines: Vec<&str> = console.lines().collect();
            let last = &lines[lines.len().saturating_sub(60)..];
            println!("the guest's console:\n{}", last.join("\n"));
        }
    }
}

fn can_have_one() -> Result<Image, String> {
    lab::can_have_one().map_err(|error| error.to_string())?;
    if !std::path::Path::new("/dev/net/tun").exists() {
        return Err("there is no /dev/net/tun here, by which a guest has NICs".to_owned());
    }
    Image::find()
}

fn networks(claim: &Claim) {
    let (host, target) = (claim.namespace("host"), claim.namespace("target"));
    for name in [&host, &target] {
        let output = Command::new("ip").args(["netns", "add", name]).output();
        text_of(&output.expect("ip runs"), 0, "ip netns add");
        ip(name, "link set lo up");
    }
    for (number, portal) in PORTALS.iter().enumerate() {
        ip(
            &target,
            &format!("link add p{number} type veth peer name v{number} netns {host}"),
        );
        ip(&target, &format!("addr add {portal}/24 dev p{number}"));
        ip(&target, &format!("link set p{number} up"));
        ip(&host, &format!("link add b{number} type bridge"));
        ip(&host, &format!("tuntap add tap{number} mode tap"));
        for device in ["v", "tap"] {
            ip(
                &host,
                &format!("link set {device}{number} master b{number}"),
            );
            ip(&host, &format!("link set {device}{number} up"));
        }
        ip(&host, &format!("link set b{number} up"));
    }
}

fn ip(inside: &str, words: &str) {
    let mut command = Command::new("ip");
    command.args(["-n", inside]).args(words.split(' '));
    text_of(&command.output().expect("ip runs"), 0, words);
}

fn node(pool: &str) -> String {
    let [first, second] = PORTALS;
    format!(
        "schema = 1\n[node]\nname = \"n\"\nstate_dir = \"data\"\n[[portal_group]]\nname = \"default\"\ntag = 1\n\
         listen = [ {{ ip = \"{first}\", port = 3260 }}, {{ ip = \"{second}\", port = 3260 }} ]\n\
         [[pool]]\nname = \"default\"\npath = \"data/pool\"\n{pool}\n[api]\nlisten = [\"unix:data/api.sock\"]\n"
    )
}
