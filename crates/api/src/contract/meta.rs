//! Whether names that the document has for what an operation needs are of something that is there.

use super::{Contract, methods_of};

#[test]
fn what_an_operation_needs_is_named_and_there() {
    let document = Contract::new("meta-names").document;
    let schemes = &document["components"]["securitySchemes"];
    for (method, path, operation) in methods_of(&document) {
        let proofs = operation["security"].as_array().unwrap();
        for name in proofs
            .iter()
            .flat_map(|proof| proof.as_object().unwrap().keys())
        {
            assert!(schemes[name].is_object(), "{method} {path}: {name}");
        }
        let parameters = operation["parameters"].as_array().unwrap();
        let in_path = parameters.iter().filter(|it| it["in"] == "path");
        assert_eq!(
            in_path.count(),
            path.matches('{').count(),
            "{method} {path}"
        );
    }
}
