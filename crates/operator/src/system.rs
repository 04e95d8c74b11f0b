//! The one place where the operator knows which system it talks to: how its members are asked, and how its leader is told to hand
//! over. What the answers mean is in [`crate::facts`].

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use windlass_api::quorum_cluster::SystemType;
use windlass_plan::{MemberName, Quorum};
use windlass_systems::{
    CallError, Timeouts, etcd, pd,
    transport::{Peer, Transport},
};

use crate::facts;

/// Where a member of the set is, whether or not its pod exists at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The pod's name.
    pub pod: String,
    /// The name that the set's service gives it, up to `svc`.
    pub dns: String,
    /// Its address, while it has one.
    pub address: Option<IpAddr>,
}

impl Place {
    /// Whether a host is this pod: its address, or its DNS name in any of the lengths that resolve in the cluster.
    pub fn is_at(&self, host: &str) -> bool {
        let begins = |long: &str, short: &str| {
            !short.is_empty() && long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        begins(&self.dns, host)
            || begins(host, &self.dns)
            || self.address.is_some_and(|address| host.parse() == Ok(address))
    }
}

/// What a system says of itself, and what it calls its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Members and leader, by the names of their pods.
    pub quorum: Quorum,
    /// How the system itself calls each member when it is told about it.
    pub ids: BTreeMap<MemberName, String>,
}

impl Seen {
    /// Nothing is known.
    pub fn unknown(why: &str) -> Self {
        Self { quorum: Quorum::unknown(why), ids: BTreeMap::new() }
    }
}

/// Asks every peer.
pub async fn ask(system: SystemType, transport: &dyn Transport, peers: &[Peer], places: &[Place]) -> Seen {
    let timeouts = Timeouts::default();
    match system {
        SystemType::Pd => {
            let quorum = facts::pd::quorum(&pd::observe(transport, peers, &timeouts).await);
            let names = quorum.members.known().into_iter().flat_map(BTreeMap::keys);
            let ids = names.map(|name| (name.clone(), name.to_string())).collect();
            Seen { quorum, ids }
        }
        SystemType::Etcd => facts::etcd::seen(&etcd::observe(transport, peers, &timeouts).await, places),
    }
}

/// Tells the leader to hand over to the member that the system calls `to`, and waits no longer than `limit`.
pub async fn hand_over(
    system: SystemType,
    transport: &dyn Transport,
    leader: &Peer,
    to: &str,
    limit: Duration,
) -> Result<(), CallError> {
    let timeouts = Timeouts::default();
    let timeouts = Timeouts { verb: timeouts.verb.min(limit), ..timeouts };
    match system {
        SystemType::Pd => pd::transfer_leader(transport, leader, to, &timeouts).await,
        // An id that is none asks for nobody, and is refused.
        SystemType::Etcd => etcd::transfer_leader(transport, leader, to.parse().unwrap_or(0), &timeouts).await,
    }
}
