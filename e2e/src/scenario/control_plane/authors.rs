//! Who may write QuorumClusters, where the API server asks for their own rights; and what an operator of one namespace may do.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Installation, LEASE_SECONDS, Quorum, Stage, set, wait};

const NAMESPACE: &str = "quorum-author";

/// Ada may patch the StatefulSet, Eve may not; both may write QuorumClusters.
pub async fn quorum(stage: &Stage) -> Result<()> {
    let quorum = Quorum::create(stage, NAMESPACE).await?;
    let rights = |name: &str, group: &str, resource: &str, verbs: &[&str], names: Value, users: &[&str]| {
        let subjects: Vec<Value> = users
            .iter()
            .map(|user| json!({"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}))
            .collect();
        [
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name},
                   "rules": [{"apiGroups": [group], "resources": [resource], "verbs": verbs, "resourceNames": names}]}),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                   "subjects": subjects}),
        ]
    };
    let all = ["get", "create", "patch", "update"];
    let items = [
        rights("write-quorums", "windlass.dev", "quorumclusters", &all, Value::Null, &["ada", "eve"]),
        rights("patch-the-set", "apps", "statefulsets", &["patch"], json!([set::NAME]), &["ada"]),
    ];
    let file = stage.cluster.folder().join("quorum-authors.json");
    std::fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": items.concat()}).to_string())?;
    quorum.kubectl(&["apply", "-f", &file.display().to_string()])?;

    let change = |user: &str, patch: Value| {
        quorum.kubectl(&["patch", "quorumcluster", set::NAME, "--as", user, "--type=merge", "-p", &patch.to_string()])
    };
    let refused = wait::until("the API server to refuse who may not patch the set", 60, async || {
        Ok(change("eve", json!({"spec": {"requests": {"resume": "eve"}}})).err())
    })
    .await?;
    ensure!(format!("{refused:#}").contains("you may not patch etcd"), "it does not say why: {refused:#}");
    change("eve", json!({"metadata": {"labels": {"by": "eve"}}}))?;
    let lock = |by: &str| json!({"metadata": {"annotations": {"windlass.dev/locked-by": by}}});
    ensure!(change("eve", lock("eve")).is_err(), "Eve may hold an upgrade back");
    change("ada", lock("ada"))?;
    ensure!(change("eve", lock("eve")).is_err(), "Eve may change a lock");
    ensure!(change("eve", json!({"metadata": {"annotations": null}})).is_err(), "Eve may remove a lock");
    change(
        "ada",
        json!({"metadata": {"annotations": {"windlass.dev/locked-by": null}, "finalizers": ["windlass.dev/restore"]}}),
    )?;
    ensure!(change("eve", json!({"metadata": {"finalizers": null}})).is_err(), "Eve may have the set not restored");
    let gone = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "none"}]);
    ensure!(change("eve", json!({"metadata": {"ownerReferences": gone}})).is_err(), "Eve may have it deleted");
    change("ada", json!({"spec": {"requests": {"resume": "ada"}}}))?;
    let another = |user: &str, name: &str, set: &str| {
        let spec = json!({"workload": {"statefulSet": set, "container": "etcd"}, "system": {"type": "Etcd"},
            "version": "3.6.16", "paused": true});
        let resource = json!({"apiVersion": "windlass.dev/v1alpha1", "kind": "QuorumCluster",
            "metadata": {"name": name}, "spec": spec});
        let file = stage.cluster.folder().join(format!("{name}.json"));
        std::fs::write(&file, resource.to_string())?;
        quorum.kubectl(&["create", "--as", user, "-f", &file.display().to_string()])
    };
    ensure!(another("eve", "by-eve", set::NAME).is_err(), "Eve may create one");
    ensure!(another("ada", "for-another", "another").is_err(), "Ada may create one for a set that she may not patch");
    another("ada", "by-ada", set::NAME)?;
    quorum.kubectl(&["delete", "quorumcluster", "by-ada"])?;

    let _operator = stage.windlass.start("quorum-author", LEASE_SECONDS).await?;
    quorum.settled("").await?;
    quorum.resource.waits_for(&["MembersUnknown"], 30).await?;
    stage.windlass.withdraw("author-rights.yaml")?;
    quorum.resource.waits_for(&["AuthorNotAsked"], 60).await?;
    stage.windlass.ship("author-rights.yaml")?;
    quorum.resource.waits_for(&["MembersUnknown"], 60).await?;
    quorum.is_untouched().await
}

/// The role for one namespace lets an operator take over and look, there and nowhere else.
pub async fn one_namespace(stage: &Stage) -> Result<()> {
    const ALONE: &str = "alone";
    let quorum = Quorum::create(stage, ALONE).await?;
    let shipped = Installation::shipped("rbac-namespace.yaml");
    quorum.kubectl(&["apply", "-f", &shipped])?;
    let user = format!("system:serviceaccount:{ALONE}:windlass");
    let may = |words: &str| {
        let mut all = vec!["auth", "can-i", "--quiet", "--as", &user];
        all.extend(words.split(' '));
        stage.windlass.kubectl(&all).is_ok()
    };
    ensure!(may("patch statefulsets.apps --namespace alone"), "it may not do its work");
    for words in [
        "list quorumclusters.windlass.dev --all-namespaces",
        "patch statefulsets.apps --namespace default",
        "patch pods --namespace alone",
        "get secrets --namespace alone",
        "get nodes",
    ] {
        ensure!(!may(words), "it may {words}");
    }
    let words = ["--namespace", ALONE, "--login-account", "alone/windlass", "--ignore-nodes", "--quorums-by-author"];
    let operator = stage.windlass.start_as("alone", LEASE_SECONDS, ALONE, &words).await?;
    quorum.settled("").await?;
    quorum.resource.waits_for(&["MembersUnknown"], 60).await?;
    quorum.is_untouched().await?;
    let log = std::fs::read_to_string(&operator.log)?;
    ensure!(!log.contains("forbidden"), "it lacks a right:\n{log}");
    Ok(())
}
