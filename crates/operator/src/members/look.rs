//! Asking the members, with the credentials and the TLS material that the resource names.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, ResourceExt};
use windlass_api::QuorumCluster;
use windlass_systems::{
    etcd, http,
    secret::{Password, Secret as Token},
    transport::{Peer, Transport},
};

use super::{
    auth::{self, NoToken},
    place::{Place, Seen},
    system::{self, Heard, Line},
};
use crate::{Context, dial::TlsMaterial, error::Error, live::get, queue::Key};

/// All members together may keep a login waiting for so long: nobody's pods hold up those who wait to be looked at.
const LOGIN: Duration = Duration::from_mins(1);

/// What the system says of itself, and the token that was shown. A token that is refused is asked for once more.
pub async fn ask(
    context: &Context,
    resource: &QuorumCluster,
    http: &Result<Option<Arc<http::System>>, http::Invalid>,
    tls: Option<&TlsMaterial>,
    peers: &[Peer],
    likely: &[Peer],
    places: &[Place],
) -> (Seen, Option<Token>) {
    let http = match http {
        Ok(http) => http.as_deref(),
        Err(error) => return (Seen::unknown(&error.to_string()), None),
    };
    let transport = match context.dial.transport(tls) {
        Ok(transport) => transport,
        Err(why) => return (Seen::unknown(&format!("the TLS material can't be used: {why}")), None),
    };
    let once = async || {
        let token = tokio::time::timeout(LOGIN, token(context, resource, transport.as_ref(), likely)).await;
        let late = || Err(format!("no member let us log in within {}s", LOGIN.as_secs()).into());
        let token = match token.unwrap_or_else(|_| late()) {
            Ok(token) => token,
            Err(NoToken { why, refused: true }) => return (Heard::from(Seen::refused(&why)), None),
            Err(NoToken { why, refused: false }) => return (Heard::from(Seen::unknown(&why)), None),
        };
        let system = resource.spec.system.type_;
        let line = Line { system, http, transport: transport.as_ref(), token: token.as_ref() };
        (system::ask(line, peers, places, context.settings.patience()).await, token)
    };
    let (heard, token) = once().await;
    if !heard.denied {
        return (heard.seen, token);
    }
    if resource.spec.system.auth.is_none() {
        return (heard.seen, token);
    }
    // It may have expired, or been revoked, or a member that was restarted has forgotten it: once more with a new one.
    context.tokens.forget(&Key::of(resource));
    let (heard, token) = once().await;
    (heard.seen, token)
}

/// The token that the resource tells how to get; none where it tells nothing.
async fn token(
    context: &Context,
    resource: &QuorumCluster,
    transport: &dyn Transport,
    peers: &[Peer],
) -> Result<Option<Token>, NoToken> {
    let Some(auth) = &resource.spec.system.auth else { return Ok(None) };
    // A resource that is older than the schema's rule is asked here, before anything is sent; it is refused in validate.
    auth::check(&resource.spec.system).map_err(|why| format!("spec.system.auth: {why}"))?;
    let key = Key::of(resource);
    let read = async |field: &str, name: &str, entry: &str| {
        let namespace = resource.namespace().unwrap_or_default();
        let secrets: Api<Secret> = Api::namespaced(context.client.clone(), &namespace);
        let secret = get(context, &format!("secrets/{namespace}/{name}"), &secrets, name).await;
        let found = secret.map_err(|error| error.story())?.and_then(|secret| secret.data?.remove(entry));
        let missing = || format!("spec.system.auth.{field}: there is no Secret {name} with {entry} in it");
        Ok::<_, String>(String::from_utf8_lossy(&found.ok_or_else(missing)?.0).into_owned())
    };
    if let Some(name) = &auth.token_secret {
        let token = Token::new(&read("tokenSecret", name, "token").await?);
        return token.map(Some).map_err(|error| format!("spec.system.auth.tokenSecret: Secret {name}: {error}").into());
    }
    if let Some(secret) = &auth.password_secret {
        let name = read("passwordSecret", secret, "username").await?.trim().to_owned();
        let password = Password::new(&read("passwordSecret", secret, "password").await?)
            .map_err(|_| format!("spec.system.auth.passwordSecret: the password in Secret {secret} is empty"))?;
        return context.tokens.of_user(&key, &etcd::Login { name, password }, transport, peers).await;
    }
    context.tokens.get(context, &key, auth, transport, peers).await.map(Some)
}

/// The TLS material from the Secrets that the resource names, all in its own namespace (H41); or, for a person, what is missing.
pub async fn tls(
    context: &Context,
    resource: &QuorumCluster,
    namespace: &str,
) -> Result<Result<Option<TlsMaterial>, String>, Error> {
    let Some(tls) = &resource.spec.system.tls else { return Ok(Ok(None)) };
    let secrets: Api<Secret> = Api::namespaced(context.client.clone(), namespace);
    let read = async |field: &str, name: &str, key: &str| {
        let secret = get(context, &format!("secrets/{namespace}/{name}"), &secrets, name).await?;
        let found = secret.and_then(|secret| secret.data).and_then(|mut data| data.remove(key));
        let missing = || format!("spec.system.tls.{field}: there is no Secret {name} with {key} in it");
        Ok::<_, Error>(found.map(|bytes| bytes.0).ok_or_else(missing))
    };
    let roots = match (&tls.ca_secret, &tls.ca_config_map) {
        (Some(name), _) => read("caSecret", name, "ca.crt").await?,
        (None, Some(name)) => {
            let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
            let map = get(context, &format!("configmaps/{namespace}/{name}"), &maps, name).await?;
            let found = map.and_then(|map| map.data).and_then(|mut data| data.remove("ca.crt"));
            let missing = || format!("spec.system.tls.caConfigMap: there is no ConfigMap {name} with ca.crt in it");
            found.map(String::into_bytes).ok_or_else(missing)
        }
        (None, None) => Err("spec.system.tls: set caSecret or caConfigMap".to_owned()),
    };
    let identity = match &tls.client_secret {
        None => Ok(None),
        Some(name) => {
            let certificate = read("clientSecret", name, "tls.crt").await?;
            let key = read("clientSecret", name, "tls.key").await?;
            certificate.and_then(|certificate| key.map(|key| Some((certificate, key))))
        }
    };
    Ok(roots.and_then(|roots| identity.map(|identity| Some(TlsMaterial { roots, identity }))))
}
