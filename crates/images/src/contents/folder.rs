//! The folder that files go to. A file has its name there only when it is whole, and a record beside it says what it must be.

use std::{
    fs::{self, File, Permissions},
    io::{self, Read, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::{ExtractedFile, error::Error, path::FilePath, stream::BUFFER};
use crate::{Digest, Hashing};

/// What is complete. No file that is asked for can be called that: those don't begin with a dot.
const RECORD: &str = ".contents.json";

/// The longest record that is read.
const RECORD_LIMIT: u64 = 1 << 20;

/// How what is not finished is called.
const UNFINISHED: (&str, &str) = (".contents-", ".partial");

#[derive(Serialize, Deserialize)]
struct Record {
    source: String,
    files: Vec<ExtractedFile>,
}

pub(super) struct Folder<'a>(&'a Path);

/// A file that is not finished. It is removed unless it is kept.
pub(super) struct Partial {
    file: NamedTempFile,
    name: String,
    hashing: Hashing,
    size: u64,
}

impl Partial {
    pub(super) fn write(&mut self, piece: &[u8]) -> Result<(), Error> {
        self.file.write_all(piece).map_err(|error| Error::store("writing", self.file.path(), &error))?;
        self.hashing.update(piece);
        self.size += piece.len() as u64;
        Ok(())
    }

    pub(super) fn measured(&self) -> (u64, Digest) {
        (self.size, self.hashing.clone().finish())
    }

    fn keep(self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(&self.name);
        let wrong = |error: io::Error| Error::store("writing", &path, &error);
        // Another container may serve it, as another user.
        self.file.as_file().set_permissions(Permissions::from_mode(0o644)).map_err(wrong)?;
        self.file.as_file().sync_all().map_err(wrong)?;
        self.file.persist(&path).map(drop).map_err(|error| wrong(error.error))
    }
}

impl<'a> Folder<'a> {
    pub(super) fn new(path: &'a Path) -> Self {
        Self(path)
    }

    /// A new file that is called after nothing until it is whole.
    pub(super) fn partial(&self, path: &FilePath) -> Result<Partial, Error> {
        self.unfinished(path.file_name())
    }

    fn unfinished(&self, name: &str) -> Result<Partial, Error> {
        let (prefix, suffix) = UNFINISHED;
        let file = tempfile::Builder::new()
            .prefix(prefix)
            .suffix(suffix)
            .tempfile_in(self.0)
            .map_err(|error| Error::store("making a file in", self.0, &error))?;
        Ok(Partial { file, name: name.to_owned(), hashing: Hashing::default(), size: 0 })
    }

    /// The files of an earlier attempt, if it finished and all of them still are what they were.
    pub(super) fn reusable(&self, source: &Digest, paths: &[FilePath]) -> Result<Option<Vec<ExtractedFile>>, Error> {
        // A record that can't be read is none: everything is made again.
        let Some(record) = self.record()? else { return Ok(None) };
        let of_these = record.files.iter().map(|file| file.path.as_str()).eq(paths.iter().map(FilePath::as_str));
        if record.source != source.as_str() || !of_these {
            return Ok(None);
        }
        for (path, file) in paths.iter().zip(&record.files) {
            if !still_is(&self.0.join(path.file_name()), file)? {
                return Ok(None);
            }
        }
        Ok(Some(record.files))
    }

    fn record(&self) -> Result<Option<Record>, Error> {
        let path = self.0.join(RECORD);
        let mut text = Vec::new();
        match File::open(&path).and_then(|file| file.take(RECORD_LIMIT).read_to_end(&mut text)) {
            Ok(_) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::store("reading", &path, &error)),
        }
    }

    /// Removes what was not finished, and what has a name that is asked for: the record first, for without it nothing is believed.
    pub(super) fn clear(&self, paths: &[FilePath]) -> Result<(), Error> {
        remove(&self.0.join(RECORD))?;
        for path in paths {
            remove(&self.0.join(path.file_name()))?;
        }
        let (prefix, suffix) = UNFINISHED;
        let wrong = |error: io::Error| Error::store("reading", self.0, &error);
        for entry in fs::read_dir(self.0).map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let is_unfinished = |name: &str| name.starts_with(prefix) && name.ends_with(suffix);
            if entry.file_name().to_str().is_some_and(is_unfinished) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }

    /// The files get their names, and then the record says so.
    pub(super) fn keep(
        &self,
        source: &Digest,
        found: Vec<(Partial, ExtractedFile)>,
    ) -> Result<Vec<ExtractedFile>, Error> {
        let mut files = Vec::new();
        for (partial, file) in found {
            partial.keep(self.0)?;
            files.push(file);
        }
        self.sync()?;
        let record = Record { source: source.to_string(), files };
        let text = serde_json::to_vec(&record)
            .map_err(|error| Error::store("writing", &self.0.join(RECORD), &io::Error::other(error)))?;
        let mut partial = self.unfinished(RECORD)?;
        partial.write(&text)?;
        partial.keep(self.0)?;
        self.sync()?;
        Ok(record.files)
    }

    fn sync(&self) -> Result<(), Error> {
        File::open(self.0).and_then(|folder| folder.sync_all()).map_err(|error| Error::store("writing", self.0, &error))
    }
}

fn still_is(path: &Path, file: &ExtractedFile) -> Result<bool, Error> {
    let wrong = |error: io::Error| Error::store("reading", path, &error);
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() && found.len() == file.size => {}
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(wrong(error)),
    }
    let mut opened = File::open(path).map_err(wrong)?;
    let (mut hashing, mut buffer) = (Hashing::default(), vec![0; BUFFER]);
    loop {
        match opened.read(&mut buffer).map_err(wrong)? {
            0 => return Ok(hashing.check(&file.digest).is_ok()),
            read => hashing.update(buffer.get(..read).unwrap_or_default()),
        }
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::store("removing", path, &error)),
    }
}
