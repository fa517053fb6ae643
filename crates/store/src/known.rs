//! Entities in memory, where all who write them do it through this process: local mode reads the same tokens, pipelines
//! and services at every start. What is kept is what a read would answer: a write that has begun, and one that has ended
//! since something was read, make the next read ask the table.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::types::AttributeValue;

use crate::error::StoreError;
use crate::item::Item;
use crate::key::Key;

/// Items kept; more than that and the memory starts anew.
const MOST: usize = 256;
/// Items with more text and bytes than this are not kept.
const LARGEST: usize = 32 * 1024;

/// The writes of a table, noted by who carries them out.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    under_way: AtomicUsize,
    done: AtomicU64,
}

impl Writes {
    /// Notes a write; it is under way until what this gives is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> UnderWay {
        self.under_way.fetch_add(1, SeqCst);
        UnderWay(Arc::clone(self))
    }

    /// How many there were, where none is under way.
    pub(crate) fn quiet(&self) -> Option<u64> {
        let done = self.done.load(SeqCst);
        (self.under_way.load(SeqCst) == 0).then_some(done)
    }
}

/// A write that may have been done, or not.
pub(crate) struct UnderWay(Arc<Writes>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.done.fetch_add(1, SeqCst);
        self.0.under_way.fetch_sub(1, SeqCst);
    }
}

/// What was read of a table since its last write.
pub(crate) struct Known {
    writes: Arc<Writes>,
    read: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    /// After so many writes.
    after: u64,
    /// By key; `None` where there is no item.
    items: HashMap<String, Option<Item>>,
}

impl Known {
    /// Nothing yet, of the table whose writes are noted there.
    pub(crate) fn new(writes: Arc<Writes>) -> Self {
        Self {
            writes,
            read: Mutex::default(),
        }
    }

    /// The item under `key`, by `fetch` where it is not known.
    pub(crate) async fn get(
        &self,
        key: &Key,
        fetch: impl Future<Output = Result<Option<Item>, StoreError>>,
    ) -> Result<Option<Item>, StoreError> {
        let Some(after) = self.writes.quiet() else {
            return fetch.await;
        };
        let name = format!("{} {}{}", key.pk.len(), key.pk, key.sk);
        if let Some(known) = self.look_up(&name, after) {
            return Ok(known);
        }
        let item = fetch.await?;
        if item.as_ref().is_none_or(|item| size(item) <= LARGEST) {
            self.note(name, after, &item);
        }
        Ok(item)
    }

    fn look_up(&self, name: &str, after: u64) -> Option<Option<Item>> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.after != after {
            return None;
        }
        read.items.get(name).cloned()
    }

    /// Keeps what was read after so many writes; whoever looks it up after another one does not find it.
    fn note(&self, name: String, after: u64, item: &Option<Item>) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.after > after {
            return;
        }
        if read.after < after || read.items.len() >= MOST {
            read.items.clear();
            read.after = after;
        }
        read.items.insert(name, item.clone());
    }
}

/// Characters and bytes of an item.
fn size(item: &Item) -> usize {
    let of = |value: &AttributeValue| match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.len(),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        // Lists and maps of attributes are small where we write them.
        _ => 64,
    };
    item.iter()
        .map(|(name, value)| name.len() + of(value))
        .sum()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::item::text;
    use crate::key::Table;

    struct Asked(AtomicU32);

    impl Asked {
        async fn answer(&self, value: &str) -> Result<Option<Item>, StoreError> {
            self.0.fetch_add(1, SeqCst);
            Ok(Some(Item::from([("body".to_owned(), text(value))])))
        }

        fn count(&self) -> u32 {
            self.0.load(SeqCst)
        }
    }

    async fn body(
        known: &Known,
        sk: &str,
        fetch: impl Future<Output = Result<Option<Item>, StoreError>>,
    ) -> String {
        let key = Key::new(Table::Entities, "a".to_owned(), sk);
        let item = known.get(&key, fetch).await.unwrap().unwrap();
        item["body"].as_s().unwrap().clone()
    }

    #[tokio::test]
    async fn what_was_read_is_known_until_something_is_written() {
        let writes = Arc::<Writes>::default();
        let (known, asked) = (Known::new(writes.clone()), Asked(AtomicU32::new(0)));
        for _ in 0..3 {
            assert_eq!(body(&known, "k", asked.answer("old")).await, "old");
        }
        assert_eq!(asked.count(), 1);
        assert_eq!(
            body(&known, "other", asked.answer("another")).await,
            "another"
        );

        let write = writes.begin();
        // It may be done by now, or not.
        assert_eq!(body(&known, "k", asked.answer("new")).await, "new");
        assert_eq!(body(&known, "k", asked.answer("old")).await, "old");
        drop(write);
        for _ in 0..3 {
            assert_eq!(body(&known, "k", asked.answer("new")).await, "new");
        }
        assert_eq!(asked.count(), 5);
    }

    #[tokio::test]
    async fn what_was_read_before_a_write_ended_is_not_kept() {
        let writes = Arc::<Writes>::default();
        let (known, asked) = (Known::new(writes.clone()), Asked(AtomicU32::new(0)));
        let overtaken = async {
            drop(writes.begin());
            asked.answer("old").await
        };
        assert_eq!(body(&known, "k", overtaken).await, "old");
        assert_eq!(body(&known, "k", asked.answer("new")).await, "new");
        assert_eq!(body(&known, "k", asked.answer("newer")).await, "new");
    }

    #[tokio::test]
    async fn it_does_not_grow_without_bound() {
        let known = Known::new(Arc::default());
        let asked = Asked(AtomicU32::new(0));
        for n in 0..3 * MOST {
            body(&known, &n.to_string(), asked.answer("small")).await;
            assert!(known.read.lock().unwrap().items.len() <= MOST);
        }
        let large = "x".repeat(LARGEST);
        for _ in 0..2 {
            body(&known, "large", asked.answer(&large)).await;
        }
        assert_eq!(asked.count() as usize, 3 * MOST + 2);
    }
}
