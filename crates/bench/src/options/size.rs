//! Sizes as diskspd writes them.

/// Bytes of `64K`, `1M`, `2G`, `1T`, `4096`, or `8b`, which is eight blocks; letters of either
/// case.
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

/// A size as diskspd prints it: in the largest unit that it reaches, with two places where that is
/// no whole number, and bytes without a unit.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    for (shift, name) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        let unit = 1_u64 << shift;
        if bytes < unit {
            continue;
        }
        if bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes >> shift);
        }
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let units = bytes as f64 / unit as f64;
        return format!("{units:.2}{name}");
    }
    bytes.to_string()
}

#[cfg(test)]
mod test {
    use super::show_size;

    #[test]
    fn sizes_are_written_as_diskspds_are() {
        for (bytes, shown) in [
            (0, "0"),
            (512, "512"),
            (4096, "4KiB"),
            (1536, "1.50KiB"),
            (10_000_000_000, "9.31GiB"),
            (1 << 40, "1TiB"),
        ] {
            assert_eq!(show_size(bytes), shown);
        }
    }
}
