//! The names of repositories by which triggers are found without reading them.

use std::collections::BTreeSet;

use crate::Event;

/// The last part of a repository's name or URL, the same however it is written; `None` where nobody can tell what that is.
pub fn name_of(path: &str) -> Option<String> {
    let path = path.trim().trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let name = path.rsplit(['/', ':']).next()?;
    let unclear = |c: char| c.is_whitespace() || "%?#\\<".contains(c);
    match name.is_empty() || name.contains(unclear) {
        true => None,
        // Some hosts have no two repositories that differ in case alone.
        false => Some(name.to_lowercase()),
    }
}

/// What the repository of an event may be called. A trigger with another [`name_of`] its repository is not about it;
/// without any name here nobody can tell.
pub fn names_of(event: &Event) -> BTreeSet<String> {
    let written = std::iter::once(&event.repository).chain(&event.urls);
    written.filter_map(|text| name_of(text)).collect()
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn a_repository_has_one_name_however_it_is_written() {
        for written in [
            "shop",
            "acme/shop",
            "acme/Shop.git",
            " https://github.com/acme/shop/ ",
            "git@github.com:acme/shop.git",
            "git@host:shop",
            "ssh://git@host:7999/acme/shop.git",
            "https://dev.azure.com/acme/web/_git/shop",
        ] {
            assert_eq!(name_of(written).as_deref(), Some("shop"), "{written}");
        }
        for unclear in ["", "/", ".git", "my repo", "my%20repo", "<+input>", "a/b?c"] {
            assert_eq!(name_of(unclear), None, "{unclear}");
        }
    }
}
