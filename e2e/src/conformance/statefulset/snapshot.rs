//! What is compared: the set, the Job or the Deployment, its pods, its revisions, its claims and its budgets, freed of what can't be equal on two
//! clusters (uids, times, the hashes in names).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::replicas::{hash_of, is_replica};
use super::scenario::Stage;

/// The kinds of objects that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// StatefulSets.
    Set,
    /// Pods.
    Pod,
    /// ControllerRevisions.
    Revision,
    /// PersistentVolumeClaims.
    Claim,
    /// PodDisruptionBudgets.
    Budget,
    /// Jobs.
    Job,
    /// Deployments.
    Deployment,
    /// ReplicaSets.
    ReplicaSet,
}

/// All of them.
pub const KINDS: [Kind; 8] =
    [Kind::Set, Kind::Pod, Kind::Revision, Kind::Claim, Kind::Budget, Kind::Job, Kind::Deployment, Kind::ReplicaSet];

impl Kind {
    /// Group, version, kind and plural, as the API names them.
    pub fn resource(self) -> kube::api::ApiResource {
        let (group, version, kind, plural) = match self {
            Self::Set => ("apps", "v1", "StatefulSet", "statefulsets"),
            Self::Pod => ("", "v1", "Pod", "pods"),
            Self::Revision => ("apps", "v1", "ControllerRevision", "controllerrevisions"),
            Self::Claim => ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
            Self::Budget => ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
            Self::Job => ("batch", "v1", "Job", "jobs"),
            Self::Deployment => ("apps", "v1", "Deployment", "deployments"),
            Self::ReplicaSet => ("apps", "v1", "ReplicaSet", "replicasets"),
        };
        let kind = kube::core::GroupVersionKind::gvk(group, version, kind);
        kube::api::ApiResource::from_gvk_with_plural(&kind, plural)
    }
}

/// The compared state: a line of text per fact, so that a difference is a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot(pub BTreeMap<String, String>);

impl Snapshot {
    /// The facts that differ: `key: here ≠ there`.
    pub fn differences(&self, embedded: &str, other: &Self, real: &str) -> Vec<String> {
        let keys: std::collections::BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let absent = "absent".to_owned();
        keys.into_iter()
            .map(|key| (key, self.0.get(key).unwrap_or(&absent), other.0.get(key).unwrap_or(&absent)))
            .filter(|(_, here, there)| here != there)
            .map(|(key, here, there)| format!("{key}\n    {embedded}: {here}\n    {real}: {there}"))
            .collect()
    }
}

/// The objects of one scenario's namespace on one side.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    objects: BTreeMap<(Kind, String), Value>,
    /// What each revision's name stands for; revisions that are gone stay known, because pods may still name them.
    symbols: BTreeMap<String, String>,
}

pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A template's symbol: the image's tag, and the note where an edit put one.
fn symbol(template: &Value) -> String {
    let tag = text(template, "/spec/containers/0/image").rsplit(':').next().unwrap_or_default();
    match text(template, "/metadata/annotations/note") {
        "" => tag.to_owned(),
        note => format!("{tag}+{note}"),
    }
}

impl Objects {
    /// Takes in an object as it is now.
    pub fn put(&mut self, kind: Kind, object: Value) {
        let name = text(&object, "/metadata/name").to_owned();
        if kind == Kind::Revision {
            let symbol = symbol(object.pointer("/data/spec/template").unwrap_or(&Value::Null));
            self.symbols.insert(name.clone(), symbol);
        }
        if kind == Kind::ReplicaSet {
            let symbol = symbol(object.pointer("/spec/template").unwrap_or(&Value::Null));
            self.symbols.insert(hash_of(&object).to_owned(), symbol.clone());
            self.symbols.insert(name.clone(), symbol);
        }
        self.objects.insert((kind, name), object);
    }

    /// Forgets an object.
    pub fn remove(&mut self, kind: Kind, name: &str) {
        self.objects.remove(&(kind, name.to_owned()));
    }

    /// Forgets all objects of a kind.
    pub fn clear(&mut self, kind: Kind) {
        self.objects.retain(|(known, _), _| *known != kind);
    }

    /// The objects of a kind by name.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = (&str, &Value)> {
        self.objects
            .iter()
            .filter(move |((known, _), _)| *known == kind)
            .map(|((_, name), object)| (name.as_str(), object))
    }

    /// The name of the revision that a symbol stands for.
    pub fn revision(&self, symbol: &str) -> Option<&str> {
        self.of(Kind::Revision)
            .map(|(name, _)| name)
            .find(|name| self.symbols.get(*name).is_some_and(|it| it == symbol))
    }

    /// All names that stand for something, and what.
    pub fn symbols(&self) -> impl Iterator<Item = (&str, &str)> {
        self.symbols.iter().map(|(name, symbol)| (name.as_str(), symbol.as_str()))
    }

    /// The first pod of a Job that has come this far.
    pub fn job_pod(&self, stage: Stage) -> Option<String> {
        let pods = self.of(Kind::Pod).filter(|(_, pod)| is_of_job(pod) && stage_of(pod) == Some(stage));
        pods.map(|(name, _)| name.to_owned()).next()
    }

    /// What a name stands for that has a template's hash in it, or the hash alone.
    pub fn symbol(&self, revision: &str) -> String {
        match (revision, self.symbols.get(revision)) {
            ("", _) => "none".to_owned(),
            (_, Some(symbol)) => symbol.clone(),
            (name, None) => format!("unknown {name}"),
        }
    }

    /// What is compared.
    pub fn snapshot(&self) -> Snapshot {
        let mut facts = BTreeMap::new();
        for (name, object) in self.of(Kind::Set) {
            self.set_facts(name, object, &mut facts);
        }
        for (name, pod) in self.of(Kind::Pod).filter(|(_, pod)| !is_of_job(pod) && !is_replica(pod)) {
            facts.insert(format!("pod {name}"), self.pod_facts(pod));
        }
        let mut of_jobs: Vec<String> =
            self.of(Kind::Pod).filter(|(_, pod)| is_of_job(pod)).map(|(_, pod)| job_pod_facts(pod)).collect();
        of_jobs.sort();
        for (rank, pod) in of_jobs.into_iter().enumerate() {
            facts.insert(format!("pod {rank} of a Job"), pod);
        }
        for (name, job) in self.of(Kind::Job) {
            job_facts(name, job, &mut facts);
        }
        self.replica_facts(&mut facts);
        let dying = self.of(Kind::Set).any(|(_, set)| terminating(set));
        let mut revisions: Vec<(i64, String)> = self
            .of(Kind::Revision)
            .filter(|_| !dying)
            .map(|(name, revision)| {
                let owned = owners(revision);
                (revision["revision"].as_i64().unwrap_or(0), format!("{} owned by {owned}", self.symbol(name)))
            })
            .collect();
        revisions.sort();
        for (rank, (number, revision)) in revisions.iter().enumerate() {
            facts.insert(format!("revision {rank}"), format!("number {number} is {revision}"));
        }
        for (name, claim) in self.of(Kind::Claim) {
            let labels = &claim["metadata"]["labels"];
            facts.insert(format!("claim {name}"), format!("labels {labels} owned by {}", owners(claim)));
        }
        for (name, budget) in self.of(Kind::Budget) {
            for field in
                ["expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed", "observedGeneration"]
            {
                let value = budget["status"].get(field).cloned().unwrap_or(Value::Null);
                facts.insert(format!("budget {name} {field}"), value.to_string());
            }
            facts.insert(format!("budget {name} condition"), condition(budget, "DisruptionAllowed"));
        }
        Snapshot(facts)
    }

    fn set_facts(&self, name: &str, set: &Value, facts: &mut BTreeMap<String, String>) {
        facts.insert(format!("set {name} terminating"), terminating(set).to_string());
        if terminating(set) {
            // The garbage collector deletes the revisions of a set that waits for its dependents, and the controller makes
            // them anew whenever it looks: who of them comes last is a race on any cluster.
            return;
        }
        let status = set.get("status").unwrap_or(&Value::Null);
        for field in [
            "replicas",
            "readyReplicas",
            "availableReplicas",
            "currentReplicas",
            "updatedReplicas",
            "observedGeneration",
        ] {
            let count = status.get(field).and_then(Value::as_i64).unwrap_or(0);
            facts.insert(format!("set {name} {field}"), count.to_string());
        }
        let collisions = status.get("collisionCount").cloned().unwrap_or(Value::Null);
        facts.insert(format!("set {name} collisionCount"), collisions.to_string());
        for field in ["currentRevision", "updateRevision"] {
            let revision = status.get(field).and_then(Value::as_str).unwrap_or_default();
            facts.insert(format!("set {name} {field}"), self.symbol(revision));
        }
        facts.insert(format!("set {name} generation"), set["metadata"]["generation"].to_string());
        facts.insert(format!("set {name} strategy"), set["spec"]["updateStrategy"].to_string());
    }

    fn pod_facts(&self, pod: &Value) -> String {
        let labels = pod.pointer("/metadata/labels").cloned().unwrap_or(json!({}));
        format!(
            "ordinal {} revision {} image {} phase {} ready {} terminating {} owned by {}",
            text(&labels, "/apps.kubernetes.io~1pod-index"),
            self.symbol(text(&labels, "/controller-revision-hash")),
            text(pod, "/spec/containers/0/image").rsplit(':').next().unwrap_or_default(),
            text(pod, "/status/phase"),
            condition(pod, "Ready"),
            terminating(pod),
            owners(pod),
        )
    }
}

/// Whether a pod was made by a Job; one that lost its Job keeps the label.
pub fn is_of_job(pod: &Value) -> bool {
    pod.pointer("/metadata/labels/batch.kubernetes.io~1job-name").is_some()
}

/// How far a pod of a Job has come; none if it has ended and nobody deletes it.
pub fn stage_of(pod: &Value) -> Option<Stage> {
    match phase(pod) {
        _ if terminating(pod) => Some(Stage::Leaving),
        "Pending" => Some(Stage::Pending),
        "Running" => Some(Stage::Running),
        _ => None,
    }
}

fn job_pod_facts(pod: &Value) -> String {
    format!(
        "phase {} ready {} terminating {} finalizers {} owned by {}",
        phase(pod),
        condition(pod, "Ready"),
        terminating(pod),
        pod.pointer("/metadata/finalizers").unwrap_or(&Value::Null),
        owners(pod),
    )
}

fn job_facts(name: &str, job: &Value, facts: &mut BTreeMap<String, String>) {
    facts.insert(format!("job {name} terminating"), terminating(job).to_string());
    facts.insert(format!("job {name} finalizers"), job["metadata"]["finalizers"].to_string());
    let status = job.get("status").unwrap_or(&Value::Null);
    for field in ["active", "ready", "terminating", "succeeded", "failed", "uncountedTerminatedPods"] {
        facts.insert(format!("job {name} status {field}"), status.get(field).unwrap_or(&Value::Null).to_string());
    }
    for field in ["startTime", "completionTime"] {
        facts.insert(format!("job {name} has {field}"), status.get(field).is_some().to_string());
    }
    let conditions = status.get("conditions").and_then(Value::as_array);
    let said = conditions.into_iter().flatten().map(|condition| {
        let field = |name: &str| text(condition, name).to_owned();
        format!("{}={} {} {}", field("/type"), field("/status"), field("/reason"), field("/message"))
    });
    facts.insert(format!("job {name} conditions"), said.collect::<Vec<_>>().join("; "));
    facts.insert(format!("job {name} generation"), job["metadata"]["generation"].to_string());
}

/// True once the object's deletion was asked for.
pub fn terminating(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null())
}

/// The tag of a pod's image.
pub fn tag(pod: &Value) -> &str {
    text(pod, "/spec/containers/0/image").rsplit(':').next().unwrap_or_default()
}

/// A pod's phase.
pub fn phase(pod: &Value) -> &str {
    text(pod, "/status/phase")
}

pub(super) fn condition(object: &Value, kind: &str) -> String {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|condition| text(condition, "/type") == kind);
    // A condition that nobody has set yet means the same as one that is false.
    found.map_or("False", |condition| text(condition, "/status")).to_owned()
}

fn owners(object: &Value) -> String {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let names: Vec<String> = owners
        .into_iter()
        .flatten()
        .map(|owner| format!("{} {} controller {}", text(owner, "/kind"), text(owner, "/name"), owner["controller"]))
        .collect();
    if names.is_empty() { "nobody".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::super::scenario::SET;
    use super::*;

    fn revision(name: &str, number: i64, image: &str) -> Value {
        let template = json!({"spec": {"containers": [{"image": format!("web:{image}")}]}});
        json!({"metadata": {"name": name}, "revision": number, "data": {"spec": {"template": template}}})
    }

    #[test]
    fn the_hashes_in_names_do_not_count_and_their_order_does() {
        let (mut here, mut there) = (Objects::default(), Objects::default());
        here.put(Kind::Revision, revision("web-abc", 1, "v1"));
        here.put(Kind::Revision, revision("web-def", 2, "v2"));
        there.put(Kind::Revision, revision("web-zzz", 1, "v1"));
        there.put(Kind::Revision, revision("web-aaa", 2, "v2"));
        assert_eq!(here.snapshot(), there.snapshot());
        there.put(Kind::Revision, revision("web-zzz", 3, "v1"));
        assert_eq!(here.snapshot().differences("a", &there.snapshot(), "b").len(), 2);
    }

    #[test]
    fn a_pod_of_a_revision_that_is_gone_still_has_its_symbol() {
        let mut objects = Objects::default();
        objects.put(Kind::Revision, revision("web-abc", 1, "v1"));
        let labels = json!({"controller-revision-hash": "web-abc"});
        objects.put(Kind::Pod, json!({"metadata": {"name": format!("{SET}-0"), "labels": labels}}));
        let before = objects.snapshot();
        objects.remove(Kind::Revision, "web-abc");
        assert_eq!(before.0.get("pod web-0"), objects.snapshot().0.get("pod web-0"));
    }
}
