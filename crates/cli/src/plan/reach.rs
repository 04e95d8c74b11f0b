//! Whether pods can be reached from here. Plans are often asked for far from the cluster, and pods' addresses are its own.

use std::{
    io::{Error, ErrorKind, Result},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, join_all};
use http::{Request, Response};
use kube::ResourceExt;
use tokio::{
    net::TcpStream,
    time::{error::Elapsed, timeout},
};
use windlass_api::QuorumCluster;
use windlass_operator::{Dial, dial::TlsMaterial};
use windlass_systems::transport::{Peer, Transport};

/// How long a connection may take to come about.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether anybody is there at any of these addresses; all are tried at once. One that refuses is there. Where there is no address, there
/// is nobody to miss.
pub async fn any(peers: &[Peer]) -> bool {
    let there = |peer: &Peer| timeout(PATIENCE, TcpStream::connect((peer.address, peer.port))).map(is_there);
    peers.is_empty() || join_all(peers.iter().map(there)).await.contains(&true)
}

/// What became of a connection; nothing in time is silence.
fn is_there<T>(tried: std::result::Result<Result<T>, Elapsed>) -> bool {
    match tried {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => error.kind() == ErrorKind::ConnectionRefused,
        Err(_) => false,
    }
}

/// What to do where nobody is.
pub fn advice(resource: &QuorumCluster, peers: &[Peer]) -> String {
    let places: Vec<String> = peers.iter().map(|peer| format!("{} at {}", peer.pod, peer.address)).collect();
    let (name, namespace) = (resource.name_any(), resource.namespace().unwrap_or_default());
    format!(
        "they can't be reached at their pods' addresses from here ({}); run it in the cluster: kubectl exec -n windlass-system deploy/windlass -- windlass plan {name} -n {namespace}",
        places.join(", ")
    )
}

/// Leads nowhere: nobody is asked, and nothing is waited for.
pub struct Nowhere;

impl Dial for Nowhere {
    fn transport(&self, _: Option<&TlsMaterial>) -> std::result::Result<Arc<dyn Transport>, String> {
        Ok(Arc::new(Self))
    }
}

impl Transport for Nowhere {
    fn send(&self, _: &Peer, _: Request<Bytes>) -> BoxFuture<'static, Result<Response<Bytes>>> {
        async { Err(Error::from(ErrorKind::HostUnreachable)) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use tokio::net::TcpListener;
    use windlass_systems::transport::Peer;

    use super::{any, is_there};

    fn peer(address: IpAddr, port: u16) -> Peer {
        Peer { pod: "etcd-0".into(), address, port, server_name: String::new(), tls: false }
    }

    #[tokio::test]
    async fn one_that_listens_or_refuses_is_there() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let here = peer(Ipv4Addr::LOCALHOST.into(), port);
        assert!(any(std::slice::from_ref(&here)).await);
        drop(listener);
        assert!(any(std::slice::from_ref(&here)).await, "it refuses");
        assert!(any(&[]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_silent_or_out_of_reach_is_not() {
        let silence = std::future::pending::<std::io::Result<()>>();
        assert!(!is_there(tokio::time::timeout(super::PATIENCE, silence).await));
        assert!(!is_there::<()>(Ok(Err(std::io::ErrorKind::HostUnreachable.into()))));
    }
}
