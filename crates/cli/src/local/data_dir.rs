//! The data directory: one process at a time, one format, one token.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Layout of the directory; a directory of a newer one is refused.
const FORMAT: u32 = 1;

/// An opened data directory; the lock is held until it is dropped or the process dies.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    lock: File,
}

/// The data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// Another process has it.
    #[error(
        "the data directory {} is in use by another slipway (process {holder}): stop that one, or choose another with --data-dir",
        path.display()
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// Process id that its lock file names.
        holder: String,
    },
    /// A newer version wrote it.
    #[error(
        "the data directory {} has format {found}, and this version knows formats up to {FORMAT}: use a newer slipway; nothing was changed",
        path.display()
    )]
    Newer {
        /// The directory.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// Its format file does not hold a number.
    #[error(
        "the file {} should hold the format number and holds {found:?}: restore it from a backup, or choose another --data-dir",
        path.display()
    )]
    Damaged {
        /// The format file.
        path: PathBuf,
        /// What it holds.
        found: String,
    },
    /// A file or folder in it could not be read or written.
    #[error("{what} {} failed", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl Drop for DataDir {
    /// Gives the lock back at once: a process that is just being started has a copy of the file until it runs, and
    /// closing ours alone would leave the lock with it.
    fn drop(&mut self) {
        if let Err(error) = self.lock.unlock() {
            tracing::debug!(%error, "the data directory is not unlocked by hand; closing its file does it");
        }
    }
}

impl DataDir {
    /// Creates the directory where it is missing, takes its lock and checks its format.
    ///
    /// # Errors
    /// When another process has it, a newer version wrote it, or it cannot be read or written.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        let io = |what, at: &Path| {
            let path = at.to_path_buf();
            move |source| DataDirError::Io { what, path, source }
        };
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(io("creating the data directory", path))?;
        let lock_path = path.join("lock");
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock_path)
            .map_err(io("opening the lock file", &lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = std::fs::read_to_string(&lock_path).unwrap_or_default();
                let holder = holder.trim().to_owned();
                return Err(DataDirError::InUse {
                    path: path.to_path_buf(),
                    holder,
                });
            }
            Err(TryLockError::Error(source)) => return Err(io("locking", &lock_path)(source)),
        }
        check_format(path)?;
        lock.set_len(0)
            .and_then(|()| writeln!(lock, "{}", std::process::id()))
            .map_err(io("writing the lock file", &lock_path))?;
        Ok(Self {
            path: path.to_path_buf(),
            lock,
        })
    }

    /// A file or folder in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file that only its owner may read, whole or not at all.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_private(&self, name: &str, text: &str) -> Result<PathBuf, DataDirError> {
        let path = self.join(name);
        let partial = self.join(&format!("{name}.partial"));
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&partial)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&partial, &path)
        };
        write().map_err(|source| DataDirError::Io {
            what: "writing",
            path: path.clone(),
            source,
        })?;
        Ok(path)
    }
}

fn check_format(dir: &Path) -> Result<(), DataDirError> {
    let path = dir.join("format");
    match std::fs::read_to_string(&path) {
        Ok(text) => match text.trim().parse::<u32>() {
            Ok(found) if found <= FORMAT => Ok(()),
            Ok(found) => Err(DataDirError::Newer {
                path: dir.to_path_buf(),
                found,
            }),
            Err(_) => Err(DataDirError::Damaged {
                path,
                found: text.chars().take(40).collect(),
            }),
        },
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
            std::fs::write(&path, format!("{FORMAT}\n")).map_err(|source| DataDirError::Io {
                what: "writing",
                path,
                source,
            })
        }
        Err(source) => Err(DataDirError::Io {
            what: "reading",
            path,
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{DataDir, DataDirError};

    #[test]
    fn a_second_process_is_refused_until_the_first_is_gone() {
        let dir = tempfile::tempdir().expect("a folder");
        let first = DataDir::open(dir.path()).expect("free");
        let refused = DataDir::open(dir.path()).expect_err("taken");
        let pid = std::process::id();
        assert!(
            refused.to_string().contains(&format!("process {pid}")),
            "{refused}"
        );
        drop(first);
        DataDir::open(dir.path()).expect("free again");
    }

    #[test]
    fn a_directory_of_a_newer_version_is_refused_untouched() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("format"), "7\n").expect("a file");
        let refused = DataDir::open(dir.path()).expect_err("newer");
        assert!(
            matches!(refused, DataDirError::Newer { found: 7, .. }),
            "{refused}"
        );
        let kept = std::fs::read_to_string(dir.path().join("format")).expect("still there");
        assert_eq!(kept, "7\n");
    }
}
