//! The simulated PD.

mod adapter;
mod script;

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
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

const MEMBERS_PATH: &str = "/pd/api/v1/members";
const ALONE: &str = "pd-allow-follower-handle";
/// Positions, terms and sizes: what they are differs from run to run. That they are numbers is compared.
const UNPREDICTABLE: [&str; 8] =
    ["cluster_id", "revision", "raft_term", "raftTerm", "raftIndex", "raftAppliedIndex", "dbSize", "dbSizeInUse"];
/// What a build writes of itself: releases and builds from source differ in it.
const BUILD: [&str; 5] = ["build_time", "hash", "branch", "git_hash", "deploy_path"];

pub(super) struct Pd;

/// What can be done to a PD.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// A cluster of stores begins, as the simulated one has from the start; it is there when leadership has moved.
    Bootstrap,
}

impl Application for Pd {
    const NAME: &'static str = "PD";
    const KIND: Kind = Kind::Pd;
    const MEMBERS: [&'static str; 3] = ["pd-0", "pd-1", "pd-2"];
    const LATER: &'static str = "pd-3";
    const FIRST_PORT: u16 = 26740;
    const ALONE: Option<&'static str> = Some(ALONE);
    const PATIENCE: Duration = Duration::from_secs(30);
    type Act = Act;

    fn plays() -> Vec<Play<Act>> {
        script::all()
    }

    fn bench() -> Bench {
        Bench::pd(7, &Self::MEMBERS)
    }

    fn version(version: &str) -> String {
        format!("v{version}")
    }

    fn simulated_addresses(member: &str) -> [String; 2] {
        [2379, 2380].map(|port| format!("{member}.pd.bench.svc:{port}"))
    }

    fn command(place: &Place<'_, Self>) -> Result<Command> {
        let [client, peer] = place.addresses(place.member).map(|address| format!("http://{address}"));
        let cluster = Self::MEMBERS.map(|name| format!("{name}=http://{}", place.addresses(name)[1]));
        let mut command = Command::new(place.binary);
        command
            .args(["--name", place.member, "--data-dir"])
            .arg(&place.data)
            .args(["--client-urls", &client, "--peer-urls", &peer])
            .args(["--initial-cluster", &cluster.join(",")])
            .args(["-L", "error"])
            .current_dir(place.folder);
        Ok(command)
    }

    fn sign(_: &str) -> Result<(HeaderName, HeaderValue)> {
        bail!("PD knows no tokens")
    }

    async fn assign(side: &mut Side<'_, Self>, cast: &mut Cast) -> Result<Option<String>> {
        let mut leaders = Vec::new();
        for member in Self::MEMBERS {
            let question = Request::get(MEMBERS_PATH).header(ALONE, "true");
            let Some(answer) = side.ask(member, question.body(Bytes::new())?).await? else { continue };
            Self::learn(cast, &answer);
            let answer: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
            leaders.extend(["leader", "etcd_leader"].map(|field| answer[field]["name"].as_str().map(str::to_owned)));
        }
        let agreed = leaders.windows(2).all(|pair| pair[0] == pair[1]);
        Ok(leaders.first().filter(|_| agreed).cloned().flatten())
    }

    /// Notes the ids of the members.
    fn learn(cast: &mut Cast, answer: &Response<Bytes>) {
        let Ok(answer) = serde_json::from_slice::<Value>(answer.body()) else { return };
        for member in answer["members"].as_array().into_iter().flatten() {
            if let (Some(name), Some(id)) = (member["name"].as_str(), member["member_id"].as_u64()) {
                cast.identify(&id.to_string(), name);
            }
        }
    }

    async fn act(side: &mut Side<'_, Self>, _: &mut Cast, act: Act) -> Result<()> {
        match (side, act) {
            (Side::Simulated(..), Act::Bootstrap) => Ok(()),
            (Side::Real(real), Act::Bootstrap) => bootstrap(real).await,
        }
    }

    fn canonical(cast: &Cast, body: &str) -> String {
        match serde_json::from_str::<Value>(body) {
            Ok(Value::Array(members)) => clean_members(cast, &members).to_string(),
            Ok(body) => cast.clean("", &body, &|name, value| hide(cast, name, value)).to_string(),
            Err(_) => cast.replace(body),
        }
    }

    async fn check_adapter(real: Real<'_, Self>, which: Which) -> Result<usize> {
        adapter::check(real, which).await
    }
}

fn clean_members(cast: &Cast, members: &[Value]) -> Value {
    let hide = |name: &str, value: &Value| hide(cast, name, value);
    by_id(members, |member| member["member_id"].as_u64(), |member| cast.clean("", member, &hide))
}

fn hide(cast: &Cast, name: &str, value: &Value) -> Option<Value> {
    match value {
        Value::Array(members) if name == "members" => Some(clean_members(cast, members)),
        Value::String(_) if BUILD.contains(&name) => Some(json!("<build>")),
        Value::Number(_) if UNPREDICTABLE.contains(&name) => Some(json!("<number>")),
        Value::String(text) if UNPREDICTABLE.contains(&name) && text.parse::<u64>().is_ok() => {
            Some(json!("<number in a text>"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Writes what the first store would have PD write.
async fn bootstrap(real: &Real<'_, Pd>) -> Result<()> {
    let member = Pd::MEMBERS[0];
    let answer = real.ask(member, Request::get(MEMBERS_PATH).body(Bytes::new())?).await?.context("the members")?;
    let answer: Value = serde_json::from_slice(answer.body())?;
    let id = answer["header"]["cluster_id"].as_u64().context("the cluster's id")?;
    // The cluster's id, and how many copies there are of everything.
    let mut cluster = vec![0x08];
    let mut rest = id;
    while rest >= 0x80 {
        cluster.push(u8::try_from(rest & 0x7f)? | 0x80);
        rest >>= 7;
    }
    cluster.extend([u8::try_from(rest)?, 0x10, 3]);
    let body = json!({
        "key": BASE64_STANDARD.encode(format!("/pd/{id}/raft")),
        "value": BASE64_STANDARD.encode(cluster),
    });
    let put = Request::post("/v3/kv/put").body(Bytes::from(body.to_string()))?;
    let put = real.ask(member, put).await?.context("an answer")?;
    if !put.status().is_success() {
        bail!("the cluster could not be written: {}", String::from_utf8_lossy(put.body()));
    }
    Ok(())
}
