//! OpenBao and Vault with Raft storage, which speak alike.

pub mod facts;

use futures::{FutureExt, future::BoxFuture};
use windlass_api::quorum_cluster::system::System;
use windlass_plan::{
    capabilities::{Capabilities, Credentials, HandOver},
    path,
};
use windlass_systems::{
    CallError, Class, Timeouts,
    openbao::{self, Product},
    transport::Peer,
};

use super::{Adapter, Heard, Line};
use crate::{error::Error, members::place::Place};

/// The one or the other.
pub struct OpenBao(pub Product);

impl Adapter for OpenBao {
    fn capabilities(&self, _: &System) -> Capabilities {
        Capabilities {
            path: match self.0 {
                Product::OpenBao => path::OPENBAO,
                Product::Vault => path::VAULT,
            },
            hand_over: HandOver::StepDown,
            lag: true,
            snapshot: Some("snap"),
            non_voters: true,
            in_place: false,
            credentials: Credentials::TokenOrLogin,
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
            let answers = openbao::observe(self.0, line.transport, peers, line.token, &timeouts).await;
            let refused = |error: &CallError| error.class() == Class::Denied;
            let denied = answers.iter().any(|answer| answer.said.as_ref().is_err_and(refused));
            Heard { seen: facts::seen(&answers, places), denied }
        }
        .boxed()
    }

    /// Nobody can be named: whoever is elected is read back.
    fn hand_over<'a>(
        &'a self,
        line: Line<'a>,
        leader: &'a Peer,
        _to: &'a str,
        timeouts: Timeouts,
    ) -> BoxFuture<'a, Result<(), Error>> {
        async move {
            let Some(token) = line.token else { return Err(Error::Gone("the token".into())) };
            Ok(openbao::step_down(line.transport, leader, token, &timeouts).await?)
        }
        .boxed()
    }
}
