//! The scenarios of Deployments: how they are rolled out, and what people, pods and time do meanwhile.

use serde_json::{Value, json};
use windlass_sim::world::DeploymentDeviation;

use super::scenario::Step::{Settle, Some as Few};
use super::scenario::{Act, Alike, Propagation, Reached, Scenario, Step, Transition, budget, container, deployment};

/// The scenarios (by a part of their names) that notice a deviation.
pub fn notices(deviation: DeploymentDeviation) -> &'static str {
    match deviation {
        DeploymentDeviation::SickPodsKept => "deployment/surge-1/sick",
        DeploymentDeviation::PauseIgnored => "deployment/down-1/paused-half-way",
        DeploymentDeviation::HistoryKept => "deployment/revisions/0",
        DeploymentDeviation::ReadyPodsGoFirst => "deployment/scaled/down-with-sick-pods",
    }
}

fn patch(patch: Value) -> Step {
    Step::Do(Act::PatchDeployment(patch))
}

fn image(tag: &str) -> Step {
    patch(json!({"spec": {"template": {"spec": {"containers": [container(tag)]}}}}))
}

fn note(text: &str) -> Step {
    patch(json!({"spec": {"template": {"metadata": {"annotations": {"note": text}}}}}))
}

fn pause(on: bool) -> Step {
    patch(json!({"spec": {"paused": on}}))
}

fn scale(replicas: usize) -> Step {
    Step::Do(Act::ScaleDeployment(replicas))
}

fn alike(template: &str, reached: Reached) -> Alike {
    Alike { template: template.to_owned(), reached }
}

fn release(template: &str, reached: Reached, transition: Transition) -> Step {
    Step::Do(Act::ReleaseReplica(alike(template, reached), transition))
}

fn delete_pod(template: &str, reached: Reached) -> Step {
    Step::Do(Act::DeleteReplica(alike(template, reached)))
}

fn delete(how: Propagation) -> Step {
    Step::Do(Act::DeleteDeployment(how))
}

/// A Deployment that is up before anything happens.
fn started(name: &str, deployment: Value, plot: impl IntoIterator<Item = Step>) -> Scenario {
    let mut steps = vec![Step::Do(Act::Create(deployment)), Settle];
    steps.extend(plot);
    Scenario { name: format!("deployment/{name}"), steps }
}

/// A Deployment that is not.
fn fresh(name: &str, deployment: Value, plot: impl IntoIterator<Item = Step>) -> Scenario {
    let mut steps = vec![Step::Do(Act::Create(deployment))];
    steps.extend(plot);
    Scenario { name: format!("deployment/{name}"), steps }
}

fn rolling(surge: &Value, unavailable: &Value) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}})
}

fn with(fields: &Value) -> Value {
    let mut deployment = deployment();
    for (key, value) in fields.as_object().into_iter().flatten() {
        deployment["spec"][key] = value.clone();
    }
    deployment
}

fn strategies() -> Vec<(&'static str, Value)> {
    vec![
        ("default", json!({})),
        ("surge-1", rolling(&json!(1), &json!(0))),
        ("down-1", rolling(&json!(0), &json!(1))),
        ("one-and-one", rolling(&json!(1), &json!(1))),
        ("half", rolling(&json!("50%"), &json!("50%"))),
        ("all", rolling(&json!("100%"), &json!("100%"))),
        ("recreate", json!({"type": "Recreate"})),
    ]
}

/// What happens to a Deployment that is up.
fn plots() -> Vec<(&'static str, Vec<Step>)> {
    use Reached::{Leaving, Pending, Ready, Unready};
    use Transition::{Crash, Fail, Gone, Run};
    vec![
        ("new-image", vec![image("v2"), Settle]),
        ("absent-image", vec![image("absent"), Settle, image("v2"), Settle]),
        ("broken-image", vec![image("broken"), Settle, image("v1"), Settle]),
        ("note", vec![note("a"), Settle, note("b"), Settle]),
        ("reverted-half-way", vec![image("v2"), Few(2), image("v1"), Settle]),
        ("reverted-at-the-end", vec![image("v2"), Settle, image("v1"), Settle]),
        ("two-edits", vec![image("v2"), Few(2), image("v3"), Settle]),
        ("three-edits-at-once", vec![image("v2"), image("v3"), image("v2"), Settle]),
        ("scaled-up-half-way", vec![image("v2"), Few(2), scale(5), Settle]),
        ("scaled-down-half-way", vec![image("v2"), Few(2), scale(1), Settle]),
        ("scaled-to-none-and-back", vec![image("v2"), Few(1), scale(0), Settle, scale(2), Settle]),
        ("pod-deleted-half-way", vec![image("v2"), delete_pod("v1", Ready), Few(2), delete_pod("v2", Ready), Settle]),
        ("sick", vec![release("v1", Ready, Run), image("v2"), Settle]),
        (
            "all-sick",
            vec![
                release("v1", Ready, Run),
                release("v1", Ready, Crash),
                release("v1", Ready, Run),
                image("v2"),
                Settle,
            ],
        ),
        (
            "crashed-half-way",
            vec![
                image("v2"),
                Few(1),
                release("v1", Ready, Crash),
                Few(3),
                release("v1", Unready, Transition::Ready),
                Settle,
            ],
        ),
        ("failed", vec![release("v1", Ready, Fail), Settle, image("v2"), Few(1), release("v1", Ready, Fail), Settle]),
        (
            "slow-start",
            vec![
                image("v2"),
                release("v1", Leaving, Gone),
                release("v2", Pending, Run),
                release("v2", Unready, Transition::Ready),
                Settle,
            ],
        ),
        ("paused-half-way", vec![image("v2"), Few(1), pause(true), Settle, pause(false), Settle]),
        ("edited-while-paused", vec![pause(true), image("v2"), Settle, scale(5), Settle, pause(false), Settle]),
        (
            "scaled-while-paused",
            vec![image("v2"), Few(2), pause(true), scale(6), Settle, scale(2), Settle, pause(false), Settle],
        ),
    ]
}

/// What these come to depends on who is quicker. A set that is sized twice at once may have made pods in between, and a rollout that
/// has no old pods the next time that somebody looks has not moved.
const MOODY: [(&str, &str); 2] = [("half", "scaled-up-half-way"), ("all", "reverted-at-the-end")];

/// All scenarios.
pub fn all() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for (strategy, how) in strategies() {
        for (plot, steps) in plots().into_iter().filter(|(plot, _)| !MOODY.contains(&(strategy, plot))) {
            scenarios.push(started(&format!("{strategy}/{plot}"), with(&json!({"strategy": how})), steps));
        }
    }
    scenarios.extend(sizes());
    scenarios.extend(limits());
    scenarios.extend(deadlines());
    scenarios.extend(changes());
    scenarios.extend(ends());
    scenarios.extend(budgets());
    scenarios
}

/// Larger ones, whose parts grow and shrink in proportion, and the choice of pods that go.
fn sizes() -> Vec<Scenario> {
    use Reached::{Pending, Ready};
    let six = || with(&json!({"replicas": 6, "strategy": rolling(&json!(2), &json!(1))}));
    let mut scenarios = Vec::new();
    for replicas in [0, 1, 3, 7, 9, 12] {
        let name = format!("scaled/in-proportion-{replicas}");
        scenarios.push(started(&name, six(), [image("v2"), Few(3), scale(replicas), Settle]));
        let name = format!("scaled/three-templates-{replicas}");
        let plot = [image("v2"), Few(4), image("v3"), Few(2), scale(replicas), Settle];
        scenarios.push(started(&name, six(), plot));
    }
    let sick = || release("v1", Ready, Transition::Run);
    let up = || release("v1", Pending, Transition::Ready);
    scenarios.push(started("scaled/up", deployment(), [scale(5), Settle]));
    let both = json!({"spec": {"replicas": 5, "template": {"spec": {"containers": [container("v2")]}}}});
    scenarios.push(started(
        "scaled/with-an-edit",
        with(&json!({"strategy": rolling(&json!(1), &json!(0))})),
        [patch(both), Settle],
    ));
    scenarios.push(started("scaled/down", deployment(), [scale(1), Settle]));
    scenarios.push(started(
        "scaled/down-with-sick-pods",
        with(&json!({"replicas": 5})),
        [sick(), sick(), scale(2), Settle],
    ));
    scenarios.push(fresh(
        "scaled/down-with-pending-pods",
        with(&json!({"replicas": 5})),
        [up(), up(), release("v1", Pending, Transition::Run), scale(4), scale(3), scale(2), scale(1), Settle],
    ));
    scenarios.push(fresh(
        "scaled/from-none",
        with(&json!({"replicas": 0})),
        [Settle, image("v2"), Settle, scale(2), Settle],
    ));
    // Rounded, both limits come to nothing, and then one may be missing.
    let hardly = with(&json!({"strategy": rolling(&json!(0), &json!("1%"))}));
    scenarios.push(started("hardly-any/new-image", hardly, [image("v2"), Settle]));
    scenarios.push(started("one/new-image", with(&json!({"replicas": 1})), [image("v2"), Settle, image("v1"), Settle]));
    scenarios
}

/// History, and the time that a pod must be ready.
fn limits() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for limit in [0, 1, 2] {
        let plot =
            [image("v2"), Settle, image("v3"), Settle, image("v4"), Few(2), image("v2"), Settle, image("v1"), Settle];
        let small = with(&json!({"replicas": 2, "revisionHistoryLimit": limit}));
        scenarios.push(started(&format!("revisions/{limit}"), small, plot));
        let plot =
            [image("v2"), Settle, image("v3"), Settle, patch(json!({"spec": {"revisionHistoryLimit": limit}})), Settle];
        scenarios.push(started(&format!("revisions/shortened-to-{limit}"), with(&json!({"replicas": 1})), plot));
    }
    let patient = |seconds: i64| patch(json!({"spec": {"minReadySeconds": seconds}}));
    let slow = with(&json!({"minReadySeconds": 3600, "progressDeadlineSeconds": 7200}));
    scenarios.push(started("min-ready/an-hour", slow, [image("v2"), Settle, patient(0), Settle, image("v3"), Settle]));
    let short = with(&json!({"minReadySeconds": 2, "replicas": 2}));
    scenarios.push(started("min-ready/two-seconds", short, [image("v2"), Settle]));
    scenarios
}

/// Rollouts that take too long.
fn deadlines() -> Vec<Scenario> {
    let hasty = || with(&json!({"progressDeadlineSeconds": 3, "replicas": 2}));
    let endless = || with(&json!({"progressDeadlineSeconds": i32::MAX, "replicas": 2}));
    vec![
        fresh("deadline/never-up", hasty(), [Few(1), Settle]),
        started("deadline/absent-image", hasty(), [image("absent"), Settle, image("v2"), Settle]),
        started("deadline/reverted", hasty(), [image("broken"), Settle, image("v1"), Settle]),
        started(
            "deadline/paused",
            hasty(),
            [pause(true), image("absent"), Settle, pause(false), Settle, pause(true), Settle],
        ),
        started("deadline/none", endless(), [image("v2"), Settle, pause(true), Settle, pause(false), Settle]),
        started(
            "deadline/taken-away",
            deployment(),
            [
                patch(json!({"spec": {"progressDeadlineSeconds": i32::MAX}})),
                Settle,
                patch(json!({"spec": {"progressDeadlineSeconds": 600}})),
                Settle,
            ],
        ),
    ]
}

/// Changes of other fields, and of what belongs to the Deployment.
fn changes() -> Vec<Scenario> {
    let recreate = || patch(json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}}));
    let roll = || patch(json!({"spec": {"strategy": {"type": "RollingUpdate"}}}));
    let annotate = |value: Value| patch(json!({"metadata": {"annotations": {"team": value}}}));
    let relabel = |app: &str| {
        Step::Do(Act::PatchReplica(alike("v1", Reached::Ready), json!({"metadata": {"labels": {"app": app}}})))
    };
    let forget = |template: &str| Step::Do(Act::DeleteReplicaSet(template.to_owned()));
    let by_hand = with(&json!({"strategy": {"type": "Recreate"}}));
    vec![
        started("strategy/to-recreate-half-way", deployment(), [image("v2"), Few(2), recreate(), Settle]),
        started("strategy/to-rolling-half-way", by_hand, [image("v2"), Few(1), roll(), Settle]),
        started(
            "annotated/at-rest",
            deployment(),
            [annotate(json!("a")), Settle, annotate(json!("b")), Settle, annotate(Value::Null), Settle],
        ),
        started("annotated/half-way", deployment(), [image("v2"), Few(1), annotate(json!("a")), Settle]),
        started("relabelled/pod", deployment(), [relabel("other"), Settle]),
        started("relabelled/pod-half-way", deployment(), [image("v2"), Few(1), relabel("other"), Settle]),
        started("forgotten/new-set", deployment(), [forget("v1"), Settle]),
        started("forgotten/old-set-half-way", deployment(), [image("v2"), Few(2), forget("v1"), Settle]),
        started(
            "forgotten/old-set-at-the-end",
            deployment(),
            [image("v2"), Settle, forget("v1"), Settle, image("v1"), Settle],
        ),
        fresh(
            "paused/from-the-start",
            with(&json!({"paused": true})),
            [Settle, scale(2), Settle, pause(false), Settle],
        ),
        started(
            "refused/all",
            deployment(),
            [
                patch(json!({"spec": {"replicas": -1}})),
                patch(json!({"spec": {"selector": {"matchLabels": {"app": "other"}}}})),
                patch(json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}}})),
                patch(json!({"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": "200%"}}}})),
                patch(json!({"spec": {"strategy": {"type": "Recreate"}}})),
                patch(json!({"spec": {"strategy": {"type": "Other"}}})),
                patch(json!({"spec": {"minReadySeconds": 600}})),
                patch(json!({"spec": {"revisionHistoryLimit": -1}})),
                patch(json!({"spec": {"template": {"metadata": {"labels": {"app": "other"}}}}})),
                patch(json!({"spec": {"template": {"spec": {"restartPolicy": "Never"}}}})),
                Settle,
            ],
        ),
    ]
}

/// Deletions of the Deployment itself, which the garbage collector follows up.
fn ends() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for (name, how) in [
        ("background", Propagation::Background),
        ("foreground", Propagation::Foreground),
        ("orphan", Propagation::Orphan),
    ] {
        scenarios.push(started(&format!("deleted/{name}"), deployment(), [delete(how), Settle]));
        let plot = [image("v2"), Few(2), delete(how), Settle];
        scenarios.push(started(&format!("deleted/{name}-half-way"), deployment(), plot));
        let again = Step::Do(Act::Create(deployment()));
        let plot = [image("v2"), Few(2), delete(how), Settle, again, Settle];
        scenarios.push(started(&format!("deleted/{name}-and-back"), deployment(), plot));
    }
    scenarios
}

/// Budgets over the pods of a Deployment, for the disruption controller.
fn budgets() -> Vec<Scenario> {
    let budgets = [
        ("max-1", json!({"maxUnavailable": 1})),
        ("max-half", json!({"maxUnavailable": "50%"})),
        ("min-2", json!({"minAvailable": 2})),
    ];
    let scenario = |(name, limit): (&str, Value)| {
        let crash = release("v1", Reached::Ready, Transition::Crash);
        let plot = [budget(&limit), image("v2"), Few(2), crash, scale(4), Settle];
        started(&format!("budget/{name}"), deployment(), plot)
    };
    budgets.into_iter().map(scenario).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_there_are_enough_of_them() {
        let names: BTreeSet<String> = all().into_iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), all().len());
        assert!(names.len() >= 60, "{}", names.len());
    }
}
