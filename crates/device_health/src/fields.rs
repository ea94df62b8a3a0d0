//! Members of a document that may say anything: what is not of the expected kind is not there.

use serde_json::Value;

/// The most characters of a text that are kept.
const TEXT_MAX: usize = 64;

/// What stands at a JSON pointer.
pub(crate) fn at<'a>(of: &'a Value, pointer: &str) -> Option<&'a Value> {
    of.pointer(pointer).filter(|value| !value.is_null())
}

/// A count: NVMe has some of 128 bits, of which all from 64 bits on are the same to us.
pub(crate) fn number(of: &Value, pointer: &str) -> Option<u64> {
    let value = at(of, pointer)?;
    value.as_u64().or_else(|| {
        let large = value.as_f64()? >= 18_446_744_073_709_551_615.0;
        large.then_some(u64::MAX)
    })
}

/// A percentage; smartctl knows up to 255.
pub(crate) fn percent(of: &Value, pointer: &str) -> Option<u64> {
    number(of, pointer).filter(|percent| *percent <= 255)
}

/// A temperature that a disk may have, or that may be its limit.
pub(crate) fn celsius(of: &Value, pointer: &str) -> Option<i64> {
    let value = at(of, pointer)?.as_i64()?;
    // 0 is what firmware writes where it knows none.
    ((-60..=200).contains(&value) && value != 0).then_some(value)
}

/// Text without what terminals and logs would take for more than text.
pub(crate) fn text(of: &Value, pointer: &str) -> Option<String> {
    let clean = clean(at(of, pointer)?.as_str()?, TEXT_MAX);
    (!clean.is_empty()).then_some(clean)
}

/// One line of at most so many characters.
pub(crate) fn clean(text: &str, most: usize) -> String {
    let one_line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let cut: String = one_line.take(most * 4).collect();
    let words: Vec<&str> = cut.split_whitespace().collect();
    let joined = words.join(" ");
    joined.chars().take(most).collect()
}
