//! OpenBao elects whom it likes. Highest ordinal first, so that a leader that steps down can be followed by one that is not upgraded.

use anyhow::{Result, ensure};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Api, api::DeleteParams};
use serde_json::json;

use crate::scenario::{trial::Trial, wait};

/// Takes leadership off the pod that goes last, and asks for the order in which it matters who follows.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    let last = trial.application.pod(0);
    trial.lead_once(&trial.application.pod(1)).await?;
    wait::until_so("another than the last pod to lead", 60, async || Ok(trial.leader()? != last)).await?;
    trial.notes.push(format!("{} led when it began", trial.leader()?));
    trial.resource.change(json!({"updateStrategy": {"rollingUpdate": {"order": "ReverseOrdinal"}}})).await?;
    trial.ask_for_new().await?;
    // The chart's budget spares one member, and under a partition Kubernetes deletes one without asking it: the way out is in the message (H12).
    trial.resource.waits_for(&["DisruptionBudgetTooLoose"], 60).await?;
    let told = trial.resource.seen().await?.message;
    ensure!(told.contains("delete it"), "the way out is not told: {told}");
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(trial.site.client.clone(), &trial.namespace);
    budgets.delete(trial.application.name(), &DeleteParams::default()).await?;
    trial.finish(400).await
}
