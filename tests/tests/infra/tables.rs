//! `data.yaml` against the layout of the store: the embedded tables are made from the same definition.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use slipway_store::layout::{BUCKET_VARIABLE, TABLES};

use crate::{resources, template};

#[test]
fn the_tables_are_those_of_the_layout() {
    let data = template("data.yaml");
    let tables = resources(&data, "AWS::DynamoDB::Table");
    let expected: BTreeSet<&str> = TABLES.iter().map(|table| table.logical_id).collect();
    assert_eq!(tables.keys().copied().collect::<BTreeSet<_>>(), expected);
    for definition in TABLES {
        let table = tables[definition.logical_id];
        let (partition, sort) = (definition.partition_key, definition.sort_key);
        assert_eq!(
            table["KeySchema"],
            json!([
                {"AttributeName": partition, "KeyType": "HASH"},
                {"AttributeName": sort, "KeyType": "RANGE"},
            ])
        );
        assert_eq!(
            table["AttributeDefinitions"],
            json!([
                {"AttributeName": partition, "AttributeType": "S"},
                {"AttributeName": sort, "AttributeType": "S"},
            ])
        );
        let ttl = json!({"AttributeName": definition.time_to_live, "Enabled": "true"});
        assert_eq!(table["TimeToLiveSpecification"], ttl);
        assert_eq!(table["GlobalSecondaryIndexes"], Value::Null);
    }
}

#[test]
fn what_must_survive_survives() {
    let data = template("data.yaml");
    for (id, resource) in data["Resources"].as_object().expect("resources") {
        assert_eq!(resource["DeletionPolicy"], "Retain", "{id}");
        assert_eq!(resource["UpdateReplacePolicy"], "Retain", "{id}");
    }
    for (id, table) in resources(&data, "AWS::DynamoDB::Table") {
        let recovery = &table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"];
        assert_eq!(recovery, "true", "{id}");
        assert_eq!(table["SSESpecification"]["SSEEnabled"], "true", "{id}");
    }
}

/// Every `Fn::ImportValue` of a template, without the name of the stack.
fn imports(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![value];
    while let Some(next) = open.pop() {
        if let Some(import) = next["Fn::ImportValue"]["Fn::Sub"].as_str() {
            found.insert(import.replace("${DataStack}-", ""));
        }
        open.extend(next.as_object().into_iter().flat_map(|map| map.values()));
        open.extend(next.as_array().into_iter().flatten());
    }
    found
}

#[test]
fn app_imports_what_data_exports() {
    let (app, data) = (template("app.yaml"), template("data.yaml"));
    let outputs = data["Outputs"].as_object().expect("outputs");
    for (id, output) in outputs {
        assert_eq!(output["Value"], json!({ "Ref": id }));
        assert_eq!(
            output["Export"]["Name"]["Fn::Sub"],
            format!("${{AWS::StackName}}-{id}")
        );
    }
    assert_eq!(imports(&app), outputs.keys().cloned().collect());

    let variables = &app["Globals"]["Function"]["Environment"]["Variables"];
    for (variable, id) in TABLES
        .iter()
        .map(|t| (t.variable, t.logical_id))
        .chain([(BUCKET_VARIABLE, "Bucket")])
    {
        assert_eq!(
            imports(&variables[variable]),
            BTreeSet::from([id.to_owned()]),
            "{variable}"
        );
    }
}
