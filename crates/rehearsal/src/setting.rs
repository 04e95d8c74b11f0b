//! Quorums and their upgrades as scenarios, one [`Setting`] per system.

use std::time::Duration;

use crate::trial::{Ending, Scenario};
use serde_json::{Value, json};
use windlass_sim::{
    harness::Cluster,
    objects,
    scenario::{Action, Moment, Place, Subject, When},
    world::{ImageBehaviour, ServiceAnswer},
};

/// The image of executor Jobs.
pub const EXECUTOR: &str = "registry.example/windlass:0.1.0";

/// A quorum of one system, as its users deploy it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The system's name in the custom resource.
    pub system: &'static str,
    /// Where the quorum lives.
    pub namespace: &'static str,
    /// The StatefulSet's, the QuorumCluster's and the container's name.
    pub name: &'static str,
    /// The repository of its images.
    repository: &'static str,
    /// What the reference upgrade goes from and to.
    pub reference: (&'static str, &'static str),
    /// A version after that, which mends what was wrong with it.
    mended: &'static str,
    /// What random walks go between, oldest first.
    pub versions: [&'static str; 4],
    /// Where its pods listen.
    port: u16,
    /// The role that Windlass logs in with, where the system wants to know who asks.
    role: Option<&'static str>,
    /// An example whose description of the system is used, where it is described.
    example: Option<&'static str>,
}

/// PD.
pub const PD: Setting = Setting {
    system: "Pd",
    namespace: "tikv",
    name: "pd",
    repository: "registry.example/pingcap/pd",
    reference: ("8.5.0", "8.5.3"),
    mended: "8.5.4",
    versions: ["8.1.2", "8.5.0", "8.5.3", "9.0.1"],
    port: 2379,
    role: None,
    example: None,
};

/// etcd, one minor release further. From the first of its versions to the last there is no way.
pub const ETCD: Setting = Setting {
    system: "Etcd",
    namespace: "registry",
    name: "etcd",
    repository: "registry.example/coreos/etcd",
    reference: ("3.5.35", "3.6.16"),
    mended: "3.6.17",
    versions: ["3.4.34", "3.5.26", "3.5.35", "3.6.16"],
    port: 2379,
    role: None,
    example: None,
};

/// OpenBao, which tells whom it trusts and can't be told who leads next.
pub const OPENBAO: Setting = Setting {
    system: "OpenBao",
    namespace: "secrets",
    name: "openbao",
    repository: "registry.example/openbao/openbao",
    reference: ("2.4.4", "2.5.5"),
    mended: "2.5.6",
    versions: ["2.3.2", "2.4.1", "2.4.4", "2.5.5"],
    port: 8200,
    role: Some("windlass"),
    example: None,
};

/// etcd as any system with HTTP endpoints, in the words of the documented example. Nothing is known of ways between its versions, so walks
/// stay within a minor release.
pub const HTTP: Setting = Setting {
    system: "Http",
    namespace: "registry",
    name: "etcd",
    repository: "registry.example/coreos/etcd",
    reference: ("3.5.35", "3.6.16"),
    mended: "3.6.17",
    versions: ["3.5.21", "3.5.26", "3.5.30", "3.5.35"],
    port: 2379,
    role: None,
    example: Some(include_str!("../../../docs/examples/http-etcd.yaml")),
};

impl Setting {
    /// The custom resource definitions, a quorum of so many members at `from`, and a QuorumCluster that wants `to`.
    pub fn objects(&self, members: u32, from: &str, to: &str) -> Vec<Value> {
        let mut objects: Vec<Value> =
            windlass_api::crd::all().iter().filter_map(|crd| serde_json::to_value(crd).ok()).collect();
        objects.push(objects::namespace(self.namespace));
        objects.extend(objects::quorum(self.name, self.namespace, self.name, members, &self.image(from)));
        objects.push(self.quorum_cluster(self.name, to));
        objects
    }

    /// The image of a version.
    pub fn image(&self, version: &str) -> String {
        format!("{}:v{version}", self.repository)
    }

    /// A QuorumCluster for the quorum.
    pub fn quorum_cluster(&self, name: &str, version: &str) -> Value {
        let mut object = json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "QuorumCluster",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "workload": {"statefulSet": self.name, "container": self.name},
                "system": {"type": self.system, "port": self.port},
                "version": version,
            },
        });
        if let Some(role) = self.role {
            object["spec"]["system"]["auth"] = json!({"kubernetes": {"role": role}, "allowPlaintext": true});
        }
        if let Some(example) = self.example.and_then(|text| serde_saphyr::from_str::<Value>(text).ok()) {
            object["spec"]["system"] = example["spec"]["system"].clone();
        }
        object
    }

    /// The QuorumCluster.
    pub fn subject(&self) -> Subject {
        Subject {
            resource: "quorumclusters.windlass.dev".into(),
            namespace: self.namespace.into(),
            name: self.name.into(),
        }
    }

    /// The StatefulSet.
    pub fn workload(&self) -> Subject {
        Subject { resource: "statefulsets.apps".into(), namespace: self.namespace.into(), name: self.name.into() }
    }

    /// One of its pods.
    pub fn pod(&self, ordinal: u32) -> Place {
        Place { namespace: self.namespace.into(), pod: format!("{}-{ordinal}", self.name) }
    }

    /// The reference upgrade: three members, two operators, nothing goes wrong. Seeds 1, 2 and 3 begin with the lowest, the middle
    /// and the highest ordinal as the leader, and so on.
    pub fn reference(&self, seed: u64) -> Scenario {
        let (from, to) = self.reference;
        let leader = u32::try_from(seed.wrapping_sub(1) % 3).unwrap_or_default();
        Scenario {
            seed,
            objects: self.objects(3, from, to),
            operators: 2,
            faults: false,
            timeline: vec![after(Duration::ZERO, Action::Elect(self.pod(leader)))],
            subject: self.subject(),
            ending: Ending::Ready,
            max_leader_moves: (*self != OPENBAO).then_some(2),
            limit: Duration::from_mins(40),
        }
    }

    /// An upgrade whose image is broken until the spec is mended, with the first member waiting for it: by the next version for
    /// even seeds, by a revert for odd ones.
    pub fn mend(&self, seed: u64) -> Scenario {
        let (from, to) = self.reference;
        let how = if seed.is_multiple_of(3) { ImageBehaviour::CannotPull } else { ImageBehaviour::Crashes };
        let mended = if seed.is_multiple_of(2) { self.mended } else { from };
        let timeline = vec![
            after(Duration::ZERO, Action::Image(self.image(to), how)),
            Moment { when: When::Replaced(1), action: Action::DropWatches },
            after(Duration::from_secs(20), self.spec(json!({ "version": mended }))),
        ];
        Scenario { timeline, max_leader_moves: None, ..self.reference(seed) }
    }

    /// The reference upgrade of a set that is OnDelete: leadership moves once.
    pub fn leader_last(&self, seed: u64) -> Scenario {
        let mut scenario = self.reference(seed);
        for object in &mut scenario.objects {
            if object["kind"] == "StatefulSet" {
                object["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
            }
        }
        Scenario { max_leader_moves: Some(1), ..scenario }
    }

    /// The same within a budget of somebody else's: its pods are evicted.
    pub fn evicted(&self, seed: u64) -> Scenario {
        let mut scenario = self.leader_last(seed);
        let budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "theirs", "namespace": self.namespace},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": self.name}}},
        });
        let last = scenario.objects.len().saturating_sub(1);
        scenario.objects.insert(last, budget);
        scenario
    }

    /// The reference upgrade of a rolling set for which LeaderLast is asked.
    pub fn to_leader_last(&self, seed: u64) -> Scenario {
        let mut scenario = self.reference(seed);
        for object in &mut scenario.objects {
            if object["kind"] == "QuorumCluster" {
                object["spec"]["updateStrategy"] = json!({"rollingUpdate": {"order": "LeaderLast"}});
            }
        }
        Scenario { max_leader_moves: Some(1), ..scenario }
    }

    /// The reference upgrade of a set whose template somebody else writes.
    pub fn template(&self, seed: u64) -> Scenario {
        let mut scenario = self.leader_last(seed);
        follow(&mut scenario.objects);
        scenario.timeline.push(after(Duration::from_secs(1), self.edit(self.reference.1)));
        scenario
    }

    /// The reference upgrade, taken back by a person when its first member is done, and tried again when all are back.
    pub fn rollback(&self, seed: u64) -> Scenario {
        // The second member waits long enough for everybody to find the first one done, however late they look.
        let soaks =
            |time: &str, request: &str| self.spec(json!({"upgrade": {"soak": time}, "requests": {request: "please"}}));
        let mut scenario = self.reference(seed);
        scenario.timeline.extend([
            after(Duration::ZERO, self.spec(json!({"upgrade": {"soak": "1h"}}))),
            Moment { when: When::Replaced(1), action: Action::DropWatches },
            after(Duration::from_mins(2), soaks("0s", "rollback")),
            after(Duration::from_mins(2), soaks("0s", "retry")),
        ]);
        Scenario { max_leader_moves: None, ..scenario }
    }

    /// Somebody else writes the template.
    pub fn edit(&self, version: &str) -> Action {
        let ports = json!([{"containerPort": self.port}]);
        let containers = json!([{"name": self.name, "image": self.image(version), "ports": ports}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        Action::Patch { target: self.workload(), patch }
    }

    /// The reference upgrade with its image pulled on the nodes before.
    pub fn pre_pull(&self, seed: u64) -> Scenario {
        let mut scenario = self.reference(seed);
        for object in &mut scenario.objects {
            if object["kind"] == "QuorumCluster" {
                object["spec"]["upgrade"] = json!({"prePull": true});
            }
        }
        scenario
    }

    /// The reference upgrade with a snapshot before it.
    pub fn snapshot(&self, seed: u64) -> Scenario {
        let mut scenario = self.reference(seed);
        back_up(&mut scenario.objects, "10m");
        scenario
    }

    /// The reference upgrade with somebody to ask and Jobs to run, before and after.
    pub fn hooks(&self, seed: u64) -> Scenario {
        self.hooked(self.reference(seed))
    }

    /// With somebody to ask and Jobs to run, before and after.
    pub fn hooked(&self, mut scenario: Scenario) -> Scenario {
        let job = |name: &str, when: &str| json!({"name": name, "when": when, "job": {"cronJob": "smoke"}});
        let webhook = json!({"name": "changes", "port": 80});
        for object in scenario.objects.iter_mut().filter(|object| object["kind"] == "QuorumCluster") {
            object["spec"]["gates"] = json!({"hooks": [
                job("first", "BeforeUpgrade"),
                {"name": "ask", "when": "BeforeEachMember", "webhook": webhook},
                job("last", "AfterUpgrade"),
            ]});
        }
        let container = json!({"name": "executor", "image": "registry.example/smoke:1", "args": ["say", "well done"]});
        let pod = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
        let here = |kind: &str, version: &str, name: &str, spec: Value| json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": self.namespace}, "spec": spec});
        let template = json!({"spec": {"backoffLimit": 0, "template": pod}});
        let cron_job = json!({"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": template});
        let last = scenario.objects.len().saturating_sub(1);
        scenario.objects.splice(
            last..last,
            [
                here("CronJob", "batch/v1", "smoke", cron_job),
                here("Service", "v1", "changes", json!({"ports": [{"port": 80}]})),
            ],
        );
        let yes = ServiceAnswer { status: 200, body: String::new() };
        let changes = Place { namespace: self.namespace.to_owned(), pod: "changes".to_owned() };
        scenario.timeline.insert(0, after(Duration::ZERO, Action::Service(changes, Some(yes))));
        scenario
    }

    /// The same with a snapshot, and somebody else's Job has the name that ours would have, with a result in it that looks right. After a while a
    /// person asks for another attempt.
    pub fn foreign_job(&self, seed: u64) -> Scenario {
        let mut scenario = self.snapshot(seed);
        let uid = uid_in(&scenario);
        let name = format!("windlass-snapshot-{uid}-1");
        let told = json!({"done": {"snapshot": {"bytes": 1, "sha256": "00", "place": "nowhere", "milliseconds": 1}}});
        scenario.objects.push(json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "executor", "image": "registry.example/liar:1", "args": ["say", told.to_string()]}],
            }}},
        }));
        scenario.timeline.push(after(Duration::from_mins(2), self.spec(json!({"requests": {"resume": "again"}}))));
        scenario
    }

    /// A change of the QuorumCluster's spec.
    #[expect(clippy::needless_pass_by_value, reason = "callers write the JSON in place")]
    pub fn spec(&self, patch: Value) -> Action {
        Action::Patch { target: self.subject(), patch: json!({ "spec": patch }) }
    }
}

/// Has a snapshot taken before every upgrade, within this time.
pub fn back_up(objects: &mut [Value], deadline: &str) {
    for object in objects.iter_mut().filter(|object| object["kind"] == "QuorumCluster") {
        object["spec"]["backup"] = json!({
            "preUpgradeSnapshot": true,
            "destination": {"volume": {"claimName": "backups", "path": "nightly"}},
            "deadline": deadline,
        });
    }
}

/// Leaves the template to somebody else.
pub fn follow(objects: &mut [Value]) {
    for object in objects.iter_mut().filter(|object| object["kind"] == "QuorumCluster") {
        object["spec"]["trigger"] = json!("Template");
        if let Some(spec) = object["spec"].as_object_mut() {
            spec.remove("version");
        }
    }
}

/// The uid that the QuorumCluster gets: the same in every run of a seed, for objects are created in their order.
fn uid_in(scenario: &Scenario) -> String {
    let cluster = Cluster::new(scenario.seed);
    let mut made = scenario.objects.iter().filter_map(|object| cluster.api.create_value("user", object.clone()).ok());
    let resource = made.find(|made| made["kind"] == "QuorumCluster").unwrap_or_default();
    resource["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// So long after the moment before.
pub fn after(delay: Duration, action: Action) -> Moment {
    Moment { when: When::After(delay), action }
}
