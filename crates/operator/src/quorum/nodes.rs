//! Nodes that are being emptied or taken away: whoever does that is about to take the member on it down.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, ResourceExt};
use tokio::time::timeout;
use windlass_plan::{
    Fact, Hold, Reason,
    bug::{self, Bug},
    gate::Outcome,
};

use crate::{Context, error::Class, live::get};

/// What is known of the nodes under the pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// What says of each that it is being emptied, if anything does.
    Seen(BTreeMap<String, Fact<Option<String>>>),
    /// Nothing is under way that they matter for.
    NotYet,
    /// The operator was told not to look.
    Ignored,
}

/// Whether the nodes under these pods are being emptied: one by one, for there may be thousands of others. One that is not there, or can't be
/// read, is not known: who is let go for is minded all the same (H9).
pub async fn look(context: &Context, pods: &[Pod]) -> BTreeMap<String, Fact<Option<String>>> {
    let api: Api<Node> = Api::all(context.client.clone());
    let names: BTreeSet<&String> =
        pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.as_ref()).filter(|name| !name.is_empty()).collect();
    let looks = names.into_iter().map(async |name| {
        let what = format!("nodes/{name}");
        let emptied = match timeout(context.settings.patience(), get(context, &what, &api, name)).await {
            Ok(Ok(Some(node))) => Fact::Known(why(&node)),
            Ok(Ok(None)) => Fact::Unknown("it does not exist".to_owned()),
            // An operator with rights in one namespace reads no nodes, and can be told not to want to.
            Ok(Err(error)) if error.class() == Class::Refused => {
                let way_out = "let the operator read nodes, or start it with --ignore-nodes";
                Fact::Unknown(format!("{}; {way_out}", error.story()))
            }
            Ok(Err(error)) => Fact::Unknown(error.story()),
            Err(_) => Fact::Unknown(format!("get {what}: no answer in time")),
        };
        (name.clone(), emptied)
    });
    join_all(looks).await.into_iter().collect()
}

/// No node under a member is being emptied: a member that moves is one that is down.
pub fn stay(pods: &[Pod], nodes: &BTreeMap<String, Fact<Option<String>>>) -> Outcome {
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

/// Taints that are set on a node right before it is emptied or taken away, whatever their effect, and who sets them. One that ends with a
/// slash stands for all that begin so.
///
/// `DeletionCandidateOfClusterAutoscaler` is none of them: it marks a node that may be removed one day, stays for as long as something is
/// in the way, and is followed by `ToBeDeletedByClusterAutoscaler` before anything is evicted (cluster-autoscaler, utils/taints).
const TAINTS: &[(&str, &str)] = &[
    // kubernetes, pkg/controller/nodelifecycle: follows spec.unschedulable.
    ("node.kubernetes.io/unschedulable", "it is cordoned"),
    // kubernetes.io, well-known taints: the machine is down for good, its pods are deleted by force.
    ("node.kubernetes.io/out-of-service", "somebody says that it is out of service"),
    // kubernetes, cloud-provider/api: the machine is being shut down.
    ("node.cloudprovider.kubernetes.io/shutdown", "the cloud shuts it down"),
    // cluster-autoscaler, utils/taints.
    ("ToBeDeletedByClusterAutoscaler", "the cluster autoscaler removes it"),
    // karpenter.sh, concepts/disruption: since v1, and before.
    ("karpenter.sh/disrupted", "Karpenter removes it"),
    ("karpenter.sh/disruption", "Karpenter removes it"),
    // aws-node-termination-handler, pkg/node: spot-itn, scheduled-maintenance, asg-lifecycle-termination, rebalance-recommendation.
    ("aws-node-termination-handler/", "the AWS node termination handler empties it"),
    // GoogleCloudPlatform/k8s-node-termination-handler, and GKE itself.
    ("cloud.google.com/impending-node-termination", "Google Cloud takes it away"),
];

/// What says that this node is being emptied; none where nothing does.
fn why(node: &Node) -> Option<String> {
    let spec = node.spec.as_ref()?;
    if spec.unschedulable == Some(true) {
        return Some("is cordoned".to_owned());
    }
    let named =
        |key: &str| TAINTS.iter().find(|(taint, _)| key == *taint || (taint.ends_with('/') && key.starts_with(taint)));
    let taints = spec.taints.as_deref().filter(|_| !bug::active(Bug::TaintsIgnored)).unwrap_or_default();
    let (key, (_, who)) = taints.iter().find_map(|taint| Some((&taint.key, named(&taint.key)?)))?;
    Some(format!("has the taint {key}: {who}"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::why;

    fn tainted(key: &str, effect: &str) -> k8s_openapi::api::core::v1::Node {
        serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": {"taints": [
            {"key": "dedicated", "value": "etcd", "effect": "NoSchedule"}, {"key": key, "effect": effect},
        ]}}))
        .unwrap()
    }

    #[rstest]
    #[case("ToBeDeletedByClusterAutoscaler", "the cluster autoscaler removes it")]
    #[case("karpenter.sh/disrupted", "Karpenter removes it")]
    #[case("karpenter.sh/disruption", "Karpenter removes it")]
    #[case("node.kubernetes.io/unschedulable", "cordoned")]
    #[case("aws-node-termination-handler/spot-itn", "AWS")]
    #[case("cloud.google.com/impending-node-termination", "Google")]
    fn a_node_that_is_taken_away_is_known_by_its_taint(#[case] key: &str, #[case] words: &str) {
        let said = why(&tainted(key, "NoSchedule")).unwrap();
        assert!(said.contains(key) && said.contains(words), "{said}");
    }

    #[rstest]
    #[case::a_candidate("DeletionCandidateOfClusterAutoscaler", "PreferNoSchedule")]
    #[case::somebody_elses("example.com/gpu", "NoSchedule")]
    #[case::not_ready("node.kubernetes.io/not-ready", "NoExecute")]
    fn others_stay(#[case] key: &str, #[case] effect: &str) {
        assert_eq!(why(&tainted(key, effect)), None);
    }

    #[test]
    fn a_cordon_says_so() {
        let node = serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": {"unschedulable": true}})).unwrap();
        assert_eq!(why(&node).as_deref(), Some("is cordoned"));
    }
}
