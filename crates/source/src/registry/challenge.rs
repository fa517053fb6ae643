//! `WWW-Authenticate`: how a registry wants to be asked (RFC 9110, 11.6.1; distribution's token specification).

/// What a registry wants to see.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User and password.
    Basic,
    /// A token of another server.
    Bearer {
        /// Where tokens are given.
        realm: String,
        /// Whom it is for.
        service: Option<String>,
        /// What it is for.
        scope: Option<String>,
    },
}

/// Reads a challenge; `None` where it is none that can be answered.
pub(super) fn read(header: &str) -> Option<Challenge> {
    let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut realm, mut service, mut scope) = (None, None, None);
    for (name, value) in parameters(rest) {
        match name.to_ascii_lowercase().as_str() {
            "realm" => realm = Some(value),
            "service" => service = Some(value),
            "scope" => scope = Some(value),
            _ => {}
        }
    }
    Some(Challenge::Bearer {
        realm: realm?,
        service,
        scope,
    })
}

/// `name="value"` or `name=value`, with commas between; commas inside of quotes belong to the value.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches([' ', ',']);
    while let Some((name, after)) = rest.split_once('=') {
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        found.push((name.trim().to_owned(), value.trim().to_owned()));
        rest = next.trim_start_matches([' ', ',']);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let bearer = |realm: &str, service: Option<&str>, scope: Option<&str>| {
            Some(Challenge::Bearer {
                realm: realm.to_owned(),
                service: service.map(str::to_owned),
                scope: scope.map(str::to_owned),
            })
        };
        let table = [
            (
                "Bearer realm=\"https://auth.docker.io/token\",service=\"registry.docker.io\",scope=\"repository:a/b:pull,push\"",
                bearer(
                    "https://auth.docker.io/token",
                    Some("registry.docker.io"),
                    Some("repository:a/b:pull,push"),
                ),
            ),
            (
                "bearer realm=https://x/t",
                bearer("https://x/t", None, None),
            ),
            ("Bearer  realm=\"r\" , error=\"e\"", bearer("r", None, None)),
            ("Basic realm=\"Sonatype\"", Some(Challenge::Basic)),
            ("basic", Some(Challenge::Basic)),
            ("Bearer service=\"x\"", None),
            ("Negotiate", None),
            ("", None),
            ("Bearer realm=\"unended", bearer("unended", None, None)),
        ];
        for (header, expected) in table {
            assert_eq!(read(header), expected, "{header}");
        }
    }
}
