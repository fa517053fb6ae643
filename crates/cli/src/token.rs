//! Where local mode keeps the token that it minted, and what a token says.

use std::path::{Path, PathBuf};

use crate::error::CliError;

/// File of the token below a data directory.
pub fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("token")
}

/// The token that `slipway local` wrote into the data directory.
///
/// # Errors
/// When it is not there.
pub fn read(data_dir: &Path) -> Result<String, CliError> {
    let path = path(data_dir);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
            Err(CliError::NotAuthorised {
                message: format!("no API token was given and {} is not there", path.display()),
            })
        }
        Err(source) => Err(CliError::File {
            what: format!("reading the token in {}", path.display()),
            source,
        }),
    }
}

/// The account of a token `pat.<account>.<id>.<secret>` (or `sat.…`).
///
/// # Errors
/// When it does not have that form.
pub fn account(token: &str) -> Result<&str, CliError> {
    let word = |s: &str| {
        !s.is_empty()
            && s.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    let parts: Vec<&str> = token.split('.').collect();
    match parts.as_slice() {
        ["pat" | "sat", account, id, secret] if [account, id, secret].iter().all(|p| word(p)) => {
            Ok(account)
        }
        _ => Err(CliError::NotAuthorised {
            message: "the API token does not have the form pat.<account>.<id>.<secret>".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::account;

    #[test]
    fn the_account_is_the_second_segment() {
        assert_eq!(account("pat.acc-1.id_2.sec3").ok(), Some("acc-1"));
        for bad in [
            "",
            "nothing",
            "pat.a.b",
            "pat.a.b.c.d",
            "pat..b.c",
            "jwt.a.b.c",
            "pat.a.b.c\n",
        ] {
            assert!(account(bad).is_err(), "{bad:?}");
        }
    }
}
