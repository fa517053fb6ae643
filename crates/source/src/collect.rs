//! Files as they are read, within the limits of a store.

use std::sync::Arc;

use slipway_plan::remote::{MOST_BYTES, MOST_FILES};

/// What was read so far.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    files: Vec<(String, Arc<str>)>,
    bytes: usize,
}

impl Collected {
    /// Whether so many files more may be read.
    pub(crate) fn room_for_files(&self, more: usize) -> Result<(), String> {
        if self.files.len() + more > MOST_FILES {
            return Err(format!(
                "they are more than {MOST_FILES} files: name single files, or a folder with fewer"
            ));
        }
        Ok(())
    }

    /// Whether a file of `bytes` more may be read; asked before anything of it is.
    pub(crate) fn room_for(&self, path: &str, bytes: u64) -> Result<(), String> {
        self.room_for_files(1)?;
        let all = u64::try_from(self.bytes)
            .unwrap_or(u64::MAX)
            .saturating_add(bytes);
        if all > MOST_BYTES as u64 {
            return Err(format!(
                "with {path} ({bytes} bytes) they have more than {MOST_BYTES} bytes: manifests are small texts, so name those files alone"
            ));
        }
        Ok(())
    }

    /// Adds a file.
    pub(crate) fn add(&mut self, path: &str, content: Vec<u8>) -> Result<(), String> {
        self.room_for(path, content.len() as u64)?;
        let text = String::from_utf8(content)
            .map_err(|_| format!("{path} is no text in UTF-8, and a manifest must be one"))?;
        self.bytes += text.len();
        self.files.push((path.to_owned(), text.into()));
        Ok(())
    }

    /// All of them, in the order of reading.
    pub(crate) fn into_files(self) -> Vec<(String, Arc<str>)> {
        self.files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_too_many_nor_too_large_nor_binary_files_are_taken() {
        let mut few = Collected::default();
        assert!(few.add("a", b"text".to_vec()).is_ok());
        assert!(few.room_for("huge", 3 << 30).is_err());
        assert!(few.room_for("endless", u64::MAX).is_err());
        let binary = few.add("b", vec![0xff, 0xfe]).unwrap_err();
        assert!(binary.contains("b is no text"), "{binary}");
        assert_eq!(few.into_files().len(), 1);

        let mut many = Collected::default();
        for number in 0..MOST_FILES {
            many.add(&number.to_string(), Vec::new()).unwrap();
        }
        assert!(many.add("one more", Vec::new()).is_err());
    }
}
