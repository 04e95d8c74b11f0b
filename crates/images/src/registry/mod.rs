//! Reading from container registries, and nothing but reading.
//!
//! Nothing is believed that is not the bytes of a digest: a tag is resolved to the digest of the bytes that came, whatever a header says.
//! Everything that is read has a limit. Where requests go and what they carry is decided in [`route`]; which credentials are shown, in [`auth`] and
//! [`credentials`]. A call asks once: whether and when to ask again is the caller's, who is told how long to wait where the registry says so.
//! Each call is to be bounded in time by the caller; here are only the limits between one sign of life and the next.

pub mod auth;
mod blob;
pub mod credentials;
mod error;
mod exchange;
mod referrers;
pub mod route;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::header::{CONTENT_TYPE, HeaderName};
use windlass_systems::{Transport, escape};

pub use blob::Blob;
pub use credentials::{Credential, Credentials, InvalidSecret};
pub use error::{Asked, Class, Failure, RegistryError, Shown};
pub use referrers::PAGES;

use crate::{
    Digest, Location, Reference, Wanted,
    document::{ACCEPTED, CONFIG_LIMIT, Config, DOCUMENT_LIMIT, Descriptor, Document},
    registry::{
        auth::Tokens,
        exchange::Question,
        route::{Origin, Range, default_port},
    },
};

const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// Finds the addresses of a name.
pub trait Resolve: Send + Sync {
    /// All addresses of `host`, in the order in which they are to be tried.
    fn addresses(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The machine's own way to find addresses.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn addresses(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let host = host.to_owned();
        async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        }
        .boxed()
    }
}

/// How long to wait for a sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From the first packet to the last header of an answer.
    pub headers: Duration,
    /// For each piece of a body.
    pub piece: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { headers: Duration::from_secs(15), piece: Duration::from_secs(30) }
    }
}

/// How registries are reached: an administrator's, the same for everybody.
pub struct Settings {
    /// Finds addresses.
    pub resolver: Arc<dyn Resolve>,
    /// How registries are reached that have nothing of their own below; it trusts the public authorities.
    pub network: Arc<dyn Transport>,
    /// By registry, as references write it with its port: those with an authority of their own.
    pub networks: BTreeMap<String, Arc<dyn Transport>>,
    /// The registries, as references write them, that are reached without TLS.
    pub insecure: BTreeSet<String>,
    /// The cluster's own addresses, of services and of pods: no registry leads there unless it is there itself.
    pub ranges: Vec<Range>,
    /// How long to wait.
    pub patience: Patience,
}

impl Settings {
    fn own(&self, origin: &Origin) -> Option<&dyn Transport> {
        let with_port = || {
            let host = if origin.host.contains(':') { format!("[{}]", origin.host) } else { origin.host.clone() };
            format!("{host}:{}", origin.port)
        };
        let found = self.networks.get(&origin.authority()).or_else(|| self.networks.get(&with_port()));
        found.map(AsRef::as_ref)
    }

    /// Whether an administrator has named this registry.
    fn is_listed(&self, registry: &Origin) -> bool {
        // Only those that are listed are reached without TLS.
        !registry.tls || self.own(registry).is_some()
    }

    /// How to reach the target of a redirect: as the registry on its own host, as any other host elsewhere.
    fn for_hop(&self, home: &Origin, hop: &Origin) -> &dyn Transport {
        let family = if home.host == hop.host { self.own(home) } else { None };
        self.own(hop).or(family).unwrap_or(self.network.as_ref())
    }

    /// How to reach a realm: a registry with an authority of its own has its tokens handed out under the same one.
    fn for_realm(&self, home: &Origin, realm: &Origin) -> &dyn Transport {
        self.own(realm).or_else(|| self.own(home)).unwrap_or(self.network.as_ref())
    }
}

/// An index or a manifest as it was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The hash of the bytes.
    pub digest: Digest,
    /// The bytes, which others have signed.
    pub bytes: Bytes,
    /// What they mean.
    pub document: Document,
}

/// Reads from registries with the pull secrets of one namespace. Cheap to clone; what it was granted is kept and shared by the clones.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

struct Inner {
    settings: Arc<Settings>,
    credentials: Credentials,
    tokens: Mutex<Tokens>,
}

impl Registry {
    /// Reads with these passwords, which must all be of one namespace.
    pub fn new(settings: Arc<Settings>, credentials: Credentials) -> Self {
        Self(Arc::new(Inner { settings, credentials, tokens: Mutex::default() }))
    }

    fn settings(&self) -> &Settings {
        &self.0.settings
    }

    fn credentials(&self) -> &Credentials {
        &self.0.credentials
    }

    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        // What a panic leaves behind is at worst a token too many.
        self.0.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn origin(&self, location: &Location) -> Origin {
        let tls = !self.settings().insecure.contains(location.registry());
        let address = location.host().parse::<Ipv6Addr>().map(|address| address.to_string());
        let host = address.unwrap_or_else(|_| location.host().to_owned());
        Origin { tls, host, port: location.port().unwrap_or(default_port(tls)) }
    }

    /// What a reference means now. Where it has a digest, that and nothing else.
    pub async fn resolve(&self, reference: &Reference) -> Result<Fetched, RegistryError> {
        let asked = Asked { registry: String::new(), what: String::new(), at: None };
        let location = reference.locate().map_err(|why| asked.failed(why))?;
        let wanted = reference.wanted().map_err(|why| asked.failed(why))?;
        self.document(&location, &wanted).await
    }

    /// The index or manifest of this digest.
    pub async fn manifest(&self, location: &Location, digest: &Digest) -> Result<Fetched, RegistryError> {
        self.document(location, &Wanted::Digest(digest.clone())).await
    }

    /// The index or manifest that has this tag now, where there is one.
    pub async fn manifest_by_tag(&self, location: &Location, tag: &str) -> Result<Option<Fetched>, RegistryError> {
        match self.document(location, &Wanted::Tag(tag.to_owned())).await {
            Ok(fetched) => Ok(Some(fetched)),
            Err(error) if error.class() == Class::Missing => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn document(&self, location: &Location, wanted: &Wanted) -> Result<Fetched, RegistryError> {
        let repository = location.repository();
        let name = match wanted {
            Wanted::Tag(tag) => escape::segment(tag),
            Wanted::Digest(digest) => digest.to_string(),
        };
        let question = Question {
            location,
            what: format!("the manifest {} of {repository}", wanted.as_str()),
            path: format!("/v2/{repository}/manifests/{name}"),
            accept: ACCEPTED,
            from: 0,
        };
        let answer = self.ask(&question).await?;
        let answer = self.success(answer).await?;
        let asked = answer.asked.clone();
        let content_type = answer.header(CONTENT_TYPE).map(str::to_owned);
        let told = answer.headers().get(CONTENT_DIGEST).cloned();
        let bytes = self.read(answer, DOCUMENT_LIMIT).await?;
        let digest = Digest::of(&bytes);
        if let Wanted::Digest(wanted) = wanted {
            wanted.check(&bytes).map_err(|mismatch| asked.failed(mismatch))?;
        }
        if let Some(told) = told {
            let told = told.to_str().ok().and_then(|text| text.parse::<Digest>().ok());
            let told = told.ok_or_else(|| asked.failed(Failure::Garbled("its Docker-Content-Digest is no digest")))?;
            told.check(&bytes).map_err(|mismatch| asked.failed(mismatch))?;
        }
        let document = Document::read_as(content_type.as_deref(), &bytes).map_err(|why| asked.failed(why))?;
        Ok(Fetched { digest, bytes, document })
    }

    /// The configuration that a manifest names.
    pub async fn config(&self, location: &Location, descriptor: &Descriptor) -> Result<Config, RegistryError> {
        let bytes = self.bytes(location, descriptor, CONFIG_LIMIT).await?;
        let what = format!("the configuration {} of {}", descriptor.digest, location.repository());
        let asked = Asked { registry: location.registry().to_owned(), what, at: None };
        Config::read(&bytes).map_err(|why| asked.failed(why))
    }
}
