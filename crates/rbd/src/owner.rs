//! Which LUN an image is: its name, and what its metadata says.

use crate::cluster::Description;
use crate::identity::Identity;
use std::collections::BTreeMap;

/// The keys of an image's metadata: which LUN it is, which image says so, and what that LUN is. A
/// copy of an image has the metadata of the one that it was made of, and another number.
pub(crate) const NAA: &str = "naa";
pub(crate) const IMAGE: &str = "image";
pub(crate) const RECORD: &str = "record";

/// What an image is called that is made for a LUN. One that was adopted keeps its name.
pub(crate) fn image_name(naa: &str) -> String {
    format!("causeway-{naa}")
}

/// 25 hexadecimal digits for an image that is no LUN yet: always the same ones for the same image
/// of the same cluster.
pub(crate) fn digits_of(fsid: &str, id: &str) -> String {
    let digits = |text: &str| -> String {
        let digits = text.chars().filter(char::is_ascii_hexdigit);
        digits.map(|digit| digit.to_ascii_lowercase()).collect()
    };
    let (cluster, image) = (digits(fsid), digits(id));
    let image = image
        .get(image.len().saturating_sub(14)..)
        .unwrap_or_default();
    let cluster = cluster.get(..11).unwrap_or_default();
    format!("{cluster:0<11}{image:0>14}")
}

/// What the image of a LUN says of it; one that is being made has no number yet.
pub(crate) fn identity(naa: &str, id: Option<&str>, record: Option<String>) -> Identity {
    let mut keys = BTreeMap::from([(NAA.to_owned(), naa.to_owned())]);
    keys.extend(id.map(|id| (IMAGE.to_owned(), id.to_owned())));
    keys.extend(record.map(|record| (RECORD.to_owned(), record)));
    Identity(keys)
}

/// The LUN that an image says it is; `None`: it is none, or a copy of one.
pub(crate) fn lun_of<'a>(name: &str, found: &'a Description) -> Option<&'a str> {
    let naa = found.identity.0.get(NAA)?;
    let says_so = match found.identity.0.get(IMAGE) {
        Some(id) => *id == found.id,
        // It was made, and a crash came before its number was written down.
        None => name == image_name(naa),
    };
    says_so.then_some(naa)
}

#[cfg(test)]
mod test {
    use super::*;
    use units::ByteCount;

    #[test]
    fn an_image_that_is_no_lun_yet_has_always_the_same_digits_and_no_other_has_them() {
        let fsid = "5cf1b2aa-0d61-4e0c-9d0e-7b1c5f0e9a11";
        let one = digits_of(fsid, "10a5f2b3c4d5");
        assert_eq!(one, digits_of(fsid, "10a5f2b3c4d5"));
        assert_eq!(one.len(), 25);
        assert!(one.chars().all(|it| it.is_ascii_hexdigit()), "{one}");
        assert_ne!(one, digits_of(fsid, "10a5f2b3c4d6"));
        let other = "6cf1b2aa-0d61-4e0c-9d0e-7b1c5f0e9a11";
        assert_ne!(one, digits_of(other, "10a5f2b3c4d5"));
        // A long one counts by its end.
        assert_ne!(
            digits_of(fsid, "ffffffffffffffffff01"),
            digits_of(fsid, "ffffffffffffffffff02")
        );
    }

    #[test]
    fn a_copy_of_an_image_is_not_the_lun_that_its_metadata_names() {
        let found = |id: &str, identity| Description {
            id: id.to_owned(),
            size: ByteCount(1),
            object: ByteCount(1),
            has_lock: true,
            identity,
        };
        let said = identity("6a", Some("17"), None);
        assert_eq!(lun_of("x", &found("17", said.clone())), Some("6a"));
        assert_eq!(lun_of("x", &found("18", said)), None);
        // It has no number yet: its name must be the one that it was made with.
        let made = identity("6a", None, None);
        assert_eq!(
            lun_of("causeway-6a", &found("17", made.clone())),
            Some("6a")
        );
        assert_eq!(lun_of("x", &found("17", made)), None);
        assert_eq!(lun_of("x", &found("17", Identity::default())), None);
    }
}
