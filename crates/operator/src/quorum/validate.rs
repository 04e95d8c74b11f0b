//! From what was read to what can be decided on, or the reason why not. Pure.

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::ResourceExt;
use serde_json::{Value, json};
use windlass_api::{QuorumCluster, translate};
use windlass_plan::{Hold, MemberName, Quorum, Reason, Seen, Want};

use crate::{
    members::{auth, system::capabilities},
    quorum::{
        gates,
        observe::{Observed, Sibling},
        strategy::Strategy,
    },
    trouble::stopped,
};

/// What the decision is made from.
pub struct Validated<S: Strategy> {
    /// What is wanted.
    pub want: Want,
    /// What was seen.
    pub view: S::View,
}

/// Makes sense of it all, or says what does not.
pub fn validate<S: Strategy>(resource: &QuorumCluster, observed: &Observed) -> Result<Validated<S>, Hold> {
    alone(resource, &observed.siblings)?;
    if let Some(why) = &observed.unasked {
        return Err(Hold::new(Reason::AuthorNotAsked, why.clone()));
    }
    let name = &resource.spec.workload.stateful_set;
    let Some(set) = &observed.set else {
        return Err(Hold::new(Reason::WorkloadNotFound, format!("there is no StatefulSet {name}")));
    };
    if set.metadata.deletion_timestamp.is_some() {
        return Err(Hold::new(Reason::WorkloadDeleting, format!("StatefulSet {name} is being deleted")));
    }
    let (_, image) = container(resource, set)?;
    init_containers(resource, set)?;
    let view = S::view(resource, observed, set, image.clone())?;
    if set.spec.as_ref().and_then(|spec| spec.replicas) == Some(0) {
        return Err(Hold::new(Reason::NoReplicas, format!("StatefulSet {name} is scaled to 0")));
    }
    if let Err(error) = &observed.http {
        return Err(Hold::new(Reason::InvalidSpec, error.to_string()));
    }
    if let Err(why) = auth::check(&resource.spec.system) {
        return Err(Hold::new(Reason::InvalidSpec, format!("spec.system.auth: {why}")));
    }
    let mut want = translate::want(&resource.spec, &capabilities(&resource.spec.system), &image)?;
    S::refine(resource, &view, &mut want);
    if want.snapshot.is_some()
        && S::may_need_snapshot(&view)
        && let Err(hold) = &observed.executor_image
    {
        return Err(hold.clone());
    }
    Ok(Validated { want, view })
}

/// What every strategy sees.
pub fn seen(resource: &QuorumCluster, observed: &Observed, set: &StatefulSet) -> Result<Seen, Hold> {
    let status = resource.status.clone().unwrap_or_default();
    Ok(Seen {
        quorum: quorum(resource, observed),
        // One that can't be read is as good as none: its number is lost, and the next Job meets a name that is taken.
        attempt: status.snapshot.as_ref().and_then(|written| translate::attempt(written).ok()),
        snapshot: observed.snapshot.clone(),
        pulls: observed.pulls.clone(),
        resumed: resource.spec.requests.resume.is_some() && resource.spec.requests.resume != status.requests.resume,
        requests: translate::requests(&resource.spec, &status),
        given_up: status.abandoned.as_ref().map(translate::given_up).transpose()?,
        approvals: translate::approvals(&resource.spec, &status),
        external: gates::external(resource, observed, set),
    })
}

/// What the members say, and for those who say nothing, what Kubernetes says of their processes.
fn quorum(resource: &QuorumCluster, observed: &Observed) -> Quorum {
    let mut quorum = observed.seen.quorum.clone();
    for pod in &observed.pods {
        if let Some(why) = stopped(pod, &resource.spec.workload.container) {
            quorum.note_stopped(&MemberName::new(pod.name_any()), &why);
        }
    }
    quorum
}

/// Two resources on one StatefulSet: the older one has it (H40).
pub fn alone(resource: &QuorumCluster, siblings: &[Sibling]) -> Result<(), Hold> {
    let me = Sibling {
        name: resource.name_any(),
        uid: resource.uid(),
        created: resource.creation_timestamp().map(|time| time.0),
        set: Some(resource.spec.workload.stateful_set.clone()),
    };
    rival(&me, siblings).map_or(Ok(()), Err)
}

/// Who has this one's StatefulSet, where another does: one that is older and names the same, or does not say which.
pub fn rival(me: &Sibling, siblings: &[Sibling]) -> Option<Hold> {
    let age = |one: &Sibling| (one.created, one.name.clone());
    let others = siblings.iter().filter(|other| other.uid != me.uid && age(other) < age(me));
    let mut rivals = others.filter(|other| other.set.is_none() || other.set == me.set);
    let name = me.set.as_deref().unwrap_or_default();
    rivals.next().map(|rival| {
        let message = match &rival.set {
            Some(_) => format!("StatefulSet {name} is managed by QuorumCluster {}", rival.name),
            None => {
                format!("QuorumCluster {} may manage StatefulSet {name}: which one it names can't be read", rival.name)
            }
        };
        Hold::new(Reason::AlreadyManaged, message)
    })
}

/// The managed container's place and image in the pod template.
pub fn container(resource: &QuorumCluster, set: &StatefulSet) -> Result<(usize, String), Hold> {
    let wanted = &resource.spec.workload.container;
    let containers = set
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref())
        .map(|pod| pod.containers.as_slice())
        .unwrap_or_default();
    if let Some((index, container)) = containers.iter().enumerate().find(|(_, container)| container.name == *wanted) {
        return Ok((index, container.image.clone().unwrap_or_default()));
    }
    let there: Vec<&str> = containers.iter().map(|container| container.name.as_str()).collect();
    let message = format!("StatefulSet {} has no container {wanted}; it has {}", set.name_any(), there.join(", "));
    Err(Hold::new(Reason::ContainerNotFound, message))
}

/// Writes this image wherever the template names the system's: one write for all of them, for a template with two versions in it would make
/// pods of neither.
pub fn images_patch(resource: &QuorumCluster, set: &StatefulSet, image: &str) -> Result<Vec<Value>, Hold> {
    let (container, _) = container(resource, set)?;
    let followers = init_containers(resource, set)?.into_iter().map(|index| ("initContainers", index));
    let image = |(list, index): (&str, usize)| {
        let path = format!("/spec/template/spec/{list}/{index}/image");
        json!({"op": "replace", "path": path, "value": image})
    };
    Ok(std::iter::once(("containers", container)).chain(followers).map(image).collect())
}

/// The places of the init containers whose image follows. Sidecars, which are init containers that stay, are among them.
pub fn init_containers(resource: &QuorumCluster, set: &StatefulSet) -> Result<Vec<usize>, Hold> {
    let there = set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()?.init_containers.as_deref());
    let there = there.unwrap_or_default();
    let place = |name: &String| {
        there.iter().position(|container| container.name == *name).ok_or_else(|| {
            let names: Vec<&str> = there.iter().map(|container| container.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let of = set.name_any();
            let message =
                format!("spec.workload.initContainers: StatefulSet {of} has no init container {name}; it has {names}");
            Hold::new(Reason::InvalidSpec, message)
        })
    };
    resource.spec.workload.init_containers.iter().map(place).collect()
}
