//! The simulated OpenBao.

mod adapter;
mod script;

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response};
use serde_json::{Value, json};
use tokio::{process::Command, time::Instant};
use windlass_sim::apps::{bench::Bench, openbao::ROOT_TOKEN};

use super::{
    Application, Side,
    cast::Cast,
    play::{Play, Which, Who},
    real::{Place, Real},
};
use crate::client::Application as Kind;

/// How long a real member may take to be initialised and unsealed.
const PATIENCE: Duration = Duration::from_mins(2);
const AGAIN: Duration = Duration::from_millis(300);
/// Where this file is, seals are opened by hand.
const BY_HAND: &str = "by-hand";
const KEY: &[u8; 32] = b"opens nothing but a test's seals";

pub(super) struct OpenBao;

/// What can be done to an OpenBao.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// Seals are opened by hand, not by a key that every process finds. To be done before the first process starts.
    ByHand,
    /// The first member makes the cluster, and the others find it.
    Initialise,
    Unseal(Who),
}

impl Application for OpenBao {
    const NAME: &'static str = "OpenBao";
    const KIND: Kind = Kind::OpenBao;
    const MEMBERS: [&'static str; 3] = ["openbao-0", "openbao-1", "openbao-2"];
    const LATER: &'static str = "openbao-3";
    const FIRST_PORT: u16 = 26640;
    const ALONE: Option<&'static str> = Some("x-vault-no-request-forwarding");
    const PATIENCE: Duration = Duration::from_secs(30);
    const INVENTED: &'static str = "s.abcdefghijklmnopqrstuvwx";
    type Act = Act;

    fn plays() -> Vec<Play<Act>> {
        script::all()
    }

    fn bench() -> Bench {
        Bench::openbao(7, &Self::MEMBERS)
    }

    fn simulated_addresses(member: &str) -> [String; 2] {
        [format!("{member}.openbao.bench.svc:8200"), format!("{member}.openbao:8201")]
    }

    fn command(place: &Place<'_, Self>) -> Result<Command> {
        let key = place.folder.join("key");
        let file = place.folder.join(format!("{}.hcl", place.member));
        std::fs::create_dir_all(&place.data)?;
        std::fs::write(&key, KEY)?;
        std::fs::write(&file, configuration(place, &format!("file://{}", key.display())))?;
        let mut command = Command::new(place.binary);
        command.arg("server").arg("-log-level=error").arg("-config").arg(file);
        Ok(command)
    }

    fn sign(token: &str) -> Result<(HeaderName, HeaderValue)> {
        Ok((HeaderName::from_static("x-vault-token"), token.parse()?))
    }

    async fn assign(side: &mut Side<'_, Self>, cast: &mut Cast) -> Result<Option<String>> {
        let (mut leads, mut named) = (None, Vec::new());
        for member in Self::MEMBERS {
            let answer = side.ask(member, Request::get("/v1/sys/leader").body(Bytes::new())?).await?;
            // One that is dead or sealed has no say.
            let Some(answer) = answer.filter(|answer| answer.status().is_success()) else { continue };
            let answer: Value = serde_json::from_slice(answer.body())?;
            named.push(answer["leader_address"].as_str().and_then(|address| cast.known_by_address(address)));
            if answer["is_self"] == true {
                leads = Some(member.to_owned());
            }
        }
        if leads.is_none() || named.iter().any(|named| *named != leads) {
            return Ok(None);
        }
        let leader = leads.as_deref().unwrap_or_default();
        let question = Request::get("/v1/sys/storage/raft/configuration");
        let question = question.header("x-vault-token", cast.token.as_deref().context("a token")?);
        match side.ask(leader, question.body(Bytes::new())?).await? {
            Some(answer) if answer.status().is_success() => Self::learn(cast, &answer),
            Some(_) | None => return Ok(None),
        }
        Ok(leads)
    }

    /// Notes the ids that members have in Raft.
    fn learn(cast: &mut Cast, answer: &Response<Bytes>) {
        let Ok(answer) = serde_json::from_slice::<Value>(answer.body()) else { return };
        for server in answer["data"]["config"]["servers"].as_array().into_iter().flatten() {
            let member = server["address"].as_str().and_then(|address| cast.known_by_address(address));
            if let (Some(member), Some(id)) = (member, server["node_id"].as_str()) {
                cast.identify(id, &member);
            }
        }
    }

    async fn act(side: &mut Side<'_, Self>, cast: &mut Cast, act: Act) -> Result<()> {
        match (side, act) {
            (Side::Simulated(bench, _), Act::ByHand) => bench.auto_unseal(false),
            (Side::Simulated(..), Act::Initialise) => cast.token = Some(ROOT_TOKEN.to_owned()),
            (Side::Simulated(bench, _), Act::Unseal(who)) => bench.unseal(&cast.member(who)?),
            (Side::Real(real), Act::ByHand) => std::fs::write(real.folder().join(BY_HAND), "")?,
            (Side::Real(real), Act::Initialise) => initialise(real, cast).await?,
            (Side::Real(real), Act::Unseal(who)) => unseal(real, &cast.member(who)?, &cast.keys).await?,
        }
        Ok(())
    }

    fn canonical(cast: &Cast, body: &str) -> String {
        match serde_json::from_str::<Value>(body) {
            Ok(body) => cast.clean("", &body, &|name, value| hide(cast, name, value)).to_string(),
            Err(_) => cast.replace(body),
        }
    }

    async fn check_adapter(real: Real<'_, Self>, which: Which) -> Result<usize> {
        adapter::check(real, which).await
    }
}

/// As the Helm chart writes it.
fn configuration(place: &Place<'_, OpenBao>, key: &str) -> String {
    let [client, peer] = place.addresses(place.member);
    let joins: Vec<String> = OpenBao::MEMBERS
        .iter()
        .filter(|name| **name != place.member)
        .map(|name| format!("  retry_join {{ leader_api_addr = \"http://{}\" }}\n", place.addresses(name)[0]))
        .collect();
    let seal = if place.folder.join(BY_HAND).exists() {
        String::new()
    } else {
        format!("seal \"static\" {{\n  current_key_id = \"test-1\"\n  current_key = \"{key}\"\n}}\n")
    };
    format!(
        "ui = false\napi_addr = \"http://{client}\"\ncluster_addr = \"https://{peer}\"\n\
         listener \"tcp\" {{\n  tls_disable = 1\n  address = \"{client}\"\n  cluster_address = \"{peer}\"\n}}\n\
         storage \"raft\" {{\n  path = \"{}\"\n{}}}\n{seal}",
        place.data.display(),
        joins.concat()
    )
}

async fn put(real: &Real<'_, OpenBao>, member: &str, path: &str, body: &Value) -> Result<Option<Value>> {
    let request = Request::builder().method(Method::PUT).uri(path).body(Bytes::from(body.to_string()))?;
    let Some(answer) = real.ask_for(PATIENCE, member, request).await else { return Ok(None) };
    Ok(Some(serde_json::from_slice(answer.body())?))
}

/// Makes a cluster of the first member, and keeps the root token and the keys.
async fn initialise(real: &Real<'_, OpenBao>, cast: &mut Cast) -> Result<()> {
    let body = if real.folder().join(BY_HAND).exists() {
        json!({"secret_shares": 5, "secret_threshold": 3})
    } else {
        json!({"recovery_shares": 1, "recovery_threshold": 1})
    };
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(made) = put(real, OpenBao::MEMBERS[0], "/v1/sys/init", &body).await? {
            let token = made["root_token"].as_str().with_context(|| format!("no token in {made}"))?;
            cast.token = Some(token.to_owned());
            let keys = made["keys"].as_array().into_iter().flatten();
            cast.keys = keys.filter_map(Value::as_str).map(str::to_owned).collect();
            return Ok(());
        }
        tokio::time::sleep(AGAIN).await;
    }
    bail!("it could not be initialised")
}

/// Gives the keys until the seal is open; one that has not heard of the cluster yet can't be unsealed.
async fn unseal(real: &Real<'_, OpenBao>, member: &str, keys: &[String]) -> Result<()> {
    ensure!(!keys.is_empty(), "there are no keys");
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        for key in keys.iter().take(3) {
            // A refusal is no news: only the seal tells.
            put(real, member, "/v1/sys/unseal", &json!({"key": key})).await?;
        }
        for _ in 0..10 {
            let question = Request::get("/v1/sys/seal-status").body(Bytes::new())?;
            let status = real.ask(member, question).await?;
            let status: Value =
                status.and_then(|status| serde_json::from_slice(status.body()).ok()).unwrap_or_default();
            if status["sealed"] == false {
                return Ok(());
            }
            tokio::time::sleep(AGAIN).await;
        }
    }
    bail!("{member} could not be unsealed")
}

fn hide(cast: &Cast, name: &str, value: &Value) -> Option<Value> {
    let hide = |name: &str, value: &Value| hide(cast, name, value);
    let shown = match (name, value) {
        ("raft_committed_index" | "raft_applied_index" | "last_index" | "last_term" | "server_time_utc", value) => {
            value.as_u64().filter(|number| *number > 0).map(|_| "<number>")
        }
        ("request_id" | "cluster_id", Value::String(text)) => (text.split('-').count() == 5).then_some("<uuid>"),
        ("cluster_name", Value::String(text)) => text.starts_with("vault-cluster-").then_some("<name>"),
        ("active_time" | "stable_since", Value::String(text)) => {
            (!text.starts_with("0001-") && text.ends_with('Z')).then_some("<time>")
        }
        // Releases have one, builds from source have none.
        ("build_date", Value::String(_)) => Some("<date or nothing>"),
        ("last_contact", Value::String(text)) => text.ends_with('s').then_some("<duration>"),
        _ => None,
    };
    if let Some(shown) = shown {
        return Some(json!(shown));
    }
    match (name, value) {
        // In the order in which they came to it, and in none.
        ("servers" | "voters" | "non_voters", Value::Array(servers)) => {
            let mut servers: Vec<Value> = servers.iter().map(|server| cast.clean("", server, &hide)).collect();
            servers.sort_by_key(ToString::to_string);
            Some(json!(servers))
        }
        _ => None,
    }
}
