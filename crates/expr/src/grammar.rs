//! The grammar: texts with `<+…>` in them, and the JEXL expressions inside.
//!
//! winnow cuts the words; precedence, nesting limits and the meaning of `>` are decided here. A `>` at the
//! end of an operand closes the innermost `<+`, unless parentheses are open, or there is blank space on
//! both sides of it, an operand after it, and another `>` later in the line to do the closing.

mod literal;
mod operand;
mod script;

use winnow::error::ParserError;
use winnow::stream::{LocatingSlice, Location, Stateful, Stream};

use crate::ast::{Binary, Choice, Expr, Nested, Part, Unary};
use crate::error::ParseError;

/// Deepest nesting of `<+…>`, brackets and ternaries.
pub(crate) const MAX_NESTING: usize = 32;

/// How far behind a `>` the one that closes is looked for, in bytes.
const LOOKAHEAD: usize = 512;

type Input<'s> = Stateful<LocatingSlice<&'s str>, State<'s>>;
type Parsed<T> = Result<T, ParseError>;

#[derive(Clone, Copy, Debug)]
struct State<'s> {
    source: &'s str,
    nesting: usize,
    /// Open `<+`.
    delimiters: usize,
    /// Open brackets since the innermost `<+`.
    brackets: usize,
}

impl<'s> ParserError<Input<'s>> for ParseError {
    type Inner = Self;

    fn from_input(input: &Input<'s>) -> Self {
        fault(input, "something else")
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}

fn input(source: &str) -> Input<'_> {
    Stateful {
        input: LocatingSlice::new(source),
        state: State {
            source,
            nesting: 0,
            delimiters: 0,
            brackets: 0,
        },
    }
}

fn fault(i: &Input<'_>, expected: &'static str) -> ParseError {
    let rest = rest(i);
    let found = match rest.chars().next() {
        None => "the end of the text".to_owned(),
        Some(_) => format!("`{}`", rest.chars().take(12).collect::<String>()),
    };
    ParseError {
        offset: i.current_token_start(),
        expected,
        found,
    }
}

fn rest<'s>(i: &Input<'s>) -> &'s str {
    i.state.source.get(i.current_token_start()..).unwrap_or("")
}

fn skip(i: &mut Input<'_>, bytes: usize) {
    i.next_slice(bytes);
}

/// A text with any number of expressions.
pub(crate) fn template(source: &str) -> Parsed<Vec<Part>> {
    let mut i = input(source);
    let mut parts = Vec::new();
    loop {
        let rest = rest(&i);
        let next = rest.find("<+").unwrap_or(rest.len());
        if next > 0 {
            parts.push(Part::Text(rest[..next].to_owned()));
            skip(&mut i, next);
        }
        if next == rest.len() {
            return Ok(parts);
        }
        parts.push(Part::Expression(nested(&mut i)?));
    }
}

/// A whole text that is one expression or a script, as in `condition:`.
pub(crate) fn expression(source: &str) -> Parsed<Expr> {
    let mut i = input(source);
    let expr = script::script(&mut i)?;
    spaces(&mut i);
    if rest(&i).is_empty() {
        Ok(expr)
    } else {
        Err(fault(&i, "an operator or the end of the expression"))
    }
}

/// Skips blank space, with the backslashes that YAML was given to continue a line. Whether there was any.
fn spaces(i: &mut Input<'_>) -> bool {
    let rest = rest(i);
    let mut after = rest.trim_start();
    while let Some(continued) = after.strip_prefix('\\') {
        if !continued.starts_with(char::is_whitespace) {
            break;
        }
        after = continued.trim_start();
    }
    let skipped = rest.len() - after.len();
    skip(i, skipped);
    skipped > 0
}

/// `<+…>`, the stream standing at its `<`.
fn nested(i: &mut Input<'_>) -> Parsed<Nested> {
    let start = i.current_token_start();
    let brackets = std::mem::replace(&mut i.state.brackets, 0);
    i.state.delimiters += 1;
    skip(i, 2);
    let expr = script::script(i)?;
    spaces(i);
    if !rest(i).starts_with('>') {
        return Err(fault(i, "an operator or the closing `>`"));
    }
    skip(i, 1);
    i.state.delimiters -= 1;
    i.state.brackets = brackets;
    Ok(Nested {
        span: start..i.current_token_start(),
        expr,
    })
}

/// Runs a parser one level deeper; too many levels are an error.
fn deeper<'s, T>(i: &mut Input<'s>, parse: impl FnOnce(&mut Input<'s>) -> Parsed<T>) -> Parsed<T> {
    if i.state.nesting == MAX_NESTING {
        return Err(fault(i, "at most 32 levels of nesting"));
    }
    i.state.nesting += 1;
    let parsed = parse(i)?;
    i.state.nesting -= 1;
    Ok(parsed)
}

fn choice(i: &mut Input<'_>) -> Parsed<Expr> {
    deeper(i, |i| {
        let value = chain(i, 0)?;
        let start = i.checkpoint();
        spaces(i);
        let choice = if eat(i, "?:") {
            let otherwise = choice(i)?;
            Choice::Elvis { value, otherwise }
        } else if eat(i, "??") {
            let otherwise = choice(i)?;
            Choice::Coalesce { value, otherwise }
        } else if eat(i, "?") {
            ternary(i, value)?
        } else {
            i.reset(&start);
            return Ok(value);
        };
        Ok(Expr::Choice(Box::new(choice)))
    })
}

fn ternary(i: &mut Input<'_>, condition: Expr) -> Parsed<Choice> {
    let then = choice(i)?;
    spaces(i);
    if !eat(i, ":") {
        return Err(fault(i, "`:` and the other case"));
    }
    let otherwise = choice(i)?;
    Ok(Choice::Ternary {
        condition,
        then,
        otherwise,
    })
}

/// Operators by precedence, loosest first; longer symbols before their beginnings.
const LEVELS: [&[(&str, Binary)]; 6] = [
    &[("||", Binary::Or), ("or", Binary::Or)],
    &[("&&", Binary::And), ("and", Binary::And)],
    &[
        ("==", Binary::Equal),
        ("!=", Binary::NotEqual),
        ("=~", Binary::Matches),
        ("!~", Binary::NotMatches),
        ("=^", Binary::StartsWith),
        ("!^", Binary::NotStartsWith),
        ("=$", Binary::EndsWith),
        ("!$", Binary::NotEndsWith),
        ("eq", Binary::Equal),
        ("ne", Binary::NotEqual),
    ],
    &[
        ("<=", Binary::LessOrEqual),
        (">=", Binary::GreaterOrEqual),
        ("<", Binary::Less),
        (">", Binary::Greater),
        ("le", Binary::LessOrEqual),
        ("ge", Binary::GreaterOrEqual),
        ("lt", Binary::Less),
        ("gt", Binary::Greater),
    ],
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[
        ("*", Binary::Multiply),
        ("/", Binary::Divide),
        ("%", Binary::Remainder),
        ("div", Binary::Divide),
        ("mod", Binary::Remainder),
    ],
];

fn chain(i: &mut Input<'_>, level: usize) -> Parsed<Expr> {
    let Some(operators) = LEVELS.get(level) else {
        return unary(i);
    };
    let first = chain(i, level + 1)?;
    let mut more = Vec::new();
    while let Some(operator) = operator(i, operators)? {
        more.push((operator, chain(i, level + 1)?));
    }
    if more.is_empty() {
        return Ok(first);
    }
    Ok(Expr::Chain(Box::new(first), more))
}

fn operator(i: &mut Input<'_>, operators: &[(&str, Binary)]) -> Parsed<Option<Binary>> {
    let start = i.checkpoint();
    let spaced = spaces(i);
    let rest = rest(i);
    for (symbol, operator) in operators {
        let Some(after) = rest.strip_prefix(symbol) else {
            continue;
        };
        let matches = match *symbol {
            "<" => !after.starts_with('+'),
            ">" | ">=" => compares(i, after, spaced),
            word if word.starts_with(name_start) => !after.starts_with(name_rest),
            _ => true,
        };
        if matches {
            skip(i, symbol.len());
            return Ok(Some(*operator));
        }
    }
    i.reset(&start);
    Ok(None)
}

/// Whether a `>` or `>=` before `after` compares; otherwise it closes.
fn compares(i: &Input<'_>, after: &str, spaced: bool) -> bool {
    if i.state.delimiters == 0 || i.state.brackets > 0 {
        return true;
    }
    let operand = after.trim_start_matches([' ', '\t']);
    let begins = operand.starts_with(|c: char| name_start(c) || "<\"'\\([-!".contains(c))
        || operand.starts_with(|c: char| c.is_ascii_digit());
    spaced && operand.len() < after.len() && begins && closes_later(operand)
}

/// Whether a `>` that closes what is open follows in this line.
fn closes_later(text: &str) -> bool {
    let mut open = 0_usize;
    let mut quote = None;
    let mut last = ' ';
    for c in text.bytes().take(LOOKAHEAD).map(char::from) {
        match (quote, c) {
            (_, '\n') => return false,
            (Some(q), c) if q == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '+') if last == '<' => open += 1,
            (None, '>') if open == 0 => return true,
            (None, '>') => open -= 1,
            (None, _) => {}
        }
        last = c;
    }
    false
}

fn unary(i: &mut Input<'_>) -> Parsed<Expr> {
    let mut operators = Vec::new();
    loop {
        spaces(i);
        if eat(i, "!") || eat_word(i, "not") {
            operators.push(Unary::Not);
        } else if eat(i, "-") {
            operators.push(Unary::Minus);
        } else if eat(i, "+") {
            operators.push(Unary::Plus);
        } else {
            break;
        }
    }
    let operand = operand::postfix(i)?;
    if operators.is_empty() {
        return Ok(operand);
    }
    Ok(Expr::Unary(operators, Box::new(operand)))
}

fn eat(i: &mut Input<'_>, symbol: &str) -> bool {
    let found = rest(i).starts_with(symbol);
    if found {
        skip(i, symbol.len());
    }
    found
}

fn eat_word(i: &mut Input<'_>, word: &str) -> bool {
    let ends = |after: &str| !after.starts_with(name_rest);
    let found = rest(i).strip_prefix(word).is_some_and(ends);
    if found {
        skip(i, word.len());
    }
    found
}

fn name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '$'
}

fn name_rest(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}
