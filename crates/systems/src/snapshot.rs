//! What the snapshots of all systems share: why there is none, and how its bytes are written.

use std::{future::poll_fn, io, pin::Pin};

use tokio::io::AsyncWrite;

/// Why there is no snapshot. What was written until then is worth nothing.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The pod could not be asked, or stopped in the middle.
    #[error("the snapshot of {pod} broke off: {source}")]
    Transport {
        /// Who was asked.
        pod: String,
        /// What happened.
        source: io::Error,
    },
    /// The pod refused.
    #[error("{pod} answered {code} to the request for a snapshot: {text}")]
    Refused {
        /// Who was asked.
        pod: String,
        /// The HTTP status; 200 where it failed half way.
        code: u16,
        /// Its words, cut.
        text: String,
    },
    /// Nothing came for so long.
    #[error("the snapshot of {0} stood still")]
    Stalled(String),
    /// What came is no whole snapshot.
    #[error("the snapshot of {pod} is not whole: {why}")]
    Damaged {
        /// Who was asked.
        pod: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It could not be written.
    #[error("the snapshot could not be written: {0}")]
    Write(io::Error),
}

/// Writes all of these bytes.
pub(crate) async fn write_all(
    writer: &mut (dyn AsyncWrite + Send + Unpin),
    mut bytes: &[u8],
) -> Result<(), SnapshotError> {
    while !bytes.is_empty() {
        let written = poll_fn(|cx| Pin::new(&mut *writer).poll_write(cx, bytes)).await.map_err(SnapshotError::Write)?;
        if written == 0 {
            return Err(SnapshotError::Write(io::ErrorKind::WriteZero.into()));
        }
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// Has everything so far written.
pub(crate) async fn flush(writer: &mut (dyn AsyncWrite + Send + Unpin)) -> Result<(), SnapshotError> {
    poll_fn(|cx| Pin::new(&mut *writer).poll_flush(cx)).await.map_err(SnapshotError::Write)
}
