//! Parent locators: by which a differencing image names its parent.
//!
//! spec: MS-VHDX 2.6.2.6 "Parent Locator"

use crate::error::{Error, Part, contradiction, damaged};
use crate::guid::Guid;
use formats::{Damage, Reader, Writer};

/// The one type of locator that is defined.
const KIND: Guid = Guid::of(0xb04a_efb7, 0xd19e, 0x4a81, 0xb789_25b8_e944_5913);
const HEAD_BYTES: usize = 20;
const ENTRY_BYTES: usize = 12;
/// The longest item that is read.
pub(crate) const LOCATOR_BYTES_MAX: u64 = 1 << 20;

/// What a differencing image says of its parent.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Locator {
    /// The parent's identifier of its content.
    pub linkage: Guid,
    /// What it will be, or is, after a merge that was begun.
    pub linkage2: Option<Guid>,
    /// From the directory of the child.
    pub relative: Option<String>,
    /// With the volume's GUID, as Windows has it.
    pub volume: Option<String>,
    /// As Windows has it.
    pub absolute: Option<String>,
    /// Keys that are not known here, kept as they are.
    pub others: Vec<(String, String)>,
}

impl Locator {
    /// Where the parent may be, in the order in which that is tried.
    #[must_use]
    pub fn paths(&self) -> Vec<&str> {
        let paths = [&self.relative, &self.volume, &self.absolute];
        paths.into_iter().flatten().map(String::as_str).collect()
    }

    /// The parent's content is the one that the child was made of, or that a merge made of it.
    #[must_use]
    pub fn fits(&self, data_write: Guid) -> bool {
        self.linkage == data_write || self.linkage2 == Some(data_write)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let braces = |guid: Guid| format!("{{{guid}}}");
        let mut pairs = vec![("parent_linkage", braces(self.linkage))];
        if let Some(linkage) = self.linkage2 {
            pairs.push(("parent_linkage2", braces(linkage)));
        }
        for (key, path) in [
            ("relative_path", &self.relative),
            ("volume_path", &self.volume),
            ("absolute_win32_path", &self.absolute),
        ] {
            pairs.extend(path.clone().map(|path| (key, path)));
        }
        pairs.extend(
            self.others
                .iter()
                .map(|(key, value)| (key.as_str(), value.clone())),
        );
        let (mut entries, mut texts) = (Writer::default(), Writer::default());
        let mut next = HEAD_BYTES + ENTRY_BYTES * pairs.len();
        let count = u16::try_from(pairs.len()).expect("a locator has few keys");
        entries.bytes(&KIND.0).u16(0).u16(count);
        let number = |of: usize| u32::try_from(of).expect("a locator is small");
        let length = |of: usize| u16::try_from(of).expect("paths are short");
        for (key, value) in &pairs {
            let units = [key, value.as_str()].map(|text| text.encode_utf16().collect::<Vec<_>>());
            let bytes = units.each_ref().map(|units| 2 * units.len());
            entries.u32(number(next)).u32(number(next + bytes[0]));
            entries.u16(length(bytes[0])).u16(length(bytes[1]));
            for unit in units.concat() {
                texts.u16(unit);
            }
            next += bytes[0] + bytes[1];
        }
        [entries.into_bytes(), texts.into_bytes()].concat()
    }

    pub(crate) fn decode(item: &[u8]) -> Result<Self, Error> {
        let short = || damaged(Part::Locator, Damage::Contradiction("it is cut off"));
        let mut fields = Reader::new(item);
        let (kind, _, count) = (fields.bytes().map(Guid), fields.u16(), fields.u16());
        let (kind, count) = kind.zip(count).ok_or_else(short)?;
        if kind != KIND {
            return Err(Error::Unknown {
                part: Part::Locator,
                what: format!("its type {kind}"),
            });
        }
        let (mut locator, mut linkage) = (Self::default(), None);
        for _ in 0..count {
            let parts = (fields.u32(), fields.u32(), fields.u16(), fields.u16());
            let (Some(key), Some(value), Some(key_bytes), Some(value_bytes)) = parts else {
                return Err(short());
            };
            let key = text(item, key, key_bytes)?;
            let value = text(item, value, value_bytes)?;
            let guid = || {
                let wrong = contradiction(Part::Locator, "its linkage is no GUID");
                Guid::parse(&value).ok_or(wrong)
            };
            match key.as_str() {
                "parent_linkage" => linkage = Some(guid()?),
                "parent_linkage2" => locator.linkage2 = Some(guid()?).filter(|it| !it.is_none()),
                "relative_path" => locator.relative = Some(value),
                "volume_path" => locator.volume = Some(value),
                "absolute_win32_path" => locator.absolute = Some(value),
                _ => locator.others.push((key, value)),
            }
        }
        locator.linkage = linkage.ok_or(contradiction(Part::Locator, "it has no linkage"))?;
        Ok(locator)
    }
}

fn text(item: &[u8], at: u32, bytes: u16) -> Result<String, Error> {
    let wrong = |what| contradiction(Part::Locator, what);
    let from = usize::try_from(at).map_err(|_| wrong("a text beyond its end"))?;
    let of = from
        .checked_add(bytes.into())
        .and_then(|to| item.get(from..to));
    let of = of.ok_or(wrong("a text beyond its end"))?;
    let units = of
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let text = String::from_utf16(&units.collect::<Vec<_>>());
    text.map_err(|_| wrong("a text that is not UTF-16"))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_locator_is_read_as_it_was_written() {
        let locator = Locator {
            linkage: Guid([3; 16]),
            linkage2: Some(Guid([4; 16])),
            relative: Some(".\\parent.vhdx".to_owned()),
            volume: None,
            absolute: Some("C:\\images\\père.vhdx".to_owned()),
            others: vec![("color".to_owned(), "blue".to_owned())],
        };
        let bytes = locator.encode();
        assert_eq!(Locator::decode(&bytes), Ok(locator.clone()));
        assert_eq!(locator.paths(), [".\\parent.vhdx", "C:\\images\\père.vhdx"]);
        assert!(locator.fits(Guid([3; 16])) && locator.fits(Guid([4; 16])));
        assert!(!locator.fits(Guid([5; 16])));
        let text = String::from_utf8_lossy(&bytes).replace('\0', "");
        assert!(
            text.contains("{03030303-0303-0303-0303-030303030303}"),
            "{text}"
        );
        for end in 0..bytes.len() {
            assert!(Locator::decode(&bytes[..end]).is_err(), "{end}");
        }
    }
}
