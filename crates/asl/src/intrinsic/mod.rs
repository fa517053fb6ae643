//! Intrinsic functions: `States.Format('{}', $.name)` and the other functions of the JSONPath side of the
//! language (Developer Guide, "Intrinsic functions for JSONPath states").

mod arrays;
mod functions;
mod java;
mod parse;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::query::Query;

/// A call as it stands in a definition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) source: String,
    function: Function,
    arguments: Vec<Argument>,
}

/// One argument of a call.
#[derive(Clone, Debug, PartialEq)]
enum Argument {
    /// A number, a boolean or null.
    Literal(Value),
    /// The text between the quotes, escapes and all: only the function knows what `{}` in it means.
    Text(String),
    Query(Query),
}

/// The functions (Developer Guide, as above).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Array,
    ArrayContains,
    ArrayGetItem,
    ArrayLength,
    ArrayPartition,
    ArrayRange,
    ArrayUnique,
    Base64Decode,
    Base64Encode,
    Format,
    Hash,
    JsonMerge,
    JsonToString,
    MathAdd,
    MathRandom,
    StringSplit,
    StringToJson,
    Uuid,
}

impl Function {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "Array" => Self::Array,
            "ArrayContains" => Self::ArrayContains,
            "ArrayGetItem" => Self::ArrayGetItem,
            "ArrayLength" => Self::ArrayLength,
            "ArrayPartition" => Self::ArrayPartition,
            "ArrayRange" => Self::ArrayRange,
            "ArrayUnique" => Self::ArrayUnique,
            "Base64Decode" => Self::Base64Decode,
            "Base64Encode" => Self::Base64Encode,
            "Format" => Self::Format,
            "Hash" => Self::Hash,
            "JsonMerge" => Self::JsonMerge,
            "JsonToString" => Self::JsonToString,
            "MathAdd" => Self::MathAdd,
            "MathRandom" => Self::MathRandom,
            "StringSplit" => Self::StringSplit,
            "StringToJson" => Self::StringToJson,
            "UUID" => Self::Uuid,
            _ => return None,
        })
    }

    /// Fewest and most arguments.
    fn takes(self) -> (usize, usize) {
        match self {
            Self::Array => (0, usize::MAX),
            Self::Uuid => (0, 0),
            Self::Format => (1, usize::MAX),
            Self::ArrayLength
            | Self::ArrayUnique
            | Self::Base64Decode
            | Self::Base64Encode
            | Self::JsonToString
            | Self::StringToJson => (1, 1),
            Self::ArrayContains
            | Self::ArrayGetItem
            | Self::ArrayPartition
            | Self::Hash
            | Self::MathAdd
            | Self::StringSplit => (2, 2),
            Self::ArrayRange | Self::JsonMerge => (3, 3),
            Self::MathRandom => (2, 3),
        }
    }
}

impl Call {
    /// Parses `States.…(…)`; `None` if the text is no call, or of a function that there is not.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        parse::call(text)
    }

    /// Queries among the arguments, inner calls included.
    pub(crate) fn queries(&self) -> impl Iterator<Item = &Query> {
        self.arguments.iter().filter_map(|argument| match argument {
            Argument::Query(query) => Some(query),
            _ => None,
        })
    }

    /// Calls the function. `read` gives the values of the queries among the arguments; the error of the
    /// function itself is a sentence without the name of the function.
    pub(crate) fn evaluate<E>(
        &self,
        mut read: impl FnMut(&Query) -> Result<Value, E>,
    ) -> Result<Result<Value, String>, E> {
        let mut values = Vec::with_capacity(self.arguments.len());
        for (i, argument) in self.arguments.iter().enumerate() {
            values.push(match argument {
                Argument::Literal(value) => value.clone(),
                // The template of Format keeps its escapes until its places are known.
                Argument::Text(text) if i == 0 && self.function == Function::Format => {
                    Value::String(text.clone())
                }
                Argument::Text(text) => Value::String(parse::unescaped(text)),
                Argument::Query(query) => read(query)?,
            });
        }
        Ok(functions::call(self.function, values))
    }
}
