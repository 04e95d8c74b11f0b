//! The simulated etcd.

mod adapter;
mod script;

use std::{convert::Infallible, time::Duration};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, header::AUTHORIZATION};
use serde_json::{Value, json};
use tokio::process::Command;
use windlass_sim::apps::bench::Bench;

use super::{
    Application, Side,
    cast::{Cast, by_id},
    play::{Play, Which},
    real::{Place, Real},
};
use crate::client::Application as Kind;

/// Positions, terms and sizes: what they are differs from run to run. That they are numbers is compared.
const UNPREDICTABLE: [&str; 9] = [
    "cluster_id",
    "revision",
    "raft_term",
    "raftTerm",
    "raftIndex",
    "raftAppliedIndex",
    "dbSize",
    "dbSizeInUse",
    "dbSizeQuota",
];

pub(super) struct Etcd;

impl Application for Etcd {
    const NAME: &'static str = "etcd";
    const KIND: Kind = Kind::Etcd;
    const MEMBERS: [&'static str; 3] = ["etcd-0", "etcd-1", "etcd-2"];
    const LATER: &'static str = "etcd-3";
    const FIRST_PORT: u16 = 26540;
    const ALONE: Option<&'static str> = None;
    const PATIENCE: Duration = Duration::from_secs(9);
    const MAY_REFUSE: bool = true;
    type Act = Infallible;

    fn plays() -> Vec<Play<Infallible>> {
        script::all()
    }

    fn bench() -> Bench {
        Bench::etcd(7, &Self::MEMBERS)
    }

    fn simulated_addresses(member: &str) -> [String; 2] {
        [2379, 2380].map(|port| format!("{member}.etcd.bench.svc.cluster.local:{port}"))
    }

    fn command(place: &Place<'_, Self>) -> Result<Command> {
        let [client, peer] = place.addresses(place.member).map(|address| format!("http://{address}"));
        let founding = Self::MEMBERS.contains(&place.member);
        let all = Self::MEMBERS.iter().chain((!founding).then_some(&Self::LATER));
        let cluster: Vec<String> = all.map(|name| format!("{name}=http://{}", place.addresses(name)[1])).collect();
        let mut command = Command::new(place.binary);
        command
            .args(["--name", place.member, "--data-dir"])
            .arg(&place.data)
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &cluster.join(",")])
            .args(["--initial-cluster-state", if founding { "new" } else { "existing" }])
            .args(["--log-level", "error"]);
        Ok(command)
    }

    fn sign(token: &str) -> Result<(HeaderName, HeaderValue)> {
        Ok((AUTHORIZATION, token.parse()?))
    }

    async fn assign(side: &mut Side<'_, Self>, cast: &mut Cast) -> Result<Option<String>> {
        let mut leaders = Vec::new();
        for member in Self::MEMBERS {
            let Some(answer) = side.ask(member, Request::post("/v3/maintenance/status").body("{}".into())?).await?
            else {
                return Ok(None);
            };
            let status: Value = serde_json::from_slice(answer.body())?;
            cast.identify(status["header"]["member_id"].as_str().context("no id")?, member);
            leaders.push(status["leader"].as_str().unwrap_or_default().to_owned());
        }
        let agreed = leaders.windows(2).all(|pair| pair[0] == pair[1]);
        Ok(leaders.first().filter(|_| agreed).and_then(|leader| cast.known_by_id(leader)))
    }

    /// Notes what a new member is called, and a token.
    fn learn(cast: &mut Cast, answer: &Response<Bytes>) {
        let Ok(answer) = serde_json::from_slice::<Value>(answer.body()) else { return };
        if let Some(token) = answer["token"].as_str() {
            cast.token = Some(token.to_owned());
        }
        if let Some(id) = answer["member"]["ID"].as_str() {
            cast.identify(id, Self::LATER);
        }
    }

    async fn act(_: &mut Side<'_, Self>, _: &mut Cast, act: Infallible) -> Result<()> {
        match act {}
    }

    fn canonical(cast: &Cast, body: &str) -> String {
        if let Ok(body) = serde_json::from_str::<Value>(body) {
            return cast.clean("", &body, &|name, value| hide(cast, name, value)).to_string();
        }
        // The checks of /readyz come in no order.
        let mut lines: Vec<&str> = body.lines().collect();
        lines.sort_unstable();
        lines.join("|")
    }

    async fn check_adapter(real: Real<'_, Self>, which: Which) -> Result<usize> {
        adapter::check(real, which).await
    }
}

fn hide(cast: &Cast, name: &str, value: &Value) -> Option<Value> {
    let hide = |name: &str, value: &Value| hide(cast, name, value);
    match value {
        Value::Array(members) if name == "members" => {
            let id = |member: &Value| member["ID"].as_str().and_then(|id| id.parse().ok());
            Some(by_id(members, id, |member| cast.clean("", member, &hide)))
        }
        Value::String(text) if UNPREDICTABLE.contains(&name) && text.parse::<u64>().is_ok() => Some(json!("<number>")),
        // Letters, and the position at which it was given.
        Value::String(text) if name == "token" && text.split('.').count() == 2 => Some(json!("<token>")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
