//! Zstandard of several frames, as one stream.
//!
//! The library reads one frame, and leaves comparing its checksum to us. Layers made to be fetched in part have many frames, and skippable ones
//! between them.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::{
    BlockDecodingStrategy, FrameDecoder,
    errors::{FrameDecoderError, ReadFrameHeaderError},
};

/// What a frame may look back: 8 MiB is what every decoder must support, and more than the levels up to 19 use.
const WINDOW: u64 = 8 << 20;

/// The frames of a stream, one after the other.
pub(super) struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
    /// There was a frame: nothing at all is no Zstandard.
    any: bool,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW);
        Self { source, decoder, in_frame: false, any: false }
    }

    /// Goes to the next frame with bytes in it; false at the end.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    (self.in_frame, self.any) = (true, true);
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let skipped = io::copy(&mut self.source.by_ref().take(length.into()), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        if self.any { Ok(false) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn check(&self) -> io::Result<()> {
        match self.decoder.get_checksum_from_data() {
            Some(written) if self.decoder.get_calculated_checksum() != Some(written) => {
                Err(io::Error::other("a frame's checksum is wrong"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame && !self.begin()? {
                return Ok(0);
            }
            // One block at a time: what is decoded and not taken yet is held in memory.
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(io::Error::other)?;
            }
            let read = self.decoder.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            self.check()?;
            self.in_frame = false;
        }
    }
}
