//! A network in the process: names, addresses, and who answers there.

use std::{
    collections::{BTreeMap, BTreeSet},
    future, io,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use http::{HeaderMap, Method, Request, Response};
use serde_json::{Value, json};
use windlass_images::{
    Digest, Location, Reference, Registry,
    registry::{Credentials, Patience, Resolve, Settings},
};
use windlass_systems::{Peer, Streamed, Transport};

/// A public registry.
pub const HOST: &str = "registry.test";

/// One request, and where it went.
#[derive(Clone, Debug)]
pub struct Heard {
    pub host: String,
    pub port: u16,
    pub tls: bool,
    pub address: IpAddr,
    pub method: Method,
    /// With its query.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Heard {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub fn authorization(&self) -> Option<&str> {
        self.header("authorization")
    }

    /// Everything that stands in it, for a search.
    pub fn text(&self) -> String {
        let headers = self.headers.iter().map(|(name, value)| format!("{name}: {}\n", value.to_str().unwrap()));
        let headers: String = headers.collect();
        format!("{} {} {}\n{headers}\n{}", self.method, self.host, self.path, String::from_utf8_lossy(&self.body))
    }
}

/// What comes of a body, one after the other.
#[derive(Clone, Debug)]
pub enum Piece {
    Bytes(Bytes),
    /// The connection breaks.
    Cut,
    /// Nothing comes any more.
    Silence,
    /// These bytes, again and again, without an end.
    Endless(Bytes),
}

/// An answer.
#[derive(Clone, Debug)]
pub enum Reply {
    Saying { status: u16, headers: Vec<(String, String)>, pieces: Vec<Piece> },
    Refusing,
    Silent,
}

impl Reply {
    pub fn status(status: u16) -> Self {
        Self::Saying { status, headers: Vec::new(), pieces: Vec::new() }
    }

    pub fn ok(body: impl Into<Bytes>) -> Self {
        Self::status(200).piece(Piece::Bytes(body.into()))
    }

    pub fn json(body: &Value) -> Self {
        Self::ok(body.to_string())
    }

    pub fn redirect(to: &str) -> Self {
        Self::status(307).with("location", to)
    }

    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        if let Self::Saying { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.into()));
        }
        self
    }

    pub fn piece(mut self, piece: Piece) -> Self {
        if let Self::Saying { pieces, .. } = &mut self {
            pieces.push(piece);
        }
        self
    }
}

type Script = Box<dyn Fn(&Heard) -> Reply + Send + Sync>;

pub struct World {
    /// What a name resolves to: the first answer is taken off where there are several.
    names: Mutex<BTreeMap<String, Vec<Vec<IpAddr>>>>,
    heard: Mutex<Vec<Heard>>,
    script: Script,
}

impl World {
    pub fn new(script: impl Fn(&Heard) -> Reply + Send + Sync + 'static) -> Arc<Self> {
        let world = Self { names: Mutex::default(), heard: Mutex::default(), script: Box::new(script) };
        for (name, address) in [
            (HOST, "198.51.100.1"),
            ("registry-1.docker.io", "198.51.100.9"),
            ("storage.test", "198.51.100.2"),
            ("auth.test", "198.51.100.3"),
            ("private.test", "192.168.1.5"),
            ("nas.test", "192.168.1.6"),
            ("plain.test", "192.168.1.7"),
            ("service.test", "10.96.0.1"),
            ("metadata.test", "169.254.169.254"),
            ("home.test", "127.0.0.1"),
        ] {
            world.names(name, &[&[address]]);
        }
        Arc::new(world)
    }

    /// What a name resolves to the first time, the second time, and so on.
    pub fn names(&self, name: &str, answers: &[&[&str]]) {
        let parse = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        self.names.lock().unwrap().insert(name.to_owned(), answers.iter().map(parse).collect());
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// Which hosts were asked for what, in their order.
    pub fn asked(&self) -> Vec<String> {
        self.heard().iter().map(|heard| format!("{}{}", heard.host, heard.path)).collect()
    }

    pub fn settings(self: &Arc<Self>) -> Settings {
        Settings {
            resolver: self.clone(),
            network: self.clone(),
            networks: BTreeMap::from([("home.test".to_owned(), self.clone() as Arc<dyn Transport>)]),
            insecure: BTreeSet::from(["plain.test:5000".to_owned()]),
            ranges: vec!["10.96.0.0/12".parse().unwrap()],
            patience: Patience::default(),
        }
    }

    pub fn registry(self: &Arc<Self>, credentials: Credentials) -> Registry {
        Registry::new(Arc::new(self.settings()), credentials)
    }
}

impl Resolve for World {
    fn addresses(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let mut names = self.names.lock().unwrap();
        let answer = match names.get_mut(host) {
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers[0].clone()),
            None => Err(io::Error::other("no such name")),
        };
        future::ready(answer).boxed()
    }
}

impl Transport for World {
    fn send(&self, _: &Peer, _: Request<Bytes>) -> BoxFuture<'static, io::Result<Response<Bytes>>> {
        panic!("everything that is read from a registry is read in pieces")
    }

    fn stream(&self, peer: &Peer, request: Request<Bytes>) -> BoxFuture<'static, io::Result<Response<Streamed>>> {
        let (parts, body) = request.into_parts();
        let heard = Heard {
            host: peer.server_name.clone(),
            port: peer.port,
            tls: peer.tls,
            address: peer.address,
            method: parts.method,
            path: parts.uri.to_string(),
            headers: parts.headers,
            body,
        };
        self.heard.lock().unwrap().push(heard.clone());
        match (self.script)(&heard) {
            Reply::Refusing => future::ready(Err(io::ErrorKind::ConnectionRefused.into())).boxed(),
            Reply::Silent => future::pending().boxed(),
            Reply::Saying { status, headers, pieces } => {
                let mut response = Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                let body = stream::iter(pieces).flat_map(flow).boxed();
                future::ready(Ok(response.body(body).unwrap())).boxed()
            }
        }
    }
}

fn flow(piece: Piece) -> BoxStream<'static, io::Result<Bytes>> {
    match piece {
        Piece::Bytes(bytes) => stream::once(future::ready(Ok(bytes))).boxed(),
        Piece::Cut => stream::once(future::ready(Err(io::ErrorKind::ConnectionReset.into()))).boxed(),
        Piece::Silence => stream::pending().boxed(),
        Piece::Endless(bytes) => stream::repeat_with(move || Ok(bytes.clone())).boxed(),
    }
}

/// Runs in a time that passes by itself, and ends what would go on for ever.
pub fn run<F: Future>(story: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let bounded = async { tokio::time::timeout(Duration::from_hours(1), story).await.expect("it ends by itself") };
    runtime.block_on(bounded)
}

pub fn reference(image: &str) -> Reference {
    image.parse().unwrap()
}

pub fn location(image: &str) -> Location {
    reference(image).locate().unwrap()
}

/// A password for one registry.
pub fn login(place: &str, user: &str, password: &str) -> Credentials {
    let mut credentials = Credentials::none();
    add_login(&mut credentials, place, user, password);
    credentials
}

pub fn add_login(credentials: &mut Credentials, place: &str, user: &str, password: &str) {
    let config = json!({"auths": {place: {"username": user, "password": password}}});
    credentials.add_config(config.to_string().as_bytes()).unwrap();
}

pub const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

pub fn descriptor(content: &[u8]) -> Value {
    json!({"mediaType": "application/octet-stream", "digest": Digest::of(content).as_str(), "size": content.len()})
}

pub fn manifest() -> String {
    let document = json!({"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": descriptor(b"{}"), "layers": []});
    document.to_string()
}

/// An answer with a manifest.
pub fn served() -> Reply {
    Reply::ok(manifest()).with("content-type", MANIFEST_TYPE)
}
