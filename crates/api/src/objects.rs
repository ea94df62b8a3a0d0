//! The paths of LUNs, targets, hosts and grants.

use crate::answer::{Answer, WithTag};
use crate::describe::Paths;
use crate::edit::{Outcome, ask, edit};
use crate::fields::Body;
use crate::listing::{Listed, Listing};
use crate::parts::{Change, DryRun, Named, Wanted};
use crate::records::Records;
use accounts::Principal;
use axum::extract::{Extension, State};
use controller::Handle;
use manifest::code::Code;
use manifest::objects::{
    GrantPatch, GrantSpec, HostPatch, HostSpec, LunPatch, LunSpec, ObjectSet, Patch, PatchOf,
    TargetPatch, TargetSpec,
};
use manifest::plan::{Edit, Section, Subject};
use manifest::problem::{FieldFault, Problem};
use manifest::scrub::{ScrubFacts, ScrubOp};
use manifest::tag::Tagged;
use manifest::view::{GrantView, HostView, LunView, TargetView};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn paths(paths: Paths) -> Paths {
    paths
        .with(of_luns)
        .at_once(of_targets)
        .at_once(of_hosts)
        .at_once(of_grants)
}

/// What is new has no name in its path. What it names that is not there is a fault of the body.
const OF_NAMES: &[Code] = &[Code::NotFound];

/// Nothing is written of what goes.
const OF_BODIES: &[Code] = &[Code::InvalidObjects, Code::SecretMissing];

fn of_luns(paths: Paths) -> Paths {
    paths
        .get(
            "/api/v1/luns",
            "all LUNs; `removed` adds those that were deleted",
            luns,
        )
        .but(OF_NAMES, |paths| {
            paths.post("/api/v1/luns", "makes a LUN", create_lun)
        })
        .get("/api/v1/luns/{name}", "one LUN", lun)
        .patch(
            "/api/v1/luns/{name}",
            "changes the fields that are named: `lun set`",
            patch_lun,
        )
        .at_once(|paths| paths.but(OF_BODIES, delete_of_lun))
        .post("/api/v1/luns/{name}/resize", "another size", resize_lun)
        .at_once(|paths| {
            paths
                .post("/api/v1/luns/{name}/rename", "another name", rename_lun)
                .post(
                    "/api/v1/luns/{name}/restore",
                    "brings a deleted one back, with its grants",
                    restore_lun,
                )
        })
        .post(
            "/api/v1/luns/{name}/purge",
            "gives the data of a deleted one up",
            purge_lun,
        )
        .get("/api/v1/luns/{name}/scrub", "its scrub", scrub)
        .post(
            "/api/v1/luns/{name}/scrub",
            "starts or stops its scrub",
            set_scrub,
        )
        .or(&[Code::LunOffline])
}

fn delete_of_lun(paths: Paths) -> Paths {
    paths.delete(
        "/api/v1/luns/{name}",
        "deletes it; its data waits for `restore`",
        delete_lun,
    )
}

fn of_targets(paths: Paths) -> Paths {
    paths
        .get("/api/v1/targets", "all targets", targets)
        .but(OF_NAMES, |paths| {
            paths.post("/api/v1/targets", "makes a target", create_target)
        })
        .get("/api/v1/targets/{name}", "one target", target)
        .put(
            "/api/v1/targets/{name}",
            "the whole target anew",
            set_target,
        )
        .patch(
            "/api/v1/targets/{name}",
            "changes the fields that are named",
            patch_target,
        )
        .but(OF_BODIES, |paths| {
            paths.delete("/api/v1/targets/{name}", "deletes it", delete_target)
        })
        .post(
            "/api/v1/targets/{name}/rename",
            "another name",
            rename_target,
        )
}

fn of_hosts(paths: Paths) -> Paths {
    paths
        .get("/api/v1/hosts", "all hosts", hosts)
        .but(OF_NAMES, |paths| {
            paths.post("/api/v1/hosts", "makes a host", create_host)
        })
        .get("/api/v1/hosts/{name}", "one host", host)
        .put("/api/v1/hosts/{name}", "the whole host anew", set_host)
        .patch(
            "/api/v1/hosts/{name}",
            "changes the fields that are named",
            patch_host,
        )
        .but(OF_BODIES, |paths| {
            paths.delete("/api/v1/hosts/{name}", "deletes it", delete_host)
        })
        .post("/api/v1/hosts/{name}/rename", "another name", rename_host)
}

fn of_grants(paths: Paths) -> Paths {
    paths
        .get("/api/v1/grants", "all grants", grants)
        .but(OF_NAMES, |paths| {
            paths.post("/api/v1/grants", "makes a grant", create_grant)
        })
        .get(
            "/api/v1/grants/{name}",
            "one grant, named `HOST:TARGET:LUN`",
            grant,
        )
        .put("/api/v1/grants/{name}", "the whole grant anew", set_grant)
        .patch(
            "/api/v1/grants/{name}",
            "changes the fields that are named",
            patch_grant,
        )
        .but(OF_BODIES, |paths| {
            paths.delete(
                "/api/v1/grants/{name}",
                "takes the right away",
                delete_grant,
            )
        })
}

async fn luns(State(handle): State<Handle>, listing: Listing<LunView>) -> Listed<LunView> {
    let removed = listing.more;
    if !listing.names.is_empty() {
        let names = listing.names.clone();
        let rows = ask!(handle, |controller| controller
            .luns_named(removed, &names)
            .await);
        return listing.show(rows);
    }
    let rows = ask!(handle, |controller| {
        let tag = controller.tag(&Tagged::Section(Section::Lun));
        (tag, controller.luns(removed).await)
    });
    listing.show_tagged(rows)
}

async fn lun(State(handle): State<Handle>, Named(name): Named) -> WithTag<LunView> {
    WithTag(ask!(handle, |controller| {
        let tag = controller.tag(&one(Section::Lun, &name));
        let shown = controller.lun(&name).await;
        shown.map(|shown| (tag, shown))
    }))
}

async fn restore_lun(State(handle): State<Handle>, Named(name): Named, change: Change) -> Outcome {
    edit(&handle, change, Edit::Restore(name), Body::None).await
}

async fn purge_lun(State(handle): State<Handle>, Named(name): Named, change: Change) -> Outcome {
    edit(&handle, change, Edit::Purge(name), Body::None).await
}

async fn scrub(State(handle): State<Handle>, Named(name): Named) -> Answer<ScrubFacts> {
    let facts = ask!(handle, |controller| controller.scrub(&name, None).await);
    Answer(facts.and_then(|facts| facts))
}

/// What shall become of a scrub.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScrubRequest {
    /// What to do.
    operation: ScrubOp,
}

async fn set_scrub(
    State(handle): State<Handle>,
    Extension(principal): Extension<Principal>,
    Named(name): Named,
    DryRun(dry_run, _): DryRun,
    Wanted(ScrubRequest { operation }): Wanted<ScrubRequest>,
) -> Answer<ScrubFacts> {
    let facts = ask!(handle, |controller| {
        if dry_run {
            controller.scrub_later(&name, operation).await
        } else {
            let asked = Some((operation, &*principal.name));
            controller.scrub(&name, asked).await
        }
    });
    Answer(facts.and_then(|facts| facts))
}

/// The new name of an object.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewName {
    /// The new name.
    to: String,
}

macro_rules! patches {
    ($($patch:ident: $body:ty => $wrap:expr),*) => {
        $(async fn $patch(
            State(handle): State<Handle>,
            Named(name): Named,
            change: Change,
            Wanted(patch): Wanted<$body>,
        ) -> Outcome {
            let what = $wrap(patch);
            edit(&handle, change, Edit::Patch(Patch { name, what }), Body::One).await
        })*
    };
}

patches!(
    patch_lun: Box<LunPatch> => PatchOf::Lun,
    resize_lun: Box<LunPatch> => PatchOf::Lun,
    patch_target: TargetPatch => PatchOf::Target,
    patch_host: HostPatch => PatchOf::Host,
    patch_grant: GrantPatch => PatchOf::Grant
);

macro_rules! named_edits {
    ($section:expr, $delete:ident $(, $rename:ident)?) => {
        async fn $delete(
            State(handle): State<Handle>,
            Named(name): Named,
            change: Change,
        ) -> Outcome {
            let section = $section;
            let remove = Edit::Remove(Subject { section, name });
            edit(&handle, change, remove, Body::None).await
        }
        $(async fn $rename(
            State(handle): State<Handle>,
            Named(name): Named,
            change: Change,
            Extension(records): Extension<Records>,
            Wanted(NewName { to }): Wanted<NewName>,
        ) -> Outcome {
            let section = $section;
            let subject = Subject { section, name };
            let rename = Edit::Rename { subject: subject.clone(), to: to.clone() };
            let done = edit(&handle, change, rename, Body::None).await;
            if matches!(&done, Outcome::Done(Ok(done)) if done.changed) {
                records.renamed(&subject, &to);
            }
            done
        })?
    };
}

named_edits!(Section::Lun, delete_lun, rename_lun);
named_edits!(Section::Target, delete_target, rename_target);
named_edits!(Section::Host, delete_host, rename_host);
named_edits!(Section::Grant, delete_grant);

fn one(section: Section, name: &str) -> Tagged {
    let name = name.to_owned();
    Tagged::One(Subject { section, name })
}

/// A set of one object.
trait Alone: Sized {
    /// Its name, as its path has it.
    fn name(&self) -> String;
    /// The set.
    fn alone(self) -> ObjectSet;
}

macro_rules! alone {
    ($($spec:ty, $member:ident, |$it:ident| $name:expr;)*) => {
        $(impl Alone for $spec {
            fn name(&self) -> String {
                let $it = self;
                $name
            }

            fn alone(self) -> ObjectSet {
                ObjectSet {
                    $member: vec![self],
                    ..ObjectSet::default()
                }
            }
        })*
    };
}

alone!(
    LunSpec, lun, |it| it.name.clone();
    TargetSpec, target, |it| it.name.clone();
    HostSpec, host, |it| it.name.clone();
    GrantSpec, grant, |it| {
        let target = it.target.as_deref().unwrap_or_default();
        format!("{}:{target}:{}", it.host, it.lun)
    };
);

/// Sets an object, which must be the one in the path.
async fn set(handle: &Handle, change: Change, name: &str, wanted: impl Alone) -> Outcome {
    let body = wanted.name();
    if name != body {
        let detail = format!("the path names \"{name}\" and the body \"{body}\"");
        let message = format!("write \"{name}\", or name another object in the path");
        let field = "name".to_owned();
        let fields = vec![FieldFault { field, message }];
        return Outcome::Done(Err(Problem::new(Code::BadRequest, detail).fields(fields)));
    }
    edit(handle, change, Edit::Set(wanted.alone()), Body::One).await
}

macro_rules! made_and_set {
    ($($spec:ty: $create:ident $(, $set:ident)?;)*) => {
        $(async fn $create(
            State(handle): State<Handle>,
            change: Change,
            Wanted(wanted): Wanted<$spec>,
        ) -> Outcome {
            edit(&handle, change, Edit::Create(wanted.alone()), Body::One).await
        }
        $(async fn $set(
            State(handle): State<Handle>,
            Named(name): Named,
            change: Change,
            Wanted(wanted): Wanted<$spec>,
        ) -> Outcome {
            set(&handle, change, &name, wanted).await
        })?)*
    };
}

made_and_set!(
    LunSpec: create_lun;
    TargetSpec: create_target, set_target;
    HostSpec: create_host, set_host;
    GrantSpec: create_grant, set_grant;
);

async fn targets(State(handle): State<Handle>, listing: Listing<TargetView>) -> Listed<TargetView> {
    let rows = ask!(handle, |controller| {
        let tag = controller.tag(&Tagged::Section(Section::Target));
        (tag, controller.targets().await)
    });
    listing.show_tagged(rows)
}

async fn target(State(handle): State<Handle>, Named(name): Named) -> WithTag<TargetView> {
    WithTag(ask!(handle, |controller| {
        let tag = controller.tag(&one(Section::Target, &name));
        let shown = controller.target(&name).await;
        shown.map(|shown| (tag, shown))
    }))
}

async fn hosts(State(handle): State<Handle>, listing: Listing<HostView>) -> Listed<HostView> {
    let rows = ask!(handle, |controller| {
        let tag = controller.tag(&Tagged::Section(Section::Host));
        (tag, controller.hosts().await)
    });
    listing.show_tagged(rows)
}

async fn host(State(handle): State<Handle>, Named(name): Named) -> WithTag<HostView> {
    WithTag(ask!(handle, |controller| {
        let tag = controller.tag(&one(Section::Host, &name));
        let shown = controller.host(&name).await;
        shown.map(|shown| (tag, shown))
    }))
}

async fn grants(State(handle): State<Handle>, listing: Listing<GrantView>) -> Listed<GrantView> {
    let rows = ask!(handle, |controller| {
        let tag = controller.tag(&Tagged::Section(Section::Grant));
        (tag, controller.grants())
    });
    listing.show_tagged(rows)
}

async fn grant(State(handle): State<Handle>, Named(name): Named) -> WithTag<GrantView> {
    WithTag(ask!(handle, |controller| {
        let tag = controller.tag(&one(Section::Grant, &name));
        let shown = controller.grant(&name);
        shown.map(|shown| (tag, shown))
    }))
}
