//! A stream that comes in pieces, read as one.

use std::io::{self, Read};

/// Reads what a function gives piece by piece, such as the receiving end of a bounded channel that somebody asynchronous fills.
///
/// A function that gives nothing more ends the stream. That may be too early, if whoever filled the channel is gone: whoever reads must know
/// the length, as [`super::extract`] does.
pub struct Pieces<F, P> {
    next: F,
    piece: Option<P>,
    used: usize,
}

impl<F: FnMut() -> Option<io::Result<P>>, P: AsRef<[u8]>> Pieces<F, P> {
    /// From a function that blocks until there is another piece.
    pub fn new(next: F) -> Self {
        Self { next, piece: None, used: 0 }
    }
}

impl<F: FnMut() -> Option<io::Result<P>>, P: AsRef<[u8]>> Read for Pieces<F, P> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut rest = self.piece.as_ref().and_then(|piece| piece.as_ref().get(self.used..)).unwrap_or_default();
            if !rest.is_empty() || into.is_empty() {
                let read = rest.read(into)?;
                self.used += read;
                return Ok(read);
            }
            // An empty piece is no end.
            match (self.next)().transpose()? {
                Some(piece) => (self.piece, self.used) = (Some(piece), 0),
                None => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_read_as_one_stream() {
        let mut pieces = [&b"wind"[..], b"", b"l", b"ass"].into_iter().map(Ok);
        let mut text = String::new();
        Pieces::new(|| pieces.next()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "windlass");
    }

    #[test]
    fn a_broken_stream_says_so() {
        let mut pieces = [Ok(b"wind"), Err(io::Error::other("reset"))].into_iter();
        let error = Pieces::new(|| pieces.next()).read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "reset");
    }
}
