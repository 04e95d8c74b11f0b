//! OpenBao, as its Helm chart lays it out, from the old version to the new one.

mod expired_token;
mod sealed;
pub mod set;
mod wrong_one;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::Method;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    Deletions, Operators, Scenario,
    stories::{deadline, operator_killed},
    trial::Trial,
    wait,
};
use crate::client::{Application, OpenBao};

/// Whoever was elected leads.
const USUAL: Scenario = Scenario::usual(Application::OpenBao, None);

/// All scenarios of OpenBao.
pub const SCENARIOS: &[Scenario] = &[
    Scenario::baseline("openbao-baseline", &USUAL),
    Scenario {
        name: "openbao-rolling-3",
        shows: "three members as the chart lays them out, OnDelete: the leader goes last; the operator in pods",
        ..USUAL
    },
    Scenario {
        name: "openbao-operator-killed",
        shows: "the operator is killed at ten random moments",
        operators: Operators::Local { count: 1, lease_seconds: 6 },
        run: |trial| Box::pin(operator_killed::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "openbao-sealed",
        shows: "the first new pod stays sealed: nothing else moves, Windlass says so, and goes on once it is unsealed",
        deletions: Deletions::Any,
        run: |trial| Box::pin(sealed::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "openbao-expired-token",
        shows: "Windlass's token expires in the middle: it holds, says so, and goes on with a new one",
        run: |trial| Box::pin(expired_token::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "openbao-deadline",
        shows: "the new image never gets ready: its deadline passes, and a mended image finishes the job",
        deletions: Deletions::Any,
        run: |trial| Box::pin(deadline::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "openbao-wrong-one",
        shows: "highest ordinal first, and not the last one leads: whoever is elected instead, no leader is restarted",
        deletions: Deletions::Any,
        run: |trial| Box::pin(wrong_one::run(trial)),
        ..USUAL
    },
];

/// What Windlass's token is good for: what its documentation asks for, and nothing else.
const POLICY: &str = r#"
path "sys/storage/raft/configuration" { capabilities = ["read"] }
path "sys/storage/raft/autopilot/state" { capabilities = ["read"] }
path "sys/step-down" { capabilities = ["update", "sudo"] }
"#;

/// Initialises the first pod, which the others join, and gives Windlass a token; the root token.
pub async fn initialize(trial: &Trial<'_>) -> Result<String> {
    let first = trial.application.pod(0);
    let (client, timeout) = (client(None), 120);
    let made = wait::until("OpenBao to be initialised", timeout, async || {
        let question = json!({"recovery_shares": 1, "recovery_threshold": 1});
        Ok(Some(said(client.call(Method::PUT, trial.address(&first)?, "/v1/sys/init", &question).await)?))
    })
    .await?;
    let root = made["root_token"].as_str().context("there is no root token")?.to_owned();
    let client = self::client(Some(root.clone()));
    let ask = async |path: &str, question: Value| {
        wait::until(&format!("OpenBao to answer {path}"), timeout, async || {
            Ok(Some(said(client.call(Method::PUT, trial.address(&first)?, path, &question).await)?))
        })
        .await
    };
    ask("/v1/sys/mounts/load", json!({"type": "kv"})).await?;
    ask("/v1/sys/policies/acl/windlass", json!({"policy": POLICY})).await?;
    trial.bind("windlass-secrets")?;
    let token = token(&client, trial, &first, "1h").await?;
    trial.create(&[json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": set::TOKEN_SECRET},
        "stringData": {"token": token},
    })])?;
    Ok(root)
}

/// A token with Windlass's policy that lives so long.
async fn token(client: &OpenBao, trial: &Trial<'_>, pod: &str, ttl: &str) -> Result<String> {
    let question = json!({"policies": ["windlass"], "no_default_policy": true, "ttl": ttl, "renewable": false});
    let made = client.call(Method::PUT, trial.address(pod)?, "/v1/auth/token/create", &question).await;
    let made = said(made)?;
    made["auth"]["client_token"].as_str().map(str::to_owned).context("there is no token")
}

/// Gives Windlass another token that lives so long.
async fn renew(trial: &Trial<'_>, ttl: &str) -> Result<()> {
    let client = client(trial.access.token.clone());
    let token = token(&client, trial, &trial.leader()?, ttl).await?;
    change(trial, set::TOKEN_SECRET, json!({"stringData": {"token": token}})).await
}

/// Changes a Secret.
async fn change(trial: &Trial<'_>, secret: &str, patch: Value) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(trial.site.client.clone(), &trial.namespace);
    secrets.patch(secret, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Patient: the root token is told once, and an answer that is not waited for takes it along.
fn client(token: Option<String>) -> OpenBao {
    OpenBao::new(Duration::from_secs(1), Duration::from_mins(1), token)
}

fn said<T>(answer: Result<T, crate::client::Failure>) -> Result<T> {
    match answer {
        Ok(answer) => Ok(answer),
        Err(failure) => bail!("{failure:?}"),
    }
}
