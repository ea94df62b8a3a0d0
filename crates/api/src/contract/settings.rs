//! What is asked of the node's settings.

#![cfg(test)]

use super::Contract;
use serde_json::json;

const CONFIG: &str = "/api/v1/config";
const RELOAD: &str = "/api/v1/config/reload";
const RESTART: &str = "/api/v1/restart";

impl Contract {
    pub(super) fn settings(&mut self) {
        let pool = json!({ "add_pool": { "name": "fast", "path": "/nowhere/at/all" } });
        let refused = self.expect(400, ("PATCH", CONFIG, "", "", pool));
        assert_eq!(refused["fields"][0]["field"], "add_pool.path", "{refused}");
        let wrong = json!({ "scrub_every_days": 4000 });
        self.expect(400, ("PATCH", CONFIG, "", "", wrong));
        let wrong = json!({ "portals": { "listen": ["x:y:z"] } });
        let refused = self.expect(400, ("PATCH", CONFIG, "", "", wrong));
        assert_eq!(refused["fields"][0]["field"], "portals.listen[0]");
        let monthly = json!({ "scrub_every_days": 30 });
        for query in ["?dry_run=true", ""] {
            let done = self.expect(200, ("PATCH", CONFIG, "", query, monthly.clone()));
            assert_eq!(done["changes"][0]["in_file"], "30", "{done}");
        }
        for query in ["?dry_run=true", ""] {
            self.expect(200, ("POST", RELOAD, "", query, json!(null)));
        }
        self.expect(200, ("POST", RESTART, "", "?dry_run=true", json!(null)));
        self.expect(200, ("POST", RESTART, "", "", json!(null)));
    }
}
