//! How applications are reached, straight to the pod's address, with the TLS material that the resource names; and as whom.

use std::{fs, path::PathBuf, sync::Arc};

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

    /// The operator's own ServiceAccount token, as it is now: it is replaced while the operator runs. The error is for a person.
    fn service_account(&self) -> Result<Secret, String>;
}

/// Over the network.
pub struct OverNetwork {
    /// Where the kubelet writes the operator's ServiceAccount token.
    pub service_account: PathBuf,
}

/// Where the token of a pod's ServiceAccount is, unless the pod's manifest says otherwise.
pub const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

impl Dial for OverNetwork {
    fn transport(&self, tls: Option<&TlsMaterial>) -> Result<Arc<dyn Transport>, String> {
        let Some(TlsMaterial { roots, identity }) = tls else { return Ok(Arc::new(Network::plain())) };
        let identity = identity.as_ref().map(|(certificate, key)| Identity { certificate, key });
        Network::with_tls(roots, identity)
            .map(|network| Arc::new(network) as Arc<dyn Transport>)
            .map_err(|error| error.to_string())
    }

    fn service_account(&self) -> Result<Secret, String> {
        let path = self.service_account.display();
        let text = fs::read_to_string(&self.service_account)
            .map_err(|error| format!("the operator's ServiceAccount token can't be read from {path}: {error}"))?;
        Secret::new(&text).map_err(|error| format!("the operator's ServiceAccount token in {path}: {error}"))
    }
}
