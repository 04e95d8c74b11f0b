//! TiKV's Placement Driver.

pub mod facts;

use futures::{FutureExt, future::BoxFuture};
use windlass_api::quorum_cluster::system::System;
use windlass_plan::{
    capabilities::{Capabilities, Credentials, HandOver},
    path,
};
use windlass_systems::{Timeouts, pd, transport::Peer};

use super::{Adapter, Heard, Line};
use crate::{error::Error, members::place::Place};

/// PD.
pub struct Pd;

impl Adapter for Pd {
    fn capabilities(&self, _: &System) -> Capabilities {
        Capabilities {
            path: path::PD,
            hand_over: HandOver::ToNamed,
            lag: true,
            snapshot: None,
            non_voters: false,
            in_place: false,
            credentials: Credentials::Nobody,
        }
    }

    fn ask<'a>(
        &'a self,
        line: Line<'a>,
        peers: &'a [Peer],
        places: &'a [Place],
        timeouts: Timeouts,
    ) -> BoxFuture<'a, Heard> {
        async move { facts::seen(&pd::observe(line.transport, peers, &timeouts).await, places).into() }.boxed()
    }

    fn hand_over<'a>(
        &'a self,
        line: Line<'a>,
        leader: &'a Peer,
        to: &'a str,
        timeouts: Timeouts,
    ) -> BoxFuture<'a, Result<(), Error>> {
        async move { Ok(pd::transfer_leader(line.transport, leader, to, &timeouts).await?) }.boxed()
    }
}
