//! A write of the operator is not answered while it acts: one that the API server hears of late, and one that it has done (H1).

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    audit::Request,
    hold::{Half, Hold},
    say,
    scenario::{operator, trial::Trial, wait},
};

/// Writes to the StatefulSet itself.
const SETS: &str = "/statefulsets/";

/// The operator goes on when what it sent can't land any more, and what lands all the same is refused.
pub async fn run(trial: &mut Trial<'_>) -> Result<()> {
    let hold = Hold::before(&trial.site.cluster.kubeconfig()).await?;
    // From here on by way of the proxy.
    for operator in &mut trial.operators {
        operator.kill()?;
    }
    let before = operator(trial).await?;
    trial.operators = vec![trial.site.windlass.start_at("etcd-held-write", 15, &hold.server).await?];
    wait::until_so("the operator to take over and settle", 90, async || {
        let now = operator(trial).await?;
        Ok(now["identity"] != before["identity"] && now["predecessorDone"] == true)
    })
    .await?;
    trial.resource.ready_at(&trial.pair()?.old.version, 60).await?;

    let begun = Timestamp::now();
    hold.hold_next(SETS, Half::Request);
    trial.ask_for_new().await?;
    wait::until_so("a write to be held", 60, async || Ok(hold.held() > 0)).await?;
    let touch = wait::until("the operator to touch the StatefulSet", 60, async || {
        Ok(writes(trial, begun)?.into_iter().find(Request::succeeded))
    })
    .await?;
    is_touch(&touch)?;
    hold.release();
    let late = wait::until("the held write to arrive", 30, async || {
        let writes = writes(trial, begun)?;
        Ok(writes.into_iter().find(|write| write.response_status.code == 409))
    })
    .await?;
    ensure!(late.request_received_timestamp > touch.request_received_timestamp, "it was not late");
    say("a write that came late was refused");

    hold.hold_next(SETS, Half::Answer);
    wait::until_so("an answer to be held", 120, async || Ok(hold.held() > 0)).await?;
    let (before, unanswered) = (Timestamp::now(), trial.resource.seen().await?);
    let touch = wait::until("the operator to touch the StatefulSet", 60, async || {
        Ok(writes(trial, before)?.into_iter().find(Request::succeeded))
    })
    .await?;
    is_touch(&touch)?;
    hold.release();
    say(&format!("an answer was lost at {}: {}", unanswered.completed, unanswered.reason));
    trial.finish(300).await?;
    let operator = trial.operators.first().context("there is no operator")?;
    let waited = std::fs::read_to_string(&operator.log)?.matches("was not answered").count();
    ensure!(waited > 0, "the operator's log says nothing of it");
    Ok(())
}

/// Who acts on the resource.
async fn operator(trial: &Trial<'_>) -> Result<Value> {
    Ok(trial.resource.whole().await?["status"]["operator"].take())
}

/// The first thing that it writes then changes nothing but who touched it last.
fn is_touch(write: &Request) -> Result<()> {
    let sent = &write.request_object;
    let annotations = sent["metadata"]["annotations"].as_object();
    let touches = annotations.is_some_and(|annotations| annotations.keys().all(|key| key.starts_with("windlass.dev/")));
    ensure!(sent["spec"].is_null() && touches, "something was decided before the write was fenced: {sent}");
    Ok(())
}

/// What the operator wrote to the StatefulSet since then.
fn writes(trial: &Trial<'_>, since: Timestamp) -> Result<Vec<Request>> {
    let requests = trial.audit.requests(&trial.namespace)?;
    let ours = requests.into_iter().filter(|request| {
        request.writes()
            && request.user.username == operator::USER
            && request.object_ref.resource == "statefulsets"
            && request.request_received_timestamp > since
    });
    Ok(ours.collect())
}
