//! What a conversion makes.

use crate::source::Format;
use std::path::Path;

/// Which format is written, as a command line names it.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum, Debug)]
pub enum Target {
    /// A disk as it is
    Raw,
    /// A VHDX image
    Vhdx,
    /// An image of QEMU (by qemu-img)
    Qcow2,
}

impl Target {
    /// As a file's name ends.
    pub(crate) fn of(path: &Path) -> Self {
        let extension = path
            .extension()
            .and_then(|it| it.to_str())
            .unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "vhdx" => Self::Vhdx,
            "qcow2" => Self::Qcow2,
            _ => Self::Raw,
        }
    }

    pub(crate) const fn format(self) -> Format {
        match self {
            Self::Raw => Format::Raw,
            Self::Vhdx => Format::Vhdx,
            Self::Qcow2 => Format::Foreign("qcow2"),
        }
    }
}
