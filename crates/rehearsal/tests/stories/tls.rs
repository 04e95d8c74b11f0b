//! The Secrets that TLS needs: missing, garbage, half there. The material is read as it is in production; only the sockets are not.

use std::{future::Future, pin::Pin, sync::Arc};

use crate::support::{A_WHILE, Spoken, TO, tell_with, three, with};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use serde_json::{Value, json};
use windlass_operator::{
    Dial,
    dial::{OverNetwork, TlsMaterial},
};
use windlass_rehearsal::{context, pd, trial::Ending};
use windlass_sim::{
    harness::Seat,
    scenario::{Action, Subject},
};
use windlass_systems::transport::{Fault, Peer, Transport};

/// A certificate that signs nothing.
const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----
MIIBfzCCASWgAwIBAgIUWAm2yzsDW1ukxmMCc+6MuzhP/gAwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJcmVoZWFyc2FsMCAXDTI2MTExNTA5NTE0M1oYDzIxMjYxMDIy
MDk1MTQzWjAUMRIwEAYDVQQDDAlyZWhlYXJzYWwwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATCj9jArjBXiteYMy5o+aWC5K0Tn8OhW9FASN+G/rzDfWR8eTwJwTEr
ExWQTjZlIYdjTuLNdd6EG4Iv8+eoakLJo1MwUTAdBgNVHQ4EFgQUx5Zyz5e9C50P
NCa5dVxlVK7TfiIwHwYDVR0jBBgwFoAUx5Zyz5e9C50PNCa5dVxlVK7TfiIwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEArY7HUqPTJbItYbgaq4yi
/ACaHp0wn8ZB/qXfrQ2ge0gCIHnm3SL1lQADZJC0GHFNEPz7J9kYMUNpV1mNkN4l
EQUg
-----END CERTIFICATE-----
";

/// Reads the material as production does, then goes the embedded way.
struct Checked(Arc<dyn Dial>);

impl Dial for Checked {
    fn transport(&self, tls: Option<&TlsMaterial>) -> Result<Arc<dyn Transport>, String> {
        OverNetwork.transport(tls)?;
        self.0.transport(tls)
    }
}

fn operator(seat: Seat) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        let mut context = context(seat);
        context.dial = Arc::new(Checked(context.dial.clone()));
        windlass_operator::run(&context, std::future::pending()).await;
    })
}

/// Members whose certificates are for all names of one domain, and for nothing else.
struct Certified {
    domain: &'static str,
    way: Arc<dyn Transport>,
}

impl Transport for Certified {
    fn send(&self, peer: &Peer, request: Request<Bytes>) -> BoxFuture<'static, std::io::Result<Response<Bytes>>> {
        let label = peer.server_name.strip_suffix(self.domain).filter(|label| !label.contains('.'));
        if label.is_some_and(|label| label == peer.pod) {
            return self.way.send(peer, request);
        }
        let fault = Fault::Untrusted(format!("not valid for {}", peer.server_name));
        Box::pin(async move { Err(fault.into()) })
    }
}

struct WithCertificates(Arc<dyn Dial>);

impl Dial for WithCertificates {
    fn transport(&self, tls: Option<&TlsMaterial>) -> Result<Arc<dyn Transport>, String> {
        Ok(Arc::new(Certified { domain: ".pd.example", way: self.0.transport(tls)? }))
    }
}

fn operator_that_verifies(seat: Seat) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        let mut context = context(seat);
        context.dial = Arc::new(WithCertificates(context.dial.clone()));
        windlass_operator::run(&context, std::future::pending()).await;
    })
}

/// H42: the address is dialled as ever, another name is verified.
#[test]
fn certificates_for_names_outside_the_cluster() {
    let mut objects = with(three(), "QuorumCluster", |resource| resource["spec"]["system"]["tls"] = ca_only());
    objects.push(authority());
    let mend = pd::spec(json!({"system": {"tls": {"serverName": "{pod}.pd.example"}}}));
    let tale = tell_with(objects, vec![pd::after(A_WHILE, mend)], Ending::Ready, &operator_that_verifies);
    tale.touched_nothing(tale.before_all());
    tale.last_said(tale.before_all()).is_waiting("MembersUnknown", &["not valid for pd-0.pd.tikv.svc"]);
    tale.ended_ready_at(TO);
}

fn secret(name: &str, entries: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": pd::NAMESPACE}, "data": entries})
}

/// Bytes as Secrets carry them.
fn encoded(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |bits: u32| char::from(DIGITS[usize::try_from(bits & 63).expect("six bits")]);
    let group = |bytes: &[u8]| {
        let bits = (0..3).fold(0, |bits, index| bits << 8 | u32::from(bytes.get(index).copied().unwrap_or(0)));
        let digits: String =
            [18, 12, 6, 0].into_iter().take(bytes.len() + 1).map(|shift| digit(bits >> shift)).collect();
        format!("{digits:=<4}")
    };
    text.as_bytes().chunks(3).map(group).collect()
}

fn authority() -> Value {
    secret("ca", &json!({"ca.crt": encoded(AUTHORITY)}))
}

/// With these Secrets and this TLS block, until mended.
fn wrong_until(secrets: Vec<Value>, tls: &Value, mend: Action) -> Spoken {
    let mut objects = with(three(), "QuorumCluster", |resource| resource["spec"]["system"]["tls"] = tls.clone());
    objects.extend(secrets);
    let tale = tell_with(objects, vec![pd::after(A_WHILE, mend)], Ending::Ready, &operator);
    tale.touched_nothing(tale.before_all());
    tale.ended_ready_at(TO);
    tale.last_said(tale.before_all())
}

fn ca_only() -> Value {
    json!({"caSecret": "ca"})
}

fn with_client() -> Value {
    json!({"caSecret": "ca", "clientSecret": "client"})
}

#[test]
fn a_missing_authority() {
    let spoken = wrong_until(vec![], &ca_only(), Action::Create(authority()));
    spoken.is_waiting("MembersUnknown", &["spec.system.tls.caSecret", "ca.crt"]);
}

#[test]
fn an_authority_in_a_config_map() {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ca", "namespace": pd::NAMESPACE},
        "data": {"ca.crt": AUTHORITY},
    });
    let spoken = wrong_until(vec![], &json!({"caConfigMap": "ca"}), Action::Create(map));
    spoken.is_waiting("MembersUnknown", &["spec.system.tls.caConfigMap", "ca.crt"]);
}

#[test]
fn an_authority_that_is_garbage() {
    let target = Subject { resource: "secrets".into(), namespace: pd::NAMESPACE.into(), name: "ca".into() };
    let mend = Action::Patch { target, patch: json!({"data": {"ca.crt": encoded(AUTHORITY)}}) };
    let spoken = wrong_until(vec![secret("ca", &json!({"ca.crt": encoded("garbage")}))], &ca_only(), mend);
    spoken.is_waiting("MembersUnknown", &["the TLS material can't be used", "ca.crt"]);
    assert!(!spoken.message.contains("garbage"), "what was given is not repeated: {}", spoken.message);
}

#[test]
fn a_missing_client_certificate() {
    let mend = pd::spec(json!({"system": {"tls": {"clientSecret": null}}}));
    let spoken = wrong_until(vec![authority()], &with_client(), mend);
    spoken.is_waiting("MembersUnknown", &["spec.system.tls.clientSecret", "tls."]);
}

#[test]
fn a_client_certificate_that_is_garbage() {
    let garbage = secret("client", &json!({"tls.crt": encoded("garbage"), "tls.key": encoded("hunter2")}));
    let mend = pd::spec(json!({"system": {"tls": {"clientSecret": null}}}));
    let spoken = wrong_until(vec![authority(), garbage], &with_client(), mend);
    spoken.is_waiting("MembersUnknown", &["the TLS material can't be used", "tls."]);
    assert!(!spoken.message.contains("hunter2"), "what was given is not repeated: {}", spoken.message);
}

#[test]
fn a_client_certificate_without_its_key() {
    let half = secret("client", &json!({"tls.crt": encoded(AUTHORITY)}));
    let mend = pd::spec(json!({"system": {"tls": {"clientSecret": null}}}));
    let spoken = wrong_until(vec![authority(), half], &with_client(), mend);
    spoken.is_waiting("MembersUnknown", &["spec.system.tls.clientSecret", "tls.key"]);
}

#[test]
fn bytes_are_encoded_as_secrets_carry_them() {
    for (text, expected) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
        assert_eq!(encoded(text), expected);
    }
}
