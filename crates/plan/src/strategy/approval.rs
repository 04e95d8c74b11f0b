//! What a person approved (X4), bound to what was shown to them.
//!
//! ```text
//!   the gate holds ─▶ the question is recorded and shown ─▶ a new token ─▶ that very question is approved ─▶ the gate passes
//! ```
//! A token approves the question that was recorded when it came, whatever else has changed by then. One that answers no question is
//! spent for nothing.

use std::borrow::Cow;

use crate::{
    approval::{Mode, NAME},
    bug::{self, Bug},
    fact::Fact,
    gate::{GateState, Outcome, State},
    hold::Hold,
    quorum::MemberName,
    reason::Reason,
    strategy::{
        contract::{Record, Strategy},
        known::{
            approval::{Approvals, Question},
            ask::Ask,
            seen::Seen,
            want::{Target, Want},
        },
    },
};

/// Takes a token in: what was asked is approved. What was approved for another target, or for a hand-over that is done, is dropped.
pub(crate) fn take_in<'a, S: Strategy>(want: &Want, view: &'a S::View) -> Cow<'a, S::View> {
    let seen: &Seen = view.as_ref();
    let Approvals { fresh, asked, granted } = &seen.approvals;
    let mut counts = granted.clone();
    if let Some(asked) = asked.as_ref().filter(|asked| *fresh && !granted.contains(asked)) {
        counts.push(asked.clone());
    }
    counts.retain(|question| {
        let moved = |from: &MemberName| seen.quorum.leader.known().is_some_and(|leader| leader != from);
        // What is wanted counts also while another upgrade is under way: it may take that one's place.
        let meant = [Some(&want.target), S::recorded(view).map(Record::target)];
        let same = meant.contains(&Some(&question.target)) || bug::active(Bug::ApprovalOfAnother);
        same && !question.hand_over.as_ref().is_some_and(moved)
    });
    if !fresh && counts == *granted {
        return Cow::Borrowed(view);
    }
    let approvals = Approvals { fresh: false, asked: asked.clone(), granted: counts };
    let mut view = view.clone();
    view.as_mut().approvals = approvals;
    Cow::Owned(view)
}

/// What to record and to show: the question, where the gate holds. It is about the upgrade that is under way, if that is `about` one, and
/// otherwise about the one that is wanted.
pub(crate) fn outlook(want: &Want, seen: &Seen, about: Option<&Target>, gates: &[GateState]) -> Approvals {
    if about.is_none() && gates.is_empty() {
        // There is nothing to do, so whatever was approved is done.
        return Approvals::default();
    }
    let target = about.unwrap_or(&want.target);
    let leader = || seen.quorum.leader.known().filter(|_| want.approval == Mode::BeforeEachHandOver).cloned();
    let state = gates.iter().find(|gate| gate.name == NAME).map(|gate| gate.state);
    let asked = match state {
        Some(State::Holding) => Some(Question { target: target.clone(), hand_over: leader() }),
        Some(State::Passed | State::Overridden | State::NotAsked) => None,
        // Nobody can tell at the moment: who is about to answer shall not answer in vain.
        Some(State::Unknown) | None => {
            let stands = |asked: &&Question| about.is_some() && asked.target == *target;
            seen.approvals.asked.as_ref().filter(stands).cloned()
        }
    };
    Approvals { fresh: false, asked, granted: seen.approvals.granted.clone() }
}

/// What is about to be done was approved.
pub(crate) fn approved(ask: &impl Ask) -> Outcome {
    let (seen, target) = (ask.seen(), ask.target());
    let hand_over = match (ask.want().approval, &seen.quorum.leader) {
        (Mode::None, _) => return Outcome::Pass,
        (Mode::BeforeUpgrade, _) => None,
        // Whose turn it is when an upgrade begins is not about to be disturbed yet.
        (Mode::BeforeEachHandOver, _) if ask.under_way().is_none() => return Outcome::Pass,
        (Mode::BeforeEachHandOver, Fact::Unknown(why)) => {
            let message = format!("whether leadership would have to move is not known: {why}");
            return Outcome::Unknown(Hold::new(Reason::LeaderUnknown, message));
        }
        (Mode::BeforeEachHandOver, Fact::Known(leader)) => {
            if leader != ask.member() || seen.quorum.size() == 1 {
                return Outcome::Pass;
            }
            Some(leader.clone())
        }
    };
    let question = Question { target: target.clone(), hand_over };
    let same = |granted: &&Question| {
        **granted == question
            || (bug::active(Bug::ApprovalOfAnother) && granted.hand_over.is_some() == question.hand_over.is_some())
    };
    if seen.approvals.granted.iter().any(|granted| same(&granted)) {
        return Outcome::Pass;
    }
    let message = match &question.hand_over {
        None => format!("{} from image {} is wanted and not approved yet", target.version, target.image),
        Some(leader) => {
            format!("{leader} leads and has to hand over on the way to {target}, and that is not approved yet")
        }
    };
    Outcome::Hold(Hold::new(Reason::AwaitingApproval, message))
}
