//! Where every gate stands before the next step, for people.

use jiff::Timestamp;

use crate::{
    gate::GateState,
    rolling::{
        gates::{
            ask::{Ask, Gate},
            list::{AFTER_UPGRADE, BEFORE_RESTART, POLICIES},
        },
        known::{record::Record, view::View},
        mend, order,
    },
    strategy::{gates::evaluate, known::want::Want},
};

/// Where the gates stand that another target must pass before it takes the place of the one that is under way.
pub(crate) fn states_of_next(want: &Want, view: &View, now: Timestamp) -> Vec<GateState> {
    let Some(victim) = view.pods.last() else { return Vec::new() };
    let ask = Ask { want, view, record: None, version: &want.target.version, victim, now };
    evaluate(POLICIES, &ask).collect()
}

/// Where every gate stands before the next step that disturbs a member; empty where there is no such step to take.
pub(crate) fn states(want: &Want, view: &View, record: Option<&Record>, now: Timestamp) -> Vec<GateState> {
    let victim = match record {
        Some(record) => order::next(want, view, record),
        None if view.workload.image == want.target.image => None,
        None => view.pods.last(),
    };
    let Some(victim) = victim else { return at_the_end(want, view, record, now) };
    let lost = record.is_some_and(|record| mend::is_lost(want, view, record, victim));
    let gates = if lost { mend::BEFORE_MEND } else { BEFORE_RESTART };
    let first: &[Gate] = if record.is_none() { &[Gate::FIRST] } else { &[] };
    // Before it begins everybody runs what they shall run.
    let runs = || view.quorum.voter(&victim.name).and_then(|member| member.version.known());
    let version = record.map(|record| &record.target.version).or_else(runs).unwrap_or(&want.target.version);
    let ask = Ask { want, view, record, version, victim, now };
    evaluate(gates, &ask).chain(evaluate(first, &ask)).collect()
}

/// Where the gates stand that are asked when nobody is left to be taken down.
fn at_the_end(want: &Want, view: &View, record: Option<&Record>, now: Timestamp) -> Vec<GateState> {
    let Some(record) = record.filter(|record| !record.rolling_back) else { return Vec::new() };
    let Some(victim) = view.pods.last() else { return Vec::new() };
    let ask = Ask { want, view, record: Some(record), version: &record.target.version, victim, now };
    evaluate(AFTER_UPGRADE, &ask).collect()
}
