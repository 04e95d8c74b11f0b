//! Putting an object into a bucket: whole where it is small, in parts where it is not. What is asked of S3, and how it is signed, is
//! rusty-s3's; what is sent, and what is made of the answers, is here.
//!
//! An object that is there already is left alone, and of an upload that fails nothing is left behind, as far as the service lets us.

use std::{path::Path, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::Full;
use md5::{Digest, Md5};
use rusty_s3::{
    Credentials, S3Action, UrlStyle,
    actions::{CompleteMultipartUploadResponse, CreateMultipartUpload},
};
use tokio::{fs::File, io::AsyncReadExt, net::lookup_host};
use windlass_systems::{Network, transport::Peer};

use crate::{
    error::{Class, Error},
    measured::hex,
};

/// As much as one request carries, where that is enough for all of it; S3 takes no part but the last below 5 MiB.
pub const PART: u64 = 16 * 1024 * 1024;
/// The most parts that S3 takes.
const PARTS: u64 = 10_000;
/// How long a signature is good for: one request, however slow.
const SIGNED_FOR: Duration = Duration::from_hours(1);
/// How often a request is made that the service says it has no time for, or leaves without an answer.
const TRIES: u32 = 4;

/// The two halves of a key. It has no `Debug`: the second must not reach a log.
pub struct Key {
    /// Who.
    pub id: String,
    /// The proof.
    pub secret: String,
}

/// A bucket, and how to get there.
pub struct Bucket {
    /// How it is reached, and whom it trusts.
    pub network: Network,
    /// Whether it talks TLS.
    pub tls: bool,
    /// The service's host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The bucket's name.
    pub name: String,
    /// What names of objects begin with.
    pub prefix: String,
    /// The region that requests are signed for.
    pub region: String,
    /// Who puts.
    pub key: Key,
    /// How much one request carries: [`PART`].
    pub part: u64,
}

impl Bucket {
    /// Sends a file whose length and checksum are known. An object that is there already is left alone.
    pub async fn put(&self, path: &Path, file: &str, bytes: u64, sha256: &[u8; 32]) -> Result<String, Error> {
        let object = if self.prefix.is_empty() { file.to_owned() } else { format!("{}/{file}", self.prefix) };
        let place = format!("s3://{}/{object}", self.name);
        let unstored = |why: String| Error::new(Class::Store, format!("{place} was not written: {why}"));
        let service = self.service().map_err(unstored)?;
        let credentials = Credentials::new(self.key.id.as_str(), self.key.secret.as_str());
        let peer = self.peer().await?;
        let file = File::open(path).await.map_err(|error| unstored(error.to_string()))?;
        let upload = Upload { network: &self.network, service, credentials, peer, object, place: place.clone() };
        let part = self.part.max(bytes.div_ceil(PARTS));
        if bytes <= part {
            upload.whole(file, bytes, sha256).await?;
        } else {
            upload.in_parts(file, bytes, part, sha256).await?;
        }
        Ok(place)
    }

    fn service(&self) -> Result<rusty_s3::Bucket, String> {
        let scheme = if self.tls { "https" } else { "http" };
        let endpoint = format!("{scheme}://{}:{}", self.host, self.port).parse().map_err(|_| "it has no address")?;
        rusty_s3::Bucket::new(endpoint, UrlStyle::Path, self.name.clone(), self.region.clone())
            .map_err(|error| error.to_string())
    }

    async fn peer(&self) -> Result<Peer, Error> {
        let nowhere = |why: String| Error::new(Class::Store, format!("{} has no address: {why}", self.host));
        let mut found =
            lookup_host((self.host.as_str(), self.port)).await.map_err(|error| nowhere(error.to_string()))?;
        let address = found.next().ok_or_else(|| nowhere("nobody knows it".into()))?.ip();
        Ok(Peer { pod: self.host.clone(), address, port: self.port, server_name: self.host.clone(), tls: self.tls })
    }
}

/// Whether a request is made again that was left without an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unanswered {
    /// It does no more than the first one did.
    Again,
    /// It may have been done, and would find its own object there.
    GiveUp,
}

type Headers<'a> = &'a [(&'static str, &'a str)];

/// One object on its way.
struct Upload<'a> {
    network: &'a Network,
    service: rusty_s3::Bucket,
    credentials: Credentials,
    peer: Peer,
    object: String,
    /// What people call it.
    place: String,
}

impl Upload<'_> {
    fn unstored(&self, why: &str) -> Error {
        Error::new(Class::Store, format!("{} was not written: {why}", self.place))
    }

    async fn whole(&self, mut file: File, bytes: u64, sha256: &[u8; 32]) -> Result<(), Error> {
        let body = self.read(&mut file, bytes).await?;
        let (md5, sha256) = (md5(&body), hex(sha256));
        let headers = [("content-md5", md5.as_str()), ("if-none-match", "*"), ("x-amz-meta-sha256", &sha256)];
        let put = || self.service.put_object(Some(&self.credentials), &self.object);
        self.send(put, &headers, body, Unanswered::GiveUp).await.map(drop)
    }

    async fn in_parts(&self, file: File, bytes: u64, part: u64, sha256: &[u8; 32]) -> Result<(), Error> {
        let sha256 = hex(sha256);
        let create = || self.service.create_multipart_upload(Some(&self.credentials), &self.object);
        let headers = [("x-amz-meta-sha256", sha256.as_str())];
        let answer = self.send(create, &headers, Bytes::new(), Unanswered::Again).await?;
        let begun = CreateMultipartUpload::parse_response(&String::from_utf8_lossy(answer.body()));
        let begun = begun.map_err(|_| self.unstored("the service does not say how to send it in parts"))?;
        let id = begun.upload_id();
        let sent = self.send_parts(file, bytes, part, id).await;
        if sent.is_err() {
            // Parts cost money until somebody says that they are not needed. What failed is said, whether this works or not.
            let abort = || self.service.abort_multipart_upload(Some(&self.credentials), &self.object, id);
            let _unaborted = self.send(abort, &[], Bytes::new(), Unanswered::Again).await;
        }
        sent
    }

    async fn send_parts(&self, mut file: File, bytes: u64, part: u64, id: &str) -> Result<(), Error> {
        let (mut etags, mut left) = (Vec::new(), bytes);
        while left > 0 {
            let body = self.read(&mut file, left.min(part)).await?;
            left -= left.min(part);
            let number = u16::try_from(etags.len() + 1).map_err(|_| self.unstored("it has too many parts"))?;
            let md5 = md5(&body);
            let put = || self.service.upload_part(Some(&self.credentials), &self.object, number, id);
            let answer = self.send(put, &[("content-md5", &md5)], body, Unanswered::Again).await?;
            let etag = answer.headers().get(header::ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
            etags.push(etag.ok_or_else(|| self.unstored("the service does not say what it calls a part"))?);
        }
        let tags = || etags.iter().map(String::as_str);
        let complete = || self.service.complete_multipart_upload(Some(&self.credentials), &self.object, id, tags());
        let body = Bytes::from(complete().body());
        let answer = self.send(complete, &[("if-none-match", "*")], body, Unanswered::GiveUp).await?;
        // It can say that all is well before it knows.
        let text = String::from_utf8_lossy(answer.body());
        CompleteMultipartUploadResponse::parse(&text).map(drop).map_err(|_| self.unstored(&told(answer.body())))
    }

    async fn read(&self, file: &mut File, bytes: u64) -> Result<Bytes, Error> {
        let length = usize::try_from(bytes).map_err(|_| self.unstored("it is too large"))?;
        let mut body = vec![0; length];
        file.read_exact(&mut body).await.map_err(|error| self.unstored(&error.to_string()))?;
        Ok(body.into())
    }

    /// Sends a request, several times where that may help; its answer, if it is a good one.
    async fn send<'a, A: S3Action<'a>>(
        &self,
        action: impl Fn() -> A,
        headers: Headers<'_>,
        body: Bytes,
        unanswered: Unanswered,
    ) -> Result<Response<Bytes>, Error> {
        let mut pause = Duration::from_secs(1);
        for left in (0..TRIES).rev() {
            let request = self.request(action(), headers, body.clone())?;
            match self.network.upload(&self.peer, request).await {
                Ok(answer) if answer.status().is_success() => return Ok(answer),
                Ok(answer) if left == 0 || !is_busy(&answer) => return Err(self.refused(&answer)),
                Err(error) if left == 0 || unanswered == Unanswered::GiveUp => {
                    return Err(self.unstored(&error.to_string()));
                }
                Ok(_) | Err(_) => {}
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Err(self.unstored("the service has no time for it"))
    }

    fn request<'a, A: S3Action<'a>>(
        &self,
        mut action: A,
        headers: Headers<'_>,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, Error> {
        for (name, value) in headers {
            action.headers_mut().insert(*name, (*value).to_owned());
        }
        let url = action.sign(SIGNED_FOR);
        let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        // The host as it was signed: a port that goes without saying is not said.
        let host = url
            .port()
            .map_or_else(|| self.peer.server_name.clone(), |port| format!("{}:{port}", self.peer.server_name));
        let mut request = Request::builder().method(A::METHOD.to_str()).uri(path).header(header::HOST, host);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Full::new(body)).map_err(|error| self.unstored(&error.to_string()))
    }

    fn refused(&self, answer: &Response<Bytes>) -> Error {
        let (code, why) = (answer.status().as_u16(), told(answer.body()));
        match code {
            409 | 412 => self.unstored("there is an object of that name already; it is left alone"),
            401 | 403 => {
                let why = format!("{} was not written: {code} {why}; check the key and what it allows", self.place);
                Error::new(Class::Denied, why)
            }
            code => self.unstored(&format!("{code} {why}")),
        }
    }
}

/// It says that another time would do.
fn is_busy(answer: &Response<Bytes>) -> bool {
    matches!(answer.status().as_u16(), 429 | 500 | 502 | 503 | 504)
}

/// What S3 compares with what arrived. It guards against faults, not against people: who may send, the signature says.
fn md5(body: &[u8]) -> String {
    BASE64_STANDARD.encode(Md5::digest(body))
}

/// What the service says of a refusal, cut.
fn told(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let between = |from: &str, to: &str| Some(text.split_once(from)?.1.split_once(to)?.0.to_owned());
    let code = between("<Code>", "</Code>").unwrap_or_default();
    code.chars().filter(char::is_ascii_alphanumeric).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_by_its_code() {
        assert_eq!(told(b"<Error><Code>AccessDenied</Code><Message>secret?</Message></Error>"), "AccessDenied");
        assert_eq!(told(b"not XML at all"), "");
    }
}
