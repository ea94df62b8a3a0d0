//! LOG SENSE pages.
//!
//! Spec: SPC-4 7.3 "Log parameters"; SBC-3 6.3.3 "Logical Block Provisioning log page".

use alloc::vec::Vec;

use crate::bytes::Writer;
use crate::cdb::{CdbError, LogSense};

/// How full the space is that a thin unit lives on, in threshold sets (two to the power of
/// THRESHOLD EXPONENT blocks, page B2h).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProvisioningResources {
    /// AVAILABLE LBA MAPPING RESOURCE COUNT.
    pub available: u32,
    /// USED LBA MAPPING RESOURCE COUNT.
    pub used: u32,
    /// Shared with other units of the pool, rather than dedicated to this one.
    pub shared: bool,
}

const SUPPORTED: u8 = 0x00;
const PROVISIONING: u8 = 0x0c;
const INFORMATIONAL_EXCEPTIONS: u8 = 0x2f;

/// The page asked for, before it is cut to the allocation length. Without `resources` there is no
/// page 0Ch.
///
/// # Errors
/// INVALID FIELD IN CDB for a page, subpage or PARAMETER POINTER that we do not have.
pub fn sense(
    request: &LogSense,
    resources: Option<ProvisioningResources>,
) -> Result<Vec<u8>, CdbError> {
    let mut pages = Vec::from([SUPPORTED, INFORMATIONAL_EXCEPTIONS]);
    if resources.is_some() {
        pages.insert(1, PROVISIONING);
    }
    if !pages.contains(&request.page) {
        return Err(CdbError::field(2, 5));
    }
    let with_subpages = request.page == SUPPORTED && request.subpage == 0xff;
    if request.subpage != 0 && !with_subpages {
        return Err(CdbError::bytes(3));
    }
    let mut out = Writer::new();
    if with_subpages {
        out.u8(0x40).u8(0xff);
        out.counted16(|out| {
            for page in [(SUPPORTED, 0), (SUPPORTED, 0xff)] {
                out.u8(page.0).u8(page.1);
            }
            for page in pages.iter().skip(1) {
                out.u8(*page).u8(0);
            }
        });
        return Ok(out.finish());
    }
    let parameters = parameters(request.page, resources);
    let last = parameters.iter().map(|(code, _)| *code).max();
    // spec: SPC-4 6.8 "LOG SENSE command": a PARAMETER POINTER above the last parameter is an
    // invalid field.
    if last.is_some_and(|last| request.parameter_pointer > last) {
        return Err(CdbError::bytes(5));
    }
    out.u8(request.page).u8(0).counted16(|out| {
        if request.page == SUPPORTED {
            out.bytes(&pages);
        }
        let wanted = parameters.iter();
        for (code, value) in wanted.filter(|(code, _)| *code >= request.parameter_pointer) {
            // FORMAT AND LINKING 11b: a binary list parameter.
            out.be16(*code).u8(0x03);
            out.counted8(|out| {
                out.bytes(value);
            });
        }
    });
    Ok(out.finish())
}

fn parameters(page: u8, resources: Option<ProvisioningResources>) -> Vec<(u16, Vec<u8>)> {
    match (page, resources) {
        (PROVISIONING, Some(resources)) => {
            // SCOPE 01b: this unit; 10b: shared.
            let scope = if resources.shared { 2 } else { 1 };
            let parameter = |count: u32| {
                let mut out = Writer::new();
                out.be32(count).u8(scope).zeros(3);
                out.finish()
            };
            Vec::from([
                (1, parameter(resources.available)),
                (2, parameter(resources.used)),
            ])
        }
        // No exception, temperature not available.
        (INFORMATIONAL_EXCEPTIONS, _) => Vec::from([(0, Vec::from([0, 0, 0xff, 0]))]),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::cdb::PageControl;

    fn ask(page: u8, subpage: u8, parameter_pointer: u16) -> Result<Vec<u8>, CdbError> {
        let request = LogSense {
            page_control: PageControl::Changeable,
            page,
            subpage,
            parameter_pointer,
            allocation_length: 255,
        };
        let resources = ProvisioningResources {
            available: 100,
            used: 7,
            shared: true,
        };
        sense(&request, Some(resources))
    }

    #[test]
    fn the_lists_of_pages_name_exactly_what_is_there() {
        assert_eq!(ask(0, 0, 0).unwrap(), [0, 0, 0, 3, 0, 0x0c, 0x2f]);
        let subpages = [0x40, 0xff, 0, 8, 0, 0, 0, 0xff, 0x0c, 0, 0x2f, 0];
        assert_eq!(ask(0, 0xff, 0).unwrap(), subpages);
        for page in 0..0x40 {
            let listed = [0, 0x0c, 0x2f].contains(&page);
            assert_eq!(ask(page, 0, 0).is_ok(), listed);
        }
        assert_eq!(ask(0x0c, 1, 0), Err(CdbError::bytes(3)));
    }

    // spec: SPC-4 6.8 "LOG SENSE command".
    #[test]
    fn resources_have_the_golden_bytes_and_the_pointer_skips() {
        let used = [0, 2, 3, 8, 0, 0, 0, 7, 2, 0, 0, 0];
        let both = ask(0x0c, 0, 0).unwrap();
        assert_eq!(
            both[..16],
            [0x0c, 0, 0, 24, 0, 1, 3, 8, 0, 0, 0, 100, 2, 0, 0, 0]
        );
        assert_eq!(both[16..], used);
        assert_eq!(ask(0x0c, 0, 2).unwrap()[4..], used);
        assert_eq!(ask(0x0c, 0, 3), Err(CdbError::bytes(5)));
        assert_eq!(
            ask(0x2f, 0, 0).unwrap(),
            [0x2f, 0, 0, 8, 0, 0, 3, 4, 0, 0, 0xff, 0]
        );
    }
}
