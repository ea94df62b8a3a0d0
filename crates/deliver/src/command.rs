//! A program of this machine, which gets the message on standard input.
//!
//! What it is stands in `node.toml`, which root writes: whoever may use the API, as an admin too,
//! chooses only which of these programs is run.

use crate::failure;
use alerts::{Failure, Message, Notice};
use manifest::config::AlertCommand;
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// So much of what it complains about is read.
const COMPLAINT_BYTES_MAX: u64 = 4_096;

/// How long its last words are waited for when it has ended.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Runs the program. What ends with 0 was taken.
pub(crate) async fn run(command: &AlertCommand, message: &Message) -> Result<(), Failure> {
    let body = serde_json::to_vec(message).map_err(|error| failure("the message", &error))?;
    let Some((program, arguments)) = command.argv.split_first() else {
        return Err(failure(&command.name, &"no program"));
    };
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment(message))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failure(program, &error))?;
    let group = Group(child.id());
    let ended = timeout(command.time_max, talk(&mut child, body)).await;
    // What it left behind ends with it.
    drop(group);
    match ended {
        Ok(Ok((status, _))) if status.success() => Ok(()),
        Ok(Ok((status, complaint))) => {
            let first = complaint.lines().find(|line| !line.trim().is_empty());
            let what = format!("{program} ended with {status}");
            Err(first.map_or_else(|| Failure(what.clone()), |line| failure(&what, &line)))
        }
        Ok(Err(error)) => Err(failure(program, &error)),
        Err(_) => {
            let seconds = command.time_max.as_secs();
            Err(failure(program, &format!("it was ended after {seconds} s")))
        }
    }
}

/// The process group of the program, which ends when this goes.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        let id = self.0.and_then(|id| i32::try_from(id).ok());
        if let Some(id) = id.and_then(Pid::from_raw) {
            // It has ended already, mostly.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

/// Gives it the message, and waits for its end.
async fn talk(
    child: &mut Child,
    body: Vec<u8>,
) -> std::io::Result<(std::process::ExitStatus, String)> {
    let (input, complaint) = (child.stdin.take(), child.stderr.take());
    let write = async {
        if let Some(mut input) = input {
            // Who does not read it does not need it.
            let _ = input.write_all(&body).await;
            let _ = input.shutdown().await;
        }
    };
    let read = async {
        let mut text = Vec::new();
        if let Some(mut complaint) = complaint {
            let _ = (&mut complaint)
                .take(COMPLAINT_BYTES_MAX)
                .read_to_end(&mut text)
                .await;
            // The rest is taken, so that it does not wait for a reader.
            let _ = tokio::io::copy(&mut complaint, &mut tokio::io::sink()).await;
        }
        String::from_utf8_lossy(&text).into_owned()
    };
    let ends = async {
        let ((), status) = tokio::join!(write, child.wait());
        status
    };
    let (mut read, mut ends) = (std::pin::pin!(read), std::pin::pin!(ends));
    let mut complaint = None;
    let status = loop {
        tokio::select! {
            status = &mut ends => break status?,
            text = &mut read, if complaint.is_none() => complaint = Some(text),
        }
    };
    if complaint.is_none() {
        // What it left behind may hold this open: it is not waited for.
        complaint = timeout(LAST_WORDS, read).await.ok();
    }
    Ok((status, complaint.unwrap_or_default()))
}

/// What the program finds in its environment. Nothing of the daemon's is in it.
fn environment(message: &Message) -> Vec<(&'static str, String)> {
    let mut all = vec![
        (
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
        ),
        ("LANG", "C.UTF-8".to_owned()),
        ("CAUSEWAY_ALERT_NODE", message.node.clone()),
        ("CAUSEWAY_ALERT_TEXT", message.text.clone()),
        ("CAUSEWAY_ALERT_SEVERITY", message.severity.to_string()),
        ("CAUSEWAY_ALERT_TEST", message.test.to_string()),
        ("CAUSEWAY_ALERT_FIRED", message.fired.to_string()),
        ("CAUSEWAY_ALERT_REMINDERS", message.reminders.to_string()),
        ("CAUSEWAY_ALERT_RESOLVED", message.resolved.to_string()),
    ];
    if let Some(Notice { alert, reason }) = message.alerts.first() {
        let reason = serde_json::to_value(reason).unwrap_or_default();
        all.extend([
            ("CAUSEWAY_ALERT_ID", alert.id.to_string()),
            (
                "CAUSEWAY_ALERT_REASON",
                reason.as_str().unwrap_or_default().to_owned(),
            ),
            ("CAUSEWAY_ALERT_RULE", alert.rule.clone()),
            ("CAUSEWAY_ALERT_OBJECT_KIND", alert.kind.clone()),
            ("CAUSEWAY_ALERT_OBJECT", alert.object.clone()),
            ("CAUSEWAY_ALERT_CAUSE", alert.cause.clone()),
        ]);
    }
    for (_, value) in &mut all {
        // A variable ends at the first NUL.
        value.retain(|letter| letter != '\0');
    }
    all
}
