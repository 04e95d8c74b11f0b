//! Scripts from a seed: what several clients do to a few objects of a few kinds, some of it nonsense.
//!
//! The generator keeps no model of the servers. It draws from small pools of names and values, so that writers meet, and
//! refers to what earlier steps read by slots that are overwritten at random, so that some of it is stale.
#![expect(clippy::wildcard_enum_match_arm, reason = "what is not named here is a custom resource")]

use http::Method;
use serde_json::{Value, json};
use windlass_sim::rng::Rng;

use super::kind::Kind::{self, ConfigMap, Lease, Pod, PodDisruptionBudget, QuorumCluster, Secret, StatefulSet};
use super::scripts;
use super::step::{
    Body, Script, Step, apply, create, delete_collection, delete_with, get, json_patch, list, merge, put, put_saved,
    strategic, watch, watch_named,
};

/// How the names of these scripts begin; the seed follows.
pub const PREFIX: &str = "random-";

const KINDS: [Kind; 7] = [ConfigMap, Secret, StatefulSet, Pod, PodDisruptionBudget, Lease, QuorumCluster];
const NAMES: [&str; 3] = ["a", "b", "c"];
const SLOTS: [&str; 3] = ["s0", "s1", "s2"];
const VALUES: [&str; 3] = ["1", "2", "3"];
const AGENTS: [&str; 3] = ["conformance", "alice/1.0", "bob"];
const FOREIGN_UID: &str = "11111111-2222-3333-4444-555555555555";
const STEPS: u64 = 60;

/// The script of a seed.
pub fn script(seed: u64) -> Script {
    let mut draw = Draw { rng: Rng::new(seed), kinds: Vec::new(), generated: 0 };
    // Few kinds per script, so that there is something to run into.
    for _ in 0..2 {
        let kind = draw.of(&KINDS);
        draw.kinds.push(kind);
    }
    let count = STEPS / 2 + draw.rng.below(STEPS);
    let steps = (0..count).map(|_| draw.step()).collect();
    Script { name: format!("{PREFIX}{seed}"), steps }
}

struct Draw {
    rng: Rng,
    kinds: Vec<Kind>,
    generated: usize,
}

impl Draw {
    fn of<T: Copy>(&mut self, items: &[T]) -> T {
        let index = usize::try_from(self.rng.below(items.len() as u64)).unwrap_or(0);
        items[index]
    }

    fn kind(&mut self) -> Kind {
        let kinds = self.kinds.clone();
        self.of(&kinds)
    }

    /// A slot per kind: an object of one kind is no body for another.
    fn slot(&mut self, kind: Kind) -> String {
        format!("{}-{}", kind.name(), self.of(&SLOTS))
    }

    fn step(&mut self) -> Step {
        let kind = self.kind();
        let name = self.of(&NAMES);
        let step = match self.rng.below(100) {
            0..20 => self.creation(kind, name),
            20..34 => self.replacement(kind, name),
            34..46 => self.merge_patch(kind, name),
            46..54 => self.json_patch(kind, name),
            54..60 => self.other_patch(kind, name),
            60..68 => self.status(kind, name),
            68..80 => self.deletion(kind, name),
            80..84 => get(kind, name),
            84..94 => self.listing(kind),
            94..99 => return self.watching(kind, name),
            _ => self.collection(kind),
        };
        let step = self.parameters(step);
        let agent = self.of(&AGENTS);
        let slot = self.slot(kind);
        // Lists and collections are no bodies.
        let single = step.path.ends_with(&format!("/{name}")) || step.method == Method::POST;
        let step = if single && !self.rng.one_in(4) { step.save(&slot) } else { step };
        step.agent(agent)
    }

    /// What any write may carry.
    fn parameters(&mut self, step: Step) -> Step {
        if step.method == Method::GET {
            return step;
        }
        let step = if self.rng.one_in(12) { step.query("dryRun", "All") } else { step };
        if step.method == Method::DELETE || !self.rng.one_in(8) {
            return step;
        }
        let validation = self.of(&["Strict", "Ignore", "Warn"]);
        step.query("fieldValidation", validation)
    }

    fn creation(&mut self, kind: Kind, name: &str) -> Step {
        let mut object = self.object(kind, name);
        match self.rng.below(24) {
            0 => {
                self.generated += 1;
                object["metadata"]["name"] = Value::Null;
                object["metadata"]["generateName"] = json!(format!("g{}-", self.generated));
            }
            1 => object["metadata"]["resourceVersion"] = json!("5"),
            2 => object["metadata"]["name"] = json!("Bad Name"),
            3 => object["metadata"]["namespace"] = json!("other"),
            4 => object["unknownField"] = json!(true),
            _ => {}
        }
        create(kind, object)
    }

    /// An object with a random spec, sometimes one that is refused.
    fn object(&mut self, kind: Kind, name: &str) -> Value {
        let mut object = kind.minimal(name);
        if self.rng.one_in(2) {
            object["metadata"]["labels"] = self.labels();
        }
        if self.rng.one_in(5) {
            object["metadata"]["finalizers"] = self.finalizers();
        }
        if let Some(change) = self.change(kind) {
            super::step::merge_into(&mut object, &change);
        }
        object
    }

    fn labels(&mut self) -> Value {
        let value = self.of(&VALUES);
        let other = self.of(&VALUES);
        match self.rng.below(12) {
            0 => json!({"x": "bad value"}),
            1 => json!({}),
            2..6 => json!({"x": value, "y": other}),
            _ => json!({"x": value}),
        }
    }

    fn finalizers(&mut self) -> Value {
        match self.rng.below(8) {
            0 => json!([]),
            1 => json!(["unqualified"]),
            2 | 3 => json!(["example.com/a", "example.com/b"]),
            _ => json!(["example.com/a"]),
        }
    }

    /// A change to the content, as a merge patch.
    fn change(&mut self, kind: Kind) -> Option<Value> {
        let value = self.of(&VALUES);
        let number = i64::try_from(self.rng.below(5)).unwrap_or(0) - 1;
        let pick = self.rng.below(8);
        Some(match kind {
            ConfigMap => match pick {
                0..4 => json!({"data": {"k": value}}),
                4 => json!({"data": {"k": null, "l": value}}),
                5 => json!({"binaryData": {"b": "AAEC"}}),
                6 => json!({"immutable": true}),
                _ => json!({"data": {"bad key": value}}),
            },
            Secret => match pick {
                0..3 => json!({"data": {"k": "dg=="}}),
                3 => json!({"stringData": {"k": value}}),
                4 => json!({"data": null}),
                5 => json!({"type": "example.com/x"}),
                6 => json!({"data": {"bad key": "dg=="}}),
                _ => json!({"immutable": true}),
            },
            StatefulSet => match pick {
                0..3 => json!({"spec": {"replicas": number}}),
                3 => {
                    json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}}})
                }
                4 => json!({"spec": {"template": {"metadata": {"annotations": {"v": value}}}}}),
                5 => {
                    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": format!("example.com/c:{value}")}]}}}})
                }
                6 => json!({"spec": {"serviceName": format!("s{value}")}}),
                _ => json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}}),
            },
            Pod => match pick {
                0..3 => json!({"spec": {"containers": [{"name": "c", "image": format!("example.com/c:{value}")}]}}),
                3 => json!({"spec": {"nodeName": "n1"}}),
                4 => json!({"spec": {"activeDeadlineSeconds": number}}),
                5 => json!({"spec": {"terminationGracePeriodSeconds": 5}}),
                6 => json!({"spec": {"restartPolicy": "Never"}}),
                _ => return None,
            },
            PodDisruptionBudget => match pick {
                0..3 => json!({"spec": {"maxUnavailable": number}}),
                3 | 4 => json!({"spec": {"maxUnavailable": null, "minAvailable": number}}),
                5 => json!({"spec": {"minAvailable": 1}}),
                6 => json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}),
                _ => json!({"spec": {"selector": {"matchLabels": {"app": value}}}}),
            },
            Lease => match pick {
                0..3 => json!({"spec": {"holderIdentity": value}}),
                3 | 4 => json!({"spec": {"leaseDurationSeconds": number}}),
                5 => json!({"spec": {"renewTime": "2031-02-03T00:00:01.500000Z"}}),
                6 => json!({"spec": {"leaseTransitions": number}}),
                _ => json!({"spec": null}),
            },
            _ => match pick {
                0 | 1 => json!({"spec": {"paused": value == "1"}}),
                2 => json!({"spec": {"version": format!("8.5.{value}")}}),
                3 => json!({"spec": {"version": value}}),
                4 => json!({"spec": {"workload": {"statefulSet": value}}}),
                5 => json!({"spec": {"system": {"port": number}}}),
                6 => json!({"spec": {"upgrade": {"maxLagEntries": number}}}),
                _ => json!({"spec": {"requests": {"resume": value}, "unknownInSpec": 1}}),
            },
        })
    }

    /// A change to content or metadata, with or without preconditions, as a merge patch.
    fn patch(&mut self, kind: Kind) -> Value {
        let mut patch = match self.rng.below(6) {
            0 => json!({"metadata": {"labels": self.labels()}}),
            1 => json!({"metadata": {"annotations": {"k": self.of(&VALUES)}}}),
            2 => json!({"metadata": {"finalizers": self.finalizers()}}),
            3 => json!({"metadata": {"finalizers": null}}),
            _ => self.change(kind).unwrap_or_else(|| json!({})),
        };
        if self.rng.one_in(4) {
            let slot = self.slot(kind);
            patch["metadata"]["resourceVersion"] = json!(format!("$({slot}/metadata/resourceVersion)"));
        }
        if self.rng.one_in(6) {
            patch["metadata"]["uid"] = self.uid(kind);
        }
        patch
    }

    fn uid(&mut self, kind: Kind) -> Value {
        let slot = self.slot(kind);
        if self.rng.one_in(3) { json!(FOREIGN_UID) } else { json!(format!("$({slot}/metadata/uid)")) }
    }

    fn replacement(&mut self, kind: Kind, name: &str) -> Step {
        let slot = self.slot(kind);
        match self.rng.below(10) {
            0 => put(kind, name, self.object(kind, name)),
            1 => put_saved(
                kind,
                name,
                &slot,
                json!({"metadata": {"name": name, "resourceVersion": null, "labels": self.labels()}}),
            ),
            2 => put_saved(kind, name, &slot, json!({})),
            _ => {
                let change = self.patch(kind);
                // What was saved may be another object of this kind.
                let named = if self.rng.one_in(3) { format!("$({slot}/metadata/name)") } else { name.to_owned() };
                put_saved(kind, &named, &slot, change)
            }
        }
    }

    fn merge_patch(&mut self, kind: Kind, name: &str) -> Step {
        match self.rng.below(20) {
            0 => merge(kind, name, json!({})),
            1 => merge(kind, name, json!([])),
            2 => merge(kind, name, Value::Null).body(Body::Text("{".to_owned())),
            3 => merge(kind, name, json!({"unknownField": 1})),
            _ => merge(kind, name, self.patch(kind)),
        }
    }

    fn json_patch(&mut self, kind: Kind, name: &str) -> Step {
        let value = self.of(&VALUES);
        let slot = self.slot(kind);
        json_patch(
            kind,
            name,
            match self.rng.below(8) {
                0 => {
                    json!([{"op": "test", "path": "/metadata/resourceVersion", "value": format!("$({slot}/metadata/resourceVersion)")},
                            {"op": "add", "path": "/metadata/annotations", "value": {"t": value}}])
                }
                1 => json!([{"op": "add", "path": "/metadata/labels", "value": {"x": value}}]),
                2 => json!([{"op": "replace", "path": "/metadata/labels/x", "value": value}]),
                3 => json!([{"op": "remove", "path": "/metadata/finalizers/0"}]),
                4 => json!([{"op": "remove", "path": "/metadata/finalizers"}]),
                5 => {
                    json!([{"op": "test", "path": "/metadata/labels/x", "value": value}, {"op": "remove", "path": "/metadata/labels"}])
                }
                6 => json!([{"op": "replace", "path": "/metadata/name", "value": "z"}]),
                _ => json!([{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/a"]}]),
            },
        )
    }

    fn other_patch(&mut self, kind: Kind, name: &str) -> Step {
        let patch = self.patch(kind);
        if scripts::STRATEGIC && self.rng.one_in(2) {
            return strategic(kind, name, patch);
        }
        if scripts::APPLY {
            let mut object = kind.with(name, &json!({}));
            super::step::merge_into(&mut object, &patch);
            let manager = self.of(&["alice", "bob"]);
            let step = apply(kind, name, manager, object);
            return if self.rng.one_in(3) { step.query("force", "true") } else { step };
        }
        merge(kind, name, patch)
    }

    fn status(&mut self, kind: Kind, name: &str) -> Step {
        let number = i64::try_from(self.rng.below(4)).unwrap_or(0);
        let status = match kind {
            StatefulSet => json!({"replicas": number, "readyReplicas": number - 1, "observedGeneration": number}),
            Pod => json!({"phase": self.of(&["Running", "Pending", "Succeeded", "Failed"])}),
            PodDisruptionBudget => json!({"disruptionsAllowed": number - 1, "observedGeneration": number}),
            _ => json!({"phase": "Running", "observedGeneration": number}),
        };
        let mut change = json!({"status": status});
        if self.rng.one_in(3) {
            change["metadata"] = json!({"labels": self.labels()});
        }
        let slot = self.slot(kind);
        if self.rng.one_in(3) {
            put_saved(kind, name, &slot, change).part("status")
        } else {
            merge(kind, name, change).part("status")
        }
    }

    fn deletion(&mut self, kind: Kind, name: &str) -> Step {
        let slot = self.slot(kind);
        let mut options = json!({});
        if self.rng.one_in(3) {
            options["preconditions"]["resourceVersion"] = json!(format!("$({slot}/metadata/resourceVersion)"));
        }
        if self.rng.one_in(3) {
            options["preconditions"]["uid"] = self.uid(kind);
        }
        if self.rng.one_in(2) {
            options["propagationPolicy"] = json!(self.of(&["Background", "Background", "Foreground", "Orphan", "Odd"]));
        }
        if self.rng.one_in(4) {
            options["gracePeriodSeconds"] = json!(self.of(&[0, 1, 10, 60]));
        }
        delete_with(kind, name, options)
    }

    fn selector(&mut self) -> &'static str {
        self.of(&["x=1", "x=2", "x!=1", "x", "!x", "x in (1,2)", "y=1", "x notin (3)", "x=1,y=2", "x y", "x in (1"])
    }

    fn listing(&mut self, kind: Kind) -> Step {
        let mut step = list(kind);
        if self.rng.one_in(2) {
            let selector = self.selector();
            step = step.query("labelSelector", selector);
        }
        if self.rng.one_in(6) {
            step = step.query("fieldSelector", &format!("metadata.name={}", self.of(&NAMES)));
        }
        // Pages are saved apart from objects.
        let page = format!("page-{}", kind.name());
        match self.rng.below(6) {
            0 => step.query("limit", "1").save(&page),
            1 => step.query("limit", "2").save(&page),
            2 => list(kind).query("limit", "1").query("continue", &format!("$({page}/metadata/continue)")).save(&page),
            3 => {
                let slot = self.slot(kind);
                let matching = self.of(&["NotOlderThan", "Exact"]);
                step.query("resourceVersion", &format!("$({slot}/metadata/resourceVersion)"))
                    .query("resourceVersionMatch", matching)
            }
            4 => step.query("resourceVersion", "0"),
            _ => step,
        }
    }

    fn watching(&mut self, kind: Kind, name: &str) -> Step {
        let slot = self.slot(kind);
        let step = match self.rng.below(6) {
            0 => watch_named(kind, name),
            1 => watch(kind, json!({"x": "1"})).query("labelSelector", "x=1"),
            2 => watch(kind, json!({"x": "2"})).query("labelSelector", "x in (2,3)"),
            3 => watch(kind, json!({})).query("labelSelector", "x!=1"),
            _ => watch(kind, json!({})),
        };
        match self.rng.below(3) {
            0 => step.query("resourceVersion", &format!("$({slot}/metadata/resourceVersion)")),
            1 => step.query("resourceVersion", "0"),
            _ => step,
        }
    }

    fn collection(&mut self, kind: Kind) -> Step {
        let selector = self.selector();
        delete_collection(kind).query("labelSelector", selector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_script_every_time() {
        let text = |seed| script(seed).steps.iter().map(Step::describe).collect::<Vec<_>>().join("\n");
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
    }
}
