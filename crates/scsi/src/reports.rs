//! Small constant reports: task management functions, diagnostic pages and defect lists.
//!
//! Spec: SPC-4 6.36 "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS command", 6.28 "RECEIVE DIAGNOSTIC
//! RESULTS command"; SBC-3 5.17 and 5.18 "READ DEFECT DATA".

use alloc::vec::Vec;

use crate::bytes::{Writer, flag};
use crate::cdb::{CdbError, DefectList};

/// REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS parameter data, before it is cut to the allocation
/// length.
#[must_use]
pub fn task_management_functions(extended: bool) -> Vec<u8> {
    let mut out = Writer::new();
    // ATS, ATSS, CTSS, LURS, TRS.
    out.u8(0xda).u8(0).u8(0);
    out.u8(if extended { 0x0c } else { 0 });
    if extended {
        // No timeouts are given.
        out.pad_to(16);
    }
    out.finish()
}

/// The Supported Diagnostic Pages diagnostic page, which is the only one.
const SUPPORTED_DIAGNOSTIC_PAGES: u8 = 0x00;

/// RECEIVE DIAGNOSTIC RESULTS: the list of diagnostic pages, before it is cut to the allocation
/// length. Without a page code the standard leaves open what is answered, as no SEND DIAGNOSTIC of
/// ours takes a page: it is the same list.
///
/// # Errors
/// INVALID FIELD IN CDB for a page that we do not have.
pub fn diagnostic_page(page: Option<u8>) -> Result<Vec<u8>, CdbError> {
    if page.is_some_and(|page| page != SUPPORTED_DIAGNOSTIC_PAGES) {
        return Err(CdbError::bytes(2));
    }
    let mut out = Writer::new();
    out.u8(SUPPORTED_DIAGNOSTIC_PAGES).u8(0).counted16(|out| {
        out.u8(SUPPORTED_DIAGNOSTIC_PAGES);
    });
    Ok(out.finish())
}

/// READ DEFECT DATA (10): lists without a defect, as the medium below keeps its own.
#[must_use]
pub fn defect_data_10(list: &DefectList) -> Vec<u8> {
    [0, validity(list), 0, 0].into()
}

/// READ DEFECT DATA (12).
#[must_use]
pub fn defect_data_12(list: &DefectList) -> Vec<u8> {
    [0, validity(list), 0, 0, 0, 0, 0, 0].into()
}

/// PLISTV, GLISTV and DEFECT LIST FORMAT: what was asked for is what is returned.
const fn validity(list: &DefectList) -> u8 {
    flag(list.primary, 4) | flag(list.grown, 3) | (list.format & 0x07)
}

#[cfg(test)]
mod test {
    use super::*;

    // spec: SPC-4 6.28 "RECEIVE DIAGNOSTIC RESULTS command".
    #[test]
    fn the_list_of_diagnostic_pages_names_itself_and_no_other_page_is_there() {
        let list = [0, 0, 0, 1, 0];
        assert_eq!(diagnostic_page(None).unwrap(), list);
        for page in 0..=u8::MAX {
            let answer = diagnostic_page(Some(page));
            assert_eq!(answer.is_ok(), list[4..].contains(&page), "{page:02x}");
        }
        assert_eq!(diagnostic_page(Some(0)).unwrap(), list);
        assert_eq!(diagnostic_page(Some(0x40)), Err(CdbError::bytes(2)));
    }

    #[test]
    fn reports_have_the_golden_bytes() {
        assert_eq!(task_management_functions(false), [0xda, 0, 0, 0]);
        assert_eq!(task_management_functions(true)[..4], [0xda, 0, 0, 0x0c]);
        assert_eq!(task_management_functions(true).len(), 16);
        let list = DefectList {
            primary: true,
            grown: false,
            format: 5,
            allocation_length: 8,
        };
        assert_eq!(defect_data_10(&list), [0, 0x15, 0, 0]);
        assert_eq!(defect_data_12(&list), [0, 0x15, 0, 0, 0, 0, 0, 0]);
    }
}
