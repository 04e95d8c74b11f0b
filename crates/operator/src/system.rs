//! The one place where the operator knows which system it talks to: how its members are asked, and how its leader is told to hand
//! over. What the answers mean is in [`crate::facts`].

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use windlass_api::quorum_cluster::SystemType;
use windlass_plan::{MemberName, Quorum};
use windlass_systems::{
    CallError, Class, Timeouts, etcd, http, openbao, pd,
    secret::Secret,
    transport::{Peer, Transport},
};

use crate::{error::Error, facts};

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

    /// Nothing is known, for the token is refused.
    pub fn refused(why: &str) -> Self {
        Self { quorum: Quorum::refused(why), ids: BTreeMap::new() }
    }
}

/// How a system is talked to.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    /// Which system.
    pub system: SystemType,
    /// How it is asked and told, where the resource describes that.
    pub http: Option<&'a http::System>,
    /// How its pods are reached.
    pub transport: &'a dyn Transport,
    /// Who asks, where the system wants to know.
    pub token: Option<&'a Secret>,
}

/// Nothing tells how to ask.
const UNDESCRIBED: &str = "spec.system.http does not tell how to ask";

/// Which of the two; none for the systems that are neither.
fn product(system: SystemType) -> Option<openbao::Product> {
    match system {
        SystemType::OpenBao => Some(openbao::Product::OpenBao),
        SystemType::Vault => Some(openbao::Product::Vault),
        SystemType::Pd | SystemType::Etcd | SystemType::Http => None,
    }
}

/// What the pods said, and whether the token was refused.
pub struct Heard {
    /// What it comes to.
    pub seen: Seen,
    /// Another token may help.
    pub denied: bool,
}

impl From<Seen> for Heard {
    fn from(seen: Seen) -> Self {
        Self { seen, denied: false }
    }
}

/// Asks every peer, all at once. Who has not answered within `patience` has not answered.
pub async fn ask(line: Line<'_>, peers: &[Peer], places: &[Place], patience: Duration) -> Heard {
    let Line { system, http: described, transport, token } = line;
    let Timeouts { read, health, verb } = Timeouts::default();
    let timeouts = Timeouts { read: read.min(patience), health: health.min(patience), verb };
    match system {
        SystemType::Pd => facts::pd::seen(&pd::observe(transport, peers, &timeouts).await, places).into(),
        SystemType::Etcd => {
            let answers = etcd::observe(transport, peers, token, &timeouts).await;
            let denied = answers.iter().any(|answer| answer.said.as_ref().is_err_and(etcd::wants_another_token));
            Heard { seen: facts::etcd::seen(&answers, places), denied }
        }
        SystemType::OpenBao | SystemType::Vault => {
            let product = product(system).unwrap_or(openbao::Product::OpenBao);
            let answers = openbao::observe(product, transport, peers, token, &timeouts).await;
            let refused = |error: &CallError| error.class() == Class::Denied;
            let denied = answers.iter().any(|answer| answer.said.as_ref().is_err_and(refused));
            Heard { seen: facts::openbao::seen(&answers, places), denied }
        }
        SystemType::Http => match described {
            Some(system) => {
                let answers = http::observe(system, transport, peers, token, &timeouts).await;
                facts::http::seen(&answers, places).into()
            }
            None => Seen::unknown(UNDESCRIBED).into(),
        },
    }
}

/// Tells the leader to hand over to the member that the system calls `to`, and waits no longer than `limit`.
pub async fn hand_over(line: Line<'_>, leader: &Peer, to: &str, limit: Duration) -> Result<(), Error> {
    let Line { system, http: described, transport, token } = line;
    let timeouts = Timeouts::default();
    let timeouts = Timeouts { verb: timeouts.verb.min(limit), ..timeouts };
    match system {
        SystemType::Pd => pd::transfer_leader(transport, leader, to, &timeouts).await?,
        // An id that is none asks for nobody, and is refused.
        SystemType::Etcd => etcd::transfer_leader(transport, leader, to.parse().unwrap_or(0), token, &timeouts).await?,
        // Nobody can be named: whoever is elected is read back.
        SystemType::OpenBao | SystemType::Vault => {
            let Some(token) = token else { return Err(Error::Gone("the token".into())) };
            openbao::step_down(transport, leader, token, &timeouts).await?;
        }
        SystemType::Http => {
            let Some(system) = described else { return Err(Error::Gone("spec.system.http".into())) };
            http::hand_over(system, transport, leader, to, token, &timeouts).await?;
        }
    }
    Ok(())
}
