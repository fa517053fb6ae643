//! Files and folders by path, wherever they are: in a commit, or on a disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::collect::Collected;
use crate::nearest::instead;

/// Folders inside of one another that are followed.
const DEEPEST: usize = 64;

/// Names that are looked at to find the nearest ones.
const MOST_LOOKED_AT: usize = 5_000;

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// A file of so many bytes.
    File(u64),
    /// A folder with the names in it.
    Folder(Vec<String>),
    /// Something that is not read, and what it is.
    Other(&'static str),
}

/// Something that holds files.
pub(crate) trait Tree {
    /// What stands at a path, the empty one being the root; `None` where there is nothing. No link is followed.
    fn node(&self, path: &str) -> Result<Option<Node>, String>;

    /// The content of a file, at most as many bytes as [`Node::File`] said.
    fn content(&self, path: &str, bytes: u64) -> Result<Vec<u8>, String>;
}

/// The files at `paths`, in their order, and below folders in the order of their paths.
pub(crate) fn pick(
    tree: &dyn Tree,
    paths: &[String],
    place: &str,
    stop: &AtomicBool,
) -> Result<Vec<(String, Arc<str>)>, String> {
    let mut picking = Picking {
        tree,
        place,
        stop,
        found: Collected::default(),
    };
    for path in paths {
        picking.path(path)?;
    }
    Ok(picking.found.into_files())
}

struct Picking<'a> {
    tree: &'a dyn Tree,
    place: &'a str,
    stop: &'a AtomicBool,
    found: Collected,
}

impl Picking<'_> {
    fn path(&mut self, path: &str) -> Result<(), String> {
        let shown = if path.is_empty() { "/" } else { path };
        match self.tree.node(path)? {
            Some(Node::File(bytes)) => self.file(path, bytes),
            Some(Node::Folder(names)) => {
                let files = self.below(path, names)?;
                if files.is_empty() {
                    return Err(format!("the folder {shown} of {} has no file", self.place));
                }
                for (path, bytes) in files {
                    self.file(&path, bytes)?;
                }
                Ok(())
            }
            Some(Node::Other(what)) => Err(self.refused(shown, what)),
            None => {
                let near = self.near();
                let near = instead(path, near.iter().map(String::as_str));
                Err(format!(
                    "there is no file or folder {shown} in {}{near}",
                    self.place
                ))
            }
        }
    }

    fn refused(&self, path: &str, what: &str) -> String {
        format!(
            "{path} of {} is {what}, which is never followed: name the file itself",
            self.place
        )
    }

    fn file(&mut self, path: &str, bytes: u64) -> Result<(), String> {
        self.found.room_for(path, bytes)?;
        let content = self.tree.content(path, bytes)?;
        self.found.add(path, content)
    }

    /// The files below a folder with their sizes, in the order of their paths.
    fn below(&self, folder: &str, names: Vec<String>) -> Result<Vec<(String, u64)>, String> {
        let (mut files, mut most) = (Vec::new(), usize::MAX);
        self.walk(folder, names, 0, &mut most, &mut |path, node| {
            match node {
                Node::File(bytes) => files.push((path.to_owned(), *bytes)),
                Node::Other(what) => return Err(self.refused(path, what)),
                Node::Folder(_) => {}
            }
            // Their contents are counted when they are read; this bounds the list of them.
            self.found.room_for_files(files.len())
        })?;
        files.sort();
        Ok(files)
    }

    /// Some of the files that there are; none where even that cannot be told.
    fn near(&self) -> Vec<String> {
        let (mut paths, mut most) = (Vec::new(), MOST_LOOKED_AT);
        let Ok(Some(Node::Folder(names))) = self.tree.node("") else {
            return paths;
        };
        let walked = self.walk("", names, 0, &mut most, &mut |path, node| {
            if matches!(node, Node::File(_)) {
                paths.push(path.to_owned());
            }
            Ok(())
        });
        // A list that ends early is as good.
        drop(walked);
        paths
    }

    /// Shows everything below a folder to `see`, until `most` nodes were seen.
    fn walk(
        &self,
        folder: &str,
        names: Vec<String>,
        depth: usize,
        most: &mut usize,
        see: &mut dyn FnMut(&str, &Node) -> Result<(), String>,
    ) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!(
                "{folder} of {} lies deeper than {DEEPEST} folders",
                self.place
            ));
        }
        for name in names {
            if self.stop.load(Ordering::Relaxed) {
                return Err("it took too long".to_owned());
            }
            if *most == 0 {
                return Ok(());
            }
            *most -= 1;
            let path = match folder {
                "" => name,
                folder => format!("{folder}/{name}"),
            };
            let Some(node) = self.tree.node(&path)? else {
                continue;
            };
            see(&path, &node)?;
            if let Node::Folder(names) = node {
                self.walk(&path, names, depth + 1, most, see)?;
            }
        }
        Ok(())
    }
}
