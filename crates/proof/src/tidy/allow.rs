//! What the tree still has of what the checks refuse, in `crates/proof/tidy.allow`: it may become
//! less, and not more.
//!
//! A line is `check: subject count`. The list is there to shrink: a line that nothing needs any
//! more is a complaint, and `tidy lower` brings all counts down to what there is.

use super::{Complaint, Finding};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Where the list stands.
pub const PATH: &str = "crates/proof/tidy.allow";

/// Complaints of one subject that are shown when there are more than the list allows.
const SHOWN_MAX: usize = 5;

/// How much is allowed, by check and subject.
pub(super) type Allowed = BTreeMap<(String, String), usize>;

/// Reads the list, and complains of lines that say nothing.
pub(super) fn parse(text: &str) -> (Allowed, Vec<Complaint>) {
    let mut allowed = Allowed::new();
    let mut complaints = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let entry = line.split_once(": ").and_then(|(check, rest)| {
            let (subject, count) = rest.rsplit_once(' ')?;
            Some((check, subject, count.parse().ok()?))
        });
        match entry {
            Some((check, subject, count)) => {
                allowed.insert((check.to_owned(), subject.to_owned()), count);
            }
            None => complaints.push(format!("{PATH}:{}: write `check: subject count`", at + 1)),
        }
    }
    (allowed, complaints)
}

/// What there is, by check and subject.
pub(super) fn counts(found: &[(&str, Vec<Finding>)]) -> Allowed {
    let mut counts = Allowed::new();
    for (check, findings) in found {
        for it in findings {
            let key = ((*check).to_owned(), it.subject.clone());
            *counts.entry(key).or_default() += it.count;
        }
    }
    counts
}

/// Complains of all that is over what is allowed, and of what is allowed for nothing.
pub(super) fn judge(allowed: &Allowed, found: &[(&str, Vec<Finding>)]) -> Vec<Complaint> {
    let counts = counts(found);
    let mut complaints = Vec::new();
    for (key, count) in &counts {
        let (check, subject) = key;
        let most = allowed.get(key).copied().unwrap_or_default();
        if *count <= most {
            continue;
        }
        let of_check = found.iter().filter(|(it, _)| it == check);
        let findings = of_check.flat_map(|(_, findings)| findings);
        let findings = findings.filter(|it| it.subject == *subject);
        if most == 0 {
            complaints.extend(findings.map(|it| it.complaint.clone()));
            continue;
        }
        complaints.push(format!(
            "{check}: {subject} has {count}, and {PATH} allows {most}: take the new ones away \
             (`tidy {check}` shows all, the first are these)"
        ));
        let first = findings.take(SHOWN_MAX);
        complaints.extend(first.map(|it| format!("  {}", it.complaint)));
    }
    let unneeded = allowed.keys().filter(|key| !counts.contains_key(*key));
    complaints.extend(unneeded.map(|(check, subject)| {
        format!("{PATH}: nothing needs `{check}: {subject}` any more: take the line out (`tidy lower` does)")
    }));
    complaints
}

/// The list with no more in it than there is; comments stay.
pub(super) fn lowered(text: &str, found: &[(&str, Vec<Finding>)]) -> String {
    let counts = counts(found);
    let mut out = String::new();
    for line in text.lines() {
        let (entries, _) = parse(line);
        let Some((key, most)) = entries.first_key_value() else {
            out.push_str(line);
            out.push('\n');
            continue;
        };
        if let Some(count) = counts.get(key) {
            let least = count.min(most);
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{}: {} {least}", key.0, key.1);
        }
    }
    out
}

#[cfg(test)]
mod test {
    use super::*;

    fn findings(counts: &[(&str, usize)]) -> Vec<Finding> {
        let findings = counts.iter().map(|(subject, count)| Finding {
            subject: (*subject).to_owned(),
            count: *count,
            complaint: format!("{subject} is wrong"),
        });
        findings.collect()
    }

    #[test]
    fn what_is_allowed_may_shrink_and_not_grow() {
        let (allowed, complaints) = parse("# why\n\na: x y 3\n");
        assert_eq!(complaints, Vec::<Complaint>::new());
        for few in [1, 3] {
            let found = [("a", findings(&[("x y", few)]))];
            assert_eq!(judge(&allowed, &found), Vec::<Complaint>::new());
        }
        let more = [("a", findings(&[("x y", 3), ("x y", 1)]))];
        let complaints = judge(&allowed, &more);
        assert_eq!(complaints.len(), 3);
        assert!(complaints[0].contains("has 4") && complaints[0].contains("allows 3"));
    }

    #[test]
    fn what_is_not_listed_is_refused_and_what_is_listed_for_nothing_is_too() {
        let (allowed, _) = parse("a: x 3\nb: x 1\n");
        let found = [("a", findings(&[("x", 2), ("y", 2)]))];
        let complaints = judge(&allowed, &found);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert_eq!(complaints[0], "y is wrong");
        assert!(complaints[1].contains("`b: x`"));
    }

    #[test]
    fn a_line_that_says_nothing_is_a_complaint() {
        let (allowed, complaints) = parse("a: x three\nnothing\n");
        assert_eq!(allowed, Allowed::new());
        assert_eq!(complaints.len(), 2);
        assert!(complaints[1].contains(":2:"));
    }

    #[test]
    fn lowering_takes_out_what_is_not_needed_and_raises_nothing() {
        let found = [("a", findings(&[("x", 2), ("y", 9), ("z", 1)]))];
        let text = "# why\na: x 3\na: y 4\na: gone 1\n";
        assert_eq!(lowered(text, &found), "# why\na: x 2\na: y 4\n");
    }
}
