//! `causeway api`: any path, for scripts.

use crate::place::{Place, text_of};
use serde_json::{Value, json};

#[test]
fn any_path_of_the_api_is_asked_from_a_shell() {
    let place = Place::new("api");
    let daemon = place.start();
    // Not what it is: a disk of this machine with little room makes it another one.
    let status = place.json("status");
    assert!(status["health"].is_string(), "{status}");
    assert_eq!(place.json("api get status")["health"], status["health"]);
    assert_eq!(place.run(0, "api GET /healthz"), "ok\n");
    assert_eq!(place.json("api GET openapi.json")["openapi"], "3.1.1");
    place.write("lun.json", "{ \"name\": \"a\", \"size\": \"1G\" }");
    let planned = place.json("api POST luns lun.json --dry-run");
    assert_eq!(planned["changed"], false, "{planned}");
    assert_eq!(place.json("api POST luns lun.json")["changed"], true);
    let words = ["api", "PATCH", "luns/a", "-"];
    let output = place.run_with(&place.api(), &words, "{ \"shares\": 7 }");
    let changed: Value = serde_json::from_str(&text_of(&output, 0, "patch")).unwrap();
    assert_eq!(changed["changed"], true, "{changed}");
    assert_eq!(place.json("api GET /api/v1/luns/a")["shares"], json!(7));
    // Exit codes and errors are those of any command.
    let refused = place.run(3, "api GET luns/none");
    assert!(refused.contains("error[CWY3001]"), "{refused}");
    let refused = place.run(4, "api POST luns lun.json");
    assert!(refused.contains("error[CWY3002]"), "{refused}");
    place.run(2, "api TRACE status");
    place.run(2, "api POST luns none.json");
    daemon.stop();
    place.run(7, "api GET status");
}
