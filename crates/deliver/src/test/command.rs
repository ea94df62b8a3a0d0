//! Programs that get messages.

use super::{command, message, receiver};
use crate::send;
use alerts::Message;
use manifest::config::AlertCommand;
use serde_json::json;
use std::path::PathBuf;

/// A directory of this test's own.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir =
            std::env::temp_dir().join(format!("causeway-deliver-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn run(command: AlertCommand) -> Result<(), String> {
    let receiver = receiver(&json!({ "command": { "name": "c" } }));
    let sent = send(&receiver, &[command], &message()).await;
    sent.map_err(|failure| failure.0)
}

#[tokio::test]
async fn a_program_gets_the_message_its_environment_and_nothing_of_the_daemons() {
    let dir = Dir::new("whole");
    let (input, environment) = (dir.0.join("in"), dir.0.join("env"));
    let script = format!(
        "cat > {}; env > {}; echo \"$1\" >> {}",
        input.display(),
        environment.display(),
        environment.display()
    );
    assert_eq!(
        run(command(
            &["/bin/sh", "-c", &script, "sh", "an argument; rm -rf /"],
            10
        ))
        .await,
        Ok(())
    );
    let sent: Message = serde_json::from_slice(&std::fs::read(input).unwrap()).unwrap();
    assert_eq!(sent, message());
    let text = std::fs::read_to_string(environment).unwrap();
    for wanted in [
        "CAUSEWAY_ALERT_RULE=device_health\n",
        "CAUSEWAY_ALERT_OBJECT=sd\u{e9}\n",
        "CAUSEWAY_ALERT_SEVERITY=critical\n",
        "CAUSEWAY_ALERT_REASON=fired\n",
        "CAUSEWAY_ALERT_FIRED=1\n",
        "CAUSEWAY_ALERT_TEST=false\n",
        "an argument; rm -rf /\n",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(!text.contains("HOME=") && !text.contains("CARGO"), "{text}");
}

#[tokio::test]
async fn a_program_that_fails_is_missing_or_complains_is_said_to_do_so() {
    let failed = run(command(
        &["/bin/sh", "-c", "echo; echo no line >&2; exit 3"],
        10,
    ))
    .await;
    assert_eq!(
        failed,
        Err("/bin/sh ended with exit status: 3: no line".to_owned())
    );
    let missing = run(command(&["/no/such/program"], 10)).await.unwrap_err();
    assert!(
        missing.starts_with("/no/such/program: No such file"),
        "{missing}"
    );
    let not_named = AlertCommand {
        name: "other".to_owned(),
        ..command(&["/bin/true"], 10)
    };
    let why = run(not_named).await.unwrap_err();
    assert_eq!(why, "node.toml has no [[alert_command]] of the name \"c\"");
    // One that reads nothing, and one that complains without an end.
    assert_eq!(run(command(&["/bin/true"], 10)).await, Ok(()));
    let loud =
        "i=0; while [ $i -lt 3000 ]; do echo line $i of far too many lines >&2; i=$((i+1)); done";
    assert_eq!(run(command(&["/bin/sh", "-c", loud], 10)).await, Ok(()));
}

#[tokio::test]
async fn a_program_that_hangs_is_ended_with_all_that_it_started() {
    let dir = Dir::new("hangs");
    let (pid, alive) = (dir.0.join("pid"), dir.0.join("alive"));
    let script = format!(
        "(sleep 2; touch {}) & echo $! > {}; wait; sleep 60",
        alive.display(),
        pid.display()
    );
    let ended = run(command(&["/bin/sh", "-c", &script], 1)).await;
    assert_eq!(ended, Err("/bin/sh: it was ended after 1 s".to_owned()));
    let child = std::fs::read_to_string(pid).unwrap();
    let state =
        || std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
    for _ in 0..100 {
        if state().is_empty() || state().contains(") Z ") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    assert!(!alive.exists(), "what it started has ended, too");
    // One that leaves something behind which holds its output open ends when it ends.
    let begun = tokio::time::Instant::now();
    assert_eq!(
        run(command(&["/bin/sh", "-c", "sleep 30 & exit 0"], 20)).await,
        Ok(())
    );
    assert!(begun.elapsed().as_secs() < 5);
}
