//! Gates whose facts are in Kubernetes: evaluated here, judged with all the others in `plan`. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::ResourceExt;
use windlass_api::QuorumCluster;
use windlass_plan::{
    Fact, Hold, Reason,
    gate::{CONCURRENT_OPERATION, ExternalGate, NODE_DRAIN, Outcome},
};

use crate::{
    asked,
    observe::{Nodes, Observed},
};

/// Whoever is at work on the members writes here what they do; on the StatefulSet or on the QuorumCluster.
pub const LOCKED_BY: &str = "windlass.dev/locked-by";

/// What these gates say; nothing is said of nodes where nobody looked at them.
pub fn external(resource: &QuorumCluster, observed: &Observed, set: &StatefulSet) -> Vec<ExternalGate> {
    let mut gates = vec![ExternalGate::new(CONCURRENT_OPERATION, unlocked(resource, set))];
    match &observed.nodes {
        Nodes::Seen(nodes) => gates.push(ExternalGate::new(NODE_DRAIN, nodes_stay(&observed.pods, nodes))),
        Nodes::Ignored => {
            let message = "nodes are not looked at: the operator was started with --ignore-nodes";
            let hold = Hold::new(Reason::NodeDraining, message);
            gates.push(ExternalGate::new(NODE_DRAIN, Outcome::NotAsked(hold)));
        }
        Nodes::NotYet => {}
    }
    gates.extend(asked::gates(&asked::quorum::questions(resource, set), &observed.answers));
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

/// No node under a member is being emptied: a member that moves is one that is down.
fn nodes_stay(pods: &[Pod], nodes: &BTreeMap<String, Fact<Option<String>>>) -> Outcome {
    let mut unknown = None;
    for pod in pods {
        let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()).filter(|node| !node.is_empty())
        else {
            continue;
        };
        match nodes.get(node) {
            Some(Fact::Known(None)) => {}
            Some(Fact::Known(Some(why))) => {
                let message = format!("node {node} under {} {why}", pod.name_any());
                return Outcome::Hold(Hold::new(Reason::NodeDraining, message));
            }
            Some(Fact::Unknown(why)) => {
                unknown.get_or_insert(format!("node {node} under {} is not known: {why}", pod.name_any()));
            }
            None => {
                unknown.get_or_insert(format!("node {node} under {} was not looked at", pod.name_any()));
            }
        }
    }
    unknown.map_or(Outcome::Pass, |message| Outcome::Unknown(Hold::new(Reason::NodeDraining, message)))
}
