//! The end of a host's session by request.
//!
//! **Contract.** Of several that are asked for at once none takes a path that another one counted
//! on: from the moment that an end is allowed its session is no path any more. Nobody waits for the
//! end of somebody else's session.

use super::{Controller, How};
use manifest::ending::Ending;
use manifest::facts::SessionFacts;
use manifest::problem::Problem;

impl Controller {
    /// Ends a session, or reports what that would hit; so many bytes go over it in a second now.
    ///
    /// # Errors
    /// There is none of this number; it is its host's last path to a LUN, and that is not meant.
    pub async fn end_session(
        &self,
        id: u64,
        bytes_per_second: u64,
        how: How,
    ) -> Result<Ending, Problem> {
        let none = || Problem::not_found("session", &id.to_string());
        let mut leaving = self.leaving.lock().await;
        let mut all = self.sessions().await;
        all.retain(|it| it.id == id || !leaving.contains(&it.id));
        let is_it = |session: &&SessionFacts| session.id == id;
        let session = all.iter().find(is_it).ok_or_else(none)?;
        let mut ending = Ending::of_session(session, &all, Some(bytes_per_second));
        if how.dry_run {
            return Ok(ending);
        }
        if let Some(problem) = ending.refused(&session.host).filter(|_| !how.force) {
            return Err(problem);
        }
        leaving.insert(id);
        drop(leaving);
        let dropped = self.engine.drop_session(id).await;
        // Who counts paths now has a list of before it ended, or gets one without it.
        self.leaving.lock().await.remove(&id);
        if !dropped {
            return Err(none());
        }
        tracing::info!(session = id, "session dropped by request");
        ending.changed = true;
        ending.refusal = None;
        Ok(ending)
    }
}
