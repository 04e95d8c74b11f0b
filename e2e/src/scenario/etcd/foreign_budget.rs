//! A drain that evicts other members at every step, under a budget that is somebody else's (H12).

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{
    Api, ResourceExt,
    api::{EvictParams, ListParams},
};
use serde_json::json;
use tokio::time::sleep;

use super::is_up;
use crate::{
    say,
    scenario::{operator, trial::Trial},
};

/// How long the whole upgrade may take.
const LIMIT: Duration = Duration::from_mins(5);
/// For how long the drain leaves members alone who are all well, after it took one: the operator has its turns, too.
const TURN: Duration = Duration::from_secs(12);
const BETWEEN: Duration = Duration::from_millis(200);

/// What became of an eviction.
enum Answer {
    Passed,
    Refused,
    Gone,
}

/// Upgrades leader last within the budget, and evicts whoever does not lead: whenever somebody is down, and now and then when all are well.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    let name = trial.application.name();
    trial.create(&[json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "theirs"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
    })])?;
    trial.resource.change(json!({"updateStrategy": {"rollingUpdate": {"order": "LeaderLast"}}})).await?;
    trial.ask_for_new().await?;
    let (new, began) = (trial.pair()?.new.version.clone(), Instant::now());
    let (mut passed, mut refused, mut quiet_until) = (0, 0, began + TURN);
    // How many were done when an eviction was refused: each step must have been raced.
    let mut raced = BTreeSet::new();
    say("members are evicted at every step");
    loop {
        let seen = trial.resource.seen().await?;
        if seen.ready && seen.version == new {
            break;
        }
        ensure!(began.elapsed() < LIMIT, "it is not done in time: {}: {}", seen.reason, seen.message);
        for ordinal in 0..trial.replicas {
            let pods = trial.pods.list(&ListParams::default()).await?.items;
            let somebody_is_down = pods.len() < trial.replicas || !pods.iter().all(is_up);
            let pod = trial.application.pod(ordinal);
            // A leader that is evicted would be the drain's doing, and could not be told from ours. One that is not up yet goes past the budget,
            // and would never get up.
            let stays = pods.iter().any(|seen| seen.name_any() == pod && is_up(seen));
            let follows = stays && trial.leader().is_ok_and(|leader| leader != pod);
            if !follows || (!somebody_is_down && Instant::now() < quiet_until) {
                continue;
            }
            match evict(trial, &pod).await? {
                Answer::Passed => (passed, quiet_until) = (passed + 1, Instant::now() + TURN),
                Answer::Refused => {
                    refused += 1;
                    raced.insert(seen.completed);
                }
                Answer::Gone => {}
            }
        }
        sleep(BETWEEN).await;
    }
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(trial.site.client.clone(), &trial.namespace);
    ensure!(budgets.get_opt(&format!("windlass-{name}")).await?.is_none(), "a second budget was made");
    ensure!(raced.len() >= trial.replicas, "not every step was raced, only those after {raced:?}");
    let requests = trial.audit.requests(&trial.namespace)?;
    let by_us = requests
        .iter()
        .filter(|request| request.user.username == operator::USER && request.object_ref.subresource == "eviction");
    let (ours, ours_refused): (Vec<_>, Vec<_>) = by_us.partition(|request| request.response_status.code < 300);
    ensure!(!ours.is_empty(), "the operator evicted nobody");
    for eviction in &ours {
        let preconditions = &eviction.request_object["deleteOptions"]["preconditions"];
        ensure!(
            preconditions["uid"].is_string() && preconditions["resourceVersion"].is_string(),
            "an eviction is not fenced: {}",
            eviction.request_object
        );
    }
    trial.notes.push(format!(
        "the operator evicted {} ({} refused), a drain {passed} ({refused} refused)",
        ours.len(),
        ours_refused.len()
    ));
    Ok(())
}

/// Tries to evict a pod.
async fn evict(trial: &Trial<'_>, pod: &str) -> Result<Answer> {
    match trial.pods.evict(pod, &EvictParams::default()).await {
        Ok(_) => Ok(Answer::Passed),
        Err(kube::Error::Api(status)) if status.code == 429 => Ok(Answer::Refused),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Answer::Gone),
        Err(error) => bail!("{pod} can't be evicted: {error}"),
    }
}
