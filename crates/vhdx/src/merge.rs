//! A child into its parent.
//!
//! ```text
//!   child: parent_linkage2 = the parent's next identifier, stable
//!   parent: that identifier, stable -> each block that the child has -> stable
//! ```
//!
//! The child stays as it is, so a merge that is stopped at any time is begun anew, and the chain
//! holds the same meanwhile.
//!
//! spec: MS-VHDX 2.6.2.6.3 "Parent Locator Entries"

use crate::entry::State as BlockState;
use crate::error::{Error, ParentMismatch};
use crate::locator::Locator;
use crate::read::{Chain, Here};
use crate::state::{Claim, Image};
use crate::step::{Operation, Port};
use crate::write::Content;

impl Image {
    /// Makes a differencing image name its parent by this.
    #[must_use]
    pub fn set_locator(&self, locator: Locator) -> Operation<'_, ()> {
        Operation::new(async move |port: Port| {
            let port = port.of_file(self.file);
            self.guarded(self.put_locator(&port, locator)).await
        })
    }

    async fn put_locator(&self, port: &Port, locator: Locator) -> Result<(), Error> {
        let region = self.state.get().tables.metadata;
        let writes = self.state.get().table.with_locator(&locator, region)?;
        self.claim(port, Claim::File).await?;
        self.commit_pages(port).await?;
        for (at, bytes) in writes {
            self.patch(port, at, &bytes).await?;
        }
        self.commit_pages(port).await?;
        self.state.get().metadata.locator = Some(locator);
        // Where the item is may be another place now.
        self.read_table(port).await
    }
}

impl Chain {
    /// Writes all that the image has into its parent, which was opened to be changed as well. After
    /// that the image is not needed; whoever has it as a parent gets
    /// [another one](Image::set_locator).
    #[must_use]
    pub fn merge(&self) -> Operation<'_, ()> {
        Operation::new(async move |port: Port| {
            let missing = Error::Parent(ParentMismatch::Count);
            let parent = self.images().get(1).ok_or(missing)?;
            self.image().check_writable()?;
            parent.guarded(merge(&port, self.image(), parent)).await
        })
    }
}

async fn merge(port: &Port, child: &Image, parent: &Image) -> Result<(), Error> {
    let of_parent = port.of_file(parent.file);
    let next = {
        let mut state = parent.state.get();
        let guids = state.guids.as_mut().ok_or(Error::ReadOnly)?;
        guids.give()
    };
    parent.let_go(&of_parent).await?;
    let mut locator = child
        .metadata()
        .locator
        .ok_or(Error::Parent(ParentMismatch::Count))?;
    // A merge before this one may have given the parent its second identifier.
    locator.linkage = parent.header().data_write;
    locator.linkage2 = Some(next);
    child.guarded(child.put_locator(port, locator)).await?;
    child.guarded(child.let_go(port)).await?;
    parent
        .claim_with(&of_parent, Claim::Content, Some(next))
        .await?;
    let geometry = child.geometry();
    for block in 0..geometry.blocks() {
        let bytes = geometry.bytes_of(block);
        let start = block * geometry.block_bytes;
        let (state, parts) = child
            .with(port, |state| {
                let entry = state.entry(block)?;
                Ok((entry.state, state.part(block, 0, bytes)?))
            })
            .await?;
        if state == BlockState::NotPresent {
            continue;
        }
        for (offset, bytes, here) in parts {
            let content = match here {
                Here::Zero => Content::Zeroes,
                Here::Place(from) => Content::Copy { from },
                Here::Parent => continue,
            };
            parent
                .put(&of_parent, start + offset, bytes, content)
                .await?;
        }
    }
    parent.let_go(&of_parent).await
}
