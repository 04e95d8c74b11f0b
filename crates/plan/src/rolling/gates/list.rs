//! What must hold before a member is taken down: named gates, asked in order, the first objection counts.
//!
//! First what the quorum needs, then what people asked for: where both object, the quorum's word says more. A person may set the second
//! kind aside, never the first (H43).

use std::borrow::Cow;

use jiff::Timestamp;

use crate::{
    approval,
    bug::{self, Bug},
    fact::Fact,
    gate::{About, CONCURRENT_OPERATION, ExternalGate, GateState, KINDS, NODE_DRAIN, Outcome, Verdict, When, judge},
    hold::Hold,
    quorum::can_spare_one,
    reason::Reason,
    rolling::{
        gates::{
            approval as approvals,
            ask::{Ask, Check, Gate, not_paused},
            member::{leader_known, members_known, pods_present, settled, spare_member},
            pace, prepull, window,
        },
        handover,
        known::{
            decision::{Decision, Step, wait_or_halt},
            record::Record,
            view::View,
            want::Want,
            workload::Pod,
        },
        mend::{self, BEFORE_MEND},
        ways::passable,
    },
};

/// Everything that must be true before a member is taken down or hands over: all gates that there are, in their order.
pub const BEFORE_RESTART: &[Gate] = &[
    Gate::firm("NotPaused", |ask| not_paused(ask).into()),
    Gate::firm("VersionPath", version_path),
    Gate::firm("PodsPresent", |ask| pods_present(ask.view).into()),
    Gate::firm("MembersKnown", |ask| members_known(ask.want, ask.view).into()),
    Gate::firm("LeaderKnown", |ask| leader_known(ask.view).into()),
    Gate::firm("SpareMember", |ask| spare_member(ask.want, ask.view).into()),
    Gate::firm("EveryoneSettled", |ask| everyone_settled(ask).into()),
    Gate::firm("QuorumSurvives", |ask| quorum_survives(ask).into()),
    Gate::firm("LeadershipStays", |ask| leadership_stays(ask).into()),
    LOCK,
    APPROVAL,
    WINDOW,
    SOAK,
    OTHERS,
    PULL,
];

const LOCK: Gate = Gate::external(CONCURRENT_OPERATION);

const APPROVAL: Gate = Gate::policy(approval::NAME, approvals::approved);

const WINDOW: Gate = Gate::policy("MaintenanceWindow", window::open);

const SOAK: Gate = Gate::policy("Soak", pace::soaked);

const OTHERS: Gate = Gate::others(When::BeforeMember);

/// Nearly last: what has to run first does so when nothing else is in the way.
pub(crate) const FIRST: Gate = Gate::others(When::BeforeUpgrade);

/// The very last one: nothing is pulled before everything else would let a member go.
const PULL: Gate = Gate::policy(prepull::NAME, prepull::pulled);

/// The ones among them that people asked for, and what runs first. They are asked before anything is written for a target, the first or
/// another one: also where its template holds everybody, for the strategy may have to be switched before it, and a person who closes a window
/// means all of it.
pub(crate) const POLICIES: &[Gate] = &[LOCK, APPROVAL, WINDOW, SOAK, OTHERS, FIRST, PULL];

/// What must be true before an upgrade is called done.
pub(crate) const AFTER_UPGRADE: &[Gate] = &[Gate::others(When::AfterUpgrade)];

/// The first objection to taking `ask.victim` down.
pub fn first_objection(gates: &[Gate], ask: &Ask<'_>) -> Verdict {
    let objection = evaluate(gates, ask).find(|gate| gate.state.blocks());
    objection.and_then(|gate| gate.hold).map_or(Ok(()), Err)
}

/// What people asked for speaks against disturbing this member now, whatever the quorum says.
pub fn policy_objection(want: &Want, view: &View, victim: &Pod, now: Timestamp) -> Verdict {
    let record = view.record.as_ref();
    let version = record.map_or(&want.target.version, |record| &record.target.version);
    first_objection(POLICIES, &Ask { want, view, record, version, victim, now })
}

/// What is to be done before an upgrade may begin at all; none where nothing is.
pub(crate) fn may_begin(want: &Want, view: &View, now: Timestamp) -> Option<Decision> {
    let victim = view.pods.last()?;
    let ask = Ask { want, view, record: None, version: &want.target.version, victim, now };
    first_thing(POLICIES, &ask)
}

/// What is to be done before one may begin that somebody else's template has begun already.
pub(crate) fn may_follow(want: &Want, view: &View, now: Timestamp) -> Option<Decision> {
    let victim = view.pods.last()?;
    first_thing(&[FIRST], &Ask { want, view, record: None, version: &want.target.version, victim, now })
}

/// What is to be done before an upgrade is done; none where nothing is.
/// Going back asks nobody: who gives up has their reasons.
pub(crate) fn may_finish(want: &Want, view: &View, record: &Record, now: Timestamp) -> Option<Decision> {
    let victim = view.pods.last().filter(|_| !record.reverting)?;
    first_thing(AFTER_UPGRADE, &Ask { want, view, record: Some(record), version: &record.target.version, victim, now })
}

/// The first objection, and what can be done about it here: to make the Job whose word is missing.
fn first_thing(gates: &[Gate], ask: &Ask<'_>) -> Option<Decision> {
    if bug::active(Bug::HooksNotAwaited) && gates.iter().all(|gate| matches!(gate.check, Check::Others(_))) {
        return None;
    }
    let objection = evaluate(gates, ask).find(|gate| gate.state.blocks())?;
    let lacking = |gate: &&ExternalGate| gate.lacks_job && gate.name == objection.name;
    if let Some(gate) = ask.view.external.iter().find(lacking) {
        return Some(Decision::Act(Step::StartJob { gate: gate.name.clone() }));
    }
    objection
        .hold
        .map(|hold| prepull::next(ask.want, ask.view, ask.record, &hold, ask.now).unwrap_or_else(|| wait_or_halt(hold)))
}

/// What is asked before an upgrade begins, by the names of the gates that ask the same.
pub(crate) fn to_begin() -> impl Iterator<Item = &'static str> {
    let firm = ["VersionPath", "PodsPresent", "MembersKnown", "LeaderKnown", "SpareMember"];
    let policies = POLICIES.iter().map(|gate| gate.name).filter(|name| *name != OTHERS.name);
    firm.into_iter().chain(policies)
}

/// There is a way from what runs to the target (H15, H20). It is asked when an upgrade begins; one that is under way has been asked.
fn version_path(ask: &Ask<'_>) -> Outcome {
    if ask.record.is_some() {
        return Outcome::Pass;
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

/// What the operator evaluates outside of this crate, and may be overridden.
const EXTERNAL: [&str; 2] = [CONCURRENT_OPERATION, NODE_DRAIN];

/// Where all these gates stand, in their order, evaluated one by one.
pub fn evaluate<'a>(gates: &'a [Gate], ask: &'a Ask<'a>) -> impl Iterator<Item = GateState> + 'a {
    gates.iter().flat_map(move |gate| {
        let said: Vec<(Cow<'static, str>, Outcome)> = match gate.check {
            Check::Own(check) => vec![(Cow::Borrowed(gate.name), check(ask))],
            Check::External => said(ask, |external| external.name == gate.name),
            // One that has an entry of its own is not told twice.
            Check::Others(when) => {
                said(ask, |external| external.when == when && !gates.iter().any(|other| other.name == external.name))
            }
        };
        let external = !matches!(gate.check, Check::Own(_));
        said.into_iter().map(move |(name, outcome)| {
            let may = external || overridable(&name) || bug::active(Bug::AnyGateOverridden);
            let until = ask.want.overrides.get(name.as_ref()).copied().filter(|_| may);
            judge(name, outcome, until, ask.now)
        })
    })
}

/// What was evaluated elsewhere, of those that are meant.
fn said(ask: &Ask<'_>, is_meant: impl Fn(&&ExternalGate) -> bool) -> Vec<(Cow<'static, str>, Outcome)> {
    let said = |external: &ExternalGate| {
        let outcome = outdated(ask, external).map_or_else(|| external.outcome.clone(), Outcome::Unknown);
        (Cow::Owned(external.name.clone()), outcome)
    };
    ask.view.external.iter().filter(is_meant).map(said).collect()
}

/// Why a yes does not count any more: it was said before the last member was replaced and well again, or about another member.
fn outdated(ask: &Ask<'_>, external: &ExternalGate) -> Option<Hold> {
    let (Some(record), Some(asked)) = (ask.record, &external.asked) else { return None };
    if external.outcome != Outcome::Pass || external.when != When::BeforeMember {
        return None;
    }
    let (name, victim) = (&external.name, &ask.victim.name);
    let hold = |message: String| Some(Hold::new(asked.again, message));
    let last = record.settled_since.iter().max_by_key(|(_, since)| **since);
    if let Some((last, _)) = last.filter(|(_, since)| asked.at <= **since)
        && !bug::active(Bug::OldMeasureCounts)
    {
        return hold(format!("{name} said so before {last} was replaced and well, and is asked again"));
    }
    match &asked.about {
        About::Next(about) if about.as_ref() != Some(victim) && !bug::active(Bug::YesForAll) => {
            hold(format!("{name} was not asked about {victim} yet"))
        }
        About::Next(_) | About::All => None,
    }
}

/// The gates that can be overridden, in their order.
pub fn overridable_names() -> impl Iterator<Item = &'static str> {
    let own = BEFORE_RESTART.iter().filter(|gate| gate.overridable).map(|gate| gate.name);
    own.chain(EXTERNAL)
}

/// Whether this gate may be overridden: not what guards the quorum, its leader or our writes.
pub fn overridable(name: &str) -> bool {
    let named = || name.split_once('/').is_some_and(|(kind, name)| KINDS.contains(&kind) && !name.is_empty());
    overridable_names().any(|known| known == name) || named()
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
