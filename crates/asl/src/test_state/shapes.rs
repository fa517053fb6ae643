//! What actions of services answer, as far as mocked results are compared with it.
//!
//! The services' API references, for the actions that machines call most. A shape names the members whose
//! type is known; others are not looked at, nor are actions without a shape. `Field '…'` in an error is the
//! member's own name, however deep it stands, as the service words it.

use serde_json::Value;

/// The shape of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// With its shortest and longest length.
    Text(usize, usize),
    /// With its lowest and highest value.
    Number(f64, f64),
    Boolean,
    List(&'static Shape),
    /// Any names, all of one shape.
    Map(&'static Shape),
    Members(&'static [(&'static str, Shape)]),
}

use Shape::{Boolean, List, Map, Members, Number, Text};

const TEXT: Shape = Text(0, usize::MAX);
const NUMBER: Shape = Number(f64::MIN, f64::MAX);
const COUNT: Shape = Number(0.0, f64::MAX);

const ATTRIBUTE: Shape = Members(&[
    ("S", TEXT),
    ("N", TEXT),
    ("B", TEXT),
    ("BOOL", Boolean),
    ("NULL", Boolean),
    ("SS", List(&TEXT)),
    ("NS", List(&TEXT)),
]);
const CAPACITY: Shape = Members(&[
    ("TableName", TEXT),
    ("CapacityUnits", NUMBER),
    ("ReadCapacityUnits", NUMBER),
    ("WriteCapacityUnits", NUMBER),
]);
const ITEM: Shape = Map(&ATTRIBUTE);
const WRITTEN: Shape = Members(&[
    ("Attributes", ITEM),
    ("ConsumedCapacity", CAPACITY),
    (
        "ItemCollectionMetrics",
        Members(&[
            ("ItemCollectionKey", ITEM),
            ("SizeEstimateRangeGB", List(&NUMBER)),
        ]),
    ),
]);
const LISTED: Shape = Members(&[
    ("Items", List(&ITEM)),
    ("Count", COUNT),
    ("ScannedCount", COUNT),
    ("LastEvaluatedKey", ITEM),
    ("ConsumedCapacity", CAPACITY),
]);
const FUNCTION: Shape = Members(&[
    ("FunctionName", Text(1, 170)),
    ("FunctionArn", TEXT),
    ("Runtime", TEXT),
    ("Role", TEXT),
    ("Handler", Text(0, 128)),
    ("CodeSize", COUNT),
    ("Description", Text(0, 256)),
    ("Timeout", Number(1.0, f64::MAX)),
    ("MemorySize", Number(128.0, 10_240.0)),
    ("LastModified", TEXT),
    ("CodeSha256", TEXT),
    ("Version", Text(1, 1_024)),
    ("State", TEXT),
    (
        "Layers",
        List(&Members(&[("Arn", Text(1, 140)), ("CodeSize", COUNT)])),
    ),
    ("Architectures", List(&TEXT)),
]);
const KEY_ID: Shape = Text(1, 2_048);
const CIPHERTEXT: Shape = Text(1, 6_144 * 4 / 3);

/// Shapes by service, without `aws-sdk:`, and action.
const SHAPES: &[(&str, &[&str], Shape)] = &[
    (
        "dynamodb",
        &["putItem", "updateItem", "deleteItem"],
        WRITTEN,
    ),
    (
        "dynamodb",
        &["getItem"],
        Members(&[("Item", ITEM), ("ConsumedCapacity", CAPACITY)]),
    ),
    ("dynamodb", &["query", "scan"], LISTED),
    (
        "ecs",
        &["runTask"],
        Members(&[
            (
                "Tasks",
                List(&Members(&[
                    ("TaskArn", TEXT),
                    ("ClusterArn", TEXT),
                    ("LastStatus", TEXT),
                    ("Version", NUMBER),
                ])),
            ),
            (
                "Failures",
                List(&Members(&[
                    ("Arn", TEXT),
                    ("Reason", TEXT),
                    ("Detail", TEXT),
                ])),
            ),
        ]),
    ),
    (
        "events",
        &["putEvents"],
        Members(&[
            ("FailedEntryCount", NUMBER),
            (
                "Entries",
                List(&Members(&[
                    ("EventId", TEXT),
                    ("ErrorCode", TEXT),
                    ("ErrorMessage", TEXT),
                ])),
            ),
        ]),
    ),
    (
        "glue",
        &["startJobRun"],
        Members(&[("JobRunId", Text(1, 255))]),
    ),
    (
        "batch",
        &["submitJob"],
        Members(&[("JobArn", TEXT), ("JobName", TEXT), ("JobId", TEXT)]),
    ),
    (
        "kms",
        &["encrypt"],
        Members(&[
            ("CiphertextBlob", CIPHERTEXT),
            ("KeyId", KEY_ID),
            ("EncryptionAlgorithm", TEXT),
        ]),
    ),
    (
        "kms",
        &["decrypt"],
        Members(&[
            ("Plaintext", Text(1, 4_096 * 4 / 3)),
            ("KeyId", KEY_ID),
            ("EncryptionAlgorithm", TEXT),
        ]),
    ),
    (
        "kms",
        &["generateDataKey"],
        Members(&[
            ("CiphertextBlob", CIPHERTEXT),
            ("Plaintext", Text(1, 4_096 * 4 / 3)),
            ("KeyId", KEY_ID),
        ]),
    ),
    (
        "lambda",
        &["getFunction"],
        Members(&[
            ("Configuration", FUNCTION),
            (
                "Code",
                Members(&[
                    ("RepositoryType", TEXT),
                    ("Location", TEXT),
                    ("ImageUri", TEXT),
                ]),
            ),
            ("Tags", Map(&TEXT)),
            (
                "Concurrency",
                Members(&[("ReservedConcurrentExecutions", COUNT)]),
            ),
        ]),
    ),
    (
        "lambda",
        &[
            "getFunctionConfiguration",
            "createFunction",
            "updateFunctionCode",
            "updateFunctionConfiguration",
        ],
        FUNCTION,
    ),
    (
        "lambda",
        &["listFunctions"],
        Members(&[("Functions", List(&FUNCTION)), ("NextMarker", TEXT)]),
    ),
    (
        "lambda",
        &["invoke"],
        Members(&[
            ("StatusCode", NUMBER),
            ("FunctionError", TEXT),
            ("LogResult", TEXT),
            ("ExecutedVersion", Text(1, 1_024)),
        ]),
    ),
    (
        "s3",
        &["listBuckets"],
        Members(&[("Buckets", List(&Members(&[("Name", TEXT)])))]),
    ),
    (
        "s3",
        &["listObjectsV2"],
        Members(&[
            ("IsTruncated", Boolean),
            ("Name", TEXT),
            ("Prefix", TEXT),
            ("KeyCount", NUMBER),
            ("MaxKeys", NUMBER),
            (
                "Contents",
                List(&Members(&[
                    ("Key", Text(1, usize::MAX)),
                    ("ETag", TEXT),
                    ("Size", NUMBER),
                ])),
            ),
        ]),
    ),
    (
        "s3",
        &["getObject"],
        Members(&[
            ("ContentLength", NUMBER),
            ("ContentType", TEXT),
            ("ETag", TEXT),
        ]),
    ),
    (
        "s3",
        &["putObject"],
        Members(&[("ETag", TEXT), ("VersionId", TEXT)]),
    ),
    (
        "secretsmanager",
        &["getSecretValue"],
        Members(&[
            ("ARN", Text(20, 2_048)),
            ("Name", Text(1, 256)),
            ("VersionId", Text(32, 64)),
            ("SecretString", Text(1, 65_536)),
            ("VersionStages", List(&Text(1, 256))),
        ]),
    ),
    (
        "sns",
        &["publish"],
        Members(&[("MessageId", TEXT), ("SequenceNumber", TEXT)]),
    ),
    (
        "sqs",
        &["sendMessage"],
        Members(&[
            ("MD5OfMessageBody", TEXT),
            ("MD5OfMessageAttributes", TEXT),
            ("MessageId", TEXT),
            ("SequenceNumber", TEXT),
        ]),
    ),
    (
        "ssm",
        &["getParameter"],
        Members(&[(
            "Parameter",
            Members(&[
                ("Name", Text(1, 2_048)),
                ("Value", TEXT),
                ("Type", TEXT),
                ("Version", NUMBER),
                ("ARN", TEXT),
            ]),
        )]),
    ),
    (
        "states",
        &["startExecution"],
        Members(&[("ExecutionArn", Text(1, 256))]),
    ),
    (
        "sfn",
        &["startExecution"],
        Members(&[("ExecutionArn", Text(1, 256))]),
    ),
    (
        "sts",
        &["getCallerIdentity"],
        Members(&[
            ("UserId", TEXT),
            ("Account", TEXT),
            ("Arn", Text(20, 2_048)),
        ]),
    ),
];

/// Compares a result with what the action answers; the error is the sentence of the first difference.
pub(super) fn check(service: &str, action: &str, result: &Value) -> Result<(), String> {
    let service = service.strip_prefix("aws-sdk:").unwrap_or(service);
    let (action, pattern) = action.split_once('.').unwrap_or((action, ""));
    // What a job or a token ends with is not the answer to the call.
    if !pattern.is_empty() {
        return Ok(());
    }
    let shape = SHAPES
        .iter()
        .find(|(name, actions, _)| *name == service && actions.contains(&action));
    match shape {
        None => Ok(()),
        Some((_, _, shape)) => fits(shape, "Result", result),
    }
}

fn fits(shape: &Shape, name: &str, value: &Value) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("Field '{name}' {what}"));
    match (shape, value) {
        (Text(shortest, longest), Value::String(text)) => {
            let length = text.chars().count();
            if length < *shortest {
                wrong("is smaller than the minimum length")
            } else if length > *longest {
                wrong("exceeds the maximum length")
            } else {
                Ok(())
            }
        }
        (Number(lowest, highest), Value::Number(number)) => {
            let number = number.as_f64().unwrap_or_default();
            if number < *lowest {
                wrong("is less than the minimum value")
            } else if number > *highest {
                wrong("exceeds the maximum value")
            } else {
                Ok(())
            }
        }
        (Boolean, Value::Bool(_)) => Ok(()),
        (List(shape), Value::Array(items)) => {
            items.iter().try_for_each(|item| fits(shape, name, item))
        }
        (Map(shape), Value::Object(members)) => members
            .iter()
            .try_for_each(|(name, value)| fits(shape, name, value)),
        (Members(known), Value::Object(members)) => known.iter().try_for_each(|(name, shape)| {
            members
                .get(*name)
                .map_or(Ok(()), |value| fits(shape, name, value))
        }),
        (Text(..), _) => wrong("must be a string"),
        (Number(..), _) => wrong("must be a number"),
        (Boolean, _) => wrong("must be a boolean"),
        (List(_), _) => wrong("must be an array"),
        (Map(_) | Members(_), _) => wrong("must be an object"),
    }
}
