//! The variables that an expression mentions, read from its text: for `variableReferences` of
//! `DescribeStateMachine`.

/// Adds the variables of `source` to `names`.
pub(super) fn mentioned(source: &str, names: &mut Vec<String>) {
    let mut bound: Vec<&str> = vec!["states"];
    let mut found: Vec<&str> = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['$', '"', '\'', '`', '/']) {
        let (_, from) = rest.split_at(at);
        rest = if from.starts_with("/*") {
            from.find("*/")
                .and_then(|end| from.get(end + 2..))
                .unwrap_or_default()
        } else if let Some(name) = from.strip_prefix('$') {
            let end = name
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(name.len());
            let (name, after) = name.split_at(end);
            let next = after.trim_start();
            if next.starts_with(":=") {
                bound.push(name);
            } else if !name.is_empty() && !next.starts_with('(') {
                found.push(name);
            }
            after
        } else {
            quoted(from)
        };
    }
    bound.extend(parameters(source));
    names.extend(
        found
            .into_iter()
            .filter(|name| !bound.contains(name))
            .map(str::to_owned),
    );
}

/// What follows the text in quotes (or the lone slash) that `from` starts with.
fn quoted(from: &str) -> &str {
    let mut chars = from.char_indices();
    let Some((_, quote)) = chars.next() else {
        return "";
    };
    if quote != '/' {
        while let Some((at, c)) = chars.next() {
            if c == '\\' {
                chars.next();
            } else if c == quote {
                return from.get(at + 1..).unwrap_or_default();
            }
        }
        return "";
    }
    from.get(1..).unwrap_or_default()
}

/// Parameters of the functions that the expression defines.
fn parameters(source: &str) -> Vec<&str> {
    let lists = source.split("function").skip(1).filter_map(|after| {
        let inner = after.trim_start().strip_prefix('(')?;
        inner.split_once(')').map(|(list, _)| list)
    });
    lists
        .flat_map(|list| list.split(','))
        .filter_map(|name| name.trim().strip_prefix('$'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::mentioned;

    #[test]
    fn names() {
        let cases: [(&str, &[&str]); 6] = [
            ("$a + $b.c", &["a", "b"]),
            ("$states.input.x & '$not' & \"$this\"", &[]),
            ("$sum($items)", &["items"]),
            ("($x := 1; $x + $y)", &["y"]),
            ("$map($l, function($v, $i) { $v + $k })", &["l", "k"]),
            ("/* $gone */ $here", &["here"]),
        ];
        for (source, expected) in cases {
            let mut names = Vec::new();
            mentioned(source, &mut names);
            assert_eq!(names, expected, "{source}");
        }
    }
}
