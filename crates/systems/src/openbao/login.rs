//! A token in exchange for the operator's own: the same request for Kubernetes' and for JWT authentication.
//!
//! Who keeps the token, and for how long, is the caller's. A mount, a role and a namespace come from a user's resource and must not be
//! able to reach anything but a login.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};

use super::{NAMESPACE, wire};
use crate::{
    call::{CallError, Timeouts, call},
    escape,
    secret::Secret,
    transport::{Peer, Transport},
};

/// By what a login proves who is asking. Both take a role and a token of the service account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMethod {
    /// The server asks Kubernetes about the token.
    Kubernetes,
    /// The server checks the token's signature and claims itself.
    Jwt,
}

impl AuthMethod {
    /// Where it is mounted unless somebody chose otherwise.
    pub fn default_mount(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::Jwt => "jwt",
        }
    }
}

/// A namespace of the server, not of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace(HeaderValue);

/// A text that can't be a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a namespace is a path of visible characters, without spaces")]
pub struct NoNamespace;

impl Namespace {
    /// A path, like `team/project`.
    pub fn new(path: &str) -> Result<Self, NoNamespace> {
        if path.is_empty() || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(NoNamespace);
        }
        HeaderValue::from_str(path).map(Self).map_err(|_| NoNamespace)
    }
}

/// How to log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Where the method is mounted, under `auth/`.
    pub mount: String,
    /// The role to take.
    pub role: String,
    /// The service account's token.
    pub jwt: Secret,
    /// The namespace that the method is mounted in; none for the root, where a token must be from to ask about Raft.
    pub namespace: Option<Namespace>,
}

impl Login {
    /// At the method's usual mount, in the root namespace.
    pub fn new(method: AuthMethod, role: impl Into<String>, jwt: Secret) -> Self {
        Self { mount: method.default_mount().to_owned(), role: role.into(), jwt, namespace: None }
    }

    fn request(&self) -> Request<Bytes> {
        let body = serde_json::json!({ "role": self.role, "jwt": self.jwt.reveal() });
        let mut request = Request::new(Bytes::from(body.to_string()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = login_path(&self.mount);
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(Namespace(namespace)) = &self.namespace {
            request.headers_mut().insert(NAMESPACE, namespace.clone());
        }
        request
    }
}

/// A token and how long it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The token.
    pub token: Secret,
    /// How long it lives from now; none where it does not expire.
    pub lease: Option<Duration>,
    /// Whether its life can be prolonged. Logging in again does as well.
    pub renewable: bool,
}

/// Asks a pod for a token; a standby passes this on to the leader. A role or a service account that the server does not accept is an
/// error of the class [`Denied`](crate::Class::Denied).
pub async fn login(
    transport: &dyn Transport,
    peer: &Peer,
    login: &Login,
    timeouts: &Timeouts,
) -> Result<Lease, CallError> {
    let reply = call(transport, peer, login.request(), timeouts.verb).await?.hiding(login.jwt.reveal());
    let is_bad = reply.status() == StatusCode::BAD_REQUEST;
    // With a login, a bad request is one with a bad role or a bad token.
    reply.read(|answer| wire::lease(&answer)).map_err(|error| error.denied_if(|_| is_bad))
}

fn login_path(mount: &str) -> Uri {
    // Without the names that lead upwards: from there the path would be another's.
    let names = mount.split('/').filter(|name| !matches!(*name, "" | "." | ".."));
    let mount: Vec<String> = names.map(escape::segment).collect();
    // Every byte is one that a path may hold, so only a mount of absurd length fails; the bare path then is no method's.
    Uri::try_from(format!("/v1/auth/{}/login", mount.join("/"))).unwrap_or_else(|_| Uri::from_static("/v1/auth/login"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("kubernetes", "/v1/auth/kubernetes/login")]
    #[case("/team/jwt-operator/", "/v1/auth/team/jwt-operator/login")]
    #[case("a?b#c d", "/v1/auth/a%3Fb%23c%20d/login")]
    #[case("../sys/./seal?", "/v1/auth/sys/seal%3F/login")]
    #[case("", "/v1/auth//login")]
    fn a_mount_stays_inside_the_path_of_a_login(#[case] mount: &str, #[case] path: &str) {
        assert_eq!(login_path(mount), path);
    }

    #[test]
    fn a_mount_of_absurd_length_is_no_methods() {
        assert_eq!(login_path(&"x".repeat(70_000)), "/v1/auth/login");
    }

    #[rstest]
    #[case("team/project", true)]
    #[case("", false)]
    #[case("a b", false)]
    #[case("a\nX-Vault-Token: b", false)]
    fn a_namespace_is_a_path(#[case] text: &str, #[case] fine: bool) {
        assert_eq!(Namespace::new(text).is_ok(), fine);
    }
}
