//! How applications are reached, straight to the pod's address, with the TLS material that the resource names.

use std::sync::Arc;

use windlass_systems::{
    network::{Identity, Network},
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
}

/// Over the network.
pub struct OverNetwork;

impl Dial for OverNetwork {
    fn transport(&self, tls: Option<&TlsMaterial>) -> Result<Arc<dyn Transport>, String> {
        let Some(TlsMaterial { roots, identity }) = tls else { return Ok(Arc::new(Network::plain())) };
        let identity = identity.as_ref().map(|(certificate, key)| Identity { certificate, key });
        Network::with_tls(roots, identity)
            .map(|network| Arc::new(network) as Arc<dyn Transport>)
            .map_err(|error| error.to_string())
    }
}
