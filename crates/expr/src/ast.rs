//! What the parser makes of an expression. Chains are flat lists, so the height of a tree is bounded by
//! the nesting that the grammar allows, however long an expression is.

use crate::value::Value;

/// A part of a text: literal, or an expression in `<+…>`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Text(String),
    Expression(Nested),
}

/// `<+…>`, with its text for errors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Nested {
    pub(crate) source: String,
    pub(crate) expr: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    Literal(Value),
    /// A string literal with expressions in it.
    Text(Vec<Part>),
    Nested(Box<Nested>),
    /// Begins with a name that the context knows: the first access is a property.
    Path(Vec<Access>),
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

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Access {
    /// `.name`, where parts of the name may be expressions.
    Property(Vec<Part>),
    /// `[index]`.
    Index(Expr),
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
