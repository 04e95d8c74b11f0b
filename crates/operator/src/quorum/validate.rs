//! From what was read to what can be decided on, or the reason why not. Pure.

use std::time::Duration;

use k8s_openapi::{
    api::{apps::v1::StatefulSet, core::v1::Pod, policy::v1::PodDisruptionBudget},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};
use windlass_api::{QuorumCluster, translate};
use windlass_plan::{
    Hold, MemberName, Quorum, Reason, Record, View, Want, Workload,
    rolling::known::{
        parked::{Parked, Switched},
        want::Trigger,
        workload::{Budget, Counts, Evictions, Pod as SeenPod, Revision, Strategy},
    },
};

use crate::{
    quorum::{
        budget, gates,
        observe::{Observed, Sibling},
        owners,
    },
    trouble::{diagnose, stopped},
};

/// What the decision is made from.
pub struct Validated {
    /// What is wanted.
    pub want: Want,
    /// What was seen.
    pub view: View,
    /// Where in the pod template the managed container stands.
    pub container: usize,
}

/// Makes sense of it all, or says what does not.
pub fn validate(resource: &QuorumCluster, observed: &Observed) -> Result<Validated, Hold> {
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
    let (container, image) = container(resource, set)?;
    init_containers(resource, set)?;
    let record =
        resource.status.as_ref().and_then(|status| status.upgrade.as_ref()).map(translate::record).transpose()?;
    let view = view(resource, observed, set, image, record)?;
    if view.workload.replicas == 0 {
        return Err(Hold::new(Reason::NoReplicas, format!("StatefulSet {name} is scaled to 0")));
    }
    if let Err(error) = &observed.http {
        return Err(Hold::new(Reason::InvalidSpec, error.to_string()));
    }
    if let Err(why) = resource.spec.system.check_auth() {
        return Err(Hold::new(Reason::InvalidSpec, format!("spec.system.auth: {why}")));
    }
    let mut want = translate::want(&resource.spec, &view.workload.image)?;
    // The deadline is for getting ready; for how long a pod must stay so is the StatefulSet's to say.
    want.deadlines.ready = want.deadlines.ready.saturating_add(view.workload.min_ready);
    if want.snapshot.is_some()
        && view.record.as_ref().is_none_or(|record| record.next_target.is_some())
        && let Err(hold) = &observed.executor_image
    {
        return Err(hold.clone());
    }
    if resource.spec.image.is_none()
        && want.trigger == Trigger::Version
        && let Some(record) = &view.record
        && want.target.version == record.from.version
    {
        // The way back leads to the very image that it came from, digest and all.
        want.target.image.clone_from(&record.from.image);
    }
    Ok(Validated { want, view, container })
}

/// What was seen, whatever is wrong with what is wanted: enough to take a permit back and to let go, not to go on.
pub fn seen(resource: &QuorumCluster, observed: &Observed) -> Option<View> {
    alone(resource, &observed.siblings).ok()?;
    let set = observed.set.as_ref().filter(|set| set.metadata.deletion_timestamp.is_none())?;
    let image = container(resource, set).map(|(_, image)| image).unwrap_or_default();
    let status = resource.status.clone().unwrap_or_default();
    // One that can't be read is no upgrade that is over: see `unreadable`, which minds what stands.
    let record = status.upgrade.as_ref().map(translate::record).transpose().ok()?;
    view(resource, observed, set, image, record).ok()
}

fn view(
    resource: &QuorumCluster,
    observed: &Observed,
    set: &StatefulSet,
    image: String,
    record: Option<Record>,
) -> Result<View, Hold> {
    let images_agree = followers_agree(resource, set, &image);
    let workload = Workload { images_agree, ..workload(set, image)? };
    let status = resource.status.clone().unwrap_or_default();
    let resumed = resource.spec.requests.resume.is_some() && resource.spec.requests.resume != status.requests.resume;
    let pods = pods(&workload, observed);
    let evictions = evictions(set, &observed.pods, &observed.budgets);
    let quorum = quorum(resource, observed);
    let owners = owners::read(resource, set);
    let approvals = translate::approvals(&resource.spec, &status);
    let external = gates::external(resource, observed, set);
    let requests = translate::requests(&resource.spec, &status);
    let given_up = status.given_up.as_ref().map(translate::given_up).transpose()?;
    // One that can't be read is as good as none: its number is lost, and the next Job meets a name that is taken.
    let attempt = status.snapshot.as_ref().and_then(|written| translate::attempt(written).ok());
    // One that can't be read is as good as none: it is left alone.
    let partition = |written: Option<i32>| written.and_then(|number| u32::try_from(number).ok());
    let before = partition(status.previous_parked_partition);
    let switched = status
        .strategy_switch
        .as_ref()
        .map(|written| Switched { at: written.at.0, times: u32::try_from(written.times).unwrap_or(0) });
    let parked = partition(status.parked_partition).map(|partition| Parked { partition, before, switched });
    Ok(View {
        workload,
        pods,
        quorum,
        owners,
        evictions,
        record,
        parked,
        // The condition says it where the schema is older than the field.
        unwatched: status.leadership_unobserved
            || status.conditions.iter().any(|condition| condition.reason == Reason::Unreadable.name()),
        attempt,
        snapshot: observed.snapshot.clone(),
        pulls: observed.pulls.clone(),
        resumed,
        requests,
        given_up,
        approvals,
        external,
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

/// Whether the init containers whose image follows have this one.
fn followers_agree(resource: &QuorumCluster, set: &StatefulSet, image: &str) -> bool {
    let there = set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()?.init_containers.as_deref());
    let there = there.unwrap_or_default();
    let has = |index: usize| there.get(index).and_then(|container| container.image.as_deref()) == Some(image);
    init_containers(resource, set).is_ok_and(|places| places.into_iter().all(has))
}

/// The StatefulSet reduced to what a decision needs.
pub fn workload(set: &StatefulSet, image: String) -> Result<Workload, Hold> {
    let unreadable =
        |what: &str| Hold::new(Reason::InvalidSpec, format!("StatefulSet {}: {what} can't be read", set.name_any()));
    let spec = set.spec.as_ref().ok_or_else(|| unreadable("spec"))?;
    let count = |what: &str, value: i32| u32::try_from(value).map_err(|_| unreadable(what));
    let update = spec.update_strategy.as_ref();
    let strategy = match update.and_then(|update| update.type_.as_deref()) {
        Some("OnDelete") => Strategy::OnDelete,
        Some("RollingUpdate") | None => {
            let partition =
                update.and_then(|update| update.rolling_update.as_ref()).and_then(|rolling| rolling.partition);
            Strategy::RollingUpdate { partition: count("partition", partition.unwrap_or(0))? }
        }
        Some(_) => {
            return Err(Hold::new(
                Reason::UnsupportedStrategy,
                "the StatefulSet's update strategy is none that Windlass knows",
            ));
        }
    };
    let status = set.status.clone().unwrap_or_default();
    Ok(Workload {
        name: set.name_any(),
        first_ordinal: count(
            "ordinals.start",
            spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or(0),
        )?,
        replicas: count("replicas", spec.replicas.unwrap_or(1))?,
        min_ready: Duration::from_secs(count("minReadySeconds", spec.min_ready_seconds.unwrap_or(0))?.into()),
        images_agree: true,
        strategy,
        image,
        observed: status.observed_generation.is_some() && status.observed_generation >= set.metadata.generation,
        current_revision: Revision::new(status.current_revision.unwrap_or_default()),
        update_revision: Revision::new(status.update_revision.unwrap_or_default()),
    })
}

/// The workload's pods, reduced likewise, in the order of their indices.
pub fn pods(workload: &Workload, observed: &Observed) -> Vec<SeenPod> {
    let seen = |index: u32| {
        let name = workload.member(index);
        let pod = observed.pods.iter().find(|pod| pod.name_any() == name.as_str())?;
        let log = observed.logs.get(name.as_str()).cloned();
        Some(SeenPod { log, ..see(name, index, pod) })
    };
    (0..workload.replicas).filter_map(seen).collect()
}

fn see(name: MemberName, index: u32, pod: &Pod) -> SeenPod {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready" && condition.status == "True");
    SeenPod {
        name,
        uid: pod.uid().unwrap_or_default(),
        index,
        revision: Revision::new(pod.labels().get("controller-revision-hash").cloned().unwrap_or_default()),
        ready_since: ready.map(|ready| ready.last_transition_time.as_ref().map(|time| time.0).unwrap_or_default()),
        young: false,
        terminating: pod.metadata.deletion_timestamp.is_some(),
        trouble: ready.is_none().then(|| diagnose(pod)).flatten(),
        log: None,
    }
}

/// Who holds evictions of the set's pods (H12).
fn evictions(set: &StatefulSet, pods: &[Pod], budgets: &[PodDisruptionBudget]) -> Evictions {
    let template =
        set.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref()).and_then(|meta| meta.labels.clone());
    let template = template.unwrap_or_default();
    let mut covering: Vec<(&PodDisruptionBudget, bool)> = Vec::new();
    for budget in budgets {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
        // One that can't be read selects nothing, for Kubernetes neither.
        let Some(Ok(selector)) = selector.map(Selector::try_from) else { continue };
        let selected = pods.iter().filter(|pod| selector.matches(pod.labels())).count();
        let of_template = selector.matches(&template);
        if selected > 0 || of_template {
            // Where no pod is there, the template stands for them.
            covering.push((budget, selected == pods.len()));
        }
    }
    let mine = |budget: &PodDisruptionBudget| budget::is_own(budget, &set.name_any());
    let lets_nobody_go = |budget: &PodDisruptionBudget| {
        budget.spec.as_ref().and_then(|spec| spec.max_unavailable.as_ref()) == Some(&IntOrString::Int(0))
    };
    if covering.iter().any(|(budget, all)| *all && mine(budget) && lets_nobody_go(budget)) {
        return Evictions::HeldByUs;
    }
    if covering.is_empty() {
        return Evictions::Open;
    }
    Evictions::Theirs(covering.into_iter().map(|(budget, selects_all)| see_budget(budget, selects_all)).collect())
}

fn see_budget(budget: &PodDisruptionBudget, selects_all: bool) -> Budget {
    let status = budget.status.as_ref().filter(|status| {
        status.observed_generation.is_some() && status.observed_generation >= budget.metadata.generation
    });
    let count = |count: i32| u32::try_from(count).unwrap_or(0);
    let counts = status.map(|status| Counts {
        expected: count(status.expected_pods),
        desired: count(status.desired_healthy),
        allowed: count(status.disruptions_allowed),
    });
    Budget { name: budget.name_any(), selects_all, counts }
}
