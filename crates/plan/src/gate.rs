//! What must hold before a member is taken down: named gates, asked in order, the first objection counts.
//!
//! First what the quorum needs, then what people asked for: where both object, the quorum's word says more. A person may set the second
//! kind aside, never the first (H43).

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::{
    approval,
    bug::{self, Bug},
    decision::{Decision, Hold, Step},
    fact::Fact,
    handover, lag, mend, order,
    outcome::{self, CONCURRENT_OPERATION, ExternalGate, GateState, Outcome, When},
    pace, prepull,
    quorum::{Complaint, MemberName, can_spare_one},
    reason::Reason,
    record::Record,
    retarget::passable,
    rollout::wait_or_halt,
    stage::StageKind,
    version::Version,
    want::Want,
    window,
    workload::{Pod, View},
};

/// The question: may this pod be taken down now?
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// What is wanted.
    pub want: &'a Want,
    /// What was seen.
    pub view: &'a View,
    /// The upgrade that is under way; none before it begins.
    pub record: Option<&'a Record>,
    /// What replaced members must run.
    pub version: &'a Version,
    /// Who would be taken down.
    pub victim: &'a Pod,
    /// When.
    pub now: Timestamp,
}

/// A condition's answer.
pub type Verdict = Result<(), Hold>;

/// How a gate is asked.
#[derive(Clone, Copy)]
pub enum Check {
    /// By what was seen.
    Own(fn(&Ask<'_>) -> Outcome),
    /// It was evaluated elsewhere.
    External,
    /// All that were evaluated elsewhere, are asked then, and have no place of their own in the list.
    Others(When),
}

/// A named condition.
pub struct Gate {
    /// How people call it.
    pub name: &'static str,
    /// What it demands.
    pub check: Check,
    /// A person may set it aside.
    pub overridable: bool,
}

impl Gate {
    /// What guards the quorum, its leader or our own writes.
    pub(crate) const fn firm(name: &'static str, check: fn(&Ask<'_>) -> Outcome) -> Self {
        Self { name, check: Check::Own(check), overridable: false }
    }

    /// What a person asked for, and may set aside.
    pub(crate) const fn policy(name: &'static str, check: fn(&Ask<'_>) -> Outcome) -> Self {
        Self { name, check: Check::Own(check), overridable: true }
    }

    /// What was evaluated elsewhere.
    pub(crate) const fn external(name: &'static str) -> Self {
        Self { name, check: Check::External, overridable: false }
    }

    /// All the others that were evaluated elsewhere.
    const fn others(when: When) -> Self {
        Self { name: "*", check: Check::Others(when), overridable: false }
    }
}

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
const APPROVAL: Gate = Gate::policy(approval::NAME, approval::approved);
const WINDOW: Gate = Gate::policy("MaintenanceWindow", window::open);
const SOAK: Gate = Gate::policy("Soak", pace::soaked);
const OTHERS: Gate = Gate::others(When::BeforeMember);
/// Nearly last: what has to run first does so when nothing else is in the way.
const FIRST: Gate = Gate::others(When::BeforeUpgrade);
/// The very last one: nothing is pulled before everything else would let a member go.
const PULL: Gate = Gate::policy(prepull::NAME, prepull::pulled);

/// The ones among them that people asked for, and what runs first. They are asked before anything is written for a target, the first or
/// another one: also where its template holds everybody, for the strategy may have to be switched before it, and a person who closes a window
/// means all of it.
const POLICIES: &[Gate] = &[LOCK, APPROVAL, WINDOW, SOAK, OTHERS, FIRST, PULL];

/// What must be true before an upgrade is called done.
const AFTER_UPGRADE: &[Gate] = &[Gate::others(When::AfterUpgrade)];

/// The first objection to taking `ask.victim` down.
pub fn first_objection(gates: &[Gate], ask: &Ask<'_>) -> Verdict {
    let objection = outcome::evaluate(gates, ask).find(|gate| gate.state.blocks());
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
    let objection = outcome::evaluate(gates, ask).find(|gate| gate.state.blocks())?;
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

/// Where the gates stand that another target must pass before it takes the place of the one that is under way.
pub(crate) fn states_of_next(want: &Want, view: &View, now: Timestamp) -> Vec<GateState> {
    let Some(victim) = view.pods.last() else { return Vec::new() };
    let ask = Ask { want, view, record: None, version: &want.target.version, victim, now };
    outcome::evaluate(POLICIES, &ask).collect()
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
    let first: &[Gate] = if record.is_none() { &[FIRST] } else { &[] };
    // Before it begins everybody runs what they shall run.
    let runs = || view.quorum.member(&victim.name).and_then(|member| member.version.known());
    let version = record.map(|record| &record.target.version).or_else(runs).unwrap_or(&want.target.version);
    let ask = Ask { want, view, record, version, victim, now };
    outcome::evaluate(gates, &ask).chain(outcome::evaluate(first, &ask)).collect()
}

/// Where the gates stand that are asked when nobody is left to be taken down.
fn at_the_end(want: &Want, view: &View, record: Option<&Record>, now: Timestamp) -> Vec<GateState> {
    let Some(record) = record.filter(|record| !record.reverting) else { return Vec::new() };
    let Some(victim) = view.pods.last() else { return Vec::new() };
    let ask = Ask { want, view, record: Some(record), version: &record.target.version, victim, now };
    outcome::evaluate(AFTER_UPGRADE, &ask).collect()
}

/// There is a way from what runs to the target (H15, H20). It is asked when an upgrade begins; one that is under way has been asked.
fn version_path(ask: &Ask<'_>) -> Outcome {
    if ask.record.is_some() {
        return Outcome::Pass;
    }
    let Some(members) = ask.view.quorum.members.known() else { return members_known(ask.want, ask.view).into() };
    for (name, member) in members {
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

pub(crate) fn not_paused(ask: &Ask<'_>) -> Verdict {
    if ask.want.paused { Err(Hold::new(Reason::Paused, "paused")) } else { Ok(()) }
}

/// All pods exist and none is on its way out.
pub fn pods_present(view: &View) -> Verdict {
    absent(view).map_or(Ok(()), |(_, hold)| Err(hold))
}

/// The first member whose pod does not exist, is on its way out, or is about to be.
pub fn absent(view: &View) -> Option<(MemberName, Hold)> {
    let missing = (0..view.workload.replicas).find_map(|index| {
        let name = view.workload.member(index);
        let trouble = match view.pod(&name) {
            None => "does not exist yet",
            Some(pod) if pod.terminating && !bug::active(Bug::PreviousNotAwaited) => "is terminating",
            Some(_) => return None,
        };
        let hold = Hold::new(Reason::PodNotReady, format!("pod {name} {trouble}"));
        Some((name, hold))
    });
    // A set that is scaled down loses a member, too: at any moment, if it has not gone yet.
    let leaving = view.pods.iter().find(|pod| pod.index >= view.workload.replicas);
    missing.or_else(|| {
        let name = leaving?.name.clone();
        let hold = Hold::new(Reason::PodNotReady, format!("pod {name} is to go, for the set is scaled down"));
        Some((name, hold))
    })
}

/// The system lists its members, and they are the pods.
pub fn members_known(want: &Want, view: &View) -> Verdict {
    let members = match &view.quorum.members {
        Fact::Known(members) => members,
        Fact::Unknown(why) => return Err(unknown(view, why)),
    };
    if let Some(message) = non_voter(want, view) {
        return Err(Hold::new(Reason::MembersDoNotMatch, message));
    }
    let pods: BTreeSet<&MemberName> = view.pods.iter().map(|pod| &pod.name).collect();
    let listed: BTreeSet<&MemberName> = members.keys().collect();
    let missing = names(pods.difference(&listed));
    let extra = names(listed.difference(&pods));
    match (missing.is_empty(), extra.is_empty()) {
        (true, true) => Ok(()),
        (false, true) => Err(Hold::new(Reason::MembersDoNotMatch, format!("pods that are no members: {missing}"))),
        (true, false) => Err(Hold::new(Reason::MembersDoNotMatch, format!("members that have no pod: {extra}"))),
        (false, false) => Err(Hold::new(
            Reason::MembersDoNotMatch,
            format!("pods that are no members: {missing}; members that have no pod: {extra}"),
        )),
    }
}

/// What is to be said of a member without a vote. One that is about to get a vote makes another quorum of this one half way, so it is waited
/// for, unless a person says that it is meant to stay as it is. In a pod of this set it would be replaced as if it had a vote.
fn non_voter(want: &Want, view: &View) -> Option<String> {
    if bug::active(Bug::NonVotersIgnored) {
        return None;
    }
    let is_ours = |learner: &&String| view.pods.iter().any(|pod| pod.name.as_str() == learner.as_str());
    if let Some(learner) = view.quorum.learners.iter().find(is_ours) {
        return Some(format!(
            "{learner} is a learner, a member without a vote, in a pod of this StatefulSet: promote it, or give it a set of its own"
        ));
    }
    let learner = view.quorum.learners.first().filter(|_| !want.accept_non_voters)?;
    Some(format!(
        "{learner} is a learner, a member without a vote: promote or remove it first, or set spec.policy.acceptNonVoters if it is meant to stay"
    ))
}

/// Why nobody knows the members. A token that is refused is a cause of its own, and another token is all that helps.
fn unknown(view: &View, why: &str) -> Hold {
    if view.quorum.refused {
        return Hold::new(Reason::TokenRefused, why);
    }
    Hold::new(Reason::MembersUnknown, format!("the members are not known: {why}"))
}

/// Somebody leads, and everybody agrees who.
pub fn leader_known(view: &View) -> Verdict {
    match &view.quorum.leader {
        Fact::Unknown(why) => Err(Hold::new(Reason::LeaderUnknown, format!("the leader is not known: {why}"))),
        Fact::Known(leader) if view.quorum.member(leader).is_none() => {
            Err(Hold::new(Reason::LeaderUnknown, format!("{leader} is said to lead and is no member")))
        }
        Fact::Known(_) => Ok(()),
    }
}

/// The quorum is large enough to lose a member at all, or a person accepts that it goes down (H14).
pub fn spare_member(want: &Want, view: &View) -> Verdict {
    let members = view.quorum.size();
    if can_spare_one(members) || want.accept_downtime {
        return Ok(());
    }
    Err(Hold::new(
        Reason::NoSpareMember,
        format!(
            "with {members} member{} none can be spared: replacing one takes the quorum down",
            if members == 1 { "" } else { "s" }
        ),
    ))
}

/// What a member lacks to count as up: the stage it is in, and the hold that says so.
pub struct Lacking {
    /// Which stage's clock runs.
    pub stage: StageKind,
    /// What is waited for.
    pub hold: Hold,
}

/// Whether a member is up in every sense: its pod ready, itself healthy, and, once replaced, of the right version and caught up.
pub fn settled(want: &Want, view: &View, version: &Version, pod: &Pod) -> Result<(), Lacking> {
    let lacking = |stage, reason, message| Err(Lacking { stage, hold: Hold::new(reason, message) });
    let name = &pod.name;
    if !pod.is_up() {
        return Err(Lacking { stage: StageKind::Replace, hold: unready(view, pod) });
    }
    // A member that was just replaced is expected not to answer for a while, and has a reason of its own if it goes on.
    let replaced = view.record.is_some() && !view.is_outdated(pod);
    let silent = if replaced { Reason::MemberNotJoined } else { Reason::MembersUnknown };
    let Some(member) = view.quorum.member(name) else {
        return Err(Lacking { stage: StageKind::Join, hold: unlisted(view, pod, silent) });
    };
    match &member.healthy {
        Fact::Known(true) => {}
        Fact::Known(false) => {
            let reason = match &member.trouble {
                Some(Complaint::Sealed) => Reason::MemberSealed,
                Some(Complaint::Other(_)) | None => Reason::MemberUnhealthy,
            };
            let trouble = member.trouble.as_ref().map(|trouble| format!(": {trouble}")).unwrap_or_default();
            return lacking(StageKind::Join, reason, format!("{name} is not healthy{trouble}{}", more(pod)));
        }
        Fact::Unknown(why) => {
            return lacking(
                StageKind::Join,
                silent,
                format!("{name}'s pod is ready, and its health is not known: {why}{}", more(pod)),
            );
        }
    }
    let runs = match &member.version {
        Fact::Known(runs) => runs,
        Fact::Unknown(why) => {
            return lacking(StageKind::Join, Reason::MembersUnknown, format!("{name}'s version is not known: {why}"));
        }
    };
    if runs != version && !view.is_outdated(pod) {
        return lacking(
            StageKind::Join,
            Reason::VersionMismatch,
            format!("{name} runs {runs} from image {}, and {version} was asked for", view.workload.image),
        );
    }
    match view.quorum.lag(name) {
        Fact::Known(Some(lag)) if lag > want.max_lag && !lag::keeps_up(view, name) => lacking(
            StageKind::Sync,
            Reason::MemberBehind,
            format!(
                "{name} is more than {} entries behind the leader, and has not reached where that was at an earlier look",
                want.max_lag
            ),
        ),
        Fact::Known(_) => Ok(()),
        Fact::Unknown(why) => {
            lacking(StageKind::Sync, Reason::MembersUnknown, format!("{name}'s position is not known: {why}"))
        }
    }
}

/// What keeps a pod from being up, in the most telling words that there are.
fn unready(view: &View, pod: &Pod) -> Hold {
    let name = &pod.name;
    // Where Kubernetes has no word for it, the member may have one: OpenBao's pods are not ready while they are sealed.
    let complaint = view.quorum.member(name).and_then(|member| member.trouble.as_ref());
    let member = complaint.map(|complaint| format!(": {complaint}")).unwrap_or_default();
    let reason = match complaint {
        Some(Complaint::Sealed) => Reason::MemberSealed,
        Some(Complaint::Other(_)) | None => Reason::PodNotReady,
    };
    match &pod.trouble {
        _ if pod.terminating => Hold::new(Reason::PodNotReady, format!("pod {name} is terminating")),
        Some(trouble) => Hold::new(trouble.reason(), format!("pod {name} is not ready: {trouble}{}", more(pod))),
        None => {
            let min_ready = view.workload.min_ready.as_secs();
            let long =
                if min_ready == 0 { String::new() } else { format!(" for {min_ready}s, as minReadySeconds asks") };
            Hold::new(reason, format!("pod {name} is not ready{long}{member}{}", more(pod)))
        }
    }
}

/// Where its log tells more, as the end of a message; empty where nobody knows.
fn more(pod: &Pod) -> String {
    pod.log.as_ref().map(|log| format!("; {log}")).unwrap_or_default()
}

/// A pod that is ready and no member.
fn unlisted(view: &View, pod: &Pod, silent: Reason) -> Hold {
    match &view.quorum.members {
        Fact::Known(members) => {
            let listed = names(members.keys().collect::<Vec<_>>().iter());
            let message = format!("pod {} is ready, and the members are {listed}{}", pod.name, more(pod));
            Hold::new(silent, message)
        }
        Fact::Unknown(why) => unknown(view, why),
    }
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
    let Some(members) = ask.view.quorum.members.known() else { return Ok(()) };
    if members.len() == 1 {
        return Ok(());
    }
    let heir = match ask.view.quorum.leader.known() {
        Some(leader) if *leader != ask.victim.name => leader.clone(),
        Some(_) | None => handover::target(ask.want, ask.view, ask.victim)?.name.clone(),
    };
    let priority = members.get(&heir).map_or(0, |member| member.priority);
    let rival = members
        .iter()
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

fn names<'a>(names: impl Iterator<Item = &'a &'a MemberName>) -> String {
    names.map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
}
