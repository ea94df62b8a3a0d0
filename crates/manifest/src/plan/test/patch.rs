//! A part of one object changes.

use super::*;
use crate::objects::{Patch, PatchOf};
use serde_json::{Value, json};

fn host_patch(now: &Objects, patch: Value) -> Result<Objects, Problem> {
    let edit = Edit::Patch(Patch {
        name: "esx01".to_owned(),
        what: PatchOf::Host(serde_json::from_value(patch).unwrap()),
    });
    Ok(run(now, &edit)?.after)
}

#[test]
fn secrets_that_a_patch_does_not_name_stay_and_what_is_null_goes() {
    let secret = |text: &str| Secret::new(text.as_bytes().to_vec());
    let mut set = lab();
    set.host[0].chap = Some(ChapSpec {
        user: "esx01".to_owned(),
        secret: SecretSpec::Value(secret("a long secret")),
        mutual_user: Some("san".to_owned()),
        mutual_secret: Some(SecretSpec::Value(secret("another secret"))),
    });
    set.host[0].bytes_in_flight_max = Some(gib(1));
    let now = run(&stored(), &apply(set)).unwrap().after;
    let known = &now.hosts["esx01"];
    assert_eq!(host_patch(&now, json!({})).unwrap(), now);
    let other = host_patch(&now, json!({ "chap": { "user": "other" } })).unwrap();
    let mut wanted = known.clone();
    "other".clone_into(&mut wanted.chap.as_mut().unwrap().user);
    assert_eq!(other.hosts["esx01"], wanted);
    let one_way = json!({ "chap": { "mutual_user": null, "mutual_secret": null } });
    let one_way = host_patch(&now, one_way).unwrap();
    let mut wanted = known.clone();
    wanted.chap.as_mut().unwrap().mutual = None;
    assert_eq!(one_way.hosts["esx01"], wanted);
    let none = host_patch(&now, json!({ "chap": null, "bytes_in_flight_max": 0 })).unwrap();
    let host = &none.hosts["esx01"];
    assert_eq!((&host.chap, host.bytes_in_flight_max), (&None, None));
    assert_eq!(host.iqn, known.iqn);
    let missing = host_patch(&none, json!({ "chap": { "user": "other" } }));
    assert_eq!(missing.unwrap_err().code, Code::SecretMissing);
}
