//! A layer's bytes on their way: counted and hashed as they come, unpacked, and counted and hashed again.

use std::io::{self, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use windlass_plan::bug::{self, Bug};

use super::{
    Layer, Limits, Packing, RATIO_FREE,
    error::{Corruption, Error, Refusal},
    zstd::Frames,
};
use crate::{Digest, Hashing};

/// How much is read at once.
pub(super) const BUFFER: usize = 64 << 10;

/// A layer as it is sent. At most one byte more than it should have is ever read.
pub(super) struct Fetched<S> {
    stream: S,
    hashing: Hashing,
    size: u64,
    count: u64,
    too_long: bool,
    broken: Option<io::Error>,
}

impl<S: Read> Fetched<S> {
    pub(super) fn new(stream: S, size: u64) -> Self {
        Self { stream, hashing: Hashing::default(), size, count: 0, too_long: false, broken: None }
    }

    /// Whether all of it came, and nothing else. What nobody has read yet is read now.
    pub(super) fn finish(mut self, layer: &Layer) -> Result<(), Error> {
        let mut buffer = vec![0; BUFFER];
        while self.broken.is_none() && !self.too_long && matches!(self.read(&mut buffer), Ok(1..)) {}
        if let Some(error) = self.broken {
            return Err(Error::source(layer, &error));
        }
        if bug::active(Bug::LayerNotHashed) {
            return Ok(());
        }
        if self.too_long {
            return Err(Error::corrupt(layer, Corruption::TooLong { size: self.size }));
        }
        if self.count < self.size {
            let why = format!("it ended after {} of {} bytes", self.count, self.size);
            return Err(Error::Source { layer: layer.digest.clone(), why });
        }
        self.hashing
            .check(&layer.digest)
            .map_err(|mismatch| Error::corrupt(layer, Corruption::Digest { found: mismatch.found }))
    }
}

impl<S: Read> Read for Fetched<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.size.saturating_sub(self.count);
        // At its end a byte is asked for that should not come.
        let most = usize::try_from(left.max(1)).unwrap_or(usize::MAX).min(into.len());
        let window = into.get_mut(..most).unwrap_or_default();
        let read = loop {
            match self.stream.read(window) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let told = io::Error::new(error.kind(), error.to_string());
                    self.broken = Some(error);
                    return Err(told);
                }
                Ok(read) => break read.min(most),
            }
        };
        if read > 0 && left == 0 {
            self.too_long = true;
            return Err(io::Error::other("longer than it should be"));
        }
        self.hashing.update(window.get(..read).unwrap_or_default());
        self.count += read as u64;
        Ok(read)
    }
}

/// The archive that a layer is once it is unpacked.
pub(super) struct Unpacked<'a, S> {
    decoder: Decoder<'a, S>,
    hashing: Hashing,
    count: u64,
    limit: u64,
}

enum Decoder<'a, S> {
    Plain(&'a mut Fetched<S>),
    /// Several members are one stream, as everybody reads them (there are layers with a member for each file); whatever follows that is no
    /// member is an error of the decoder's.
    Gzip(Box<MultiGzDecoder<BufReader<&'a mut Fetched<S>>>>),
    Zstd(Box<Frames<BufReader<&'a mut Fetched<S>>>>),
}

impl<'a, S: Read> Unpacked<'a, S> {
    pub(super) fn new(layer: &Layer, fetched: &'a mut Fetched<S>, limits: &Limits) -> Self {
        let limit = layer.size.saturating_mul(limits.ratio).max(RATIO_FREE).min(limits.unpacked);
        let decoder = match layer.packing {
            Packing::Plain => Decoder::Plain(fetched),
            Packing::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER, fetched)))),
            Packing::Zstd => Decoder::Zstd(Box::new(Frames::new(BufReader::with_capacity(BUFFER, fetched)))),
        };
        Self { decoder, hashing: Hashing::default(), count: 0, limit }
    }

    /// The next bytes; none at the end.
    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<usize, Refusal> {
        let (what, read) = match &mut self.decoder {
            Decoder::Plain(fetched) => ("an archive", fetched.read(into)),
            Decoder::Gzip(decoder) => ("gzip", decoder.read(into)),
            Decoder::Zstd(decoder) => ("zstd", decoder.read(into)),
        };
        let read = read.map_err(|error| Refusal::Packing { what, why: error.to_string() })?;
        self.count += read as u64;
        if self.count > self.limit {
            return Err(Refusal::TooManyBytes(self.limit));
        }
        self.hashing.update(into.get(..read).unwrap_or_default());
        Ok(read)
    }

    /// The digest of what was read.
    pub(super) fn finish(self) -> Digest {
        self.hashing.finish()
    }
}
