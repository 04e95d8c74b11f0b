//! Jobs that Windlass makes: a snapshot before an upgrade, an image that is pulled ahead, a hook.
//!
//! ```text
//!   what it does ─▶ Draft (its name, and what it runs) ─▶ an Intent in the status ─▶ Maker::make ─▶ Maker::look ─▶ State
//! ```
//! A Job can't be fenced (H6), so its name says what it is for: two requests make one Job, a take-over makes the one that its predecessor may be
//! about to make, and one that nobody wants any more is believed by nobody. Whose it is, is told by its owner, never by its name.
//!
//! Each user adds a name and what runs under it; all else is here.

pub mod intents;
pub mod pull;
pub mod snapshot;

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        batch::v1::{Job, JobCondition, JobSpec},
        core::v1::{
            Capabilities, Container, Pod, PodSecurityContext, PodSpec, PodTemplateSpec, SeccompProfile, SecurityContext,
        },
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{ObjectMeta, PostParams},
};
use windlass_api::QuorumCluster;
use windlass_plan::bug::{self, Bug};

use crate::{
    Context,
    actor::Actor,
    error::Error,
    live::{self, is_owned},
};

/// The user that the image's processes run as.
pub const USER: i64 = 65532;
/// How long a Job that has ended stays for people to look at.
pub const KEPT: Duration = Duration::from_hours(24);

/// Makes the Jobs of one resource, and looks at them.
#[derive(Clone, Debug)]
pub struct Maker {
    /// The resource's kind, for messages.
    kind: Cow<'static, str>,
    /// Which it is.
    pub uid: String,
    /// Where its Jobs are.
    pub namespace: String,
    owner: Option<OwnerReference>,
}

impl Maker {
    /// Of a QuorumCluster, whose Jobs are beside it.
    pub fn of(resource: &QuorumCluster) -> Self {
        Self::within(resource, resource.namespace().unwrap_or_default())
    }

    /// Of a resource, whose Jobs are in that namespace.
    pub fn within<K: Resource<DynamicType = ()>>(resource: &K, namespace: String) -> Self {
        Self {
            kind: K::kind(&()),
            uid: resource.meta().uid.clone().unwrap_or_default(),
            namespace,
            owner: resource.controller_owner_ref(&()),
        }
    }

    /// How the Job of this name stands.
    pub async fn look(&self, context: &Context, name: &str) -> Result<Seen, Error> {
        let what = format!("jobs/{}/{name}", self.namespace);
        let jobs: Api<Job> = Api::namespaced(context.client.clone(), &self.namespace);
        Ok(self.see(name, live::get(context, &what, &jobs, name).await?.as_ref()))
    }

    /// How it stands, where this is what was read. Pure.
    fn see(&self, name: &str, job: Option<&Job>) -> Seen {
        let state = job.map_or(State::Missing, |job| self.state(job));
        let since = job.and_then(ResourceExt::creation_timestamp).map(|time| time.0).unwrap_or_default();
        Seen { name: name.to_owned(), state, since, uid: job.and_then(ResourceExt::uid) }
    }

    fn state(&self, job: &Job) -> State {
        let name = job.name_any();
        if !is_owned(job, Some(&self.uid)) && !bug::active(Bug::ForeignJobBelieved) {
            return State::Foreign(format!("there is a Job {name} that does not belong to this {}", self.kind));
        }
        match (condition(job, "Complete"), condition(job, "Failed")) {
            (Some(_), _) => State::Complete,
            (None, Some(failed)) => {
                let word = |word: &Option<String>| word.clone().unwrap_or_default();
                State::Failed(format!("Job {name} has failed: {}: {}", word(&failed.reason), word(&failed.message)))
            }
            (None, None) => State::Running,
        }
    }

    /// The pods of a Job that was seen.
    pub async fn pods(&self, context: &Context, seen: &Seen) -> Result<Vec<Pod>, Error> {
        let api: Api<Pod> = Api::namespaced(context.client.clone(), &self.namespace);
        let labels = format!("batch.kubernetes.io/job-name={}", seen.name);
        let mut pods = live::list(context, &format!("pods of {}", seen.name), &api, &labels).await?;
        pods.retain(|pod| is_owned(pod, seen.uid.as_deref()));
        Ok(pods)
    }

    /// Makes a Job once. Whose one is that has its name already, and how it stands, is told by the next look.
    pub async fn make(&self, actor: Actor<'_>, draft: Draft) -> Result<(), Error> {
        let api: Api<Job> = Api::namespaced(actor.context.client.clone(), &self.namespace);
        let what = format!("jobs/{}/{}", self.namespace, draft.name);
        let job = self.job(draft);
        match actor.write("create", &what, api.create(&PostParams::default(), &job)).await {
            // Not every conflict: a quota that is contended for is one, too, and then there is no Job.
            Err(error) if error.already_exists() => Ok(()),
            made => made.map(|_| ()),
        }
    }

    fn job(&self, Draft { name, labels, annotations, spec }: Draft) -> Job {
        Job {
            metadata: ObjectMeta {
                name: Some(name),
                labels: Some(labels),
                annotations: (!annotations.is_empty()).then_some(annotations),
                owner_references: self.owner.clone().map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(spec),
            ..Job::default()
        }
    }
}

/// The Job of a name, as it was read once.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// How it stands.
    pub state: State,
    /// Since when it has been there.
    pub since: Timestamp,
    uid: Option<String>,
}

/// How a Job stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none of that name.
    Missing,
    /// It is somebody else's: in these words. Nothing that it says is believed.
    Foreign(String),
    /// It has not ended.
    Running,
    /// It has done what it was for.
    Complete,
    /// It has not, in the words of its controller.
    Failed(String),
}

/// The Job's condition of this type, if it is true.
fn condition<'a>(job: &'a Job, kind: &str) -> Option<&'a JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|condition| condition.type_ == kind && condition.status == "True")
}

/// A Job before it is made, whoever asks for it.
#[derive(Clone, Debug)]
pub struct Draft {
    /// It says what the Job does, so that asking twice makes one. At most 63 characters, for it is a label's value, too.
    pub name: String,
    /// For those who look for them.
    pub labels: BTreeMap<String, String>,
    /// What else is said of it.
    pub annotations: BTreeMap<String, String>,
    /// What it runs.
    pub spec: JobSpec,
}

impl Draft {
    /// One pod that is tried once. It is ended after this long, and the Job stays so long after its end.
    pub fn of_pod(name: String, task: &str, pod: PodSpec, deadline: Duration, kept: Duration) -> Self {
        let labels = labels(task);
        let spec = JobSpec {
            // Whether it is tried again is decided by whoever asked for it, never here.
            backoff_limit: Some(0),
            active_deadline_seconds: Some(i64::try_from(deadline.as_secs()).unwrap_or(i64::MAX)),
            ttl_seconds_after_finished: Some(seconds(kept)),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels.clone()), ..ObjectMeta::default() }),
                spec: Some(pod),
            },
            ..JobSpec::default()
        };
        Self { name, labels, annotations: BTreeMap::new(), spec }
    }
}

/// As Jobs have it.
pub fn seconds(kept: Duration) -> i32 {
    i32::try_from(kept.as_secs()).unwrap_or(i32::MAX)
}

/// Whose program made it.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "windlass");

/// What kind of Job it is, for those who look for them.
fn labels(task: &str) -> BTreeMap<String, String> {
    [MANAGED_BY, ("windlass.dev/task", task)].map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// A pod with this container and no rights: it asks Kubernetes for nothing, and fits the `restricted` Pod Security Standard.
fn powerless(account: Option<String>, container: Container) -> PodSpec {
    PodSpec {
        restart_policy: Some("Never".to_owned()),
        service_account_name: account,
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), ..SeccompProfile::default() }),
            ..PodSecurityContext::default()
        }),
        containers: vec![Container {
            security_context: Some(SecurityContext {
                allow_privilege_escalation: Some(false),
                read_only_root_filesystem: Some(true),
                capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
                ..SecurityContext::default()
            }),
            ..container
        }],
        ..PodSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::{batch::v1::Job, core::v1::Container};
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::{Draft, KEPT, Maker, QuorumCluster, State, powerless};

    fn maker() -> Maker {
        let resource: QuorumCluster = serde_json::from_value(json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "QuorumCluster",
            "metadata": {"name": "pd", "namespace": "db", "uid": "ours"},
            "spec": {"workload": {"statefulSet": "pd", "container": "pd"}, "system": {"type": "Pd"}, "version": "8.5.1"},
        }))
        .unwrap();
        Maker::of(&resource)
    }

    /// A name and what runs under it is all that a new kind of work adds.
    fn flip() -> Draft {
        let container = Container { name: "flip".into(), image: Some("toy:1".into()), ..Container::default() };
        Draft::of_pod("windlass-flip-1".into(), "flip", powerless(None, container), Duration::from_mins(5), KEPT)
    }

    #[test]
    fn a_new_kind_of_job_has_all_that_the_others_have() {
        let job = serde_json::to_value(maker().job(flip())).unwrap();
        let owner = json!([{
            "apiVersion": "windlass.dev/v1alpha1", "kind": "QuorumCluster", "name": "pd", "uid": "ours",
            "controller": true,
        }]);
        assert_eq!(
            (&job["metadata"]["name"], &job["metadata"]["ownerReferences"]),
            (&json!("windlass-flip-1"), &owner)
        );
        let labels = json!({"app.kubernetes.io/managed-by": "windlass", "windlass.dev/task": "flip"});
        assert_eq!((&job["metadata"]["labels"], &job["spec"]["template"]["metadata"]["labels"]), (&labels, &labels));
        let spec = &job["spec"];
        assert_eq!(
            (&spec["backoffLimit"], &spec["activeDeadlineSeconds"], &spec["ttlSecondsAfterFinished"]),
            (&json!(0), &json!(300), &json!(86400))
        );
        let pod = &spec["template"]["spec"];
        assert_eq!((&pod["automountServiceAccountToken"], &pod["restartPolicy"]), (&json!(false), &json!("Never")));
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["containers"][0]["securityContext"]["capabilities"], json!({"drop": ["ALL"]}));
    }

    fn condition(kind: &str) -> Value {
        json!([{"type": kind, "status": "True", "reason": "DeadlineExceeded", "message": "too long"}])
    }

    fn failed() -> State {
        State::Failed("Job windlass-flip-1 has failed: DeadlineExceeded: too long".into())
    }

    fn foreign() -> State {
        State::Foreign("there is a Job windlass-flip-1 that does not belong to this QuorumCluster".into())
    }

    #[rstest]
    #[case::runs("ours", json!([]), State::Running)]
    #[case::suspended("ours", condition("Suspended"), State::Running)]
    #[case::done("ours", condition("Complete"), State::Complete)]
    #[case::failed("ours", condition("Failed"), failed())]
    #[case::of_another("theirs", json!([]), foreign())]
    #[case::done_by_another("theirs", condition("Complete"), foreign())]
    fn a_job_stands_as_its_owner_and_its_controller_say(
        #[case] owner: &str,
        #[case] conditions: Value,
        #[case] expected: State,
    ) {
        let mut job = maker().job(flip());
        job.metadata.owner_references.iter_mut().flatten().for_each(|one| one.uid = owner.to_owned());
        let mut job = serde_json::to_value(job).unwrap();
        job["status"] = json!({"conditions": conditions});
        let job: Job = serde_json::from_value(job).unwrap();
        assert_eq!(maker().see("windlass-flip-1", Some(&job)).state, expected);
        assert_eq!(maker().see("windlass-flip-1", None).state, State::Missing);
    }
}
