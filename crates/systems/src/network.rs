//! The production transport: HTTP/1.1 to a pod's address, TLS verified against the pod's name.
//!
//! Built by the operator from the secret that a resource names; rebuilt when that secret changes.
//!
//! Every call has a connection of its own, and that is a safety property: a call that was held up for long connects
//! late, and once its pod is gone there is nobody at the address to carry out a verb that nobody wants any more. A
//! pooled connection, a retry or a proxy would lose that. For the same reason the connection lives inside the call's
//! future: giving the call up closes it. None of these may be added here.

use std::{
    error::Error,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, Either, select},
    stream,
};
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{
    body::{Body, Frame, SizeHint},
    client::conn::http1,
    ext::on_informational,
};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore, client::Resumption, crypto::ring};
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer, ServerName,
    pem::{self, PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::Notify,
    time::sleep,
};
use tokio_rustls::TlsConnector;

use crate::transport::{ANSWER_LIMIT, Fault, Peer, Streamed, Transport};

/// What the operator shows to an application that asks who is calling. It has no `Debug`: the key must not reach a log.
#[derive(Clone, Copy)]
pub struct Identity<'a> {
    /// The client certificate and its chain, PEM.
    pub certificate: &'a [u8],
    /// The private key, PEM.
    pub key: &'a [u8],
}

/// Why the trust or the identity that was given can't be used. The texts never repeat what was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The CA bundle can't be read.
    #[error("the CA bundle is not readable as PEM certificates: {0}; check the secret's ca.crt")]
    Roots(String),
    /// The CA bundle holds no certificate.
    #[error("the CA bundle holds no certificate; check the secret's ca.crt")]
    NoRoots,
    /// The client certificate can't be read.
    #[error("the client certificate is not readable as PEM: {0}; check the secret's tls.crt")]
    Certificate(String),
    /// The private key can't be read.
    #[error("the client's private key is not readable as PEM: {0}; check the secret's tls.key")]
    Key(String),
    /// The build has no TLS that fits; a fault of ours.
    #[error("TLS can't be set up: {0}; please report this")]
    Setup(String),
    /// Certificate and key can't be used together.
    #[error("the client certificate and key can't be used: {0}; check that they belong together")]
    Identity(String),
}

/// Talks to pods over the cluster's network.
#[derive(Clone)]
pub struct Network {
    tls: Option<TlsConnector>,
}

impl Network {
    /// For applications that don't use TLS. A call to one that does fails as not trusted: there is no fallback to
    /// unverified TLS.
    pub fn plain() -> Self {
        Self { tls: None }
    }

    /// Trusts the certificates in `roots` (PEM) and nothing else, and shows `identity` to applications that ask for it.
    pub fn with_tls(roots: &[u8], identity: Option<Identity<'_>>) -> Result<Self, NetworkError> {
        Self::trusting(read_roots(roots)?, identity)
    }

    /// Trusts the authorities that everybody trusts, which are part of the program: for services outside the cluster.
    pub fn with_public_roots() -> Result<Self, NetworkError> {
        Self::trusting(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }, None)
    }

    fn trusting(roots: RootCertStore, identity: Option<Identity<'_>>) -> Result<Self, NetworkError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| NetworkError::Setup(error.to_string()))?
            .with_root_certificates(roots);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(Identity { certificate, key }) => {
                let chain = CertificateDer::pem_slice_iter(certificate)
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(|error| NetworkError::Certificate(pem_problem(&error)))?;
                let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| NetworkError::Key(pem_problem(&error)))?;
                builder.with_client_auth_cert(chain, key).map_err(|error| NetworkError::Identity(error.to_string()))?
            }
        };
        // A resumed session skips the check of the certificate; each call is to prove itself.
        config.resumption = Resumption::disabled();
        // No ALPN: etcd's listener, which is also PD's, announces only h2, and strict servers would refuse a list
        // without it.
        Ok(Self { tls: Some(TlsConnector::from(Arc::new(config))) })
    }
}

/// How long a server has to say that it wants a body before it gets it unasked: many never say so.
const UNASKED: Duration = Duration::from_secs(1);

/// A body that is held back until the server wants it. One that refuses the request does so on its head, and closes; with a body on its way it
/// would reset the connection, and what it said would be lost.
struct Wanted<B> {
    asked: Option<BoxFuture<'static, ()>>,
    body: B,
}

impl<B: Body + Unpin> Body for Wanted<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        if let Some(asked) = &mut self.asked {
            ready!(asked.as_mut().poll(cx));
            self.asked = None;
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Asks whether the body is wanted, where there is one.
fn asking<B: Body>(mut request: Request<B>) -> Request<Wanted<B>> {
    if request.body().is_end_stream() {
        return request.map(|body| Wanted { asked: None, body });
    }
    request.headers_mut().insert(header::EXPECT, HeaderValue::from_static("100-continue"));
    let wanted = Arc::new(Notify::new());
    let heard = Arc::clone(&wanted);
    on_informational(&mut request, move |answer| {
        if answer.status() == StatusCode::CONTINUE {
            heard.notify_one();
        }
    });
    let asked = async move {
        let _either = select(std::pin::pin!(wanted.notified()), std::pin::pin!(sleep(UNASKED))).await;
    };
    request.map(|body| Wanted { asked: Some(asked.boxed()), body })
}

impl Network {
    /// Sends a request whose body may be long, and is read as it is sent.
    pub async fn upload<B>(&self, peer: &Peer, request: Request<B>) -> io::Result<Response<Bytes>>
    where
        B: Body<Data = Bytes> + Unpin + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let request = asking(addressed(peer, request)?);
        exchange(connect(self.tls.clone(), peer.clone()).await?, request).await
    }
}

fn read_roots(pem: &[u8]) -> Result<RootCertStore, NetworkError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| NetworkError::Roots(pem_problem(&error)))?;
        roots.add(certificate).map_err(|error| NetworkError::Roots(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(NetworkError::NoRoots);
    }
    Ok(roots)
}

/// Says what kind of problem it is and not which bytes caused it: the library's own text can repeat a line of the
/// input.
fn pem_problem(error: &pem::Error) -> String {
    let problem = if matches!(error, pem::Error::NoItemsFound) {
        "there is nothing of this kind in it"
    } else if matches!(error, pem::Error::MissingSectionEnd { .. }) {
        "a section has no end line"
    } else if matches!(error, pem::Error::Base64Decode(_)) {
        "a section is not valid base64"
    } else {
        "it can't be parsed"
    };
    problem.to_owned()
}

impl Transport for Network {
    fn send(&self, peer: &Peer, request: Request<Bytes>) -> BoxFuture<'static, io::Result<Response<Bytes>>> {
        let (connector, peer) = (self.tls.clone(), peer.clone());
        async move {
            let request = addressed(&peer, request.map(Full::new))?;
            exchange(connect(connector, peer).await?, request).await
        }
        .boxed()
    }

    fn stream(&self, peer: &Peer, request: Request<Bytes>) -> BoxFuture<'static, io::Result<Response<Streamed>>> {
        let (connector, peer) = (self.tls.clone(), peer.clone());
        async move {
            let request = addressed(&peer, request.map(Full::new))?;
            exchange_in_pieces(connect(connector, peer).await?, request).await
        }
        .boxed()
    }
}

/// A connection of any kind.
trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// Connects to the pod, with TLS where it uses that.
async fn connect(connector: Option<TlsConnector>, peer: Peer) -> io::Result<Box<dyn Wire>> {
    let socket = TcpStream::connect(SocketAddr::new(peer.address, peer.port)).await?;
    socket.set_nodelay(true)?;
    if !peer.tls {
        return Ok(Box::new(socket));
    }
    let Some(connector) = connector else {
        return Err(Fault::Untrusted("the pod uses TLS and no CA bundle was given".to_owned()).into());
    };
    let wanted = peer.server_name;
    let name = ServerName::try_from(wanted.clone())
        .map_err(|_| Fault::Untrusted(format!("the name to verify, {wanted}, is not a DNS name")))?;
    let secured = connector.connect(name, socket).await.map_err(|error| about_name(explained(&error), &wanted))?;
    Ok(Box::new(secured))
}

/// Whoever reads that a certificate was refused wants to know for which name: not every check says it.
fn about_name(error: io::Error, wanted: &str) -> io::Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Fault>()) {
        Some(Fault::Untrusted(check)) => Fault::Untrusted(format!("{check} (the name to verify is {wanted})")).into(),
        Some(Fault::TooLarge) | None => error,
    }
}

/// Adds what HTTP/1.1 needs to know about the other side.
fn addressed<B>(peer: &Peer, mut request: Request<B>) -> io::Result<Request<B>> {
    let host = if peer.server_name.contains(':') {
        format!("[{}]:{}", peer.server_name, peer.port)
    } else {
        format!("{}:{}", peer.server_name, peer.port)
    };
    let host = HeaderValue::try_from(host).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    // Who signs a request names the host himself.
    request.headers_mut().entry(header::HOST).or_insert(host);
    request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(request)
}

async fn exchange<B>(stream: Box<dyn Wire>, request: Request<B>) -> io::Result<Response<Bytes>>
where
    B: Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| explained(&error))?;
    let talk = async move {
        let response = sender.send_request(request).await.map_err(|error| explained(&error))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_LIMIT).collect().await.map_err(|error| explained(error.as_ref()))?;
        Ok(Response::from_parts(head, body.to_bytes()))
    };
    // The connection does the work and the talk waits for it; both live in this future so that dropping it closes the
    // socket.
    match select(std::pin::pin!(talk), std::pin::pin!(connection)).await {
        Either::Left((answer, _connection)) => answer,
        Either::Right((_closed, talk)) => talk.await,
    }
}

/// The same for an answer in pieces: the connection lives in the stream of its pieces, so that dropping it closes the socket.
async fn exchange_in_pieces(stream: Box<dyn Wire>, request: Request<Full<Bytes>>) -> io::Result<Response<Streamed>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| explained(&error))?;
    let mut connection = Box::pin(connection);
    let response = match select(std::pin::pin!(sender.send_request(request)), connection.as_mut()).await {
        Either::Left((response, _connection)) => response,
        Either::Right((_closed, response)) => response.await,
    };
    let (head, body) = response.map_err(|error| explained(&error))?.into_parts();
    let pieces = stream::unfold((body, Some(connection)), async |(mut body, mut connection)| {
        let next = match connection.as_mut() {
            None => body.frame().await,
            Some(alive) => match select(std::pin::pin!(body.frame()), alive.as_mut()).await {
                Either::Left((next, _connection)) => next,
                Either::Right((_closed, next)) => {
                    // What was read before it closed is still there.
                    let next = next.await;
                    connection = None;
                    next
                }
            },
        };
        let piece = next?.map_err(|error| explained(&error));
        Some((piece.map(|frame| frame.into_data().unwrap_or_default()), (body, connection)))
    });
    Ok(Response::from_parts(head, pieces.boxed()))
}

/// Finds the error that matters in a chain: libraries wrap one another, and the outermost only says that something
/// failed.
fn explained(error: &(dyn Error + 'static)) -> io::Error {
    let mut kind = io::ErrorKind::Other;
    let mut link = error;
    loop {
        if let Some(error) = link.downcast_ref::<rustls::Error>() {
            return Fault::Untrusted(error.to_string()).into();
        }
        if link.is::<LengthLimitError>() {
            return Fault::TooLarge.into();
        }
        let wrapped: Option<&(dyn Error + 'static)> = match link.downcast_ref::<io::Error>() {
            Some(error) => {
                kind = error.kind();
                // Its `source` would skip the error that it wraps.
                error.get_ref().map(|inner| inner as _)
            }
            None => link.source(),
        };
        match wrapped {
            Some(inner) => link = inner,
            None => return io::Error::new(kind, link.to_string()),
        }
    }
}
