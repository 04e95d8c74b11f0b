//! Where snapshots go: a folder of a volume, or a bucket. Nothing is ever overwritten, and nothing that is not whole is left behind.

use std::{
    io,
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    fs::{self, File, OpenOptions},
    io::{AsyncWrite, AsyncWriteExt},
};

use crate::{
    error::{Class, Error},
    s3::Bucket,
};

/// A place for snapshots.
pub enum Store {
    /// A folder of a mounted volume.
    Folder {
        /// Where the volume is mounted.
        top: PathBuf,
        /// The folder in it; the top where it is empty.
        folder: String,
        /// What people call the volume.
        volume: String,
    },
    /// A bucket. A snapshot's length must be known before it is sent, so it is put down in `spool` first.
    Bucket {
        /// The bucket.
        bucket: Box<Bucket>,
        /// Where there is room for a snapshot.
        spool: PathBuf,
    },
}

/// A file under a name that nobody takes for a snapshot. It is removed unless it becomes one.
pub struct Partial {
    file: File,
    path: PathBuf,
    done: bool,
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.done {
            // One that can't be removed is still no snapshot by its name.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl AsyncWrite for Partial {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.file).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.file).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.file).poll_shutdown(cx)
    }
}

fn unstored(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(
        Class::Store,
        format!("{what} {} failed: {error}; check the volume's room and its owner", path.display()),
    )
}

impl Store {
    fn folder(&self) -> Result<PathBuf, Error> {
        match self {
            Self::Folder { top, folder, .. } => {
                let inside = |part: &str| !matches!(part, "." | "..") && !part.is_empty();
                if !folder.is_empty() && !folder.split('/').all(inside) {
                    return Err(Error::new(Class::Invalid, format!("{folder} is no folder inside the volume")));
                }
                Ok(top.join(folder))
            }
            Self::Bucket { spool, .. } => Ok(spool.clone()),
        }
    }

    /// A new file to write a snapshot to.
    pub async fn begin(&self, file: &str) -> Result<Partial, Error> {
        if file.is_empty() || file.starts_with('.') || file.contains('/') {
            return Err(Error::new(Class::Invalid, format!("{file} is no name for a snapshot")));
        }
        let folder = self.folder()?;
        fs::create_dir_all(&folder).await.map_err(|error| unstored("making", &folder, &error))?;
        let path = folder.join(format!(".{file}.{}.partial", std::process::id()));
        let mut options = OpenOptions::new();
        let opened = options.write(true).create(true).truncate(true).open(&path).await;
        let opened = opened.map_err(|error| unstored("making", &path, &error))?;
        Ok(Partial { file: opened, path, done: false })
    }

    /// The file is a whole snapshot from now on; where it is, for a person.
    pub async fn finish(
        &self,
        mut partial: Partial,
        file: &str,
        bytes: u64,
        sha256: &[u8; 32],
    ) -> Result<String, Error> {
        partial.file.flush().await.map_err(|error| unstored("writing", &partial.path, &error))?;
        partial.file.sync_all().await.map_err(|error| unstored("writing", &partial.path, &error))?;
        match self {
            Self::Folder { folder, volume, .. } => {
                let parent = self.folder()?;
                let path = parent.join(file);
                // An attempt has a name of its own, so whatever is there is a snapshot that somebody may want.
                if fs::try_exists(&path).await.map_err(|error| unstored("looking at", &path, &error))? {
                    return Err(Error::new(
                        Class::Store,
                        format!("there is a snapshot {file} already; it is left alone"),
                    ));
                }
                fs::rename(&partial.path, &path).await.map_err(|error| unstored("naming", &path, &error))?;
                partial.done = true;
                let synced = async { File::open(&parent).await?.sync_all().await };
                synced.await.map_err(|error: io::Error| unstored("writing", &parent, &error))?;
                let between = if folder.is_empty() { "" } else { "/" };
                Ok(format!("volume {volume}/{folder}{between}{file}"))
            }
            Self::Bucket { bucket, .. } => bucket.put(&partial.path, file, bytes, sha256).await,
        }
    }
}
