//! What a new leader of ours does about what its predecessor had begun.

use std::borrow::Cow;

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    rolling::{
        gates::list,
        handover::{begin, is_exhausted, target},
        known::{Rolling, record::Record, step::Step, view::View},
    },
    strategy::{known::want::Want, request},
};

/// What a new leader does about a hand-over that its predecessor had recorded and may never have sent (H6): it is finished, so that a late one
/// finds leadership where it wants it, unless nobody wants it any more. It counts as another attempt: take-overs have no end either.
pub fn finish(want: &Want, view: &View, now: Timestamp) -> Option<(Step, Record)> {
    let mut record = view.record.clone()?;
    let given_up = request::take_in::<Rolling>(want, view, Some(&mut record));
    let wanted = match &given_up {
        Some(given_up) if !bug::active(Bug::AbortedHandOverFinished) => {
            request::instead::<Rolling>(want, view, Some(&record), given_up)
        }
        Some(_) | None => Cow::Borrowed(want),
    };
    let asked = record.hand_over.clone().filter(|asked| !is_exhausted(asked))?;
    let from = view.pod(&asked.pod).filter(|from| view.quorum.leader.is(&from.name))?;
    if wanted.paused || wanted.target != record.target {
        return None;
    }
    // Its window may be closed by now.
    list::policy_objection(&wanted, view, from, now).ok()?;
    let to = target(&wanted, view, from).ok()?.name.clone();
    let step = begin(view, &mut record, from, to, asked.attempts.saturating_add(1), now);
    Some((step, record))
}
