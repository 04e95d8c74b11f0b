//! A snapshot of the data of OpenBao or Vault, streamed from the pod that leads and checked on the way.
//!
//! It is a tar archive in gzip. A server that fails half way ends its answer as if all were well, so the archive itself is looked into:
//! gzip's own checksum must be right, and the file of checksums, which is written last, must be there.

use std::{io, time::Duration};

use flate2::write::GzDecoder;
use futures::StreamExt;
use tokio::{io::AsyncWrite, time::timeout};

use super::{get, to_itself};
use crate::{
    secret::Secret,
    snapshot::{SnapshotError, flush, write_all},
    transport::{Peer, Transport},
};

/// The file that the server writes last, sealed by itself where it can.
const LAST: [&str; 2] = ["SHA256SUMS.sealed", "SHA256SUMS"];
const BLOCK: usize = 512;

/// Streams a snapshot from the pod that leads into `writer`. `patience` is how long may pass without anything coming.
/// A standby of OpenBao since 2.5 does not refuse: it gives what it has applied itself. Whoever calls makes sure that the pod leads, before
/// and after.
pub async fn save(
    transport: &dyn Transport,
    peer: &Peer,
    token: &Secret,
    patience: Duration,
    writer: &mut (dyn AsyncWrite + Send + Unpin),
) -> Result<(), SnapshotError> {
    let pod = || peer.pod.clone();
    let broken = |source| SnapshotError::Transport { pod: pod(), source };
    let stalled = |_| SnapshotError::Stalled(pod());
    let damaged = |why| SnapshotError::Damaged { pod: pod(), why };
    let request = to_itself(get("/v1/sys/storage/raft/snapshot"), token);
    let answer = timeout(patience, transport.stream(peer, request)).await.map_err(stalled)?.map_err(broken)?;
    let code = answer.status().as_u16();
    let mut pieces = answer.into_body();
    let mut archive = GzDecoder::new(Names::default());
    while let Some(piece) = timeout(patience, pieces.next()).await.map_err(stalled)? {
        let piece = piece.map_err(broken)?;
        if !(200..300).contains(&code) {
            let text = String::from_utf8_lossy(&piece).replace(token.reveal(), "(hidden)");
            return Err(SnapshotError::Refused { pod: pod(), code, text: text.trim().chars().take(200).collect() });
        }
        io::Write::write_all(&mut archive, &piece).map_err(|_| damaged("it is not gzip"))?;
        write_all(writer, &piece).await?;
    }
    if !(200..300).contains(&code) {
        return Err(SnapshotError::Refused { pod: pod(), code, text: String::new() });
    }
    let names = archive.finish().map_err(|_| damaged("it ends too early"))?;
    if !names.last {
        return Err(damaged("the checksums that come last are not in it"));
    }
    flush(writer).await
}

/// Walks over a tar archive and keeps nothing but whether its last file is there.
#[derive(Default)]
struct Names {
    /// The part of a header that has come.
    header: Vec<u8>,
    /// How much of a file is still to come.
    skip: u64,
    last: bool,
}

impl Names {
    fn read_header(&mut self) {
        let text = |from: usize, to: usize| {
            let field = self.header.get(from..to).unwrap_or_default();
            String::from_utf8_lossy(field).trim_matches(['\0', ' ']).to_owned()
        };
        let (name, size) = (text(0, 100), text(124, 136));
        let size = u64::from_str_radix(&size, 8).unwrap_or(0);
        self.last |= LAST.iter().any(|last| name.rsplit('/').next() == Some(last)) && size > 0;
        self.skip = size.div_ceil(BLOCK as u64) * BLOCK as u64;
        self.header.clear();
    }
}

impl io::Write for Names {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.skip > 0 {
            let skipped = bytes.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
            self.skip -= skipped as u64;
            return Ok(skipped);
        }
        let taken = bytes.len().min(BLOCK - self.header.len());
        self.header.extend_from_slice(bytes.get(..taken).unwrap_or_default());
        if self.header.len() == BLOCK {
            self.read_header();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
