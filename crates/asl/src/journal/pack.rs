//! Records of the journal in few bytes.
//!
//! A record of more than some hundred bytes does not fit the page of SQLite that its key is on: each such record costs a
//! page of its own, of which most is empty, and the log and the checkpoints write it whole. History repeats itself, so
//! that the same records compressed take a sixth.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io;
use std::sync::LazyLock;

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};

/// Shorter records stay readable text.
const SHORTEST: usize = 400;
/// zstd's quickest usual level: records are written several times and hardly ever read.
const LEVEL: i32 = 1;
/// First byte of a record that was packed with [`DICTIONARY`]; JSON never begins with it.
const PACKED: u8 = 1;
/// Largest record that is unpacked, in bytes: bounds what a damaged one can ask for.
const LARGEST: usize = 1 << 30;

/// What records are made of. It can never change: what was packed with it can be unpacked with it only.
const DICTIONARY: &[u8] = include_bytes!("dictionary.txt");

static ENCODER: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, LEVEL));
static DECODER: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

thread_local! {
    /// Kept, because making one takes longer than a record does.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> =
        RefCell::new(Compressor::with_prepared_dictionary(&ENCODER).ok());
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> =
        RefCell::new(Decompressor::with_prepared_dictionary(&DECODER).ok());
}

/// A record as it is stored: packed where that is shorter.
pub(super) fn pack(record: Vec<u8>) -> Vec<u8> {
    if record.len() < SHORTEST {
        return record;
    }
    let packed = COMPRESSOR.with_borrow_mut(|compressor| {
        let packed = compressor.as_mut()?.compress(&record).ok()?;
        let mut stored = Vec::with_capacity(packed.len() + 1);
        stored.push(PACKED);
        stored.extend_from_slice(&packed);
        Some(stored)
    });
    match packed {
        Some(packed) if packed.len() < record.len() => packed,
        _ => record,
    }
}

/// A record as it was before it was stored, by this version or an older one.
pub(super) fn unpack(stored: &[u8]) -> io::Result<Cow<'_, [u8]>> {
    let Some((&PACKED, packed)) = stored.split_first() else {
        return Ok(Cow::Borrowed(stored));
    };
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "it cannot be unpacked");
    let size = Decompressor::upper_bound(packed).ok_or_else(damaged)?;
    if size > LARGEST {
        return Err(damaged());
    }
    let record = DECOMPRESSOR.with_borrow_mut(|decompressor| {
        let decompressor = decompressor.as_mut();
        decompressor.map_or_else(|| Err(damaged()), |ready| ready.decompress(packed, size))
    });
    record.map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    fn record(words: usize) -> Vec<u8> {
        let words: Vec<String> = (0..words).map(|n| format!("\"word {n}\"")).collect();
        format!("[{}]", words.join(",")).into_bytes()
    }

    #[test]
    fn records_come_back_as_they_were() {
        for words in [0, 1, 30, 60, 1_000, 100_000] {
            let record = record(words);
            let stored = pack(record.clone());
            assert_eq!(stored.first() == Some(&PACKED), record.len() >= SHORTEST);
            assert!(stored.len() <= record.len());
            assert_eq!(*unpack(&stored).expect("reads"), record);
        }
        let empty: &[u8] = &[];
        assert_eq!(*unpack(empty).expect("reads"), *empty);
    }

    #[test]
    fn an_event_takes_a_fraction() {
        let event = br#"[[5,4,1795377585045,"TaskSucceeded",{"resourceType":"lambda","resource":"invoke","output":
            {"ExecutedVersion":"$LATEST","Payload":{"id":"01a204d7"},"StatusCode":200}}],[6,5,1795377585045,
            "TaskStateExited",{"name":"Begin","output":{"id":"01a204d7"}}]]"#;
        let event = event.repeat(2);
        let stored = pack(event.clone());
        assert!(stored.len() * 4 < event.len(), "{}", stored.len());
    }

    #[test]
    fn damage_is_an_error() {
        let stored = pack(record(100));
        assert!(unpack(&stored[..stored.len() - 1]).is_err());
        for at in 1..stored.len() {
            let mut damaged = stored.clone();
            damaged[at] ^= 0x55;
            // Some bytes only change what comes out; whoever reads it finds no JSON, or other words.
            let _ = unpack(&damaged);
        }
    }

    #[test]
    fn the_dictionary_is_the_one_that_journals_were_written_with() {
        let digest: String = Sha256::digest(DICTIONARY)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(
            digest,
            "90b35b19a9eb383032891da4b9bc3e8f2c317d40e7224ba4a97bd4b037bc42c4"
        );
    }
}
