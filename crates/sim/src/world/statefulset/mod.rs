//! The StatefulSet controller as of Kubernetes 1.34, with the MaxUnavailableStatefulSet gate off.
//!
//! One look: create what is missing, then scale down, then (unless the strategy is OnDelete) replace the highest pod that is
//! out of date and not held by the partition. With OrderedReady each stage waits for the pods below it to be available.

mod replica;
mod revisions;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::DeleteParams;
use kube::core::Status;
use serde_json::{Value, json};

use super::Deviation;
use super::json::{controller, list, number, terminating, text, uid};
use super::queue::{Event, Key};
use super::state::State;
use replica::{Replica, build_pod, owner_reference};
use revisions::Revision;

const USER: &str = "statefulset-controller";

type Outcome<T> = Result<T, Box<Status>>;

/// What the controller reads from a set's spec.
pub(super) struct Wanted<'a> {
    key: &'a Key,
    set: &'a Value,
    replicas: i64,
    start: i64,
    parallel: bool,
    on_delete: bool,
    /// None where the strategy has no `rollingUpdate` block, which is not the same as a partition of 0.
    partition: Option<i64>,
    min_ready: Duration,
    deviation: Option<Deviation>,
}

impl<'a> Wanted<'a> {
    fn of(key: &'a Key, set: &'a Value, deviation: Option<Deviation>) -> Self {
        let rolling = set.pointer("/spec/updateStrategy/rollingUpdate").filter(|block| !block.is_null());
        let seconds = number(set, "/spec/minReadySeconds").unwrap_or(0);
        let obeyed = deviation != Some(Deviation::PartitionIgnored);
        Self {
            key,
            set,
            replicas: number(set, "/spec/replicas").unwrap_or(1),
            start: number(set, "/spec/ordinals/start").unwrap_or(0),
            parallel: text(set, "/spec/podManagementPolicy") == "Parallel",
            on_delete: text(set, "/spec/updateStrategy/type") == "OnDelete",
            partition: rolling.map(|rolling| number(rolling, "/partition").filter(|_| obeyed).unwrap_or(0)),
            min_ready: Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
            deviation,
        }
    }

    /// Whether a pod that has to be made anew for this ordinal stays on the current revision.
    fn holds(&self, ordinal: i64) -> bool {
        let held = match self.partition {
            Some(partition) => partition,
            None if self.on_delete => return false,
            None => number(self.set, "/status/currentReplicas").unwrap_or(0),
        };
        ordinal < self.start + held && self.deviation != Some(Deviation::HeldPodComesUpNew)
    }
}

/// The revisions between which a set moves.
pub(super) struct Revisions {
    current: Revision,
    update: Revision,
    collisions: i64,
}

#[derive(Default)]
struct Counts {
    replicas: i64,
    ready: i64,
    available: i64,
    current: i64,
    updated: i64,
}

impl Counts {
    fn of<'a>(pods: impl Iterator<Item = &'a Replica>, revisions: &Revisions) -> Self {
        let mut counts = Self::default();
        for pod in pods.filter(|pod| pod.created()) {
            counts.replicas += 1;
            counts.ready += i64::from(pod.ready);
            counts.available += i64::from(pod.available());
            if !pod.terminating {
                counts.current += i64::from(pod.revision == revisions.current.name);
                counts.updated += i64::from(pod.revision == revisions.update.name);
            }
        }
        counts
    }
}

/// Whether a look may go on to its next stage.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    Wait,
}

impl State {
    pub(super) fn sync_set(&mut self, key: &Key) {
        if self.now() < self.frozen_until {
            self.queue.push(self.frozen_until, Event::Set(key.clone()));
            return;
        }
        let Some(set) = self.api.get_value("statefulsets.apps", &key.namespace, &key.name) else {
            self.failures.remove(key);
            return;
        };
        if self.look_at_set(key, &set).is_ok() {
            self.failures.remove(key);
        } else {
            let failures = self.failures.entry(key.clone()).or_default();
            *failures += 1;
            let wait = Duration::from_millis(5).saturating_mul(1 << (*failures).min(17));
            self.queue.push(self.now() + wait.min(Duration::from_secs(1000)), Event::Set(key.clone()));
        }
    }

    fn look_at_set(&mut self, key: &Key, set: &Value) -> Outcome<()> {
        let wanted = Wanted::of(key, set, self.deviation);
        if !terminating(set) {
            self.adopt(&wanted)?;
        }
        let mut history = self.history_of(&wanted);
        let revisions = self.resolve_revisions(&wanted, &mut history)?;
        let pods: Vec<Replica> = self
            .api
            .list_values("pods", &key.namespace)
            .iter()
            .filter(|pod| controller(pod).is_some_and(|owner| text(owner, "/uid") == uid(set)))
            .filter_map(|pod| Replica::of(pod, &key.name, wanted.min_ready, self.clock.now()))
            .collect();
        if let Some(soonest) = pods.iter().filter_map(|pod| pod.available_in).filter(|wait| !wait.is_zero()).min() {
            self.queue.push(self.now() + soonest, Event::Set(key.clone()));
        }
        let live: Vec<String> = pods.iter().map(|pod| pod.revision.clone()).collect();
        let before = self.api.revision();
        let (counts, worked) = self.work(&wanted, &revisions, pods);
        if self.status_refused && self.api.revision() != before {
            self.queue.push(self.now(), Event::Set(key.clone()));
            return worked;
        }
        let reported = self.report_set(&wanted, &revisions, counts);
        self.truncate_history(&wanted, &revisions, &history, &live)?;
        worked.and(reported)
    }

    /// Does one round of work and counts what it saw; the counts are to be reported even where the work failed.
    fn work(&mut self, wanted: &Wanted<'_>, revisions: &Revisions, pods: Vec<Replica>) -> (Counts, Outcome<()>) {
        let end = wanted.start + wanted.replicas;
        let mut present: BTreeMap<i64, Replica> = BTreeMap::new();
        let mut condemned = Vec::new();
        for pod in pods {
            if (wanted.start..end).contains(&pod.ordinal) {
                present.insert(pod.ordinal, pod);
            } else {
                condemned.push(pod);
            }
        }
        condemned.sort_by_key(|pod| std::cmp::Reverse(pod.ordinal));
        let replicas: Vec<Replica> = (wanted.start..end)
            .map(|ordinal| {
                present.remove(&ordinal).unwrap_or_else(|| {
                    let revision = if wanted.holds(ordinal) { &revisions.current } else { &revisions.update };
                    Replica::missing(&wanted.key.name, ordinal, &revision.name)
                })
            })
            .collect();
        let mut counts = Counts::of(replicas.iter().chain(&condemned), revisions);
        if terminating(wanted.set) {
            return (counts, Ok(()));
        }
        let worked = match self.keep_replicas(wanted, revisions, &replicas) {
            Ok(Next::GoOn) => match self.scale_down(wanted, &replicas, &condemned) {
                Ok(Next::GoOn) if !wanted.on_delete => self.roll(wanted, revisions, &replicas, &mut counts),
                Ok(Next::GoOn | Next::Wait) => Ok(()),
                Err(error) => Err(error),
            },
            Ok(Next::Wait) => Ok(()),
            Err(error) => Err(error),
        };
        (counts, worked)
    }

    /// Creates what is missing and replaces what has ended. In order: only while all pods below are available.
    fn keep_replicas(&mut self, wanted: &Wanted<'_>, revisions: &Revisions, replicas: &[Replica]) -> Outcome<Next> {
        for pod in replicas {
            let mended =
                wanted.deviation == Some(Deviation::BrokenPodReplaced) && pod.revision != revisions.update.name;
            if pod.ended() || (mended && pod.created() && !pod.ready) {
                if !pod.terminating {
                    self.delete_replica(wanted, pod)?;
                }
                if wanted.parallel {
                    continue;
                }
                return Ok(Next::Wait);
            }
            if !pod.created() {
                let held = pod.revision == revisions.current.name;
                let revision = if held { &revisions.current } else { &revisions.update };
                self.create_replica(wanted, revision, pod.ordinal)?;
                if wanted.parallel {
                    continue;
                }
                return Ok(Next::Wait);
            }
            if !wanted.parallel && (pod.terminating || !pod.available()) {
                return Ok(Next::Wait);
            }
        }
        Ok(Next::GoOn)
    }

    /// Deletes pods beyond the wanted ordinals, the highest first. In order: one at a time, and a sick one only if it is the first.
    fn scale_down(&mut self, wanted: &Wanted<'_>, replicas: &[Replica], condemned: &[Replica]) -> Outcome<Next> {
        let first_sick = replicas.iter().chain(condemned.iter().rev()).find(|pod| pod.unavailable());
        for pod in condemned {
            if pod.terminating {
                if wanted.parallel {
                    continue;
                }
                return Ok(Next::Wait);
            }
            if !wanted.parallel {
                if pod.available() || first_sick.is_some_and(|sick| sick.name == pod.name) {
                    self.delete_replica(wanted, pod)?;
                }
                return Ok(Next::Wait);
            }
            self.delete_replica(wanted, pod)?;
        }
        Ok(Next::GoOn)
    }

    /// Deletes the highest pod that is out of date and not held; waits where a pod above it is not available.
    fn roll(
        &mut self,
        wanted: &Wanted<'_>,
        revisions: &Revisions,
        replicas: &[Replica],
        counts: &mut Counts,
    ) -> Outcome<()> {
        let lowest = wanted.start + wanted.partition.unwrap_or(0);
        for pod in replicas.iter().rev().take_while(|pod| pod.ordinal >= lowest) {
            if pod.revision != revisions.update.name && !pod.terminating {
                self.delete_replica(wanted, pod)?;
                counts.current -= 1;
                return Ok(());
            }
            if pod.unavailable() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn delete_replica(&mut self, wanted: &Wanted<'_>, pod: &Replica) -> Outcome<()> {
        match self.api.delete::<Pod>(USER, &wanted.key.namespace, &pod.name, &DeleteParams::default()) {
            Err(status) if status.code == 404 => Ok(()),
            other => other,
        }
    }

    fn create_replica(&mut self, wanted: &Wanted<'_>, revision: &Revision, ordinal: i64) -> Outcome<()> {
        let name = format!("{}-{ordinal}", wanted.key.name);
        self.create_claims(wanted, &name)?;
        let pod = build_pod(wanted, &revision.template, &revision.name, ordinal);
        self.api.create_value(USER, pod).map(|_| ())
    }

    /// Makes the pod's claims where they don't exist; storage is there at once.
    fn create_claims(&mut self, wanted: &Wanted<'_>, pod: &str) -> Outcome<()> {
        let namespace = &wanted.key.namespace;
        for template in list(wanted.set, "/spec/volumeClaimTemplates") {
            let name = format!("{}-{pod}", text(template, "/metadata/name"));
            if self.api.get_value("persistentvolumeclaims", namespace, &name).is_some() {
                continue;
            }
            let claim = json!({
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": name,
                    "namespace": namespace,
                    "labels": wanted.set.pointer("/spec/selector/matchLabels").cloned().unwrap_or(json!({})),
                },
                "spec": template.get("spec").cloned().unwrap_or(json!({})),
            });
            self.api.create_value(USER, claim)?;
            let bound = json!({"status": {"phase": "Bound"}});
            let user = "persistentvolume-binder";
            self.api.merge_status::<PersistentVolumeClaim>(user, namespace, &name, &bound)?;
        }
        Ok(())
    }

    /// Takes over pods and revisions that match the selector and have no controller.
    fn adopt(&mut self, wanted: &Wanted<'_>) -> Outcome<()> {
        let namespace = &wanted.key.namespace;
        let none = json!({});
        let selector = wanted.set.pointer("/spec/selector").unwrap_or(&Value::Null);
        for resource in ["pods", "controllerrevisions.apps"] {
            for orphan in self.api.list_values(resource, namespace) {
                let labels = orphan.pointer("/metadata/labels").unwrap_or(&none);
                let name = text(&orphan, "/metadata/name");
                let is_ours = name.strip_prefix(&wanted.key.name).is_some_and(|rest| rest.starts_with('-'));
                if controller(&orphan).is_some()
                    || terminating(&orphan)
                    || !is_ours
                    || !super::json::selects(selector, labels)
                {
                    continue;
                }
                let mut owners = list(&orphan, "/metadata/ownerReferences").to_vec();
                owners.push(owner_reference(wanted));
                let patch = json!({"metadata": {"uid": uid(&orphan), "ownerReferences": owners}});
                if resource == "pods" {
                    self.api.merge::<Pod>(USER, namespace, name, &patch)?;
                } else {
                    self.adopt_revision(namespace, name, &patch)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the status where it changed; a finished rolling update moves the current revision on.
    fn report_set(&mut self, wanted: &Wanted<'_>, revisions: &Revisions, mut counts: Counts) -> Outcome<()> {
        let mut current = &revisions.current.name;
        let complete = [counts.updated, counts.ready, counts.replicas].iter().all(|count| *count == wanted.replicas);
        let moves = !wanted.on_delete || wanted.deviation == Some(Deviation::CurrentMovesUnderOnDelete);
        if moves && complete {
            // The partition is not consulted here: all pods being new is enough.
            counts.current = counts.updated;
            current = &revisions.update.name;
        }
        // The real status leaves out counts that are zero.
        let some = |count: i64| if count == 0 { Value::Null } else { json!(count) };
        let status = json!({
            "observedGeneration": number(wanted.set, "/metadata/generation"),
            "replicas": counts.replicas,
            "readyReplicas": some(counts.ready),
            "availableReplicas": counts.available,
            "currentReplicas": some(counts.current),
            "updatedReplicas": some(counts.updated),
            "currentRevision": current,
            "updateRevision": revisions.update.name,
            "collisionCount": revisions.collisions,
        });
        let before = wanted.set.get("status").unwrap_or(&Value::Null);
        let changed = status.as_object().is_some_and(|status| {
            status.iter().any(|(field, value)| before.get(field).unwrap_or(&Value::Null) != value)
        });
        if changed {
            let patch = json!({"status": status});
            self.api.merge_status::<StatefulSet>(USER, &wanted.key.namespace, &wanted.key.name, &patch)?;
        }
        Ok(())
    }
}
