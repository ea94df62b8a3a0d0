//! Changes of an open image that somebody waits for, but not for ever.

use crate::error::RbdError;
use crate::image::Image;
use env::{CoreHandle, detach, in_time};
use std::sync::Arc;
use std::time::Duration;
use units::ByteCount;
use volume::{OpenError, OpenErrorKind, Volume};

impl Image {
    /// Makes it as long as this at least. What takes longer than `time` goes on.
    ///
    /// # Errors
    /// What the cluster says, or that it has not answered in time.
    pub async fn grow_in_time(
        self: &Arc<Self>,
        core: &CoreHandle,
        size: ByteCount,
        time: Duration,
    ) -> Result<(), OpenError> {
        if size <= self.shape().byte_count() {
            return Ok(());
        }
        let image = Arc::clone(self);
        let work = async move { image.grow(size).await.map(|_| ()) };
        self.resized(core, time, work).await
    }

    /// Makes it as short as this at most. What takes longer than `time` goes on.
    ///
    /// # Errors
    /// What the cluster says, or that it has not answered in time.
    pub async fn shrink_in_time(
        self: &Arc<Self>,
        core: &CoreHandle,
        size: ByteCount,
        time: Duration,
    ) -> Result<(), OpenError> {
        if size >= self.shape().byte_count() {
            return Ok(());
        }
        let image = Arc::clone(self);
        let work = async move { image.shrink(size).await.map(|_| ()) };
        self.resized(core, time, work).await
    }

    async fn resized(
        &self,
        core: &CoreHandle,
        time: Duration,
        work: impl Future<Output = Result<(), RbdError>> + 'static,
    ) -> Result<(), OpenError> {
        let done = in_time(core, time, detach(core, work)).await;
        let done = done.ok_or_else(|| OpenError {
            kind: OpenErrorKind::Hung,
            cause: format!(
                "image {} has not got its size in {} s, and may still get it",
                self.spec().name,
                time.as_secs()
            ),
            next_step: "check the cluster's health (ceph status)".to_owned(),
        })?;
        Ok(done?)
    }

    /// Closes it. What takes longer than `time` goes on, and is reported.
    pub async fn close_in_time(self: &Arc<Self>, core: &CoreHandle, time: Duration) {
        let image = Arc::clone(self);
        let closed = detach(core, async move { image.close().await });
        if in_time(core, time, closed).await.is_none() {
            let image = &self.spec().name;
            tracing::warn!(
                image,
                "the image has not been closed in time: its lock goes when the cluster answers"
            );
        }
    }
}
