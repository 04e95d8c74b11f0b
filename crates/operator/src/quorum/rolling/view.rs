//! What the rolling strategy sees: the StatefulSet, its pods and budgets reduced to what a decision needs. Pure.

use std::time::Duration;

use k8s_openapi::{
    api::{apps::v1::StatefulSet, core::v1::Pod, policy::v1::PodDisruptionBudget},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};
use windlass_api::{QuorumCluster, conditions, translate};
use windlass_plan::{
    Hold, MemberName, Reason, Record, View, Workload,
    rolling::known::{
        parked::{Parked, Switched},
        workload::{Budget, Counts, Evictions, Pod as SeenPod, Revision, Strategy},
    },
};

use crate::{
    quorum::{
        budget,
        observe::Observed,
        owners,
        validate::{alone, container, init_containers, seen},
    },
    trouble::diagnose,
};

/// What was seen, whatever is wrong with what is wanted: enough to take a permit back and to let go, not to go on.
pub fn as_it_stands(resource: &QuorumCluster, observed: &Observed) -> Option<View> {
    alone(resource, &observed.siblings).ok()?;
    let set = observed.set.as_ref().filter(|set| set.metadata.deletion_timestamp.is_none())?;
    let image = container(resource, set).map(|(_, image)| image).unwrap_or_default();
    let status = resource.status.clone().unwrap_or_default();
    // One that can't be read is no upgrade that is over: see `unreadable`, which minds what stands.
    let record = status.upgrade.as_ref().map(translate::record).transpose().ok()?;
    view(resource, observed, set, image, record).ok()
}

/// What was seen for a decision.
pub fn view(
    resource: &QuorumCluster,
    observed: &Observed,
    set: &StatefulSet,
    image: String,
    record: Option<Record>,
) -> Result<View, Hold> {
    let images_agree = followers_agree(resource, set, &image);
    let workload = Workload { images_agree, ..workload(set, image)? };
    let status = resource.status.clone().unwrap_or_default();
    let pods = pods(&workload, observed);
    let evictions = evictions(set, &observed.pods, &observed.budgets);
    let owners = owners::read(resource, set);
    // One that can't be read is as good as none: it is left alone.
    let partition = |written: Option<i32>| written.and_then(|number| u32::try_from(number).ok());
    let before = partition(status.previous_parked_partition);
    let switched = status
        .strategy_switch
        .as_ref()
        .map(|written| Switched { at: written.at.0, times: u32::try_from(written.times).unwrap_or(0) });
    let parked = partition(status.parked_partition).map(|partition| Parked { partition, before, switched });
    Ok(View {
        seen: seen(resource, observed, set)?,
        workload,
        pods,
        owners,
        evictions,
        record,
        parked,
        // The condition says it where the schema is older than the field.
        unwatched: status.leadership_unobserved || conditions::mention(&status.conditions, Reason::Unreadable),
    })
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
pub fn evictions(set: &StatefulSet, pods: &[Pod], budgets: &[PodDisruptionBudget]) -> Evictions {
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
