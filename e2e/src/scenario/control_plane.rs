//! The operator and a real control plane, without containers: what the API server has a say in. KWOK plays the pods, so nobody
//! answers for the quorum, and nothing may be touched.

mod authors;
mod company;
mod fleet;
pub mod mass;

use std::{
    fs,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use futures::future::LocalBoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Namespace};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

use super::{
    etcd::set,
    operator::{Installation, USER},
    resource::Resource,
    row::Row,
    wait,
};
use crate::{
    audit::AuditLog,
    client::Application,
    cluster::{self, Cluster, Shape},
    hold::Hold,
    say,
};

/// The cluster that the checks make and take down.
const CLUSTER: &str = "control-plane";
/// Short, so that a take-over is soon.
const LEASE_SECONDS: u64 = 6;

/// One check.
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// What it shows, in a sentence.
    pub shows: &'static str,
    run: for<'a> fn(&'a Stage) -> LocalBoxFuture<'a, Result<()>>,
}

/// All of them.
pub const CHECKS: &[Check] = &[
    Check {
        name: "control-plane-rights",
        shows: "what is shipped lets the operator do its work and nothing else",
        run: |stage| Box::pin(async { rights(stage) }),
    },
    Check {
        name: "control-plane-silence",
        shows: "a quorum that does not answer is left alone, and kubectl says why",
        run: |stage| Box::pin(silence(stage)),
    },
    Check {
        name: "control-plane-unreadable",
        shows: "a QuorumCluster that the API server takes and nobody can read is held, and others are served",
        run: |stage| Box::pin(unreadable(stage)),
    },
    Check {
        name: "control-plane-late-write",
        shows: "a write that was sent before a take-over and arrives after it is refused",
        run: |stage| Box::pin(late_write(stage)),
    },
    Check {
        name: "control-plane-deletion",
        shows: "a deleted QuorumCluster goes and leaves the set as it was",
        run: |stage| Box::pin(deletion(stage)),
    },
    Check {
        name: "control-plane-service-image",
        shows: "a fleet with real Deployments gets its image tier by tier, and kubectl waits for it",
        run: |stage| Box::pin(fleet::tiers(stage)),
    },
    Check {
        name: "control-plane-author",
        shows: "where the author's own rights decide, a ServiceImage reaches no further than who wrote it",
        run: |stage| Box::pin(fleet::author(stage)),
    },
    Check {
        name: "control-plane-quorum-author",
        shows: "a QuorumCluster is taken only from who may patch its StatefulSet, and left alone where nobody asks",
        run: |stage| Box::pin(authors::quorum(stage)),
    },
    Check {
        name: "control-plane-namespace",
        shows: "an operator of one namespace needs no rights beyond it",
        run: |stage| Box::pin(authors::one_namespace(stage)),
    },
    Check {
        name: "control-plane-late-stamp",
        shows: "a stamp that was sent before a take-over and arrives after it is refused",
        run: |stage| Box::pin(fleet::late_stamp(stage)),
    },
    Check {
        name: "control-plane-two-owners",
        shows: "of two ServiceImages on the same resources the younger is refused and says who has them",
        run: |stage| Box::pin(company::two_owners(stage)),
    },
    Check {
        name: "control-plane-refused",
        shows: "a resource that can't be written harms only itself: annotations at their limit, and a policy",
        run: |stage| Box::pin(company::refused(stage)),
    },
    Check {
        name: "control-plane-unanswered",
        shows: "a resource whose writes get no answer harms only itself: a webhook that hangs",
        run: |stage| Box::pin(company::unanswered(stage)),
    },
    Check {
        name: "control-plane-gone",
        shows: "an operator that can't reach the API server says so and goes on trying",
        run: |stage| Box::pin(gone(stage)),
    },
];

/// Where the checks happen.
struct Stage {
    cluster: Cluster,
    client: Client,
    windlass: Installation,
}

/// The checks of this name, or whose names begin so.
pub fn named(name: &str) -> Vec<&'static Check> {
    CHECKS.iter().filter(|check| check.name.starts_with(name)).collect()
}

/// Runs checks on a control plane of their own; one row for each.
pub async fn run(checks: &[&Check], program: Option<PathBuf>) -> Result<Vec<Row>> {
    let options = cluster::Options {
        name: CLUSTER.into(),
        shape: Shape::ControlPlane,
        played_nodes: 1,
        api_server: Vec::new(),
        audited: None,
    };
    let cluster = cluster::up(&options).await?;
    let client = cluster::client(&cluster.kubeconfig()).await?;
    let windlass = Installation::install(&cluster, client.clone(), program)?;
    let stage = Stage { cluster, client, windlass };
    let mut rows = Vec::new();
    for check in checks {
        say(&format!("== {}: {}", check.name, check.shows));
        let begun = Instant::now();
        let mut row = Row { scenario: check.name.to_owned(), ..Row::default() };
        match (check.run)(&stage).await {
            Ok(()) => say(&format!("== {}: ok", check.name)),
            Err(error) => {
                say(&format!("== {}: FAILED: {error:#}", check.name));
                row.wrong.push(format!("{error:#}"));
                row.evidence = Some(stage.cluster.folder().display().to_string());
            }
        }
        row.seconds = begun.elapsed().as_secs();
        rows.push(row);
    }
    if rows.iter().all(Row::passed) {
        cluster::down(CLUSTER)?;
    } else {
        say(&format!("the cluster is still up; cargo xtask cluster down --name {CLUSTER} ends it"));
    }
    Ok(rows)
}

/// A set with played pods and its QuorumCluster, in a namespace of its own.
struct Quorum<'a> {
    stage: &'a Stage,
    namespace: &'static str,
    resource: Resource,
    sets: Api<StatefulSet>,
}

impl<'a> Quorum<'a> {
    async fn create(stage: &'a Stage, namespace: &'static str) -> Result<Self> {
        let made = json!({"metadata": {"name": namespace}});
        let namespaces: Api<Namespace> = Api::all(stage.client.clone());
        namespaces.create(&PostParams::default(), &serde_json::from_value(made)?).await?;
        let sets: Api<StatefulSet> = Api::namespaced(stage.client.clone(), namespace);
        let [_, set] = set::objects(namespace, 3, "registry.example/etcd:v3.5.35", "/nowhere");
        sets.create(&PostParams::default(), &serde_json::from_value(set)?).await?;
        let this = Self { stage, namespace, resource: Resource::of(&stage.client, namespace, Application::Etcd), sets };
        wait::until_so("the played pods to be ready", 60, async || {
            let set = this.sets.get(set::NAME).await?;
            Ok(set.status.and_then(|status| status.ready_replicas) == Some(3))
        })
        .await?;
        this.resource.create(Some("3.6.16"), false).await?;
        Ok(this)
    }

    fn kubectl(&self, words: &[&str]) -> Result<String> {
        self.stage.windlass.kubectl(&[&["--namespace", self.namespace], words].concat())
    }

    /// Nobody changed the set's spec.
    async fn is_untouched(&self) -> Result<()> {
        let set = self.sets.get(set::NAME).await?;
        ensure!(set.metadata.generation == Some(1), "the set was changed: {:?}", set.spec);
        Ok(())
    }

    /// Waits for the take-over that comes after `before` to be settled; its id.
    async fn settled(&self, before: &str) -> Result<String> {
        wait::until("an operator to have taken over", 60, async || {
            let whole = self.resource.whole().await?;
            let operator = &whole["status"]["operator"];
            let id = operator["identity"].as_str().filter(|id| operator["predecessorDone"] == true && *id != before);
            Ok(id.map(str::to_owned))
        })
        .await
    }
}

fn rights(stage: &Stage) -> Result<()> {
    let may = |words: &str| {
        let mut all = vec!["auth", "can-i", "--quiet", "--as", USER];
        all.extend(words.split(' '));
        stage.windlass.kubectl(&all).is_ok()
    };
    for words in [
        "patch statefulsets.apps --all-namespaces",
        "delete pods --all-namespaces",
        "create pods --subresource=eviction --all-namespaces",
        "patch pods --subresource=status --all-namespaces",
        "create poddisruptionbudgets.policy --all-namespaces",
        "update quorumclusters.windlass.dev --subresource=status --all-namespaces",
        "update leases.coordination.k8s.io/windlass --namespace windlass-system",
        "create serviceaccounts/windlass --subresource=token --namespace windlass-system",
    ] {
        ensure!(may(words), "the operator may not {words}");
    }
    for words in [
        "* * --all-namespaces",
        "get secrets --all-namespaces",
        "get secrets --namespace windlass-system",
        "create pods --all-namespaces",
        "patch pods --all-namespaces",
        "create pods --subresource=exec --all-namespaces",
        "delete statefulsets.apps --all-namespaces",
        "update statefulsets.apps --all-namespaces",
        "delete quorumclusters.windlass.dev --all-namespaces",
        "update quorumclusters.windlass.dev --all-namespaces",
        "delete poddisruptionbudgets.policy --all-namespaces",
        "patch nodes",
        "update leases.coordination.k8s.io/windlass --namespace kube-system",
        "update leases.coordination.k8s.io/other --namespace windlass-system",
        "create serviceaccounts/default --subresource=token --namespace windlass-system",
        "create serviceaccounts --subresource=token --all-namespaces",
        "create tokenreviews.authentication.k8s.io",
        "impersonate users",
    ] {
        ensure!(!may(words), "the operator may {words}");
    }
    Ok(())
}

async fn silence(stage: &Stage) -> Result<()> {
    let quorum = Quorum::create(stage, "silence").await?;
    let _operator = stage.windlass.start("silence", LEASE_SECONDS).await?;
    quorum.settled("").await?;
    let reason = quorum.resource.waits_for(&["MembersUnknown"], 30).await?;
    // Some more passes: it must not get tired of waiting.
    tokio::time::sleep(Duration::from_secs(5)).await;
    quorum.is_untouched().await?;
    let shown = quorum.kubectl(&["get", "quorumclusters"])?;
    ensure!(shown.contains(&reason) && shown.contains("3.6.16"), "kubectl get does not tell:\n{shown}");
    let told = quorum.kubectl(&["describe", "quorumcluster", set::NAME])?;
    let message = quorum.resource.seen().await?.message;
    ensure!(told.contains(&reason) && !message.is_empty(), "kubectl describe does not tell:\n{told}");
    let events = quorum.kubectl(&["get", "events", "--field-selector", "involvedObject.kind=QuorumCluster"])?;
    ensure!(events.contains(&reason), "no event tells:\n{events}");
    let waited = quorum.kubectl(&["wait", "--for=condition=Ready", "--timeout=1s", "quorumcluster/etcd"]);
    ensure!(waited.is_err(), "kubectl wait takes it for ready");
    quorum.kubectl(&["wait", "--for=condition=Ready=False", "--timeout=10s", "quorumcluster/etcd"])?;
    Ok(())
}

async fn unreadable(stage: &Stage) -> Result<()> {
    let odd = Quorum::create(stage, "unreadable").await?;
    let until = |until: &str| json!({"gates": {"overrides": [{"gate": "Soak", "until": until}]}});
    odd.resource.change(until("2030-01-01T00:00:00+99:99")).await?;
    let other = Quorum::create(stage, "beside-unreadable").await?;
    let _operator = stage.windlass.start("unreadable", LEASE_SECONDS).await?;
    other.settled("").await?;
    other.resource.waits_for(&["MembersUnknown"], 30).await?;
    odd.resource.waits_for(&["Unreadable"], 30).await?;
    let message = odd.resource.seen().await?.message;
    ensure!(message.contains("spec.gates.overrides[0].until"), "it does not say which field: {message}");
    odd.is_untouched().await?;
    odd.resource.change(until("2030-01-01T00:00:00Z")).await?;
    odd.resource.waits_for(&["MembersUnknown"], 60).await?;
    Ok(())
}

async fn late_write(stage: &Stage) -> Result<()> {
    let quorum = Quorum::create(stage, "late-write").await?;
    let audit = AuditLog::from_now(&stage.cluster.audit_log());
    let hold = Hold::before(&stage.cluster.kubeconfig()).await?;
    let first = stage.windlass.start_at("late-first", LEASE_SECONDS, &hold.server).await?;
    let operator = quorum.settled("").await?;
    quorum.resource.waits_for(&["MembersUnknown"], 30).await?;

    hold.hold();
    let begun = Timestamp::now();
    // It hears of this, and what it writes about it gets stuck.
    quorum.resource.change(json!({"paused": true})).await?;
    wait::until_so("the first operator to write", 30, async || Ok(hold.held() > 0)).await?;
    first.freeze()?;
    let _second = stage.windlass.start("late-second", LEASE_SECONDS).await?;
    quorum.settled(&operator).await?;
    quorum.resource.waits_for(&["Paused"], 30).await?;
    hold.release();
    first.resume()?;

    let requests = wait::until("the late write to arrive", 30, async || {
        let requests = audit.requests(quorum.namespace)?;
        let late = requests.into_iter().filter(|request| {
            request.writes()
                && request.credential() == Some(&first.credential)
                && request.request_received_timestamp > begun
        });
        let late: Vec<_> = late.collect();
        Ok((!late.is_empty()).then_some(late))
    })
    .await?;
    for request in &requests {
        let what = format!("{} {} {}", request.verb, request.object_ref.resource, request.object_ref.name);
        ensure!(!request.succeeded(), "a late {what} took effect");
        ensure!(request.response_status.code == 409, "a late {what} got {}", request.response_status.code);
    }
    quorum.is_untouched().await
}

async fn deletion(stage: &Stage) -> Result<()> {
    let quorum = Quorum::create(stage, "deletion").await?;
    let _operator = stage.windlass.start("deletion", LEASE_SECONDS).await?;
    quorum.settled("").await?;
    quorum.kubectl(&["delete", "quorumcluster", set::NAME, "--timeout=60s"])?;
    quorum.is_untouched().await?;
    quorum.sets.delete(set::NAME, &DeleteParams::default()).await?;
    Ok(())
}

async fn gone(stage: &Stage) -> Result<()> {
    // Nobody listens there once it is dropped.
    let closed = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut operator = stage.windlass.start_at("gone", LEASE_SECONDS, &format!("https://{closed}")).await?;
    let log = operator.log.clone();
    let said = wait::until("the operator to say that it can't reach the API server", 30, async || {
        let text = fs::read_to_string(&log)?;
        Ok(text.lines().find(|line| line.contains("ERROR") || line.contains("WARN")).map(str::to_owned))
    })
    .await?;
    ensure!(said.contains("refused"), "it does not say what is wrong: {said}");
    if let Some(status) = operator.ended()? {
        bail!("it gave up with {status}");
    }
    operator.kill()
}
