//! Unpacking packages: whole, and never beside their folder.

use std::fs;
use std::io::{self, Cursor, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::result::ZipError;

/// Most bytes of an unpacked package (Lambda quotas, developer guide).
pub(crate) const MOST_BYTES: u64 = 250 << 20;
/// Most entries of a package: a bound of this account, far above what package managers make.
const MOST_ENTRIES: usize = 100_000;

/// Why a package cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnpackError {
    /// It is no archive, damaged, made in a way that nobody here knows, or an entry leads out of it.
    #[error("it cannot be read: {0}")]
    Archive(#[from] ZipError),
    /// An entry cannot be decompressed.
    #[error("its entry {entry:?} cannot be read: {source}")]
    Entry {
        /// Name of the entry.
        entry: String,
        /// Why.
        source: io::Error,
    },
    /// It is larger than Lambda allows.
    #[error("unzipped it has more than {MOST_BYTES} bytes or {MOST_ENTRIES} entries")]
    TooLarge,
    /// The disk refused.
    #[error("writing {path} failed: {source}", path = path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The size that a package says it has when unpacked; `None` where it does not say.
pub(crate) fn declared_size(package: &[u8]) -> Option<u64> {
    let archive = ZipArchive::new(Cursor::new(package)).ok()?;
    u64::try_from(archive.decompressed_size()?).ok()
}

/// Unpacks a package into a folder, which is there whole or not at all. Entries and links that lead out of it are refused.
pub(super) fn unpack(package: &[u8], into: &Path) -> Result<(), UnpackError> {
    let mut archive = ZipArchive::new(Cursor::new(package))?;
    check_size(&mut archive)?;
    let partial = into.with_extension("partial");
    remove(&partial)?;
    let done = archive.extract(&partial).map_err(UnpackError::from);
    // Before anything else: a folder that may not be written to could not be removed either.
    let opened = match partial.is_dir() {
        true => open_folders(&partial),
        false => Ok(()),
    };
    let done = done.and(opened);
    let done = done.and_then(|()| fs::rename(&partial, into).map_err(at(into)));
    if done.is_err() {
        remove(&partial)?;
    }
    done
}

/// Lets the owner enter and change each folder, whatever the package says.
fn open_folders(folder: &Path) -> Result<(), UnpackError> {
    let failed = at(folder);
    let open = || -> io::Result<Vec<PathBuf>> {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        let mut folders = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // Of a link, not of what it leads to.
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
        Ok(folders)
    };
    open()
        .map_err(failed)?
        .iter()
        .try_for_each(|folder| open_folders(folder))
}

/// Decompresses everything once without writing it: what an archive says of its sizes is not believed.
fn check_size(archive: &mut ZipArchive<Cursor<&[u8]>>) -> Result<(), UnpackError> {
    if archive.len() > MOST_ENTRIES {
        return Err(UnpackError::TooLarge);
    }
    let mut left = MOST_BYTES;
    for index in 0..archive.len() {
        let entry = archive.by_index(index)?;
        let name = entry.name()?.into_owned();
        let size = io::copy(&mut entry.take(left + 1), &mut io::sink());
        let size = size.map_err(|source| UnpackError::Entry {
            entry: name,
            source,
        })?;
        left = left.checked_sub(size).ok_or(UnpackError::TooLarge)?;
    }
    Ok(())
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> UnpackError + use<> {
    let path = path.to_path_buf();
    move |source| UnpackError::Write { path, source }
}

/// Removes a folder, if it is there.
fn remove(folder: &Path) -> Result<(), UnpackError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(folder)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn package(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default();
        for (name, text) in entries {
            match name.strip_prefix("link:") {
                Some(link) => zip.add_symlink(link, *text, options).expect("a link"),
                None => {
                    zip.start_file(*name, options).expect("an entry");
                    zip.write_all(text.as_bytes()).expect("written");
                }
            }
        }
        zip.finish().expect("an archive").into_inner()
    }

    #[test]
    fn a_package_is_unpacked_whole_with_the_links_inside_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let into = dir.path().join("code");
        let bytes = package(&[
            ("handler.py", "import shop.prices"),
            ("shop/prices.py", "x = 1"),
            ("link:shop/same.py", "prices.py"),
        ]);
        unpack(&bytes, &into).expect("unpacked");
        let read = |name: &str| fs::read_to_string(into.join(name)).expect("there");
        assert_eq!(read("handler.py"), "import shop.prices");
        assert_eq!(read("shop/same.py"), "x = 1");
        assert!(!dir.path().join("code.partial").exists());
    }

    #[test]
    fn y16_nothing_is_written_beside_the_package() {
        for entries in [
            &[("../out.py", "x")][..],
            &[("a/../../out.py", "x")],
            &[("link:out", "../..")],
            &[("link:out", "/etc/passwd")],
            &[("link:a", ".."), ("a/out.py", "x")],
        ] {
            let dir = tempfile::tempdir().expect("a folder");
            let refused = unpack(&package(entries), &dir.path().join("code"));
            let refused = refused.expect_err("refused");
            assert!(
                matches!(refused, UnpackError::Archive(_)),
                "{entries:?}: {refused}"
            );
            let left = fs::read_dir(dir.path()).expect("a list").count();
            assert_eq!(left, 0, "{entries:?}");
        }
    }

    #[test]
    fn y16_folders_can_be_removed_whatever_the_package_says() {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let shut = SimpleFileOptions::default().unix_permissions(0o500);
        zip.add_directory("a/b", shut).expect("an entry");
        zip.start_file("a/b/file.py", shut).expect("an entry");
        let bytes = zip.finish().expect("an archive").into_inner();
        let dir = tempfile::tempdir().expect("a folder");
        let into = dir.path().join("code");
        unpack(&bytes, &into).expect("unpacked");
        let mode = fs::metadata(into.join("a/b")).expect("there");
        assert_eq!(mode.permissions().mode() & 0o777, 0o755);
        fs::remove_dir_all(&into).expect("removed");
    }

    #[test]
    fn y16_an_absolute_name_stays_inside() {
        let dir = tempfile::tempdir().expect("a folder");
        let name = format!("{}/out.py", dir.path().display());
        let into = dir.path().join("code");
        // Refused or put below the folder: either is safe, and which it is is the library's.
        let _ = unpack(&package(&[(&name, "x")]), &into);
        assert!(!dir.path().join("out.py").exists());
    }

    #[test]
    fn y16_what_grows_beyond_the_limit_is_given_up() {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.start_file("zeros", SimpleFileOptions::default())
            .expect("an entry");
        io::copy(&mut io::repeat(0).take(MOST_BYTES + 1), &mut zip).expect("written");
        let bytes = zip.finish().expect("an archive").into_inner();
        assert!(bytes.len() < 1 << 20, "it is small: {}", bytes.len());
        assert!(declared_size(&bytes).is_some_and(|size| size > MOST_BYTES));
        let dir = tempfile::tempdir().expect("a folder");
        let refused = unpack(&bytes, &dir.path().join("code")).expect_err("refused");
        assert!(matches!(refused, UnpackError::TooLarge), "{refused}");
        assert_eq!(fs::read_dir(dir.path()).expect("a list").count(), 0);
    }

    #[test]
    fn y16_too_many_entries_are_refused_before_any_is_written() {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let stored =
            SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        for number in 0..=MOST_ENTRIES {
            zip.start_file(number.to_string(), stored)
                .expect("an entry");
        }
        let bytes = zip.finish().expect("an archive").into_inner();
        let dir = tempfile::tempdir().expect("a folder");
        let refused = unpack(&bytes, &dir.path().join("code")).expect_err("refused");
        assert!(matches!(refused, UnpackError::TooLarge), "{refused}");
        assert_eq!(fs::read_dir(dir.path()).expect("a list").count(), 0);
    }

    #[test]
    fn what_is_no_archive_says_so() {
        let dir = tempfile::tempdir().expect("a folder");
        let refused = unpack(b"PK\x03\x04one", &dir.path().join("code")).expect_err("refused");
        assert!(matches!(refused, UnpackError::Archive(_)), "{refused}");
    }
}
