//! Where the members are, and how each is reached.

use std::net::IpAddr;

use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
use kube::ResourceExt;
use windlass_api::QuorumCluster;
use windlass_plan::quorum::Seat;
use windlass_systems::transport::Peer;

use super::place::Place;

/// Where the set's members are: every pod that it shall have, and every pod that it has.
pub fn places(set: &StatefulSet, namespace: &str, pods: &[Pod]) -> Vec<Place> {
    let spec = set.spec.as_ref();
    let service = spec.and_then(|spec| spec.service_name.clone()).unwrap_or_default();
    let first = spec.and_then(|spec| spec.ordinals.as_ref()).and_then(|ordinals| ordinals.start).unwrap_or(0);
    let replicas = spec.and_then(|spec| spec.replicas).unwrap_or(1);
    let wanted = (first..first.saturating_add(replicas)).map(|ordinal| format!("{}-{ordinal}", set.name_any()));
    let mut names: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
    names.extend(wanted.filter(|name| !pods.iter().any(|pod| pod.name_any() == *name)).collect::<Vec<_>>());
    let place = |name: String| {
        let pod = pods.iter().find(|pod| pod.name_any() == name);
        let address = pod.filter(|_| is_a_members(&name, set)).and_then(address);
        Place { dns: format!("{name}.{service}.{namespace}.svc"), pod: name, address }
    };
    names.into_iter().map(place).collect()
}

/// Where a pod can be reached. One that has ended keeps its address while another's pod may have it by now (H41).
fn address(pod: &Pod) -> Option<IpAddr> {
    let status = pod.status.as_ref()?;
    let ended = matches!(status.phase.as_deref(), Some("Failed" | "Succeeded"));
    status.pod_ip.as_ref().filter(|_| !ended)?.parse().ok()
}

/// Whether the set's controller gives pods such names. Anybody who may create pods can say that the set owns them.
fn is_a_members(name: &str, set: &StatefulSet) -> bool {
    Seat::of_pod(name).is_some_and(|seat| seat.set == set.name_any())
}

/// How each pod with an address is reached, ready or not.
pub fn peers(resource: &QuorumCluster, places: &[Place]) -> Vec<Peer> {
    let port = u16::try_from(resource.spec.system.port).unwrap_or_default();
    let tls = resource.spec.system.tls.as_ref();
    let peer = |Place { pod, dns, address }: &Place| {
        let server_name = tls.map_or_else(|| dns.clone(), |tls| tls.name_of(pod, dns));
        Some(Peer { pod: pod.clone(), address: (*address)?, port, server_name, tls: tls.is_some() })
    };
    places.iter().filter_map(peer).collect()
}

/// What OpenBao and Vault write on the pod that leads (D3). It can be old, or on two pods.
const ACTIVE: [&str; 2] = ["openbao-active", "vault-active"];

/// The same, with those first whose pods say that they lead: whoever leads gives a token without asking another, and one that hangs or is
/// sealed holds nobody up. A hint for whom to ask, and never an answer.
pub fn labelled_first(peers: &[Peer], pods: &[Pod]) -> Vec<Peer> {
    let says = |pod: &Pod| ACTIVE.iter().any(|label| pod.labels().get(*label).is_some_and(|value| value == "true"));
    let leads = |peer: &Peer| pods.iter().any(|pod| pod.name_any() == peer.pod && says(pod));
    let mut peers = peers.to_vec();
    // Stable: the others keep their order.
    peers.sort_by_key(|peer| !leads(peer));
    peers
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use k8s_openapi::api::{apps::v1::StatefulSet, core::v1::Pod};
    use kube::api::ObjectMeta;
    use rstest::rstest;
    use windlass_systems::transport::Peer;

    use super::{labelled_first, places};

    /// H41: nobody is sent to an address that may be another's.
    #[rstest]
    #[case::a_member("bao-1", "Running", true)]
    #[case::one_that_is_starting("bao-1", "Pending", true)]
    #[case::one_that_has_ended("bao-1", "Succeeded", false)]
    #[case::one_that_failed("bao-1", "Failed", false)]
    #[case::anothers_by_its_name("evil-1", "Running", false)]
    #[case::no_ordinal("bao-01", "Running", false)]
    #[case::a_job_of_it("bao-1-x7f2k", "Running", false)]
    fn only_members_have_addresses(#[case] name: &str, #[case] phase: &str, #[case] expected: bool) {
        let set: StatefulSet = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "bao"}, "spec": {"replicas": 2, "selector": {}, "template": {}, "serviceName": "bao"},
        }))
        .unwrap();
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": {"name": name}, "status": {"phase": phase, "podIP": "10.0.0.7"},
        }))
        .unwrap();
        let reached = places(&set, "secrets", &[pod]).iter().any(|place| place.address.is_some());
        assert_eq!(reached, expected);
    }

    fn pod(index: u8, label: Option<(&str, &str)>) -> Pod {
        let labels = label.map(|(name, value)| [(name.to_owned(), value.to_owned())].into());
        let metadata = ObjectMeta { name: Some(format!("bao-{index}")), labels, ..ObjectMeta::default() };
        Pod { metadata, ..Pod::default() }
    }

    /// D3: whom to ask first, and nothing more. Everybody stays in the list.
    #[rstest]
    #[case::nobody([None, None, None], "012")]
    #[case::the_last([None, None, Some(("openbao-active", "true"))], "201")]
    #[case::vaults([None, Some(("vault-active", "true")), None], "102")]
    #[case::doubled([None, Some(("openbao-active", "true")), Some(("openbao-active", "true"))], "120")]
    #[case::a_standby([None, Some(("openbao-active", "false")), None], "012")]
    fn who_says_that_it_leads_is_asked_first(#[case] labels: [Option<(&str, &str)>; 3], #[case] order: &str) {
        let pods: Vec<Pod> = (0..).zip(labels).map(|(index, label)| pod(index, label)).collect();
        let peer = |index: u8| Peer {
            pod: format!("bao-{index}"),
            address: IpAddr::from([10, 0, 0, index]),
            port: 8200,
            server_name: String::new(),
            tls: false,
        };
        let peers: Vec<Peer> = (0..3).map(peer).collect();
        let asked: String = labelled_first(&peers, &pods).iter().filter_map(|peer| peer.pod.chars().last()).collect();
        assert_eq!(asked, order);
    }
}
