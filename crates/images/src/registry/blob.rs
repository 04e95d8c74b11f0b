//! Blobs: hashed while they come, cut off at the size that was promised, and taken up again where a connection broke.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use http::{StatusCode, header};
use windlass_plan::bug::{self, Bug};
use windlass_systems::Streamed;

use crate::{
    Digest, Hashing, Location,
    document::{Descriptor, Unreadable},
    registry::{
        Registry,
        error::{Asked, Class, Failure, RegistryError},
        exchange::{Answer, Question},
    },
};

/// How often one blob is taken up again.
const RESUMES: u32 = 5;
/// How long to wait before the first time; twice as long before each further one.
const PAUSE: Duration = Duration::from_secs(1);

/// The pieces of a blob.
///
/// The last piece comes only when all of them together are what the digest names: who has not seen the end has nothing that counts.
pub type Blob = BoxStream<'static, Result<Bytes, RegistryError>>;

impl Registry {
    /// The blob of this digest and size.
    pub fn blob(&self, location: &Location, digest: &Digest, size: u64) -> Blob {
        let asked = Asked {
            registry: location.registry().to_owned(),
            what: format!("the blob {digest} of {}", location.repository()),
            at: None,
        };
        let reading = Reading {
            registry: self.clone(),
            location: location.clone(),
            digest: digest.clone(),
            size,
            asked,
            came: 0,
            hashing: Hashing::default(),
            body: None,
            resumes: 0,
            is_done: false,
        };
        stream::try_unfold(reading, async |mut reading| {
            let piece = reading.next().await?;
            Ok(piece.map(|piece| (piece, reading)))
        })
        .boxed()
    }

    /// A whole blob, where it is no longer than `limit`.
    pub async fn bytes(
        &self,
        location: &Location,
        descriptor: &Descriptor,
        limit: usize,
    ) -> Result<Bytes, RegistryError> {
        let Descriptor { digest, size, .. } = descriptor;
        if usize::try_from(*size).map_or(true, |size| size > limit) {
            let what = format!("the blob {digest} of {}", location.repository());
            let asked = Asked { registry: location.registry().to_owned(), what, at: None };
            return Err(asked.failed(Unreadable::TooLong { limit }));
        }
        let append = async |mut whole: BytesMut, piece: Bytes| {
            whole.extend_from_slice(&piece);
            Ok(whole)
        };
        Ok(self.blob(location, digest, *size).try_fold(BytesMut::new(), append).await?.freeze())
    }
}

/// A body on its way, and how much of it the reader has already.
struct Body {
    pieces: Streamed,
    skip: u64,
}

struct Reading {
    registry: Registry,
    location: Location,
    digest: Digest,
    size: u64,
    asked: Asked,
    /// How many bytes came, all of which were hashed and, but for the last piece, handed on.
    came: u64,
    hashing: Hashing,
    body: Option<Body>,
    resumes: u32,
    is_done: bool,
}

impl Reading {
    async fn next(&mut self) -> Result<Option<Bytes>, RegistryError> {
        if self.is_done {
            return Ok(None);
        }
        loop {
            let body = if let Some(body) = &mut self.body {
                body
            } else {
                match self.open().await {
                    Ok(opened) => self.body.insert(opened),
                    // What broke a connection may not be over yet.
                    Err(error) if error.class() == Class::Silent && self.resumes > 0 => {
                        self.resume(error).await?;
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            };
            match self.registry.piece(&mut body.pieces).await {
                Some(Ok(piece)) => {
                    let piece = body.fresh(piece);
                    if piece.is_empty() {
                        continue;
                    }
                    self.take(&piece)?;
                    if self.came < self.size || bug::active(Bug::SizeUnbounded) {
                        return Ok(Some(piece));
                    }
                    self.finish().await?;
                    return Ok(Some(piece));
                }
                Some(Err(failure)) => self.resume(self.asked.failed(failure)).await?,
                None if self.came == self.size => {
                    // Nothing came, and nothing was promised; or the seeded bug has read on.
                    self.check()?;
                    return Ok(None);
                }
                None => return Err(self.asked.failed(Failure::TooShort { size: self.size, came: self.came })),
            }
        }
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), RegistryError> {
        let length = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        self.came = self.came.saturating_add(length);
        if self.came > self.size && !bug::active(Bug::SizeUnbounded) {
            return Err(self.asked.failed(Failure::TooLong { size: self.size }));
        }
        self.hashing.update(piece);
        Ok(())
    }

    /// Everything is there: nothing more must come, and it must be what the digest names.
    async fn finish(&mut self) -> Result<(), RegistryError> {
        if let Some(mut body) = self.body.take() {
            while let Some(Ok(piece)) = self.registry.piece(&mut body.pieces).await {
                if !piece.is_empty() {
                    return Err(self.asked.failed(Failure::TooLong { size: self.size }));
                }
            }
        }
        self.check()
    }

    fn check(&mut self) -> Result<(), RegistryError> {
        self.is_done = true;
        let hashing = std::mem::take(&mut self.hashing);
        hashing.check(&self.digest).map_err(|mismatch| self.asked.failed(mismatch))
    }

    /// Forgets a body that broke, where there are tries left.
    async fn resume(&mut self, error: RegistryError) -> Result<(), RegistryError> {
        self.body = None;
        if self.resumes == RESUMES {
            return Err(error);
        }
        tokio::time::sleep(PAUSE * 2_u32.saturating_pow(self.resumes)).await;
        self.resumes += 1;
        Ok(())
    }

    /// Asks for what is missing.
    async fn open(&mut self) -> Result<Body, RegistryError> {
        let repository = self.location.repository();
        let question = Question {
            location: &self.location,
            what: self.asked.what.clone(),
            path: format!("/v2/{repository}/blobs/{}", self.digest),
            accept: "*/*",
            from: self.came,
        };
        let answer = self.registry.ask(&question).await?;
        let answer = self.registry.success(answer).await?;
        self.asked = answer.asked.clone();
        let begins = self.beginning(&answer)?;
        let missing = self.size.saturating_sub(begins);
        match answer.length() {
            Some(length) if length > missing && !bug::active(Bug::SizeUnbounded) => {
                return Err(self.asked.failed(Failure::TooLong { size: self.size }));
            }
            Some(length) if length < missing => {
                return Err(self.asked.failed(Failure::TooShort { size: self.size, came: begins + length }));
            }
            Some(_) | None => {}
        }
        // The hash is over what was handed on. So where all of it comes again, what the reader has already is passed over, and a registry that
        // sends other bytes the second time is found out in the end.
        Ok(Body { pieces: answer.into_body(), skip: self.came - begins })
    }

    /// Which byte an answer begins with.
    fn beginning(&self, answer: &Answer) -> Result<u64, RegistryError> {
        match answer.status() {
            StatusCode::OK => Ok(0),
            StatusCode::PARTIAL_CONTENT if self.came > 0 => {
                let range = answer.header(header::CONTENT_RANGE).and_then(first_byte);
                match range {
                    Some(first) if first == self.came => Ok(first),
                    Some(_) | None => {
                        Err(self.asked.failed(Failure::Garbled("it is not the range that was asked for")))
                    }
                }
            }
            _ => Err(self.asked.failed(Failure::Garbled("it is neither a whole nor the range that was asked for"))),
        }
    }
}

impl Body {
    /// What of a piece the reader does not have yet.
    fn fresh(&mut self, mut piece: Bytes) -> Bytes {
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(piece.len());
        self.skip -= u64::try_from(skipped).unwrap_or_default();
        piece.split_off(skipped)
    }
}

/// The first byte in `bytes 5-9/10`.
fn first_byte(range: &str) -> Option<u64> {
    range.trim().strip_prefix("bytes ")?.split_once('-')?.0.trim().parse().ok()
}
