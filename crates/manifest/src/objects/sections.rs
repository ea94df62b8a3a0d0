//! The sections of an objects file.

/// What a LUN is called in files, paths and messages.
pub const SECTION_LUN: &str = "lun";
/// What a target is called in files, paths and messages.
pub const SECTION_TARGET: &str = "target";
/// What a host is called in files, paths and messages.
pub const SECTION_HOST: &str = "host";
/// What a grant is called in files, paths and messages.
pub const SECTION_GRANT: &str = "grant";
