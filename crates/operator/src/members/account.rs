//! The tokens with which Windlass logs in to OpenBao and Vault: of a ServiceAccount, and for one resource alone.
//!
//! Whoever runs the pods of a QuorumCluster gets to see what they are shown, and may show it elsewhere. So each resource has an audience of its
//! own, which neither the API server nor another resource's OpenBao takes (H41).

use std::{fs, path::PathBuf};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Api, api::PostParams};
use serde_json::Value;
use windlass_systems::secret::Secret;

use crate::{Context, queue::Key};

/// Where such tokens come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tokens {
    /// The API server gives one, of this ServiceAccount.
    Requested {
        /// Its namespace.
        namespace: String,
        /// Its name.
        account: String,
    },
    /// Somebody put one there.
    File(PathBuf),
}

impl Tokens {
    /// The operator's own ServiceAccount, as `deploy/rbac.yaml` has it.
    pub fn shipped() -> Self {
        Self::Requested { namespace: "windlass-system".to_owned(), account: "windlass".to_owned() }
    }
}

/// How long one is good for: a login takes a moment. The API server gives none for less.
const SECONDS: i64 = 600;

/// Whom the tokens of a resource are for.
pub fn audience(resource: &Key) -> String {
    format!("windlass/{resource}")
}

/// A token to log in with for a resource. The error is for a person.
pub async fn token(context: &Context, resource: &Key) -> Result<Secret, String> {
    let audience = audience(resource);
    let text = match &context.settings.login_tokens {
        Tokens::File(path) => fs::read_to_string(path)
            .map_err(|error| format!("the token to log in with can't be read from {}: {error}", path.display()))?,
        Tokens::Requested { namespace, account } => requested(context, namespace, account, &audience).await?,
    };
    is_for(&text, &audience).map_err(|why| format!("the token to log in with {why}"))?;
    Secret::new(&text).map_err(|error| format!("the token to log in with: {error}"))
}

async fn requested(context: &Context, namespace: &str, account: &str, audience: &str) -> Result<String, String> {
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: vec![audience.to_owned()],
            expiration_seconds: Some(SECONDS),
            ..TokenRequestSpec::default()
        },
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(context.client.clone(), namespace);
    let (what, params) = (format!("serviceaccounts/{namespace}/{account}/token"), PostParams::default());
    let send = accounts.create_token_request(account, &params, &request);
    let granted = context.bounded(context.settings.read_deadline, "create", &what, send).await;
    let granted = granted.map_err(|error| format!("there is no token to log in with: {}", error.story()))?;
    granted.status.map(|status| status.token).ok_or_else(|| "the API server gave no token to log in with".to_owned())
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
    Err(format!("is for {} and not for {audience} alone, so it is shown to nobody", said.join(", ")))
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::is_for;

    const AUDIENCE: &str = "windlass/secrets/openbao";

    fn token(claims: &Value) -> String {
        format!("e30.{}.c2lnbmF0dXJl\n", BASE64_URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    #[rstest]
    #[case::alone(json!({"aud": ["windlass/secrets/openbao"]}))]
    #[case::as_a_text(json!({"aud": "windlass/secrets/openbao"}))]
    fn a_token_for_logging_in_is_shown(#[case] claims: Value) {
        assert_eq!(is_for(&token(&claims), AUDIENCE), Ok(()));
    }

    /// What the API server takes gives whoever gets it the operator's rights (H41).
    #[rstest]
    #[case::the_api_servers(json!({"aud": ["https://kubernetes.default.svc.cluster.local"]}), "is for https://kubernetes.default.svc")]
    #[case::both(json!({"aud": ["windlass/secrets/openbao", "https://kubernetes.default.svc"]}), "windlass/secrets/openbao, https")]
    #[case::another_resources(json!({"aud": ["windlass/others/openbao"]}), "is for windlass/others/openbao")]
    #[case::nobodys(json!({"aud": []}), "not for windlass/secrets/openbao alone")]
    #[case::one_that_does_not_say(json!({"sub": "system:serviceaccount:windlass-system:windlass"}), "says whom it is for")]
    fn one_for_anybody_else_is_not(#[case] claims: Value, #[case] why: &str) {
        let said = is_for(&token(&claims), AUDIENCE).unwrap_err();
        assert!(said.contains(why), "{said}");
    }

    #[rstest]
    fn what_is_no_token_is_not(#[values("", "s.root", "a.b.c", "...")] text: &str) {
        assert!(is_for(text, AUDIENCE).is_err());
    }
}
