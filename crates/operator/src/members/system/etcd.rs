//! etcd, through the JSON gateway on its client port.

pub mod facts;

use futures::{FutureExt, future::BoxFuture};
use windlass_api::quorum_cluster::system::System;
use windlass_plan::{
    capabilities::{Capabilities, Credentials, HandOver},
    path,
};
use windlass_systems::{Timeouts, etcd, transport::Peer};

use super::{Adapter, Heard, Line};
use crate::{error::Error, members::place::Place};

/// etcd.
pub struct Etcd;

impl Adapter for Etcd {
    fn capabilities(&self, _: &System) -> Capabilities {
        Capabilities {
            path: path::ETCD,
            hand_over: HandOver::ToNamed,
            lag: true,
            snapshot: Some("db"),
            non_voters: true,
            in_place: false,
            credentials: Credentials::User,
        }
    }

    fn ask<'a>(
        &'a self,
        line: Line<'a>,
        peers: &'a [Peer],
        places: &'a [Place],
        timeouts: Timeouts,
    ) -> BoxFuture<'a, Heard> {
        async move {
            let answers = etcd::observe(line.transport, peers, line.token, &timeouts).await;
            let denied = answers.iter().any(|answer| answer.said.as_ref().is_err_and(etcd::wants_another_token));
            Heard { seen: facts::seen(&answers, places), denied }
        }
        .boxed()
    }

    fn hand_over<'a>(
        &'a self,
        line: Line<'a>,
        leader: &'a Peer,
        to: &'a str,
        timeouts: Timeouts,
    ) -> BoxFuture<'a, Result<(), Error>> {
        // An id that is none asks for nobody, and is refused.
        let to = to.parse().unwrap_or(0);
        async move { Ok(etcd::transfer_leader(line.transport, leader, to, line.token, &timeouts).await?) }.boxed()
    }
}
