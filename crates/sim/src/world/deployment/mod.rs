//! The Deployment controller as of Kubernetes 1.34.
//!
//! One look: find the ReplicaSet of the present template (or make it), give each ReplicaSet its size, and report. Pods are the business
//! of the ReplicaSet controller. What each size is, is reckoned next door (`sizes`); what is told, too (`status`).

mod set;
mod sizes;
mod status;
mod wanted;

use std::sync::Arc;
use std::time::Duration;

use kube::api::DeleteParams;
use kube::core::Status as Refusal;
use serde_json::{Map, Value, json};

use super::DeploymentDeviation;
use super::json::{controller, name, number, terminating, text, uid};
use super::queue::{Event, Key};
use super::replicaset::{self, differs};
use super::state::State;
use super::template::{controlled_by, hash};
use set::{Annotations, HASH_LABEL, REVISION, Set, inherited, same_template};
use sizes::{Resized, is_saturated, lowered, proportional, raised, sole};
use status::{PROGRESSING, Status, Word};
use wanted::Wanted;

const USER: &str = "deployment-controller";
pub(super) const RESOURCE: &str = "deployments.apps";
const RETRY: Duration = Duration::from_secs(1);
/// Sooner than any other look comes.
const AT_ONCE: Duration = Duration::from_millis(2);
/// Clashes of names that are tried before a look is given up.
const TRIES: i64 = 10;

type Outcome<T> = Result<T, Box<Refusal>>;

/// A Deployment in the course of one look.
struct Rollout<'a> {
    key: &'a Key,
    deployment: &'a Value,
    wanted: Wanted,
    generation: i64,
    /// Oldest first.
    sets: Vec<Set>,
    /// The one of the present template.
    new: Option<usize>,
    /// As it was told last, or is about to be.
    status: Status,
    /// A look writes one status: what comes after it is told by the look that the write leads to.
    told: bool,
}

impl Rollout<'_> {
    fn new_set(&self) -> Option<&Set> {
        self.new.and_then(|new| self.sets.get(new))
    }

    fn old_sets(&self) -> impl Iterator<Item = (usize, &Set)> {
        self.sets.iter().enumerate().filter(|(index, _)| Some(*index) != self.new)
    }

    fn counted(&self, now: jiff::Timestamp) -> Status {
        self.status.counted(&self.wanted, self.generation, &self.sets, self.new_set(), now)
    }
}

impl State {
    pub(super) fn sync_deployment(&mut self, key: &Key) {
        if self.now() < self.frozen_until {
            self.queue.push(self.frozen_until, Event::Deployment(key.clone()));
            return;
        }
        let Some(deployment) = self.api.get_value(RESOURCE, &key.namespace, &key.name) else { return };
        // In a namespace that is being emptied nothing can be made; what is left there goes by itself.
        if self.look_at_deployment(key, &deployment).is_err() && !self.graph.is_leaving(&key.namespace) {
            self.queue.push(self.now() + RETRY, Event::Deployment(key.clone()));
        }
    }

    fn look_at_deployment(&mut self, key: &Key, deployment: &Value) -> Outcome<()> {
        let sets = self.claim(USER, replicaset::RESOURCE, deployment, |_| true)?;
        let mut sets: Vec<Set> = sets.into_iter().map(Set::of).collect();
        sets.sort_by_cached_key(Set::age_order);
        let new = sets.iter().position(|set| same_template(&set.object, deployment));
        let mut wanted = Wanted::of(deployment);
        wanted.paused &= self.deployment_deviation != Some(DeploymentDeviation::PauseIgnored);
        let mut rollout = Rollout {
            key,
            deployment,
            wanted,
            generation: number(deployment, "/metadata/generation").unwrap_or(0),
            sets,
            new,
            status: Status::of(deployment),
            told: false,
        };
        if terminating(deployment) {
            self.note_revision(&mut rollout)?;
            let status = rollout.counted(self.clock.now());
            return self.tell(&mut rollout, status, None);
        }
        if rollout.status.note_pause(&rollout.wanted, self.clock.now()) {
            let status = rollout.status.clone();
            self.tell(&mut rollout, status, None)?;
        }
        self.note_revision(&mut rollout)?;
        let mut sized = rollout.sets.iter().filter(|set| set.size > 0).filter_map(Set::desired);
        if rollout.wanted.paused || sized.any(|desired| desired != rollout.wanted.replicas) {
            return self.scale_deployment(&mut rollout);
        }
        if rollout.wanted.recreate {
            self.recreate_deployment(&mut rollout)
        } else {
            self.roll_deployment(&mut rollout)
        }
    }

    /// Sizes the sets of a Deployment that was scaled or is paused; nothing goes on to the new template meanwhile.
    fn scale_deployment(&mut self, rollout: &mut Rollout<'_>) -> Outcome<()> {
        let wanted = &rollout.wanted;
        let resized: Vec<Resized> = if let Some(index) = sole(&rollout.sets, rollout.new) {
            vec![(index, wanted.replicas)]
        } else if rollout.new_set().is_some_and(|new| is_saturated(wanted, new)) {
            rollout.old_sets().filter(|(_, set)| set.size > 0).map(|(index, _)| (index, 0)).collect()
        } else if wanted.recreate {
            Vec::new()
        } else {
            // Each of these learns the Deployment's size, whether its own changes or not.
            for (index, size) in proportional(wanted, &rollout.sets, rollout.status.replicas) {
                self.write_size(rollout, index, size)?;
            }
            Vec::new()
        };
        self.resize(rollout, &resized)?;
        if rollout.wanted.paused {
            self.shorten_history(rollout)?;
        }
        let status = rollout.counted(self.clock.now());
        self.tell(rollout, status, None)
    }

    /// Replaces the old pods by new ones, some at a time.
    fn roll_deployment(&mut self, rollout: &mut Rollout<'_>) -> Outcome<()> {
        let new = self.new_set(rollout)?;
        let Some(size) = rollout.new_set().map(|new| new.size) else { return Ok(()) };
        let wanted = &rollout.wanted;
        let grown = if size > wanted.replicas { wanted.replicas } else { raised(wanted, &rollout.sets, size) };
        if self.resize(rollout, &[(new, grown)])? {
            return self.tell_progress(rollout);
        }
        let keep_sick = self.deployment_deviation == Some(DeploymentDeviation::SickPodsKept);
        let resized = lowered(&rollout.wanted, &rollout.sets, new, keep_sick);
        if self.resize(rollout, &resized)? {
            return self.tell_progress(rollout);
        }
        if rollout.status.is_complete(&rollout.wanted, rollout.generation) {
            self.shorten_history(rollout)?;
        }
        self.tell_progress(rollout)
    }

    /// Removes all old pods, waits for the last of them, and makes the new ones.
    fn recreate_deployment(&mut self, rollout: &mut Rollout<'_>) -> Outcome<()> {
        let resized: Vec<Resized> =
            rollout.old_sets().filter(|(_, set)| set.size > 0).map(|(index, _)| (index, 0)).collect();
        if self.resize(rollout, &resized)? || self.has_old_pods(rollout) {
            return self.tell_progress(rollout);
        }
        let new = self.new_set(rollout)?;
        let whole = rollout.wanted.replicas;
        self.resize(rollout, &[(new, whole)])?;
        if rollout.status.is_complete(&rollout.wanted, rollout.generation) {
            self.shorten_history(rollout)?;
        }
        self.tell_progress(rollout)
    }

    /// Whether a pod of an old template has not ended, even if it is on its way out.
    fn has_old_pods(&self, rollout: &Rollout<'_>) -> bool {
        let runs = |pod: &Arc<Value>| !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
        rollout
            .old_sets()
            .any(|(_, set)| set.replicas > 0 || self.controlled("pods", uid(&set.object)).iter().any(runs))
    }

    /// The Deployment of a pod that is gone, if it has waited for that: it recreates its pods, and this was the last one.
    pub(super) fn waits_for_last_pod(&self, pod: &Value) -> Option<Key> {
        let of = |resource: &str, kind: &str, object: &Value| {
            let owner = controller(object).filter(|owner| text(owner, "/kind") == kind)?;
            let found = self.api.get_value(resource, text(object, "/metadata/namespace"), text(owner, "/name"))?;
            (uid(&found) == text(owner, "/uid")).then_some(found)
        };
        let set = of(replicaset::RESOURCE, "ReplicaSet", pod)?;
        let deployment = of(RESOURCE, "Deployment", &set)?;
        let recreates = text(&deployment, "/spec/strategy/type") == "Recreate";
        let mut sets = self.controlled(replicaset::RESOURCE, uid(&deployment)).into_iter();
        let last = recreates && sets.all(|set| self.controlled("pods", uid(&set)).is_empty());
        last.then(|| Key::new(text(&deployment, "/metadata/namespace"), name(&deployment)))
    }

    /// Gives sets their sizes where these differ; true where one did.
    fn resize(&mut self, rollout: &mut Rollout<'_>, resized: &[Resized]) -> Outcome<bool> {
        let differs = |(index, size): &&Resized| rollout.sets.get(*index).is_some_and(|set| set.size != *size);
        let changed: Vec<Resized> = resized.iter().filter(differs).copied().collect();
        for (index, size) in &changed {
            self.write_size(rollout, *index, *size)?;
        }
        Ok(!changed.is_empty())
    }

    /// Writes a set's size, and that of the Deployment beside it.
    fn write_size(&mut self, rollout: &mut Rollout<'_>, index: usize, size: i64) -> Outcome<()> {
        let (desired, most) = (rollout.wanted.replicas, rollout.wanted.most());
        let Some(set) = rollout.sets.get(index) else { return Ok(()) };
        let lacking = set.lacks_sizes(desired, most);
        if set.size != size || !lacking.is_empty() {
            self.write_set(rollout, index, &lacking, &json!({"replicas": size}))?;
        }
        Ok(())
    }

    fn write_set(
        &mut self,
        rollout: &mut Rollout<'_>,
        index: usize,
        annotations: &Annotations,
        spec: &Value,
    ) -> Outcome<()> {
        let Some(set) = rollout.sets.get_mut(index) else { return Ok(()) };
        let patch = json!({"metadata": {"uid": uid(&set.object), "annotations": annotations}, "spec": spec});
        let resource = replicaset::RESOURCE;
        let written = self.api.merge_value(USER, resource, &rollout.key.namespace, set.name(), &patch)?;
        *set = Set::of(written);
        Ok(())
    }

    /// Brings the new set's annotations up to date, if there is one, and the Deployment's revision to that of the set.
    fn note_revision(&mut self, rollout: &mut Rollout<'_>) -> Outcome<()> {
        let Some(new) = rollout.new else { return Ok(()) };
        let newest = rollout.old_sets().map(|(_, set)| set.revision()).max().unwrap_or(0);
        let Some(set) = rollout.sets.get(new) else { return Ok(()) };
        let lacking = set.lacks(rollout.deployment, newest + 1);
        let min_ready = rollout.wanted.min_ready;
        if !lacking.is_empty() || number(&set.object, "/spec/minReadySeconds").unwrap_or(0) != min_ready {
            self.write_set(rollout, new, &lacking, &json!({"minReadySeconds": min_ready}))?;
        }
        let Some((revision, name)) = rollout.new_set().map(|set| (set.revision(), set.name().to_owned())) else {
            return Ok(());
        };
        let unknown = rollout.wanted.deadline.is_some() && rollout.status.condition(PROGRESSING).is_none();
        let known = text(rollout.deployment, "/metadata/annotations/deployment.kubernetes.io~1revision");
        if !unknown && known == revision.to_string() {
            return Ok(());
        }
        let mut status = rollout.status.clone();
        if unknown {
            let message = format!("Found new replica set {name:?}");
            let word = Word { kind: PROGRESSING, status: "True", reason: "FoundNewReplicaSet", message: &message };
            status.set(&word, self.clock.now());
        }
        self.tell(rollout, status, Some(revision))
    }

    /// The index of the new set, which is made where there is none.
    fn new_set(&mut self, rollout: &mut Rollout<'_>) -> Outcome<usize> {
        if let Some(new) = rollout.new {
            return Ok(new);
        }
        let revision = rollout.sets.iter().map(Set::revision).max().unwrap_or(0) + 1;
        let size = raised(&rollout.wanted, &rollout.sets, 0);
        let mut collisions = rollout.status.collisions.unwrap_or(0);
        let last_try = collisions + TRIES;
        let made = loop {
            let set = build_set(rollout, revision, size, collisions);
            match self.api.create_value(USER, set) {
                Ok(made) => break made,
                Err(status) if status.code == 409 && collisions < last_try => collisions += 1,
                Err(status) => return Err(status),
            }
        };
        let mut status = rollout.status.clone();
        if collisions > 0 {
            status.collisions = Some(collisions);
        }
        if rollout.wanted.deadline.is_some() {
            let message = format!("Created new replica set {:?}", name(&made));
            let word = Word { kind: PROGRESSING, status: "True", reason: "NewReplicaSetCreated", message: &message };
            status.set(&word, self.clock.now());
        }
        // The youngest is the last.
        let new = rollout.sets.len();
        rollout.sets.push(Set::of(Arc::new(made)));
        rollout.new = Some(new);
        self.tell(rollout, status, Some(revision))?;
        Ok(new)
    }

    /// Deletes the oldest sets beyond the limit that have no pods left.
    fn shorten_history(&mut self, rollout: &Rollout<'_>) -> Outcome<()> {
        let Some(limit) = rollout.wanted.history.and_then(|limit| usize::try_from(limit).ok()) else { return Ok(()) };
        if self.deployment_deviation == Some(DeploymentDeviation::HistoryKept) {
            return Ok(());
        }
        let mut old: Vec<&Set> =
            rollout.old_sets().map(|(_, set)| set).filter(|set| !terminating(&set.object)).collect();
        old.sort_by_key(|set| set.revision());
        let excess = old.len().saturating_sub(limit);
        for set in old.into_iter().take(excess).filter(|set| set.is_over()) {
            let options = DeleteParams::default();
            match self.api.delete_value(USER, replicaset::RESOURCE, &rollout.key.namespace, set.name(), &options) {
                Err(status) if status.code == 404 => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Tells the counts and whether the rollout moves, and looks again when it should have.
    fn tell_progress(&mut self, rollout: &mut Rollout<'_>) -> Outcome<()> {
        let now = self.clock.now();
        let mut status = rollout.counted(now);
        let subject = match rollout.new_set() {
            Some(new) => format!("ReplicaSet {:?}", new.name()),
            None => format!("Deployment {:?}", rollout.key.name),
        };
        status.judge(&rollout.status, &rollout.wanted, rollout.generation, &subject, now);
        status.blame(&rollout.sets, rollout.new_set());
        let complete = status.is_complete(&rollout.wanted, rollout.generation);
        if let Some(left) = status.left(&rollout.wanted, now).filter(|_| !complete) {
            // A second more, because times in a status are whole seconds.
            let due = self.now() + left + Duration::from_secs(1);
            self.queue.push(due, Event::Deployment(rollout.key.clone()));
        }
        self.tell(rollout, status, None)
    }

    /// Writes a status where it differs, with the revision where that is new.
    fn tell(&mut self, rollout: &mut Rollout<'_>, status: Status, revision: Option<i64>) -> Outcome<()> {
        let value = status.to_value();
        let news = revision.is_some() || differs(rollout.deployment, &value);
        rollout.status = status;
        if !news {
            return Ok(());
        }
        if rollout.told {
            // The real one's second write is refused, because it knows only the object from before the first. It tries again at
            // once, and so tells what it sees before those whom it has set going have changed that.
            self.queue.push(self.now() + AT_ONCE, Event::Deployment(rollout.key.clone()));
            return Ok(());
        }
        rollout.told = true;
        let mut patch = json!({"metadata": {"uid": uid(rollout.deployment)}, "status": value});
        if let Some(revision) = revision {
            patch["metadata"]["annotations"] = json!({REVISION: revision.to_string()});
        }
        self.api.merge_status_value(USER, RESOURCE, &rollout.key.namespace, &rollout.key.name, &patch)?;
        Ok(())
    }
}

/// The set of the Deployment's present template.
fn build_set(rollout: &Rollout<'_>, revision: i64, size: i64, collisions: i64) -> Value {
    let deployment = rollout.deployment;
    let mut template = deployment.pointer("/spec/template").cloned().unwrap_or(json!({}));
    let hash = hash(&template, collisions);
    let mut labels = template.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
    labels.insert(HASH_LABEL.to_owned(), json!(hash));
    template["metadata"]["labels"] = json!(labels);
    let mut selector = deployment.pointer("/spec/selector").cloned().unwrap_or(json!({}));
    let mut terms: Map<String, Value> =
        selector.get("matchLabels").and_then(Value::as_object).cloned().unwrap_or_default();
    terms.insert(HASH_LABEL.to_owned(), json!(hash));
    selector["matchLabels"] = json!(terms);
    let mut annotations = inherited(deployment);
    annotations.insert(REVISION.to_owned(), revision.to_string());
    annotations.extend(set::sizes(rollout.wanted.replicas, rollout.wanted.most()));
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", rollout.key.name),
            "namespace": rollout.key.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [controlled_by(deployment)],
        },
        "spec": {
            "replicas": size,
            "minReadySeconds": rollout.wanted.min_ready,
            "selector": selector,
            "template": template,
        },
    })
}
