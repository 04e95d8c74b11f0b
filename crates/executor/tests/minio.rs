//! A real S3 server, on loopback: an object that is sent whole and one that is sent in parts arrive as they were, and what is there is left
//! alone.
//!
//!     (cd e2e/tools/minio && CGO_ENABLED=0 go build -o /tmp/minio tool)
//!     WINDLASS_MINIO=/tmp/minio cargo test -p windlass-executor --test minio -- --ignored

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that can't go on has failed")]

use std::{
    net::{IpAddr, Ipv4Addr},
    process::{Child, Command, Stdio},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use ring::digest::{SHA256, digest};
use rusty_s3::{Credentials, S3Action, UrlStyle};
use tempfile::TempDir;
use windlass_executor::{
    Class,
    s3::{Bucket, Key},
};
use windlass_systems::{Network, transport::Peer};

const PORT: u16 = 26_700;
const USER: &str = "windlass";
const PASSWORD: &str = "windlass-on-loopback";

/// One server; gone with the test.
struct Minio {
    _data: TempDir,
    child: Child,
}

impl Minio {
    async fn start() -> Self {
        let program = std::env::var("WINDLASS_MINIO").expect("WINDLASS_MINIO says where minio is");
        let data = tempfile::tempdir().unwrap();
        let child = Command::new(program)
            .args(["server", "--quiet", "--address", &format!("127.0.0.1:{PORT}")])
            .arg(data.path())
            .env("MINIO_ROOT_USER", USER)
            .env("MINIO_ROOT_PASSWORD", PASSWORD)
            .env("MINIO_BROWSER", "off")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let this = Self { _data: data, child };
        let (service, credentials) = (service(), Credentials::new(USER, PASSWORD));
        for _ in 0..600 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            match ask(service.create_bucket(&credentials)).await {
                Ok(answer) if answer.status().is_success() => return this,
                Ok(_) | Err(_) => {}
            }
        }
        panic!("minio does not come up");
    }
}

impl Drop for Minio {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn service() -> rusty_s3::Bucket {
    let endpoint = format!("http://127.0.0.1:{PORT}").parse().unwrap();
    rusty_s3::Bucket::new(endpoint, UrlStyle::Path, "backups", "us-east-1").unwrap()
}

async fn ask<'a, A: S3Action<'a>>(action: A) -> std::io::Result<Response<Bytes>> {
    let url = action.sign(Duration::from_mins(1));
    let request = Request::builder()
        .method(A::METHOD.to_str())
        .uri(format!("{}?{}", url.path(), url.query().unwrap_or_default()))
        .body(Full::new(Bytes::new()))
        .unwrap();
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let peer = Peer { pod: "minio".into(), address, port: PORT, server_name: "127.0.0.1".into(), tls: false };
    Network::plain().upload(&peer, request).await
}

fn bucket(secret: &str) -> Bucket {
    Bucket {
        network: Network::plain(),
        tls: false,
        host: "127.0.0.1".into(),
        port: PORT,
        name: "backups".into(),
        prefix: "nightly/etcd".into(),
        region: "us-east-1".into(),
        key: Key { id: USER.into(), secret: secret.into() },
        // The least that S3 takes.
        part: 5 * 1024 * 1024,
    }
}

async fn put(bucket: &Bucket, name: &str, content: &[u8]) -> Result<String, windlass_executor::Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("content");
    std::fs::write(&path, content).unwrap();
    let sha256: [u8; 32] = digest(&SHA256, content).as_ref().try_into().unwrap();
    bucket.put(&path, name, u64::try_from(content.len()).unwrap(), &sha256).await
}

#[tokio::test]
#[ignore = "needs a program of MinIO"]
async fn objects_arrive_as_they_were() {
    let _minio = Minio::start().await;
    let (bucket, credentials, service) = (bucket(PASSWORD), Credentials::new(USER, PASSWORD), service());
    for (name, length) in
        [("none.db", 0), ("small.db", 100_000), ("parts.db", 12_000_000), ("even.db", 10 * 1024 * 1024)]
    {
        let content: Vec<u8> =
            (0..length).map(|number: u32| number.to_le_bytes()[usize::from(number.is_multiple_of(7))]).collect();
        assert_eq!(put(&bucket, name, &content).await.unwrap(), format!("s3://backups/nightly/etcd/{name}"));
        let object = format!("nightly/etcd/{name}");
        let head = ask(service.head_object(Some(&credentials), &object)).await.unwrap();
        assert_eq!(head.headers()["content-length"], content.len().to_string().as_str());
        assert!(head.headers().contains_key("x-amz-meta-sha256"), "{head:?}");
        let again = put(&bucket, name, b"another").await.unwrap_err();
        assert!(again.message.contains("already"), "{again}");
    }
    let got = ask(service.get_object(Some(&credentials), "nightly/etcd/small.db")).await.unwrap();
    assert_eq!(got.body().len(), 100_000);
    let error = put(&self::bucket("another-password"), "a.db", b"content").await.unwrap_err();
    assert!(error.class == Class::Denied && error.message.contains("SignatureDoesNotMatch"), "{error}");
}
