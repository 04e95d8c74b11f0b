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
    rolling::{
        gates::ask::Ask,
        known::{
            approval::{Approvals, Question},
            record::Record,
            view::View,
            want::{Target, Want},
        },
    },
};

fn target<'a>(want: &'a Want, record: Option<&'a Record>) -> &'a Target {
    record.map_or(&want.target, |record| &record.target)
}

/// Takes a token in: what was asked is approved. What was approved for another target, or for a hand-over that is done, is dropped.
pub(crate) fn take_in<'a>(want: &Want, view: &'a View) -> Cow<'a, View> {
    let Approvals { fresh, asked, granted } = &view.approvals;
    let mut counts = granted.clone();
    if let Some(asked) = asked.as_ref().filter(|asked| *fresh && !granted.contains(asked)) {
        counts.push(asked.clone());
    }
    counts.retain(|question| {
        let moved = |from: &MemberName| view.quorum.leader.known().is_some_and(|leader| leader != from);
        // What is wanted counts also while another upgrade is under way: it may take that one's place.
        let meant = [Some(&want.target), view.record.as_ref().map(|record| &record.target)];
        let same = meant.contains(&Some(&question.target)) || bug::active(Bug::ApprovalOfAnother);
        same && !question.hand_over.as_ref().is_some_and(moved)
    });
    if !fresh && counts == *granted {
        return Cow::Borrowed(view);
    }
    let approvals = Approvals { fresh: false, asked: asked.clone(), granted: counts };
    Cow::Owned(View { approvals, ..view.clone() })
}

/// What to record and to show: the question, where the gate holds.
pub(crate) fn outlook(want: &Want, view: &View, record: Option<&Record>, gates: &[GateState]) -> Approvals {
    if record.is_none() && gates.is_empty() {
        // There is nothing to do, so whatever was approved is done.
        return Approvals::default();
    }
    let leader = || view.quorum.leader.known().filter(|_| want.approval == Mode::BeforeEachHandOver).cloned();
    let state = gates.iter().find(|gate| gate.name == NAME).map(|gate| gate.state);
    let asked = match state {
        Some(State::Holding) => Some(Question { target: target(want, record).clone(), hand_over: leader() }),
        Some(State::Passed | State::Overridden | State::NotAsked) => None,
        // Nobody can tell at the moment: who is about to answer shall not answer in vain.
        Some(State::Unknown) | None => {
            let stands = |asked: &&Question| record.is_some() && asked.target == *target(want, record);
            view.approvals.asked.as_ref().filter(stands).cloned()
        }
    };
    Approvals { fresh: false, asked, granted: view.approvals.granted.clone() }
}

/// What is about to be done was approved.
pub(crate) fn approved(ask: &Ask<'_>) -> Outcome {
    let target = target(ask.want, ask.record);
    let hand_over = match (ask.want.approval, &ask.view.quorum.leader) {
        (Mode::None, _) => return Outcome::Pass,
        (Mode::BeforeUpgrade, _) => None,
        // Whose turn it is when an upgrade begins is not about to be disturbed yet.
        (Mode::BeforeEachHandOver, _) if ask.record.is_none() => return Outcome::Pass,
        (Mode::BeforeEachHandOver, Fact::Unknown(why)) => {
            let message = format!("whether leadership would have to move is not known: {why}");
            return Outcome::Unknown(Hold::new(Reason::LeaderUnknown, message));
        }
        (Mode::BeforeEachHandOver, Fact::Known(leader)) => {
            if *leader != ask.victim.name || ask.view.quorum.size() == 1 {
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
    if ask.view.approvals.granted.iter().any(|granted| same(&granted)) {
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
