//! The strategies that there are. From here on nobody needs to know which one it is: within a look, its types stay its own.

use std::marker::PhantomData;

use futures::{FutureExt, future::LocalBoxFuture};
use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::Value;
use strum::IntoEnumIterator;
use windlass_api::{QuorumCluster, quorum_cluster::upgrade::StrategyType, status::members::MemberStatus};
use windlass_plan::{
    Hold, Want,
    forecast::{Forecast, Told, forecast},
    rolling::known::Rolling,
};

use crate::{
    Context,
    actor::Actor,
    error::Error,
    lenient::Whole,
    quorum::{
        observe::{self, Observed},
        pass::{Next, look_by},
        strategy::{Strategy, Withdrawal},
        validate::{Validated, validate},
    },
};

/// The dispatch on `spec.updateStrategy.type`. A strategy that comes has a line here.
fn by_type(wanted: StrategyType) -> &'static dyn AnyStrategy {
    match wanted {
        StrategyType::RollingUpdate => &Of::<Rolling>(PhantomData),
    }
}

/// How strategies are found.
#[derive(Clone, Copy)]
pub struct Strategies {
    /// The one that a resource asks for.
    pub asked_for: fn(&QuorumCluster) -> &'static dyn AnyStrategy,
    /// All of them, for a resource that can't be read: what any of them left standing is taken back.
    pub all: fn() -> Vec<&'static dyn AnyStrategy>,
}

impl Strategies {
    /// Those that are shipped.
    pub const SHIPPED: Self = Self {
        asked_for: |resource| by_type(resource.spec.update_strategy.type_),
        all: || StrategyType::iter().map(by_type).collect(),
    };
}

/// A strategy, whichever it is.
pub trait AnyStrategy: Sync {
    /// One look at a resource that asks for it.
    fn look<'a>(&self, actor: Actor<'a>, resource: &'a QuorumCluster) -> LocalBoxFuture<'a, Result<Next, Error>>;

    /// What is taken back of what it left standing under a resource that can't be read; none where nothing of it stands.
    fn withdraw<'a>(
        &self,
        actor: Actor<'a>,
        resource: &Whole<QuorumCluster>,
        observed: &'a Observed,
        because: &Hold,
    ) -> Option<Withdrawn<'a>>;

    /// Everything that a look sees, before anything has begun, and for a resource that may not exist.
    fn observe_ahead<'a>(
        &self,
        context: &'a Context,
        resource: &'a QuorumCluster,
    ) -> LocalBoxFuture<'a, Result<Observed, Error>>;

    /// What would happen from here.
    fn foresee(&self, context: &Context, resource: &QuorumCluster, observed: &Observed) -> Result<Foresight, Hold>;
}

/// What is taken back.
pub struct Withdrawn<'a> {
    /// The step, and how it is carried out once it is recorded.
    pub act: Option<(Told, LocalBoxFuture<'a, Result<(), Error>>)>,
    /// What is recorded about it: a field of the status.
    pub recorded: Option<(&'static str, Value)>,
    /// Who set what stands, in a sentence, where somebody else did.
    pub contest: Option<String>,
}

/// What would happen, and what that was told from.
pub struct Foresight {
    /// What is wanted.
    pub want: Want,
    /// An upgrade is under way.
    pub under_way: bool,
    /// The members as seen, in their order.
    pub members: Vec<MemberStatus>,
    /// What would happen.
    pub forecast: Forecast<Told>,
}

/// This strategy.
pub struct Of<S>(pub PhantomData<S>);

impl<S: Strategy + Sync> AnyStrategy for Of<S> {
    fn look<'a>(&self, actor: Actor<'a>, resource: &'a QuorumCluster) -> LocalBoxFuture<'a, Result<Next, Error>> {
        look_by::<S>(actor, resource).boxed_local()
    }

    fn withdraw<'a>(
        &self,
        actor: Actor<'a>,
        resource: &Whole<QuorumCluster>,
        observed: &'a Observed,
        because: &Hold,
    ) -> Option<Withdrawn<'a>> {
        let set = observed.set.as_ref()?;
        let Withdrawal { step, recorded, contest } = S::withdraw(resource, observed, set, because)?;
        let act = step.map(|step| (Told::of(&step), undo::<S>(actor, observed, set, step).boxed_local()));
        Some(Withdrawn { act, recorded, contest })
    }

    fn observe_ahead<'a>(
        &self,
        context: &'a Context,
        resource: &'a QuorumCluster,
    ) -> LocalBoxFuture<'a, Result<Observed, Error>> {
        observe::observe_ahead(context, resource, S::course(resource)).boxed_local()
    }

    fn foresee(&self, context: &Context, resource: &QuorumCluster, observed: &Observed) -> Result<Foresight, Hold> {
        let Validated { want, view } = validate::<S>(resource, observed)?;
        let forecast = forecast::<S>(&want, &view, context.clock.now()).told();
        let record = S::recorded(&view);
        let (under_way, members) = (record.is_some(), S::members(resource, &view, record));
        Ok(Foresight { want, under_way, members, forecast })
    }
}

async fn undo<S: Strategy>(
    actor: Actor<'_>,
    observed: &Observed,
    set: &StatefulSet,
    step: S::Step,
) -> Result<(), Error> {
    S::undo(actor, observed, set, &step).await
}
