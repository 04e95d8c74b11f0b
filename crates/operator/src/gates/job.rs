//! A Job that must complete, made from a CronJob.
//!
//! Its name says what it is for: this resource, this edit of it, this hook, this upgrade.

use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::{Api, ResourceExt, api::ObjectMeta};
use windlass_api::status::Starting;
use windlass_plan::{Hold, Reason, gate::Outcome};

use super::{Answer, Asker, Of, Question};
use crate::{
    Context,
    actor::Actor,
    digest::digest,
    error::Error,
    jobs::{KEPT_SECONDS, State, create, find, state},
    live::get,
};

/// What became of the hook's Job, or what one can be made from.
pub async fn ask(context: &Context, asker: &Asker, gate: &str, cron_job: &str, name: &str) -> Answer {
    let namespace = &asker.namespace;
    let hold = |message: String| Hold::new(Reason::AwaitingHook, format!("{gate}: {message}"));
    match find(context, namespace, name).await {
        Ok(Some(job)) => return judge(asker, gate, &job).into(),
        Ok(None) => {}
        Err(error) => return Outcome::Unknown(hold(error.story())).into(),
    }
    match template(context, namespace, cron_job).await {
        Ok(Some(_)) => Answer { lacks_job: true, ..Outcome::Hold(hold("its Job has not begun".to_owned())).into() },
        Ok(None) => Outcome::Hold(hold(format!("there is no CronJob {cron_job}"))).into(),
        Err(error) => Outcome::Unknown(hold(error.story())).into(),
    }
}

async fn template(context: &Context, namespace: &str, name: &str) -> Result<Option<CronJob>, Error> {
    let cron_jobs: Api<CronJob> = Api::namespaced(context.client.clone(), namespace);
    get(context, &format!("cronjobs/{namespace}/{name}"), &cron_jobs, name).await
}

/// What a Job says. Pure.
fn judge(asker: &Asker, gate: &str, job: &Job) -> Outcome {
    let hold = |reason, message: String| Outcome::Hold(Hold::new(reason, format!("{gate}: {message}")));
    match state(job, Some(&asker.uid), asker.kind) {
        State::Complete => Outcome::Pass,
        State::Foreign(why) | State::Failed(why) => hold(Reason::HookFailed, why),
        State::Running => hold(Reason::AwaitingHook, format!("Job {} has not completed yet", job.name_any())),
    }
}

/// The Job that this gate has on this occasion: what is about to be made.
pub fn starting(questions: &[Question], gate: &str) -> Option<Starting> {
    questions.iter().find(|question| question.gate == gate).and_then(|question| match &question.of {
        Of::Job { job, .. } => Some(Starting { gate: gate.to_owned(), job: job.clone() }),
        Of::Objects(_) | Of::Prometheus(_) | Of::Webhook { .. } => None,
    })
}

/// Makes the Job of a gate.
pub async fn start(
    actor: Actor<'_>,
    asker: &Asker,
    questions: &[Question],
    Starting { gate, job: name }: &Starting,
) -> Result<(), Error> {
    let from = questions.iter().find(|question| question.gate == *gate).and_then(|question| match &question.of {
        Of::Job { cron_job, .. } => Some(cron_job),
        Of::Objects(_) | Of::Prometheus(_) | Of::Webhook { .. } => None,
    });
    let Some(cron_job) = from else { return Err(Error::Gone(gate.clone())) };
    let (context, namespace) = (actor.context, &asker.namespace);
    let Some(found) = template(context, namespace, cron_job).await? else {
        return Err(Error::Gone(format!("CronJob {cron_job}")));
    };
    create(actor, namespace, &job(asker, name, found)).await
}

fn job(asker: &Asker, name: &str, from: CronJob) -> Job {
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
            owner_references: asker.owner.clone().map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        ..Job::default()
    }
}

/// No two occasions share one, nor do two hooks or two resources. `run` tells what the occasion does not.
pub fn name(asker: &Asker, hook: &str, run: &str) -> String {
    let what = format!("{} {hook} {run}", asker.occasion);
    format!("windlass-hook-{}-{:08x}", asker.uid, digest(&what) >> 32)
}
