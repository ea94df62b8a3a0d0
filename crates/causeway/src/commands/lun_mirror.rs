//! `causeway lun mirror ...`.

use super::context::{Context, object_path};
use clap::Subcommand;
use engine::{MirrorOp, MirrorRequest, MirrorView};
use hyper::Method;
use manifest::problem::Problem;

/// What to do with the copies of a LUN.
#[derive(Subcommand, Debug)]
pub(crate) enum MirrorVerb {
    /// Give a node a copy: it is made while hosts go on, and takes over once it has all of it
    #[command(alias = "create")]
    Add {
        /// The LUN
        name: String,
        /// The node
        node: String,
    },
    /// Have a node have no copy any more; what it has is set aside there until `lun purge`
    #[command(aliases = ["rm", "delete"])]
    Remove {
        /// The LUN
        name: String,
        /// The node
        node: String,
    },
    /// Have this node go on with its copy alone, where all nodes that had everything are gone for
    /// good: says what may be lost, and does it with --lose
    Promote {
        /// The LUN
        name: String,
        /// What this node lacks may be lost
        #[arg(long)]
        lose: bool,
    },
}

pub(crate) fn run(context: &Context<'_>, verb: &MirrorVerb) -> Result<(), Problem> {
    let (name, operation, node, lose) = match verb {
        MirrorVerb::Add { name, node } => (name, MirrorOp::Add, Some(node), false),
        MirrorVerb::Remove { name, node } => (name, MirrorOp::Remove, Some(node), false),
        MirrorVerb::Promote { name, lose } => (name, MirrorOp::Promote, None, *lose),
    };
    let request = MirrorRequest::new(operation, node.cloned(), lose);
    let dry_run = context.is_dry_run();
    let path = format!("{}/mirror?dry_run={dry_run}", object_path("lun", name));
    let view: MirrorView = context.client.send(Method::POST, &path, &request)?;
    context.output.show(&view, |view| view.page(dry_run));
    Ok(())
}
