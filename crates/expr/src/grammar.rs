//! The grammar: texts with `<+…>` in them, and the JEXL expressions inside.
//!
//! winnow cuts the words; precedence, nesting limits and the meaning of `>` are decided here. A `>` at the
//! end of an operand closes the innermost `<+`, unless parentheses are open, or there is blank space on
//! both sides of it, an operand after it, and another `>` later in the line to do the closing.

use winnow::error::ParserError;
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Location, Stateful, Stream};
use winnow::token::take_while;

use crate::ast::{Access, Binary, Builtin, Choice, Expr, Nested, Part, Unary};
use crate::error::ParseError;
use crate::value::Value;

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

/// A whole text that is one expression, as in `condition:`.
pub(crate) fn expression(source: &str) -> Parsed<Expr> {
    let mut i = input(source);
    let expr = choice(&mut i)?;
    spaces(&mut i)?;
    if rest(&i).is_empty() {
        Ok(expr)
    } else {
        Err(fault(&i, "an operator or the end of the expression"))
    }
}

fn spaces<'s>(i: &mut Input<'s>) -> Parsed<&'s str> {
    take_while(0.., char::is_whitespace).parse_next(i)
}

/// `<+…>`, the stream standing at its `<`.
fn nested(i: &mut Input<'_>) -> Parsed<Nested> {
    let start = i.current_token_start();
    let brackets = std::mem::replace(&mut i.state.brackets, 0);
    i.state.delimiters += 1;
    skip(i, 2);
    let expr = choice(i)?;
    spaces(i)?;
    if !rest(i).starts_with('>') {
        return Err(fault(i, "an operator or the closing `>`"));
    }
    skip(i, 1);
    i.state.delimiters -= 1;
    i.state.brackets = brackets;
    let source = i.state.source.get(start..i.current_token_start());
    Ok(Nested {
        source: source.unwrap_or_default().to_owned(),
        expr,
    })
}

fn choice(i: &mut Input<'_>) -> Parsed<Expr> {
    if i.state.nesting == MAX_NESTING {
        return Err(fault(i, "at most 32 levels of nesting"));
    }
    i.state.nesting += 1;
    let value = chain(i, 0)?;
    let start = i.checkpoint();
    spaces(i)?;
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
        i.state.nesting -= 1;
        return Ok(value);
    };
    i.state.nesting -= 1;
    Ok(Expr::Choice(Box::new(choice)))
}

fn ternary(i: &mut Input<'_>, condition: Expr) -> Parsed<Choice> {
    let then = choice(i)?;
    spaces(i)?;
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
    let spaced = !spaces(i)?.is_empty();
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
        spaces(i)?;
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
    let operand = postfix(i)?;
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

/// An operand with what is reached from it.
fn postfix(i: &mut Input<'_>) -> Parsed<Expr> {
    let rest = rest(i);
    if rest.starts_with(name_start) {
        let start = i.checkpoint();
        let name = name(i)?;
        if let [Part::Text(word)] = name.as_slice() {
            if let Some(expr) = keyword(i, word)? {
                return accesses(i, Vec::new()).map(|steps| of(expr, steps));
            }
            if RESERVED.contains(&word.as_str()) {
                i.reset(&start);
                return Err(fault(i, "an operand"));
            }
        }
        return Ok(Expr::Path(accesses(i, vec![Access::Property(name)])?));
    }
    let base = operand(i)?;
    let steps = accesses(i, Vec::new())?;
    Ok(of(base, steps))
}

/// Words that are operators and so never begin a path.
const RESERVED: [&str; 12] = [
    "or", "and", "eq", "ne", "lt", "gt", "le", "ge", "div", "mod", "not", "new",
];

fn of(base: Expr, steps: Vec<Access>) -> Expr {
    if steps.is_empty() {
        base
    } else {
        Expr::Of(Box::new(base), steps)
    }
}

fn keyword(i: &mut Input<'_>, word: &str) -> Parsed<Option<Expr>> {
    let builtin = match word {
        "true" => return Ok(Some(Expr::Literal(Value::Bool(true)))),
        "false" => return Ok(Some(Expr::Literal(Value::Bool(false)))),
        "null" => return Ok(Some(Expr::Literal(Value::Null))),
        "empty" => Builtin::Empty,
        "size" => Builtin::Size,
        _ => return Ok(None),
    };
    if !rest(i).starts_with('(') {
        return Ok(None);
    }
    let offset = i.checkpoint();
    let arguments = bracketed(i, '(', ')')?;
    match <[Expr; 1]>::try_from(arguments) {
        Ok([argument]) => Ok(Some(Expr::Call(builtin, Box::new(argument)))),
        Err(_) => {
            i.reset(&offset);
            Err(fault(i, "one argument in parentheses"))
        }
    }
}

fn operand(i: &mut Input<'_>) -> Parsed<Expr> {
    let rest = rest(i);
    let unescaped = rest.trim_start_matches('\\');
    match rest.chars().next() {
        Some('<') if rest.starts_with("<+") => Ok(Expr::Nested(Box::new(nested(i)?))),
        Some('0'..='9') => number(i),
        Some('(') => parenthesised(i),
        Some('[') => Ok(Expr::List(bracketed(i, '[', ']')?)),
        Some('{') => map(i),
        _ if unescaped.starts_with(['"', '\'']) => string(i).map(literal_text),
        _ => Err(fault(i, "an operand")),
    }
}

fn literal_text(parts: Vec<Part>) -> Expr {
    match parts.as_slice() {
        [] => Expr::Literal(Value::from("")),
        [Part::Text(text)] => Expr::Literal(Value::from(text.as_str())),
        _ => Expr::Text(parts),
    }
}

fn number(i: &mut Input<'_>) -> Parsed<Expr> {
    let start = i.checkpoint();
    let whole = take_while(1.., '0'..='9').parse_next(i)?;
    let rest = rest(i);
    let fraction = rest.strip_prefix('.').map_or(0, digits);
    let mut length = if fraction > 0 { fraction + 1 } else { 0 };
    let exponent = exponent(&rest[length..]);
    length += exponent;
    skip(i, length);
    if self::rest(i).starts_with(name_rest) {
        return Err(fault(i, "an operator behind a number"));
    }
    let float = format!("{whole}{}", &rest[..length]);
    let value = if length == 0 {
        whole.parse().ok().map(Value::Int)
    } else {
        float
            .parse()
            .ok()
            .filter(|f: &f64| f.is_finite())
            .map(Value::Float)
    };
    value.map(Expr::Literal).ok_or_else(|| {
        i.reset(&start);
        fault(i, "a number of 64 bits")
    })
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Length of `e10`, `E-3`, … at the start of `text`, or 0.
fn exponent(text: &str) -> usize {
    let Some(after) = text.strip_prefix(['e', 'E']) else {
        return 0;
    };
    let sign = usize::from(after.starts_with(['+', '-']));
    match digits(&after[sign..]) {
        0 => 0,
        count => 1 + sign + count,
    }
}

fn parenthesised(i: &mut Input<'_>) -> Parsed<Expr> {
    skip(i, 1);
    i.state.brackets += 1;
    let expr = choice(i)?;
    close(i, ')')?;
    Ok(expr)
}

fn close(i: &mut Input<'_>, bracket: char) -> Parsed<()> {
    spaces(i)?;
    if !rest(i).starts_with(bracket) {
        return Err(fault(
            i,
            match bracket {
                ')' => "an operator, `,` or `)`",
                ']' => "an operator, `,` or `]`",
                _ => "an operator, `,` or `}`",
            },
        ));
    }
    skip(i, 1);
    i.state.brackets -= 1;
    Ok(())
}

/// A list of expressions in brackets, the stream standing at the opening one.
fn bracketed(i: &mut Input<'_>, open: char, shut: char) -> Parsed<Vec<Expr>> {
    skip(i, open.len_utf8());
    i.state.brackets += 1;
    let mut items = Vec::new();
    spaces(i)?;
    while !rest(i).starts_with(shut) {
        items.push(choice(i)?);
        spaces(i)?;
        if !eat(i, ",") {
            break;
        }
        spaces(i)?;
    }
    close(i, shut)?;
    Ok(items)
}

fn map(i: &mut Input<'_>) -> Parsed<Expr> {
    skip(i, 1);
    i.state.brackets += 1;
    let mut entries = Vec::new();
    spaces(i)?;
    if eat(i, ":") {
        spaces(i)?;
    }
    while !rest(i).starts_with('}') {
        let key = chain(i, 4)?;
        spaces(i)?;
        if !eat(i, ":") {
            return Err(fault(i, "`:` and the value"));
        }
        entries.push((key, choice(i)?));
        spaces(i)?;
        if !eat(i, ",") {
            break;
        }
        spaces(i)?;
    }
    close(i, '}')?;
    Ok(Expr::Map(entries))
}

/// A quoted string. Quotes may be escaped as a whole (`\"yes\"`), as they are in YAML and JSON that
/// was escaped once more; then the string is literal up to the same escaped quote.
fn string(i: &mut Input<'_>) -> Parsed<Vec<Part>> {
    let start = *i;
    let escapes = take_while(0.., '\\').parse_next(i)?;
    let quote = rest(i).chars().next().unwrap_or('"');
    skip(i, quote.len_utf8());
    let end = format!("{escapes}{quote}");
    let mut parts = Vec::new();
    let mut text = String::new();
    loop {
        let rest = rest(i);
        let Some(c) = rest.chars().next() else {
            return Err(fault(&start, "a string that is closed by the same quote"));
        };
        if rest.starts_with(&end) {
            skip(i, end.len());
            flush(&mut text, &mut parts);
            return Ok(parts);
        }
        if rest.starts_with("<+") {
            flush(&mut text, &mut parts);
            parts.push(Part::Expression(nested(i)?));
        } else if c == '\\' && escapes.is_empty() {
            let (unescaped, length) = unescape(rest, quote);
            text.push_str(&unescaped);
            skip(i, length);
        } else {
            text.push(c);
            skip(i, c.len_utf8());
        }
    }
}

fn flush(text: &mut String, parts: &mut Vec<Part>) {
    if !text.is_empty() {
        parts.push(Part::Text(std::mem::take(text)));
    }
}

/// What a backslash sequence stands for, and its length. One that JEXL does not know stays as it is, so
/// that regular expressions can be written.
fn unescape(text: &str, quote: char) -> (String, usize) {
    let mut chars = text.chars().skip(1);
    let known = match chars.next() {
        Some('n') => '\n',
        Some('t') => '\t',
        Some('r') => '\r',
        Some('\\') => '\\',
        Some(c) if c == quote => quote,
        Some('u') => {
            let hex = text
                .get(2..6)
                .and_then(|hex| u32::from_str_radix(hex, 16).ok());
            return match hex.and_then(char::from_u32) {
                Some(c) => (c.to_string(), 6),
                None => ("\\".to_owned(), 1),
            };
        }
        _ => return ("\\".to_owned(), 1),
    };
    (known.to_string(), 2)
}

/// A name, parts of which may be expressions that touch it: `Group_<+strategy.iteration>`.
fn name(i: &mut Input<'_>) -> Parsed<Vec<Part>> {
    let mut parts = Vec::new();
    loop {
        let word = take_while(0.., name_rest).parse_next(i)?;
        if !word.is_empty() {
            parts.push(Part::Text(word.to_owned()));
        } else if rest(i).starts_with("<+") {
            parts.push(Part::Expression(nested(i)?));
        } else {
            return Ok(parts);
        }
    }
}

fn accesses(i: &mut Input<'_>, mut steps: Vec<Access>) -> Parsed<Vec<Access>> {
    loop {
        let rest = rest(i);
        if rest.starts_with('[') {
            let offset = *i;
            let index = bracketed(i, '[', ']')?;
            match <[Expr; 1]>::try_from(index) {
                Ok([index]) => steps.push(Access::Index(index)),
                Err(_) => return Err(fault(&offset, "one index in brackets")),
            }
        } else if rest.starts_with('.') {
            skip(i, 1);
            let property = property(i)?;
            steps.push(call(i, property)?);
        } else {
            return Ok(steps);
        }
    }
}

fn property(i: &mut Input<'_>) -> Parsed<Vec<Part>> {
    let parts = if rest(i).starts_with(['"', '\'']) {
        let parts = string(i)?;
        return Ok(if parts.is_empty() {
            vec![Part::Text(String::new())]
        } else {
            parts
        });
    } else {
        name(i)?
    };
    if parts.is_empty() {
        return Err(fault(i, "the name of a property or method"));
    }
    Ok(parts)
}

/// The property, or the call if an argument list follows.
fn call(i: &mut Input<'_>, property: Vec<Part>) -> Parsed<Access> {
    match property.as_slice() {
        [Part::Text(method)] if rest(i).starts_with('(') => {
            let method = method.clone();
            Ok(Access::Method(method, bracketed(i, '(', ')')?))
        }
        _ => Ok(Access::Property(property)),
    }
}
