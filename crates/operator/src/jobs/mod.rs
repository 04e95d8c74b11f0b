//! Jobs that Windlass makes: a snapshot before an upgrade, an image that is pulled ahead, a hook.
//!
//! A Job can't be fenced (H6), so its name says what it is for: two requests make one Job, a take-over makes the one that its predecessor may be
//! about to make, and one that nobody wants any more is believed by nobody. Whose it is, is told by its owner, never by its name.

pub mod pull;
pub mod snapshot;

use std::collections::BTreeMap;

use k8s_openapi::api::{
    batch::v1::{Job, JobCondition},
    core::v1::{Capabilities, Pod, PodSecurityContext, SeccompProfile, SecurityContext},
};
use kube::{Api, ResourceExt, api::PostParams};
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
pub const KEPT_SECONDS: i32 = 24 * 60 * 60;

/// The Job of this name; none if there is none.
pub async fn find(context: &Context, namespace: &str, name: &str) -> Result<Option<Job>, Error> {
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), namespace);
    live::get(context, &format!("jobs/{namespace}/{name}"), &jobs, name).await
}

/// Its pods.
pub async fn pods_of(context: &Context, namespace: &str, job: &Job) -> Result<Vec<Pod>, Error> {
    let name = job.name_any();
    let api: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    let labels = format!("batch.kubernetes.io/job-name={name}");
    let mut pods = live::list(context, &format!("pods of {name}"), &api, &labels).await?;
    pods.retain(|pod| is_owned(pod, job.uid().as_deref()));
    Ok(pods)
}

/// How a Job stands that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is somebody else's: in these words.
    Foreign(String),
    /// It has not ended.
    Running,
    /// It has done what it was for.
    Complete,
    /// It has not, in the words of its controller.
    Failed(String),
}

/// How this Job stands, for a resource of this uid and kind. Pure.
pub fn state(job: &Job, uid: Option<&str>, kind: &str) -> State {
    let name = job.name_any();
    if !is_owned(job, uid) && !bug::active(Bug::ForeignJobBelieved) {
        return State::Foreign(format!("there is a Job {name} that does not belong to this {kind}"));
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

/// Makes a Job. One of that name that is there already is looked at in the next pass, whoever made it: see [`Error::is_conflict`].
pub async fn create(actor: Actor<'_>, namespace: &str, job: &Job) -> Result<(), Error> {
    let api: Api<Job> = Api::namespaced(actor.context.client.clone(), namespace);
    let what = format!("jobs/{namespace}/{}", job.name_any());
    actor.write("create", &what, api.create(&PostParams::default(), job)).await.map(|_| ())
}

/// What kind of Job it is, for those who look for them.
pub fn labels(task: &str) -> BTreeMap<String, String> {
    let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    [label("app.kubernetes.io/managed-by", "windlass"), label("windlass.dev/task", task)].into()
}

/// The Job's condition of this type, if it is true.
fn condition<'a>(job: &'a Job, kind: &str) -> Option<&'a JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|condition| condition.type_ == kind && condition.status == "True")
}

/// A user without rights: what the `restricted` Pod Security Standard asks of a pod.
pub fn nobody() -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(USER),
        run_as_group: Some(USER),
        seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), ..SeccompProfile::default() }),
        ..PodSecurityContext::default()
    }
}

/// What it asks of a container.
pub fn nothing_allowed() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
        ..SecurityContext::default()
    }
}
