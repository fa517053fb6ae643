//! Short texts of a document, each kept once.

use std::sync::Arc;

/// Short texts that were read lately, so that the keys of a document are kept once. Of a fixed size: a text
/// that falls on the place of another takes it.
pub(crate) struct Seen(Vec<Arc<str>>);

impl Seen {
    /// A power of two.
    const PLACES: usize = 1 << 10;
    const LONGEST: usize = 32;

    /// Nothing was read yet.
    pub(crate) fn new() -> Self {
        Self(vec![Arc::from(""); Self::PLACES])
    }

    /// The text, shared with its last occurrence.
    pub(crate) fn share(&mut self, text: &str) -> Arc<str> {
        if text.len() > Self::LONGEST {
            return text.into();
        }
        // FNV-1a: a bad spread costs memory, nothing else.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let place = usize::try_from(hash >> 40).unwrap_or(0) % Self::PLACES;
        match self.0.get_mut(place) {
            Some(last) if **last == *text => last.clone(),
            Some(last) => {
                *last = text.into();
                last.clone()
            }
            None => text.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Seen;

    #[test]
    fn a_text_is_shared_with_its_last_occurrence() {
        let mut seen = Seen::new();
        let first = seen.share("identifier");
        assert!(std::sync::Arc::ptr_eq(&first, &seen.share("identifier")));
        // However many others there are, each is what was asked for.
        for n in 0..10_000 {
            assert_eq!(&*seen.share(&n.to_string()), n.to_string());
        }
        let long = "x".repeat(Seen::LONGEST + 1);
        assert!(!std::sync::Arc::ptr_eq(
            &seen.share(&long),
            &seen.share(&long)
        ));
    }
}
