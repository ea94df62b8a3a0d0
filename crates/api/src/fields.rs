//! Which members of a body are wrong, for `fields` of a problem.

use manifest::objects::{FIELDS, GrantSpec, ObjectSet};
use manifest::problem::{FieldFault, Problem};

/// What the body of a change is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    /// There is none, or nothing of it is an object.
    None,
    /// One object, or a part of one.
    One,
    /// A set of objects: their kinds and names, in its order.
    Set(Vec<(&'static str, usize, String)>),
}

impl Body {
    /// A set as it was sent.
    pub(crate) fn set(set: &ObjectSet) -> Self {
        let grant = |it: &GrantSpec| {
            let target = it.target.as_deref().unwrap_or_default();
            format!("{}:{target}:{}", it.host, it.lun)
        };
        let mut all = Vec::new();
        let mut add = |kind: &'static str, names: Vec<String>| {
            let names = names.into_iter().enumerate();
            all.extend(names.map(|(at, name)| (kind, at, name)));
        };
        add("lun", set.lun.iter().map(|it| it.name.clone()).collect());
        add(
            "target",
            set.target.iter().map(|it| it.name.clone()).collect(),
        );
        add("host", set.host.iter().map(|it| it.name.clone()).collect());
        add("grant", set.grant.iter().map(grant).collect());
        Self::Set(all)
    }

    /// `problem` with the members that its faults speak of.
    pub(crate) fn locate(&self, problem: Problem) -> Problem {
        let faults = problem.faults.iter();
        let fields: Vec<FieldFault> = match self {
            Self::None => return problem,
            Self::One => faults
                .map(|fault| FieldFault {
                    field: fault.key.clone(),
                    message: fault.message.clone(),
                })
                .collect(),
            Self::Set(all) => {
                let place = |kind: &str, name: &str| {
                    let is = |it: &&(&str, usize, String)| it.0 == kind && it.2 == name;
                    all.iter()
                        .find(is)
                        .map(|(kind, at, _)| format!("{kind}[{at}]"))
                };
                let located = faults.filter_map(|fault| {
                    let object = place(&fault.section, &fault.object)?;
                    Some(FieldFault {
                        field: join(&object, &fault.key),
                        message: fault.message.clone(),
                    })
                });
                located.collect()
            }
        };
        problem.fields(fields)
    }
}

fn join(path: &str, member: &str) -> String {
    match (path, member) {
        ("" | ".", member) => member.to_owned(),
        (path, "") => path.to_owned(),
        (path, member) => format!("{path}.{member}"),
    }
}

/// The member that could not be read: where the reader stood, and what its message names.
pub(crate) fn unread(path: &str, message: &str) -> FieldFault {
    let named = ["missing field `", "unknown field `"]
        .iter()
        .find_map(|words| {
            let (_, rest) = message.split_once(words)?;
            rest.split('`').next()
        });
    // The storage fields are read when all others are, and say which of them they are.
    let storage = message.split_once(": ").map(|(name, _)| name);
    let storage = storage.filter(|name| FIELDS.iter().any(|field| field.name() == *name));
    let member = named.or(storage).unwrap_or_default();
    let field = if !member.is_empty() && path.ends_with(member) {
        path.to_owned()
    } else {
        join(path, member)
    };
    FieldFault {
        field,
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use manifest::code::Code;
    use manifest::objects::LunSpec;
    use manifest::problem::Fault;

    #[test]
    fn what_could_not_be_read_is_named_from_the_top() {
        for (path, message, field) in [
            (".", "missing field `size` at line 1 column 14", "size"),
            ("lun[1]", "missing field `size`", "lun[1].size"),
            ("size", "\"1Q\" is not a size", "size"),
            (
                ".",
                "shares: invalid type: string \"x\", expected u32",
                "shares",
            ),
            (
                "lun[0].shape",
                "unknown field `shape` of a LUN",
                "lun[0].shape",
            ),
            (".", "expected value at line 1 column 1", ""),
        ] {
            assert_eq!(unread(path, message).field, field, "{message}");
        }
    }

    #[test]
    fn faults_of_objects_are_found_in_the_set_that_named_them() {
        let size = "1G".parse().unwrap();
        let set = ObjectSet {
            lun: vec![LunSpec::new("a", size), LunSpec::new("b", size)],
            ..ObjectSet::default()
        };
        let problem = Problem::new(Code::InvalidObjects, "").faults(vec![
            Fault::new("lun", "b", "size", "odd"),
            Fault::new("lun", "elsewhere", "size", "odd"),
        ]);
        let located = Body::set(&set).locate(problem.clone());
        assert_eq!(located.fields.len(), 1);
        assert_eq!(located.fields[0].field, "lun[1].size");
        assert_eq!(Body::One.locate(problem.clone()).fields[0].field, "size");
        assert!(Body::None.locate(problem).fields.is_empty());
    }
}
