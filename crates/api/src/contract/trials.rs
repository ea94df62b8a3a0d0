//! What is asked of bench runs and lab beds, whose children are a script.

#![cfg(test)]

use super::Contract;
use serde_json::{Value, json};
use std::time::Duration;

const RUNS: &str = "/api/v1/bench/runs";
const RUN: &str = "/api/v1/bench/runs/{id}";
const CANCEL: &str = "/api/v1/bench/runs/{id}/cancel";
const RESULT: &str = "/api/v1/bench/runs/{id}/result";
const COMPARE: &str = "/api/v1/bench/compare";
const BEDS: &str = "/api/v1/lab/beds";
const BED: &str = "/api/v1/lab/beds/{id}";
const LINKS: &str = "/api/v1/lab/beds/{id}/links";

impl Contract {
    /// Asks until `member` is `value`.
    fn until(&mut self, path: &str, id: &str, member: &str, value: &str) -> Value {
        for _ in 0..500 {
            let shown = self.expect(200, ("GET", path, id, "", json!(null)));
            if shown[member] == value {
                return shown;
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        panic!("{path} {id}: {member} is never {value}");
    }

    pub(super) fn bench(&mut self) {
        let null = || json!(null);
        let lun = json!({ "name": "first", "lun": "l" });
        let made = self.expect(200, ("POST", RUNS, "", "?dry_run=true", lun.clone()));
        assert!(made["run"].is_null(), "{made}");
        let line = made["plan"]["command_line"].as_str().unwrap();
        assert!(line.starts_with("causeway bench -b4096 -r -w0"), "{line}");
        for id in ["1", "2"] {
            self.expect(200, ("POST", RUNS, "", "", lun.clone()));
            let shown = self.until(RUN, id, "state", "finished");
            assert_eq!(shown["seconds"][0]["p99_us"], 9.0, "{shown}");
            assert_eq!(shown["summary"]["iops"], 5.0, "{shown}");
        }
        let shown = self.expect(200, ("GET", RUN, "1", "?since=1", null()));
        assert_eq!(shown["seconds"], json!([]));
        for form in ["", "?form=csv", "?form=svg", "?form=text"] {
            self.expect(200, ("GET", RESULT, "1", form, null()));
        }
        self.expect(400, ("GET", RESULT, "1", "?form=exe", null()));
        self.expect(400, ("GET", COMPARE, "", "", null()));
        let both = self.expect(200, ("GET", COMPARE, "", "?a=1&b=2", null()));
        assert_eq!(both["rows"][0]["verdict"], "same", "{both}");
        self.expect(404, ("GET", COMPARE, "", "?a=1&b=9", null()));
        self.expect(409, ("POST", CANCEL, "1", "", null()));
        let long = json!({ "memory": "64M", "load": { "seconds": 600 } });
        self.expect(200, ("POST", RUNS, "", "", long.clone()));
        let refused = self.expect(409, ("POST", RUNS, "", "", long));
        assert_eq!(refused["hits"], json!(["bench run 3"]));
        self.expect(409, ("DELETE", RUN, "3", "", null()));
        self.expect(404, ("GET", RESULT, "3", "", null()));
        self.expect(200, ("POST", CANCEL, "3", "?dry_run=true", null()));
        self.expect(200, ("POST", CANCEL, "3", "", null()));
        let shown = self.until(RUN, "3", "state", "cancelled");
        assert_eq!(
            shown["result"]["errors"], 0,
            "what was measured stays: {shown}"
        );
        self.expect(200, ("DELETE", RUN, "3", "?dry_run=true", null()));
        self.expect(200, ("DELETE", RUN, "3", "", null()));
        self.expect(404, ("GET", RUN, "3", "", null()));
        self.refused_runs();
    }

    fn refused_runs(&mut self) {
        let writes = json!({ "lun": "l", "load": { "write_percent": 30 } });
        let refused = self.expect(409, ("POST", RUNS, "", "", writes.clone()));
        assert_eq!(
            (&refused["code"], &refused["confirm"]),
            (&json!("CWY3008"), &json!("l"))
        );
        let plan = self.expect(200, ("POST", RUNS, "", "?dry_run=true", writes));
        assert_eq!(plan["plan"]["losses"], refused["losses"]);
        self.expect(404, ("POST", RUNS, "", "", json!({ "lun": "<b>no</b>" })));
        let wide = json!({ "lun": "l", "load": { "threads": 17, "block": 100 } });
        let refused = self.expect(400, ("POST", RUNS, "", "", wide));
        assert_eq!(refused["fields"][0]["field"], "load.block", "{refused}");
        self.expect(
            400,
            ("POST", RUNS, "", "", json!({ "lun": "l", "argv": ["-c"] })),
        );
    }

    pub(super) fn lab(&mut self) {
        let null = || json!(null);
        let two = json!({ "topology": "two-paths", "rate": "100M" });
        self.expect(200, ("POST", BEDS, "", "?dry_run=true", two.clone()));
        self.expect(200, ("POST", BEDS, "", "", two.clone()));
        self.expect(409, ("POST", BEDS, "", "", two));
        let shown = self.until(BED, "1", "state", "running");
        assert_eq!(shown["namespaces"], json!(["n-host"]));
        let cut = json!({ "link": "eth0", "state": "cut" });
        self.expect(200, ("POST", LINKS, "1", "?dry_run=true", cut.clone()));
        let shown = self.expect(200, ("POST", LINKS, "1", "", cut));
        assert_eq!(shown["links"][0]["state"], "cut", "{shown}");
        let nowhere = json!({ "link": "lo", "state": "cut" });
        self.expect(404, ("POST", LINKS, "1", "", nowhere));
        self.expect(200, ("DELETE", BED, "1", "?dry_run=true", null()));
        self.expect(200, ("DELETE", BED, "1", "", null()));
        self.until(BED, "1", "state", "stopped");
        let up = json!({ "link": "eth0", "state": "up" });
        self.expect(409, ("POST", LINKS, "1", "", up));
        let refused = json!({ "topology": "--help", "load": { "seconds": 1 } });
        let refused = self.expect(400, ("POST", BEDS, "", "", refused));
        assert_eq!(refused["fields"][0]["field"], "topology", "{refused}");
    }
}
