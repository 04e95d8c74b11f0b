//! Any other system with HTTP endpoints, as the resource describes it.

pub mod facts;

use futures::{FutureExt, future::BoxFuture};
use windlass_api::quorum_cluster::{http::Http, system::System};
use windlass_plan::{
    capabilities::{Capabilities, Credentials, HandOver},
    path,
};
use windlass_systems::{Timeouts, http, transport::Peer};

use super::{Adapter, Heard, Line};
use crate::{
    error::Error,
    members::place::{Place, Seen},
};

/// A system that is described.
pub struct Described;

/// Nothing tells how to ask.
const UNDESCRIBED: &str = "spec.system.http does not tell how to ask";

impl Adapter for Described {
    fn capabilities(&self, written: &System) -> Capabilities {
        let described = written.http.as_ref();
        let named = described.is_some_and(|http| http.hand_over.names_target());
        Capabilities {
            path: path::HTTP,
            hand_over: if named { HandOver::ToNamed } else { HandOver::StepDown },
            lag: described.is_some_and(|http| http.position.is_some()),
            snapshot: None,
            // Only who has a vote is asked for.
            non_voters: false,
            in_place: false,
            credentials: Credentials::Token,
        }
    }

    fn description<'a>(&self, written: &'a System) -> Option<&'a Http> {
        written.http.as_ref()
    }

    fn ask<'a>(
        &'a self,
        line: Line<'a>,
        peers: &'a [Peer],
        places: &'a [Place],
        timeouts: Timeouts,
    ) -> BoxFuture<'a, Heard> {
        async move {
            let Some(system) = line.http else { return Seen::unknown(UNDESCRIBED).into() };
            let answers = http::observe(system, line.transport, peers, line.token, &timeouts).await;
            facts::seen(&answers, places).into()
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
        async move {
            let Some(system) = line.http else { return Err(Error::Gone("spec.system.http".into())) };
            Ok(http::hand_over(system, line.transport, leader, to, line.token, &timeouts).await?)
        }
        .boxed()
    }
}
