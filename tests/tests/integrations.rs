//! State machines of users in local mode: their tasks and distributed maps reach the S3 and the DynamoDB behind the port.

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use aws_sdk_s3::config::{Credentials, Region};
use aws_sdk_s3::primitives::ByteStream;
use serde_json::{Value, json};
use slipway_tests::LocalProcess;

/// Runs the states from `First` on, and gives what reaches the activity behind them, whatever way leads there.
async fn output(local: &LocalProcess, name: &str, states: Value) -> Value {
    let client = local.states();
    let told = client.create_activity().name(name).send().await;
    let activity = told.expect("an activity").activity_arn;
    let mut states = states;
    states["Told"] = json!({"Type": "Task", "Resource": activity, "End": true});
    let machine = client
        .create_state_machine()
        .name(name)
        .role_arn("arn:aws:iam::123456789012:role/machine")
        .definition(json!({"StartAt": "First", "States": states}).to_string());
    let machine = machine.send().await.expect("a machine").state_machine_arn;
    let started = client.start_execution().state_machine_arn(machine);
    started.input("{}").send().await.expect("an execution");
    // It is asked for until it is there, at most a minute.
    let task = client.get_activity_task().activity_arn(activity);
    let task = task.send().await.expect("an answer");
    serde_json::from_str(task.input().expect("a task in time")).expect("JSON")
}

fn s3(local: &LocalProcess) -> aws_sdk_s3::Client {
    let credentials = Credentials::new("slipway", "slipway-local", None, None, "test");
    let config = aws_sdk_s3::Config::builder()
        .behavior_version_latest()
        .endpoint_url(local.url())
        .force_path_style(true)
        .region(Region::new("us-east-1"))
        .credentials_provider(credentials)
        .build();
    aws_sdk_s3::Client::from_conf(config)
}

async fn put(s3: &aws_sdk_s3::Client, key: &str, text: &'static str) {
    let put = s3.put_object().bucket("orders").key(key);
    let put = put.body(ByteStream::from_static(text.as_bytes()));
    put.send().await.expect("an object");
}

/// A distributed map over what `reader` reads: each child passes its item on, and results go to the bucket.
fn map(reader: &Value) -> Value {
    json!({"First": {
        "Type": "Map",
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            "StartAt": "Item",
            "States": {"Item": {"Type": "Pass", "End": true}},
        },
        "ItemReader": reader,
        "ResultWriter": {
            "Resource": "arn:aws:states:::s3:putObject",
            "Parameters": {"Bucket": "orders", "Prefix": "results"},
        },
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Told"}],
        "Next": "Told",
    }})
}

#[tokio::test]
async fn distributed_maps_read_items_from_s3_and_write_results_to_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(folder.path());
    let s3 = s3(&local);
    let made = s3.create_bucket().bucket("orders").send().await;
    made.expect("a bucket");
    put(&s3, "items/day.csv", "id,kind\n1,tea\n2,milk\n").await;
    put(&s3, "items/day.jsonl", "{\"id\": 3}\n").await;

    let csv = json!({
        "Resource": "arn:aws:states:::s3:getObject",
        "ReaderConfig": {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"},
        "Parameters": {"Bucket": "orders", "Key": "items/day.csv"},
    });
    let told = output(&local, "csv", map(&csv)).await;
    let manifest = told["ResultWriterDetails"]["Key"].as_str();
    let manifest = manifest.unwrap_or_else(|| panic!("where the results are: {told}"));
    let key = manifest.replace("manifest.json", "SUCCEEDED_0.json");
    let written = s3.get_object().bucket("orders").key(key).send().await;
    let written = written.expect("the results").body.collect().await;
    let written: Vec<Value> =
        serde_json::from_slice(&written.expect("bytes").into_bytes()).expect("JSON");
    let outputs: Vec<&str> = written
        .iter()
        .filter_map(|one| one["Output"].as_str())
        .collect();
    assert_eq!(
        outputs,
        [r#"{"id":"1","kind":"tea"}"#, r#"{"id":"2","kind":"milk"}"#]
    );

    let listed = json!({
        "Resource": "arn:aws:states:::s3:listObjectsV2",
        "Parameters": {"Bucket": "orders", "Prefix": "items/"},
    });
    let mut counted = map(&listed);
    let first = counted["First"].as_object_mut();
    first.expect("the map").remove("ResultWriter");
    counted["First"]["ResultSelector"] = json!({"keys.$": "$[*].Key"});
    let told = output(&local, "list", counted).await;
    assert_eq!(told, json!({"keys": ["items/day.csv", "items/day.jsonl"]}));

    let missing = json!({
        "Resource": "arn:aws:states:::s3:getObject",
        "ReaderConfig": {"InputType": "JSON"},
        "Parameters": {"Bucket": "orders", "Key": "nowhere.json"},
    });
    let told = output(&local, "missing", map(&missing)).await;
    assert_eq!(told["Error"], "States.ItemReaderFailed");
    let cause = told["Cause"].as_str().unwrap_or_default();
    assert!(
        cause.contains("The specified key does not exist."),
        "{cause}"
    );
}

#[tokio::test]
async fn tasks_call_s3_and_dynamodb_and_catch_their_errors_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let local = LocalProcess::start(folder.path());
    let made = s3(&local).create_bucket().bucket("orders").send().await;
    made.expect("a bucket");
    let credentials = Credentials::new("slipway", "slipway-local", None, None, "test");
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version_latest()
        .endpoint_url(local.url())
        .region(Region::new("us-east-1"))
        .credentials_provider(credentials)
        .build();
    let key = KeySchemaElement::builder()
        .attribute_name("id")
        .key_type(KeyType::Hash);
    let attribute = AttributeDefinition::builder()
        .attribute_name("id")
        .attribute_type(ScalarAttributeType::S);
    let made = aws_sdk_dynamodb::Client::from_conf(config)
        .create_table()
        .table_name("orders")
        .billing_mode(BillingMode::PayPerRequest)
        .key_schema(key.build().expect("a key"))
        .attribute_definitions(attribute.build().expect("an attribute"));
    made.send().await.expect("a table");

    let states = json!({
        "First": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:s3:putObject",
            "Parameters": {"Bucket": "orders", "Key": "one", "Body": {"a": 1}},
            "ResultPath": null,
            "Next": "Read",
        },
        "Read": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:s3:getObject",
            "Parameters": {"Bucket": "orders", "Key": "one"},
            "ResultSelector": {"body.$": "States.StringToJson($.Body)"},
            "Next": "Put",
        },
        "Put": {
            "Type": "Task",
            "Resource": "arn:aws:states:::dynamodb:putItem",
            "Parameters": {"TableName": "orders", "Item": {"id": {"S": "1"}},
                "ConditionExpression": "attribute_not_exists(id)"},
            "ResultPath": null,
            "Next": "Again",
        },
        "Again": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:dynamodb:putItem",
            "Parameters": {"TableName": "orders", "Item": {"id": {"S": "1"}},
                "ConditionExpression": "attribute_not_exists(id)"},
            "Catch": [{"ErrorEquals": ["DynamoDb.ConditionalCheckFailedException"], "ResultPath": "$.twice", "Next": "Own"}],
            "End": true,
        },
        "Own": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:s3:listObjectsV2",
            "Parameters": {"Bucket": "slipway"},
            "Catch": [{"ErrorEquals": ["S3.S3Exception"], "ResultPath": "$.own", "Next": "Queue"}],
            "End": true,
        },
        "Queue": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage",
            "Parameters": {"QueueUrl": "http://q", "MessageBody": "x"},
            "Catch": [{"ErrorEquals": ["States.TaskFailed"], "ResultPath": "$.queue", "Next": "Told"}],
            "End": true,
        },
    });
    let told = output(&local, "tasks", states).await;
    assert_eq!(told["body"], json!({"a": 1}));
    let cause = |name: &str| told[name]["Cause"].as_str().unwrap_or_default().to_owned();
    assert!(
        cause("twice").contains("Service: DynamoDb, Status Code: 400"),
        "{told}"
    );
    assert!(cause("own").starts_with("Access Denied"), "{told}");
    assert!(
        cause("queue").contains("sqs:sendMessage of the state Queue"),
        "{told}"
    );
}
