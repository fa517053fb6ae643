//! XPath 1.0 on XML, with a known price.
//!
//! The documents are read by `roxmltree`, document types refused: no entity can be defined, so none can name
//! a file (XXE) or grow (billion laughs). Every node that is looked at is counted. Names without a prefix
//! match in any namespace, as they do where Java reads XML without namespaces; a prefix means the namespace
//! that it has at the node.

mod axis;
mod function;
mod item;
mod parse;
mod token;
mod walk;

pub(crate) use item::number_text;

use roxmltree::{Document, ParsingOptions};

use crate::error::Reason;
use crate::limits::Meter;
use item::Computed;

/// Longest path, in bytes.
const LONGEST_PATH: usize = 4096;

/// Most nodes of a document.
const NODES: u32 = 100_000;

/// What a path selects.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Selected {
    /// The text of the first node, or a computed one.
    Text(String),
    /// A computed number.
    Number(f64),
    /// A computed condition.
    Bool(bool),
    /// No node.
    Nothing,
}

/// Evaluates a path on a document.
pub(crate) fn select(path: &str, text: &str, meter: &mut Meter<'_>) -> Result<Selected, Reason> {
    if path.len() > LONGEST_PATH {
        return Err(fault(
            path,
            format!("it is longer than {LONGEST_PATH} bytes"),
        ));
    }
    let expr = parse::parse(path).map_err(|problem| fault(path, problem))?;
    meter.spend(text.len() / 16)?;
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: NODES,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text.trim_start(), options).map_err(unreadable)?;
    let computed = walk::Walk::new(path, meter).evaluate(&expr, &document)?;
    Ok(match computed {
        Computed::Text(text) => Selected::Text(text),
        Computed::Number(number) => Selected::Number(number),
        Computed::Bool(b) => Selected::Bool(b),
        Computed::Items(items) => match items.first() {
            Some(item) => Selected::Text(item.text(meter)?),
            None => Selected::Nothing,
        },
    })
}

fn fault(path: &str, problem: impl Into<String>) -> Reason {
    Reason::Operation {
        operation: format!("the XPath {path:.80?}"),
        problem: problem.into(),
    }
}

fn unreadable(error: roxmltree::Error) -> Reason {
    let problem = match error {
        roxmltree::Error::DtdDetected => {
            "a document type (`<!DOCTYPE`) is refused: it can name files and make a text grow"
                .to_owned()
        }
        roxmltree::Error::NodesLimitReached => format!("it has more than {NODES} nodes"),
        other => {
            let place = other.pos();
            format!(
                "the text is not XML (line {}, column {})",
                place.row, place.col
            )
        }
    };
    Reason::Operation {
        operation: "xml.select()".to_owned(),
        problem,
    }
}
