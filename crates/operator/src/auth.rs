//! Tokens for systems that want one: read from a Secret, or got by logging in with a token of the operator's ServiceAccount that is good
//! for that alone.
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
    Timeouts,
    openbao::{self, AuthMethod, Lease, Login, Namespace},
    secret::Secret,
    transport::{Peer, Transport},
};

use crate::{dial::Dial, queue::Key};

/// The tokens that were got, one for each resource.
#[derive(Default)]
pub struct Tokens(Mutex<BTreeMap<Key, Held>>);

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

    /// The token that is held, or a new one. The error is for a person.
    pub async fn get(
        &self,
        key: &Key,
        auth: &Auth,
        dial: &dyn Dial,
        transport: &dyn Transport,
        peers: &[Peer],
    ) -> Result<Secret, String> {
        if let Some(token) = self.held(key, auth) {
            return Ok(token);
        }
        let login = login(auth, dial)?;
        let mut failure = "no pod has an address yet".to_owned();
        // A standby passes a login on; one that is sealed or has just come up does not.
        for peer in peers {
            match openbao::login(transport, peer, &login, &Timeouts::default()).await {
                Ok(lease) => return Ok(self.keep(key, auth, lease)),
                Err(error) => failure = error.to_string(),
            }
        }
        Err(format!("no token: {failure}"))
    }
}

/// A third of its life before its end: time enough to see that the next login fails while the old token still works.
fn expiry(lease: Duration) -> Instant {
    Instant::now() + lease.saturating_sub(lease / 3)
}

fn login(auth: &Auth, dial: &dyn Dial) -> Result<Login, String> {
    let (method, LogIn { role, mount, namespace }) = match (&auth.kubernetes, &auth.jwt) {
        (Some(kubernetes), _) => (AuthMethod::Kubernetes, kubernetes),
        (None, Some(jwt)) => (AuthMethod::Jwt, jwt),
        (None, None) => return Err("spec.system.auth names no way to get a token".into()),
    };
    let login = Login::new(method, role, dial.login_token()?);
    let namespace = namespace.as_deref().map(Namespace::new).transpose();
    let namespace = namespace.map_err(|error| format!("spec.system.auth: {error}"))?;
    Ok(Login { mount: mount.clone().unwrap_or(login.mount), namespace, ..login })
}
