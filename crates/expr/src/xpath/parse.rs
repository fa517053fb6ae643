//! The grammar of XPath 1.0.

use super::token::{Token, tokens};

/// Deepest nesting of brackets and signs.
const MAX_NESTING: usize = 24;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum XPath {
    Literal(String),
    Number(f64),
    Call(String, Vec<XPath>),
    Negate(Box<XPath>),
    /// Operators of one precedence, from left to right.
    Chain(Box<XPath>, Vec<(Operator, XPath)>),
    Path(Start, Vec<Step>),
}

/// Where a path begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Start {
    Root,
    Here,
    /// At the nodes of another expression, filtered.
    Of(Box<XPath>, Vec<XPath>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) axis: Axis,
    pub(super) test: Test,
    pub(super) predicates: Vec<XPath>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Child,
    Descendant,
    DescendantOrSelf,
    SelfOnly,
    Parent,
    Ancestor,
    AncestorOrSelf,
    Following,
    FollowingSibling,
    Preceding,
    PrecedingSibling,
    Attribute,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// `*`: any element, or any attribute.
    Any,
    /// Prefix if there is one, and local name or `*`.
    Name(Option<String>, String),
    Text,
    Comment,
    Instruction,
    Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Union,
}

/// Operators by precedence, loosest first.
const LEVELS: [&[(&str, Operator)]; 6] = [
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[("=", Operator::Equal), ("!=", Operator::NotEqual)],
    &[
        ("<", Operator::Less),
        ("<=", Operator::LessOrEqual),
        (">", Operator::Greater),
        (">=", Operator::GreaterOrEqual),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[
        ("*", Operator::Multiply),
        ("div", Operator::Divide),
        ("mod", Operator::Remainder),
    ],
];

type Parsed<T> = Result<T, String>;

pub(super) fn parse(text: &str) -> Parsed<XPath> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        nesting: 0,
    };
    let expr = parser.expr()?;
    match parser.peek() {
        None => Ok(expr),
        Some(token) => Err(format!("{} is not expected where it stands", shown(token))),
    }
}

fn shown(token: &Token) -> String {
    match token {
        Token::Name(name) | Token::Literal(name) => format!("`{name:.40}`"),
        Token::Number(number) => format!("`{number}`"),
        Token::Symbol(symbol) => format!("`{symbol}`"),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    nesting: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn sees(&self, symbol: &str) -> bool {
        self.ahead(0, symbol)
    }

    fn ahead(&self, by: usize, symbol: &str) -> bool {
        matches!(self.tokens.get(self.at + by), Some(Token::Symbol(s)) if *s == symbol)
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = self.sees(symbol);
        if found {
            self.at += 1;
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.eat(symbol) {
            return Ok(());
        }
        let found = self.peek().map_or_else(|| "the end".to_owned(), shown);
        Err(format!("`{symbol}` is expected, and here is {found}"))
    }

    fn expr(&mut self) -> Parsed<XPath> {
        if self.nesting == MAX_NESTING {
            return Err(format!("it is nested more than {MAX_NESTING} levels deep"));
        }
        self.nesting += 1;
        let expr = self.chain(0);
        self.nesting -= 1;
        expr
    }

    fn chain(&mut self, level: usize) -> Parsed<XPath> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let first = self.chain(level + 1)?;
        let mut more = Vec::new();
        while let Some((symbol, operator)) = operators.iter().find(|(symbol, _)| self.sees(symbol))
        {
            self.eat(symbol);
            more.push((*operator, self.chain(level + 1)?));
        }
        Ok(chained(first, more))
    }

    fn unary(&mut self) -> Parsed<XPath> {
        let mut signs = 0;
        while self.eat("-") {
            signs += 1;
        }
        let first = self.path()?;
        let mut more = Vec::new();
        while self.eat("|") {
            more.push((Operator::Union, self.path()?));
        }
        let operand = chained(first, more);
        Ok(match signs {
            0 => operand,
            // Two signs make a number of what they stand before, and that is all.
            signs if signs % 2 == 0 => XPath::Negate(Box::new(XPath::Negate(Box::new(operand)))),
            _ => XPath::Negate(Box::new(operand)),
        })
    }

    fn path(&mut self) -> Parsed<XPath> {
        let mut steps = Vec::new();
        if self.eat("//") {
            steps.push(anywhere());
            self.steps(&mut steps)?;
            return Ok(XPath::Path(Start::Root, steps));
        }
        if self.eat("/") {
            if self.begins_step() {
                self.steps(&mut steps)?;
            }
            return Ok(XPath::Path(Start::Root, steps));
        }
        let Some(primary) = self.primary()? else {
            self.steps(&mut steps)?;
            return Ok(XPath::Path(Start::Here, steps));
        };
        let predicates = self.predicates()?;
        let more = self.sees("/") || self.sees("//");
        if predicates.is_empty() && !more {
            return Ok(primary);
        }
        if self.eat("//") {
            steps.push(anywhere());
            self.steps(&mut steps)?;
        } else if self.eat("/") {
            self.steps(&mut steps)?;
        }
        Ok(XPath::Path(Start::Of(Box::new(primary), predicates), steps))
    }

    fn begins_step(&self) -> bool {
        let symbol = [".", "..", "@", "*"].iter().any(|symbol| self.sees(symbol));
        symbol || matches!(self.peek(), Some(Token::Name(_)))
    }

    /// An operand that is no path: `(…)`, a literal, a number, a function.
    fn primary(&mut self) -> Parsed<Option<XPath>> {
        if self.eat("(") {
            let expr = self.expr()?;
            self.expect(")")?;
            return Ok(Some(expr));
        }
        let primary = match self.peek() {
            Some(Token::Literal(text)) => XPath::Literal(text.clone()),
            Some(Token::Number(number)) => XPath::Number(*number),
            Some(Token::Name(name)) if self.ahead(1, "(") && node_type(name).is_none() => {
                let name = name.clone();
                self.at += 2;
                return self.arguments().map(|args| Some(XPath::Call(name, args)));
            }
            Some(Token::Symbol("$")) => return Err("there are no variables".to_owned()),
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(primary))
    }

    fn arguments(&mut self) -> Parsed<Vec<XPath>> {
        let mut arguments = Vec::new();
        if self.eat(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expr()?);
            if !self.eat(",") {
                self.expect(")")?;
                return Ok(arguments);
            }
        }
    }

    fn steps(&mut self, steps: &mut Vec<Step>) -> Parsed<()> {
        loop {
            steps.push(self.step()?);
            if self.eat("//") {
                steps.push(anywhere());
            } else if !self.eat("/") {
                return Ok(());
            }
        }
    }

    fn step(&mut self) -> Parsed<Step> {
        for (symbol, axis) in [("..", Axis::Parent), (".", Axis::SelfOnly)] {
            if self.eat(symbol) {
                return Ok(Step {
                    axis,
                    test: Test::Node,
                    predicates: self.predicates()?,
                });
            }
        }
        let axis = match self.peek() {
            Some(Token::Symbol("@")) => {
                self.at += 1;
                Axis::Attribute
            }
            Some(Token::Name(name)) if self.ahead(1, "::") => {
                let axis = axis(name)?;
                self.at += 2;
                axis
            }
            _ => Axis::Child,
        };
        Ok(Step {
            axis,
            test: self.test()?,
            predicates: self.predicates()?,
        })
    }

    fn test(&mut self) -> Parsed<Test> {
        if self.eat("*") {
            return Ok(Test::Any);
        }
        let Some(Token::Name(name)) = self.peek() else {
            let found = self.peek().map_or_else(|| "the end".to_owned(), shown);
            return Err(format!("a name is expected, and here is {found}"));
        };
        let name = name.clone();
        self.at += 1;
        if let Some(test) = node_type(&name)
            && self.eat("(")
        {
            if let Some(Token::Literal(_)) = self.peek() {
                self.at += 1;
            }
            self.expect(")")?;
            return Ok(test);
        }
        Ok(match name.split_once(':') {
            Some((prefix, local)) => Test::Name(Some(prefix.to_owned()), local.to_owned()),
            None => Test::Name(None, name),
        })
    }

    fn predicates(&mut self) -> Parsed<Vec<XPath>> {
        let mut predicates = Vec::new();
        while self.eat("[") {
            predicates.push(self.expr()?);
            self.expect("]")?;
        }
        Ok(predicates)
    }
}

fn chained(first: XPath, more: Vec<(Operator, XPath)>) -> XPath {
    if more.is_empty() {
        first
    } else {
        XPath::Chain(Box::new(first), more)
    }
}

/// What `//` stands for.
fn anywhere() -> Step {
    Step {
        axis: Axis::DescendantOrSelf,
        test: Test::Node,
        predicates: Vec::new(),
    }
}

fn node_type(name: &str) -> Option<Test> {
    Some(match name {
        "text" => Test::Text,
        "comment" => Test::Comment,
        "processing-instruction" => Test::Instruction,
        "node" => Test::Node,
        _ => return None,
    })
}

fn axis(name: &str) -> Parsed<Axis> {
    Ok(match name {
        "child" => Axis::Child,
        "descendant" => Axis::Descendant,
        "descendant-or-self" => Axis::DescendantOrSelf,
        "self" => Axis::SelfOnly,
        "parent" => Axis::Parent,
        "ancestor" => Axis::Ancestor,
        "ancestor-or-self" => Axis::AncestorOrSelf,
        "following" => Axis::Following,
        "following-sibling" => Axis::FollowingSibling,
        "preceding" => Axis::Preceding,
        "preceding-sibling" => Axis::PrecedingSibling,
        "attribute" => Axis::Attribute,
        other => return Err(format!("there is no axis `{other:.40}`")),
    })
}
