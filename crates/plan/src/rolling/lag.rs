//! Whether a member keeps up with the leader's log (H18).
//!
//! Positions are read one after the other, and some are echoes that are seconds old: in a busy quorum every follower is behind at every look,
//! however fast it is. So the leader's position at one moment is the mark, and whoever has reached it at a later look keeps up. The marks are
//! part of the record, or a restart would begin them anew. One that is within `max_lag` needs none.

use std::{borrow::Cow, time::Duration};

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    fact::Fact,
    quorum::{Member, MemberName},
    rolling::known::{mark::Mark, record::Record, step::Decision, view::View},
    strategy::known::want::Want,
};

/// So long after a mark was set, the next one is: every mark is a write.
const AGAIN: Duration = Duration::from_secs(5);

/// The same view, its record's marks brought up to what it shows.
pub(crate) fn take_in<'a>(want: &Want, view: &'a View, now: Timestamp) -> Cow<'a, View> {
    let Some(record) = &view.record else { return Cow::Borrowed(view) };
    let up = |name: &&MemberName| {
        view.pod(name).is_some_and(crate::Pod::is_up) && view.quorum.voter(name).is_some_and(Member::is_healthy)
    };
    let names = view.pods.iter().map(|pod| &pod.name).filter(up);
    let mark = |name: &MemberName| {
        let before = record.marks.get(name).copied();
        let mark = match (view.quorum.lag(name), position(view, view.quorum.leader.known()), position(view, Some(name)))
        {
            (Fact::Known(Some(lag)), Some(leader), Some(own)) if lag > want.max_lag => {
                Some(next(before, leader, own, now))
            }
            (Fact::Known(_), _, _) => None,
            // What was reached before still counts for a while.
            (Fact::Unknown(_), _, _) => before.map(|mark| mark.aged(now)),
        };
        Some((name.clone(), mark?))
    };
    let marks = names.filter_map(mark).collect();
    if record.marks == marks {
        return Cow::Borrowed(view);
    }
    Cow::Owned(View { record: Some(Record { marks, ..record.clone() }), ..view.clone() })
}

fn position(view: &View, name: Option<&MemberName>) -> Option<u64> {
    view.quorum.voter(name?)?.position.known().copied().flatten()
}

/// The mark of a member that is behind.
fn next(before: Option<Mark>, leader: u64, own: u64, now: Timestamp) -> Mark {
    let new = |reached| Mark { index: leader, since: now, reached };
    if bug::active(Bug::MarkNotAwaited) {
        return new(Some(now));
    }
    // A clock that was set back, or a log that is shorter than it was, begins anew.
    let Some(mark) = before.filter(|mark| mark.since <= now && mark.index <= leader) else { return new(None) };
    if own < mark.index || mark.since == now {
        return mark.aged(now);
    }
    if now.duration_since(mark.since).unsigned_abs() >= AGAIN {
        return new(Some(now));
    }
    Mark { reached: mark.reached.filter(|reached| *reached >= mark.since).or(Some(now)), ..mark }
}

/// Whether this member, which is further behind than it may be, keeps up all the same.
pub(crate) fn keeps_up(view: &View, name: &MemberName) -> bool {
    view.record.as_ref().is_some_and(|record| record.keeps_up(name)) && !bug::active(Bug::LagByDistance)
}

/// Looks again before the next mark is due, where there are any.
pub(crate) fn watch(decision: Decision, record: Option<&Record>) -> Decision {
    let marked = record.is_some_and(|record| !record.marks.is_empty());
    match decision {
        Decision::Wait { on, recheck } if marked => Decision::Wait { on, recheck: recheck.min(AGAIN) },
        Decision::Wait { .. } | Decision::Act(_) | Decision::Halt { .. } | Decision::Done => decision,
    }
}
