//! What is known of the run so far, for all judges: how things truly are, and what of it is our doing.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde_json::Value;
use windlass_sim::journal::{Befell, Change, Entry, Event, Note, QuorumTruth, Verb};

use super::{
    REACTION,
    deed::{Cause, Deed},
};
use crate::trial::is_ours;

/// How long it takes until somebody acts again after the acting operator is gone: the lease, the wait, the touch, a look around.
const TAKE_OVER: Duration = Duration::from_mins(1);

/// QuorumClusters, as plural and group.
pub(super) const QUORUM_CLUSTERS: &str = "quorumclusters.windlass.dev";

/// Namespace and name of an object.
pub(super) type Name = (String, String);

/// What is known before an entry of the journal.
#[derive(Default)]
pub(super) struct Record {
    sets: BTreeMap<Name, Set>,
    /// Pods as they stand; null where they are gone.
    pods: BTreeMap<Name, Value>,
    /// When which of our processes died, froze or thawed.
    away: Vec<(Timestamp, String)>,
    /// Who holds the custom resources, and whether its take-over has settled.
    pub(super) owner: Option<(String, bool)>,
}

/// What is known of a StatefulSet.
#[derive(Default)]
pub(super) struct Set {
    pub(super) object: Value,
    pub(super) truths: Vec<(Timestamp, QuorumTruth)>,
    /// We have written to it, or deleted a pod of it.
    pub(super) upgrading: bool,
    /// When we last wrote the template.
    pub(super) template_written: Option<Timestamp>,
    /// The images of the template before this one, and until when they stood.
    pub(super) last_template: Option<(Timestamp, Vec<String>)>,
    /// The images that the template names were written by somebody else.
    pub(super) foreign_images: bool,
    pub(super) wish: Wish,
    /// Members that are down because of us.
    pub(super) down: Vec<String>,
    /// Since when somebody else's write lets pods go that were held.
    opened: Option<Timestamp>,
    /// We held them after such a write. It is not done twice.
    pub(super) held_once: bool,
}

/// What people allow in a QuorumCluster.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub(super) struct Wish {
    /// Somebody else writes the template.
    pub(super) follows: bool,
    pub(super) allow_downgrade: bool,
    pub(super) accept_downtime: bool,
    /// It may go back to where it came from, should anything go wrong.
    pub(super) may_return: bool,
}

impl Set {
    /// The images of its template.
    pub(super) fn template(&self) -> Vec<String> {
        images(self.object.pointer("/spec/template/spec"))
    }

    pub(super) fn is_on_delete(&self) -> bool {
        self.object.pointer("/spec/updateStrategy/type") == Some(&Value::from("OnDelete"))
    }

    /// Its only member always leads.
    pub(super) fn is_alone(&self) -> bool {
        self.object.pointer("/spec/replicas") == Some(&Value::from(1))
    }

    /// Whether a member was sound, and whether it led, when that was last known.
    pub(super) fn sound_and_leading(&self, pod: &str) -> (bool, bool) {
        let member = self.truths.last().and_then(|(_, truth)| truth.members.iter().find(|member| member.pod == pod));
        member.map_or((false, false), |member| (member.healthy, member.leader))
    }

    /// Under whose strategy the controller replaces a pod of this revision now.
    pub(super) fn cause(&self, revision: Option<&Value>) -> Cause {
        if !self.upgrading || revision == self.object.pointer("/status/updateRevision") {
            return Cause::Nobody;
        }
        self.opened.map_or(Cause::Us, Cause::Others)
    }
}

impl Record {
    pub(super) fn set(&self, name: &Name) -> Option<&Set> {
        self.sets.get(name)
    }

    pub(super) fn pod(&self, name: &Name) -> Option<&Value> {
        self.pods.get(name)
    }

    /// Whether the template of a set is somebody else's.
    pub(super) fn follows(&self, name: &Name) -> bool {
        self.set(name).is_some_and(|set| set.wish.follows)
    }

    /// The nodes under the pods of a set.
    pub(super) fn nodes<'a>(&'a self, set: &'a Name) -> impl Iterator<Item = &'a str> {
        let prefix = format!("{}-", set.1);
        let of_set = move |(name, _): &(&Name, &Value)| name.0 == set.0 && name.1.starts_with(&prefix);
        self.pods.iter().filter(of_set).filter_map(|(_, pod)| pod.pointer("/spec/nodeName")?.as_str())
    }

    /// Pods that the controller may replace under this spec: at or above the partition, and not of the template's image.
    pub(super) fn replaceable(&self, name: &Name, set: &Value) -> Vec<String> {
        if set.pointer("/spec/updateStrategy/type") != Some(&Value::from("RollingUpdate")) {
            return Vec::new();
        }
        let number = |path: &str| set.pointer(path).and_then(Value::as_u64).unwrap_or(0);
        let (start, partition) =
            (number("/spec/ordinals/start"), number("/spec/updateStrategy/rollingUpdate/partition"));
        let wanted = images(set.pointer("/spec/template/spec"));
        (start + partition..start + number("/spec/replicas"))
            .map(|ordinal| format!("{}-{ordinal}", name.1))
            .filter(|pod| {
                let pod = self.pods.get(&(name.0.clone(), pod.clone()));
                pod.is_some_and(|pod| *pod != Value::Null && images(pod.get("spec")) != wanted)
            })
            .collect()
    }

    /// Who of those that are down because of us still is, now that this is the truth.
    pub(super) fn still_down(&self, truth: &QuorumTruth) -> Vec<String> {
        let Some(set) = self.sets.get(&set_of(truth)) else { return Vec::new() };
        let sick = |pod: &String| truth.members.iter().any(|member| member.pod == *pod && !member.healthy);
        set.down.iter().filter(|pod| sick(pod) || !self.is_back(&truth.namespace, pod)).cloned().collect()
    }

    /// Whether the pod that was deleted has a successor that runs.
    fn is_back(&self, namespace: &str, pod: &str) -> bool {
        self.pods.get(&(namespace.to_owned(), pod.to_owned())).is_some_and(|pod| {
            *pod != Value::Null
                && pod.pointer("/metadata/deletionTimestamp").is_none()
                && pod.pointer("/status/podIP").is_some()
        })
    }

    /// Whether nobody was there to act on what began then.
    pub(super) fn was_absent(&self, began: Timestamp, at: Timestamp) -> bool {
        let owner = self.owner.as_ref().map(|(owner, _)| owner);
        self.away.iter().any(|(away, who)| {
            Some(who) == owner && *away >= began - REACTION && at.duration_since(*away).unsigned_abs() < TAKE_OVER
        })
    }

    /// Takes an entry in, and what it came to.
    pub(super) fn see(&mut self, entry: &Entry, deed: &Deed) {
        match &entry.event {
            Event::Write(change) => self.write(entry.at, change, deed),
            Event::Quorum(truth) => self.truth(entry.at, truth),
            Event::Note(note) => {
                if let Some(user) = goes_or_comes(note) {
                    self.away.push((entry.at, user.to_owned()));
                }
            }
            Event::Verb { .. } => {}
        }
    }

    fn write(&mut self, at: Timestamp, change: &Change, deed: &Deed) {
        if is_ours(&change.user)
            && let Some(settled) = claims(change)
        {
            self.owner = Some((change.user.clone(), settled));
        }
        let name = (change.namespace.clone(), change.name.clone());
        match change.resource.as_str() {
            "statefulsets.apps" => self.set_write(at, name, change),
            "pods" => {
                let object = change.after.as_deref().filter(|_| change.verb != Verb::Delete);
                self.pods.insert(name, object.cloned().unwrap_or_default());
            }
            QUORUM_CLUSTERS => {
                if let Some((name, spec)) = wish(change) {
                    self.sets.entry(name).or_default().wish = read(spec);
                }
            }
            _ => {}
        }
        match deed {
            Deed::Deleted(gone) => {
                let set = self.sets.entry(gone.set.clone()).or_default();
                set.upgrading = true;
                set.down.push(gone.pod.1.clone());
            }
            Deed::Replaced(gone, Cause::Us) => {
                self.sets.entry(gone.set.clone()).or_default().down.push(gone.pod.1.clone());
            }
            Deed::Replaced(_, Cause::Others(_) | Cause::Nobody)
            | Deed::Wrote(_)
            | Deed::Drained(_)
            | Deed::Made(_)
            | Deed::Other => {}
        }
    }

    fn set_write(&mut self, at: Timestamp, name: Name, change: &Change) {
        let ours = is_ours(&change.user);
        let (before, after) = around(change);
        // Somebody else's write lets pods go that were held, or we hold them (H39). Whom Kubernetes replaces then it does not replace
        // because of us.
        let (held, free) = (self.replaceable(&name, &before), self.replaceable(&name, &after));
        let set = self.sets.entry(name).or_default();
        if ours {
            set.held_once |= set.opened.is_some() && free.len() < held.len();
            set.opened = set.opened.filter(|_| free.iter().any(|pod| held.contains(pod)));
            set.upgrading = true;
            if before.pointer("/spec/template") != after.pointer("/spec/template") {
                set.template_written = Some(at);
            }
        } else if set.upgrading && free.iter().any(|pod| !held.contains(pod)) {
            set.opened = set.opened.or(Some(at));
        } else if free.is_empty() {
            set.opened = None;
        }
        let old = set.template();
        set.object = after;
        if old != set.template() {
            set.last_template = Some((at, old));
            set.foreign_images = !ours;
        }
    }

    fn truth(&mut self, at: Timestamp, truth: &QuorumTruth) {
        let down = self.still_down(truth);
        let set = self.sets.entry(set_of(truth)).or_default();
        set.down = down;
        set.held_once &= !is_at_rest(truth, &set.down);
        set.truths.push((at, truth.clone()));
    }
}

/// The StatefulSet of a quorum.
pub(super) fn set_of(truth: &QuorumTruth) -> Name {
    (truth.namespace.clone(), truth.workload.clone())
}

/// All members are well and run one version, and nobody is down because of us.
pub(super) fn is_at_rest(truth: &QuorumTruth, down: &[String]) -> bool {
    let uniform = truth.members.iter().all(|member| member.version == truth.members[0].version);
    uniform && truth.members.iter().all(|member| member.healthy) && down.is_empty()
}

/// Our process that this note says to have died, frozen or thawed.
pub(super) fn goes_or_comes(note: &Note) -> Option<&str> {
    match note {
        Note::Process { user, what: Befell::Killed | Befell::Frozen(_) | Befell::Thawed } => {
            Some(user.as_str()).filter(|user| is_ours(user))
        }
        Note::Process { what: Befell::Late { .. }, .. }
        | Note::NotCreated { .. }
        | Note::Refused { .. }
        | Note::FieldsFrozen { .. }
        | Note::WebhookBroken { .. }
        | Note::WatchesStill
        | Note::Restored(_)
        | Note::SnapshotStored { .. }
        | Note::Disturbed(_) => None,
    }
}

/// Whether a write counts as one: events and leases are told and renewed by everybody.
pub(super) fn is_of_matter(change: &Change) -> bool {
    !matches!(change.resource.as_str(), "events" | "events.events.k8s.io" | "leases.coordination.k8s.io")
}

/// Whether the writer of a QuorumCluster has settled its take-over, where it says in it that it acts.
pub(super) fn claims(change: &Change) -> Option<bool> {
    if change.resource != QUORUM_CLUSTERS {
        return None;
    }
    let operator = change.after.as_deref()?.pointer("/status/operator")?;
    let acts = operator["identity"].as_str()?.split('/').any(|part| part == change.user);
    acts.then(|| operator["predecessorDone"] == true)
}

/// The StatefulSet that a write of a QuorumCluster is about, and the spec that was written.
pub(super) fn wish(change: &Change) -> Option<(Name, &Value)> {
    let spec = &change.after.as_deref().filter(|_| change.resource == QUORUM_CLUSTERS)?["spec"];
    let workload = spec.pointer("/workload/statefulSet")?.as_str()?;
    Some(((change.namespace.clone(), workload.to_owned()), spec))
}

fn read(spec: &Value) -> Wish {
    let allows = |path: &str| spec.pointer(path) == Some(&Value::Bool(true));
    Wish {
        follows: spec["trigger"] == "Template",
        allow_downgrade: allows("/policy/allowDowngrade"),
        accept_downtime: allows("/policy/acceptDowntime"),
        may_return: !spec["requests"]["rollback"].is_null() || spec["onDeadline"] == "RollBack",
    }
}

/// Whether an upgrade was under way before a write of a QuorumCluster, and whether one is after it.
pub(super) fn under_way(change: &Change) -> (bool, bool) {
    let under_way = |object: Option<&Value>| {
        object.and_then(|object| object.pointer("/status/upgrade")).is_some_and(|upgrade| !upgrade.is_null())
    };
    (under_way(change.before.as_deref()), under_way(change.after.as_deref()))
}

/// An object before a write and after it; null where there is none.
pub(super) fn around(change: &Change) -> (Value, Value) {
    let after = change.after.as_deref().filter(|_| change.verb != Verb::Delete);
    (change.before.as_deref().cloned().unwrap_or_default(), after.cloned().unwrap_or_default())
}

/// The images of a pod's or a template's containers.
pub(super) fn images(spec: Option<&Value>) -> Vec<String> {
    let containers = spec.and_then(|spec| spec["containers"].as_array()).cloned().unwrap_or_default();
    containers.iter().map(|container| container["image"].to_string()).collect()
}

/// Whether a pod is Ready.
pub(super) fn is_ready(pod: &Value) -> bool {
    has(pod, "Ready")
}

/// Whether a condition of an object is True.
pub(super) fn has(object: &Value, kind: &str) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let so = |condition: &Value| condition["type"] == kind && condition["status"] == "True";
    conditions.is_some_and(|conditions| conditions.iter().any(so))
}
