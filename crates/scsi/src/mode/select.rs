//! MODE SELECT: the parameter list, checked against what may change.
//!
//! Spec: SPC-4 6.11 "MODE SELECT (6) command", 7.5.4 to 7.5.7 "Mode parameter header, block
//! descriptors, page and subpage formats".

use super::{ModePages, ModeParameters, ModeUnit, Page};
use crate::bytes::{Reader, is_set};
use crate::cdb::{ModeForm, ModeSelect};
use crate::sense::Sense;

impl ModePages {
    /// The values after MODE SELECT with this parameter list.
    ///
    /// # Errors
    /// PARAMETER LIST LENGTH ERROR where the list ends inside a header, descriptor or page; INVALID
    /// FIELD IN PARAMETER LIST with a pointer for a page that we do not have, a wrong length, or a
    /// bit that is not changeable and differs from its current value.
    pub fn select(
        &self,
        request: &ModeSelect,
        list: &[u8],
        unit: &ModeUnit,
    ) -> Result<Self, Sense> {
        // spec: a PARAMETER LIST LENGTH of zero is not an error.
        if request.parameter_list_length == 0 {
            return Ok(*self);
        }
        let list = list
            .get(..usize::from(request.parameter_list_length))
            .ok_or(Sense::parameter_list_length_error())?;
        let mut reader = Reader::new(list);
        header(&mut reader, request.form, list.len(), unit)?;
        let mut values = self.current;
        let mut saved = self.saved;
        while !reader.rest().is_empty() {
            let at = list.len().saturating_sub(reader.rest().len());
            let (page, bytes) = next_page(&mut reader, at)?;
            self.check(page, bytes, at, unit)?;
            page.adopt(bytes, &mut values);
            page.adopt(bytes, &mut saved);
        }
        Ok(Self {
            current: values,
            saved: if request.save_pages {
                saved
            } else {
                self.saved
            },
        })
    }

    fn check(&self, page: Page, bytes: &[u8], at: usize, unit: &ModeUnit) -> Result<(), Sense> {
        let (_, subpage) = page.code();
        let header = if subpage == 0 { 2 } else { 4 };
        let current = page.bytes(&self.current);
        let mask = page.changeable(unit);
        let triples = bytes.iter().zip(&current).zip(&mask).enumerate();
        for (offset, ((sent, own), mask)) in triples.skip(header) {
            let wrong = (sent ^ own) & !mask;
            if wrong != 0 {
                // The most significant wrong bit.
                let bit = 7u32.saturating_sub(wrong.leading_zeros());
                return Err(invalid(at.saturating_add(offset), u8::try_from(bit).ok()));
            }
        }
        Ok(())
    }
}

fn invalid(byte: usize, bit: Option<u8>) -> Sense {
    Sense::invalid_field_in_parameter_list(u16::try_from(byte).unwrap_or(u16::MAX), bit)
}

fn header(
    reader: &mut Reader<'_>,
    form: ModeForm,
    total: usize,
    unit: &ModeUnit,
) -> Result<(), Sense> {
    let short = Sense::parameter_list_length_error;
    // MODE DATA LENGTH is reserved and the device-specific parameter is read only: both are
    // ignored.
    let (medium_at, medium, long, descriptors) = match form {
        ModeForm::Six => {
            let [_, medium, _, len] = reader.array().ok_or_else(short)?;
            (1, medium, false, u16::from(len))
        }
        ModeForm::Ten => {
            let [_, _, medium, _, flags, _, high, low] = reader.array().ok_or_else(short)?;
            (2, medium, is_set(flags, 0), u16::from_be_bytes([high, low]))
        }
    };
    if medium != 0 {
        return Err(invalid(medium_at, None));
    }
    let at = total.saturating_sub(reader.rest().len());
    let expected = if long { 16 } else { 8 };
    match descriptors {
        0 => Ok(()),
        len if len == expected => {
            let bytes = reader.take(usize::from(len)).ok_or_else(short)?;
            block_descriptor(bytes, long, at, unit)
        }
        // The length field is the last of the header in both forms.
        _ => Err(invalid(
            at.saturating_sub(if form == ModeForm::Six { 1 } else { 2 }),
            None,
        )),
    }
}

/// The medium cannot be reformatted: the descriptor has to say what is so, or zero for "as it is".
fn block_descriptor(bytes: &[u8], long: bool, at: usize, unit: &ModeUnit) -> Result<(), Sense> {
    let mut reader = Reader::new(bytes);
    let short = Sense::parameter_list_length_error;
    let (count, length_at) = if long {
        let count = reader.be64().ok_or_else(short)?;
        reader.skip(4).ok_or_else(short)?;
        (count, 12)
    } else {
        (u64::from(reader.be32().ok_or_else(short)?), 5)
    };
    let length = reader.be32().ok_or_else(short)? & if long { u32::MAX } else { 0x00ff_ffff };
    let own = unit.block_count.0;
    let saturated = if long { u64::MAX } else { u64::from(u32::MAX) };
    if count != 0 && count != own && count != saturated {
        return Err(invalid(at, None));
    }
    if length != 0 && length != unit.block_size.bytes() {
        return Err(invalid(at.saturating_add(length_at), None));
    }
    Ok(())
}

/// The next page of the list, and its bytes, header included.
fn next_page<'a>(reader: &mut Reader<'a>, at: usize) -> Result<(Page, &'a [u8]), Sense> {
    let short = Sense::parameter_list_length_error;
    let mut peek = *reader;
    let first = peek.u8().ok_or_else(short)?;
    let with_subpage = is_set(first, 6);
    let (subpage, length, header) = if with_subpage {
        let subpage = peek.u8().ok_or_else(short)?;
        let length = peek.array().map(u16::from_be_bytes).ok_or_else(short)?;
        (subpage, usize::from(length), 4usize)
    } else {
        (0, usize::from(peek.u8().ok_or_else(short)?), 2)
    };
    let code = (first & 0x3f, subpage);
    let page = Page::ALL
        .into_iter()
        .find(|page| page.code() == code && with_subpage == (subpage != 0))
        .ok_or_else(|| invalid(at, Some(5)))?;
    let own = page.bytes(&ModeParameters::default());
    // spec: SPC-4 7.5.7: a PAGE LENGTH that is not the page's is an invalid field.
    if length.saturating_add(header) != own.len() {
        let length_at = if with_subpage { 2 } else { 1 };
        return Err(invalid(at.saturating_add(length_at), None));
    }
    let bytes = reader.take(own.len()).ok_or_else(short)?;
    Ok((page, bytes))
}
