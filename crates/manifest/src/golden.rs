//! Pages of the documentation that are made from the code: tests compare them, and write them anew
//! where UPDATE_GOLDEN is set.

use std::path::PathBuf;

/// `page` is a path below the root of the sources.
fn path(page: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(page)
}

/// A page as it is on disk, `docs/errors.md` for one; empty where there is none.
#[must_use]
pub fn on_disk(page: &str) -> String {
    std::fs::read_to_string(path(page)).unwrap_or_default()
}

/// Compares a page with what the code makes of it, and writes it before that where UPDATE_GOLDEN is
/// set.
///
/// # Panics
/// It is another one, or cannot be written.
pub fn assert_page(page: &str, made: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path(page), made).unwrap_or_else(|error| panic!("{page}: {error}"));
    }
    assert!(
        on_disk(page) == made,
        "{page} differs from the code: run the tests with UPDATE_GOLDEN=1 and commit"
    );
}

#[test]
fn a_page_that_is_not_what_the_code_makes_is_refused() {
    let is = on_disk("docs/errors.md");
    assert!(is.starts_with("# "), "{is}");
    if std::env::var_os("UPDATE_GOLDEN").is_none() {
        let other = is.clone() + "more\n";
        let refused = std::panic::catch_unwind(|| assert_page("docs/errors.md", &other));
        assert!(refused.is_err());
    }
    assert_eq!(on_disk("docs/no-such-page.md"), "");
}
