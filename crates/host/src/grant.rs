//! What to say where a target does not let this host in: who it is, and what to run on the target.

use crate::url::Url;

/// What Causeway's derived iSCSI names begin with; the target's own name follows.
const DERIVED: &str = "iqn.2026-11.io.causeway:";

/// Names this host, and the command that grants it the unit on a Causeway target.
pub(crate) fn ask_for(url: &Url, initiator: &str) -> String {
    let number = url.lun;
    let command = match url.iqn.strip_prefix(DERIVED) {
        // As `causeway share create` makes them, the LUN has the target's name.
        Some(name) if !name.contains(':') => format!(
            "causeway grant create {initiator} {name} --target {name} --lun-id {number} (where the LUN is called {name}, too)"
        ),
        _ => format!("causeway grant create {initiator} LUN --target TARGET --lun-id {number}"),
    };
    format!(
        "this host is {initiator}; on the target run (Causeway): {command}; `causeway session ls --refused` there says what was refused"
    )
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn the_command_names_this_host_the_target_and_the_number() {
        let url: Url = "iscsi://10.0.0.1/iqn.2026-11.io.causeway:vm01/3"
            .parse()
            .unwrap();
        let reported = ask_for(&url, "iqn.2026-11.com.example:me");
        assert!(
            reported.contains(
                "causeway grant create iqn.2026-11.com.example:me vm01 --target vm01 --lun-id 3"
            ),
            "{reported}"
        );
        let url: Url = "iscsi://10.0.0.1/iqn.2001-04.com.example:x/0"
            .parse()
            .unwrap();
        let reported = ask_for(&url, "iqn.a:b");
        assert!(
            reported.contains("grant create iqn.a:b LUN --target TARGET --lun-id 0"),
            "{reported}"
        );
    }
}
