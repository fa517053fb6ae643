//! A folder of this machine, read as it lies.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use crate::tree::{Node, Tree};

/// A folder; nothing outside of it is read.
pub(crate) struct Folder {
    root: PathBuf,
}

impl Folder {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
        }
    }

    /// Where a path leads, and what is there; links on the way are not followed.
    fn find(&self, path: &str) -> Result<Option<(PathBuf, fs::Metadata)>, String> {
        let mut file = self.root.clone();
        let fault = |file: &Path, why| format!("cannot read {}: {why}", file.display());
        let mut found = fs::metadata(&file).map_err(|why| fault(&file, why))?;
        for part in Path::new(path).components() {
            let Component::Normal(name) = part else {
                return Ok(None);
            };
            if !found.is_dir() {
                return Ok(None);
            }
            file.push(name);
            found = match fs::symlink_metadata(&file) {
                Ok(found) => found,
                Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(why) => return Err(fault(&file, why)),
            };
        }
        Ok(Some((file, found)))
    }
}

impl Tree for Folder {
    fn node(&self, path: &str) -> Result<Option<Node>, String> {
        let Some((file, found)) = self.find(path)? else {
            return Ok(None);
        };
        let kind = found.file_type();
        if kind.is_symlink() {
            return Ok(Some(Node::Other("a symbolic link")));
        }
        if kind.is_file() {
            return Ok(Some(Node::File(found.len())));
        }
        if !kind.is_dir() {
            // A pipe would never end.
            return Ok(Some(Node::Other("neither a file nor a folder")));
        }
        let fault = |why: std::io::Error| format!("cannot list {}: {why}", file.display());
        let mut names = Vec::new();
        for entry in fs::read_dir(&file).map_err(fault)? {
            let name = entry.map_err(fault)?.file_name();
            names.push(name.into_string().map_err(|name| {
                format!("{} has a name that is no UTF-8: {name:?}", file.display())
            })?);
        }
        names.sort();
        Ok(Some(Node::Folder(names)))
    }

    fn content(&self, path: &str, bytes: u64) -> Result<Vec<u8>, String> {
        let Some((file, found)) = self.find(path)? else {
            return Err(format!("{path} was there and is gone"));
        };
        let fault = |why: std::io::Error| format!("cannot read {}: {why}", file.display());
        if !found.is_file() {
            return Err(format!("{path} was a file and is none any more"));
        }
        let mut content = Vec::new();
        let mut open = File::open(&file).map_err(fault)?.take(bytes);
        open.read_to_end(&mut content).map_err(fault)?;
        Ok(content)
    }
}
