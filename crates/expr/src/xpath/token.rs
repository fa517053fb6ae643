//! Cuts a path into words.

/// A word of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// `name`, `prefix:name` or `prefix:*`.
    Name(String),
    Literal(String),
    Number(f64),
    /// Any other symbol: `/`, `//`, `::`, `and` where it is an operator, …
    Symbol(&'static str),
}

/// Longer symbols before their beginnings.
const SYMBOLS: [&str; 23] = [
    "//", "::", "..", "!=", "<=", ">=", "/", ".", "@", "(", ")", "[", "]", ",", "|", "=", "<", ">",
    "+", "-", "*", "$", ":",
];

/// Words that are operators behind an operand.
const WORDS: [&str; 4] = ["and", "or", "div", "mod"];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(c) = rest.chars().next() {
        let (token, length) = if let '"' | '\'' = c {
            let inner = rest.get(1..).unwrap_or_default();
            let end = inner.find(c).ok_or("a string is not closed")?;
            let literal = inner.get(..end).unwrap_or_default();
            (Token::Literal(literal.to_owned()), end + 2)
        } else if c.is_ascii_digit() || (c == '.' && rest.get(1..2).is_some_and(digit)) {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
            let number = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            let value = number
                .parse()
                .map_err(|_| format!("`{number:.20}` is no number"))?;
            (Token::Number(value), number.len())
        } else if name_start(c) {
            let name = name(rest);
            let word = WORDS.into_iter().find(|word| *word == name);
            match word.filter(|_| tokens.last().is_some_and(ends_operand)) {
                Some(word) => (Token::Symbol(word), name.len()),
                None => (Token::Name(name.to_owned()), name.len()),
            }
        } else {
            let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
            let symbol = symbol.ok_or_else(|| format!("`{c}` means nothing"))?;
            (Token::Symbol(symbol), symbol.len())
        };
        tokens.push(token);
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    Ok(tokens)
}

fn digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether an operator can follow, so that `and`, `div`, … are none of the names.
fn ends_operand(token: &Token) -> bool {
    match token {
        Token::Symbol(symbol) => [")", "]", "..", ".", "*"].contains(symbol),
        _ => true,
    }
}

fn name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn name_rest(c: char) -> bool {
    c.is_alphanumeric() || "_-.".contains(c)
}

/// A name with its prefix; `axis::` is not one.
fn name(text: &str) -> &str {
    let end = |text: &str| text.find(|c| !name_rest(c)).unwrap_or(text.len());
    let first = end(text);
    let after = text.get(first..).unwrap_or_default();
    let length = match after.strip_prefix(':') {
        Some(local) if local.starts_with(name_start) => first + 1 + end(local),
        Some(local) if local.starts_with('*') => first + 2,
        _ => first,
    };
    text.get(..length).unwrap_or_default()
}
