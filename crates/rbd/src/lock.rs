//! The exclusive lock: two never write one image.
//!
//! It is taken for good, and not handed over to whoever asks for it (librbd's automatic way: 27 ms
//! each time, and nobody would be the owner). Who is asked for it refuses; only
//! [`crate::Cluster::break_lock`] takes it away, and shuts the owner out of the cluster. So a
//! take-over is a decision of somebody above: of an administrator, or of the nodes' agreement on an
//! epoch, which is won first.
//!
//! An owner that died leaves its lock behind. When its watch of the image has timed out (30 s, the
//! OSDs' say), whoever comes next gets the lock, and librbd shuts the dead one out first, in case
//! it lives.

use crate::error::Holder;
use crate::ffi::{Errno, ImageHandle};

/// Why the lock was not had.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Somebody has it.
    Held(Holder),
    /// Something went wrong.
    Failed(Errno),
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno)
    }
}

/// Takes the lock, unless somebody has it who is there.
pub(crate) fn take(image: &ImageHandle) -> Result<(), Refusal> {
    // Whoever has it the automatic way would hand it over when asked, and lose its right to write.
    if let Some(holder) = holder(image)?
        && is_there(image, &holder)?
    {
        return Err(Refusal::Held(holder));
    }
    match image.lock() {
        // Somebody was quicker.
        Err(errno @ Errno(libc::EROFS | libc::EBUSY)) => match holder(image)? {
            Some(holder) => Err(Refusal::Held(holder)),
            None => Err(Refusal::Failed(errno)),
        },
        other => Ok(other?),
    }
}

/// Who has it.
fn holder(image: &ImageHandle) -> Result<Option<Holder>, Errno> {
    let Some(address) = image.lock_owners()?.into_iter().next() else {
        return Ok(None);
    };
    // An owner is an address; its client's number stands in the list of lockers.
    let mut lockers = image.lockers()?.into_iter();
    let locker = lockers.find(|it| it.address == address);
    Ok(locker.map(|it| Holder {
        client: it.client,
        address,
    }))
}

/// The holder watches the image: it lives, or did a moment ago.
fn is_there(image: &ImageHandle, holder: &Holder) -> Result<bool, Errno> {
    let watchers = image.watchers()?;
    Ok(number(&holder.client).is_some_and(|client| watchers.contains(&client)))
}

fn number(client: &str) -> Option<u64> {
    client.strip_prefix("client.")?.parse().ok()
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_client_has_a_number() {
        assert_eq!(number("client.4123"), Some(4123));
        assert_eq!(number("4123"), None);
        assert_eq!(number("client.x"), None);
    }
}
