//! One question to a registry: who is asked, what they are shown, and where they lead.
//!
//! Everything on the wire goes through [`Registry::send`], and nothing is dialled but an address that [`super::route`] has judged. Only GET is
//! ever sent, but for the form that exchanges an identity token. A question is asked again only after a challenge, with what it asks for; a
//! registry that has no time is the caller's to wait for.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use tokio::time::{Instant, timeout};
use windlass_systems::{Peer, Streamed, Transport};

use crate::{
    Location,
    document::{Unreadable, cut},
    registry::{
        Registry,
        auth::{self, Challenge},
        credentials::Credential,
        error::{Asked, Failure, RegistryError, Shown, told},
        route::{self, Hop, Neighbourhood, Origin, Refusal, Standing},
    },
};

/// How many addresses of one name are tried.
const ADDRESSES: usize = 3;
/// The longest body of a refusal that is read, for the specification's words in it.
const REFUSAL_LIMIT: usize = 16 * 1024;
/// The longest wait that is believed.
const LONGEST_WAIT: Duration = Duration::from_hours(1);
/// How long a password that was accepted is shown without being asked for it first.
const PASSWORD_KEPT: Duration = Duration::from_mins(5);

/// A question.
pub(super) struct Question<'a> {
    pub location: &'a Location,
    /// In words.
    pub what: String,
    /// Path and query.
    pub path: String,
    /// For `Accept`.
    pub accept: &'static str,
    /// From which byte on.
    pub from: u64,
}

/// A registry that asks who is asking.
struct Door<'a> {
    repository: &'a str,
    home: &'a Origin,
    /// What neighbourhoods it is in.
    own: BTreeSet<Neighbourhood>,
    asked: Asked,
    challenges: Vec<Challenge>,
}

/// An answer of any status but a redirect.
pub(super) struct Answer {
    pub asked: Asked,
    /// Who answered, and to what.
    pub hop: Hop,
    response: Response<Streamed>,
    /// Whether somebody else than the registry answered.
    has_left: bool,
    /// What neighbourhoods the registry is in.
    own: BTreeSet<Neighbourhood>,
    shown: Shown,
}

impl Answer {
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.response.headers().get(name).and_then(|value| value.to_str().ok())
    }

    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    pub fn length(&self) -> Option<u64> {
        self.header(header::CONTENT_LENGTH).and_then(|text| text.parse().ok())
    }

    pub fn into_body(self) -> Streamed {
        self.response.into_body()
    }

    fn asks_who(&self) -> bool {
        self.status() == StatusCode::UNAUTHORIZED && !self.has_left
    }

    fn is_denied(&self) -> bool {
        matches!(self.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) && !self.has_left
    }
}

impl Registry {
    /// Asks, shows what is asked for, and follows where that leads.
    pub(super) async fn ask(&self, question: &Question<'_>) -> Result<Answer, RegistryError> {
        let (home, repository) = (self.origin(question.location), question.location.repository());
        let known = self.tokens().get(&home, repository, Instant::now());
        let shown = known.as_ref().and_then(|_| self.credentials().candidates(question.location).first().copied());
        let answer = self.follow(question, &home, known, self.shown(shown)).await?;
        if !answer.asks_who() {
            return Ok(answer);
        }
        self.tokens().forget(&home, repository);
        self.ask_again(question, &home, answer).await
    }

    /// Asks again with each credential that is for this place, until one is accepted.
    async fn ask_again(&self, question: &Question<'_>, home: &Origin, first: Answer) -> Result<Answer, RegistryError> {
        let door = Door {
            repository: question.location.repository(),
            home,
            own: first.own.clone(),
            asked: first.asked.clone(),
            challenges: challenges(&first)?,
        };
        let candidates = self.credentials().candidates(question.location);
        let candidates = if candidates.is_empty() { vec![None] } else { candidates.into_iter().map(Some).collect() };
        let mut last = Ok(first);
        for candidate in candidates {
            let (header, lifetime) = match self.authorization(&door, candidate).await {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(error) if matches!(error.failure(), Failure::Denied { .. }) => {
                    last = Err(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let answer = self.follow(question, home, Some(header.clone()), self.shown(candidate)).await?;
            if !answer.is_denied() {
                self.tokens().keep(home, door.repository, header, lifetime, Instant::now());
                return Ok(answer);
            }
            last = Ok(answer);
        }
        last
    }

    /// What to show, and for how long it is good: a token where one can be had, a password otherwise.
    async fn authorization(
        &self,
        door: &Door<'_>,
        candidate: Option<&Credential>,
    ) -> Result<Option<(HeaderValue, Duration)>, RegistryError> {
        let bearer = door.challenges.iter().find_map(|challenge| match challenge {
            Challenge::Bearer { realm, service } => Some((realm, service)),
            Challenge::Basic | Challenge::Other => None,
        });
        if let Some((realm, service)) = bearer {
            let realm = route::realm(door.home, realm).map_err(|refusal| door.asked.failed(refusal))?;
            let granted = self.token(door, &realm, service.as_deref(), candidate).await?;
            return Ok(Some((granted.token.bearer(), granted.lifetime)));
        }
        let password = candidate.and_then(Credential::basic).filter(|_| door.challenges.contains(&Challenge::Basic));
        Ok(password.map(|header| (header, PASSWORD_KEPT)))
    }

    /// Fetches a token from a realm. A realm does not redirect.
    async fn token(
        &self,
        door: &Door<'_>,
        realm: &Hop,
        service: Option<&str>,
        candidate: Option<&Credential>,
    ) -> Result<auth::Granted, RegistryError> {
        let at = (realm.origin != *door.home).then(|| realm.origin.host.clone());
        let asked = Asked { what: format!("a token for {}", door.repository), at, ..door.asked.clone() };
        let request =
            token_request(door, realm, service, candidate).ok_or_else(|| asked.failed(Refusal::Unreadable))?;
        let standing = self.standing(door.home, &realm.origin, &door.own);
        let (addresses, _) = self.judged(&asked, &realm.origin, standing).await?;
        let transport = self.settings().for_realm(door.home, &realm.origin);
        let response = self.send(&asked, transport, &realm.origin, &addresses, &request).await?;
        let (shown, code) = (self.shown(candidate), response.status().as_u16());
        if response.status().is_redirection() {
            return Err(asked.failed(Refusal::TokenRedirected));
        }
        // What realms say to an identity token that is no longer good.
        if code == 400 && candidate.is_some() {
            return Err(asked.failed(Failure::Denied { code, why: None, shown }));
        }
        let hop = realm.clone();
        let answer = Answer { asked: asked.clone(), hop, response, has_left: true, own: BTreeSet::new(), shown };
        let answer = self.success(answer).await?;
        let body = self.read(answer, auth::TOKEN_LIMIT).await?;
        auth::granted(&body).map_err(|_| asked.failed(Failure::Garbled("it holds no token")))
    }

    /// Asks the registry, and follows its redirects.
    async fn follow(
        &self,
        question: &Question<'_>,
        home: &Origin,
        authorization: Option<HeaderValue>,
        shown: Shown,
    ) -> Result<Answer, RegistryError> {
        let mut asked =
            Asked { registry: question.location.registry().to_owned(), what: question.what.clone(), at: None };
        let mut hop = Hop { origin: home.clone(), path: question.path.clone() };
        let mut own = BTreeSet::new();
        let mut has_left = false;
        for _ in 0..=route::REDIRECTS {
            let standing = self.standing(home, &hop.origin, &own);
            let (addresses, neighbourhoods) = self.judged(&asked, &hop.origin, standing).await?;
            if own.is_empty() {
                own = neighbourhoods;
            }
            let carried = authorization.as_ref().filter(|_| route::carries(home, has_left, &hop.origin));
            let request = request(question, &hop, carried).ok_or_else(|| asked.failed(Refusal::Unreadable))?;
            let transport = self.settings().for_hop(home, &hop.origin);
            let response = self.send(&asked, transport, &hop.origin, &addresses, &request).await?;
            if !leads_on(response.status()) {
                return Ok(Answer { asked, hop, response, has_left, own, shown });
            }
            let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
            hop = route::redirect(&hop, location.unwrap_or_default()).map_err(|refusal| asked.failed(refusal))?;
            has_left |= hop.origin != *home;
            asked.at = has_left.then(|| hop.origin.host.clone());
        }
        Err(asked.failed(Refusal::TooMany))
    }

    /// A registry may lead to any port of its own host: the person who named it could have named any port, too.
    fn standing<'a>(&self, home: &Origin, hop: &Origin, own: &'a BTreeSet<Neighbourhood>) -> Standing<'a> {
        if hop.host == home.host {
            Standing::Named { is_listed: self.settings().is_listed(home) }
        } else {
            Standing::Led(own)
        }
    }

    /// The addresses to dial, every one of them judged. They are dialled as they are: the name is not looked up again.
    async fn judged(
        &self,
        asked: &Asked,
        origin: &Origin,
        standing: Standing<'_>,
    ) -> Result<(Vec<IpAddr>, BTreeSet<Neighbourhood>), RegistryError> {
        let settings = self.settings();
        let addresses = match origin.host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => timeout(settings.patience.headers, settings.resolver.addresses(&origin.host))
                .await
                .map_err(|_elapsed| asked.failed(Failure::NoAddress("the lookup takes too long".to_owned())))?
                .map_err(|error| asked.failed(Failure::NoAddress(cut(&error.to_string()))))?,
        };
        if addresses.is_empty() {
            return Err(asked.failed(Failure::NoAddress("nobody knows it".to_owned())));
        }
        let neighbourhoods = route::judge(&origin.host, &addresses, &settings.ranges, standing)
            .map_err(|refusal| asked.failed(refusal))?;
        Ok((addresses, neighbourhoods))
    }

    /// Sends a request to the first of these addresses that answers.
    async fn send(
        &self,
        asked: &Asked,
        transport: &dyn Transport,
        origin: &Origin,
        addresses: &[IpAddr],
        request: &Request<Bytes>,
    ) -> Result<Response<Streamed>, RegistryError> {
        let mut request = request.clone();
        let host = HeaderValue::try_from(origin.authority()).map_err(|_| asked.failed(Refusal::Unreadable))?;
        request.headers_mut().insert(header::HOST, host);
        request.headers_mut().insert(header::USER_AGENT, HeaderValue::from_static("windlass"));
        let mut last = Failure::Unconnected;
        for address in addresses.iter().take(ADDRESSES) {
            let peer = Peer {
                pod: origin.host.clone(),
                address: *address,
                port: origin.port,
                server_name: origin.host.clone(),
                tls: origin.tls,
            };
            last = match timeout(self.settings().patience.headers, transport.stream(&peer, request.clone())).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) => Failure::from(&error),
                Err(_elapsed) => Failure::TimedOut,
            };
            // Who is not who he says is not asked again at another address.
            if matches!(last, Failure::Untrusted(_)) {
                break;
            }
        }
        Err(asked.failed(last))
    }

    /// Accepts a success and makes everything else an error.
    pub(super) async fn success(&self, answer: Answer) -> Result<Answer, RegistryError> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let (code, asked, shown) = (status.as_u16(), answer.asked.clone(), answer.shown);
        let after = answer.header(header::RETRY_AFTER).and_then(|text| text.trim().parse().ok());
        let after = after.map(|seconds| Duration::from_secs(seconds).min(LONGEST_WAIT));
        let failure = match code {
            404 | 410 => Failure::Missing,
            429 | 503 => Failure::Busy { code, after },
            500..=599 => Failure::OutOfOrder { code },
            401 | 403 => Failure::Denied { code, why: self.told(answer).await, shown },
            _ => Failure::Status { code, why: self.told(answer).await },
        };
        Err(asked.failed(failure))
    }

    async fn told(&self, answer: Answer) -> Option<&'static str> {
        // All of it in the time of one answer: nobody waits long for words.
        let body = timeout(self.settings().patience.headers, self.read(answer, REFUSAL_LIMIT)).await;
        told(&body.ok()?.ok()?)
    }

    /// The whole body, where it is no longer than `limit`.
    pub(super) async fn read(&self, answer: Answer, limit: usize) -> Result<Bytes, RegistryError> {
        let too_long = answer.asked.failed(Unreadable::TooLong { limit });
        if answer.length().is_some_and(|length| usize::try_from(length).map_or(true, |length| length > limit)) {
            return Err(too_long);
        }
        let asked = answer.asked.clone();
        let mut body = answer.into_body();
        let mut whole = BytesMut::new();
        while let Some(piece) = self.piece(&mut body).await {
            let piece = piece.map_err(|failure| asked.failed(failure))?;
            if whole.len() + piece.len() > limit {
                return Err(too_long);
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }

    /// The next piece of a body.
    pub(super) async fn piece(&self, body: &mut Streamed) -> Option<Result<Bytes, Failure>> {
        match timeout(self.settings().patience.piece, body.next()).await {
            Ok(Some(Ok(piece))) => Some(Ok(piece)),
            Ok(Some(Err(error))) => Some(Err(Failure::from(&error))),
            Ok(None) => None,
            Err(_elapsed) => Some(Err(Failure::TimedOut)),
        }
    }

    fn shown(&self, candidate: Option<&Credential>) -> Shown {
        match candidate {
            Some(_) => Shown::Password,
            None if self.credentials().is_by_plugin() => Shown::NothingByPlugin,
            None => Shown::Nothing,
        }
    }
}

fn leads_on(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn challenges(answer: &Answer) -> Result<Vec<Challenge>, RegistryError> {
    let headers = answer.headers().get_all(header::WWW_AUTHENTICATE).iter();
    let mut found = Vec::new();
    // A line of its own for each is as good as one line for all; more than a few lines are nobody's.
    for header in headers.take(8) {
        let garbled = |_| answer.asked.failed(Failure::Garbled("its challenge is none"));
        found.extend(auth::challenges(header.as_bytes()).map_err(garbled)?);
    }
    Ok(found)
}

/// A login is shown in a header, an identity token in a form. Without either the realm may know the registry as everybody's.
fn token_request(
    door: &Door<'_>,
    realm: &Hop,
    service: Option<&str>,
    candidate: Option<&Credential>,
) -> Option<Request<Bytes>> {
    let request = Request::builder().header(header::ACCEPT, "application/json");
    let path = auth::token_path(&realm.path, service, door.repository);
    match candidate {
        None => request.uri(path).body(Bytes::new()),
        Some(Credential::Login { user, password }) => {
            request.uri(path).header(header::AUTHORIZATION, password.basic(user)).body(Bytes::new())
        }
        Some(Credential::Identity(token)) => request
            .method(Method::POST)
            .uri(&realm.path)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Bytes::from(auth::token_form(token, service, door.repository))),
    }
    .ok()
}

fn request(question: &Question<'_>, hop: &Hop, authorization: Option<&HeaderValue>) -> Option<Request<Bytes>> {
    let mut request = Request::get(&hop.path)
        .header(header::ACCEPT, question.accept)
        // The bytes as they are stored: digests are over these.
        .header(header::ACCEPT_ENCODING, "identity");
    if question.from > 0 {
        request = request.header(header::RANGE, format!("bytes={}-", question.from));
    }
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    request.body(Bytes::new()).ok()
}
