//! The one place where the operator knows which system it talks to: how its members are asked, and how its leader is told to hand
//! over. What the answers mean is in [`super::facts`].

use std::time::Duration;

use windlass_api::quorum_cluster::SystemType;
use windlass_systems::{
    CallError, Class, Timeouts, etcd, http, openbao, pd,
    secret::Secret,
    transport::{Peer, Transport},
};

use super::{
    facts,
    place::{Place, Seen},
};
use crate::error::Error;

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
