//! The one catalogue of error codes: what the log, the API, the command line and `docs/errors.md`
//! say.
//!
//! A code never changes its meaning and is never used again. The thousands say what it is about: 1
//! configuration, 2 logins, 3 objects, 4 storage and state, 5 the API, 7 volumes as this host uses
//! them, 8 the cluster.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// What the command line exits with; part of the promised interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Failed.
    Failed = 1,
    /// Usage or configuration.
    Usage = 2,
    /// Not found.
    NotFound = 3,
    /// Conflict.
    Conflict = 4,
    /// Refused by a safety check.
    Refused = 5,
    /// Partly done.
    Partly = 6,
    /// The daemon cannot be reached.
    Unreachable = 7,
}

/// What the catalogue says of a code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// What programs compare.
    pub code: Code,
    /// What stands behind `CWY`; it never changes its meaning.
    pub number: u16,
    /// What happened, in a few words.
    pub title: &'static str,
    /// Why it happens.
    pub cause: &'static str,
    /// The next step for the administrator.
    pub next_step: &'static str,
    /// The HTTP status that carries it.
    pub status: u16,
    /// What the command line exits with.
    pub exit: Exit,
}

macro_rules! catalogue {
    ($($name:ident = $number:literal, $status:literal, $exit:ident, $title:literal, $cause:literal, $next:literal;)*) => {
        /// A kind of failure. Prints as `CWY` and its number.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Code {
            $(#[doc = $title] $name = $number,)*
        }

        /// Every code, in order.
        pub const CATALOGUE: &[Entry] = &[
            $(Entry {
                code: Code::$name, number: $number, title: $title, cause: $cause,
                next_step: $next, status: $status, exit: Exit::$exit,
            },)*
        ];
    };
}

catalogue! {
    ConfigSyntax = 1001, 400, Usage, "The file is not valid TOML",
        "A quote, bracket or equals sign is missing or in the wrong place, or a key stands twice.",
        "Correct the line that the message names.";
    ConfigUnknownKey = 1002, 400, Usage, "Unknown key",
        "The file has a key or section that Causeway does not know. Nothing is ignored silently, because a misspelt key would otherwise leave its default in force.",
        "Correct the spelling (the message names the nearest known key), or remove the key.";
    ConfigValue = 1003, 400, Usage, "A value cannot be used",
        "A key has a value of the wrong type or outside its range, or a required key is missing.",
        "Correct the key that the message names.";
    ConfigNotYet = 1004, 400, Usage, "Not in this version yet",
        "The key, command or kind of pool is reserved for a later version and has no effect in this one, so it is refused rather than ignored.",
        "Leave it out, or install a version that has it (see CHANGELOG.md).";
    ConfigUnreadable = 1005, 400, Usage, "The file cannot be read",
        "It does not exist, or the user that runs Causeway may not read it.",
        "Check the path and its permissions.";
    ConfigEnvironment = 1006, 400, Usage, "The configuration does not fit this machine",
        "A directory cannot be made, an address cannot be listened at, or a driver is not available here.",
        "Follow the message: it names the key and what the system said.";
    AlreadyRunning = 1007, 409, Conflict, "Another daemon uses this state directory",
        "Two daemons on one state directory would overwrite each other's objects, so the second one does not start.",
        "Stop the other daemon, or give this one its own state_dir and pools.";
    NoPortal = 1008, 503, Failed, "No portal listens",
        "Not one address of any portal group can be listened at: it is not there yet, or its port is another program's. Hosts reach nothing.",
        "Bring the address up, or free the port (`causeway status` shows the reason of each); it is tried again every second, without a restart.";
    ConfigPlainHttp = 1009, 400, Usage, "The API would be reachable in plain text",
        "An address that other machines reach carries passwords, tokens and answers; over http everybody on the network reads them.",
        "Write https:// before the address (a certificate is made by itself), listen on a loopback address, or say that it is meant: allow_plain_http = true below [api].";

    LoginNoTarget = 2001, 404, NotFound, "Login refused: no such target",
        "The initiator asked for a target name that does not exist here (login status 02h 03h).",
        "Compare the initiator's target name with `causeway target ls`; discover again on the initiator.";
    LoginAuthentication = 2002, 403, Refused, "Login refused: authentication failed",
        "User or secret do not match the host's, no common CHAP algorithm was offered, or the initiator offered no CHAP where the host demands it (login status 02h 01h).",
        "Set the same user and secret on the initiator; `causeway session ls --refused` names which of these it was.";
    LoginNotGranted = 2003, 403, Refused, "Login refused: initiator not granted on the target",
        "Causeway opens nothing by itself: the initiator's name belongs to no host, or that host has no grant on this target (login status 02h 02h).",
        "Create the host with this initiator name and grant it a LUN: `causeway host create NAME --iqn IQN`, `causeway grant create HOST LUN --target TARGET`.";
    LoginOutOfResources = 2004, 503, Failed, "Login refused: out of resources",
        "A limit on sessions or connections is reached, or memory is short (login status 03h 02h).",
        "Look for stale sessions with `causeway session ls` and end them on the initiators, or raise the limit.";
    LoginProtocol = 2005, 400, Failed, "Login refused: the initiator broke the protocol",
        "A login request was malformed or came out of order (login status 02h 00h, or the connection was dropped).",
        "Update the initiator; the refusal's reason names the clause. Please report initiators that should work.";
    LoginTargetRemoved = 2006, 410, NotFound, "Login refused: the target was removed",
        "The target existed and was deleted (login status 02h 04h).",
        "Remove the target's record on the initiator so that it stops trying.";
    LoginUnavailable = 2007, 503, Failed, "Login refused: the service is not available now",
        "The target is in maintenance, the daemon is starting or stopping, or its state is damaged (login status 03h 01h).",
        "See `causeway status`; `causeway target set NAME maintenance=false` ends a maintenance; the initiator tries again by itself.";
    LoginRedirected = 2008, 409, Conflict, "Login sent elsewhere: the target is at another address",
        "The target has a redirect, so the initiator was redirected there (login status 01h 01h or 01h 02h).",
        "Nothing, where the initiator follows. Else `causeway target show NAME` shows where to, and `causeway target set NAME redirect=none` ends it.";

    NotFound = 3001, 404, NotFound, "No such object",
        "Nothing of that kind has this name.",
        "List what there is: `causeway lun ls`, `target ls`, `host ls`, `grant ls`, `session ls`.";
    AlreadyExists = 3002, 409, Conflict, "The name is taken",
        "An object of that kind has this name already.",
        "Choose another name, or change the existing object.";
    InvalidObjects = 3003, 422, Usage, "The objects cannot be applied",
        "At least one object breaks a rule, or refers to one that does not exist. Nothing was changed.",
        "Correct every object that the message lists, then apply again.";
    InUse = 3004, 409, Refused, "Refused: it would disturb sessions",
        "Hosts are using what the change would take away or alter. Nothing was changed.",
        "End the use on the hosts first, or repeat with --yes to do it all the same; --dry-run shows what would be hit.";
    Immutable = 3005, 409, Refused, "It cannot be changed after creation",
        "The property is made once: hosts remember it, or the data depends on it, so changing it would damage what is kept there.",
        "Make a new object with the wanted property and copy the data.";
    KeepsData = 3006, 409, Conflict, "A removed LUN still holds this name and its data",
        "A LUN that was deleted keeps its data until it is purged.",
        "Bring it back with `causeway lun restore NAME`, or destroy it with `causeway lun purge NAME`.";
    SecretMissing = 3007, 422, Usage, "No stored secret to keep",
        "The object says that the stored secret stays, but the daemon has none for this user.",
        "Name a file: chap = { user = \"...\", secret_file = \"...\" }.";
    WouldLoseData = 3008, 409, Refused, "Refused: it would lose data",
        "The change makes a LUN smaller, which cuts off its end, or destroys the data of one that was deleted. Nothing was changed, because that cannot be taken back.",
        "Make sure that nothing needs the data, then repeat with --yes (REST: ?force=true); in a terminal the command asks for the name.";
    WouldRiskData = 3009, 409, Refused, "Refused: acknowledged writes would not be safe",
        "A LUN, a new one or one that is there, would do without the promise that acknowledged writes survive a power cut: cache = \"volatile\" keeps writes in memory until the host flushes.",
        "Choose write-through or write-back, or repeat with --yes where the hosts flush what they need.";
    JournalServes = 3010, 409, Conflict, "The journal is in use",
        "It takes writes, so there is nothing to give up and nothing to open anew.",
        "To do without a journal's speed, set cache = \"write-through\" in its LUNs.";
    WouldLoseWrites = 3011, 409, Refused, "Refused: acknowledged writes would be lost",
        "A journal may hold writes that were acknowledged and are nowhere else. Giving it up loses them, and file systems of hosts may be damaged.",
        "Bring the journal's file or device back, if that can be done in any way. Else repeat with --confirm and the pool's name.";
    JobOver = 3012, 409, Refused, "The job cannot be cancelled any more",
        "It has ended, or all that takes long of it is done and it ends at once.",
        "See what became of it: `causeway job show`; `causeway job wait` waits for its end.";
    PoolGoes = 3013, 409, Refused, "The pool goes with the next restart",
        "Somebody has removed the pool from the node's settings, which comes into force with a restart. A LUN that is made in it now would be offline from then on. Nothing was changed.",
        "Make the LUN in another pool; or add the pool again as it was (`causeway config add-pool NAME --path PATH`), which takes its removal back at once.";

    StateDamaged = 4001, 503, Failed, "The stored objects cannot be loaded",
        "The newest generation in the state directory is unreadable. Causeway exports nothing and saves nothing until this is resolved, because guessing would expose or lose LUNs.",
        "Keep a copy of the state directory. To go back to the generation before, move the file that the message names out of the directory and restart.";
    StateNotSaved = 4002, 507, Failed, "The change could not be saved",
        "Writing the new generation to the state directory failed, so the change was not made.",
        "See what the system said: a full or read-only file system is the usual reason. Restart where the message asks for it.";
    LunOffline = 4003, 503, Failed, "The LUN is offline",
        "Its file or device is missing or does not fit what is stored of it. The LUN keeps its place, number, identity and size.",
        "Bring the file or device back: the LUN is online within seconds, and its size can be changed then. Or delete it.";
    BackingFailed = 4004, 507, Failed, "The LUN's storage could not be made or opened",
        "The system refused to create, open or size the file or device. Nothing was changed.",
        "Follow the message; a full pool and missing permissions are the usual reasons.";
    PoolFull = 4005, 507, Failed, "The pool is full",
        "No space is left where the LUN's blocks would go. Hosts get the standard's answer (DATA PROTECT, 27h 07h) and lose nothing.",
        "Free or add space in the pool's file system.";

    PoolIncomplete = 4006, 503, Failed, "The pool lacks a member",
        "A member is missing, stale, or not what it was. LUNs that have a part on it are not served, because an inconsistent layout would give wrong data.",
        "Bring the member that the message names back; a copy of it is taken only if it is the newest.";
    PoolUnreadable = 4007, 404, Failed, "There is no pool that can be read",
        "What was named does not exist, is no member of a pool, or is damaged, or the members do not belong together.",
        "Name all members of one pool, or the directory of a pool; the message says what stands on each.";

    JournalUnusable = 4008, 503, Failed, "The journal cannot be used",
        "It is missing, another pool's, or damaged where nobody knows whose writes are lost. The LUNs of its pool are offline, and no other journal is made in its place.",
        "Follow the message. A journal that comes back is opened by itself.";

    BlocksDamaged = 4009, 503, Failed, "Blocks are not what was written",
        "A checksum does not fit: the disk has changed blocks, lost a write, or written one elsewhere; or a page of the map of checksums is damaged. Hosts get a medium error for exactly these blocks.",
        "Write each place again as a whole, the 4 KiB around it or, with physical blocks of 512 bytes, the block itself, from a backup or from a host that knows what belongs there (`causeway lun show NAME` lists the places); `causeway scrub start NAME` finds all others. Check the disk.";
    ChecksumsUnwritable = 4010, 503, Failed, "The checksums of a LUN cannot be written",
        "The file that holds them took no write, so that nothing is written to the LUN's backing volume any more: a block whose checksum is not stored would later seem damaged. Reads go on, and so do writes in write-back mode, which the journal keeps as long as it has room; others are refused.",
        "Check the disk and the kernel's log, then restart the daemon. To go on without checksums: `causeway lun set NAME integrity=false`.";
    PoolMissing = 4011, 503, Failed, "The pool is missing",
        "LUNs of the pool are known, and nothing of them lies at its path: its file system is not mounted, or another one is. Nothing is made there, because it would be hidden or lost as soon as the right one is back; its LUNs are offline.",
        "Mount the pool's file system: it is found within seconds, and its LUNs come back by themselves. If it is gone for good, take the pool out of node.toml, restart, and purge its LUNs.";
    StateOlder = 4012, 409, Refused, "The stored objects are older than what the pools have seen",
        "Each pool says which generation of the objects it saw last, and the state directory has an earlier one: it was restored from an older copy. What was changed since (LUNs, grants, secrets) is not known, so that hosts may see what was taken from them, and no change is made on top of it.",
        "Bring the newer state directory back, if there is one. Else read `causeway state ls`, `status` and `lun ls --orphans`, let `causeway state accept --dry-run` say what would be given up, and say that the older objects are meant: `causeway state accept --yes`.";
    RecordsUnreadable = 4013, 503, Failed, "What the node recorded of itself cannot be read",
        "history.db or events.db in the state directory cannot be read or written: the disk is full or failing, or a newer Causeway made the file. LUNs are served all the same, and what happens meanwhile is not recorded.",
        "Do what the message says of the file; `causeway status` names the disk's problem.";

    ImageUnusable = 4014, 422, Failed, "The image cannot be used",
        "It is not there, damaged, of another kind, in use by another program, too small, or its parents do not fit: nothing was changed then. A resize, compact, merge or repair that failed on the way may have changed some of it: the image opens all the same and holds what it held. A parent is in between until its merge has ended; the child still has all.",
        "Follow the message, and repeat what failed on the way. An image has one writer at a time; a parent must be as it was when its child was made.";

    Unreachable = 5001, 503, Unreachable, "The daemon cannot be reached",
        "Nothing answers at the API address.",
        "Start it with `causeway serve --config node.toml`, or name the right address with --api or CAUSEWAY_API.";
    TokenNeeded = 5002, 401, Refused, "A login or a token is needed",
        "Over TCP whoever changes something needs a login or a token, and so does whoever reads. One exception: what the first version had can be read over loopback addresses, unless node.toml says token_for_reads = true. The unix socket needs none: its file permissions protect it.",
        "Log in, or send `Authorization: Bearer TOKEN` (command line: CAUSEWAY_TOKEN_FILE=PATH); `causeway token create` makes one, and one is in the file api.token of the state directory, readable by its owner only.";
    BadRequest = 5003, 400, Usage, "The request cannot be understood",
        "The body is not the JSON that this path takes, or a parameter is unknown.",
        "Compare with the message; the objects and their fields are in docs/interface.md.";
    NoSuchPath = 5004, 404, NotFound, "No such API path",
        "Client and daemon may be of different versions.",
        "Compare `causeway --version` with the version in `causeway status`.";
    Stopping = 5005, 503, Unreachable, "The daemon is stopping",
        "It finishes what is in flight and takes no more requests.",
        "Repeat once it runs again.";
    Internal = 5006, 500, Failed, "Something failed inside Causeway",
        "An error that has no code of its own.",
        "Please report it with the message and the daemon's log.";
    PartlyDone = 5007, 500, Partly, "Done in part",
        "The change is stored and in force, but a following step failed.",
        "See the message; `causeway status` shows what is left to do.";
    WrongMethod = 5008, 405, Usage, "The path does not take this method",
        "The path exists, and the HTTP method is not one of those that it takes.",
        "The answer's Allow header names them.";
    CommandLine = 5009, 400, Usage, "The command line cannot be understood",
        "A command, option or value is unknown, missing, or cannot be used together with another one.",
        "See `causeway help COMMAND`.";
    ChangedMeanwhile = 5010, 412, Conflict, "Somebody else has changed it meanwhile",
        "The request says in If-Match which version it is meant for, and there is another one now, or none. Nothing was changed.",
        "Read the object again, see what has changed, and repeat the request with the ETag of that answer.";
    KeyReused = 5011, 422, Usage, "The Idempotency-Key was another request's",
        "A key names one request: the same path, parameters and body. Nothing was done.",
        "Make a new key for each request, and send the old one only with the request that it was made for.";
    KeyUnderWay = 5012, 409, Conflict, "The request with this Idempotency-Key is being carried out",
        "The same request came before and has no answer yet.",
        "Repeat it with the same key in a moment: its answer comes then.";
    LoginFailed = 5020, 401, Refused, "The login failed",
        "User name or password is wrong, or the user may not log in. Which of them it is, is not said to whoever asks.",
        "Check both. An admin sets a new password with `causeway user set NAME --password-file FILE`; at the node itself, `causeway user ls` through the unix socket needs no password.";
    LoginThrottled = 5021, 429, Refused, "Too many logins failed",
        "Failed logins of this user or from this address come too fast. It is the same for users that do not exist.",
        "Wait as long as the message says, then try again.";
    RoleTooLow = 5022, 403, Refused, "The role does not allow it",
        "Viewers read, operators change objects, and admins change users, tokens and settings as well.",
        "Ask an admin to do it, or for another role: `causeway user set NAME --role ROLE`.";
    PasswordRule = 5023, 422, Usage, "The password cannot be used",
        "A password has 12 characters at least, and is not the user's name. Nothing is asked of the kinds of characters.",
        "Choose a longer one: four words in a row are good.";
    PasswordMustChange = 5024, 403, Refused, "The password must be changed first",
        "Somebody else chose the password of this user, or it is the first one of the node.",
        "Change it in the page, or with PUT /api/v1/me/password; everything else works after that.";
    LastAdmin = 5025, 409, Refused, "It would lock out the last admin",
        "The user is the only one who may log in and may do everything.",
        "Make another admin first: `causeway user create NAME --role admin`.";
    ForeignHost = 5026, 421, Refused, "The request is for another host",
        "Its Host header names neither an address nor a name of this node. A page of somebody else may have made a name lead here.",
        "Use the node's address or name, or add the name to `names` below [api] in node.toml.";
    ForeignOrigin = 5027, 403, Refused, "The request comes from a page of somebody else",
        "Its Origin header names another place than the one that it asks.",
        "Open the node's own page. Programs send no Origin header.";
    CsrfMissing = 5028, 403, Refused, "The change does not show that the page meant it",
        "Changes of a session with a cookie have the header X-Causeway-CSRF with the value that the login gave; it is missing or another one.",
        "Load the page again. Programs use a token: `Authorization: Bearer TOKEN`.";
    BodyTooLarge = 5029, 413, Usage, "The request's body is too large",
        "Nothing that this path takes is so large.",
        "Send less at a time.";
    BodyTooSlow = 5030, 408, Failed, "The request's body did not come in time",
        "The connection is slow or was interrupted, or somebody holds it open.",
        "Send it again.";
    AccountsDamaged = 5031, 503, Failed, "The stored users and tokens cannot be read",
        "The file accounts.json of the state directory is damaged, or of another version. Nothing is written over it, and nobody can log in; the unix socket and the token in api.token work.",
        "Bring the file back from a copy, or move it away and restart: then a first user is made anew.";
    CertificateUnknown = 5032, 502, Unreachable, "The daemon's certificate is not trusted",
        "Over https the client must know whom it talks to, and nothing says that this certificate is the node's.",
        "Give the certificate (--ca FILE; the node's own is api-cert.pem in its state directory), or its fingerprint, which the daemon's log shows (--fingerprint).";
    StreamsTaken = 5033, 429, Failed, "Too many streams are open",
        "A stream of events holds its connection for as long as somebody watches. There is a bound for each address and for the node, so that whoever watches keeps nobody from working.",
        "Close pages and programs that nobody needs, then try again.";
    AlertNotDelivered = 5034, 502, Failed, "A message to a receiver of alerts did not arrive",
        "The receiver cannot be reached, does not take the message, or its program failed. Alerts themselves are sent again until they arrive.",
        "The message says what happened: check address, certificate and password of the receiver, or the program's own output, then `causeway alert receiver test NAME`.";
    JobCancelled = 5035, 409, Failed, "The work was cancelled",
        "Somebody cancelled the job of this change before it came to its end. What was made of it was undone.",
        "Ask for the change again where it is wanted after all; `causeway job show` says who cancelled it.";
    SettingsFixed = 5036, 403, Refused, "The node's settings are not changed through the API",
        "The node's administrator has said so in node.toml: change_settings = false below [api].",
        "Change node.toml on the node, and restart the daemon; `causeway config check` reads it before that.";
    RestartRefused = 5037, 409, Refused, "The daemon would not start again",
        "What node.toml or the changed settings say by now cannot be used, so a restart would leave the SAN down.",
        "Correct what the message names, then ask for the restart again.";
    PoolUsed = 5038, 409, Refused, "LUNs lie in the pool",
        "Without the pool the node could not serve what lies in it, also what was deleted and can still come back. Nothing was changed.",
        "Delete and purge what the message names, after its data was copied where it is wanted; or leave the pool where it is.";
    FirstPassword = 5039, 409, Refused, "The first password has to be changed first",
        "The daemon made the first password, and nobody has changed it. Until then nothing that is set through the API lets other machines reach the node.",
        "Log in at the page as admin and choose a password, or run `causeway user set admin --password` on the node; then repeat it.";

    BenchUsage = 7001, 400, Usage, "The bench's options cannot be used",
        "An option is unknown, out of range, or does not fit the target. `causeway bench` takes diskspd's options, with values right behind their letter.",
        "Correct the option that the message names; `causeway bench --help` lists all.";
    BenchWouldDestroy = 7002, 409, Refused, "Refused: it is not a bench LUN",
        "The run would write to a file, device or LUN that does not carry the bench's mark, so what is on it would be lost.",
        "Make sure that nothing needs what is there, then repeat with --destroy, which marks it; or measure reads only (-w0).";
    TargetCannotBeOpened = 7003, 404, NotFound, "The volume cannot be opened",
        "The file, device or URL does not exist, is in use, or does not answer.",
        "Follow the message.";
    BenchFailed = 7004, 500, Failed, "The run did not go well",
        "Operations failed or never came back, or data that was read back is wrong. The result was printed all the same.",
        "The result names the first failure, and the first blocks that are wrong.";
    VolumeUsage = 7005, 400, Usage, "The volume's URL or an option of the initiator cannot be used",
        "The URL is not of the form iscsi://HOST[:PORT][,HOST[:PORT]...]/IQN/LUN, or an option or a file that it names is wrong.",
        "Follow the message.";
    VolumeUnreachable = 7006, 503, Failed, "No path to the volume works",
        "No portal of the target answers, it refuses the login, or the paths show different units.",
        "The message has every path's own reason; `causeway path plan URL` shows which paths there should be.";
    ExportSocket = 7007, 409, Conflict, "The export's socket cannot be made",
        "Another process listens at the path, something else is there, or the directory cannot be written.",
        "Choose another path, or end the process that listens there. A socket that a dead process left behind is replaced by itself.";
    StoppedInFlight = 7008, 500, Failed, "Stopped with operations in flight",
        "No path carried them to their end in time. None of them was acknowledged to the programs that asked.",
        "Check what was written last, as after a crash of the program that wrote; what was acknowledged is safe.";
    ProofNotTaken = 7009, 403, Failed, "The target does not take the proof of who we are",
        "The target can be reached, and refuses user or secret (CHAP): 0201h. A portal or target that is not there has another code.",
        "Compare user and secret on both sides: --chap USER:FILE here; on a Causeway, `causeway host show NAME` has the user, and `causeway session ls --refused` what was wrong.";

    LabUsage = 7101, 400, Usage, "There is no such test, fault or group in the lab",
        "A name behind `causeway lab` is not one of those that it has.",
        "Take one of the names in the message.";
    LabNotHere = 7102, 501, Failed, "This machine cannot have a lab",
        "A lab makes network namespaces, veth pairs, bridges and tbf queues, which takes root, iproute2 and a kernel that has them.",
        "Run it as root where the kernel has what the message names; nothing was left behind.";
    LabFailed = 7103, 500, Failed, "The lab did not end well",
        "A program in the lab failed or did not end, or the lab was interrupted. What it had built is removed.",
        "Follow the message; `causeway lab up` builds the same by hand.";
    DoctorFound = 7201, 500, Failed, "The doctor found problems",
        "A point of best practice is not kept in a way that costs data, access or most of the speed.",
        "The report names each with its cause and remedy; it was printed in full.";

    ClusterNotConfigured = 8001, 400, Usage, "No cluster is configured on this node",
        "node.toml has no [cluster], or not all that is needed there. A cluster keeps its records in etcd, which decides who may serve a LUN: without it two nodes could both go on alone.",
        "Install etcd (on three machines, of which two may be the nodes), write [cluster] with etcd and listen into node.toml, and restart.";
    ClusterNone = 8002, 409, Conflict, "This node is in no cluster",
        "It has neither made one nor joined one, or has left it.",
        "Make one (`causeway cluster init NAME`), or join one with a token (`causeway cluster join FILE`).";
    ClusterMember = 8003, 409, Conflict, "A node is in one cluster, once",
        "This node is in a cluster already, etcd has another cluster below the prefix, or the cluster has a node with this node's identifier.",
        "`causeway cluster status` says who is in it. A node that shall be in another one leaves first (`causeway cluster leave`).";
    ClusterToken = 8004, 403, Refused, "The token is not good",
        "It was used already, has ended, is of another cluster, or is not whole. A token lets one node join, once.",
        "Have another one made: `causeway cluster token` on a node of the cluster.";
    ClusterJoinRefused = 8005, 409, Refused, "The node does not fit into the cluster",
        "Clock, version, name, address, ring counts or identities of LUNs do not fit those of the cluster. Nothing was changed, and the token stays good.",
        "Follow the message: it has both sides and the next step.";
    ClusterPeer = 8006, 503, Failed, "Another node is not reached, or not believed",
        "It is not there, is not of this cluster, has left it, runs twice, or shows another certificate than the cluster knows of it.",
        "Follow the message: it names the node and what it showed.";
    ClusterArbiter = 8007, 503, Failed, "The cluster's records are not to be had",
        "etcd does not answer, does not believe this node, or says what contradicts what is known: it is another one, was emptied, or was restored from an old backup. Nodes go on with what they know; nobody joins or leaves.",
        "Follow the message: it names the member and the next step.";
    ClusterNeeded = 8008, 409, Refused, "The node is needed",
        "It has copies of LUNs, is the last one of the cluster, or answers and could leave by itself.",
        "Move its copies away first; `--force` leaves although what is listed is lost.";
    ClusterState = 8009, 503, Failed, "What this node keeps of its cluster cannot be used",
        "A file of the state directory is damaged, missing or cannot be written. LUNs are served all the same.",
        "Check the disk. If the file is lost, have another node remove this one (`causeway cluster leave --node NAME`), remove the files cluster*.json here, restart, and join anew.";
    MirrorRefused = 8010, 409, Refused, "The copies of the LUN are not changed so",
        "A copy that would go is the last one with all of it, a node in sync answers and would lose what it has, the copy here is not complete, or there are as many copies as a LUN may have. Nothing was changed.",
        "`causeway lun show` says which nodes have all of it; follow the message.";
}

impl Code {
    /// What the catalogue says of it.
    ///
    /// # Panics
    /// Never: the table and the enumeration come from one list.
    #[must_use]
    pub fn entry(self) -> &'static Entry {
        CATALOGUE
            .iter()
            .find(|entry| entry.code == self)
            .expect("enum and table come from one list")
    }

    /// The code that `text` names: `CWY2003`, `cwy2003` or `2003`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let upper = text.to_ascii_uppercase();
        let number = upper.strip_prefix("CWY").unwrap_or(&upper).parse().ok();
        CATALOGUE
            .iter()
            .find(|entry| Some(entry.number) == number)
            .map(|entry| entry.code)
    }

    /// The code for a login that ended with this status class and detail (RFC 7143 11.13.5
    /// "Status-Class and Status-Detail").
    #[must_use]
    pub fn of_login_status(class: u8, detail: u8) -> Self {
        match (class, detail) {
            (1, _) => Self::LoginRedirected,
            (2, 1) => Self::LoginAuthentication,
            (2, 2) => Self::LoginNotGranted,
            (2, 3) => Self::LoginNoTarget,
            (2, 4) => Self::LoginTargetRemoved,
            (2, 6) | (3, 2) => Self::LoginOutOfResources,
            (3, _) => Self::LoginUnavailable,
            _ => Self::LoginProtocol,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CWY{}", self.entry().number)
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        // A newer daemon may have codes that this client does not know.
        Ok(Self::parse(&text).unwrap_or(Self::Internal))
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use markdown::{MarkdownTable, paragraph};
    use std::fmt::Write as _;

    /// The text of `docs/errors.md`.
    fn document() -> String {
        let mut out = String::from(
            "# Error codes\n\n\
             Made from the catalogue in the code; a test keeps both equal. `causeway explain CODE` prints the same without a\n\
             daemon. A code never changes its meaning. The thousands say what it is about:\n\n",
        );
        let mut parts = MarkdownTable::new(&["Codes", "What they speak of"]);
        for (codes, what) in [
            ("CWY1...", "configuration and portals"),
            ("CWY2...", "logins"),
            ("CWY3...", "objects"),
            ("CWY4...", "storage and state"),
            ("CWY5...", "the API and the command line"),
            (
                "CWY7...",
                "volumes as this host uses them: bench, attach, paths, lab, doctor",
            ),
            ("CWY8...", "the cluster and its nodes"),
        ] {
            parts.row(&[codes, what]);
        }
        out.push_str(&parts.into_text());
        out.push_str("\n## All codes\n\n");
        let mut all = MarkdownTable::new(&["Code", "What happened", "Exit code", "HTTP status"]);
        for entry in CATALOGUE {
            let code = entry.code.to_string();
            let link = format!("[{code}](#{})", code.to_lowercase());
            let (exit, status) = ((entry.exit as u8).to_string(), entry.status.to_string());
            all.row(&[&link, entry.title, &exit, &status]);
        }
        out.push_str(&all.into_text());
        for entry in CATALOGUE {
            // Writing to a String cannot fail.
            let _ = write!(
                out,
                "\n## {}\n\n{}\n{}",
                entry.code,
                paragraph(&format!("**{}.** {}", entry.title, entry.cause), ""),
                paragraph(&format!("**Next step.** {}", entry.next_step), "")
            );
        }
        out
    }

    #[test]
    fn the_document_of_error_codes_is_what_the_catalogue_says() {
        crate::golden::assert_page("docs/errors.md", &document());
    }

    #[test]
    fn codes_are_unique_ordered_and_found_by_any_spelling() {
        for pair in CATALOGUE.windows(2) {
            assert!(pair[0].number < pair[1].number, "{pair:?}");
        }
        for entry in CATALOGUE {
            assert_eq!(Code::parse(&entry.code.to_string()), Some(entry.code));
            assert_eq!(Code::parse(&entry.number.to_string()), Some(entry.code));
            assert!((400..600).contains(&entry.status), "{entry:?}");
        }
        assert_eq!(Code::parse("cwy2003"), Some(Code::LoginNotGranted));
        assert_eq!(Code::parse("CWY9999"), None);
    }
}
