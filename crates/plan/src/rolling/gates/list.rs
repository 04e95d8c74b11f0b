//! What must hold before a member is taken down: named gates, asked in order, the first objection counts.
//!
//! First what the quorum needs, then what people asked for: where both object, the quorum's word says more. A person may set the second
//! kind aside, never the first (H43).

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    fact::Fact,
    gate::{Outcome, Verdict, overridable, overridable_names},
    hold::Hold,
    quorum::can_spare_one,
    reason::Reason,
    rolling::{
        gates::{
            ask::{Ask, Gate},
            member::{leader_known, members_known, pods_present, settled, spare_member},
            pace,
        },
        handover,
        known::{record::Record, step::Step, view::View, workload::Pod},
        mend::{self, BEFORE_MEND},
        ways::{may_go_on, passable},
    },
    strategy::{
        gates::{first_objection, first_thing},
        known::{decision::Decision, want::Want},
    },
};

/// Everything that must be true before a member is taken down or hands over: all gates that there are, in their order.
pub const BEFORE_RESTART: &[Gate] = &[
    Gate::NOT_PAUSED,
    Gate::own("VersionPath", version_path),
    Gate::own("PodsPresent", |ask| pods_present(ask.view).into()),
    Gate::own("MembersKnown", |ask| members_known(ask.want, ask.view).into()),
    Gate::own("LeaderKnown", |ask| leader_known(ask.view).into()),
    Gate::own("SpareMember", |ask| spare_member(ask.want, ask.view).into()),
    Gate::own("EveryoneSettled", |ask| everyone_settled(ask).into()),
    Gate::own("QuorumSurvives", |ask| quorum_survives(ask).into()),
    Gate::own("LeadershipStays", |ask| leadership_stays(ask).into()),
    Gate::LOCK,
    Gate::APPROVAL,
    Gate::WINDOW,
    SOAK,
    Gate::OTHERS,
    Gate::PULL,
];

const SOAK: Gate = Gate::own("Soak", pace::soaked);

/// The ones among them that people asked for, and what runs first. They are asked before anything is written for a target, the first or
/// another one: also where its template holds everybody, for the strategy may have to be switched before it, and a person who closes a window
/// means all of it.
pub(crate) const POLICIES: &[Gate] =
    &[Gate::LOCK, Gate::APPROVAL, Gate::WINDOW, SOAK, Gate::OTHERS, Gate::FIRST, Gate::PULL];

/// What must be true before an upgrade is called done.
pub(crate) const AFTER_UPGRADE: &[Gate] = &[Gate::LAST];

/// What people asked for speaks against disturbing this member now, whatever the quorum says.
pub fn policy_objection(want: &Want, view: &View, victim: &Pod, now: Timestamp) -> Verdict {
    let record = view.record.as_ref();
    let version = record.map_or(&want.target.version, |record| &record.target.version);
    first_objection(POLICIES, &Ask { want, view, record, version, victim, now })
}

/// What is to be done before an upgrade may begin at all; none where nothing is.
pub(crate) fn may_begin(want: &Want, view: &View, now: Timestamp) -> Option<Decision<Step>> {
    let victim = view.pods.last()?;
    let ask = Ask { want, view, record: None, version: &want.target.version, victim, now };
    first_thing(POLICIES, &ask)
}

/// What is to be done before one may begin that somebody else's template has begun already.
pub(crate) fn may_follow(want: &Want, view: &View, now: Timestamp) -> Option<Decision<Step>> {
    let victim = view.pods.last()?;
    first_thing(&[Gate::FIRST], &Ask { want, view, record: None, version: &want.target.version, victim, now })
}

/// What is to be done before an upgrade is done; none where nothing is.
/// Going back asks nobody: who gives up has their reasons.
pub(crate) fn may_finish(want: &Want, view: &View, record: &Record, now: Timestamp) -> Option<Decision<Step>> {
    let victim = view.pods.last().filter(|_| !record.rolling_back)?;
    first_thing(AFTER_UPGRADE, &Ask { want, view, record: Some(record), version: &record.target.version, victim, now })
}

/// What is asked before an upgrade begins, by the names of the gates that ask the same.
pub(crate) fn to_begin() -> impl Iterator<Item = &'static str> {
    let firm = ["VersionPath", "PodsPresent", "MembersKnown", "LeaderKnown", "SpareMember"];
    let policies = POLICIES.iter().filter(|gate| !gate.is_several()).map(|gate| gate.name);
    firm.into_iter().chain(policies)
}

/// There is a way from what runs to the target (H15, H20). It is asked when an upgrade begins; one that is under way has been asked, and for one
/// that goes back it is over when somebody newer has led.
fn version_path(ask: &Ask<'_>) -> Outcome {
    if let Some(record) = ask.record {
        return may_go_on(ask.want, record).into();
    }
    if ask.view.quorum.members.known().is_none() {
        return members_known(ask.want, ask.view).into();
    }
    for (name, member) in ask.view.quorum.voters() {
        match &member.version {
            Fact::Known(runs) => {
                if let Err(hold) = passable(ask.want, ask.view, &ask.want.target, runs) {
                    return Outcome::Hold(hold);
                }
            }
            Fact::Unknown(why) => {
                let message = format!("{name}'s version is not known: {why}");
                return Outcome::Unknown(Hold::new(Reason::MembersUnknown, message));
            }
        }
    }
    Outcome::Pass
}

/// Every member is up, the one to be taken down too: an unhealthy member blocks until it recovers (C2, C5).
fn everyone_settled(ask: &Ask<'_>) -> Verdict {
    if bug::active(Bug::PreviousNotAwaited) {
        return Ok(());
    }
    ask.view
        .pods
        .iter()
        .rev()
        .try_for_each(|pod| settled(ask.want, ask.view, ask.version, pod).map_err(|lacking| lacking.hold))
}

/// Enough healthy members are left without the victim (C4).
fn quorum_survives(ask: &Ask<'_>) -> Verdict {
    let members = ask.view.quorum.size();
    // Accepted downtime is for quorums that can't do without it, never for a larger one that is merely sick (H14).
    let accepted = ask.want.accept_downtime && !can_spare_one(members);
    if ask.view.quorum.survives_losing(&ask.victim.name) || accepted {
        return Ok(());
    }
    Err(Hold::new(Reason::QuorumAtRisk, format!("the others are no healthy majority without {}", ask.victim.name)))
}

/// Whoever leads while the victim is down keeps leading: no member wants to lead more than that one (H19).
fn leadership_stays(ask: &Ask<'_>) -> Verdict {
    let quorum = &ask.view.quorum;
    if quorum.members.known().is_none() || quorum.size() == 1 {
        return Ok(());
    }
    let heir = match quorum.leader.known() {
        Some(leader) if *leader != ask.victim.name => leader.clone(),
        Some(_) | None => handover::target(ask.want, ask.view, ask.victim)?.name.clone(),
    };
    let priority = quorum.voter(&heir).map_or(0, |member| member.priority);
    let rival = quorum
        .voters()
        .filter(|(name, member)| **name != heir && member.priority > priority)
        .max_by_key(|(_, member)| member.priority);
    match rival {
        None => Ok(()),
        Some((name, member)) => Err(Hold::new(
            Reason::LeaderPriority,
            format!(
                "{name} has leader-priority {}, {heir} has {priority}: leadership would not stay with {heir}",
                member.priority
            ),
        )),
    }
}

/// Refuses overrides of gates that can't be overridden, or don't exist (X5).
pub fn check_overrides<'a>(names: impl IntoIterator<Item = &'a str>) -> Verdict {
    let Some(name) = names.into_iter().find(|name| !overridable(name)) else { return Ok(()) };
    if bug::active(Bug::AnyGateOverridden) {
        return Ok(());
    }
    let exists = BEFORE_RESTART.iter().chain(BEFORE_MEND).any(|gate| gate.name == name);
    let trouble = if exists { "can't be overridden" } else { "does not exist" };
    let names: Vec<&str> = overridable_names().collect();
    let message = format!("gate {name} {trouble}; the ones that can be overridden are {}", names.join(", "));
    Err(Hold::new(Reason::InvalidSpec, message))
}

pub(crate) fn ask<'a>(want: &'a Want, view: &'a View, record: &'a Record, victim: &'a Pod, now: Timestamp) -> Ask<'a> {
    Ask { want, view, record: Some(record), version: &record.target.version, victim, now }
}

/// What must hold before this one is taken down: less for one that is lost already.
pub(crate) fn gates(want: &Want, view: &View, record: &Record, victim: &Pod) -> &'static [Gate] {
    if mend::is_lost(want, view, record, victim) { BEFORE_MEND } else { BEFORE_RESTART }
}
