//! Which addresses this machine has.

use controller::{Controller, Handle};
use manifest::problem::Problem;
use std::rc::Rc;

/// The addresses of this machine.
pub(crate) async fn addresses(handle: &Handle) -> Result<Vec<String>, Problem> {
    let ask = |controller: Rc<Controller>| -> env::LocalFuture<Vec<String>> {
        Box::pin(async move {
            let watch = controller.core().net().watch_interfaces();
            let found = watch.map(|watch| watch.current()).unwrap_or_default();
            found.iter().map(|it| it.address.to_string()).collect()
        })
    };
    let mut all = handle.call(ask).await?;
    all.extend(["127.0.0.1".to_owned(), "::1".to_owned()]);
    all.sort();
    all.dedup();
    Ok(all)
}
