//! etcd, from the old minor version to the new one.

mod apply_loop;
mod authentication;
mod controller_frozen;
mod eviction;
mod foreign_budget;
mod gates;
mod held_write;
mod member_stopped;
mod operator_frozen;
mod pre_pull;
mod revert;
pub mod set;
mod snapshot;
pub mod tls;
mod windlass_upgraded;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt, api::ListParams};
use serde_json::json;

use super::{
    Deletions, Keeper, Operators, Scenario,
    stories::{broken_image, deadline, operator_killed, template},
    trial::Trial,
    wait,
};
use crate::client::Application;

/// The leader is on the ordinal that goes first.
const USUAL: Scenario = Scenario::usual(Application::Etcd, Some(2));

/// All scenarios of etcd.
pub const SCENARIOS: &[Scenario] = &[
    Scenario::baseline("etcd-baseline", &USUAL),
    Scenario {
        name: "etcd-rolling-3",
        shows: "three members, the leader on the ordinal that goes first; the operator in pods",
        ci: true,
        ..USUAL
    },
    Scenario {
        name: "http-rolling-3",
        shows: "the same etcd, known to Windlass only by its HTTP endpoints and CEL",
        ci: true,
        described: true,
        leader: Some(1),
        ..USUAL
    },
    Scenario {
        name: "etcd-leader-last",
        shows: "the set is OnDelete: followers first, the leader last, and leadership moves once",
        ci: true,
        keeper: Keeper::WindlassOnDelete,
        ..USUAL
    },
    Scenario {
        name: "etcd-template",
        shows: "somebody else writes the template, as Git would, and Windlass only replaces the pods",
        keeper: Keeper::SomebodyElse,
        run: |trial| Box::pin(template::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-deadline-revert",
        shows: "the new image never gets ready: at the deadline it goes back by itself, and says so",
        deletions: Deletions::Any,
        ends_at: |pair| &pair.old.version,
        run: |trial| Box::pin(deadline::goes_back(trial)),
        ..USUAL
    },
    Scenario { name: "etcd-rolling-5", shows: "five members", replicas: 5, leader: Some(4), ..USUAL },
    Scenario { name: "etcd-leader-on-1", shows: "the leader on the ordinal in the middle", leader: Some(1), ..USUAL },
    Scenario { name: "etcd-leader-on-0", shows: "the leader on the ordinal that goes last", leader: Some(0), ..USUAL },
    Scenario {
        name: "etcd-operator-killed",
        shows: "five members, and the operator is killed at ten random moments",
        replicas: 5,
        leader: Some(4),
        operators: Operators::Local { count: 1, lease_seconds: 6 },
        run: |trial| Box::pin(operator_killed::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-operator-frozen",
        shows: "the operator is frozen for longer than its lease, another takes over, then it wakes: none of its writes lands",
        ci: true,
        operators: Operators::Local { count: 1, lease_seconds: 6 },
        run: |trial| Box::pin(operator_frozen::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-snapshot",
        shows: "before the upgrade a Job sends a snapshot to MinIO, over TLS; with a wrong key nothing begins",
        run: |trial| Box::pin(snapshot::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-held-write",
        shows: "a write of the operator is not answered: it decides nothing until that can't land any more, and then it is refused",
        operators: Operators::Local { count: 1, lease_seconds: 15 },
        run: |trial| Box::pin(held_write::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-controller-frozen",
        shows: "the controller-manager freezes while a permit stands, and leadership moves onto the permitted member",
        run: |trial| Box::pin(controller_frozen::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-member-stopped",
        shows: "a member stops answering in the middle and is then killed: nothing moves until it is back",
        run: |trial| Box::pin(member_stopped::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-crash-loop",
        shows: "the new image crash-loops: one member is down, nothing else moves; a mended image finishes the job",
        ci: true,
        deletions: Deletions::Any,
        run: |trial| Box::pin(broken_image::crashing(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-image-missing",
        shows: "the new image can't be pulled; then one that can",
        deletions: Deletions::Any,
        run: |trial| Box::pin(broken_image::missing(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-revert",
        shows: "the old version is asked for again half way",
        leader: Some(0),
        deletions: Deletions::Any,
        ends_at: |pair| &pair.old.version,
        run: |trial| Box::pin(revert::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-eviction",
        shows: "evictions and a drain in the middle are refused, and work again afterwards",
        deletions: Deletions::Any,
        run: |trial| Box::pin(eviction::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-foreign-budget",
        shows: "somebody else's budget covers the pods, and a drain evicts other members at every step: both count on that budget",
        deletions: Deletions::Any,
        run: |trial| Box::pin(foreign_budget::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-apply-loop",
        shows: "a loop applies the old image and partition: nothing begins, its name is told; half way the partition is held once",
        deletions: Deletions::Any,
        run: |trial| Box::pin(apply_loop::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-pre-pull",
        shows: "the new image is pulled on the node first: one that can't be pulled stops nobody, the right one finishes the job",
        run: |trial| Box::pin(pre_pull::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-gates",
        shows: "a freeze, measurements, a webhook and Jobs before and after: each holds in its turn, and then it goes on",
        run: |trial| Box::pin(gates::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-tls",
        shows: "members with one certificate for all names of a domain of their own: refused by the pod's name, taken by serverName",
        ci: true,
        secured: true,
        run: |trial| Box::pin(tls::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-authentication",
        shows: "etcd's authentication is enabled: nobody is told anything until a user is named, and members that restart forget tokens",
        ci: true,
        secured: true,
        run: |trial| Box::pin(authentication::run(trial)),
        ..USUAL
    },
    Scenario {
        name: "etcd-windlass-upgraded",
        shows: "Windlass itself is upgraded in the middle (the same build under another tag)",
        run: |trial| Box::pin(windlass_upgraded::run(trial)),
        ..USUAL
    },
];

/// Upgrades one member and then holds still: paused, all pods ready, the controller at rest.
async fn pause_after_the_first(trial: &Trial<'_>) -> Result<()> {
    trial.ask_for_new().await?;
    trial.resource.completed(1, 120).await?;
    trial.resource.change(json!({"paused": true})).await?;
    trial.resource.waits_for(&["Paused"], 60).await?;
    wait::until_so("nothing to move while paused", 60, async || {
        let set = trial.sets.get(set::NAME).await?;
        let status = set.status.unwrap_or_default();
        let pods = trial.pods.list(&ListParams::default()).await?.items;
        let partition = usize::try_from(trial.partition().await?)?;
        let at_rest = |ordinal: usize| {
            let pod = pods.iter().find(|pod| pod.name_any() == trial.application.pod(ordinal));
            pod.is_some_and(|pod| {
                let new = pod.labels().get("controller-revision-hash") == status.update_revision.as_ref();
                is_up(pod) && (new || ordinal < partition)
            })
        };
        Ok(status.observed_generation == set.metadata.generation && (0..trial.replicas).all(at_rest))
    })
    .await
}

/// Ready, and nobody has asked it to go.
fn is_up(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let ready = conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    ready && pod.metadata.deletion_timestamp.is_none()
}
