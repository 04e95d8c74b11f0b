//! The scenarios: every kind of set times everything that can happen to one in the middle of an update.

use serde_json::{Value, json};
use windlass_sim::world::Deviation;

use super::scenario::Step::{Settle, Some as Few};
use super::scenario::{Act, Propagation, Scenario, Step, Transition};
use super::scenario::{budget, delete, image, partition, patch, release, scale, set};

/// The scenarios (by a part of their names) that notice a deviation.
pub fn notices(deviation: Deviation) -> &'static str {
    match deviation {
        Deviation::PartitionIgnored => "ordered/partition-2/new-image",
        Deviation::BrokenPodReplaced => "ordered/rolling/mended",
        Deviation::CurrentMovesUnderOnDelete => "ordered/on-delete/one-by-one",
        Deviation::HeldPodComesUpNew => "ordered/partition-3/pod-deleted-half-way",
        Deviation::HistoryKept => "history/0",
    }
}

/// A kind of set.
struct Shape {
    name: String,
    set: Value,
}

fn shapes() -> Vec<Shape> {
    let held = |ordinal: usize| json!({"type": "RollingUpdate", "rollingUpdate": {"partition": ordinal}});
    let strategies = [
        ("rolling", held(0)),
        ("partition-1", held(1)),
        ("partition-2", held(2)),
        ("partition-3", held(3)),
        ("no-block", json!({"type": "RollingUpdate"})),
        ("on-delete", json!({"type": "OnDelete"})),
    ];
    let mut shapes = Vec::new();
    for (policy, management) in [("ordered", "OrderedReady"), ("parallel", "Parallel")] {
        for (strategy, update) in &strategies {
            let mut set = set();
            set["spec"]["podManagementPolicy"] = json!(management);
            set["spec"]["updateStrategy"] = update.clone();
            shapes.push(Shape { name: format!("{policy}/{strategy}"), set });
        }
    }
    shapes
}

fn note(text: &str) -> Step {
    patch(json!({"spec": {"template": {"metadata": {"annotations": {"note": text}}}}}))
}

fn on_delete() -> Step {
    patch(json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}}))
}

/// What happens to a set that is up.
fn plots() -> Vec<(&'static str, Vec<Step>)> {
    use Transition::{Crash, Fail, Ready, Run};
    vec![
        ("new-image", vec![image("v2"), Settle]),
        ("absent-image", vec![image("absent"), Settle, delete(0), Settle]),
        ("note", vec![note("a"), Settle, note("b"), Settle]),
        ("reverted-half-way", vec![image("v2"), Few(2), image("v1"), Settle]),
        ("reverted-at-the-end", vec![image("v2"), Settle, image("v1"), Settle]),
        ("two-edits", vec![image("v2"), Few(2), image("v3"), Settle]),
        ("two-edits-at-once", vec![image("v2"), image("v3"), Settle, image("v2"), Settle]),
        // kubernetes#67250: the broken pod stays until somebody deletes it.
        ("mended", vec![image("broken"), Settle, image("v2"), Settle, delete(2), Settle]),
        ("mended-by-revert", vec![image("broken"), Settle, image("v1"), Settle, delete(2), Settle]),
        ("scaled-up-half-way", vec![image("v2"), Few(2), scale(5), Settle]),
        ("scaled-down-half-way", vec![image("v2"), Few(2), scale(1), Settle]),
        ("scaled-to-none-and-back", vec![image("v2"), Few(1), scale(0), Settle, scale(2), Settle]),
        ("pod-deleted-half-way", vec![image("v2"), Few(1), delete(0), Few(1), delete(1), Settle]),
        ("one-by-one", vec![image("v2"), delete(2), Settle, delete(1), Settle, delete(0), Settle, image("v3"), Settle]),
        // H7: a set that was OnDelete and is told to roll, while all is held.
        (
            "told-to-roll",
            vec![image("v2"), delete(2), Settle, partition(3), Settle, delete(0), Settle, partition(0), Settle],
        ),
        ("told-to-wait", vec![image("v2"), Few(2), on_delete(), Settle, delete(0), Settle, partition(1), Settle]),
        (
            "lowered",
            vec![partition(3), image("v2"), Settle, partition(2), Settle, partition(1), Settle, partition(0), Settle],
        ),
        ("raised-half-way", vec![partition(0), image("v2"), Few(2), partition(3), Settle, delete(2), Settle]),
        ("taken-back", vec![partition(3), image("v2"), partition(2), partition(3), Settle, delete(1), Settle]),
        (
            "crashed-half-way",
            vec![image("v2"), Few(1), release(0, Crash), Settle, image("v3"), Settle, release(0, Ready), Settle],
        ),
        ("failed", vec![release(1, Fail), Settle, image("v2"), Few(1), release(0, Fail), Settle]),
        (
            "slow-start",
            vec![image("v2"), delete(2), release(2, Transition::Gone), release(2, Run), release(2, Ready), Settle],
        ),
    ]
}

/// Pods that are sick when the template changes.
fn sick() -> Vec<(&'static str, Vec<usize>)> {
    vec![("0", vec![0]), ("1", vec![1]), ("2", vec![2]), ("0-2", vec![0, 2]), ("all", vec![0, 1, 2])]
}

fn started(name: String, set: Value, plot: impl IntoIterator<Item = Step>) -> Scenario {
    let mut steps = vec![Step::Do(Act::Create(set)), Settle];
    steps.extend(plot);
    Scenario { name, steps }
}

/// All scenarios.
pub fn all() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for shape in shapes() {
        for (name, plot) in plots() {
            scenarios.push(started(format!("{}/{name}", shape.name), shape.set.clone(), plot));
        }
        for (name, ordinals) in sick() {
            let mut plot: Vec<Step> = ordinals.iter().map(|ordinal| release(*ordinal, Transition::Run)).collect();
            plot.extend([image("v2"), Settle]);
            plot.extend(ordinals.iter().map(|ordinal| release(*ordinal, Transition::Ready)));
            plot.push(Settle);
            scenarios.push(started(format!("{}/sick-{name}", shape.name), shape.set.clone(), plot));
        }
    }
    scenarios.extend(limits());
    scenarios.extend(shapes_of_their_own());
    scenarios.extend(ends());
    scenarios.extend(budgets());
    scenarios
}

/// History and other limits in the spec.
fn limits() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for limit in [0, 1, 2] {
        let mut set = set();
        set["spec"]["replicas"] = json!(2);
        set["spec"]["revisionHistoryLimit"] = json!(limit);
        let plot =
            [image("v2"), Settle, image("v3"), Settle, image("v4"), Few(2), image("v2"), Settle, image("v1"), Settle];
        scenarios.push(started(format!("history/{limit}"), set.clone(), plot));
        let shrunk = patch(json!({"spec": {"revisionHistoryLimit": 0}}));
        set["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
        let plot = [image("v2"), image("v3"), image("v4"), delete(0), Settle, image("v5"), shrunk, Settle];
        scenarios.push(started(format!("history/on-delete-{limit}"), set, plot));
    }
    for (name, most) in [("1", json!(1)), ("2", json!(2)), ("half", json!("50%"))] {
        let mut set = set();
        set["spec"]["updateStrategy"] =
            json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": most}});
        scenarios.push(started(format!("max-unavailable/{name}"), set.clone(), [image("v2"), Settle]));
        set["spec"]["podManagementPolicy"] = json!("Parallel");
        scenarios.push(started(format!("max-unavailable/parallel-{name}"), set, [image("v2"), Settle]));
    }
    for policy in ["OrderedReady", "Parallel"] {
        let mut set = set();
        set["spec"]["podManagementPolicy"] = json!(policy);
        set["spec"]["minReadySeconds"] = json!(3600);
        let patient = patch(json!({"spec": {"minReadySeconds": 0}}));
        let plot = [image("v2"), Settle, patient, Settle, image("v3"), Settle];
        scenarios.push(started(format!("min-ready/{policy}"), set, plot));
    }
    scenarios
}

/// Sets that differ in more than their strategy.
fn shapes_of_their_own() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for policy in ["OrderedReady", "Parallel"] {
        let mut from_five = set();
        from_five["spec"]["podManagementPolicy"] = json!(policy);
        from_five["spec"]["ordinals"] = json!({"start": 5});
        let shifted = patch(json!({"spec": {"ordinals": {"start": 4}}}));
        // Not while the lowest one is gone: for a moment as many pods as are wanted would be new and ready, the one that has to go among them,
        // and whether the controller gets to write that down is chance.
        let plot = [partition(2), image("v2"), Settle, delete(6), Settle, partition(0), Few(1), shifted, Settle];
        scenarios.push(started(format!("ordinals/{policy}"), from_five, plot));

        let mut claims = set();
        claims["spec"]["podManagementPolicy"] = json!(policy);
        claims["spec"]["volumeClaimTemplates"] = json!([{
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }]);
        let plot = [scale(1), Settle, image("v2"), Settle, scale(2), Settle];
        scenarios.push(started(format!("claims/{policy}"), claims, plot));

        let mut five = set();
        five["spec"]["podManagementPolicy"] = json!(policy);
        five["spec"]["replicas"] = json!(5);
        let plot = [release(3, Transition::Run), scale(2), Settle, release(3, Transition::Ready), Settle];
        scenarios.push(started(format!("condemned/sick-{policy}"), five.clone(), plot));
        let plot = [release(0, Transition::Run), scale(2), Settle, release(0, Transition::Ready), Settle];
        scenarios.push(started(format!("condemned/below-sick-{policy}"), five.clone(), plot));
        let plot = [release(4, Transition::Fail), scale(4), Settle, scale(2), Few(1), scale(5), Settle];
        scenarios.push(started(format!("condemned/failed-{policy}"), five.clone(), plot));
        let plot = [scale(2), image("v2"), Few(1), scale(4), Settle];
        scenarios.push(started(format!("condemned/taken-back-{policy}"), five, plot));

        let mut lost = set();
        lost["spec"]["podManagementPolicy"] = json!(policy);
        let forgotten = Step::Do(Act::DeleteRevision("v1".to_owned()));
        let plot = [partition(2), image("v2"), Settle, forgotten, delete(0), Settle, partition(0), Settle];
        scenarios.push(started(format!("revision-lost/{policy}"), lost, plot));

        let mut refused = set();
        refused["spec"]["podManagementPolicy"] = json!(policy);
        // The block must go in the same write.
        let on_delete_with_block = patch(json!({"spec": {"updateStrategy": {"type": "OnDelete"}}}));
        let negative = patch(json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": -1}}}}));
        let plot = [on_delete_with_block, negative, image("v2"), Settle];
        scenarios.push(started(format!("refused/{policy}"), refused, plot));
    }
    scenarios
}

/// Deletions of the set itself, which the garbage collector follows up.
fn ends() -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for (name, how) in [
        ("background", Propagation::Background),
        ("foreground", Propagation::Foreground),
        ("orphan", Propagation::Orphan),
    ] {
        let away = || Step::Do(Act::DeleteSet(how));
        scenarios.push(started(format!("deleted/{name}"), set(), [away(), Settle]));
        scenarios.push(started(format!("deleted/{name}-half-way"), set(), [image("v2"), Few(1), away(), Settle]));
        let again = Step::Do(Act::Create(set()));
        scenarios.push(started(
            format!("deleted/{name}-and-back"),
            set(),
            [image("v2"), Few(2), away(), Settle, again, Settle],
        ));
    }
    scenarios
}

/// Budgets over the pods of a set, for the disruption controller.
fn budgets() -> Vec<Scenario> {
    let budgets = [
        ("max-1", json!({"maxUnavailable": 1})),
        ("max-0", json!({"maxUnavailable": 0})),
        ("max-half", json!({"maxUnavailable": "50%"})),
        ("min-2", json!({"minAvailable": 2})),
        ("min-half", json!({"minAvailable": "50%"})),
    ];
    let mut scenarios = Vec::new();
    for (name, limit) in budgets {
        let plot = [budget(&limit), image("v2"), Few(3), release(0, Transition::Crash), scale(4), Settle];
        scenarios.push(started(format!("budget/{name}"), set(), plot));
    }
    scenarios
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_there_are_enough_of_them() {
        let names: BTreeSet<String> = all().into_iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), all().len());
        assert!(names.len() >= 100, "{}", names.len());
    }
}
