//! What a scenario is made of: a StatefulSet, a Job or a Deployment, and what people and its pods do to it.

use serde_json::{Value, json};

/// The set of every scenario; its namespace is the scenario's own.
pub const SET: &str = "web";
/// The Job of the scenarios that have one.
pub const JOB: &str = "task";
/// The Deployment of the scenarios that have one.
pub const DEPLOYMENT: &str = "web";
/// The node that its pods are bound to from the start, so that no scheduler is needed on either side.
pub const NODE: &str = "conformance";
/// The annotation that releases a pod's next transition (`e2e/kwok/stages.yaml`).
pub const RELEASE: &str = "conformance.windlass.dev/release";

/// What containers of an image do when nobody says otherwise; the tag decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    /// They become ready.
    Works,
    /// They crash.
    Broken,
    /// They can't be pulled: the pod stays pending.
    Absent,
}

impl Image {
    /// What containers of the image with this tag do.
    pub fn of(tag: &str) -> Self {
        match tag {
            "broken" => Self::Broken,
            "absent" => Self::Absent,
            _ => Self::Works,
        }
    }
}

/// What can happen to a pod on its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// It runs and isn't ready.
    Run,
    /// It runs and is ready.
    Ready,
    /// It is in CrashLoopBackOff.
    Crash,
    /// It has failed for good.
    Fail,
    /// It has ended well.
    Succeed,
    /// It was to be deleted, and now it is gone.
    Gone,
}

impl Transition {
    /// The annotation's value.
    pub fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Ready => "ready",
            Self::Crash => "crash",
            Self::Fail => "fail",
            Self::Succeed => "succeed",
            Self::Gone => "gone",
        }
    }
}

/// How a set's dependents are treated when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

/// How far a pod of a Job has come. Their names are random, and pods that have come equally far are alike: it is the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It has not begun.
    Pending,
    /// It runs.
    Running,
    /// It is to be deleted.
    Leaving,
}

/// How far a pod of a Deployment has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// It has not begun.
    Pending,
    /// It runs and isn't ready.
    Unready,
    /// It runs and is ready.
    Ready,
    /// It is to be deleted.
    Leaving,
}

/// A pod of a Deployment. Their names are random, and pods of one template that have come equally far are alike: it is the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alike {
    /// The template's symbol.
    pub template: String,
    /// How far it has come.
    pub reached: Reached,
}

/// One thing that happens on both sides.
#[derive(Clone, Debug)]
pub enum Act {
    /// An object is created in the scenario's namespace.
    Create(Value),
    /// The set is changed by a merge patch.
    Patch(Value),
    /// Somebody deletes a pod.
    DeletePod(String),
    /// Somebody deletes the revision whose template has this image tag.
    DeleteRevision(String),
    /// Somebody deletes the set.
    DeleteSet(Propagation),
    /// A pod's transition is released.
    Release(String, Transition),
    /// The Job is changed by a merge patch.
    PatchJob(Value),
    /// Somebody deletes the Job.
    DeleteJob(Propagation),
    /// Somebody deletes a pod of the Job's.
    DeleteJobPod(Stage),
    /// The transition of a pod of the Job's is released.
    ReleaseJobPod(Stage, Transition),
    /// The Deployment is changed by a merge patch.
    PatchDeployment(Value),
    /// The Deployment's scale is changed.
    ScaleDeployment(usize),
    /// Somebody deletes the Deployment.
    DeleteDeployment(Propagation),
    /// Somebody deletes the ReplicaSet of this template.
    DeleteReplicaSet(String),
    /// A pod of the Deployment's is changed by a merge patch.
    PatchReplica(Alike, Value),
    /// Somebody deletes a pod of the Deployment's.
    DeleteReplica(Alike),
    /// The transition of a pod of the Deployment's is released.
    ReleaseReplica(Alike, Transition),
}

impl std::fmt::Display for Alike {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} that is {:?}", self.template, self.reached)
    }
}

impl std::fmt::Display for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Create(object) => write!(f, "create {} {}", object["kind"], object["metadata"]["name"]),
            Self::Patch(patch) => write!(f, "patch {patch}"),
            Self::DeletePod(pod) => write!(f, "delete pod {pod}"),
            Self::DeleteRevision(symbol) => write!(f, "delete revision {symbol}"),
            Self::DeleteSet(how) => write!(f, "delete the set, {how:?}"),
            Self::Release(pod, transition) => write!(f, "{pod}: {}", transition.word()),
            Self::PatchJob(patch) => write!(f, "patch the Job {patch}"),
            Self::DeleteJob(how) => write!(f, "delete the Job, {how:?}"),
            Self::DeleteJobPod(stage) => write!(f, "delete a pod of the Job's that is {stage:?}"),
            Self::ReleaseJobPod(stage, transition) => {
                write!(f, "a pod of the Job's that is {stage:?}: {}", transition.word())
            }
            Self::PatchDeployment(patch) => write!(f, "patch the Deployment {patch}"),
            Self::ScaleDeployment(replicas) => write!(f, "scale the Deployment to {replicas}"),
            Self::DeleteDeployment(how) => write!(f, "delete the Deployment, {how:?}"),
            Self::DeleteReplicaSet(template) => write!(f, "delete the ReplicaSet of {template}"),
            Self::PatchReplica(pod, patch) => write!(f, "patch a pod of {pod} {patch}"),
            Self::DeleteReplica(pod) => write!(f, "delete a pod of {pod}"),
            Self::ReleaseReplica(pod, transition) => write!(f, "a pod of {pod}: {}", transition.word()),
        }
    }
}

/// A step of a scenario.
#[derive(Clone, Debug)]
pub enum Step {
    /// This, and then a comparison.
    Do(Act),
    /// So many transitions that pods would make by themselves, each with a comparison: a pending pod becomes ready (or what its
    /// image makes of it), a terminating one goes away. Which one comes next is drawn from the scenario's name.
    Some(usize),
    /// Such transitions until there are none left.
    Settle,
}

/// A scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Unique; `--only` takes it.
    pub name: String,
    /// What happens, the creation of the set first.
    pub steps: Vec<Step>,
}

/// Deletes the pod of this ordinal.
pub fn delete(ordinal: usize) -> Step {
    Step::Do(Act::DeletePod(format!("{SET}-{ordinal}")))
}

/// Releases a transition of the pod of this ordinal.
pub fn release(ordinal: usize, transition: Transition) -> Step {
    Step::Do(Act::Release(format!("{SET}-{ordinal}"), transition))
}

/// Changes the set.
pub fn patch(patch: Value) -> Step {
    Step::Do(Act::Patch(patch))
}

/// Changes the image.
pub fn image(tag: &str) -> Step {
    patch(json!({"spec": {"template": {"spec": {"containers": [container(tag)]}}}}))
}

/// Changes the number of replicas.
pub fn scale(replicas: usize) -> Step {
    patch(json!({"spec": {"replicas": replicas}}))
}

/// Changes the partition.
pub fn partition(ordinal: usize) -> Step {
    patch(json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": ordinal}}}}))
}

/// Somebody sets a budget with this limit over the pods of a set or a Deployment.
pub fn budget(limit: &Value) -> Step {
    let mut budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "budget"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    });
    if let (Some(spec), Some(limit)) = (budget["spec"].as_object_mut(), limit.as_object()) {
        spec.extend(limit.clone());
    }
    Step::Do(Act::Create(budget))
}

/// A container of this image, as templates have it.
pub fn container(tag: &str) -> Value {
    json!({"name": "web", "image": format!("registry.example/web:{tag}")})
}

/// A StatefulSet with three replicas of the first image; scenarios change it before they create it.
pub fn set() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": SET},
        "spec": {
            "replicas": 3,
            "serviceName": SET,
            "podManagementPolicy": "OrderedReady",
            "selector": {"matchLabels": {"app": SET}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "template": {
                "metadata": {"labels": {"app": SET}, "annotations": {RELEASE: "hold"}},
                "spec": {"nodeName": NODE, "containers": [container("v1")]},
            },
        },
    })
}

/// A Job of one pod, with the image that tells how the pod ends; scenarios change it before they create it.
pub fn job(tag: &str) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": JOB},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"annotations": {RELEASE: "hold"}},
                "spec": {"nodeName": NODE, "restartPolicy": "Never", "containers": [container(tag)]},
            },
        },
    })
}

/// A Deployment with three replicas of the first image; scenarios change it before they create it.
pub fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": DEPLOYMENT},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": DEPLOYMENT}},
            "template": {
                "metadata": {"labels": {"app": DEPLOYMENT}, "annotations": {RELEASE: "hold"}},
                "spec": {"nodeName": NODE, "containers": [container("v1")]},
            },
        },
    })
}
