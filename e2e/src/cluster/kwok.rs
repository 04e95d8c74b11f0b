//! Nodes and pods that are only played, by KWOK.

use std::fs;

use anyhow::Result;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use serde_json::json;

use super::{
    certificates::Authority,
    layout::Layout,
    process::{Place, Process, start},
    tools::{Tool, build},
};

/// How the played pods behave.
const STAGES: &str = include_str!("../../kwok/stages.yaml");

/// Starts KWOK. It plays the nodes that carry its annotation, and no others.
pub fn launch(layout: &Layout, place: Place, server: &str, authority: &Authority) -> Result<Process> {
    authority.kubeconfig(layout, "kwok.kubeconfig", server, "windlass-kwok", Some("system:masters"))?;
    fs::write(layout.at("kwok.yaml"), STAGES)?;
    let words = [
        format!("--kubeconfig={}", layout.at("kwok.kubeconfig").display()),
        format!("--config={}", layout.at("kwok.yaml").display()),
    ];
    start(place, "kwok", &build(Tool::Kwok)?.join("kwok"), &words, &layout.log("kwok"))
}

/// Creates the nodes. Beside a real one they are tainted, so that real pods stay off them.
pub async fn create_nodes(client: &Client, count: usize, beside_a_real_one: bool) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    for index in 0..count {
        let name = format!("kwok-{index}");
        let taints = if beside_a_real_one {
            json!([{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}])
        } else {
            json!([])
        };
        let node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
                "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "type": "kwok"},
            },
            "spec": {"taints": taints},
            "status": {
                "allocatable": {"cpu": "1000", "memory": "1000Gi", "pods": "10000"},
                "capacity": {"cpu": "1000", "memory": "1000Gi", "pods": "10000"},
            },
        });
        nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    }
    Ok(())
}

/// Waits until so many nodes are Ready.
pub async fn wait_for_ready_nodes(client: &Client, count: usize) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    super::wait_until(&format!("{count} Ready nodes"), async || {
        let listed = nodes.list(&ListParams::default()).await?;
        let ready = listed.iter().filter(|node| {
            let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
            conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
        });
        Ok(ready.count() >= count)
    })
    .await
}
