//! Putting an object into a bucket, with the signature that S3 asks for (version 4, in headers).

use std::{fmt::Write, path::Path};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use http::{HeaderValue, Method, Request, Uri, header};
use http_body_util::StreamBody;
use hyper::body::Frame;
use jiff::Timestamp;
use ring::{digest, hmac};
use tokio::{fs::File, io::AsyncReadExt, net::lookup_host};
use windlass_systems::{Network, transport::Peer};

use crate::{
    error::{Class, Error},
    measured::hex,
};

/// The most that one request may carry.
const LIMIT: u64 = 5 * 1024 * 1024 * 1024;
/// How much of a file is read at once.
const PIECE: usize = 256 * 1024;

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
}

impl Bucket {
    /// Sends a file whose length and checksum are known. An object that is there already is left alone.
    pub async fn put(&self, path: &Path, file: &str, bytes: u64, sha256: &[u8; 32]) -> Result<String, Error> {
        if bytes > LIMIT {
            let why = format!(
                "the snapshot has {bytes} bytes, and a bucket takes no more than {LIMIT} at once; use a volume"
            );
            return Err(Error::new(Class::Store, why));
        }
        let object = if self.prefix.is_empty() { file.to_owned() } else { format!("{}/{file}", self.prefix) };
        let place = format!("s3://{}/{object}", self.name);
        let unstored = |why: String| Error::new(Class::Store, format!("{place} was not written: {why}"));
        let peer = self.peer().await?;
        let opened = File::open(path).await.map_err(|error| unstored(error.to_string()))?;
        let pieces = stream::try_unfold(opened, async |mut file| {
            let mut piece = vec![0; PIECE];
            let read = file.read(&mut piece).await?;
            piece.truncate(read);
            Ok::<_, std::io::Error>((read > 0).then(|| (Bytes::from(piece), file)))
        });
        let body = StreamBody::new(pieces.map_ok(Frame::data).boxed());
        let request = self.request(&format!("/{}/{object}", self.name), bytes, &hex(sha256), Timestamp::now());
        let request = request.map_err(|error| unstored(error.to_string()))?.map(|()| body);
        let answer = self.network.upload(&peer, request).await.map_err(|error| unstored(error.to_string()))?;
        match answer.status().as_u16() {
            200..300 => Ok(place),
            409 | 412 => Err(unstored("there is an object of that name already; it is left alone".into())),
            code @ (401 | 403) => {
                let why = format!(
                    "{place} was not written: {code} {}; check the key and what it allows",
                    told(answer.body())
                );
                Err(Error::new(Class::Denied, why))
            }
            code => Err(unstored(format!("{code} {}", told(answer.body())))),
        }
    }

    async fn peer(&self) -> Result<Peer, Error> {
        let nowhere = |why: String| Error::new(Class::Store, format!("{} has no address: {why}", self.host));
        let mut found =
            lookup_host((self.host.as_str(), self.port)).await.map_err(|error| nowhere(error.to_string()))?;
        let address = found.next().ok_or_else(|| nowhere("nobody knows it".into()))?.ip();
        Ok(Peer { pod: self.host.clone(), address, port: self.port, server_name: self.host.clone(), tls: self.tls })
    }

    /// The host as the request names it; a port that goes without saying is not said.
    fn authority(&self) -> String {
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    fn request(&self, path: &str, bytes: u64, sha256: &str, now: Timestamp) -> Result<Request<()>, http::Error> {
        let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
        let authority = self.authority();
        // In the order of their names, as they are signed.
        let signed = [
            ("host", authority.as_str()),
            ("if-none-match", "*"),
            ("x-amz-content-sha256", sha256),
            ("x-amz-date", time.as_str()),
        ];
        let authorization = authorization(&self.key, &self.region, "PUT", path, &signed, sha256, &time);
        let mut authorization = HeaderValue::try_from(authorization)?;
        authorization.set_sensitive(true);
        let mut request = Request::builder().method(Method::PUT).uri(Uri::try_from(path)?);
        for (name, value) in signed {
            request = request.header(name, value);
        }
        request.header(header::AUTHORIZATION, authorization).header(header::CONTENT_LENGTH, bytes).body(())
    }
}

/// What the service says of a refusal, cut.
fn told(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let between = |from: &str, to: &str| Some(text.split_once(from)?.1.split_once(to)?.0.to_owned());
    let code = between("<Code>", "</Code>").unwrap_or_default();
    code.chars().filter(char::is_ascii_alphanumeric).take(60).collect()
}

/// The value of `Authorization`. The path and the headers (lower case, in order) are taken as they are sent.
fn authorization(
    key: &Key,
    region: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    sha256: &str,
    time: &str,
) -> String {
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let mut canonical = format!("{method}\n{path}\n\n");
    for (name, value) in headers {
        let _ = writeln!(canonical, "{name}:{value}");
    }
    let _ = write!(canonical, "\n{names}\n{sha256}");
    let day = time.get(..8).unwrap_or_default();
    let scope = format!("{day}/{region}/s3/aws4_request");
    let hashed = digest::digest(&digest::SHA256, canonical.as_bytes());
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(hashed.as_ref()));
    let sign = |key: &[u8], text: &str| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes());
    let mut derived = sign(format!("AWS4{}", key.secret).as_bytes(), day);
    for part in [region, "s3", "aws4_request"] {
        derived = sign(derived.as_ref(), part);
    }
    let signature = hex(sign(derived.as_ref(), &text).as_ref());
    format!("AWS4-HMAC-SHA256 Credential={}/{scope},SignedHeaders={names},Signature={signature}", key.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of S3's own documentation for a PUT.
    #[test]
    fn a_signature_is_the_documented_one() {
        let key = Key { id: "AKIAIOSFODNN7EXAMPLE".into(), secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into() };
        let sha256 = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
        let headers = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            ("host", "examplebucket.s3.amazonaws.com"),
            ("x-amz-content-sha256", sha256),
            ("x-amz-date", "20130524T000000Z"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ];
        let value = authorization(&key, "us-east-1", "PUT", "/test%24file.text", &headers, sha256, "20130524T000000Z");
        assert!(
            value.ends_with("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
            "{value}"
        );
        assert!(!value.contains(&key.secret));
    }

    #[test]
    fn a_refusal_is_told_by_its_code() {
        assert_eq!(told(b"<Error><Code>AccessDenied</Code><Message>secret?</Message></Error>"), "AccessDenied");
        assert_eq!(told(b"not XML at all"), "");
    }
}
