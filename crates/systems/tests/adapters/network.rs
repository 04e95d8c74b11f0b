//! The production transport against real sockets on loopback: names, certificates, limits and silence.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures::TryStreamExt;
use http::Request;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{RootCertStore, ServerConfig, crypto::ring, server::WebPkiClientVerifier};
use rustls_pki_types::{PrivateKeyDer, pem::PemObject};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;
use windlass_systems::{
    Class, Failure, Identity, Network, NetworkError, Peer, Transport,
    call::{Reply, call},
};

const NAME: &str = "pd-0.pd-peer.ns.svc";

/// Long enough for any answer on loopback; it only ends a test that would hang.
const PATIENCE: Duration = Duration::from_secs(20);

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

struct Leaf {
    certificate: String,
    key: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    fn pem(&self) -> String {
        self.issuer.pem()
    }

    fn issue(&self, name: &str) -> Leaf {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        Leaf { certificate: params.signed_by(&key, &self.issuer).unwrap().pem(), key: key.serialize_pem() }
    }
}

impl Leaf {
    fn identity(&self) -> Identity<'_> {
        Identity { certificate: self.certificate.as_bytes(), key: self.key.as_bytes() }
    }
}

/// What a test server does with a connection.
#[derive(Clone)]
enum Behaviour {
    Answer(Vec<u8>),
    Silence,
    HangUp,
}

impl Behaviour {
    fn ok(body: &str) -> Self {
        Self::Answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes())
    }
}

/// A server on loopback and what it was asked.
struct Server {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn plain(behaviour: Behaviour) -> Self {
        Self::start(None, behaviour).await
    }

    /// With TLS for [`NAME`]; asks for a certificate of `clients` where given.
    async fn secured(authority: &Authority, clients: Option<&Authority>) -> Self {
        Self::named(NAME, authority, clients).await
    }

    async fn named(name: &str, authority: &Authority, clients: Option<&Authority>) -> Self {
        let leaf = authority.issue(name);
        let provider = Arc::new(ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                roots.add(clients.issuer.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build().unwrap();
                builder.with_client_cert_verifier(verifier)
            }
        };
        let chain = vec![rustls_pki_types::CertificateDer::from_pem_slice(leaf.certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).unwrap();
        let config = builder.with_single_cert(chain, key).unwrap();
        Self::start(Some(TlsAcceptor::from(Arc::new(config))), Behaviour::ok("hello")).await
    }

    async fn start(tls: Option<TlsAcceptor>, behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = heard.clone();
        // Ends with the test's runtime.
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                match &tls {
                    None => serve(socket, &behaviour, &log).await,
                    Some(acceptor) => match acceptor.accept(socket).into_fallible().await {
                        Ok(secured) => serve(secured, &behaviour, &log).await,
                        // Closing with something unread resets the connection, and the reset can overtake the alert
                        // that says why.
                        Err((_, mut socket)) => {
                            let _ = socket.shutdown().await;
                            let _ = socket.read_to_end(&mut Vec::new()).await;
                        }
                    },
                }
            }
        });
        Self { port, heard }
    }

    fn peer(&self, tls: bool) -> Peer {
        Peer {
            pod: "pd-0".to_owned(),
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: self.port,
            server_name: NAME.to_owned(),
            tls,
        }
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, behaviour: &Behaviour, log: &Mutex<Vec<String>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(read) => request.extend_from_slice(&buffer[..read]),
        }
    }
    log.lock().unwrap().push(String::from_utf8(request).unwrap());
    match behaviour {
        Behaviour::Answer(bytes) => {
            // The other side may have stopped reading, as it does with an answer that is too long.
            let _ = stream.write_all(bytes).await;
            let _ = stream.shutdown().await;
        }
        Behaviour::Silence => std::future::pending().await,
        Behaviour::HangUp => {}
    }
}

async fn get(network: &Network, peer: &Peer) -> Result<Reply, windlass_systems::CallError> {
    let request = Request::get("/pd/api/v1/health?token=hidden").body(Bytes::new()).unwrap();
    call(network, peer, request, PATIENCE).await
}

async fn failure(network: &Network, peer: &Peer) -> Failure {
    get(network, peer).await.unwrap_err().failure().clone()
}

#[tokio::test]
async fn a_plain_call_names_the_host_and_carries_path_and_query() {
    let server = Server::plain(Behaviour::ok("\"hello\"")).await;
    let reply = get(&Network::plain(), &server.peer(false)).await.unwrap();
    assert_eq!(reply.json::<String>().unwrap(), "hello");
    let heard = server.heard.lock().unwrap().remove(0).to_lowercase();
    assert!(heard.starts_with("get /pd/api/v1/health?token=hidden http/1.1\r\n"), "{heard}");
    assert!(heard.contains(&format!("\r\nhost: {NAME}:{}\r\n", server.port)), "{heard}");
    assert!(heard.contains("\r\nconnection: close\r\n"), "{heard}");
}

#[tokio::test]
async fn the_right_name_passes() {
    let authority = Authority::new();
    let server = Server::secured(&authority, None).await;
    let network = Network::with_tls(authority.pem().as_bytes(), None).unwrap();
    assert_eq!(get(&network, &server.peer(true)).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_wrong_name_is_refused_before_anything_is_sent() {
    let authority = Authority::new();
    let server = Server::secured(&authority, None).await;
    let network = Network::with_tls(authority.pem().as_bytes(), None).unwrap();
    let peer = Peer { server_name: "pd-1.pd-peer.ns.svc".to_owned(), ..server.peer(true) };
    let error = get(&network, &peer).await.unwrap_err();
    assert!(matches!(error.failure(), Failure::Tls(_)), "{error}");
    assert_eq!(error.class(), Class::Untrusted);
    assert!(error.to_string().contains("the name to verify is pd-1.pd-peer.ns.svc"), "{error}");
    assert!(server.heard.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_certificate_for_all_names_of_a_domain_is_good_for_each_of_them_and_no_other() {
    let authority = Authority::new();
    let server = Server::named("*.pd.example", &authority, None).await;
    let network = Network::with_tls(authority.pem().as_bytes(), None).unwrap();
    let named = |name: &str| Peer { server_name: name.to_owned(), ..server.peer(true) };
    assert_eq!(get(&network, &named("pd-0.pd.example")).await.unwrap().status(), 200);
    for other in ["pd-0.pd-peer.ns.svc", "pd.example", "a.pd-0.pd.example"] {
        let error = get(&network, &named(other)).await.unwrap_err();
        assert!(error.to_string().contains(other), "{error}");
    }
}

#[tokio::test]
async fn a_stranger_s_certificate_is_refused() {
    let server = Server::secured(&Authority::new(), None).await;
    let network = Network::with_tls(Authority::new().pem().as_bytes(), None).unwrap();
    assert!(matches!(failure(&network, &server.peer(true)).await, Failure::Tls(_)));
}

/// What everybody trusts is part of the program, and an authority of one's own is none of them.
#[tokio::test]
async fn the_public_authorities_vouch_for_no_stranger() {
    let server = Server::secured(&Authority::new(), None).await;
    let network = Network::with_public_roots().unwrap();
    assert!(
        matches!(failure(&network, &server.peer(true)).await, Failure::Tls(check) if check.contains("UnknownIssuer"))
    );
}

#[tokio::test]
async fn a_missing_client_certificate_is_refused() {
    let authority = Authority::new();
    let server = Server::secured(&authority, Some(&authority)).await;
    let network = Network::with_tls(authority.pem().as_bytes(), None).unwrap();
    let error = get(&network, &server.peer(true)).await.unwrap_err();
    assert!(matches!(error.failure(), Failure::Tls(_)), "{error}");
    assert!(server.heard.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_client_certificate_of_another_authority_is_refused() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = Server::secured(&authority, Some(&authority)).await;
    let network = Network::with_tls(authority.pem().as_bytes(), Some(other.issue("operator").identity())).unwrap();
    let error = get(&network, &server.peer(true)).await.unwrap_err();
    assert!(matches!(error.failure(), Failure::Tls(_)), "{error}");
}

#[tokio::test]
async fn a_client_certificate_is_accepted() {
    let authority = Authority::new();
    let server = Server::secured(&authority, Some(&authority)).await;
    let network = Network::with_tls(authority.pem().as_bytes(), Some(authority.issue("operator").identity())).unwrap();
    assert_eq!(get(&network, &server.peer(true)).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_pod_with_tls_is_not_called_without_trust() {
    let server = Server::plain(Behaviour::ok("hello")).await;
    assert!(matches!(failure(&Network::plain(), &server.peer(true)).await, Failure::Tls(_)));
    assert!(server.heard.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_pod_that_speaks_no_tls_after_all_is_not_trusted() {
    let network = Network::with_tls(Authority::new().pem().as_bytes(), None).unwrap();
    // A server that waits for the end of a request would wait for ever here, so this one answers at once.
    let talker = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let peer = Server { port: talker.local_addr().unwrap().port(), heard: Arc::default() }.peer(true);
    tokio::spawn(async move {
        let (mut socket, _) = talker.accept().await.unwrap();
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    });
    assert!(matches!(failure(&network, &peer).await, Failure::Tls(_)));
}

#[tokio::test]
async fn nobody_at_the_port_is_a_refusal() {
    let port = {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        listener.local_addr().unwrap().port()
    };
    let server = Server { port, heard: Arc::default() };
    let error = get(&Network::plain(), &server.peer(false)).await.unwrap_err();
    assert_eq!(error.failure(), &Failure::Refused);
    assert_eq!(error.to_string(), "pd-0 refused the connection for GET /pd/api/v1/health", "the query stays unsaid");
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let server = Server::plain(Behaviour::Silence).await;
    let request = Request::get("/").body(Bytes::new()).unwrap();
    let error = call(&Network::plain(), &server.peer(false), request, Duration::from_millis(100)).await.unwrap_err();
    assert_eq!(error.failure(), &Failure::TimedOut);
}

#[tokio::test]
async fn a_server_that_hangs_up_breaks_the_call() {
    let server = Server::plain(Behaviour::HangUp).await;
    let found = failure(&Network::plain(), &server.peer(false)).await;
    assert!(matches!(found, Failure::Broken(_)), "{found:?}");
}

/// It refuses on the head and closes. A body on its way would have the connection reset, and the answer with it.
#[tokio::test]
async fn a_refusal_is_heard_before_a_long_body_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        while !heard.windows(4).any(|four| four == b"\r\n\r\n") {
            heard.push(socket.read_u8().await.unwrap());
        }
        socket.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 6\r\n\r\ndenied").await.unwrap();
        String::from_utf8(heard).unwrap().to_lowercase()
    });
    let peer = Peer {
        pod: "store".into(),
        address: "127.0.0.1".parse().unwrap(),
        port,
        server_name: "store.test".into(),
        tls: false,
    };
    let body = http_body_util::Full::new(Bytes::from(vec![7; 32 << 20]));
    let answer = Network::plain().upload(&peer, Request::put("/object").body(body).unwrap()).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.body().as_ref()), (403, &b"denied"[..]));
    assert!(server.await.unwrap().contains("\r\nexpect: 100-continue\r\n"), "it was not asked for");
}

#[tokio::test]
async fn half_an_answer_is_no_answer() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[]".to_vec();
    let server = Server::plain(Behaviour::Answer(half)).await;
    let found = failure(&Network::plain(), &server.peer(false)).await;
    assert!(matches!(found, Failure::Broken(_)), "{found:?}");
}

#[tokio::test]
async fn something_that_is_not_http_breaks_the_call() {
    let server = Server::plain(Behaviour::Answer(b"SSH-2.0-OpenSSH_9.9\r\n".to_vec())).await;
    let found = failure(&Network::plain(), &server.peer(false)).await;
    assert!(matches!(found, Failure::Broken(_)), "{found:?}");
}

#[tokio::test]
async fn an_answer_is_read_up_to_the_limit_and_not_past_it() {
    let most = 1024 * 1024;
    for (length, is_fine) in [(most, true), (most + 1, false)] {
        let server = Server::plain(Behaviour::ok(&" ".repeat(length))).await;
        let reply = get(&Network::plain(), &server.peer(false)).await;
        match reply {
            Ok(_) => assert!(is_fine, "{length}"),
            Err(error) => {
                assert!(!is_fine, "{error}");
                assert_eq!(error.failure(), &Failure::TooLarge);
            }
        }
    }
}

#[tokio::test]
async fn a_redirect_is_handed_back() {
    let redirect = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n".to_vec();
    let server = Server::plain(Behaviour::Answer(redirect)).await;
    let reply = get(&Network::plain(), &server.peer(false)).await.unwrap();
    assert_eq!(reply.status(), 307);
    assert!(reply.success().is_err());
    assert_eq!(server.heard.lock().unwrap().len(), 1);
}

#[test]
fn unusable_trust_and_identity_are_told_apart_and_never_repeated() {
    let authority = Authority::new();
    let (roots, leaf) = (authority.pem(), authority.issue("operator"));
    let refused =
        |roots: &str, identity: Option<Identity<'_>>| Network::with_tls(roots.as_bytes(), identity).err().unwrap();

    assert_eq!(refused("", None), NetworkError::NoRoots);
    let broken = "-----BEGIN CERTIFICATE-----\n!!secret!!\n-----END CERTIFICATE-----\n";
    assert!(matches!(refused(broken, None), NetworkError::Roots(_)));
    let no_key = Identity { key: b"secret", ..leaf.identity() };
    assert!(matches!(refused(&roots, Some(no_key)), NetworkError::Key(_)));
    let no_certificate = Identity { certificate: broken.as_bytes(), ..leaf.identity() };
    assert!(matches!(refused(&roots, Some(no_certificate)), NetworkError::Certificate(_)));
    let other = authority.issue("other");
    let mixed = Identity { key: other.key.as_bytes(), ..leaf.identity() };
    assert!(matches!(refused(&roots, Some(mixed)), NetworkError::Identity(_)));
    let empty = Identity { certificate: b"", ..leaf.identity() };
    assert!(Network::with_tls(roots.as_bytes(), Some(empty)).is_err());
    for error in [refused(broken, None), refused(&roots, Some(no_key)), refused(&roots, Some(no_certificate))] {
        assert!(!error.to_string().contains("secret!!") && !format!("{error:?}").contains("secret!!"), "{error}");
    }
}

#[tokio::test]
async fn a_long_answer_comes_in_pieces_and_is_not_cut() {
    let body = "x".repeat(3 * 1024 * 1024);
    let server = Server::plain(Behaviour::ok(&body)).await;
    let request = Request::post("/v3/maintenance/snapshot").body(Bytes::new()).unwrap();
    let answer = Network::plain().stream(&server.peer(false), request).await.unwrap();
    assert_eq!(answer.status(), 200);
    let pieces: Vec<Bytes> = answer.into_body().try_collect().await.unwrap();
    assert!(pieces.len() > 1, "it is not held in memory as a whole");
    assert_eq!(pieces.iter().map(Bytes::len).sum::<usize>(), body.len());
}

#[tokio::test]
async fn a_long_answer_that_breaks_off_is_an_error() {
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec();
    let server = Server::plain(Behaviour::Answer(cut)).await;
    let request = Request::post("/v3/maintenance/snapshot").body(Bytes::new()).unwrap();
    let answer = Network::plain().stream(&server.peer(false), request).await.unwrap();
    let pieces: Result<Vec<Bytes>, _> = answer.into_body().try_collect().await;
    assert!(pieces.is_err());
}
