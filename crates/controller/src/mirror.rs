//! The copies that a LUN has on several nodes are changed.

use super::Controller;
use engine::{MirrorAsked, MirrorRequest, MirrorView};
use manifest::objects::SECTION_LUN;
use manifest::problem::Problem;

impl Controller {
    /// Changes the copies of a LUN in service, or says what that would do.
    ///
    /// # Errors
    /// There is no such LUN, or why its copies are not changed so.
    pub async fn mirror(
        &self,
        name: &str,
        request: MirrorRequest,
        dry_run: bool,
    ) -> Result<MirrorView, Problem> {
        let objects = self.objects();
        let lun = objects.luns.get(name).cloned();
        let lun = lun.ok_or_else(|| Problem::not_found(SECTION_LUN, name))?;
        let asked = MirrorAsked {
            name: name.to_owned(),
            lun,
            request,
            dry_run,
        };
        self.engine.mirror(asked).await
    }
}
