//! Tokens for systems that want one: read from a Secret, or got by logging in, with a token of the operator's ServiceAccount that is good
//! for that alone (see [`account`]) or with a user's password from a Secret.
//!
//! A token that was got is kept until it is about to expire or is refused. None is ever written anywhere.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::time::{Instant, timeout};
use windlass_api::quorum_cluster::system::{Auth, LogIn, System};
use windlass_plan::{
    bug::{self, Bug},
    capabilities::Credentials,
};
use windlass_systems::{
    CallError, Class, Timeouts, etcd,
    openbao::{self, AuthMethod, Lease, Login, Namespace},
    secret::Secret,
    transport::{Peer, Transport},
};

use super::{account, system};
use crate::{Context, queue::Key};

/// Why a token is not sent.
const NEEDS_TLS: &str =
    "without tls, whoever can listen to the network has the token: set tls, or auth.allowPlaintext to accept that";

/// What is wrong with the way to get a token, if there is one: also in a resource that is older than the schema's rules. The operator logs in
/// where its system can be logged in to, and at nothing else that listens there (H41).
pub fn check(written: &System) -> Result<(), String> {
    let Some(auth) = &written.auth else { return Ok(()) };
    let refused = match system::capabilities(written).credentials {
        Credentials::Nobody => Some("none"),
        Credentials::User => auth.password_secret.is_none().then_some("a user from passwordSecret alone"),
        Credentials::Token => auth.token_secret.is_none().then_some("a token from tokenSecret alone"),
        Credentials::TokenOrLogin => auth.password_secret.is_some().then_some("tokenSecret, kubernetes or jwt"),
    };
    if let Some(takes) = refused {
        return Err(format!("the type {} takes {takes}", written.type_.name()));
    }
    if written.tls.is_none() && !auth.allow_plaintext && !bug::active(Bug::PlaintextLogin) {
        return Err(NEEDS_TLS.to_owned());
    }
    Ok(())
}

/// The tokens that were got, one for each resource.
#[derive(Default)]
pub struct Tokens(Mutex<BTreeMap<Key, Held>>);

/// Why there is none, for a person.
pub struct NoToken {
    /// In a sentence.
    pub why: String,
    /// We asked for one and were refused: nothing but another role or another account helps.
    pub refused: bool,
}

impl From<String> for NoToken {
    fn from(why: String) -> Self {
        Self { why, refused: false }
    }
}

#[derive(Clone)]
struct Held {
    /// None where nobody asks who we are.
    token: Option<Secret>,
    whose: Whose,
    /// None for one that does not expire, or does not say when.
    until: Option<Instant>,
}

/// Who a token was got for: another one needs another token.
#[derive(Clone, PartialEq, Eq)]
enum Whose {
    Role(Auth),
    User(etcd::Login),
}

impl Tokens {
    /// Forgets a token that was refused.
    pub fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// What is known: a token, or that none is needed.
    fn held(&self, key: &Key, whose: &Whose) -> Option<Held> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()?;
        let lives = held.until.is_none_or(|until| until > Instant::now());
        (held.whose == *whose && lives).then_some(held)
    }

    fn keep(&self, key: &Key, held: Held) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), held);
    }

    /// The token that is held, or a new one.
    pub async fn get(
        &self,
        context: &Context,
        key: &Key,
        auth: &Auth,
        transport: &dyn Transport,
        peers: &[Peer],
    ) -> Result<Secret, NoToken> {
        let whose = Whose::Role(auth.clone());
        if let Some(Held { token: Some(token), .. }) = self.held(key, &whose) {
            return Ok(token);
        }
        let login = login(context, key, auth).await?;
        // A standby passes a login on; one that is sealed or has just come up does not.
        let ask = async |peer: &Peer| openbao::login(transport, peer, &login, &Timeouts::default()).await;
        let Lease { token, lease, renewable: _ } = first(peers, ask).await?;
        self.keep(key, Held { token: Some(token.clone()), whose, until: lease.map(expiry) });
        Ok(token)
    }

    /// The same for a user of etcd; none where etcd does not ask for one.
    pub async fn of_user(
        &self,
        key: &Key,
        login: &etcd::Login,
        transport: &dyn Transport,
        peers: &[Peer],
    ) -> Result<Option<Secret>, NoToken> {
        let whose = Whose::User(login.clone());
        if let Some(held) = self.held(key, &whose) {
            return Ok(held.token);
        }
        // A learner refuses, and one that is cut off does not answer: the next one may.
        let ask = async |peer: &Peer| etcd::login(transport, peer, login, &Timeouts::default()).await;
        let token = first(peers, ask).await?;
        // Who asks for none today may tomorrow, and then refuses who has none.
        let until = token.is_none().then(|| Instant::now() + NOBODY);
        self.keep(key, Held { token: token.clone(), whose, until });
        Ok(token)
    }
}

/// How long it is believed that nobody asks who we are. Asking at every look would take time that the evidence does not have.
const NOBODY: Duration = Duration::from_secs(30);

/// After so long without an answer the next one is asked beside: one that hangs would use up the time that the evidence has, and keep itself
/// from being replaced.
const SLOW: Duration = Duration::from_millis(500);

/// What the first one says who takes the login; otherwise why nobody does.
async fn first<T>(peers: &[Peer], login: impl AsyncFn(&Peer) -> Result<T, CallError>) -> Result<T, NoToken> {
    let mut failure: Option<CallError> = None;
    let (mut left, mut asked) = (peers.iter(), FuturesUnordered::new());
    loop {
        asked.extend(left.next().map(|peer| login(peer)));
        let patience = if left.len() == 0 { Duration::MAX } else { SLOW };
        match timeout(patience, asked.next()).await {
            Ok(Some(Ok(said))) => return Ok(said),
            // Who refuses has said more than who does not answer.
            Ok(Some(Err(error))) => failure = failure.filter(is_refusal).or(Some(error)),
            Ok(None) => break,
            Err(_) => {}
        }
    }
    Err(match failure {
        Some(error) if is_refusal(&error) => NoToken { why: format!("the login is refused: {error}"), refused: true },
        Some(error) => format!("no token: {error}").into(),
        None => "no token: no pod has an address yet".to_owned().into(),
    })
}

fn is_refusal(error: &CallError) -> bool {
    error.class() == Class::Denied
}

/// A third of its life before its end: time enough to see that the next login fails while the old token still works.
fn expiry(lease: Duration) -> Instant {
    Instant::now() + lease.saturating_sub(lease / 3)
}

async fn login(context: &Context, key: &Key, auth: &Auth) -> Result<Login, String> {
    let (method, LogIn { role, mount, namespace }) = match (&auth.kubernetes, &auth.jwt) {
        (Some(kubernetes), _) => (AuthMethod::Kubernetes, kubernetes),
        (None, Some(jwt)) => (AuthMethod::Jwt, jwt),
        (None, None) => return Err("spec.system.auth names no way to get a token".into()),
    };
    let namespace = namespace.as_deref().map(Namespace::new).transpose();
    let namespace = namespace.map_err(|error| format!("spec.system.auth: {error}"))?;
    let login = Login::new(method, role, account::token(context, key).await?);
    Ok(Login { mount: mount.clone().unwrap_or(login.mount), namespace, ..login })
}
