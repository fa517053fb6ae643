//! Reads `Map` states, inline and distributed.
//!
//! Developer Guide, "Using Map state in Distributed mode".

use serde_json::Value;

use super::MachineType;
use super::fields::{Fields, Result, invalid, none_of};
use super::read::{LONGEST, Place, Reader};
use crate::template::Template;

/// The fields that only a `Map` has.
pub(super) const FIELDS: &[&str] = &[
    "Items",
    "ItemsPath",
    "ItemSelector",
    "ItemProcessor",
    "Iterator",
    "ItemReader",
    "ItemBatcher",
    "ResultWriter",
    "MaxConcurrency",
    "MaxConcurrencyPath",
    "ToleratedFailureCount",
    "ToleratedFailureCountPath",
    "ToleratedFailurePercentage",
    "ToleratedFailurePercentagePath",
    "Label",
];
/// Longest `Label` (Developer Guide).
const LONGEST_LABEL: usize = 40;

/// A `Map`.
#[derive(Debug)]
pub(crate) struct MapState {
    /// `Items` or `ItemsPath`.
    pub(crate) items: Option<Template>,
    /// `ItemSelector`, or `Parameters` of old definitions.
    pub(crate) selector: Option<Template>,
    pub(crate) max_concurrency: Option<Template>,
    pub(crate) tolerated_count: Option<Template>,
    pub(crate) tolerated_percentage: Option<Template>,
    pub(crate) processor: usize,
    /// What a distributed `Map` has besides; `None` runs inline.
    pub(crate) distributed: Option<Distributed>,
}

/// What only a distributed `Map` has.
#[derive(Debug)]
pub(crate) struct Distributed {
    /// `ExecutionType` of the children.
    pub(crate) kind: MachineType,
    pub(crate) label: Option<String>,
    pub(crate) reader: Option<ItemReader>,
    pub(crate) batcher: Option<ItemBatcher>,
    pub(crate) writer: Option<ResultWriter>,
}

/// Where the items come from.
#[derive(Debug)]
pub(crate) struct ItemReader {
    pub(crate) lists_objects: bool,
    pub(crate) arguments: Option<Template>,
    pub(crate) input: InputType,
    pub(crate) max_items: Option<Template>,
}

/// What an object with items holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InputType {
    Json {
        /// `ItemsPointer`: a JSON pointer to the array or object.
        pointer: Option<String>,
    },
    JsonLines,
    Csv {
        /// `None`: the first row.
        headers: Option<Vec<String>>,
        delimiter: u8,
    },
    /// An S3 inventory.
    Manifest,
}

/// How items are put together.
#[derive(Debug)]
pub(crate) struct ItemBatcher {
    pub(crate) max_items: Option<Template>,
    pub(crate) max_bytes: Option<Template>,
    pub(crate) input: Option<Template>,
}

/// Where the results go.
#[derive(Debug)]
pub(crate) struct ResultWriter {
    pub(crate) arguments: Option<Template>,
}

impl MapState {
    /// All templates of the state.
    pub(super) fn templates(&self) -> impl Iterator<Item = &Template> {
        let own = [
            &self.items,
            &self.selector,
            &self.max_concurrency,
            &self.tolerated_count,
            &self.tolerated_percentage,
        ];
        let distributed = self.distributed.iter().flat_map(|distributed| {
            let reader = distributed.reader.iter();
            let batcher = distributed.batcher.iter();
            let writer = distributed.writer.iter();
            reader
                .flat_map(|reader| [&reader.arguments, &reader.max_items])
                .chain(batcher.flat_map(|b| [&b.max_items, &b.max_bytes, &b.input]))
                .chain(writer.map(|writer| &writer.arguments))
        });
        own.into_iter().chain(distributed).flatten()
    }
}

impl Reader {
    pub(super) fn map(&mut self, fields: &Fields<'_>, place: Place) -> Result<MapState> {
        let name = if fields.has("Iterator") {
            "Iterator"
        } else {
            "ItemProcessor"
        };
        fields.only_one(&["ItemProcessor", "Iterator"], true)?;
        let path = fields.at(name);
        let processor = fields.get(name).unwrap_or(&Value::Null);
        let inner = fields.inner(processor, &path)?;
        if inner.has("QueryLanguage") {
            return inner.unsupported("QueryLanguage");
        }
        let distributed = distributed(fields, &inner, self.kind)?;
        let outer_kind = self.kind;
        if let Some(distributed) = &distributed {
            self.kind = distributed.kind;
        }
        let processor = self.machine(processor, &path, place.deeper());
        self.kind = outer_kind;
        fields.one_of_pair("MaxConcurrency")?;
        fields.one_of_pair("ToleratedFailureCount")?;
        fields.one_of_pair("ToleratedFailurePercentage")?;
        Ok(MapState {
            items: items(fields)?,
            selector: match fields.template("ItemSelector")? {
                Some(selector) => Some(selector),
                None => fields.template("Parameters")?,
            },
            max_concurrency: fields.whole_or_query("MaxConcurrency", 0..=LONGEST)?,
            tolerated_count: fields.whole_or_query("ToleratedFailureCount", 0..=LONGEST)?,
            tolerated_percentage: fields.percentage_or_query("ToleratedFailurePercentage")?,
            processor: processor?,
            distributed,
        })
    }
}

fn items(fields: &Fields<'_>) -> Result<Option<Template>> {
    if fields.is_jsonata() {
        return fields.template("Items");
    }
    let query = fields.query("ItemsPath")?;
    Ok(query.map(|query| Template::Query(query, crate::query::Wording::Path)))
}

fn distributed(
    fields: &Fields<'_>,
    processor: &Fields<'_>,
    outer: MachineType,
) -> Result<Option<Distributed>> {
    let Some(config) = processor.get("ProcessorConfig") else {
        return Ok(None);
    };
    let config = processor.inner(config, &processor.at("ProcessorConfig"))?;
    config.allow(&["Mode", "ExecutionType"])?;
    match config.text("Mode")? {
        None | Some("INLINE") if config.has("ExecutionType") => {
            return config.unsupported("ExecutionType");
        }
        None | Some("INLINE") => return Ok(None),
        Some("DISTRIBUTED") if outer == MachineType::Express => {
            return invalid(
                &config.at("Mode"),
                "The field 'Mode' with value 'DISTRIBUTED' is not supported inside 'EXPRESS' state machines",
            );
        }
        Some("DISTRIBUTED") => {}
        Some(_) => return none_of(&config.at("Mode"), &["INLINE", "DISTRIBUTED"]),
    }
    config.require(&["ExecutionType"])?;
    let kind = match config.text("ExecutionType")? {
        Some("STANDARD") => MachineType::Standard,
        Some("EXPRESS") => MachineType::Express,
        _ => return none_of(&config.at("ExecutionType"), &["STANDARD", "EXPRESS"]),
    };
    let label = label(fields)?;
    Ok(Some(Distributed {
        kind,
        label: label.map(str::to_owned),
        reader: part(fields, "ItemReader", reader)?,
        batcher: part(fields, "ItemBatcher", batcher)?,
        writer: part(fields, "ResultWriter", writer)?,
    }))
}

/// The part of the map run's ARN that tells maps of one machine apart (Developer Guide, `Label`).
fn label<'a>(fields: &Fields<'a>) -> Result<Option<&'a str>> {
    let Some(label) = fields.text("Label")? else {
        return Ok(None);
    };
    let bad =
        |c: char| c.is_whitespace() || c.is_control() || "?*<>{}[]:;,\\|^~$#%&`\"".contains(c);
    if label.is_empty() || label.chars().count() > LONGEST_LABEL {
        return invalid(
            &fields.at("Label"),
            format!("A label has from 1 to {LONGEST_LABEL} characters"),
        );
    }
    if label.contains(bad) {
        return invalid(
            &fields.at("Label"),
            "A label has no white space, wildcards, brackets, control or special characters",
        );
    }
    Ok(Some(label))
}

fn part<T>(
    fields: &Fields<'_>,
    name: &str,
    read: fn(&Fields<'_>) -> Result<T>,
) -> Result<Option<T>> {
    let Some(value) = fields.get(name) else {
        return Ok(None);
    };
    let inner = fields.inner(value, &fields.at(name))?;
    inner.refuse_other_language()?;
    read(&inner).map(Some)
}

fn reader(fields: &Fields<'_>) -> Result<ItemReader> {
    fields.allow(&["Resource", "Parameters", "Arguments", "ReaderConfig"])?;
    let resource = fields.required_text("Resource")?;
    let lists_objects = match resource.rsplit_once(":::") {
        Some((_, "s3:getObject")) => false,
        Some((_, "s3:listObjectsV2")) => true,
        _ => {
            return invalid(
                &fields.at("Resource"),
                "The field 'Resource' does not match any of the allowed values",
            );
        }
    };
    let nothing = Value::Object(serde_json::Map::new());
    let config = fields.get("ReaderConfig").unwrap_or(&nothing);
    let config = fields.inner(config, &fields.at("ReaderConfig"))?;
    config.refuse_other_language()?;
    config.one_of_pair("MaxItems")?;
    Ok(ItemReader {
        lists_objects,
        arguments: fields.template(fields.arguments())?,
        input: input_type(&config, lists_objects)?,
        max_items: config.whole_or_query("MaxItems", 0..=LONGEST)?,
    })
}

fn input_type(config: &Fields<'_>, lists_objects: bool) -> Result<InputType> {
    let kind = config.text("InputType")?;
    if kind == Some("JSON") && config.has("CSVHeaderLocation") {
        return config.unsupported("CSVHeaderLocation");
    }
    match kind {
        None if lists_objects => Ok(InputType::Json { pointer: None }),
        Some("JSON") => Ok(InputType::Json {
            pointer: config.text("ItemsPointer")?.map(str::to_owned),
        }),
        Some("JSONL") => Ok(InputType::JsonLines),
        Some("MANIFEST") => Ok(InputType::Manifest),
        Some("CSV") => csv(config),
        _ => none_of(
            &config.at("InputType"),
            &["CSV", "JSON", "JSONL", "PARQUET", "MANIFEST"],
        ),
    }
}

fn csv(config: &Fields<'_>) -> Result<InputType> {
    let headers = match config.text("CSVHeaderLocation")? {
        Some("FIRST_ROW") => None,
        Some("GIVEN") => {
            config.require(&["CSVHeaders"])?;
            let headers = config.list("CSVHeaders")?.iter().map(Value::as_str);
            match headers.map(|h| h.map(str::to_owned)).collect() {
                Some(headers) => Some(headers),
                None => {
                    return invalid(&config.at("CSVHeaders"), "Expected value of type String");
                }
            }
        }
        None => {
            return invalid(&config.path, "The field 'CSVHeaderLocation' is required");
        }
        Some(_) => return none_of(&config.at("CSVHeaderLocation"), &["FIRST_ROW", "GIVEN"]),
    };
    let delimiter = match config.text("CSVDelimiter")? {
        None | Some("COMMA") => b',',
        Some("PIPE") => b'|',
        Some("SEMICOLON") => b';',
        Some("SPACE") => b' ',
        Some("TAB") => b'\t',
        Some(_) => {
            let known = ["COMMA", "PIPE", "SEMICOLON", "SPACE", "TAB"];
            return none_of(&config.at("CSVDelimiter"), &known);
        }
    };
    Ok(InputType::Csv { headers, delimiter })
}

fn batcher(fields: &Fields<'_>) -> Result<ItemBatcher> {
    fields.one_of_pair("MaxItemsPerBatch")?;
    fields.one_of_pair("MaxInputBytesPerBatch")?;
    let batcher = ItemBatcher {
        max_items: fields.whole_or_query("MaxItemsPerBatch", 1..=LONGEST)?,
        max_bytes: fields.whole_or_query("MaxInputBytesPerBatch", 1..=262_144)?,
        input: fields.template("BatchInput")?,
    };
    if batcher.max_items.is_none() && batcher.max_bytes.is_none() {
        return invalid(
            &fields.path,
            "At least one of these fields is required: [MaxItemsPerBatch, MaxInputBytesPerBatch]",
        );
    }
    Ok(batcher)
}

fn writer(fields: &Fields<'_>) -> Result<ResultWriter> {
    fields.allow(&["Resource", "Parameters", "Arguments", "WriterConfig"])?;
    Ok(ResultWriter {
        arguments: fields.template(fields.arguments())?,
    })
}
