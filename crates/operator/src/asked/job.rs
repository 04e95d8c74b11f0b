//! A Job that must complete, made from a CronJob.
//!
//! A Job can't be fenced (H6), so its name says what it is for: this resource, this edit of it, this hook, this upgrade. Two requests make
//! one Job, a take-over makes the one that its predecessor may be about to make, and one for what nobody wants any more is believed by nobody. Whether a Job of that name is ours is told by
//! its owner.

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::{CronJob, Job},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{ObjectMeta, PostParams},
};
use windlass_api::{
    QuorumCluster,
    quorum_cluster::{Hook, HookTime, JobHook},
    status::Starting,
};
use windlass_plan::{
    Hold, Reason,
    bug::{self, Bug},
    outcome::Outcome,
};

use super::{Answer, hook_name, occasion};
use crate::{
    Context,
    digest::digest,
    error::Error,
    execute::Actor,
    executor::{KEPT_SECONDS, condition},
    observe::{get, is_owned},
};

/// What became of the hook's Job, or what one can be made from.
pub async fn ask(
    context: &Context,
    resource: &QuorumCluster,
    set: &StatefulSet,
    hook: &Hook,
    JobHook { cron_job }: &JobHook,
) -> Answer {
    let (name, namespace) = (job_name(resource, set, hook), resource.namespace().unwrap_or_default());
    let hold = |message: String| Hold::new(Reason::AwaitingHook, format!("{}: {message}", hook_name(&hook.name)));
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), &namespace);
    match get(context, &format!("jobs/{namespace}/{name}"), &jobs, &name).await {
        Ok(Some(job)) => return judge(resource, hook, &job).into(),
        Ok(None) => {}
        Err(error) => return Outcome::Unknown(hold(error.story())).into(),
    }
    match template(context, &namespace, cron_job).await {
        Ok(Some(_)) => Answer { outcome: Outcome::Hold(hold("its Job has not begun".to_owned())), lacks_job: true },
        Ok(None) => Outcome::Hold(hold(format!("there is no CronJob {cron_job}"))).into(),
        Err(error) => Outcome::Unknown(hold(error.story())).into(),
    }
}

async fn template(context: &Context, namespace: &str, name: &str) -> Result<Option<CronJob>, Error> {
    let cron_jobs: Api<CronJob> = Api::namespaced(context.client.clone(), namespace);
    get(context, &format!("cronjobs/{namespace}/{name}"), &cron_jobs, name).await
}

/// What a Job says. Pure.
fn judge(resource: &QuorumCluster, hook: &Hook, job: &Job) -> Outcome {
    let (gate, name) = (hook_name(&hook.name), job.name_any());
    let hold = |reason, message: String| Outcome::Hold(Hold::new(reason, format!("{gate}: {message}")));
    if !is_owned(job, resource.uid().as_deref()) && !bug::active(Bug::ForeignJobBelieved) {
        return hold(Reason::HookFailed, format!("Job {name} does not belong to this QuorumCluster"));
    }
    if condition(job, "Complete").is_some() {
        return Outcome::Pass;
    }
    match condition(job, "Failed") {
        Some(failed) => {
            let word = |word: &Option<String>| word.clone().unwrap_or_default();
            let why = format!("{}: {}", word(&failed.reason), word(&failed.message));
            hold(Reason::HookFailed, format!("Job {name} has failed: {why}"))
        }
        None => hold(Reason::AwaitingHook, format!("Job {name} has not completed yet")),
    }
}

/// The Job that this gate's hook has on this occasion: what is about to be made.
pub fn starting(resource: &QuorumCluster, set: &StatefulSet, gate: &str) -> Option<Starting> {
    let hook = resource.spec.gates.hooks.iter().find(|hook| hook_name(&hook.name) == gate)?;
    Some(Starting { gate: gate.to_owned(), job: job_name(resource, set, hook) })
}

/// Makes a Job. One of that name that is there already is looked at in the next pass, whoever made it.
pub async fn start(
    actor: Actor<'_>,
    resource: &QuorumCluster,
    Starting { gate, job: name }: &Starting,
) -> Result<(), Error> {
    let hook = resource.spec.gates.hooks.iter().find(|hook| hook_name(&hook.name) == *gate);
    let Some(JobHook { cron_job }) = hook.and_then(|hook| hook.job.as_ref()) else {
        return Err(Error::Gone(gate.clone()));
    };
    let (context, namespace) = (actor.context, resource.namespace().unwrap_or_default());
    let Some(found) = template(context, &namespace, cron_job).await? else {
        return Err(Error::Gone(format!("CronJob {cron_job}")));
    };
    let job = job(resource, name, found);
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), &namespace);
    let what = format!("jobs/{namespace}/{}", job.name_any());
    actor.write("create", &what, jobs.create(&PostParams::default(), &job)).await.map(|_| ())
}

fn job(resource: &QuorumCluster, name: &str, from: CronJob) -> Job {
    let template = from.spec.map(|spec| spec.job_template).unwrap_or_default();
    let metadata = template.metadata.unwrap_or_default();
    let mut labels = metadata.labels.unwrap_or_default();
    labels.insert("app.kubernetes.io/managed-by".to_owned(), "windlass".to_owned());
    let mut annotations = metadata.annotations.unwrap_or_default();
    // As kubectl marks those that it makes from a CronJob.
    annotations.insert("cronjob.kubernetes.io/instantiate".to_owned(), "manual".to_owned());
    let mut spec = template.spec.unwrap_or_default();
    spec.ttl_seconds_after_finished.get_or_insert(KEPT_SECONDS);
    Job {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: resource.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        ..Job::default()
    }
}

/// No two occasions share one, nor do two hooks or two resources.
fn job_name(resource: &QuorumCluster, set: &StatefulSet, hook: &Hook) -> String {
    let run = match hook.when {
        // Another template is another occasion, also where the resource says nothing of it.
        HookTime::BeforeUpgrade => set.metadata.generation.unwrap_or_default(),
        HookTime::BeforeEachMember | HookTime::AfterUpgrade => 0,
    };
    let what = format!("{} {} {run}", occasion(resource), hook.name);
    format!("windlass-hook-{}-{:08x}", resource.uid().unwrap_or_default(), digest(&what) >> 32)
}
