//! A loop applies the old image and the old partition, as Argo CD does with server-side apply (H39).

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::pause_after_the_first;
use crate::{
    audit, say,
    scenario::{operator, trial::Trial},
};

const MANAGER: &str = "argocd-controller";
/// How often it applies, and for how long it is watched.
const PERIOD: Duration = Duration::from_secs(2);
const TURNS: usize = 10;

/// Nothing begins while the loop owns the fields. Accepted and silent, it applies the old partition once more half way: that is held once.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    let old = trial.pair()?.old.image.clone();
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
    let name = trial.application.name();
    let containers = json!([{"name": name, "image": old}]);
    let all = json!({"updateStrategy": strategy, "template": {"spec": {"containers": containers}}});
    apply(trial, &all).await?;
    let (writes, endings) = (written(trial)?, ended(trial)?);
    trial.ask_for_new().await?;
    say("image and partition are applied again and again");
    for _ in 0..TURNS {
        apply(trial, &all).await?;
        sleep(PERIOD).await;
    }
    trial.resource.waits_for(&["FieldOwned"], 30).await?;
    let told = trial.resource.seen().await?.message;
    ensure!(told.contains(MANAGER) && told.contains("trigger"), "the owner or the way out is not told: {told}");
    ensure!(written(trial)? == writes, "the StatefulSet was written although somebody else writes it");
    ensure!(ended(trial)? == endings, "pods were ended although nothing may begin");

    // The first one soaks until it is over: two are left, and the one that leads goes last.
    let soaks = json!({"policy": {"acceptOwners": [MANAGER]}, "upgrade": {"soak": "1h"}});
    trial.resource.change(soaks).await?;
    pause_after_the_first(trial).await?;
    // It goes last: whoever Kubernetes takes before we hold it does not lead.
    trial.lead_from(&trial.application.pod(0)).await?;
    let writes = written(trial)?;
    say("the partition is applied once more, with the new template in place");
    apply(trial, &json!({"updateStrategy": strategy})).await?;
    trial.resource.waits_for(&["FieldOwned"], 30).await?;
    let told = trial.resource.seen().await?.message;
    ensure!(told.contains(MANAGER), "who did it is not told: {told}");
    ensure!(trial.partition().await? > 0, "the partition is not held");
    ensure!(written(trial)? == writes + 1, "it was held {} times", written(trial)? - writes);
    sleep(PERIOD * 3).await;
    ensure!(written(trial)? == writes + 1, "something was written although nothing may go on");
    let goes_on = json!({"paused": false, "upgrade": {"soak": "0s"}, "requests": {"resume": "it is silent"}});
    trial.resource.change(goes_on).await?;
    trial.finish(240).await
}

async fn apply(trial: &Trial<'_>, spec: &Value) -> Result<()> {
    let name = trial.application.name();
    let part = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec});
    trial.sets.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(part)).await?;
    Ok(())
}

/// How often the operator has written the StatefulSet.
fn written(trial: &Trial<'_>) -> Result<usize> {
    let requests = trial.audit.requests(&trial.namespace)?;
    let ours = requests.iter().filter(|request| request.user.username == operator::USER && request.verb == "patch");
    let landed = ours.filter(|request| request.response_status.code < 300);
    Ok(landed.filter(|request| request.object_ref.resource == "statefulsets").count())
}

fn ended(trial: &Trial<'_>) -> Result<usize> {
    Ok(audit::endings(&trial.audit.requests(&trial.namespace)?).len())
}
