//! The same over real sockets on loopback: TLS, names, authorities, and a connection that breaks.

use std::{
    collections::{BTreeMap, BTreeSet},
    future, io,
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex},
};

use futures::{FutureExt, TryStreamExt, future::BoxFuture};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{ServerConfig, crypto::ring};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;
use windlass_images::{
    Digest, Registry,
    registry::{Class, Credentials, Patience, Resolve, Settings},
};
use windlass_systems::{Network, Transport};

use crate::world::{MANIFEST_TYPE, location, login, manifest, reference};

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn network(&self) -> Arc<dyn Transport> {
        Arc::new(Network::with_tls(self.0.pem().as_bytes(), None).unwrap())
    }

    fn acceptor(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap().pem();
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key).unwrap()))
    }
}

/// A server that answers from a script, byte by byte, and what it heard.
struct Server {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

type Script = fn(&str) -> String;

impl Server {
    async fn start(tls: Option<TlsAcceptor>, script: Script) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = heard.clone();
        // Ends with the test's runtime.
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                match &tls {
                    None => serve(socket, script, &log).await,
                    Some(acceptor) => {
                        if let Ok(secured) = acceptor.accept(socket).await {
                            serve(secured, script, &log).await;
                        }
                    }
                }
            }
        });
        Self { port, heard }
    }

    fn heard(&self) -> String {
        self.heard.lock().unwrap().join("\n")
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, script: Script, log: &Mutex<Vec<String>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            // Somebody speaks TLS: who listened on would never hear an end.
            Ok(_) if request.is_empty() && buffer[0] == 0x16 => return,
            Ok(read) => request.extend_from_slice(&buffer[..read]),
        }
    }
    let request = String::from_utf8(request).unwrap();
    let answer = script(&request);
    log.lock().unwrap().push(request);
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

/// Every name is here.
struct Here;

impl Resolve for Here {
    fn addresses(&self, _: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        future::ready(Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])).boxed()
    }
}

fn settings() -> Settings {
    Settings {
        resolver: Arc::new(Here),
        network: Arc::new(Network::with_public_roots().unwrap()),
        networks: BTreeMap::new(),
        insecure: BTreeSet::new(),
        ranges: Vec::new(),
        patience: Patience::default(),
    }
}

const BLOB: &str = "all of this and nothing else";

/// A registry that wants a password.
fn guarded(request: &str) -> String {
    if !request.to_lowercase().contains("\r\nauthorization: basic bwu6cznjcmv0\r\n") {
        return answer("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n", "");
    }
    if request.starts_with("GET /v2/a/blobs/") {
        return answer("200 OK", "", BLOB);
    }
    answer("200 OK", &format!("Content-Type: {MANIFEST_TYPE}\r\n"), &manifest())
}

async fn read(registry: &Registry, host: &str) {
    let fetched = registry.resolve(&reference(&format!("{host}/a:v1"))).await.unwrap();
    assert_eq!(fetched.digest, Digest::of(manifest().as_bytes()));
    let size = u64::try_from(BLOB.len()).unwrap();
    let blob = registry.blob(&location(&format!("{host}/a")), &Digest::of(BLOB.as_bytes()), size);
    let pieces: Vec<_> = blob.try_collect().await.unwrap();
    assert_eq!(pieces.concat(), BLOB.as_bytes());
}

#[tokio::test]
async fn a_registry_without_tls_is_read_where_it_is_listed() {
    let server = Server::start(None, guarded).await;
    let host = format!("registry.test:{}", server.port);
    let mut settings = settings();
    settings.insecure.insert(host.clone());
    read(&Registry::new(Arc::new(settings), login(&host, "me", "s3cret")), &host).await;
    assert!(server.heard().to_lowercase().contains(&format!("\r\nhost: {host}\r\n")));
}

#[tokio::test]
async fn a_registry_without_tls_is_not_read_where_it_is_not_listed() {
    let server = Server::start(None, guarded).await;
    let host = format!("registry.test:{}", server.port);
    let mut settings = settings();
    settings.networks.insert(host.clone(), Authority::new().network());
    let registry = Registry::new(Arc::new(settings), Credentials::none());
    let error = registry.resolve(&reference(&format!("{host}/a:v1"))).await.unwrap_err();
    assert!(matches!(error.class(), Class::Untrusted | Class::Silent), "{error}");
    assert!(!server.heard().contains("GET "), "nothing is said without TLS");
}

#[tokio::test]
async fn a_registry_has_an_authority_of_its_own() {
    let authority = Authority::new();
    let server = Server::start(Some(authority.acceptor("registry.test")), guarded).await;
    let host = format!("registry.test:{}", server.port);
    let mut trusting = settings();
    trusting.networks.insert(host.clone(), authority.network());
    read(&Registry::new(Arc::new(trusting), login(&host, "me", "s3cret")), &host).await;

    let mut others = settings();
    others.networks.insert(host.clone(), Authority::new().network());
    let registry = Registry::new(Arc::new(others), login(&host, "me", "s3cret"));
    let error = registry.resolve(&reference(&format!("{host}/a:v1"))).await.unwrap_err();
    assert_eq!(error.class(), Class::Untrusted, "{error}");
}

#[tokio::test]
async fn the_name_in_the_certificate_is_compared() {
    let authority = Authority::new();
    let server = Server::start(Some(authority.acceptor("other.test")), guarded).await;
    let host = format!("registry.test:{}", server.port);
    let mut settings = settings();
    settings.networks.insert(host.clone(), authority.network());
    let registry = Registry::new(Arc::new(settings), Credentials::none());
    let error = registry.resolve(&reference(&format!("{host}/a:v1"))).await.unwrap_err();
    assert_eq!(error.class(), Class::Untrusted, "{error}");
    assert!(server.heard().is_empty());
}

#[tokio::test]
async fn what_breaks_off_is_not_taken_for_whole() {
    let cut: Script = |_| format!("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{}", manifest());
    let server = Server::start(None, cut).await;
    let host = format!("registry.test:{}", server.port);
    let mut settings = settings();
    settings.insecure.insert(host.clone());
    let registry = Registry::new(Arc::new(settings), Credentials::none());
    let error = registry.resolve(&reference(&format!("{host}/a:v1"))).await.unwrap_err();
    assert_eq!(error.class(), Class::Silent, "{error}");
}
