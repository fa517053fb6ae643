//! Pages of lists, in the union of the shapes that the clients read.

use serde_json::{Value, json};

use crate::error::{ApiError, ApiResult};
use crate::query::Query;

/// Items of a page when none is asked for (API.md 1.5).
const DEFAULT_SIZE: usize = 20;

/// Larger pages than the CLI asks for; below what it asks it would end its listing early.
const LARGEST: usize = 10_000;

/// Which part of a list is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    /// From 0.
    pub(crate) index: usize,
    /// At least 1.
    pub(crate) size: usize,
}

impl Page {
    /// NG paging in either spelling: `page`/`size` or `pageIndex`/`pageSize`.
    pub(crate) fn ng(query: &Query) -> ApiResult<Self> {
        let index = query.number(&["pageIndex", "page"])?.unwrap_or(0);
        let size = query.number(&["pageSize", "size"])?.unwrap_or(DEFAULT_SIZE);
        Self::new(index, size)
    }

    /// v1 paging: `page` and `limit`, both from 0 as the official CLI counts.
    pub(crate) fn v1(query: &Query) -> ApiResult<Self> {
        let index = query.number(&["page"])?.unwrap_or(0);
        let size = query.number(&["limit"])?.unwrap_or(30);
        Self::new(index, size)
    }

    fn new(index: usize, size: usize) -> ApiResult<Self> {
        if index.checked_mul(LARGEST).is_none() {
            return Err(ApiError::field("page", "is too large"));
        }
        Ok(Self {
            index,
            size: size.clamp(1, LARGEST),
        })
    }

    /// Number of items before the page.
    pub(crate) fn start(self) -> usize {
        self.index * self.size
    }

    /// The items of this page out of all items.
    pub(crate) fn cut<T>(self, items: Vec<T>) -> Vec<T> {
        items
            .into_iter()
            .skip(self.start())
            .take(self.size)
            .collect()
    }

    /// The page as clients read it: both totals, and the fields of Spring pages.
    pub(crate) fn render(self, content: Vec<Value>, total: usize) -> Value {
        let pages = total.div_ceil(self.size);
        let count = content.len();
        json!({
            "totalPages": pages,
            "totalItems": total,
            "totalElements": total,
            "pageItemCount": count,
            "pageSize": self.size,
            "size": self.size,
            "pageIndex": self.index,
            "number": self.index,
            "numberOfElements": count,
            "first": self.index == 0,
            "last": self.index + 1 >= pages,
            "empty": count == 0,
            "pageToken": null,
            "content": content,
        })
    }
}
