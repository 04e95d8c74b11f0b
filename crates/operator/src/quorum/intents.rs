//! What a QuorumCluster has Jobs do: which of them a decision reserves, and what each is made from (H1, H6).

use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use windlass_api::{QuorumCluster, status::jobs::Intent};
use windlass_plan::{
    Fact, Seen,
    strategy::{
        course::Course,
        known::{snapshot::Progress, step::JobStep},
    },
};

use crate::{
    Context,
    actor::Actor,
    error::Error,
    gates::job,
    jobs::{Draft, Maker, intents, pull, snapshot},
    quorum::{
        gates,
        observe::{Observed, next_image},
    },
};

/// What is written with a plan, into the resource as it is about to be written otherwise: a hook's Job is called after its record.
pub fn reserved(
    resource: &QuorumCluster,
    course: &Course,
    set: Option<&StatefulSet>,
    seen: &Seen,
    job: Option<&JobStep>,
    now: Timestamp,
) -> Vec<Intent> {
    let mut intents = job.map(|job| of(job, resource, course, set)).unwrap_or_default();
    // With the next decision the others are closed: what comes late of them pulls an image, or has a name that nobody asks about any more. An
    // attempt outlives the decision, and so may a request for its Job, until that is seen.
    let unseen = matches!(seen.snapshot, Fact::Unknown(_) | Fact::Known(Progress::Missing));
    let before = resource.status.as_ref().map(|status| status.intents.as_slice()).unwrap_or_default();
    for intent in before {
        let open = match intent {
            Intent::Snapshot { attempt } => unseen && snapshot::open(resource, *attempt, now).is_some(),
            Intent::Hook { .. } | Intent::Pull { .. } => false,
        };
        if open && !intents.contains(intent) {
            intents.push(intent.clone());
        }
    }
    intents
}

/// What is reserved for this.
fn of(job: &JobStep, resource: &QuorumCluster, course: &Course, set: Option<&StatefulSet>) -> Vec<Intent> {
    match job {
        JobStep::TakeSnapshot { attempt } => {
            vec![Intent::Snapshot { attempt: i32::try_from(attempt.number).unwrap_or(i32::MAX) }]
        }
        JobStep::Answer { gate } => {
            let intent = set.and_then(|set| job::intent(&gates::questions(resource, course, set), gate));
            intent.into_iter().collect()
        }
        JobStep::PullImage { image, nodes } => {
            let pull = |node: &String| Intent::Pull { image: image.clone(), node: node.clone() };
            nodes.iter().map(pull).collect()
        }
    }
}

/// Makes the Jobs that this step reserved.
pub async fn carry_out(
    actor: Actor<'_>,
    resource: &QuorumCluster,
    course: &Course,
    observed: &Observed,
    set: &StatefulSet,
    job: &JobStep,
) -> Result<(), Error> {
    let reserved = of(job, resource, course, Some(set));
    if reserved.is_empty() {
        return Err(Error::Gone(format!("what it takes to {job}")));
    }
    let draft = async |intent: &Intent| draft(actor.context, resource, course, observed, set, intent).await;
    intents::carry_out(actor, &Maker::of(resource), &reserved, draft).await
}

/// Makes the Jobs that a predecessor may still be about to make.
pub async fn settle(
    actor: Actor<'_>,
    resource: &QuorumCluster,
    observed: &Observed,
    set: &StatefulSet,
) -> Result<(), Error> {
    let status = resource.status.as_ref();
    let mut open = status.map(|status| status.intents.clone()).unwrap_or_default();
    // The record of a snapshot says as much where its intent was not kept: by an older operator, or by a schema that has no intents yet.
    let number = status.and_then(|status| status.snapshot.as_ref()).map(|written| written.attempt);
    let recorded = number.filter(|number| snapshot::open(resource, *number, actor.context.clock.now()).is_some());
    if let Some(intent) = recorded.map(|attempt| Intent::Snapshot { attempt }).filter(|intent| !open.contains(intent)) {
        open.push(intent);
    }
    let course = &observed.course;
    open.retain(|intent| match intent {
        Intent::Pull { image, node } => is_meant(resource, observed, set, image, node),
        Intent::Hook { .. } | Intent::Snapshot { .. } => true,
    });
    let draft = async |intent: &Intent| draft(actor.context, resource, course, observed, set, intent).await;
    intents::settle(actor, &Maker::of(resource), &open, draft).await
}

/// Whether that image is the next one, and a member is on that node. Whoever may write the status alone has no other image run, and what is left out
/// harms nobody: it pulls an image, should it come.
fn is_meant(resource: &QuorumCluster, observed: &Observed, set: &StatefulSet, image: &str, node: &str) -> bool {
    let here = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
    observed.pods.iter().any(here) && next_image(resource, &observed.course, set).is_ok_and(|next| next == image)
}

async fn draft(
    context: &Context,
    resource: &QuorumCluster,
    course: &Course,
    observed: &Observed,
    set: &StatefulSet,
    intent: &Intent,
) -> Result<Draft, Error> {
    match intent {
        Intent::Snapshot { attempt } => snapshot::draft(resource, &observed.means(), *attempt, context.clock.now()),
        Intent::Hook { gate, job } => {
            let (asker, questions) = (gates::asker(resource, course), gates::questions(resource, course, set));
            job::draft(context, &asker, &questions, gate, job).await
        }
        Intent::Pull { image, node } => Ok(pull::draft(resource, set, image, node)),
    }
}
