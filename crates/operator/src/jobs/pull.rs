//! Has the nodes pull the new image before anybody stops: a Job for each, bound to its node, and what became of it (ADR 0012).
//!
//! One that comes late pulls an image, ends, and goes (H6). Its name is made of what it does.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures::future::join_all;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{Container, Pod, PodSpec, Toleration},
};
use kube::ResourceExt;
use windlass_api::{QuorumCluster, translate};
use windlass_plan::{
    Fact, Trouble,
    strategy::known::pulls::{Pull, Pulls},
};

use super::{Draft, Maker, Seen, State, powerless};
use crate::{Context, digest::digest, error::Error, trouble::diagnose};

/// How long a Job that has ended stays: until then nobody has to be asked again.
const KEPT: Duration = Duration::from_hours(1);
/// How long it is tried beyond the time after which a person is called: as long as it is, the registry's words are there to be told.
const LONGER: Duration = Duration::from_hours(1);
/// The container whose image it is.
const CONTAINER: &str = "pull";

/// What became of the new image on the nodes under members that don't run it. What can't be read is not known, and holds nothing else up.
pub async fn read(
    context: &Context,
    resource: &QuorumCluster,
    set: &StatefulSet,
    image: String,
    pods: &[Pod],
) -> Fact<Pulls> {
    let nodes = nodes_without(pods, &resource.spec.workload.container, &image);
    let maker = Maker::of(resource);
    let asked = nodes.into_iter().map(async |node| {
        let name = name(resource, &pod(resource, set, &image, &node));
        let pull = look(context, &maker, &name).await?;
        Ok((node, pull))
    });
    match join_all(asked).await.into_iter().collect::<Result<BTreeMap<_, _>, Error>>() {
        Ok(nodes) => Fact::Known(Pulls { image, nodes }),
        Err(error) => Fact::Unknown(error.story()),
    }
}

/// The nodes under members whose pods were not made for this image.
fn nodes_without(pods: &[Pod], container: &str, image: &str) -> BTreeSet<String> {
    let runs = |pod: &Pod| {
        let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
        containers.iter().any(|one| one.name == container && one.image.as_deref() == Some(image))
    };
    let node = |pod: &Pod| pod.spec.as_ref()?.node_name.clone().filter(|node| !node.is_empty());
    pods.iter().filter(|pod| !runs(pod)).filter_map(node).collect()
}

async fn look(context: &Context, maker: &Maker, name: &str) -> Result<Pull, Error> {
    let seen = maker.look(context, name).await?;
    let pods = match &seen.state {
        State::Running | State::Failed(_) => maker.pods(context, &seen).await?,
        State::Missing | State::Foreign(_) | State::Complete => Vec::new(),
    };
    Ok(judge(seen, &pods))
}

/// What became of the image where this Job and its pods are. What a Job of somebody else's did was not for us.
fn judge(Seen { state, since, .. }: Seen, pods: &[Pod]) -> Pull {
    let told: Vec<Result<(), String>> = pods.iter().filter_map(pulled).collect();
    let trouble = told.iter().find_map(|told| told.clone().err());
    match state {
        State::Missing => Pull::Missing,
        State::Foreign(why) => Pull::Failed(why),
        State::Complete => Pull::Done,
        State::Running | State::Failed(_) if told.contains(&Ok(())) => Pull::Done,
        State::Failed(why) => Pull::Failed(trouble.unwrap_or(why)),
        State::Running => Pull::Running { since, trouble },
    }
}

/// Whether this pod's node has the image, or what it says against it; none where it says nothing yet.
///
/// The kubelet pulls before it does anything else with a container. What goes wrong later, with an image that has no such program as with a
/// cluster that lets no container of this kind run, goes wrong with the image there.
fn pulled(pod: &Pod) -> Option<Result<(), String>> {
    let status = pod.status.as_ref()?;
    let mut containers = status.container_statuses.as_deref().unwrap_or_default().iter();
    // Of a pod that was ended before it had one, the kubelet makes up the end of a container, but not its image.
    if containers.any(|container| container.name == CONTAINER && !container.image_id.is_empty()) {
        return Some(Ok(()));
    }
    match diagnose(pod) {
        Some(Trouble::Config { .. }) => Some(Ok(())),
        Some(
            Trouble::ImageUnusable { message, .. }
            | Trouble::ImagePull { message, .. }
            | Trouble::Unschedulable { message },
        ) => Some(Err(message)),
        Some(Trouble::CrashLoop { .. }) | None if status.phase.as_deref() == Some("Failed") => {
            let words = status.message.clone().or_else(|| status.reason.clone());
            Some(Err(words.unwrap_or_else(|| format!("pod {} has failed and does not say why", pod.name_any()))))
        }
        Some(Trouble::CrashLoop { .. }) | None => None,
    }
}

/// The Job that pulls this image on this node. The kubelet tries again by itself; a container that ends badly has its image.
pub fn draft(resource: &QuorumCluster, set: &StatefulSet, image: &str, node: &str) -> Draft {
    let pod = pod(resource, set, image, node);
    let deadline = translate::pull_deadline(&resource.spec).ok().flatten().unwrap_or_default().saturating_add(LONGER);
    Draft::of_pod(name(resource, &pod), CONTAINER, pod, deadline, KEPT)
}

/// A pod that needs its image and little else: bound to the node, whatever keeps others from it, and with what the members pull with.
fn pod(resource: &QuorumCluster, set: &StatefulSet, image: &str, node: &str) -> PodSpec {
    let template = set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let managed = template.and_then(|pod| {
        let named = |container: &&Container| container.name == resource.spec.workload.container;
        pod.containers.iter().find(named)
    });
    let container = Container {
        name: CONTAINER.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: managed.and_then(|container| container.image_pull_policy.clone()),
        // An image that has no such program is pulled all the same, and then fails to start.
        command: Some(vec!["true".to_owned()]),
        ..Container::default()
    };
    PodSpec {
        node_name: Some(node.to_owned()),
        tolerations: Some(vec![Toleration { operator: Some("Exists".to_owned()), ..Toleration::default() }]),
        image_pull_secrets: template.and_then(|pod| pod.image_pull_secrets.clone()),
        termination_grace_period_seconds: Some(0),
        // The account is there for its pull secrets.
        ..powerless(template.and_then(|pod| pod.service_account_name.clone()), container)
    }
}

/// A name that another image, another node, other pull secrets or another request to try again do not share.
fn name(resource: &QuorumCluster, pod: &PodSpec) -> String {
    let spec = serde_json::to_value(pod).unwrap_or_default().to_string();
    let requests = &resource.spec.requests;
    let text = format!("{spec} {:?} {:?}", requests.retry, requests.resume);
    format!("windlass-pull-{}-{:012x}", resource.uid().unwrap_or_default(), digest(&text) >> 16)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};
    use windlass_plan::strategy::known::pulls::Pull;

    use super::{super::Maker, Seen, draft, judge, nodes_without};

    #[expect(clippy::needless_pass_by_value, reason = "callers write the JSON in place")]
    fn pods(status: Value) -> Vec<k8s_openapi::api::core::v1::Pod> {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "pull", "image": "pd:2"}]}, "status": status});
        vec![serde_json::from_value(pod).unwrap()]
    }

    fn found(owner: &str, conditions: &Value) -> Seen {
        let job: k8s_openapi::api::batch::v1::Job = serde_json::from_value(json!({
            "metadata": {"name": "j", "creationTimestamp": "2026-05-05T10:00:00Z", "ownerReferences": [
                {"apiVersion": "v1", "kind": "QuorumCluster", "name": "pd", "uid": owner, "controller": true},
            ]},
            "status": {"conditions": conditions},
        }))
        .unwrap();
        let mut resource = resource(None);
        resource.metadata.uid = Some("uid".into());
        Maker::of(&resource).see("j", Some(&job))
    }

    fn container(state: &Value, image: &str) -> Value {
        let status = json!({"name": "pull", "image": "pd:2", "imageID": image, "ready": false, "restartCount": 0, "state": state});
        json!({"phase": "Pending", "containerStatuses": [status]})
    }

    fn waiting(reason: &str, message: &str) -> Value {
        container(&json!({"waiting": {"reason": reason, "message": message}}), "")
    }

    fn ended(reason: &str, image: &str) -> Value {
        let mut status = container(&json!({"terminated": {"exitCode": 128, "reason": reason}}), image);
        status["phase"] = json!("Failed");
        status
    }

    /// In a word, and what is said against it.
    fn word(pull: Pull) -> (&'static str, Option<String>) {
        match pull {
            Pull::Missing => ("missing", None),
            Pull::Running { trouble, .. } => ("running", trouble),
            Pull::Done => ("done", None),
            Pull::Failed(why) => ("failed", Some(why)),
        }
    }

    #[rstest]
    #[case::no_pod_yet(json!({}), "running", None)]
    #[case::on_its_way(waiting("ContainerCreating", ""), "running", None)]
    #[case::refused(waiting("ErrImagePull", "manifest unknown"), "running", Some("manifest unknown"))]
    #[case::refused_again(waiting("ImagePullBackOff", "not found"), "running", Some("not found"))]
    #[case::no_name(waiting("InvalidImageName", "can't parse"), "running", Some("can't parse"))]
    #[case::runs(container(&json!({"running": {}}), "pd@sha256:1"), "done", None)]
    #[case::no_such_program(ended("StartError", "pd@sha256:1"), "done", None)]
    #[case::cannot_be_made(waiting("CreateContainerError", "no such file"), "done", None)]
    #[case::may_not_run(waiting("CreateContainerConfigError", "runAsNonRoot"), "done", None)]
    #[case::made_up_end(ended("ContainerStatusUnknown", ""), "running", Some("pod p has failed and does not say why"))]
    #[case::rejected(json!({"phase": "Failed", "reason": "OutOfpods", "message": "too many pods"}), "running", Some("too many pods"))]
    fn an_image_is_there_when_the_kubelet_has_come_beyond_it(
        #[case] status: Value,
        #[case] expected: &str,
        #[case] words: Option<&str>,
    ) {
        let (said, trouble) = word(judge(found("uid", &json!([])), &pods(status)));
        assert_eq!((said, trouble.as_deref()), (expected, words));
    }

    #[test]
    fn a_job_that_has_ended_says_whether_it_is() {
        let ended =
            |kind: &str| json!([{"type": kind, "status": "True", "reason": "DeadlineExceeded", "message": "too long"}]);
        assert_eq!(judge(found("uid", &ended("Complete")), &[]), Pull::Done);
        let (said, why) = word(judge(found("uid", &ended("Failed")), &[]));
        assert_eq!((said, why.as_deref()), ("failed", Some("Job j has failed: DeadlineExceeded: too long")));
        // An image without the program: the Job has failed, and the image is there.
        let broken = pods(super::tests::ended("StartError", "pd@sha256:1"));
        assert_eq!(judge(found("uid", &ended("Failed")), &broken), Pull::Done);
        let refused = pods(waiting("ErrImagePull", "manifest unknown"));
        assert_eq!(word(judge(found("uid", &ended("Failed")), &refused)).1.as_deref(), Some("manifest unknown"));
    }

    #[test]
    fn a_job_of_somebody_elses_is_not_believed() {
        let complete = json!([{"type": "Complete", "status": "True"}]);
        assert_eq!(word(judge(found("another", &complete), &[])).0, "failed");
    }

    #[test]
    fn only_nodes_under_members_that_lack_the_image_are_asked() {
        let pod = |name: &str, image: &str, node: Option<&str>| -> k8s_openapi::api::core::v1::Pod {
            let spec = json!({"nodeName": node, "containers": [{"name": "pd", "image": image}, {"name": "side", "image": "pd:2"}]});
            serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
        };
        let pods = [
            pod("pd-0", "pd:1", Some("a")),
            pod("pd-1", "pd:1", Some("a")),
            pod("pd-2", "pd:2", Some("b")),
            pod("pd-3", "pd:1", None),
        ];
        assert_eq!(nodes_without(&pods, "pd", "pd:2"), ["a".to_owned()].into());
    }

    fn resource(retry: Option<&str>) -> windlass_api::QuorumCluster {
        let uid = "5eed0000-0000-4000-8000-00000000002a";
        serde_json::from_value(json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "QuorumCluster", "metadata": {"name": "pd", "namespace": "db", "uid": uid},
            "spec": {
                "workload": {"statefulSet": "pd", "container": "pd"}, "system": {"type": "Pd"}, "version": "8.5.1",
                "upgrade": {"prePull": true, "deadlines": {"pull": "5m"}}, "requests": {"retry": retry},
            },
        }))
        .unwrap()
    }

    fn set(secret: &str) -> k8s_openapi::api::apps::v1::StatefulSet {
        serde_json::from_value(json!({"metadata": {"name": "pd"}, "spec": {
            "selector": {}, "serviceName": "pd",
            "template": {"spec": {
                "serviceAccountName": "pd", "imagePullSecrets": [{"name": secret}],
                "containers": [{"name": "pd", "image": "pd:1", "imagePullPolicy": "Always"}],
            }},
        }}))
        .unwrap()
    }

    fn made(retry: Option<&str>, secret: &str, image: &str, node: &str) -> k8s_openapi::api::batch::v1::Job {
        let resource = resource(retry);
        Maker::of(&resource).job(draft(&resource, &set(secret), image, node))
    }

    #[test]
    fn a_job_pulls_as_the_members_do_and_can_do_nothing_else() {
        let job = serde_json::to_value(made(None, "registry", "pd:2", "node-1")).unwrap();
        assert!(job["metadata"]["name"].as_str().is_some_and(|name| name.len() <= 63), "{}", job["metadata"]["name"]);
        assert_eq!((&job["spec"]["backoffLimit"], &job["spec"]["activeDeadlineSeconds"]), (&json!(0), &json!(3900)));
        let pod = &job["spec"]["template"]["spec"];
        assert_eq!((&pod["nodeName"], &pod["serviceAccountName"]), (&json!("node-1"), &json!("pd")));
        assert_eq!(pod["imagePullSecrets"], json!([{"name": "registry"}]));
        assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
        assert_eq!(pod["automountServiceAccountToken"], false);
        let container = &pod["containers"][0];
        assert_eq!((&container["image"], &container["imagePullPolicy"]), (&json!("pd:2"), &json!("Always")));
        assert_eq!(pod.get("volumes"), None);
    }

    #[test]
    fn a_name_is_for_one_image_one_node_and_one_request() {
        let name = |retry: Option<&str>, secret: &str, image: &str, node: &str| {
            made(retry, secret, image, node).metadata.name.unwrap_or_default()
        };
        let first = name(None, "registry", "pd:2", "a");
        assert_eq!(first, name(None, "registry", "pd:2", "a"));
        let others = [
            name(None, "registry", "pd:2", "b"),
            name(None, "registry", "pd:3", "a"),
            name(None, "mirror", "pd:2", "a"),
            name(Some("again"), "registry", "pd:2", "a"),
        ];
        assert!(!others.contains(&first), "{others:?}");
    }
}
