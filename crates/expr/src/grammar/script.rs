//! Scripts: the statements that conditions of triggers use, `for (item : items) { if (…) { return true; } }`
//! (docs: continuous-delivery/manage-deployments/deployment-faqs). There are no assignments, so a script
//! ends after as many steps as its lists have items.

use winnow::prelude::*;
use winnow::stream::Stream;
use winnow::token::take_while;

use super::{
    Input, Parsed, choice, deeper, eat, eat_word, fault, name_rest, name_start, rest, skip, spaces,
};
use crate::ast::{Expr, Statement};

/// One expression, or statements. Stands behind the last one afterwards.
pub(super) fn script(i: &mut Input<'_>) -> Parsed<Expr> {
    let mut statements = vec![statement(i)?];
    loop {
        let start = i.checkpoint();
        spaces(i);
        let separated = eat(i, ";");
        while separated && (eat(i, ";") || spaces(i)) {}
        let ended = rest(i).is_empty() || rest(i).starts_with('>');
        let open = matches!(
            statements.last(),
            Some(Statement::If { .. } | Statement::For { .. })
        );
        if ended || !(separated || open) {
            if !separated {
                i.reset(&start);
            }
            break;
        }
        statements.push(statement(i)?);
    }
    match <[Statement; 1]>::try_from(statements) {
        Ok([Statement::Value(expr)]) => Ok(expr),
        Ok([single]) => Ok(Expr::Script(vec![single])),
        Err(statements) => Ok(Expr::Script(statements)),
    }
}

fn statement(i: &mut Input<'_>) -> Parsed<Statement> {
    deeper(i, |i| {
        spaces(i);
        if begins(i, "if") {
            condition(i)
        } else if begins(i, "for") {
            iteration(i)
        } else if eat_word(i, "return") {
            spaces(i);
            let nothing = rest(i).is_empty() || rest(i).starts_with([';', '}', '>']);
            let value = if nothing { None } else { Some(choice(i)?) };
            Ok(Statement::Return(value))
        } else {
            choice(i).map(Statement::Value)
        }
    })
}

/// Whether `word (` follows; eats it if so. A property called `if` of something else is not meant.
fn begins(i: &mut Input<'_>, word: &str) -> bool {
    let opens = rest(i)
        .strip_prefix(word)
        .is_some_and(|after| after.trim_start().starts_with('('));
    if opens {
        let bracket = rest(i).find('(').unwrap_or(0);
        skip(i, bracket + 1);
        i.state.brackets += 1;
    }
    opens
}

fn close(i: &mut Input<'_>, bracket: &str, expected: &'static str) -> Parsed<()> {
    spaces(i);
    if !eat(i, bracket) {
        return Err(fault(i, expected));
    }
    i.state.brackets = i.state.brackets.saturating_sub(1);
    Ok(())
}

fn condition(i: &mut Input<'_>) -> Parsed<Statement> {
    let condition = choice(i)?;
    close(i, ")", "an operator or `)` behind the condition")?;
    let then = Box::new(body(i)?);
    let start = i.checkpoint();
    spaces(i);
    eat(i, ";");
    spaces(i);
    let otherwise = if eat_word(i, "else") {
        Some(Box::new(body(i)?))
    } else {
        i.reset(&start);
        None
    };
    Ok(Statement::If {
        condition,
        then,
        otherwise,
    })
}

fn iteration(i: &mut Input<'_>) -> Parsed<Statement> {
    spaces(i);
    for word in ["var", "let", "const"] {
        if eat_word(i, word) {
            break;
        }
    }
    spaces(i);
    let name = take_while(0.., name_rest).parse_next(i)?.to_owned();
    spaces(i);
    if !name.starts_with(name_start) || !eat(i, ":") {
        return Err(fault(i, "`name : items` as in `for (item : items)`"));
    }
    let items = choice(i)?;
    close(i, ")", "an operator or `)` behind the items")?;
    let body = Box::new(body(i)?);
    Ok(Statement::For { name, items, body })
}

/// A block, or one statement.
fn body(i: &mut Input<'_>) -> Parsed<Statement> {
    spaces(i);
    if !eat(i, "{") {
        return statement(i);
    }
    i.state.brackets += 1;
    let mut statements = Vec::new();
    loop {
        spaces(i);
        if eat(i, ";") {
            continue;
        }
        if rest(i).starts_with('}') || rest(i).is_empty() {
            break;
        }
        statements.push(statement(i)?);
        spaces(i);
        let open = matches!(
            statements.last(),
            Some(Statement::If { .. } | Statement::For { .. })
        );
        if !open && !rest(i).starts_with([';', '}']) {
            return Err(fault(i, "an operator, `;` or `}`"));
        }
    }
    close(i, "}", "a statement or `}`")?;
    Ok(Statement::Block(statements))
}
