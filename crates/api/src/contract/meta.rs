//! Whether the document is one of OpenAPI 3.1, and names that it has for what an operation needs
//! are of something that is there.

#![cfg(test)]

use super::{Contract, methods_of};
use jsonschema::Registry;
use serde_json::{Value, json};

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

/// Where a document breaks the published schemas of OpenAPI 3.1, [those kept here][readme]: the
/// document's own, and that of each schema in it.
///
/// [readme]: ../../openapi-3.1/README.md
fn breaks(document: &Value) -> Vec<String> {
    let published = [
        include_str!("../../openapi-3.1/schema.json"),
        include_str!("../../openapi-3.1/schema-base.json"),
        include_str!("../../openapi-3.1/dialect.json"),
        include_str!("../../openapi-3.1/meta.json"),
    ];
    let mut registry = Registry::new();
    for text in published {
        let schema: Value = serde_json::from_str(text).unwrap();
        let id = schema["$id"].as_str().unwrap().to_owned();
        registry = registry.add(id, schema).unwrap();
    }
    let registry = registry.prepare().unwrap();
    let base: Value = serde_json::from_str(published[1]).unwrap();
    let validator = jsonschema::draft202012::options()
        .with_registry(&registry)
        .build(&base)
        .unwrap();
    let broken = validator.iter_errors(document);
    broken
        .map(|it| format!("{}: {it}", it.instance_path()))
        .collect()
}

#[test]
fn the_document_fits_the_published_schema_of_openapi() {
    let document = &*crate::routes::DOCUMENT;
    let broken = breaks(document);
    assert!(broken.is_empty(), "{broken:#?}");
    let wrong: [fn(&mut Value); 8] = [
        |it| it["openapi"] = json!("3.0.0"),
        |it| drop(it["info"].as_object_mut().unwrap().remove("title")),
        |it| it["paths"]["api/v1/luns"] = json!({}),
        |it| it["paths"]["/api/v1/luns"]["get"]["responses"]["2OO"] = json!({ "description": "" }),
        |it| it["paths"]["/api/v1/luns"]["get"]["parameters"][0]["in"] = json!("body"),
        |it| it["paths"]["/api/v1/luns"]["post"]["requestBody"] = json!({ "required": true }),
        |it| it["components"]["securitySchemes"]["token"]["type"] = json!("bearer"),
        |it| it["components"]["schemas"]["LunView"]["type"] = json!("record"),
    ];
    for (number, spoil) in wrong.into_iter().enumerate() {
        let mut spoilt = document.clone();
        spoil(&mut spoilt);
        assert!(!breaks(&spoilt).is_empty(), "mistake {number} is not found");
    }
}
