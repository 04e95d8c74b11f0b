//! Why a file did not come out of an image, and who can end that.

use std::{fmt, io, path::Path};

use super::{Layer, path::FilePath};
use crate::Digest;

/// What kind of trouble it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// What was asked for makes no sense.
    Invalid,
    /// The image does not have it.
    Missing,
    /// The image has something that is not accepted.
    Refused,
    /// What was sent is not what the image's manifest names.
    Corrupt,
    /// The stream ended too early or broke. Time can heal it.
    Source,
    /// The folder can't be written or read.
    Store,
}

/// Why nothing came out. Nothing was written under a name that somebody would believe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No path, or two that would be called the same in the folder.
    #[error("name at least one file, and no two that have the same name")]
    Names,
    /// No layer has it, or the last word of the layers is that it is deleted.
    #[error("the image has no file {path}{}", if *.deleted { ": a layer deletes it" } else { "" })]
    Missing {
        /// What was looked for.
        path: String,
        /// It is, or could be, in a lower layer.
        deleted: bool,
    },
    /// A layer that is the right one and has something that is not accepted.
    #[error("layer {layer}: {refusal}")]
    Refused {
        /// Which.
        layer: Digest,
        /// What.
        refusal: Refusal,
    },
    /// Not the bytes that the manifest names.
    #[error("layer {layer}: {corruption}")]
    Corrupt {
        /// Which layer was asked for.
        layer: Digest,
        /// What came instead.
        corruption: Corruption,
    },
    /// The layer did not come to its end.
    #[error("layer {layer} was not read to its end: {why}")]
    Source {
        /// Which.
        layer: Digest,
        /// What happened.
        why: String,
    },
    /// The folder.
    #[error("{what} {path} failed: {why}")]
    Store {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: String,
        /// What happened.
        why: String,
    },
}

impl Error {
    /// What kind of trouble it is.
    pub fn class(&self) -> Class {
        match self {
            Self::Names => Class::Invalid,
            Self::Missing { .. } => Class::Missing,
            Self::Refused { .. } => Class::Refused,
            Self::Corrupt { .. } => Class::Corrupt,
            Self::Source { .. } => Class::Source,
            Self::Store { .. } => Class::Store,
        }
    }

    /// What a person can do about it.
    pub fn next_step(&self) -> &'static str {
        match self.class() {
            Class::Invalid => "check the paths that are asked for",
            Class::Missing => "check the path, and whether this image is built for it",
            Class::Refused => "build the image with a plain file at this path, with nothing unusual in its layers",
            Class::Corrupt => {
                "check the registry and everything between it and here: it sends other bytes than it should"
            }
            Class::Source => "it is tried again; check that the registry can be reached if it stays",
            Class::Store => "check the volume's room and its owner",
        }
    }

    pub(super) fn refused(layer: &Layer, refusal: Refusal) -> Self {
        Self::Refused { layer: layer.digest.clone(), refusal }
    }

    pub(super) fn corrupt(layer: &Layer, corruption: Corruption) -> Self {
        Self::Corrupt { layer: layer.digest.clone(), corruption }
    }

    pub(super) fn source(layer: &Layer, error: &io::Error) -> Self {
        Self::Source { layer: layer.digest.clone(), why: error.to_string() }
    }

    pub(super) fn store(what: &'static str, path: &Path, error: &io::Error) -> Self {
        Self::Store { what, path: path.display().to_string(), why: error.to_string() }
    }
}

/// How the bytes of a layer differ from what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corruption {
    /// There are more.
    #[error("it goes on after the {size} bytes that it should have")]
    TooLong {
        /// How many there should be.
        size: u64,
    },
    /// They are others.
    #[error("it is {found} instead")]
    Digest {
        /// What came.
        found: Digest,
    },
    /// Unpacked they are others than the config says.
    #[error("unpacked it is {found} and should be {wanted}")]
    DiffId {
        /// What the config says.
        wanted: Digest,
        /// What came out.
        found: Digest,
    },
}

/// What an entry of an archive is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file with bytes of its own.
    File,
    /// Another name for a file.
    HardLink,
    /// A name that leads elsewhere.
    SymbolicLink,
    /// A character or block device.
    Device,
    /// A pipe.
    Fifo,
    /// A folder.
    Folder,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a file",
            Self::HardLink => "a hard link",
            Self::SymbolicLink => "a symbolic link",
            Self::Device => "a device",
            Self::Fifo => "a pipe",
            Self::Folder => "a folder",
        })
    }
}

/// What is not accepted in a layer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The path is there and is no file.
    #[error("{path} is {kind}; only a file with bytes of its own is taken, and links are never followed")]
    NotAFile {
        /// What was looked for.
        path: String,
        /// What it is.
        kind: Kind,
    },
    /// A part of the path's way is no folder.
    #[error("a folder on the way to {path} is {kind}; links are never followed")]
    Parent {
        /// What was looked for.
        path: String,
        /// What stands in the way.
        kind: Kind,
    },
    /// Two entries of one name: which of them counts depends on who reads them.
    #[error("{path} is there twice")]
    Twice {
        /// What was looked for.
        path: String,
    },
    /// The file is larger than is accepted.
    #[error("{path} has {size} bytes, and {limit} are accepted")]
    FileTooLarge {
        /// What was looked for.
        path: String,
        /// What it says.
        size: u64,
        /// What is accepted.
        limit: u64,
    },
    /// A name that begins at the top: it leads out of wherever it is unpacked.
    #[error("an entry has an absolute name, {0}")]
    AbsoluteName(String),
    /// A name with `..` in it: it leads out of wherever it is unpacked.
    #[error("an entry has a name that leads upwards, {0}")]
    UpwardName(String),
    /// A NUL inside a name: others read it only up to there.
    #[error("an entry has a NUL in its name, {0}")]
    NulInName(String),
    /// Longer than a file's name can be.
    #[error("an entry has a name that is too long, {0}")]
    LongName(String),
    /// No name at all, or a deletion of nothing.
    #[error("an entry has a name that means nothing, {0}")]
    EmptyName(String),
    /// The archive ends in the middle of something.
    #[error("the archive ends in the middle of an entry")]
    CutShort,
    /// A header whose checksum is wrong.
    #[error("a header's checksum is wrong")]
    Checksum,
    /// A header with a number that is none, or negative, or beyond all bounds.
    #[error("a header has a number that can't be read")]
    Number,
    /// Something other than zeros after the end of the archive.
    #[error("the archive goes on after its end")]
    AfterEnd,
    /// A kind of entry, or of header, that nobody needs in an image.
    #[error("an entry is of the kind {0:?}, which is not accepted in a layer")]
    UnknownKind(char),
    /// Sparse files have other bytes than are stored.
    #[error("an entry is a sparse file")]
    Sparse,
    /// Global headers change entries far away from them.
    #[error("it has a global extended header")]
    GlobalHeader,
    /// An extended header that can't be read.
    #[error("an extended header can't be read")]
    ExtendedHeader,
    /// More than one extension says the same thing, or none of the entries that it is for follows.
    #[error("extended headers contradict each other")]
    Contradiction,
    /// Larger than is accepted.
    #[error("an extended header has {size} bytes, and {limit} are accepted")]
    ExtensionTooLarge {
        /// What it says.
        size: u64,
        /// What is accepted.
        limit: u64,
    },
    /// Header and extended header don't have the same size.
    #[error("an entry has {header} bytes by its header and {extended} by its extended header")]
    SizesDisagree {
        /// What the header says.
        header: u64,
        /// What the extended header says.
        extended: u64,
    },
    /// A link, device or folder with bytes of its own: some skip them, some don't.
    #[error("an entry that is {0} has bytes of its own")]
    BytesOfNoFile(Kind),
    /// More entries than are accepted.
    #[error("it has more than {0} entries")]
    TooManyEntries(u64),
    /// More bytes than are accepted, or than such a small layer should have.
    #[error("it has more than {0} bytes once unpacked")]
    TooManyBytes(u64),
    /// Not packed as its media type says, or cut, or with something behind it.
    #[error("it can't be unpacked as {what}: {why}")]
    Packing {
        /// How it should be packed.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
}

impl Refusal {
    pub(super) fn twice(path: &FilePath) -> Self {
        Self::Twice { path: path.to_string() }
    }
}
