use super::*;
use std::path::PathBuf;

/// For one that hangs.
const SHORT: Duration = Duration::from_millis(300);

/// For one that ends by itself, also on a machine that does other work.
const LONG: Duration = Duration::from_secs(30);

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

fn shell(script: &str) -> Child {
    let words = ["-c".to_owned(), script.to_owned()];
    Child::start(&PathBuf::from("/bin/sh"), &words, 1024).unwrap()
}

#[test]
fn lines_come_one_by_one_and_go_in() {
    run(async {
        let mut child = shell("echo one; read word; echo \"got $word\"; printf rest; echo why >&2");
        assert_eq!(child.line().await.unwrap(), Some(b"one".to_vec()));
        assert!(child.say("hello\n").await);
        assert_eq!(child.line().await.unwrap(), Some(b"got hello".to_vec()));
        assert_eq!(child.line().await.unwrap(), Some(b"rest".to_vec()));
        assert_eq!(child.line().await.unwrap(), None);
        assert!(child.end(LONG).await);
        assert_eq!(child.said(), "why\n");
    });
}

#[test]
fn a_line_that_is_too_long_is_an_error_and_not_memory() {
    run(async {
        let mut child = shell("yes x | tr -d '\\n'");
        let error = child.line().await.unwrap_err();
        assert!(error.to_string().contains("1024 bytes"), "{error}");
        child.end(SHORT).await;
    });
}

#[test]
fn one_that_ends_with_its_input_is_asked_and_one_that_hangs_is_killed() {
    run(async {
        let mut child = shell("cat > /dev/null; echo ended");
        child.ask_to_end();
        assert_eq!(child.line().await.unwrap(), Some(b"ended".to_vec()));
        assert!(child.end(LONG).await);
        let mut child = shell("exec sleep 60");
        let pid = child.process.id().unwrap();
        assert!(!child.end(SHORT).await);
        let gone = !std::path::Path::new(&format!("/proc/{pid}")).exists();
        assert!(gone, "it was waited for");
    });
}
