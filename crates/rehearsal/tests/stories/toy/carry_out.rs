//! What the operator needs of the toy: where its view comes from, how it evicts, and its record.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::json;
use windlass_api::{
    QuorumCluster, QuorumClusterStatus,
    status::{
        members::{self, MemberStatus},
        upgrade::Upgrade,
    },
};
use windlass_operator::{
    actor::Actor,
    error::Error,
    lenient::Whole,
    quorum::{
        finalize,
        observe::Observed,
        pass::Recorded,
        removal::{delete_pod, evict_pod},
        rolling::view,
        strategy::{Strategy, Withdrawal},
        validate::seen,
    },
};
use windlass_plan::{
    Hold, MemberName, Reason, Want,
    strategy::{contract::Plan, known::want::Target},
};

use super::plan::{Followers, Record, Step, View};

impl Strategy for Followers {
    fn record(resource: &QuorumCluster) -> Result<Option<Record>, Hold> {
        let upgrade = resource.status.as_ref().and_then(|status| status.upgrade.as_ref());
        upgrade.map(read).transpose()
    }

    fn view(resource: &QuorumCluster, observed: &Observed, set: &StatefulSet, image: String) -> Result<View, Hold> {
        let workload = view::workload(set, image)?;
        Ok(View {
            seen: seen(resource, observed, set)?,
            pods: view::pods(&workload, observed),
            evictions: view::evictions(set, &observed.pods, &observed.budgets),
            workload,
            record: Self::record(resource)?,
        })
    }

    fn as_it_stands(_: &QuorumCluster, _: &Observed) -> Option<View> {
        None
    }

    fn refine(_: &QuorumCluster, _: &View, _: &mut Want) {}

    fn may_need_snapshot(view: &View) -> bool {
        view.record.is_none()
    }

    fn stand_down(_: &QuorumCluster, _: &View, _: &Hold) -> Option<Plan<Self>> {
        None
    }

    fn take_over(_: &Want, _: &View, _: Timestamp) -> Option<(Step, Record)> {
        None
    }

    async fn execute(
        actor: Actor<'_>,
        _: &Recorded,
        observed: &Observed,
        set: &StatefulSet,
        step: &Step,
    ) -> Result<(), Error> {
        match step {
            Step::Job(_) => Ok(()),
            Step::Evict { pod, uid, budget: Some(budget) } => evict_pod(actor, observed, set, pod, uid, budget).await,
            Step::Evict { pod, uid, budget: None } => delete_pod(actor, observed, set, pod, uid).await,
        }
    }

    fn write_failure(_: &mut QuorumClusterStatus, _: &Step, _: &str) {}

    fn withdraw(_: &Whole<QuorumCluster>, _: &Observed, _: &StatefulSet, _: &Hold) -> Option<Withdrawal<Step>> {
        None
    }

    async fn undo(_: Actor<'_>, _: &Observed, _: &StatefulSet, _: &Step) -> Result<(), Error> {
        Ok(())
    }

    async fn let_go(actor: Actor<'_>, resource: &QuorumCluster, observed: &Observed) -> Result<(), Error> {
        finalize::finalize(actor, resource, observed).await
    }

    fn write_record(status: &mut QuorumClusterStatus, view: &View, record: Option<&Record>, intent: Option<String>) {
        status.upgrade = record.map(|record| written(record, view.workload.replicas, intent.as_deref()));
    }

    fn write_rest(status: &mut QuorumClusterStatus, _: &Observed, view: &View, _: &Plan<Self>) {
        status.workload = Some(view.workload.name.clone());
    }

    fn begins_unrecorded(_: &Step) -> bool {
        false
    }

    fn members(_: &QuorumCluster, view: &View, _: Option<&Record>) -> Vec<MemberStatus> {
        members::seen(view.pods.iter().map(|pod| &pod.name), &view.seen.quorum, None)
    }
}

fn read(upgrade: &Upgrade) -> Result<Record, Hold> {
    let target = |version: &str, image: &str| match version.parse() {
        Ok(version) => Ok(Target { version, image: image.to_owned() }),
        Err(_) => Err(Hold::new(Reason::Unreadable, format!("status.upgrade: {version} is no version"))),
    };
    let name = |pod: &String| MemberName::new(pod.as_str());
    Ok(Record {
        target: target(&upgrade.target_version, &upgrade.target_image)?,
        from: target(&upgrade.from_version, &upgrade.from_image)?,
        since: upgrade.started_at.0,
        done: upgrade.completed_pods.iter().map(name).collect(),
        well_since: upgrade.healthy_since.iter().map(|since| (name(&since.pod), since.since.0)).collect(),
        next: upgrade.next.as_ref().map(name),
    })
}

fn written(record: &Record, replicas: u32, intent: Option<&str>) -> Upgrade {
    let moment = |at: &Timestamp| format!("{at:.6}");
    let well = record.well_since.iter().map(|(pod, since)| json!({"pod": pod.as_str(), "since": moment(since)}));
    let done: Vec<&str> = record.done.iter().map(MemberName::as_str).collect();
    let written = json!({
        "targetVersion": record.target.version.to_string(), "targetImage": record.target.image,
        "fromVersion": record.from.version.to_string(), "fromImage": record.from.image,
        "startedAt": moment(&record.since), "currentPartition": 0, "rollingBack": false,
        "completedPods": done, "progress": format!("{}/{replicas}", done.len()),
        "healthySince": well.collect::<Vec<_>>(),
        "next": record.next.as_ref().map(MemberName::as_str), "intent": intent,
    });
    serde_json::from_value(written).expect("a record")
}
