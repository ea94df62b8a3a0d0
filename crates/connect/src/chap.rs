//! What each kind of client needs for CHAP. Secrets come from files on the client, never from here,
//! and go into no command line where the client has another way: a file needs no answer in the
//! middle of what is pasted.

use crate::export::Export;
use std::fmt::Write as _;

/// A host's CHAP as the blocks speak of it.
pub(super) struct Chap<'a> {
    user: &'a str,
    /// The user that the target names, where it proves itself, too.
    mutual: Option<&'a str>,
}

/// The file with the host's secret, as the blocks call it.
const SECRET: &str = "chap.secret";
/// The file with the target's.
const MUTUAL: &str = "mutual.secret";

impl<'a> Chap<'a> {
    /// That of the export's host, where it has any.
    pub(super) fn of(export: &'a Export<'_>) -> Option<Self> {
        let chap = export.host.chap.as_ref()?;
        Some(Self {
            user: &chap.user,
            mutual: chap.mutual_user.as_deref(),
        })
    }

    /// Says which files to make.
    fn files(&self, out: &mut String) {
        let host = format!("{SECRET} (of user {})", self.user);
        let both = self.mutual.map_or(host.clone(), |mutual| {
            format!("{host} and {MUTUAL} (the target's own, of user {mutual})")
        });
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "# CHAP: first put the secret into a file of its own here, one line, for nobody else to read: {both}"
        );
    }

    /// Discovery and sessions take the settings that stand in iscsid.conf when a target is
    /// discovered.
    pub(super) fn linux(&self) -> String {
        let mut out = String::new();
        self.files(&mut out);
        out.push_str(
            "# (these become the defaults of this host for every target that it discovers from now on)\n",
        );
        out.push_str("cat >> /etc/iscsi/iscsid.conf <<END\n");
        for place in ["discovery.sendtargets.auth", "node.session.auth"] {
            let _ = writeln!(out, "{place}.authmethod = CHAP");
            let _ = writeln!(out, "{place}.username = {}", self.user);
            let _ = writeln!(out, "{place}.password = $(cat {SECRET})");
            if let Some(mutual) = self.mutual {
                let _ = writeln!(out, "{place}.username_in = {mutual}");
                let _ = writeln!(out, "{place}.password_in = $(cat {MUTUAL})");
            }
        }
        out.push_str("END\nchmod 600 /etc/iscsi/iscsid.conf\n");
        out
    }

    /// Lines before the connection, and the options of the commands that make it.
    pub(super) fn windows(&self) -> (String, String) {
        let mut out = String::new();
        self.files(&mut out);
        out.push_str("# (Windows takes secrets of 12 to 16 bytes)\n");
        let _ = writeln!(
            out,
            "$secret = Get-Content -LiteralPath {SECRET} -TotalCount 1"
        );
        let mut kind = "ONEWAYCHAP";
        if self.mutual.is_some() {
            kind = "MUTUALCHAP";
            let _ = writeln!(
                out,
                "Set-IscsiChapSecret -ChapSecret (Get-Content -LiteralPath {MUTUAL} -TotalCount 1)"
            );
        }
        let options = format!(
            " -AuthenticationType {kind} -ChapUsername '{}' -ChapSecret $secret",
            self.user
        );
        (out, options)
    }

    /// esxcli has no other way than its arguments.
    pub(super) fn esxi(&self) -> String {
        let mut out = String::new();
        self.files(&mut out);
        out.push_str(
            "# esxcli takes secrets as arguments only, which other shells of this ESXi can see meanwhile; the vSphere Client asks in a form\n",
        );
        let mut set = |direction: &str, user: &str, file: &str| {
            let _ = writeln!(
                out,
                "esxcli iscsi adapter auth chap set --adapter=$ADAPTER --direction={direction} --level=required \
                 --authname={user} --secret=\"$(cat {file})\""
            );
        };
        set("uni", self.user, SECRET);
        if let Some(mutual) = self.mutual {
            set("mutual", mutual, MUTUAL);
        }
        out
    }

    /// Lines before the options, the object that they name, and what `-drive` says of it.
    pub(super) fn qemu(&self) -> (String, String, String) {
        let mut out = String::new();
        let host_only = Self {
            user: self.user,
            mutual: None,
        };
        host_only.files(&mut out);
        if self.mutual.is_some() {
            out.push_str(
                "# QEMU's driver cannot ask the target to prove itself: the login is one-way\n",
            );
        }
        let object = format!("-object secret,id=chap,file={SECRET} ");
        (
            out,
            object,
            format!(",user={},password-secret=chap", self.user),
        )
    }
}
