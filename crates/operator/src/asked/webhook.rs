//! A Service that says whether to go on.

use std::time::Duration;

use kube::ResourceExt;
use serde_json::{Value, json};
use windlass_api::{
    QuorumCluster,
    quorum_cluster::{HookTime, ServiceRef},
};
use windlass_plan::{Hold, Reason, outcome::Outcome};
use windlass_systems::webhook::{self, Said};

use super::{hook_name, service, time};
use crate::Context;

const LIMIT: Duration = Duration::from_secs(5);
/// What it said counts for so long.
const FRESH: Duration = Duration::from_secs(10);

/// Asks it, if what it said last is old enough.
pub async fn ask(
    context: &Context,
    resource: &QuorumCluster,
    hook: &str,
    when: HookTime,
    service: &ServiceRef,
) -> Outcome {
    let name = hook_name(hook);
    if let Some(said) = context.asked.recent(resource, &name, FRESH) {
        return said;
    }
    let hold = |message: String| Hold::new(Reason::AwaitingHook, format!("{name}: {message}"));
    let outcome = match service::reach(context, resource, service).await {
        Err(why) => Outcome::Unknown(hold(why)),
        Ok((peer, transport)) => {
            let path = if service.path.is_empty() { "/" } else { &service.path };
            match webhook::ask(transport.as_ref(), &peer, path, &about(resource, hook, when), LIMIT).await {
                Ok(Said::Yes) => Outcome::Pass,
                Ok(Said::No(words)) => Outcome::Hold(hold(format!("{} says no: {words}", peer.pod))),
                Err(error) => Outcome::Unknown(hold(error.to_string())),
            }
        }
    };
    context.asked.keep(resource, &name, &outcome, 0);
    outcome
}

/// What it is told.
fn about(resource: &QuorumCluster, hook: &str, when: HookTime) -> Value {
    let status = resource.status.clone().unwrap_or_default();
    let target = status.upgrade.as_ref().map(|upgrade| upgrade.target_version.clone());
    json!({
        "hook": hook,
        "when": time(when),
        "quorumCluster": {"namespace": resource.namespace(), "name": resource.name_any(), "uid": resource.uid()},
        "currentVersion": status.current_version,
        "targetVersion": target.or_else(|| resource.spec.version.clone()),
        "completedPods": status.upgrade.map(|upgrade| upgrade.completed_pods).unwrap_or_default(),
    })
}
