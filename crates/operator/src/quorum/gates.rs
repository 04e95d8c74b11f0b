//! What a QuorumCluster asks, and when; and the gates whose facts were read with everything else. Judged with all others in `plan`.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::{Resource, ResourceExt};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use windlass_api::{QuorumCluster, quorum_cluster::gates::Hook};
use windlass_plan::{
    Hold, MemberName, Reason,
    bug::{self, Bug},
    gate::{About, CONCURRENT_OPERATION, ExternalGate, NODE_DRAIN, Outcome, When},
    strategy::course::Course,
};

use crate::{
    Context,
    gates::{self, Answers, Asker, Of, Question, analysis, check, hook_name, job},
    jobs::Maker,
    quorum::{
        nodes::{self, Nodes},
        observe::Observed,
    },
};

/// A QuorumCluster asks in its own namespace.
pub fn asker(resource: &QuorumCluster, course: &Course) -> Asker {
    let maker = Maker::of(resource);
    let begun = course.under_way.as_ref().map(|under_way| under_way.since.to_string()).unwrap_or_default();
    Asker {
        occasion: format!("{} {} {begun}", maker.uid, resource.meta().generation.unwrap_or_default()),
        maker,
        about: about(resource, course),
    }
}

/// What webhooks are told.
fn about(resource: &QuorumCluster, course: &Course) -> Map<String, Value> {
    let current = resource.status.as_ref().and_then(|status| status.current_version.clone());
    let under_way = course.under_way.as_ref();
    let target = under_way.map(|under_way| under_way.coming.version.to_string());
    let completed = under_way.map(|under_way| under_way.done.as_slice()).unwrap_or_default();
    let completed: Vec<&str> = completed.iter().map(MemberName::as_str).collect();
    let own = json!({"namespace": resource.namespace(), "name": resource.name_any(), "uid": resource.uid()});
    Map::from_iter([
        ("quorumCluster".to_owned(), own),
        ("currentVersion".to_owned(), json!(current)),
        ("targetVersion".to_owned(), json!(target.or_else(|| resource.spec.version.clone()))),
        ("completedPods".to_owned(), json!(completed)),
    ])
}

/// All gates that it describes. Pure.
pub fn questions(resource: &QuorumCluster, course: &Course, set: &StatefulSet) -> Vec<Question> {
    let (gates, asker) = (&resource.spec.gates, asker(resource, course));
    let hooks = gates.hooks.iter().filter_map(|hook| {
        let Hook { name, when, webhook, job } = hook;
        let of = match (webhook, job) {
            (Some(service), _) => Of::Webhook { hook: name.clone(), time: (*when).into(), service: service.clone() },
            (None, Some(from)) => {
                let job = job::name(&asker, name, run(*when, set));
                Of::Job { cron_job: from.cron_job.clone(), job }
            }
            // The schema takes one of the two.
            (None, None) => return None,
        };
        Some(Question { gate: hook_name(name), when: *when, of, not_before: None, about: about_whom(course, *when) })
    });
    gates.checks.iter().map(check).chain(gates.analysis.iter().map(analysis)).chain(hooks).collect()
}

/// Who is asked before every member is asked about each of them: a yes to one is none to the next.
fn about_whom(course: &Course, when: When) -> About {
    match when {
        When::BeforeEachMember => About::Next(course.under_way.as_ref().and_then(|under_way| under_way.next.clone())),
        When::BeforeUpgrade | When::AfterUpgrade => About::All,
    }
}

/// When the last member that was replaced was well again: what anybody said before says nothing of it. None where that was before this
/// process began, as was nothing that it remembers.
fn last_settled(context: &Context, course: &Course) -> Option<Instant> {
    let settled = course.under_way.as_ref()?.settled?;
    let age = context.clock.now().duration_since(settled);
    // A clock that was set back: nothing that was said counts.
    Instant::now().checked_sub(age.try_into().unwrap_or(Duration::ZERO))
}

/// Another template is another occasion, also where the resource says nothing of it.
fn run(when: When, set: &StatefulSet) -> &str {
    match when {
        // Not the generation: another strategy or another size is no other template.
        When::BeforeUpgrade => {
            set.status.as_ref().and_then(|status| status.update_revision.as_deref()).unwrap_or_default()
        }
        When::BeforeEachMember | When::AfterUpgrade => "",
    }
}

/// Asks those whose word counts now. With `ahead`, for a plan, those that can be asked without telling anybody that it begins.
pub async fn ask(
    context: &Context,
    resource: &QuorumCluster,
    course: &Course,
    set: &StatefulSet,
    ahead: bool,
) -> Answers {
    let (asker, patience) = (asker(resource, course), context.settings.patience());
    let course = Course { at_rest: course.at_rest && !ahead, ..course.clone() };
    if course.at_rest && course.under_way.is_none() {
        context.asked.forget(&asker);
    }
    let members = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let members = usize::try_from(members).unwrap_or(usize::MAX);
    let not_before = last_settled(context, &course);
    let questions = questions(resource, &course, set).into_iter();
    let counting = questions.filter(|question| course.asks(question.when, members));
    let answers = counting.map(async |question| {
        let question = Question { not_before, ..question };
        let answer = tokio::time::timeout(patience, gates::ask(context, &asker, &question, ahead)).await;
        let late = |_| {
            let message = format!("{}: no answer within {patience:?}", question.gate);
            Outcome::Unknown(Hold::new(question.of.silence(), message)).into()
        };
        let answer = answer.unwrap_or_else(late);
        (question.gate, answer)
    });
    // All at once: together they may take no longer than one of them may.
    join_all(answers).await.into_iter().collect()
}

/// Whoever is at work on the members writes here what they do; on the StatefulSet or on the QuorumCluster.
pub const LOCKED_BY: &str = "windlass.dev/locked-by";

/// What these gates say.
pub fn external(resource: &QuorumCluster, observed: &Observed, set: &StatefulSet) -> Vec<ExternalGate> {
    let mut gates = vec![ExternalGate::new(CONCURRENT_OPERATION, unlocked(resource, set))];
    match &observed.nodes {
        Nodes::Seen(nodes) => gates.push(ExternalGate::new(NODE_DRAIN, nodes::stay(&observed.pods, nodes))),
        Nodes::Ignored => {
            let message = "nodes are not looked at: the operator was started with --ignore-nodes";
            let hold = Hold::new(Reason::NodeDraining, message);
            gates.push(ExternalGate::new(NODE_DRAIN, Outcome::NotAsked(hold)));
        }
        // Nothing was under way that they matter for. What begins in this very look begins with nobody.
        Nodes::NotYet if bug::active(Bug::NodesNotAwaited) => {}
        Nodes::NotYet => {
            let hold = Hold::new(Reason::NodeDraining, "the nodes under the members were not looked at yet");
            gates.push(ExternalGate::new(NODE_DRAIN, Outcome::Unknown(hold)));
        }
    }
    gates.extend(gates::outcomes(&questions(resource, &observed.course, set), &observed.answers));
    gates
}

/// Nobody else says that they are at work.
fn unlocked(resource: &QuorumCluster, set: &StatefulSet) -> Outcome {
    let on_set = set.annotations().get(LOCKED_BY).map(|by| (format!("StatefulSet {}", set.name_any()), by));
    let on_resource =
        resource.annotations().get(LOCKED_BY).map(|by| (format!("QuorumCluster {}", resource.name_any()), by));
    let Some((what, by)) = on_set.or(on_resource) else { return Outcome::Pass };
    let by = if by.trim().is_empty() { "somebody who gives no name" } else { by.trim() };
    Outcome::Hold(Hold::new(Reason::Locked, format!("{what} is locked by {by}")))
}
