//! The one place where the operator knows which system it talks to. One module per system says what it can do, how its members are asked,
//! what their answers mean (`facts`), and how its leader is told to hand over. Everybody else asks the [`Adapter`].
//!
//! Another system is another module, and a line in [`of`].

mod answers;
pub mod etcd;
pub mod http;
pub mod openbao;
pub mod pd;

use std::time::Duration;

use futures::future::BoxFuture;
use windlass_api::quorum_cluster::{
    http::Http,
    system::{System, SystemType},
};
use windlass_plan::capabilities::Capabilities;
use windlass_systems::{
    Timeouts, http as described,
    openbao::Product,
    secret::Secret,
    transport::{Peer, Transport},
};

use super::place::{Place, Seen};
use crate::error::Error;

/// What the operator knows of one system.
pub trait Adapter: Sync {
    /// What it can do. Where its type does not say all, the resource does.
    fn capabilities(&self, written: &System) -> Capabilities;

    /// How it is asked and told, where the resource describes that; none where the type says all.
    fn description<'a>(&self, _written: &'a System) -> Option<&'a Http> {
        None
    }

    /// Asks every peer, all at once.
    fn ask<'a>(
        &'a self,
        line: Line<'a>,
        peers: &'a [Peer],
        places: &'a [Place],
        timeouts: Timeouts,
    ) -> BoxFuture<'a, Heard>;

    /// Tells the leader to hand over: to the member that the system calls `to`, where it can be told that.
    fn hand_over<'a>(
        &'a self,
        line: Line<'a>,
        leader: &'a Peer,
        to: &'a str,
        timeouts: Timeouts,
    ) -> BoxFuture<'a, Result<(), Error>>;
}

/// Who knows this system.
pub fn of(system: SystemType) -> &'static dyn Adapter {
    match system {
        SystemType::Pd => &pd::Pd,
        SystemType::Etcd => &etcd::Etcd,
        SystemType::OpenBao => &openbao::OpenBao(Product::OpenBao),
        SystemType::Vault => &openbao::OpenBao(Product::Vault),
        SystemType::Http => &http::Described,
    }
}

/// What the system that the resource names can do.
pub fn capabilities(written: &System) -> Capabilities {
    of(written.type_).capabilities(written)
}

/// How a system is talked to.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    /// Which system.
    pub system: SystemType,
    /// How it is asked and told, where the resource describes that.
    pub http: Option<&'a described::System>,
    /// How its pods are reached.
    pub transport: &'a dyn Transport,
    /// Who asks, where the system wants to know.
    pub token: Option<&'a Secret>,
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
    let Timeouts { read, health, verb } = Timeouts::default();
    let timeouts = Timeouts { read: read.min(patience), health: health.min(patience), verb };
    of(line.system).ask(line, peers, places, timeouts).await
}

/// Tells the leader to hand over to the member that the system calls `to`, and waits no longer than `limit`.
pub async fn hand_over(line: Line<'_>, leader: &Peer, to: &str, limit: Duration) -> Result<(), Error> {
    let timeouts = Timeouts::default();
    let timeouts = Timeouts { verb: timeouts.verb.min(limit), ..timeouts };
    of(line.system).hand_over(line, leader, to, timeouts).await
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use windlass_api::quorum_cluster::system::System;
    use windlass_plan::capabilities::{Capabilities, Credentials, HandOver};

    use super::capabilities;

    fn written(system: Value) -> System {
        serde_json::from_value(system).unwrap()
    }

    /// The row that docs/design.md has of it.
    fn row(name: &str, can: &Capabilities) -> String {
        let hand_over = match can.hand_over {
            HandOver::ToNamed => "to a named member",
            HandOver::StepDown => "steps down",
        };
        let credentials = match can.credentials {
            Credentials::Nobody => "nobody",
            Credentials::User => "a user",
            Credentials::Token => "a token",
            Credentials::TokenOrLogin => "a token or a login",
        };
        let yes = |can: bool| if can { "yes" } else { "no" };
        let snapshot = can.snapshot.map_or("no".to_owned(), |ending| format!("`.{ending}`"));
        let (lag, non_voters, in_place) = (yes(can.lag), yes(can.non_voters), yes(can.in_place));
        format!("| {name} | {hand_over} | {lag} | {snapshot} | {non_voters} | {in_place} | {credentials} |\n")
    }

    #[test]
    fn what_each_system_can_do_is_what_is_documented() {
        let design = include_str!("../../../../../docs/design.md");
        for name in ["Pd", "Etcd", "OpenBao", "Vault"] {
            let row = row(name, &capabilities(&written(json!({ "type": name }))));
            assert!(design.contains(&row), "docs/design.md lacks {row}");
        }
    }

    #[test]
    fn what_is_described_can_do_what_its_description_says() {
        let question = json!({"path": "/", "cel": "true"});
        let mut system = json!({"type": "Http", "http": {
            "health": question, "leader": question, "version": question, "handOver": {"path": "/leave"},
        }});
        let plain = capabilities(&written(system.clone()));
        assert_eq!((plain.hand_over, plain.lag), (HandOver::StepDown, false));
        system["http"]["position"] = question;
        system["http"]["handOver"] = json!({"pathCel": "'/to/' + target"});
        let rich = capabilities(&written(system));
        assert_eq!((rich.hand_over, rich.lag), (HandOver::ToNamed, true));
    }
}
