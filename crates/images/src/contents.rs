//! A file inside an image: found as a container would see it, and written to a folder only when every byte that was read is vouched for.
//!
//! Layers are read from the top, one stream at a time, and those below the one that settles a path are never fetched. Nothing is believed of a
//! layer, not even that it lacks a file, before both of its digests were compared over all of it. Memory does not grow with the image: what is
//! held is a decompressor's window, one header, and a few buffers.
//!
//! Archives are read by [`tar`], written for this: the library of that name expands sparse files, lets one extension override another and
//! reads extensions of any length into memory, all of which is refused here.

mod error;
mod folder;
mod overlay;
mod path;
mod pax;
mod pieces;
mod stream;
mod tar;
mod zstd;

use std::{
    io::{self, Read},
    path::Path,
};

use serde::{Deserialize, Serialize};
use windlass_plan::bug::{self, Bug};

pub use self::{
    error::{Class, Corruption, Error, Kind, Refusal},
    path::{FilePath, InvalidPath},
    pieces::Pieces,
};
use self::{
    folder::{Folder, Partial},
    overlay::Search,
    stream::{Fetched, Unpacked},
    tar::Archive,
};
use crate::{Digest, Hashing};

/// How a layer is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// An archive as it is.
    Plain,
    /// Gzip, of one member or several.
    Gzip,
    /// Zstandard, of one frame or several.
    Zstd,
}

impl Packing {
    /// What a layer's media type says, in OCI's words or Docker's; none for layers that are something else, such as encrypted or foreign ones.
    pub fn of_media_type(media_type: &str) -> Option<Self> {
        match media_type {
            "application/vnd.oci.image.layer.v1.tar" | "application/vnd.docker.image.rootfs.diff.tar" => {
                Some(Self::Plain)
            }
            "application/vnd.oci.image.layer.v1.tar+gzip" | "application/vnd.docker.image.rootfs.diff.tar.gzip" => {
                Some(Self::Gzip)
            }
            "application/vnd.oci.image.layer.v1.tar+zstd" | "application/vnd.docker.image.rootfs.diff.tar.zstd" => {
                Some(Self::Zstd)
            }
            _ => None,
        }
    }
}

/// A layer as manifest and config describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// How it is packed.
    pub packing: Packing,
    /// What its bytes are called by, packed as they are fetched.
    pub digest: Digest,
    /// How many bytes that are.
    pub size: u64,
    /// What its archive is called by once it is unpacked.
    pub diff_id: Digest,
}

/// What an image may ask of whoever reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries of one layer.
    pub entries: u64,
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of one layer once it is unpacked.
    pub unpacked: u64,
    /// How many times its packed size a layer may be unpacked, beyond the first [`RATIO_FREE`] bytes.
    pub ratio: u64,
}

/// So much may come out of any layer, however small it is packed: empty space packs well, and this much harms nobody.
pub const RATIO_FREE: u64 = 64 << 20;

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 1_000_000, file: 1 << 30, unpacked: 16 << 30, ratio: 200 }
    }
}

/// What came out of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Extracted {
    /// The files, in the order in which they were asked for.
    pub files: Vec<ExtractedFile>,
    /// How many layers were read.
    pub layers_read: usize,
    /// How many bytes were fetched for that.
    pub bytes_fetched: u64,
    /// Everything was there from before, and was read again instead of fetched.
    pub reused: bool,
}

/// One of these files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtractedFile {
    /// Where it is in the image. In the folder it has the same name, without the path.
    pub path: String,
    /// Its length in bytes.
    pub size: u64,
    /// What its bytes are called by.
    #[serde(with = "digest_as_text")]
    pub digest: Digest,
}

/// Puts files of an image into a folder, which must exist. `layers` are ordered as in the manifest, lowest first; `open` begins a layer's
/// stream, from its first byte and packed as it is.
///
/// All of the files appear under their names, or none does: what an earlier attempt left unfinished is removed, and what it finished is reused
/// where it is of the same image and still has the bytes that it had.
pub fn extract<S: Read>(
    layers: &[Layer],
    paths: &[FilePath],
    folder: &Path,
    limits: &Limits,
    mut open: impl FnMut(&Layer) -> io::Result<S>,
) -> Result<Extracted, Error> {
    if paths.is_empty() || paths.iter().enumerate().any(|(at, path)| named_before(paths, at, path)) {
        return Err(Error::Names);
    }
    let folder = Folder::new(folder);
    let source = source(layers, paths);
    if let Some(files) = folder.reusable(&source, paths)? {
        return Ok(Extracted { files, layers_read: 0, bytes_fetched: 0, reused: true });
    }
    folder.clear(paths)?;
    let mut searches: Vec<Search> = paths.iter().cloned().map(Search::new).collect();
    let (mut layers_read, mut bytes_fetched) = (0, 0);
    for layer in layers.iter().rev() {
        if searches.iter().all(Search::is_settled) {
            break;
        }
        layers_read += 1;
        bytes_fetched += read(layer, &mut searches, &folder, limits, &mut open)?;
        for search in &mut searches {
            search.layer_ends()?;
        }
    }
    let found: Vec<(Partial, ExtractedFile)> = searches.into_iter().map(Search::found).collect::<Result<_, _>>()?;
    let files = folder.keep(&source, found)?;
    Ok(Extracted { files, layers_read, bytes_fetched, reused: false })
}

fn named_before(paths: &[FilePath], at: usize, path: &FilePath) -> bool {
    paths.iter().take(at).any(|earlier| earlier.file_name() == path.file_name())
}

/// What is asked for, by one name: files of another image, or other files, are not reused.
fn source(layers: &[Layer], paths: &[FilePath]) -> Digest {
    let mut hashing = Hashing::default();
    let mut line = |text: &str| {
        hashing.update(text.as_bytes());
        hashing.update(b"\n");
    };
    for layer in layers {
        line(layer.digest.as_str());
        line(layer.diff_id.as_str());
    }
    for path in paths {
        line(path.as_str());
    }
    hashing.finish()
}

/// One layer, to its last byte; how many bytes that were.
fn read<S: Read>(
    layer: &Layer,
    searches: &mut [Search],
    folder: &Folder<'_>,
    limits: &Limits,
    open: &mut impl FnMut(&Layer) -> io::Result<S>,
) -> Result<u64, Error> {
    let stream = open(layer).map_err(|error| Error::source(layer, &error))?;
    let mut fetched = Fetched::new(stream, layer.size);
    let mut unpacked = Unpacked::new(layer, &mut fetched, limits);
    let scanned = scan(layer, &mut unpacked, searches, folder, limits);
    let diff_id = unpacked.finish();
    // First whether these are the layer's bytes at all: what somebody else sent proves nothing about the image.
    fetched.finish(layer)?;
    scanned?;
    if diff_id != layer.diff_id && !bug::active(Bug::LayerNotHashed) {
        return Err(Error::corrupt(layer, Corruption::DiffId { wanted: layer.diff_id.clone(), found: diff_id }));
    }
    Ok(layer.size)
}

fn scan<S: Read>(
    layer: &Layer,
    unpacked: &mut Unpacked<'_, S>,
    searches: &mut [Search],
    folder: &Folder<'_>,
    limits: &Limits,
) -> Result<(), Error> {
    let refused = |refusal| Error::refused(layer, refusal);
    let mut archive = Archive::new(unpacked, limits.entries);
    while let Some(entry) = archive.next().map_err(refused)? {
        let mut sink = None;
        for search in searches.iter_mut() {
            if search.look_at(&entry, limits.file).map_err(refused)? {
                sink = Some(search.begin(folder.partial(search.path())?));
            }
        }
        archive.contents(&entry, refused, |piece| sink.as_mut().map_or(Ok(()), |sink| sink.write(piece)))?;
    }
    Ok(())
}

mod digest_as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::Digest;

    pub(super) fn serialize<S: Serializer>(digest: &Digest, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(digest)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
