//! The JSON Schema for editors says what the parser says.

use serde_json::{Value, json};
use slipway_model::{Kind, json_schema};

/// The definition that a reference (or the first form of a choice) leads to.
fn follow<'a>(schema: &'a Value, mut at: &'a Value) -> &'a Value {
    while let Some(first) = at.pointer("/anyOf/0") {
        at = first;
    }
    match at["$ref"].as_str() {
        Some(path) => {
            let found = schema.pointer(path.trim_start_matches('#'));
            assert!(found.is_some(), "{path} leads nowhere");
            found.unwrap_or(&Value::Null)
        }
        None => at,
    }
}

/// The value at a path of properties, through references and lists.
fn at<'a>(schema: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(schema, |place, key| {
        let place = follow(schema, place);
        match *key {
            "[]" => follow(schema, &place["items"]),
            key => follow(schema, &place["properties"][key]),
        }
    })
}

#[test]
fn a_pipeline_has_its_fields_patterns_and_step_types() {
    let schema = json_schema(Some(Kind::Pipeline));
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    assert_eq!(schema["properties"].as_object().unwrap().len(), 1);

    let pipeline = at(&schema, &["pipeline"]);
    assert_eq!(pipeline["additionalProperties"], false);
    let pattern = at(&schema, &["pipeline", "identifier"])["pattern"]
        .as_str()
        .unwrap();
    assert!(
        pattern.starts_with("^[a-zA-Z_][0-9a-zA-Z_]{0,127}$"),
        "{pattern}"
    );

    let stage = at(&schema, &["pipeline", "stages", "[]", "stage"]);
    assert_eq!(stage["required"], json!(["identifier", "name"]));
    assert_eq!(
        stage["oneOf"],
        json!([{ "required": ["type"] }, { "required": ["template"] }])
    );

    let custom = stage["allOf"].as_array().unwrap();
    let custom = custom
        .iter()
        .find(|rule| rule["if"]["properties"]["type"]["const"] == "Custom")
        .unwrap();
    let spec = follow(&schema, &custom["then"]["properties"]["spec"]);
    assert_eq!(spec["required"], json!(["execution"]));
    let execution = follow(&schema, &spec["properties"]["execution"]);
    let wrapper = follow(
        &schema,
        &follow(&schema, &execution["properties"]["steps"])["items"],
    );
    let step = follow(&schema, &wrapper["properties"]["step"]);
    let types = follow(&schema, &step["properties"]["type"])["enum"]
        .as_array()
        .unwrap();
    assert!(types.len() >= 351, "{} step types", types.len());
    for name in [
        "EcsRollingDeploy",
        "ShellScript",
        "Http",
        "TerraformPlan",
        "K8sBGSwapServices",
    ] {
        assert!(types.contains(&json!(name)), "{name}");
    }
}

#[test]
fn every_kind_is_there_and_every_reference_leads_somewhere() {
    let schema = json_schema(None);
    let kinds = schema["properties"].as_object().unwrap();
    for kind in Kind::ALL {
        assert!(kinds.contains_key(kind.key()), "{}", kind.key());
    }
    let own = json_schema(Some(Kind::Secret));
    assert!(follow(&own, &own["properties"]["secret"])["properties"].is_object());
    let mut work = vec![&schema];
    let mut references = 0;
    while let Some(value) = work.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(path)) = fields.get("$ref") {
                    let found = schema.pointer(path.trim_start_matches('#'));
                    assert!(found.is_some_and(|found| *found != json!(true)), "{path}");
                    references += 1;
                }
                work.extend(fields.values());
            }
            Value::Array(items) => work.extend(items),
            _ => {}
        }
    }
    assert!(references > 1_000, "{references} references");
}

#[test]
fn bodies_and_parts_ask_for_less() {
    let schema = json_schema(Some(Kind::InputSet));
    assert_eq!(
        at(&schema, &["inputSet"])["required"],
        json!(["identifier", "name", "pipeline"])
    );
    let stage = at(&schema, &["inputSet", "pipeline", "stages", "[]", "stage"]);
    assert_eq!(
        (&stage["required"], &stage["oneOf"]),
        (&Value::Null, &Value::Null)
    );

    let schema = json_schema(Some(Kind::Template));
    let template = at(&schema, &["template"]);
    assert_eq!(
        template["required"],
        json!(["identifier", "name", "versionLabel", "type"])
    );
    let rules = template["allOf"].as_array().unwrap();
    let stage = rules
        .iter()
        .find(|rule| rule["if"]["properties"]["type"]["const"] == "Stage")
        .unwrap();
    let body = follow(&schema, &stage["then"]["properties"]["spec"]);
    assert_eq!(body["required"], Value::Null);
    assert!(body["properties"]["identifier"].is_object());

    let connector = json_schema(Some(Kind::Connector));
    let rules = at(&connector, &["connector"])["allOf"].as_array().unwrap();
    let closed = |name: &str| {
        let rule = rules
            .iter()
            .find(|rule| rule["if"]["properties"]["type"]["const"] == name)
            .unwrap();
        follow(&connector, &rule["then"]["properties"]["spec"])["additionalProperties"] == false
    };
    assert!(closed("Aws") && !closed("Jira"));
}
