//! What an entry of a layer means for a file that is looked for: layers are seen from above, as a container sees them.

use windlass_plan::bug::{self, Bug};

use super::{
    ExtractedFile,
    error::{Error, Kind, Refusal},
    folder::Partial,
    path::{FilePath, WHITEOUT},
    tar::Entry,
};

/// Hides what lower layers have in its folder.
const OPAQUE: &[u8] = b".wh..wh..opq";

/// What an entry means for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// Nothing.
    Nothing,
    /// It is a folder on the way, or should be.
    Parent,
    /// It is at this path.
    Itself,
    /// It is inside: the path is a folder.
    Inside,
    /// What lower layers have at this path is gone.
    Gone,
}

/// One file that is looked for, from the topmost layer down.
pub(super) struct Search {
    path: FilePath,
    /// It was found, in this layer or one above.
    partial: Option<Partial>,
    /// The layer that is read now has an entry at this path.
    seen: bool,
    /// The layer that is read now deletes what is below.
    gone: bool,
}

impl Search {
    pub(super) fn new(path: FilePath) -> Self {
        Self { path, partial: None, seen: false, gone: false }
    }

    pub(super) fn path(&self) -> &FilePath {
        &self.path
    }

    /// Whether lower layers can't change anything.
    pub(super) fn is_settled(&self) -> bool {
        self.partial.is_some()
    }

    /// Whether this entry is the file. What a layer above has counts, whatever this one says.
    pub(super) fn look_at(&mut self, entry: &Entry, limit: u64) -> Result<bool, Refusal> {
        if self.is_settled() && !self.seen {
            return Ok(false);
        }
        let path = || self.path.to_string();
        match meaning(&entry.name, &self.path) {
            Meaning::Nothing => Ok(false),
            Meaning::Parent if entry.kind == Kind::Folder => Ok(false),
            Meaning::Parent if bug::active(Bug::LinkFollowed) => Ok(false),
            Meaning::Parent => Err(Refusal::Parent { path: path(), kind: entry.kind }),
            Meaning::Inside => Err(Refusal::NotAFile { path: path(), kind: Kind::Folder }),
            // Of lower layers alone: the file may be in this one again, before or after.
            Meaning::Gone => {
                self.gone |= !bug::active(Bug::WhiteoutIgnored);
                Ok(false)
            }
            Meaning::Itself if self.seen => Err(Refusal::twice(&self.path)),
            Meaning::Itself if entry.kind != Kind::File => {
                if bug::active(Bug::LinkFollowed) {
                    return Ok(false);
                }
                Err(Refusal::NotAFile { path: path(), kind: entry.kind })
            }
            Meaning::Itself if entry.size > limit => {
                Err(Refusal::FileTooLarge { path: path(), size: entry.size, limit })
            }
            Meaning::Itself => {
                self.seen = true;
                Ok(true)
            }
        }
    }

    /// The file's bytes come now.
    pub(super) fn begin(&mut self, partial: Partial) -> &mut Partial {
        self.partial.insert(partial)
    }

    /// The layer was read to its end, and is what it should be.
    pub(super) fn layer_ends(&mut self) -> Result<(), Error> {
        if self.gone && !self.is_settled() {
            return Err(Error::Missing { path: self.path.to_string(), deleted: true });
        }
        (self.seen, self.gone) = (false, false);
        Ok(())
    }

    /// What was found.
    pub(super) fn found(self) -> Result<(Partial, ExtractedFile), Error> {
        let path = self.path.to_string();
        match self.partial {
            Some(partial) => {
                let (size, digest) = partial.measured();
                Ok((partial, ExtractedFile { path, size, digest }))
            }
            None => Err(Error::Missing { path, deleted: false }),
        }
    }
}

fn meaning(name: &[Vec<u8>], path: &FilePath) -> Meaning {
    let wanted: Vec<&[u8]> = path.parts().collect();
    let is_at_or_above = |parts: &[&[u8]]| wanted.starts_with(parts);
    let name: Vec<&[u8]> = name.iter().map(Vec::as_slice).collect();
    let Some((last, folder)) = name.split_last() else { return Meaning::Parent };
    if folder.starts_with(&wanted) {
        return Meaning::Inside;
    }
    if *last == OPAQUE {
        return if is_at_or_above(folder) { Meaning::Gone } else { Meaning::Nothing };
    }
    if let Some(gone) = last.strip_prefix(WHITEOUT) {
        // Whatever else begins like that is a remark of an old storage driver, and is no part of the image.
        let gone: Vec<&[u8]> = folder.iter().copied().chain([gone]).collect();
        return if is_at_or_above(&gone) { Meaning::Gone } else { Meaning::Nothing };
    }
    match is_at_or_above(&name) {
        true if name.len() == wanted.len() => Meaning::Itself,
        true => Meaning::Parent,
        false => Meaning::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::the_top("", Meaning::Parent)]
    #[case::a_parent("usr", Meaning::Parent)]
    #[case::the_nearest_parent("usr/bin", Meaning::Parent)]
    #[case::the_file("usr/bin/minio", Meaning::Itself)]
    #[case::inside("usr/bin/minio/x", Meaning::Inside)]
    #[case::a_deletion_inside("usr/bin/minio/.wh.x", Meaning::Inside)]
    #[case::opaque_inside("usr/bin/minio/.wh..wh..opq", Meaning::Inside)]
    #[case::a_neighbour("usr/bin/mc", Meaning::Nothing)]
    #[case::a_longer_name("usr/bin/minio2", Meaning::Nothing)]
    #[case::a_shorter_name("usr/bi", Meaning::Nothing)]
    #[case::elsewhere("opt/usr/bin/minio", Meaning::Nothing)]
    #[case::deleted("usr/bin/.wh.minio", Meaning::Gone)]
    #[case::a_neighbour_deleted("usr/bin/.wh.mc", Meaning::Nothing)]
    #[case::the_parent_deleted("usr/.wh.bin", Meaning::Gone)]
    #[case::the_first_parent_deleted(".wh.usr", Meaning::Gone)]
    #[case::another_folder_deleted("opt/.wh.bin", Meaning::Nothing)]
    #[case::opaque("usr/bin/.wh..wh..opq", Meaning::Gone)]
    #[case::the_parent_opaque("usr/.wh..wh..opq", Meaning::Gone)]
    #[case::all_opaque(".wh..wh..opq", Meaning::Gone)]
    #[case::another_folder_opaque("opt/.wh..wh..opq", Meaning::Nothing)]
    #[case::a_remark("usr/bin/.wh..wh.plnk", Meaning::Nothing)]
    #[case::inside_a_remark(".wh..wh.plnk/usr", Meaning::Nothing)]
    fn each_name_means_something(#[case] name: &str, #[case] expected: Meaning) {
        let name: Vec<Vec<u8>> =
            name.split('/').filter(|part| !part.is_empty()).map(|part| part.as_bytes().to_vec()).collect();
        assert_eq!(meaning(&name, &"/usr/bin/minio".parse().unwrap()), expected);
    }
}
