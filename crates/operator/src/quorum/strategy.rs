//! What the operator needs of a strategy beyond its decisions: where its view comes from, how a step of it is carried out, and what it writes
//! into the status. Reading, claiming, gates, Jobs, events and everything else is the same for all.

use std::future::Future;

use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::Value;
use windlass_api::{QuorumCluster, QuorumClusterStatus, conditions, status::members::MemberStatus};
use windlass_plan::{
    Hold, Want,
    forecast::Foresee,
    strategy::{
        contract::Plan,
        course::{Course, UnderWay},
    },
};

use crate::{
    actor::Actor,
    error::Error,
    lenient::Whole,
    quorum::{observe::Observed, pass::Recorded},
};

/// A way to bring a quorum from one version to another, as the operator carries it out.
pub trait Strategy: Foresee + Sized {
    /// The upgrade that is under way, as it was written.
    fn record(resource: &QuorumCluster) -> Result<Option<Self::Record>, Hold>;

    /// Where the upgrade stands by what was written: before anything is seen this tells whose word counts.
    fn course(resource: &QuorumCluster) -> Course {
        let conditions = resource.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        Course {
            // One that can't be read is no upgrade that is over: nothing is decided about such a resource.
            under_way: Self::record(resource).ok().flatten().as_ref().map(UnderWay::of),
            at_rest: conditions::is_ready(conditions, resource.metadata.generation),
        }
    }

    /// What its decisions are made from, as it was read.
    fn view(
        resource: &QuorumCluster,
        observed: &Observed,
        set: &StatefulSet,
        image: String,
    ) -> Result<Self::View, Hold>;

    /// The same whatever is wrong with what is wanted: enough to take back what stands, not to go on.
    fn as_it_stands(resource: &QuorumCluster, observed: &Observed) -> Option<Self::View>;

    /// Brings what is wanted into line with what was seen.
    fn refine(resource: &QuorumCluster, view: &Self::View, want: &mut Want);

    /// A snapshot may be the next thing to take.
    fn may_need_snapshot(view: &Self::View) -> bool;

    /// What is left to do where nothing can be decided; none where nothing is.
    fn stand_down(resource: &QuorumCluster, view: &Self::View, because: &Hold) -> Option<Plan<Self>>;

    /// What a predecessor had begun that can't be fenced and must be finished before anything else (H6).
    fn take_over(want: &Want, view: &Self::View, now: jiff::Timestamp) -> Option<(Self::Step, Self::Record)>;

    /// Carries out one of its own steps: one fenced write, or one call.
    fn execute(
        actor: Actor<'_>,
        recorded: &Recorded,
        observed: &Observed,
        set: &StatefulSet,
        step: &Self::Step,
    ) -> impl Future<Output = Result<(), Error>>;

    /// Notes in the status why a step of its own failed, where it is tried a few times only.
    fn write_failure(status: &mut QuorumClusterStatus, step: &Self::Step, why: &str);

    /// What it has left standing under a resource that can't be read, and is to be taken back; none where nothing of it stands.
    fn withdraw(
        resource: &Whole<QuorumCluster>,
        observed: &Observed,
        set: &StatefulSet,
        because: &Hold,
    ) -> Option<Withdrawal<Self::Step>>;

    /// Takes it back.
    fn undo(
        actor: Actor<'_>,
        observed: &Observed,
        set: &StatefulSet,
        step: &Self::Step,
    ) -> impl Future<Output = Result<(), Error>>;

    /// The resource is being deleted: leaves everything in order and lets it go.
    fn let_go(
        actor: Actor<'_>,
        resource: &QuorumCluster,
        observed: &Observed,
    ) -> impl Future<Output = Result<(), Error>>;

    /// Writes its record into the status, with the step that is about to be taken.
    fn write_record(
        status: &mut QuorumClusterStatus,
        view: &Self::View,
        record: Option<&Self::Record>,
        intent: Option<String>,
    );

    /// Writes what else it has to say with a plan.
    fn write_rest(status: &mut QuorumClusterStatus, observed: &Observed, view: &Self::View, plan: &Plan<Self>);

    /// It begins something though nothing is on record yet.
    fn begins_unrecorded(step: &Self::Step) -> bool;

    /// The members as seen, in their order.
    fn members(resource: &QuorumCluster, view: &Self::View, record: Option<&Self::Record>) -> Vec<MemberStatus>;
}

/// What is taken back under a resource that can't be read.
pub struct Withdrawal<A> {
    /// The step; none where what stands is held already.
    pub step: Option<A>,
    /// What is recorded about it: a field of the status.
    pub recorded: Option<(&'static str, Value)>,
    /// Who set what stands, in a sentence, where somebody else did.
    pub contest: Option<String>,
}
