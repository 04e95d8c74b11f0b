//! The rolling strategy, as the operator carries it out: its decisions are [`windlass_plan::rolling`]'s.

pub mod execute;
pub mod report;
pub mod view;
pub mod withdraw;

use k8s_openapi::api::apps::v1::StatefulSet;
use windlass_api::{
    QuorumCluster, QuorumClusterStatus,
    status::members::{self, MemberStatus},
    translate,
};
use windlass_plan::{
    Hold, MemberName, Plan, Record, Step, Version, View, Want,
    rolling::{known::Rolling, permit, takeover},
    strategy::known::{step::Step as _, want::Trigger},
};

use crate::{
    actor::Actor,
    error::Error,
    lenient::Whole,
    quorum::{
        finalize,
        observe::Observed,
        pass::Recorded,
        strategy::{Strategy, Withdrawal},
    },
    trouble::clipped,
};

/// Whether this version is the one that the upgrade came from. Where it goes to the same one, from a template of another image, no version
/// leads back: what is wanted would turn round with every record.
fn leads_back(record: &Record, to: &Version) -> bool {
    record.from.version == *to && record.target.version != *to
}

impl Strategy for Rolling {
    fn record(resource: &QuorumCluster) -> Result<Option<Record>, Hold> {
        let upgrade = resource.status.as_ref().and_then(|status| status.upgrade.as_ref());
        upgrade.map(translate::record).transpose()
    }

    fn view(resource: &QuorumCluster, observed: &Observed, set: &StatefulSet, image: String) -> Result<View, Hold> {
        view::view(resource, observed, set, image, Self::record(resource)?)
    }

    fn as_it_stands(resource: &QuorumCluster, observed: &Observed) -> Option<View> {
        view::as_it_stands(resource, observed)
    }

    fn refine(resource: &QuorumCluster, view: &View, want: &mut Want) {
        // The deadline is for getting ready; for how long a pod must stay so is the StatefulSet's to say.
        want.deadlines.ready = want.deadlines.ready.saturating_add(view.workload.min_ready);
        if resource.spec.image.is_none()
            && want.trigger == Trigger::Version
            && let Some(record) = &view.record
            && leads_back(record, &want.target.version)
        {
            // To the very image that it came from, digest and all.
            want.target.image.clone_from(&record.from.image);
        }
    }

    fn may_need_snapshot(view: &View) -> bool {
        view.record.as_ref().is_none_or(|record| record.next_target.is_some())
    }

    fn stand_down(resource: &QuorumCluster, view: &View, because: &Hold) -> Option<Plan> {
        permit::stand_down(resource.spec.trigger, view, because)
    }

    fn take_over(want: &Want, view: &View, now: jiff::Timestamp) -> Option<(Step, Record)> {
        takeover::finish(want, view, now)
    }

    async fn execute(
        actor: Actor<'_>,
        recorded: &Recorded,
        observed: &Observed,
        set: &StatefulSet,
        step: &Step,
    ) -> Result<(), Error> {
        execute::execute(actor, recorded, observed, set, step).await
    }

    fn write_failure(status: &mut QuorumClusterStatus, step: &Step, why: &str) {
        let asked = status.upgrade.as_mut().and_then(|upgrade| upgrade.pending_handover.as_mut());
        if let Some(asked) = asked.filter(|_| step.hand_over().is_some()) {
            asked.last_error = Some(clipped(why));
        }
    }

    fn withdraw(
        resource: &Whole<QuorumCluster>,
        observed: &Observed,
        set: &StatefulSet,
        because: &Hold,
    ) -> Option<Withdrawal<Step>> {
        withdraw::withdraw(resource, observed, set, because)
    }

    async fn undo(actor: Actor<'_>, observed: &Observed, set: &StatefulSet, step: &Step) -> Result<(), Error> {
        withdraw::undo(actor, observed, set, step).await
    }

    async fn let_go(actor: Actor<'_>, resource: &QuorumCluster, observed: &Observed) -> Result<(), Error> {
        finalize::finalize(actor, resource, observed).await
    }

    fn write_record(status: &mut QuorumClusterStatus, view: &View, record: Option<&Record>, intent: Option<String>) {
        status.upgrade = record.map(|record| translate::upgrade(record, view.workload.replicas, intent));
    }

    fn write_rest(status: &mut QuorumClusterStatus, observed: &Observed, view: &View, plan: &Plan) {
        report::write_rest(status, observed, view, plan);
    }

    /// A switch of the strategy is made before the upgrade that it is for.
    fn begins_unrecorded(step: &Step) -> bool {
        matches!(step, Step::SwitchStrategy { .. })
    }

    fn members(resource: &QuorumCluster, view: &View, record: Option<&Record>) -> Vec<MemberStatus> {
        let most = u64::try_from(resource.spec.upgrade.max_lag_entries).unwrap_or(0);
        let in_sync = record.map(|record| move |name: &MemberName, lag: u64| lag <= most || record.keeps_up(name));
        let in_sync = in_sync.as_ref().map(|in_sync| in_sync as members::InSync<'_>);
        members::seen(view.pods.iter().map(|pod| &pod.name), &view.quorum, in_sync)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use rstest::rstest;
    use windlass_plan::{Order, Record, strategy::known::want::Target};

    use super::leads_back;

    #[rstest]
    #[case::back("8.5.0", "9.0.1", "8.5.0", true)]
    #[case::on("8.5.0", "9.0.1", "9.0.1", false)]
    #[case::to_another_image_of_the_same("9.0.1", "9.0.1", "9.0.1", false)]
    fn a_version_leads_back_where_the_upgrade_goes_to_another(
        #[case] from: &str,
        #[case] target: &str,
        #[case] asked: &str,
        #[case] expected: bool,
    ) {
        let at = |version: &str, image: &str| Target { version: version.parse().unwrap(), image: image.into() };
        let (from, target) = (at(from, "r/pd:v8.5.0"), at(target, "r/pd:v9.0.1"));
        let record = Record::begin(Order::LeaderLast, from, target, 0, 0, Timestamp::UNIX_EPOCH);
        assert_eq!(leads_back(&record, &asked.parse().unwrap()), expected);
    }
}
