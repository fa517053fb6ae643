//! The offline contract of `infra/`: machines, substitutions, functions, roles, tables, variables and
//! errors belong together. cfn-lint opens neither the definitions of machines nor the code.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "what the tests share runs in tests only, and a test says what it expected"
)]

mod app;
mod lint;
mod policies;
mod tables;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use slipway_tests::checkout;

fn template(file: &str) -> Value {
    yaml::read(&text(&format!("infra/{file}")))
}

fn text(path: &str) -> String {
    let path = checkout(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Resources of a type, by logical id.
fn resources<'a>(template: &'a Value, of_type: &str) -> BTreeMap<&'a str, &'a Value> {
    let all = template["Resources"].as_object().expect("resources");
    all.iter()
        .filter(|(_, resource)| resource["Type"] == of_type)
        .map(|(id, resource)| (id.as_str(), &resource["Properties"]))
        .collect()
}

/// Names of the files or folders in a folder of the checkout that `keep` wants.
fn names(folder: &str, keep: impl Fn(&str) -> Option<String>) -> BTreeSet<String> {
    let entries = std::fs::read_dir(checkout(folder)).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .filter_map(|name| keep(&name.to_string_lossy()))
        .collect()
}

/// Names of the machines: `statemachines/<name>.asl.json`.
fn machine_names() -> BTreeSet<String> {
    names("statemachines", |name| {
        name.strip_suffix(".asl.json").map(str::to_owned)
    })
}

/// Names of the functions: `functions/<name>`.
fn function_names() -> BTreeSet<String> {
    names("functions", |name| Some(name.to_owned()))
}

fn machine(name: &str) -> Value {
    let definition = text(&format!("statemachines/{name}.asl.json"));
    serde_json::from_str(&definition).expect("JSON")
}

/// Every state of a machine, those of its maps included.
fn states(definition: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    let mut open = vec![definition];
    while let Some(next) = open.pop() {
        for state in next["States"]
            .as_object()
            .into_iter()
            .flat_map(|states| states.values())
        {
            found.push(state);
            open.push(&state["ItemProcessor"]);
            open.extend(state["Branches"].as_array().into_iter().flatten());
        }
    }
    found
}

/// The logical id that `!GetAtt X.Arn` or `!Ref X` names.
fn logical_id(value: &Value) -> Option<&str> {
    let attribute = value["Fn::GetAtt"]
        .as_str()
        .and_then(|text| text.strip_suffix(".Arn"));
    attribute.or(value["Ref"].as_str())
}

/// Name of the function whose zip a resource runs.
fn function_name(properties: &Value) -> &str {
    let zip = properties["CodeUri"]
        .as_str()
        .and_then(|uri| uri.strip_prefix("../target/lambda/"));
    zip.and_then(|zip| zip.strip_suffix(".zip"))
        .expect("a zip of `cargo xtask package`")
}

/// Name of the machine whose definition a resource runs.
fn machine_name(properties: &Value) -> &str {
    let uri = properties["DefinitionUri"].as_str();
    let file = uri.and_then(|uri| uri.strip_prefix("../statemachines/"));
    file.and_then(|file| file.strip_suffix(".asl.json"))
        .expect("a file of statemachines/")
}
