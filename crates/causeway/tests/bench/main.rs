//! `causeway bench` as a script sees it: exit codes, forms of results, and what it does not
//! overwrite.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory that goes with the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("causeway-bench-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary directory can be made");
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What stays behind is in the system's temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn bench(line: &str, target: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_causeway"))
        .arg("bench")
        .args(line.split_whitespace())
        .arg(target)
        .output()
        .expect("the program can be started")
}

fn run(code: i32, line: &str, target: &Path) -> (String, String) {
    let output = bench(line, target);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{line}\n{out}\n{err}");
    (out, err)
}

fn json(line: &str, target: &Path) -> Value {
    serde_json::from_str(&run(0, line, target).0).expect("one JSON object")
}

#[test]
fn a_run_over_memory_prints_the_object_that_is_promised() {
    let value = json(
        "-R json -b4K -o4 -r -w30 -d0.3 -W0 --verify -D100",
        Path::new("memory:16M"),
    );
    let (read, write) = (&value["read"]["ios"], &value["write"]["ios"]);
    let sum = read.as_u64().unwrap() + write.as_u64().unwrap();
    assert_eq!(value["total"]["ios"].as_u64(), Some(sum));
    assert!(sum > 100, "{value}");
    assert!(value["verify"]["checked"].as_u64() > Some(100));
    assert_eq!(
        (&value["errors"], &value["verify"]["bad"]),
        (&0.into(), &0.into())
    );
    assert_eq!(value["seconds"], 0.3);
    assert_eq!(value["series"].as_array().map(Vec::len), Some(3));
}

#[test]
fn nothing_is_overwritten_but_bench_luns() {
    let place = Place::new("destroy");
    let file = place.file("precious");
    let data: Vec<u8> = (0..4 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
    std::fs::write(&file, &data).unwrap();
    let (_, output) = run(5, "-b4K -w100 -d0.1 -W0", &file);
    assert!(
        output.contains("CWY7002") && output.contains("data of a kind"),
        "{output}"
    );
    assert!(output.contains("--destroy"), "{output}");
    assert_eq!(std::fs::read(&file).unwrap(), data, "a refused run wrote");
    // Reading is free, and leaves no mark.
    run(0, "-b4K -d0.1 -W0", &file);
    assert_eq!(std::fs::read(&file).unwrap(), data);
    run(0, "-b4K -w100 -r -d0.2 -W0 --destroy --verify", &file);
    let after = std::fs::read(&file).unwrap();
    assert!(after.starts_with(b"CAUSEWAY BENCH LUN 1\n"));
    assert_ne!(after[1 << 20..], data[1 << 20..]);
    assert_eq!(
        after[4096..1 << 20],
        data[4096..1 << 20],
        "only the mark is written there"
    );
    // It is one now.
    run(0, "-b4K -w100 -d0.1 -W0", &file);
    // A file system that is made there ends it.
    let made = Command::new("mkfs.ext4")
        .args(["-q", "-F", "-L", "mine"])
        .arg(&file)
        .status();
    assert!(
        made.is_ok_and(|made| made.success()),
        "mkfs.ext4 is missing: scripts/install test"
    );
    let (_, output) = run(5, "-b4K -w100 -d0.1 -W0", &file);
    assert!(
        output.contains("an ext2, ext3 or ext4 file system named \"mine\""),
        "{output}"
    );
}

#[test]
fn a_new_file_is_made_filled_and_marked() {
    let place = Place::new("create");
    let file = place.file("new");
    let value = json("-Rjson -b64K -w50 -c2M -d0.1 -W0", &file);
    assert_eq!(value["targets"][0]["length"], 2 << 20);
    let data = std::fs::read(&file).unwrap();
    assert_eq!(data.len(), 3 << 20);
    assert!(data.starts_with(b"CAUSEWAY BENCH LUN"));
    assert!(
        data[1 << 20..]
            .chunks(4096)
            .all(|block| block.iter().any(|byte| *byte != 0))
    );
}

#[test]
fn mistakes_are_reported_with_what_to_write_instead() {
    let memory = Path::new("memory:1M");
    for (code, line, what) in [
        (2, "-b 64K", "-b64K"),
        (2, "-b2M", "does not fit"),
        (2, "-b1000", "no multiple"),
        (2, "-q", "no such option"),
        (2, "-w101", "0 to 100"),
        (2, "-Xprofile.xml", "--profile"),
        (2, "-Sm", "-Su"),
        (2, "--fault cut", "causeway lab fault"),
        (2, "--compress 101", "0 to 100"),
        (2, "--dedupe 50 -Z", "leave one of them out"),
        (2, "--dedupe 50 --verify", "stamps"),
    ] {
        let (_, output) = run(code, line, memory);
        assert!(output.contains(what), "{line}: {output}");
        assert!(output.contains("help: "), "{output}");
    }
    run(3, "-b4K", Path::new("/nonexistent/file"));
    run(3, "-b4K", Path::new("memory:many"));
    let (text, _) = run(0, "--help", Path::new(""));
    assert!(
        text.starts_with("Measure a volume with diskspd's options.") && text.contains("--verify")
    );
}

#[test]
fn a_damaged_file_is_reported_and_the_exit_code_says_so() {
    let place = Place::new("damage");
    let (file, result) = (place.file("lun"), place.file("result"));
    run(0, "-b4K -w100 -c1M -d0.1 -W0", &file);
    let mut child = Command::new(env!("CARGO_BIN_EXE_causeway"))
        .args([
            "bench", "-b4K", "-w100", "-r", "-d2", "-W0", "-C1", "-g400i", "--verify", "-Rjson",
            "--output",
        ])
        .arg(&result)
        .arg(&file)
        .spawn()
        .unwrap();
    // Another program writes where it must not, again and again, until the last pass has read it.
    let other = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    let status = loop {
        std::os::unix::fs::FileExt::write_all_at(&other, &[7; 65536], 1 << 20).unwrap();
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    assert_eq!(status.code(), Some(1));
    let value: Value = serde_json::from_str(&std::fs::read_to_string(&result).unwrap()).unwrap();
    assert!(value["verify"]["bad"].as_u64() > Some(0), "{value}");
    let described = value["verify"]["described"][0].as_str().unwrap();
    assert!(described.starts_with("foreign at byte "), "{described}");
}

#[test]
fn profiles_run_their_rows_next_to_the_published_figures_and_a_control() {
    let place = Place::new("profile");
    let control = place.file("control.json");
    let memory = Path::new("memory:64M");
    let line = format!(
        "--profile anvil -d0.5 -W0 -Rjson --output {}",
        control.display()
    );
    run(0, &line, memory);
    let value: Value = serde_json::from_str(&std::fs::read_to_string(&control).unwrap()).unwrap();
    let steps = value["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 10);
    assert_eq!(steps[3]["name"], "read 4K QD16");
    assert_eq!(steps[3]["published_iops"][0]["iops"], 24228.16);
    assert!(
        steps
            .iter()
            .all(|step| step["total"]["ios"].as_u64() > Some(0)),
        "{value}"
    );
    let line = format!("--profile anvil -d0.05 -W0 --control {}", control.display());
    let (text, _) = run(0, &line, memory);
    let row = text
        .lines()
        .find(|line| line.starts_with("write 4K QD16"))
        .unwrap();
    assert!(row.ends_with('%'), "{row}");
    let line = format!(
        "--profile anvil -d0.05 -W0 -Rhtml --control {}",
        control.display()
    );
    let (page, _) = run(0, &line, memory);
    assert!(page.starts_with("<!doctype html>") && page.contains("published: 512-byte sectors"));
    let line = "--profile jetstress-like --autotune -d0.2 -W0 -Rjson";
    let value = json(line, memory);
    let notes = value["notes"].as_array().unwrap();
    assert!(
        notes[0]
            .as_str()
            .is_some_and(|note| note.contains("1 outstanding: ")),
        "{value}"
    );
    assert_eq!(
        (&value["steps"][1]["name"], &value["passes"]),
        (&"log".into(), &true.into())
    );
}

#[test]
fn two_results_are_compared() {
    let place = Place::new("compare");
    let files = [place.file("a.json"), place.file("b.json")];
    let measure = |options: &str, file: &Path| {
        let line = format!("{options} -d0.2 -W0 -Rjson --output {}", file.display());
        run(0, &line, Path::new("memory:1M"));
    };
    measure("-b4K", &files[0]);
    let text = std::fs::read_to_string(&files[0]).unwrap();
    let mut twice: Value = serde_json::from_str(&text).unwrap();
    twice["read"]["iops"] = (twice["read"]["iops"].as_f64().unwrap() * 2.0).into();
    std::fs::write(&files[1], twice.to_string()).unwrap();
    let line = format!("--compare {} -Rjson", files[0].display());
    let rows: Value = serde_json::from_str(&run(0, &line, &files[1]).0).unwrap();
    let row = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["figure"] == "read IOPS")
        .unwrap();
    let change = row["change_pct"].as_f64().unwrap();
    assert!((99.0..101.0).contains(&change), "{row}");
    let (table, _) = run(0, &format!("--compare {}", files[0].display()), &files[1]);
    assert!(table.contains("better"), "{table}");
    let line = format!("--compare {}", files[0].display());
    run(2, &line, Path::new("/nonexistent"));
    let other = place.file("other.json");
    measure("-b4K -r", &other);
    let (_, err) = run(2, &line, &other);
    assert!(
        err.contains("different workloads: access is") && !err.contains("block_bytes"),
        "{err}"
    );
}

#[test]
fn h_is_diskspds_cache_switch_next_to_other_options_and_help_alone() {
    let words = ["-h", "-b4K", "-d0.1", "-W0", "memory:1M"];
    let output = Command::new(env!("CARGO_BIN_EXE_causeway"))
        .arg("bench")
        .args(words)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("writethrough on"), "{text}");
    let output = Command::new(env!("CARGO_BIN_EXE_causeway"))
        .args(["bench", "-h"])
        .output()
        .unwrap();
    let help = String::from_utf8_lossy(&output.stdout);
    assert!(help.contains("Usage: causeway bench"), "{help}");
}

#[test]
fn a_sweep_runs_every_combination_on_all_workers_and_goes_on_where_it_was() {
    let place = Place::new("sweep");
    let results = place.file("results");
    let line = format!(
        "sweep -b 4,64 -o 1,8 -d0.2 -W0.1 -C0.1 --results {} --worker local --worker env -Rjson",
        results.display()
    );
    let (out, err) = run(0, &line, Path::new("memory:1M"));
    let rows: Value = serde_json::from_str(&out).unwrap();
    let names: Vec<&str> = rows
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["name"].as_str())
        .collect();
    assert_eq!(
        names,
        ["b4t1o1w0pr", "b4t1o8w0pr", "b64t1o1w0pr", "b64t1o8w0pr"]
    );
    assert!(err.contains("4 of 4: b64t1o8w0pr runs"), "{err}");
    let file = |worker: &str| results.join(format!("result-b4t1o8w0pr-{worker}.json"));
    let one: Value =
        serde_json::from_str(&std::fs::read_to_string(file("local")).unwrap()).unwrap();
    let other: Value =
        serde_json::from_str(&std::fs::read_to_string(file("env")).unwrap()).unwrap();
    let sum = one["total"]["iops"].as_f64().unwrap() + other["total"]["iops"].as_f64().unwrap();
    assert!((rows[1]["iops"].as_f64().unwrap() / sum - 1.0).abs() < 1e-9);
    // What is there is not run again; what is missing is.
    std::fs::remove_file(file("env")).unwrap();
    let (_, err) = run(0, &line, Path::new("memory:1M"));
    assert_eq!(err.matches("is done already").count(), 3, "{err}");
    assert!(err.contains("2 of 4: b4t1o8w0pr runs"), "{err}");
    // A worker that cannot run ends the sweep, and leaves no result.
    let other = place.file("other");
    let line = format!(
        "sweep -b4 -d0.1 -W0 -C0 --results {} --worker local --worker false",
        other.display()
    );
    let (_, err) = run(1, &line, Path::new("memory:1M"));
    assert!(
        err.contains("worker false: it did not become ready"),
        "{err}"
    );
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 0);
}

/// An ssh that does what ssh does with words: joins them, and has a shell part them again,
/// elsewhere.
const SSH: &str = "#!/bin/sh\n\
    [ \"$1\" = root@host-2 ] || exit 255\n\
    shift\n\
    cd / && PATH=\"$FAKE_REMOTE:$PATH\" exec sh -c \"$*\"\n";

#[test]
fn a_worker_behind_ssh_gets_its_words_whole_through_the_shell_there() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let place = Place::new("ssh");
    let (bin, remote) = (place.file("bin"), place.file("remote"));
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::create_dir_all(&remote).unwrap();
    std::fs::write(bin.join("ssh"), SSH).unwrap();
    std::fs::set_permissions(bin.join("ssh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink(env!("CARGO_BIN_EXE_causeway"), remote.join("causeway")).unwrap();
    // A shell would make two words, a variable and a quotation of it.
    let file = place.file("it's a $LUN");
    let path = std::env::var("PATH").unwrap();
    let sweep = |worker: &str, results: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_causeway"))
            .args([
                "bench", "sweep", "-b4", "-o2", "-d0.2", "-W0.1", "-C0", "-c4M", "-Rjson",
            ])
            .args(["--results", results.to_str().unwrap(), "--worker", worker])
            .arg(&file)
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("FAKE_REMOTE", &remote)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let results = place.file("results");
    let (code, said) = sweep("ssh root@host-2", &results);
    assert_eq!(code, Some(0), "{said}");
    let names = std::fs::read_dir(&results).unwrap();
    let names: Vec<PathBuf> = names.map(|it| it.unwrap().path()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    let result = std::fs::read_to_string(&names[0]).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    assert!(result["total"]["ios"].as_u64().unwrap() > 0);
    assert_eq!(result["targets"][0]["name"], file.to_str().unwrap());
    assert!(file.exists(), "it ran on that very file");
    // A host that cannot be reached ends the sweep, with its name.
    let (code, said) = sweep("ssh root@elsewhere", &place.file("other"));
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("worker ssh root@elsewhere: it did not become ready"),
        "{said}"
    );
}

#[test]
fn on_a_terminal_progress_is_shown_while_it_runs_and_elsewhere_not() {
    let binary = env!("CARGO_BIN_EXE_causeway");
    let run = format!("{binary} bench -b4K -r -w50 -d2 -W0 --destroy memory:16M");
    // script(1) gives it a terminal.
    let mut on_terminal = std::process::Command::new("script");
    on_terminal.args(["-qec", &run, "/dev/null"]);
    let output = on_terminal.output().unwrap();
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.contains("measuring 1/2 s: "), "{output}");
    assert!(output.contains(" IOPS, "), "{output}");
    let mut words = run.split(' ');
    let mut piped = std::process::Command::new(words.next().unwrap());
    let output = piped.args(words).output().unwrap();
    let output = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.contains("measuring"), "{output}");
}
