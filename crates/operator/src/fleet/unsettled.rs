//! Writes to resources that were not answered. Each may have happened, or may still: until a touch of it has landed the resource stays
//! reserved and nothing is decided about it (H1). The others go on, and one that is never answered is that one's failure, when it has had the
//! time that one may be on its way (E4).

use std::{collections::BTreeMap, time::Duration};

use futures::future::join_all;
use jiff::Timestamp;
use windlass_api::service_image::Reserved;
use windlass_plan::{
    Hold, Reason,
    bug::{self, Bug},
    fleet::{Index, ItemId, Refused},
};

use super::{
    Fleet,
    stamp::{self, Touched},
};
use crate::{
    actor::Actor,
    error::{Class, Error},
};

/// How long after the first one it is touched again; twice as long each time after that,
const PAUSE: Duration = Duration::from_secs(2);
/// and at the most.
const LONGEST: Duration = Duration::from_secs(15);
/// So many are touched at once, and between two looks: each may take as long as a write may. After so many stamps without an answer the rest
/// of a batch is not sent.
pub const AT_ONCE: usize = 8;

/// The resources whose last write was not answered.
#[derive(Debug, Default)]
pub struct Unsettled(BTreeMap<ItemId, Unanswered>);

/// What is known of one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unanswered {
    /// Which of that name.
    uid: String,
    /// What was said instead of an answer.
    why: String,
    /// Since when.
    since: Timestamp,
    /// How many writes in a row.
    tries: u32,
    /// When this operator sent the last stamp; none where that was before it began, or began anew.
    stamped_at: Option<Timestamp>,
    /// When it is touched; none once a touch has landed. Then it is known that stamps get no answer, until one does.
    touch_at: Option<Timestamp>,
    /// Touches of it are answered, and refused.
    refused: bool,
}

impl Unsettled {
    /// Those of them that stay reserved.
    fn open(&self) -> impl Iterator<Item = (&ItemId, &Unanswered)> {
        self.0.iter().filter(|(_, one)| one.touch_at.is_some())
    }

    /// How many stay reserved.
    pub fn len(&self) -> usize {
        self.open().count()
    }

    /// Those that stay reserved.
    pub fn ids(&self) -> impl Iterator<Item = &ItemId> {
        self.open().map(|(id, _)| id)
    }

    /// None stays reserved.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One that was reserved before this operator began, or began anew, stays so. `refused`: not for want of an answer.
    pub fn leave(&mut self, one: &Reserved, why: String, refused: bool, now: Timestamp) {
        let touch_at = Some(later(now, PAUSE));
        let left = Unanswered { uid: one.uid.clone(), why, since: now, tries: 1, stamped_at: None, touch_at, refused };
        self.0.insert(ItemId::new(&one.namespace, &one.name), left);
    }

    /// Why nothing more can be written, or a ServiceImage that is deleted can't go yet. A policy that refuses touches keeps nothing: what it lets
    /// nobody write can't arrive late but from somebody who stood still all the while.
    pub fn hold(&self) -> Option<Hold> {
        let unanswered = || self.open().filter(|(_, one)| !one.refused);
        let (id, one) = unanswered().min_by_key(|(_, one)| one.since)?;
        let which = match unanswered().count() {
            1 => format!("{id}: a write to it is"),
            count => format!("{count} resources, such as {id}: a write to each is"),
        };
        let message = format!("{which} not answered, and may still be on its way; Windlass tries again: {}", one.why);
        Some(Hold::new(Reason::StampRefused, message))
    }

    /// A write that was sent then was not answered. Nobody knows what became of it.
    fn note(&mut self, id: &ItemId, uid: &str, why: String, sent: Timestamp, now: Timestamp) {
        let before = self.0.get(id).filter(|before| before.uid == uid);
        let tries = before.map_or(1, |before| before.tries.saturating_add(1));
        let touched = before.is_some_and(|before| before.touch_at.is_some());
        let pause = PAUSE.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(2).min(8))).min(LONGEST);
        let unanswered = Unanswered {
            uid: uid.to_owned(),
            why,
            since: before.map_or(sent, |before| before.since),
            tries,
            stamped_at: before.and_then(|before| before.stamped_at),
            touch_at: Some(if touched { later(now, pause) } else { now }),
            refused: false,
        };
        self.0.insert(id.clone(), unanswered);
    }

    /// The same of a stamp.
    pub fn note_stamp(&mut self, id: &ItemId, uid: &str, why: String, sent: Timestamp, now: Timestamp) {
        self.note(id, uid, why, sent, now);
        if let Some(one) = self.0.get_mut(id) {
            one.stamped_at = Some(now);
        }
    }

    /// A write to it was answered.
    pub fn answered(&mut self, id: &ItemId) {
        self.0.remove(id);
    }

    /// Forgets that stamps of some get no answer, where none is to be made.
    fn forget_settled(&mut self, index: &Index) {
        let lacks = |id: &ItemId, one: &Unanswered| {
            let item = index.item(id).filter(|item| item.fence.uid == one.uid);
            item.is_some_and(|item| item.image.as_deref() != index.wanted(id))
        };
        self.0.retain(|id, one| one.touch_at.is_some() || lacks(id, one));
    }

    /// What stays reserved.
    pub fn reserved(&self) -> Vec<Reserved> {
        if bug::active(Bug::UnsettledForgotten) {
            return Vec::new();
        }
        let reserved = |(id, one): (&ItemId, &Unanswered)| Reserved {
            namespace: id.namespace().to_owned(),
            name: id.name().to_owned(),
            uid: one.uid.clone(),
        };
        self.open().map(reserved).collect()
    }

    /// When the next one is touched, if one is.
    pub fn next(&self) -> Option<Timestamp> {
        self.0.values().filter_map(|one| one.touch_at).min()
    }

    /// Those of whom more than one write was not answered, and that are not named yet.
    pub fn named<'a>(&'a self, index: &'a Index) -> impl Iterator<Item = Refused> + 'a {
        let again = self.0.iter().filter(|(id, one)| one.tries > 1 && index.refusal(id).is_none());
        again.filter_map(|(id, one)| {
            Some(Refused { id: id.clone(), image: index.wanted(id)?.to_owned(), why: one.why.clone() })
        })
    }
}

fn later(from: Timestamp, pause: Duration) -> Timestamp {
    from.saturating_add(pause).unwrap_or(Timestamp::MAX)
}

/// Touches those whose time has come, whoever has waited longest first.
pub async fn settle(actor: Actor<'_>, fleet: &mut Fleet) -> Result<(), Error> {
    let clock = &actor.context.clock;
    let begun = clock.now();
    fleet.unsettled.forget_settled(&fleet.index);
    let mut due: Vec<(Timestamp, ItemId, String)> = Vec::new();
    for (id, one) in &fleet.unsettled.0 {
        due.extend(one.touch_at.filter(|at| *at <= begun).map(|at| (at, id.clone(), one.uid.clone())));
    }
    due.sort_unstable();
    due.truncate(AT_ONCE);
    let touch = async |id: &ItemId, uid: &str| stamp::touch(actor, &fleet.target, &fleet.contract.pen, id, uid).await;
    let touched = join_all(due.iter().map(|(_, id, uid)| touch(id, uid))).await;
    for ((_, id, _), touched) in due.into_iter().zip(touched) {
        take_in(actor, fleet, id, touched, begun).await?;
    }
    Ok(())
}

/// What became of a touch.
async fn take_in(
    actor: Actor<'_>,
    fleet: &mut Fleet,
    id: ItemId,
    touched: Result<Touched, Error>,
    sent: Timestamp,
) -> Result<(), Error> {
    let now = actor.context.clock.now();
    let Some(mut one) = fleet.unsettled.0.get(&id).cloned() else { return Ok(()) };
    match touched {
        Ok(Touched::Moved | Touched::Gone) => {
            stamp::look(actor, fleet, &id).await?;
            fleet.index.release(&id);
            if one.stamped_at.is_none() {
                fleet.unsettled.answered(&id);
                return Ok(());
            }
            fleet.unsettled.0.insert(id.clone(), Unanswered { touch_at: None, ..one });
            fleet.unsettled.forget_settled(&fleet.index);
            fail_if_late(fleet, &id, now);
        }
        Ok(Touched::Refused(why)) => {
            let landed = one.stamped_at.map(|at| later(at, actor.context.settings.longest_write));
            // What is refused now may have been let through a moment ago, and land.
            if let Some(landed) = landed.filter(|landed| now < *landed && !bug::active(Bug::RefusalSettles)) {
                fleet.unsettled.0.insert(id, Unanswered { why, touch_at: Some(landed), ..one });
                return Ok(());
            }
            fleet.refuse(&id, why.clone(), now);
            if landed.is_some() {
                fleet.unsettled.answered(&id);
                return Ok(());
            }
            // Somebody else's stamp, and how long they may stand still nobody knows.
            fleet.index.unsettle(&id);
            let again = fleet.index.refusal(&id).map_or_else(|| later(now, LONGEST), |refusal| refusal.again);
            fleet.unsettled.0.insert(id, Unanswered { why, touch_at: Some(again), refused: true, ..one });
        }
        Err(error) => match error.class() {
            Class::Transient if !error.is_throttled() => {
                fleet.unsettled.note(&id, &one.uid, error.story(), sent, now);
                fail_if_late(fleet, &id, now);
            }
            // Not at this moment.
            Class::Transient | Class::Stale => {
                one.touch_at = Some(later(now, PAUSE));
                fleet.unsettled.0.insert(id, one);
            }
            Class::Lost | Class::Refused => return Err(error),
        },
    }
    Ok(())
}

/// One that was given no answer for as long as one may be on its way has failed. It stays reserved where that is still to be settled.
fn fail_if_late(fleet: &mut Fleet, id: &ItemId, now: Timestamp) {
    let Some(one) = fleet.unsettled.0.get(id) else { return };
    let Some(deadline) = fleet.index.deadline(id).filter(|_| !bug::active(Bug::UnansweredForEver)) else { return };
    if now < later(one.since, deadline) {
        return;
    }
    let open = one.touch_at.is_some();
    let why = one.why.clone();
    fleet.refuse(id, why, now);
    if open {
        fleet.index.unsettle(id);
        let again = fleet.index.refusal(id).map(|refusal| refusal.again);
        if let (Some(one), Some(again)) = (fleet.unsettled.0.get_mut(id), again) {
            one.touch_at = Some(again);
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use windlass_plan::fleet::ItemId;

    use super::Unsettled;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    /// Writes to one that take five seconds each and are not answered, until this time. When each was sent.
    fn unanswered(until: i64) -> (Unsettled, ItemId, Vec<i64>) {
        let (mut unsettled, id, mut sent) = (Unsettled::default(), ItemId::new("clinic", "a"), vec![0]);
        unsettled.note_stamp(&id, "1", "no answer".into(), at(0), at(5));
        while let Some(next) = unsettled.next().filter(|next| *next < at(until)) {
            sent.push(next.duration_since(at(0)).as_secs());
            unsettled.note(&id, "1", "no answer".into(), next, next + SignedDuration::from_secs(5));
        }
        (unsettled, id, sent)
    }

    #[test]
    fn one_that_is_not_answered_is_touched_at_once_and_then_less_often() {
        let (_, _, sent) = unanswered(100);
        assert_eq!(sent, [0, 5, 12, 21, 34, 54, 74, 94]);
    }

    #[test]
    fn it_stays_reserved_and_says_since_when_it_waits() {
        let (unsettled, id, _) = unanswered(50);
        assert_eq!((unsettled.0[&id].since, unsettled.0[&id].stamped_at), (at(0), Some(at(5))));
        assert_eq!(unsettled.reserved().len(), 1);
        let hold = unsettled.hold().expect("a hold");
        assert!(hold.message.starts_with("clinic/a: a write to it is not answered"), "{}", hold.message);
    }

    #[test]
    fn another_one_of_its_name_begins_anew_and_an_answer_ends_it() {
        let (mut unsettled, id, _) = unanswered(100);
        unsettled.note_stamp(&id, "2", "no answer".into(), at(100), at(105));
        assert_eq!((unsettled.0[&id].tries, unsettled.next()), (1, Some(at(105))));
        unsettled.answered(&id);
        assert!(unsettled.is_empty() && unsettled.reserved().is_empty());
    }
}
