//! A writer that counts and hashes what goes through it.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use ring::digest::{self, SHA256};
use tokio::io::AsyncWrite;

/// What was written so far.
pub struct Measured<W> {
    inner: W,
    digest: digest::Context,
    bytes: u64,
}

impl<W> Measured<W> {
    pub fn new(inner: W) -> Self {
        Self { inner, digest: digest::Context::new(&SHA256), bytes: 0 }
    }

    /// The writer, how many bytes went through, and their checksum.
    pub fn finish(self) -> (W, u64, [u8; 32]) {
        let mut sha256 = [0; 32];
        sha256.copy_from_slice(self.digest.finish().as_ref());
        (self.inner, self.bytes, sha256)
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Measured<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = std::task::ready!(Pin::new(&mut self.inner).poll_write(cx, bytes))?;
        self.digest.update(bytes.get(..written).unwrap_or_default());
        self.bytes += written as u64;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// A checksum in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
