//! What the parser makes of an expression. Chains are flat lists, so the height of a tree is bounded by
//! the nesting that the grammar allows, however long an expression is.

use std::ops::Range;

use crate::value::{Segment, Value};

/// A part of a text: literal, or an expression in `<+…>`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Text(String),
    Expression(Nested),
}

/// `<+…>`, and where it stands in the text that was parsed, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Nested {
    pub(crate) span: Range<usize>,
    pub(crate) expr: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    Literal(Value),
    /// A string literal with expressions in it.
    Text(Vec<Part>),
    Nested(Box<Expr>),
    Path(Box<Path>),
    /// Accesses on any other value.
    Of(Box<Expr>, Vec<Access>),
    Call(Builtin, Box<Expr>),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    /// Applied from the last to the first.
    Unary(Vec<Unary>, Box<Expr>),
    /// Operators of one precedence, from left to right.
    Chain(Box<Expr>, Vec<(Binary, Expr)>),
    Choice(Box<Choice>),
    Script(Vec<Statement>),
}

/// Begins with a name that the context knows, or with a function of its own name (`currentDate()`).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path {
    /// The segments that are known without evaluating.
    pub(crate) head: Vec<Segment>,
    /// What follows from the first computed segment or call on.
    pub(crate) steps: Vec<Access>,
}

/// `condition?then:otherwise`, `value?:otherwise`, `value??otherwise`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Choice {
    Ternary {
        condition: Expr,
        then: Expr,
        otherwise: Expr,
    },
    Elvis {
        value: Expr,
        otherwise: Expr,
    },
    Coalesce {
        value: Expr,
        otherwise: Expr,
    },
}

/// A statement of a script, as trigger conditions use them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    /// Its value is the script's if nothing follows.
    Value(Expr),
    Return(Option<Expr>),
    Block(Vec<Statement>),
    If {
        condition: Expr,
        then: Box<Statement>,
        otherwise: Option<Box<Statement>>,
    },
    For {
        name: String,
        items: Expr,
        body: Box<Statement>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Access {
    /// `.name`, `[0]` or `["name"]`: known without evaluating.
    Known(Segment),
    /// `.name`, where parts of the name are expressions.
    Joined(Vec<Part>),
    /// `[index]`.
    Index(Expr),
    /// `?.name`: of null it is null.
    Safe(Segment),
    /// `.name(arguments)`.
    Method(String, Vec<Expr>),
}

/// Functions that are part of the language and not of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    Empty,
    Size,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Not,
    Minus,
    Plus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    And,
    Equal,
    NotEqual,
    Matches,
    NotMatches,
    StartsWith,
    NotStartsWith,
    EndsWith,
    NotEndsWith,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}
