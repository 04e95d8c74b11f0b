//! How applications are reached, straight to the pod's address, with the TLS material that the resource names; and as whom.

use std::{fs, path::PathBuf, sync::Arc};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::Value;
use windlass_systems::{
    network::{Identity, Network},
    secret::Secret,
    transport::Transport,
};

/// TLS material from Secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsMaterial {
    /// Whom to trust, PEM.
    pub roots: Vec<u8>,
    /// Who we are, PEM: certificate chain and key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Makes transports.
pub trait Dial: Send + Sync {
    /// A transport with this TLS material; plain HTTP without. The error is for a person.
    fn transport(&self, tls: Option<&TlsMaterial>) -> Result<Arc<dyn Transport>, String>;

    /// The token to log in to OpenBao and Vault with, as it is now: it is replaced while the operator runs. Whoever runs the pods of a
    /// QuorumCluster gets to see it, so it must be good for nothing else (H41). The error is for a person.
    fn login_token(&self) -> Result<Secret, String>;
}

/// Over the network.
pub struct OverNetwork {
    /// Where the kubelet writes the token to log in with.
    pub login_token: PathBuf,
    /// Whom that token must be for.
    pub login_audience: String,
}

/// Where the operator's manifest mounts the token to log in with.
pub const LOGIN_TOKEN: &str = "/var/run/secrets/windlass.dev/login/token";
/// Whom tokens to log in with are for: not the API server, so that it refuses them.
pub const LOGIN_AUDIENCE: &str = "windlass-login";

impl Dial for OverNetwork {
    fn transport(&self, tls: Option<&TlsMaterial>) -> Result<Arc<dyn Transport>, String> {
        let Some(TlsMaterial { roots, identity }) = tls else { return Ok(Arc::new(Network::plain())) };
        let identity = identity.as_ref().map(|(certificate, key)| Identity { certificate, key });
        Network::with_tls(roots, identity)
            .map(|network| Arc::new(network) as Arc<dyn Transport>)
            .map_err(|error| error.to_string())
    }

    fn login_token(&self) -> Result<Secret, String> {
        let path = self.login_token.display();
        let text = fs::read_to_string(&self.login_token)
            .map_err(|error| format!("the token to log in with can't be read from {path}: {error}"))?;
        is_for(&text, &self.login_audience).map_err(|why| format!("the token to log in with in {path} {why}"))?;
        Secret::new(&text).map_err(|error| format!("the token to log in with in {path}: {error}"))
    }
}

/// Refuses a token that is for anybody else as well. Nobody checks its signature here: it is our own, and only its kind may be wrong.
fn is_for(token: &str, audience: &str) -> Result<(), String> {
    let claims = token.trim().split('.').nth(1).and_then(|part| BASE64_URL_SAFE_NO_PAD.decode(part).ok());
    let claims = claims.and_then(|claims| serde_json::from_slice::<Value>(&claims).ok());
    let said = match claims.as_ref().map(|claims| &claims["aud"]) {
        Some(Value::String(one)) => vec![one.as_str()],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => return Err("is no ServiceAccount token that says whom it is for".into()),
    };
    if said == [audience] {
        return Ok(());
    }
    let (said, advice) = (said.join(", "), "mount one with that audience, as deploy/operator.yaml does");
    Err(format!("is for {said} and not for {audience} alone, so it is shown to nobody; {advice}"))
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::{LOGIN_AUDIENCE, is_for};

    fn token(claims: &Value) -> String {
        format!("e30.{}.c2lnbmF0dXJl\n", BASE64_URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    #[rstest]
    #[case::alone(json!({"aud": ["windlass-login"]}))]
    #[case::as_a_text(json!({"aud": "windlass-login"}))]
    fn a_token_for_logging_in_is_shown(#[case] claims: Value) {
        assert_eq!(is_for(&token(&claims), LOGIN_AUDIENCE), Ok(()));
    }

    /// What the API server takes gives whoever gets it the operator's rights (H41).
    #[rstest]
    #[case::the_api_servers(json!({"aud": ["https://kubernetes.default.svc.cluster.local"]}), "is for https://kubernetes.default.svc")]
    #[case::both(json!({"aud": ["windlass-login", "https://kubernetes.default.svc"]}), "windlass-login, https")]
    #[case::nobodys(json!({"aud": []}), "not for windlass-login alone")]
    #[case::one_that_does_not_say(json!({"sub": "system:serviceaccount:windlass-system:windlass"}), "says whom it is for")]
    fn one_for_anybody_else_is_not(#[case] claims: Value, #[case] why: &str) {
        let said = is_for(&token(&claims), LOGIN_AUDIENCE).unwrap_err();
        assert!(said.contains(why), "{said}");
    }

    #[rstest]
    fn what_is_no_token_is_not(#[values("", "s.root", "a.b.c", "...")] text: &str) {
        assert!(is_for(text, LOGIN_AUDIENCE).is_err());
    }
}
