//! Tokens for systems that want one: read from a Secret, or got by logging in with a token of the operator's ServiceAccount that is good
//! for that alone (see [`account`]).
//!
//! A token that was got is kept until it is about to expire or is refused. None is ever written anywhere.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use windlass_api::quorum_cluster::{Auth, LogIn};
use windlass_systems::{
    CallError, Class, Timeouts,
    openbao::{self, AuthMethod, Lease, Login, Namespace},
    secret::Secret,
    transport::{Peer, Transport},
};

use crate::{Context, account, queue::Key};

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
    token: Secret,
    /// Who it was got for: another role needs another token.
    auth: Auth,
    /// None for one that does not expire.
    until: Option<Instant>,
}

impl Tokens {
    /// Forgets a token that was refused.
    pub fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    fn held(&self, key: &Key, auth: &Auth) -> Option<Secret> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()?;
        let lives = held.until.is_none_or(|until| until > Instant::now());
        (held.auth == *auth && lives).then_some(held.token)
    }

    fn keep(&self, key: &Key, auth: &Auth, lease: Lease) -> Secret {
        let held = Held { token: lease.token.clone(), auth: auth.clone(), until: lease.lease.map(expiry) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), held);
        lease.token
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
        if let Some(token) = self.held(key, auth) {
            return Ok(token);
        }
        let login = login(context, key, auth).await?;
        let mut failure: Option<CallError> = None;
        // A standby passes a login on; one that is sealed or has just come up does not.
        for peer in peers {
            match openbao::login(transport, peer, &login, &Timeouts::default()).await {
                Ok(lease) => return Ok(self.keep(key, auth, lease)),
                // Who refuses has said more than who does not answer.
                Err(error) => failure = failure.filter(is_refusal).or(Some(error)),
            }
        }
        Err(match failure {
            Some(error) if is_refusal(&error) => {
                NoToken { why: format!("the login is refused: {error}"), refused: true }
            }
            Some(error) => format!("no token: {error}").into(),
            None => "no token: no pod has an address yet".to_owned().into(),
        })
    }
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
