//! Pools that node.toml names by a path: a directory, which is made where it is missing, or a block
//! device, which is a pool of one member.

use super::{directory, members};
use crate::backend::door::{Pool, Work};
use crate::inner::Inner;
use env::PathKind;
use manifest::code::Code;
use manifest::config::{self, Layout};
use manifest::objects::Objects;
use manifest::problem::Problem;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Opens one at the start, by its number in node.toml.
pub(crate) fn open<'a>(
    node: &'a Rc<Inner>,
    (index, pool): (usize, &'a config::Pool),
    path: &'a PathBuf,
    objects: &'a Rc<Objects>,
) -> Work<'a, Result<Rc<dyn Pool>, Problem>> {
    Box::pin(async move {
        let kind = node.core.files().kind(path);
        let kind = node.ask(format!("{}: what it is", pool.name), kind).await;
        match kind {
            Some(Ok(PathKind::Block)) => {
                let members = std::slice::from_ref(path);
                members::open(node, pool, (members, Layout::Span), objects).await
            }
            Some(Ok(PathKind::Regular | PathKind::Other)) => {
                let place = node.config.place(&format!("pool[{index}].path"));
                Err(no_directory(&place, path))
            }
            // One that is not there is made, and one that does not answer is missing for now.
            Some(Ok(PathKind::Directory) | Err(_)) | None => {
                directory::open(node, (index, pool), path, objects).await
            }
        }
    })
}

fn no_directory(place: &str, path: &Path) -> Problem {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let detail = format!("{place}: {} is not a directory", path.display());
    Problem::new(Code::ConfigEnvironment, detail).hint(
        "a pool's path is a directory that this user may write, made where it is missing, or a block device; files \
         are members: members = [\"PATH\"] with layout = \"span\"",
    )
}
