//! Text on its way to C and back.

use super::Errno;
use libc::c_char;
use std::ffi::{CStr, CString};

/// Text for C. One with a zero byte in it is no name of anything.
pub(super) fn to_c(text: &str) -> Result<CString, Errno> {
    CString::new(text).map_err(|_| Errno(libc::EINVAL))
}

/// Text of C, or nothing where there is none.
///
/// # Safety
/// `text` is null, or points to bytes that end with a zero and stay as they are during the call.
pub(super) unsafe fn from_c(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// Texts that stand one after the other, each with a zero after it.
pub(super) fn texts(bytes: &[u8]) -> Vec<String> {
    let mut all: Vec<String> = bytes
        .split(|&byte| byte == 0)
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .collect();
    // What stands behind the last zero is no text.
    all.pop();
    all
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn texts_end_with_a_zero_and_may_be_empty() {
        assert_eq!(texts(b"a\0\0bc\0"), ["a", "", "bc"]);
        assert_eq!(texts(b""), Vec::<String>::new());
    }
}
