//! Images made by hand: archives with whatever is wrong with them, packed, and read from memory.
#![allow(dead_code, reason = "each suite uses its own part")]

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use flate2::{Compression, write::GzEncoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use windlass_images::{
    Digest,
    contents::{Error, Extracted, FilePath, Layer, Limits, Packing, Refusal, extract},
};

/// An archive in the making.
#[derive(Clone, Default)]
pub struct Tar(pub Vec<u8>);

/// The fields of a header that tests lie about.
#[derive(Clone, Copy)]
pub struct Header<'a> {
    pub name: &'a [u8],
    pub flag: u8,
    pub size: &'a [u8],
    pub magic: &'a [u8],
    pub prefix: &'a [u8],
    pub trailer: &'a [u8],
}

impl Default for Header<'_> {
    fn default() -> Self {
        Self { name: b"", flag: b'0', size: b"0", magic: b"ustar\x0000", prefix: b"", trailer: b"" }
    }
}

impl Header<'_> {
    pub fn block(&self) -> [u8; 512] {
        let mut block = [0; 512];
        let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, self.name);
        put(100, b"0000755\0");
        put(124, self.size);
        put(136, b"14000000000\0");
        put(148, b"        ");
        put(156, &[self.flag]);
        put(257, self.magic);
        put(345, self.prefix);
        put(508, self.trailer);
        let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        block
    }
}

impl Tar {
    /// A header and its bytes, padded.
    pub fn raw(mut self, header: Header<'_>, bytes: &[u8]) -> Self {
        self.0.extend(header.block());
        self.0.extend(bytes);
        self.0.extend(vec![0; bytes.len().next_multiple_of(512) - bytes.len()]);
        self
    }

    pub fn entry(self, name: &str, flag: u8, bytes: &[u8]) -> Self {
        let size = format!("{:011o}", bytes.len());
        self.raw(Header { name: name.as_bytes(), flag, size: size.as_bytes(), ..Header::default() }, bytes)
    }

    pub fn file(self, name: &str, bytes: &[u8]) -> Self {
        self.entry(name, b'0', bytes)
    }

    pub fn folder(self, name: &str) -> Self {
        self.entry(name, b'5', b"")
    }

    /// An extended header with these records, their lengths put in front.
    pub fn pax(self, records: &[(&str, &str)]) -> Self {
        let text: String = records.iter().map(|(key, value)| pax_record(key, value)).collect();
        self.entry("PaxHeaders.0/x", b'x', text.as_bytes())
    }

    /// With the two empty blocks at its end.
    pub fn done(mut self) -> Vec<u8> {
        self.0.extend([0; 1024]);
        self.0
    }
}

pub fn pax_record(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len();
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    format!("{length}{rest}")
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

pub fn packed(packing: Packing, archive: &[u8]) -> Vec<u8> {
    match packing {
        Packing::Plain => archive.to_vec(),
        Packing::Gzip => gzip(archive),
        Packing::Zstd => zstd(archive),
    }
}

/// An image in memory, which counts what is fetched of it.
#[derive(Default)]
pub struct Image {
    pub layers: Vec<Layer>,
    blobs: BTreeMap<String, Vec<u8>>,
    pub fetched: Arc<AtomicU64>,
    pub opened: usize,
}

impl Image {
    /// Of archives, lowest first.
    pub fn of(archives: impl IntoIterator<Item = Vec<u8>>) -> Self {
        archives.into_iter().fold(Self::default(), |image, archive| image.layer(Packing::Plain, &archive))
    }

    pub fn layer(self, packing: Packing, archive: &[u8]) -> Self {
        self.blob(packing, packed(packing, archive), Digest::of(archive))
    }

    pub fn blob(mut self, packing: Packing, blob: Vec<u8>, diff_id: Digest) -> Self {
        let digest = Digest::of(&blob);
        self.layers.push(Layer { packing, digest: digest.clone(), size: blob.len() as u64, diff_id });
        self.blobs.insert(digest.to_string(), blob);
        self
    }

    /// What is sent for a layer, instead of what should be.
    pub fn sends(mut self, layer: usize, blob: Vec<u8>) -> Self {
        self.blobs.insert(self.layers[layer].digest.to_string(), blob);
        self
    }

    pub fn take(&mut self, path: &str, folder: &Path) -> Result<Extracted, Error> {
        self.take_all(&[path], folder, &Limits::default())
    }

    pub fn take_all(&mut self, paths: &[&str], folder: &Path, limits: &Limits) -> Result<Extracted, Error> {
        let paths: Vec<FilePath> = paths.iter().map(|path| path.parse().unwrap()).collect();
        extract(&self.layers, &paths, folder, limits, |layer| {
            self.opened += 1;
            let blob = self.blobs.get(layer.digest.as_str()).cloned().unwrap_or_default();
            let (fetched, limit) = (Arc::clone(&self.fetched), layer.size + 1);
            Ok(Counted { blob, at: 0, fetched, limit })
        })
    }
}

/// Fails the test when it is read past what it is asked for.
struct Counted {
    blob: Vec<u8>,
    at: usize,
    fetched: Arc<AtomicU64>,
    limit: u64,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // In pieces, so that no reader counts on whole buffers.
        let most = into.len().min(4099);
        let read = (&self.blob[self.at..]).read(&mut into[..most])?;
        self.at += read;
        assert!(self.at as u64 <= self.limit, "read past the end of the layer");
        self.fetched.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A new folder, in memory where that can be had: thousands of inputs are unpacked and synced.
pub fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The names in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What a layer was refused for.
pub fn refusal(error: Error) -> Refusal {
    match error {
        Error::Refused { refusal, .. } => refusal,
        error @ (Error::Names
        | Error::Missing { .. }
        | Error::Corrupt { .. }
        | Error::Source { .. }
        | Error::Store { .. }) => panic!("{error}"),
    }
}

/// Shows that a test fails with this bug planted, and passes without.
#[cfg(feature = "seeded-bugs")]
pub fn caught(bug: windlass_plan::bug::Bug, test: impl Fn()) {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    test();
    windlass_plan::bug::plant(Some(bug));
    let result = catch_unwind(AssertUnwindSafe(&test));
    windlass_plan::bug::plant(None);
    assert!(result.is_err(), "{bug:?} is not noticed");
}
