//! Tokens of ServiceAccounts, which the embedded API does not know: an API server that gives them to whoever asks.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

/// The same client, with tokens.
pub fn with_tokens(client: kube::Client) -> kube::Client {
    let send = move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let path = request.uri().path();
            if !(path.contains("/serviceaccounts/") && path.ends_with("/token")) {
                return client.send(request).await;
            }
            let body = request.into_body().collect_bytes().await?;
            let mut asked: Value = serde_json::from_slice(&body).map_err(kube::Error::SerdeError)?;
            let claims = json!({"aud": asked["spec"]["audiences"]}).to_string();
            let token = format!("e30.{}.c2lnbmF0dXJl", BASE64_URL_SAFE_NO_PAD.encode(claims));
            asked["status"] = json!({"token": token, "expirationTimestamp": "2030-01-01T00:00:00Z"});
            Ok(Response::new(Body::from(asked.to_string().into_bytes())))
        }
    };
    kube::Client::new(tower::service_fn(send), "default")
}
