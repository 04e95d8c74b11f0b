//! A snapshot of etcd's data, streamed from one member and checked on the way.
//!
//! The gateway writes one JSON object per line: the pieces of the database, each with how many bytes are still to come, and after
//! the last of them the SHA-256 of all. What is written is what `etcdutl snapshot restore` reads: the database, and the checksum
//! behind it.

use std::{io, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use ring::digest::{Context, SHA256};
use serde::Deserialize;
use tokio::{io::AsyncWrite, time::timeout};

pub use crate::snapshot::SnapshotError;
use crate::{
    gateway::{self, wide},
    secret::Secret,
    snapshot::{flush, write_all},
    transport::{ANSWER_LIMIT, Peer, Streamed, Transport},
};

/// A snapshot that was written whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// How long the database is, without the checksum.
    pub bytes: u64,
    /// The database's checksum, which the server gave and the bytes have.
    pub sha256: [u8; 32],
}

#[derive(Deserialize)]
struct Line {
    result: Option<Piece>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Piece {
    /// Left out where it is zero.
    #[serde(default, deserialize_with = "wide")]
    remaining_bytes: u64,
    #[serde(default)]
    blob: String,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    message: String,
}

/// Streams a snapshot of the member in `peer` into `writer`. `patience` is how long may pass without anything coming.
pub async fn save(
    transport: &dyn Transport,
    peer: &Peer,
    token: Option<&Secret>,
    patience: Duration,
    writer: &mut (dyn AsyncWrite + Send + Unpin),
) -> Result<Snapshot, SnapshotError> {
    let pod = || peer.pod.clone();
    let broken = |source| SnapshotError::Transport { pod: pod(), source };
    let request = gateway::signed(gateway::post("/v3/maintenance/snapshot", "{}"), token);
    let hidden = |text: String| token.map_or_else(|| text.clone(), |token| text.replace(token.reveal(), "(hidden)"));
    let stalled = |_| SnapshotError::Stalled(pod());
    let answer = timeout(patience, transport.stream(peer, request)).await.map_err(stalled)?.map_err(broken)?;
    let code = answer.status();
    let mut lines = Lines { pieces: answer.into_body(), rest: BytesMut::new() };
    let mut taking = Taking { digest: Context::new(&SHA256), bytes: 0, complete: false };
    while let Some(line) = timeout(patience, lines.next()).await.map_err(stalled)?.map_err(broken)? {
        if !code.is_success() {
            let text = hidden(String::from_utf8_lossy(&line).into_owned()).chars().take(200).collect();
            return Err(SnapshotError::Refused { pod: pod(), code: code.as_u16(), text });
        }
        let damaged = |why| SnapshotError::Damaged { pod: pod(), why };
        let line: Line = serde_json::from_slice(&line).map_err(|_| damaged("a line can't be read"))?;
        if let Some(Refusal { message }) = line.error {
            return Err(SnapshotError::Refused { pod: pod(), code: code.as_u16(), text: hidden(message) });
        }
        let piece = line.result.ok_or_else(|| damaged("a line says nothing"))?;
        let blob = STANDARD.decode(piece.blob).map_err(|_| damaged("a piece is not base64"))?;
        write_all(writer, &blob).await?;
        if let Some(snapshot) = taking.take(&blob, piece.remaining_bytes).map_err(damaged)? {
            flush(writer).await?;
            return Ok(snapshot);
        }
    }
    Err(SnapshotError::Damaged { pod: pod(), why: "it ended before its checksum" })
}

/// How far it has come.
struct Taking {
    digest: Context,
    bytes: u64,
    /// The last piece of the database was there; what comes next is the checksum.
    complete: bool,
}

impl Taking {
    fn take(&mut self, blob: &[u8], remaining: u64) -> Result<Option<Snapshot>, &'static str> {
        if !self.complete {
            self.digest.update(blob);
            self.bytes += blob.len() as u64;
            self.complete = remaining == 0;
            return Ok(None);
        }
        let sha256: [u8; 32] = blob.try_into().map_err(|_| "its checksum is none")?;
        if self.digest.clone().finish().as_ref() != sha256 {
            return Err("its checksum is not that of its bytes");
        }
        Ok(Some(Snapshot { bytes: self.bytes, sha256 }))
    }
}

/// The lines of an answer that comes in pieces.
struct Lines {
    pieces: Streamed,
    rest: BytesMut,
}

impl Lines {
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let mut seen = 0;
        loop {
            if let Some(end) = self.rest.iter().skip(seen).position(|byte| *byte == b'\n') {
                let line = self.rest.split_to(seen + end + 1).freeze();
                return Ok(Some(line));
            }
            seen = self.rest.len();
            if seen > ANSWER_LIMIT {
                return Err(io::Error::other("a line of it is longer than any that is known"));
            }
            match self.pieces.next().await {
                Some(piece) => self.rest.extend_from_slice(&piece?),
                None if self.rest.is_empty() => return Ok(None),
                None => return Ok(Some(self.rest.split().freeze())),
            }
        }
    }
}
