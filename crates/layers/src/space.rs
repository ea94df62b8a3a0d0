//! What a file system says that has no room.

use std::io;

/// There is no room for it now. That ends by itself, or when somebody makes room: nothing is
/// broken.
pub(crate) fn is_no_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
