//! What a QuorumCluster asks, and when; and the gates whose facts were read with everything else. Judged with all others in `plan`.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::{Resource, ResourceExt};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use windlass_api::{
    QuorumCluster, conditions,
    quorum_cluster::{Hook, HookTime},
};
use windlass_plan::{
    Hold, MemberName, Reason,
    gate::{About, CONCURRENT_OPERATION, ExternalGate, NODE_DRAIN, Outcome, When},
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
pub fn asker(resource: &QuorumCluster) -> Asker {
    let maker = Maker::of(resource);
    let begun = resource.status.as_ref().and_then(|status| status.upgrade.as_ref()).map(|upgrade| upgrade.started_at.0);
    let begun = begun.map(|begun| begun.to_string()).unwrap_or_default();
    Asker {
        occasion: format!("{} {} {begun}", maker.uid, resource.meta().generation.unwrap_or_default()),
        maker,
        about: about(resource),
    }
}

/// What webhooks are told.
fn about(resource: &QuorumCluster) -> Map<String, Value> {
    let status = resource.status.clone().unwrap_or_default();
    let target = status
        .upgrade
        .as_ref()
        .map(|upgrade| upgrade.next_target.as_ref().map_or(&upgrade.target_version, |next| &next.version).clone());
    let completed = status.upgrade.map(|upgrade| upgrade.completed_pods).unwrap_or_default();
    let own = json!({"namespace": resource.namespace(), "name": resource.name_any(), "uid": resource.uid()});
    Map::from_iter([
        ("quorumCluster".to_owned(), own),
        ("currentVersion".to_owned(), json!(status.current_version)),
        ("targetVersion".to_owned(), json!(target.or_else(|| resource.spec.version.clone()))),
        ("completedPods".to_owned(), json!(completed)),
    ])
}

/// All gates that it describes. Pure.
pub fn questions(resource: &QuorumCluster, set: &StatefulSet) -> Vec<Question> {
    let (gates, asker) = (&resource.spec.gates, asker(resource));
    let hooks = gates.hooks.iter().filter_map(|hook| {
        let Hook { name, when, webhook, job } = hook;
        let of = match (webhook, job) {
            (Some(service), _) => Of::Webhook { hook: name.clone(), time: time(*when), service: service.clone() },
            (None, Some(from)) => {
                let job = job::name(&asker, name, run(*when, set));
                Of::Job { cron_job: from.cron_job.clone(), job }
            }
            // The schema takes one of the two.
            (None, None) => return None,
        };
        Some(Question {
            gate: hook_name(name),
            when: (*when).into(),
            of,
            not_before: None,
            about: about_whom(resource, *when),
        })
    });
    gates.checks.iter().map(check).chain(gates.analysis.iter().map(analysis)).chain(hooks).collect()
}

/// Who is asked before every member is asked about each of them: a yes to one is none to the next.
fn about_whom(resource: &QuorumCluster, when: HookTime) -> About {
    let upgrade = resource.status.as_ref().and_then(|status| status.upgrade.as_ref());
    match when {
        HookTime::BeforeEachMember => {
            About::Next(upgrade.and_then(|upgrade| upgrade.next.as_ref()).map(MemberName::new))
        }
        HookTime::BeforeUpgrade | HookTime::AfterUpgrade => About::All,
    }
}

/// When the last member that was replaced was well again: what anybody said before says nothing of it. None where that was before this
/// process began, as was nothing that it remembers.
fn last_settled(context: &Context, resource: &QuorumCluster) -> Option<Instant> {
    let upgrade = resource.status.as_ref()?.upgrade.as_ref()?;
    let settled = upgrade.settled_since.iter().map(|settled| settled.since.0).max()?;
    let age = context.clock.now().duration_since(settled);
    // A clock that was set back: nothing that was said counts.
    Instant::now().checked_sub(age.try_into().unwrap_or(Duration::ZERO))
}

/// Another template is another occasion, also where the resource says nothing of it.
fn run(when: HookTime, set: &StatefulSet) -> &str {
    match when {
        // Not the generation: another strategy or another size is no other template.
        HookTime::BeforeUpgrade => {
            set.status.as_ref().and_then(|status| status.update_revision.as_deref()).unwrap_or_default()
        }
        HookTime::BeforeEachMember | HookTime::AfterUpgrade => "",
    }
}

/// What is told of it in words that a machine reads, too.
fn time(when: HookTime) -> &'static str {
    match when {
        HookTime::BeforeUpgrade => "BeforeUpgrade",
        HookTime::BeforeEachMember => "BeforeEachMember",
        HookTime::AfterUpgrade => "AfterUpgrade",
    }
}

/// Where the resource stands, which decides who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is wanted.
    Idle,
    /// An upgrade may begin.
    Before,
    /// One is under way.
    Within,
    /// One is under way, and another shall take its place.
    Between,
    /// All members are replaced and well.
    After,
}

impl Phase {
    /// Told from what was written. Should it be wrong, the gates are not asked and hold, what holds is written, and the next pass knows.
    fn of(resource: &QuorumCluster, set: &StatefulSet) -> Self {
        let status = resource.status.clone().unwrap_or_default();
        let members = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let members = usize::try_from(members).unwrap_or(usize::MAX);
        match &status.upgrade {
            None if conditions::is_ready(&status.conditions, resource.meta().generation) => Self::Idle,
            None => Self::Before,
            Some(upgrade) if upgrade.next_target.is_some() => Self::Between,
            Some(upgrade) if upgrade.completed_pods.len() >= members => Self::After,
            Some(_) => Self::Within,
        }
    }

    fn asks(self, when: When) -> bool {
        match (self, when) {
            (Self::Idle, _) => false,
            (Self::Before | Self::Between | Self::Within | Self::After, When::BeforeMember) => true,
            (phase, When::BeforeUpgrade) => matches!(phase, Self::Before | Self::Between),
            (phase, When::AfterUpgrade) => phase == Self::After,
        }
    }
}

/// Asks those whose word counts now. With `ahead`, for a plan, those that can be asked without telling anybody that it begins.
pub async fn ask(context: &Context, resource: &QuorumCluster, set: &StatefulSet, ahead: bool) -> Answers {
    let phase = if ahead && resource.status.as_ref().is_none_or(|status| status.upgrade.is_none()) {
        Phase::Before
    } else {
        Phase::of(resource, set)
    };
    let (asker, patience) = (asker(resource), context.settings.patience());
    if phase == Phase::Idle {
        context.asked.forget(&asker);
    }
    let not_before = last_settled(context, resource);
    let counting = questions(resource, set).into_iter().filter(|question| phase.asks(question.when));
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

/// What these gates say; nothing is said of nodes where nobody looked at them.
pub fn external(resource: &QuorumCluster, observed: &Observed, set: &StatefulSet) -> Vec<ExternalGate> {
    let mut gates = vec![ExternalGate::new(CONCURRENT_OPERATION, unlocked(resource, set))];
    match &observed.nodes {
        Nodes::Seen(nodes) => gates.push(ExternalGate::new(NODE_DRAIN, nodes::stay(&observed.pods, nodes))),
        Nodes::Ignored => {
            let message = "nodes are not looked at: the operator was started with --ignore-nodes";
            let hold = Hold::new(Reason::NodeDraining, message);
            gates.push(ExternalGate::new(NODE_DRAIN, Outcome::NotAsked(hold)));
        }
        Nodes::NotYet => {}
    }
    gates.extend(gates::outcomes(&questions(resource, set), &observed.answers));
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
