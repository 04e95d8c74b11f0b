//! A Job that must complete, made from a CronJob.
//!
//! Its name says what it is for: this resource, this edit of it, this hook, this upgrade.

use k8s_openapi::api::batch::v1::CronJob;
use kube::Api;
use windlass_api::status::jobs::Intent;
use windlass_plan::{Hold, Reason, gate::Outcome};

use super::{Answer, Asker, Of, Question};
use crate::{
    Context,
    digest::digest,
    error::Error,
    jobs::{Draft, KEPT, MANAGED_BY, Seen, State, seconds},
    live::get,
};

/// What became of the hook's Job, or what one can be made from.
pub async fn ask(context: &Context, asker: &Asker, gate: &str, cron_job: &str, name: &str) -> Answer {
    let hold = |reason, message: String| Hold::new(reason, format!("{gate}: {message}"));
    let waits = |message: String| hold(Reason::AwaitingHook, message);
    let Seen { name, state, .. } = match asker.maker.look(context, name).await {
        Ok(seen) => seen,
        Err(error) => return Outcome::Unknown(waits(error.story())).into(),
    };
    match state {
        State::Complete => Outcome::Pass.into(),
        State::Foreign(why) | State::Failed(why) => Outcome::Hold(hold(Reason::HookFailed, why)).into(),
        State::Running => Outcome::Hold(waits(format!("Job {name} has not completed yet"))).into(),
        State::Missing => match template(context, &asker.maker.namespace, cron_job).await {
            Ok(Some(_)) => {
                Answer { lacks_job: true, ..Outcome::Hold(waits("its Job has not begun".to_owned())).into() }
            }
            Ok(None) => Outcome::Hold(waits(format!("there is no CronJob {cron_job}"))).into(),
            Err(error) => Outcome::Unknown(waits(error.story())).into(),
        },
    }
}

async fn template(context: &Context, namespace: &str, name: &str) -> Result<Option<CronJob>, Error> {
    let cron_jobs: Api<CronJob> = Api::namespaced(context.client.clone(), namespace);
    get(context, &format!("cronjobs/{namespace}/{name}"), &cron_jobs, name).await
}

/// The Job that this gate has on this occasion: what is about to be made.
pub fn intent(questions: &[Question], gate: &str) -> Option<Intent> {
    questions.iter().find(|question| question.gate == gate).and_then(|question| match &question.of {
        Of::Job { job, .. } => Some(Intent::Hook { gate: gate.to_owned(), job: job.clone() }),
        Of::Objects(_) | Of::Prometheus(_) | Of::Webhook { .. } => None,
    })
}

/// The Job of a gate, by this name: what its CronJob's template says, with all its fields.
pub async fn draft(
    context: &Context,
    asker: &Asker,
    questions: &[Question],
    gate: &str,
    name: &str,
) -> Result<Draft, Error> {
    let from = questions.iter().find(|question| question.gate == gate).and_then(|question| match &question.of {
        Of::Job { cron_job, .. } => Some(cron_job),
        Of::Objects(_) | Of::Prometheus(_) | Of::Webhook { .. } => None,
    });
    let Some(cron_job) = from else { return Err(Error::Gone(gate.to_owned())) };
    let run = name.strip_prefix(&names_of(asker));
    if run.is_none_or(|run| run.len() != 8 || !run.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        // Whoever wrote it into the status would take a name that is another resource's.
        return Err(Error::Gone(format!("a Job of {gate} whose name is {name}")));
    }
    let Some(found) = template(context, &asker.maker.namespace, cron_job).await? else {
        return Err(Error::Gone(format!("CronJob {cron_job}")));
    };
    Ok(copied(name, found))
}

fn copied(name: &str, from: CronJob) -> Draft {
    let template = from.spec.map(|spec| spec.job_template).unwrap_or_default();
    let metadata = template.metadata.unwrap_or_default();
    let mut labels = metadata.labels.unwrap_or_default();
    let (managed_by, windlass) = MANAGED_BY;
    labels.insert(managed_by.to_owned(), windlass.to_owned());
    let mut annotations = metadata.annotations.unwrap_or_default();
    // As kubectl marks those that it makes from a CronJob.
    annotations.insert("cronjob.kubernetes.io/instantiate".to_owned(), "manual".to_owned());
    let mut spec = template.spec.unwrap_or_default();
    spec.ttl_seconds_after_finished.get_or_insert(seconds(KEPT));
    Draft { name: name.to_owned(), labels, annotations, spec }
}

/// No two occasions share one, nor do two hooks or two resources. `run` tells what the occasion does not.
pub fn name(asker: &Asker, hook: &str, run: &str) -> String {
    let what = format!("{} {hook} {run}", asker.occasion);
    format!("{}{:08x}", names_of(asker), digest(&what) >> 32)
}

/// How the names of a resource's Jobs begin.
fn names_of(asker: &Asker) -> String {
    format!("windlass-hook-{}-", asker.maker.uid)
}
