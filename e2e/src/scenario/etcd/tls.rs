//! Members whose certificate names something else than their pods.

use anyhow::{Context as _, Result, ensure};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};

use super::set;
use crate::{say, scenario::trial::Trial};

/// Where members listen with TLS, beside the port on which load and witness speak to them.
const PORT: u16 = 2381;
/// The Secret with the certificate, its key and its authority.
const SECRET: &str = "etcd-tls";
/// The names that the certificate is for.
const DOMAIN: &str = "etcd.windlass.test";

/// A certificate, its key and the authority that signed it, as PEM.
pub struct Issued {
    pub certificate: String,
    pub key: String,
    pub authority: String,
}

/// A certificate for this name, of an authority of its own.
pub fn issue(name: &str) -> Result<Issued> {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec![name.to_owned()])?.signed_by(&key, &authority)?;
    Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem(), authority: authority.pem() })
}

/// Lets the members listen with TLS, too.
pub fn secure(objects: &mut Vec<Value>) -> Result<()> {
    let issued = issue(&format!("*.{DOMAIN}"))?;
    let set = objects.iter_mut().find(|object| object["kind"] == "StatefulSet").context("a StatefulSet")?;
    let pod = &mut set["spec"]["template"]["spec"];
    let volumes = pod["volumes"].as_array_mut().context("volumes")?;
    volumes.push(json!({"name": "tls", "secret": {"secretName": SECRET}}));
    let container = &mut pod["containers"][0];
    let mounts = container["volumeMounts"].as_array_mut().context("mounts")?;
    mounts.push(json!({"name": "tls", "mountPath": "/tls", "readOnly": true}));
    let arguments = container["args"].as_array_mut().context("arguments")?;
    for argument in arguments.iter_mut() {
        if argument == &json!(format!("--listen-client-urls=http://0.0.0.0:{}", set::PORT)) {
            *argument = json!(format!("--listen-client-urls=http://0.0.0.0:{},https://0.0.0.0:{PORT}", set::PORT));
        }
    }
    arguments.extend([json!("--cert-file=/tls/tls.crt"), json!("--key-file=/tls/tls.key")]);
    objects.push(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET},
        "stringData": {"tls.crt": issued.certificate, "tls.key": issued.key, "ca.crt": issued.authority},
    }));
    Ok(())
}

/// `spec.system` for members like these.
pub fn system() -> Value {
    json!({"port": PORT, "tls": {"caSecret": SECRET, "serverName": format!("{{pod}}.{DOMAIN}")}})
}

/// Without the name nobody is believed, with it all goes as ever.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    trial.resource.change(json!({"system": {"port": PORT, "tls": {"caSecret": SECRET}}})).await?;
    trial.resource.waits_for(&["MembersUnknown"], 60).await?;
    let message = trial.resource.seen().await?.message;
    say(&format!("MembersUnknown: {message}"));
    let wanted = format!("{}.{}.{}.svc", trial.application.pod(0), set::NAME, trial.namespace);
    ensure!(message.contains(&wanted), "the name that was wanted, {wanted}, is not in: {message}");
    trial.notes.push(message);
    trial.resource.change(json!({"system": system()})).await?;
    trial.resource.ready_at(&trial.pair()?.old.version, 60).await?;
    trial.ask_for_new().await?;
    trial.finish(300).await
}
