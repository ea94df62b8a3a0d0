//! Sizes as diskspd writes them.

/// Bytes of `64K`, `1M`, `2G`, `1T`, `4096`, or `8b`, which is eight blocks; letters of either case.
#[must_use]
pub fn size(text: &str, block: u64) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let unit = match text.get(digits.len()..)? {
        "" => 1,
        "b" | "B" => block,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        "t" | "T" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// A size in the largest unit that gives a whole number.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    for (unit, name) in [
        (1 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    format!("{bytes}B")
}
