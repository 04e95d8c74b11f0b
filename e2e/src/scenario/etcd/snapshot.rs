//! A snapshot before the upgrade: a real Job takes it from real etcd and sends it to a real S3 server beside it (D2).

use std::{net::IpAddr, time::Duration};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use windlass_systems::{Network, transport::Peer};

use super::tls;
use crate::{
    applications, say,
    scenario::{operator::Installation, trial::Trial, wait},
};

/// The pod, its Service and the Secret with its certificate.
const NAME: &str = "minio";
const PORT: u16 = 9000;
/// The Secret with the key.
const KEY: &str = "snapshots-key";
const BUCKET: &str = "snapshots";
const USER: &str = "windlass";
const PASSWORD: &str = "windlass-in-the-cluster";

/// With a wrong key nothing begins and a person is called; with the right one the snapshot is stored, and then the upgrade begins.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    let image = applications::load_minio(&trial.site.cluster)?;
    let host = format!("{NAME}.{}.svc", trial.namespace);
    let issued = tls::issue(&host)?;
    trial.create(&objects(image, &issued))?;
    let rights = Installation::shipped("executor-rbac.yaml");
    trial.site.windlass.kubectl(&["apply", "--namespace", &trial.namespace, "-f", &rights])?;
    let store = Store::reach(trial, &host, &issued.authority).await?;
    let s3 = json!({
        "endpoint": format!("https://{host}:{PORT}"), "bucket": BUCKET, "prefix": "before-upgrades",
        "credentialsSecret": KEY, "caSecret": NAME,
    });
    trial.resource.change(json!({"backup": {"preUpgradeSnapshot": true, "destination": {"s3": s3}}})).await?;
    trial.ask_for_new().await?;

    trial.resource.waits_for(&["SnapshotFailed"], 120).await?;
    let seen = trial.resource.seen().await?;
    ensure!(seen.message.contains("SignatureDoesNotMatch"), "it does not say what is wrong: {}", seen.message);
    say(&format!("SnapshotFailed: {}", seen.message));
    trial.notes.push(seen.message);
    let set =
        trial.site.windlass.kubectl(&["get", "statefulset", "etcd", "--namespace", &trial.namespace, "-o", "json"])?;
    let set: Value = serde_json::from_str(&set)?;
    let running = set["spec"]["template"]["spec"]["containers"][0]["image"].as_str();
    ensure!(running == Some(&trial.pair()?.old.image), "the template was written before the snapshot was stored");
    let right = json!({"stringData": {"secretAccessKey": PASSWORD}}).to_string();
    trial.site.windlass.kubectl(&["patch", "secret", KEY, "--namespace", &trial.namespace, "-p", &right])?;
    trial.resource.change(json!({"requests": {"resume": "with-the-right-key"}})).await?;

    let stored = wait::until("a snapshot to be stored and the upgrade to begin", 120, async || {
        let snapshot = trial.resource.whole().await?["status"]["upgrade"]["snapshot"].take();
        Ok((!snapshot.is_null()).then_some(snapshot))
    })
    .await?;
    trial.finish(300).await?;
    let place = stored["location"].as_str().unwrap_or_default();
    let key = place.strip_prefix(&format!("s3://{BUCKET}/")).with_context(|| format!("it is said to be at {place}"))?;
    let object = store.get(key).await?;
    ensure!(object.status().is_success(), "{place}: {}", object.status());
    let checksum = format!("{:x}", Sha256::digest(object.body()));
    ensure!(stored["checksum"] == json!(checksum), "{place} has the checksum {checksum}: {stored}");
    ensure!(stored["size"] == json!(object.body().len()), "{place} has {} bytes: {stored}", object.body().len());
    trial.notes.push(format!("{place}, {} bytes, is what the status says", object.body().len()));
    Ok(())
}

/// MinIO in a pod, with a certificate, and a key for it that is wrong at first.
fn objects(image: &str, issued: &tls::Issued) -> [Value; 4] {
    let labels = json!({"app": NAME});
    let container = json!({
        "name": NAME, "image": image, "imagePullPolicy": "Never",
        "args": ["server", "--quiet", "--certs-dir", "/certs", "--address", format!(":{PORT}"), "/data"],
        "env": [
            {"name": "MINIO_ROOT_USER", "value": USER}, {"name": "MINIO_ROOT_PASSWORD", "value": PASSWORD},
            {"name": "MINIO_BROWSER", "value": "off"},
        ],
        "volumeMounts": [{"name": "certs", "mountPath": "/certs", "readOnly": true}, {"name": "data", "mountPath": "/data"}],
    });
    let items = [("tls.crt", "public.crt"), ("tls.key", "private.key")];
    let items = items.map(|(key, path)| json!({"key": key, "path": path}));
    [
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME},
            "stringData": {"tls.crt": issued.certificate, "tls.key": issued.key, "ca.crt": issued.authority},
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": KEY},
            "stringData": {"accessKeyId": USER, "secretAccessKey": "not-the-key"},
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME},
            "spec": {"selector": labels, "ports": [{"port": PORT}]},
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": NAME, "labels": labels},
            "spec": {
                "automountServiceAccountToken": false, "containers": [container],
                "volumes": [
                    {"name": "certs", "secret": {"secretName": NAME, "items": items}}, {"name": "data", "emptyDir": {}},
                ],
            },
        }),
    ]
}

/// The bucket as its owner sees it.
struct Store {
    network: Network,
    peer: Peer,
    bucket: Bucket,
    credentials: Credentials,
}

impl Store {
    /// Waits until MinIO answers, and makes the bucket: by the Service's address, as the Job will, for that is there later than the pod's.
    async fn reach(trial: &Trial<'_>, host: &str, authority: &str) -> Result<Self> {
        let (namespace, path) = (trial.namespace.as_str(), "jsonpath={.spec.clusterIP}");
        let address =
            trial.site.windlass.kubectl(&["get", "service", NAME, "--namespace", namespace, "--output", path])?;
        let address: IpAddr = address.trim().parse()?;
        let endpoint = format!("https://{host}:{PORT}").parse()?;
        let this = Self {
            network: Network::with_tls(authority.as_bytes(), None)?,
            peer: Peer { pod: NAME.into(), address, port: PORT, server_name: host.to_owned(), tls: true },
            bucket: Bucket::new(endpoint, UrlStyle::Path, BUCKET, "us-east-1")?,
            credentials: Credentials::new(USER, PASSWORD),
        };
        wait::until_so("MinIO to make a bucket", 90, async || {
            Ok(this
                .ask(this.bucket.create_bucket(&this.credentials))
                .await
                .is_ok_and(|answer| answer.status().is_success()))
        })
        .await?;
        Ok(this)
    }

    async fn get(&self, key: &str) -> Result<Response<Bytes>> {
        self.ask(self.bucket.get_object(Some(&self.credentials), key)).await
    }

    async fn ask<'a, A: S3Action<'a>>(&self, action: A) -> Result<Response<Bytes>> {
        let url = action.sign(Duration::from_mins(1));
        let request = Request::builder()
            .method(A::METHOD.to_str())
            .uri(format!("{}?{}", url.path(), url.query().unwrap_or_default()))
            .body(Full::new(Bytes::new()))?;
        Ok(self.network.upload(&self.peer, request).await?)
    }
}
