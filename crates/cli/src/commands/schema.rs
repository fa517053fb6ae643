//! `slipway schema`: the JSON Schema of the language, for editors.

use slipway_model::entity::Kind;
use slipway_model::schema::json_schema;

use crate::args::{Format, SchemaArgs};
use crate::error::CliError;
use crate::exit::Exit;
use crate::output;

/// Prints the schema of one kind, or of all: JSON, unless YAML is asked for.
///
/// # Errors
/// When there is no such kind.
pub fn schema(format: Option<Format>, args: &SchemaArgs) -> Result<Exit, CliError> {
    let kind = args.kind.as_deref().map(kind).transpose()?;
    output::document(format.unwrap_or(Format::Json), &json_schema(kind))?;
    Ok(Exit::Succeeded)
}

fn kind(key: &str) -> Result<Kind, CliError> {
    Kind::from_key(key).ok_or_else(|| {
        let known = Kind::ALL.map(Kind::key).join(", ");
        CliError::Usage(format!("`{key}` is no kind of entity: one of {known}"))
    })
}
