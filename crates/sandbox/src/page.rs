//! Pages of list operations: opaque tokens over an order of keys.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::error::ApiError;
use crate::fields::Fields;

/// One page, and the token of the next if there is one.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) items: Vec<String>,
    pub(crate) next_token: Option<String>,
}

/// Names of the members that page an operation, and the bounds of its page size.
pub(crate) struct Paging {
    pub(crate) token: &'static str,
    pub(crate) size: &'static str,
    pub(crate) default: usize,
    pub(crate) most: i64,
}

/// Cuts the page that `request` asks for out of `all`, which must be ordered and hold no item twice.
/// The token holds the last item that was given, so items that come and go do not shift pages.
pub(crate) fn cut<'a>(
    request: Fields<'_>,
    paging: &Paging,
    descending: bool,
    all: impl Iterator<Item = &'a str>,
) -> Result<Page, ApiError> {
    let size = match request.integer(paging.size)? {
        None => paging.default,
        Some(size) if (1..=paging.most).contains(&size) => usize::try_from(size).unwrap_or(1),
        Some(_) => {
            return Err(ApiError::invalid_parameter(format!(
                "{} must be between 1 and {}.",
                paging.size, paging.most
            )));
        }
    };
    cut_at(size, request.text(paging.token)?, descending, all)
}

/// Like [`cut`], for a request whose members were read already.
pub(crate) fn cut_at<'a>(
    size: usize,
    token: Option<&str>,
    descending: bool,
    all: impl Iterator<Item = &'a str>,
) -> Result<Page, ApiError> {
    let after = token.map(decode).transpose()?;
    let mut items: Vec<String> = Vec::new();
    let mut more = false;
    for item in all {
        let seen = match &after {
            None => false,
            Some(after) if descending => item >= after.as_str(),
            Some(after) => item <= after.as_str(),
        };
        if seen {
            continue;
        }
        if items.len() == size {
            more = true;
            break;
        }
        items.push(item.to_owned());
    }
    let next_token = items
        .last()
        .filter(|_| more)
        .map(|last| URL_SAFE_NO_PAD.encode(last));
    Ok(Page { items, next_token })
}

fn decode(token: &str) -> Result<String, ApiError> {
    URL_SAFE_NO_PAD
        .decode(token)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| ApiError::invalid_parameter("Invalid token."))
}
