//! What paths select and compute.

use roxmltree::{Attribute, Node, NodeType};

use crate::error::Reason;
use crate::limits::Meter;

/// A node, or an attribute of one with its position.
#[derive(Clone, Copy)]
pub(super) enum Item<'a, 'i> {
    Node(Node<'a, 'i>),
    Attribute(Node<'a, 'i>, usize, Attribute<'a, 'i>),
}

impl<'a, 'i> Item<'a, 'i> {
    /// Sorts in the order of the document.
    pub(super) fn key(&self) -> (usize, usize) {
        match self {
            Self::Node(node) => (node.id().get_usize(), 0),
            Self::Attribute(node, index, _) => (node.id().get_usize(), index + 1),
        }
    }

    /// The node that it is or belongs to.
    pub(super) fn node(&self) -> Node<'a, 'i> {
        match self {
            Self::Node(node) | Self::Attribute(node, _, _) => *node,
        }
    }

    /// Its string-value: the text inside of it.
    pub(super) fn text(&self, meter: &mut Meter<'_>) -> Result<String, Reason> {
        let node = match self {
            Self::Attribute(_, _, attribute) => return Ok(attribute.value().to_owned()),
            Self::Node(node) => node,
        };
        if !matches!(node.node_type(), NodeType::Element | NodeType::Root) {
            let text = node.text().unwrap_or_default();
            meter.spend_bytes(text.len())?;
            return Ok(text.to_owned());
        }
        let mut out = String::new();
        for inner in node.descendants() {
            meter.spend(1)?;
            if inner.is_text() {
                out.push_str(inner.text().unwrap_or_default());
            }
        }
        meter.spend_bytes(out.len())?;
        Ok(out)
    }

    /// Its local name, empty where it has none.
    pub(super) fn local_name(&self) -> &'a str {
        match self {
            Self::Node(node) => node.tag_name().name(),
            Self::Attribute(_, _, attribute) => attribute.name(),
        }
    }

    pub(super) fn namespace(&self) -> Option<&'a str> {
        match self {
            Self::Node(node) => node.tag_name().namespace(),
            Self::Attribute(_, _, attribute) => attribute.namespace(),
        }
    }
}

/// The value of an expression.
pub(super) enum Computed<'a, 'i> {
    /// In the order of the document, each once.
    Items(Vec<Item<'a, 'i>>),
    Text(String),
    Number(f64),
    Bool(bool),
}

impl Computed<'_, '_> {
    pub(super) fn truth(&self) -> bool {
        match self {
            Self::Items(items) => !items.is_empty(),
            Self::Text(text) => !text.is_empty(),
            Self::Number(number) => *number != 0.0 && !number.is_nan(),
            Self::Bool(b) => *b,
        }
    }

    pub(super) fn text(&self, meter: &mut Meter<'_>) -> Result<String, Reason> {
        let text = match self {
            Self::Items(items) => match items.first() {
                Some(item) => item.text(meter)?,
                None => String::new(),
            },
            Self::Text(text) => text.clone(),
            Self::Number(number) => number_text(*number),
            Self::Bool(b) => b.to_string(),
        };
        meter.spend_bytes(text.len())?;
        Ok(text)
    }

    pub(super) fn number(&self, meter: &mut Meter<'_>) -> Result<f64, Reason> {
        Ok(match self {
            Self::Number(number) => *number,
            Self::Bool(b) => f64::from(u8::from(*b)),
            other => text_number(&other.text(meter)?),
        })
    }
}

/// The number that a text is, or NaN.
pub(super) fn text_number(text: &str) -> f64 {
    let text = text.trim();
    let plain = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    if text.is_empty() || !text.chars().all(plain) {
        return f64::NAN;
    }
    text.parse().unwrap_or(f64::NAN)
}

/// A number as XPath writes it.
pub(crate) fn number_text(number: f64) -> String {
    if number.is_nan() {
        "NaN".to_owned()
    } else if number.is_infinite() {
        let sign = if number < 0.0 { "-" } else { "" };
        format!("{sign}Infinity")
    } else {
        let number = if number == 0.0 { 0.0 } else { number };
        number.to_string()
    }
}
