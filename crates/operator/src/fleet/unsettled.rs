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
    fleet::{Index, ItemId, Refused, Standing},
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
/// For so long after the last stamp it is remembered that it got no answer: longer than one that is refused rests.
const REMEMBERED: Duration = Duration::from_mins(10);
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
    /// What it should have got; none where this operator began, or began anew, since that was sent.
    image: Option<String>,
    /// What was said instead of an answer.
    why: String,
    /// Since when.
    since: Timestamp,
    /// How many writes in a row.
    tries: u32,
    /// When this operator gave up waiting for the last stamp; or when it began, where that was sent before.
    stamped_at: Timestamp,
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

    /// How many get no answer.
    pub fn unanswered(&self) -> usize {
        self.open().filter(|(_, one)| !one.refused).count()
    }

    /// Touches of some are refused.
    pub fn any_refused(&self) -> bool {
        self.open().any(|(_, one)| one.refused)
    }

    /// The last write to it was not answered, whether or not it is settled.
    pub fn has(&self, id: &ItemId) -> bool {
        self.0.contains_key(id)
    }

    /// One that was reserved before this operator began, or began anew, stays so. `refused`: not for want of an answer.
    pub fn leave(&mut self, one: &Reserved, why: String, refused: bool, now: Timestamp) {
        let left = Unanswered {
            uid: one.uid.clone(),
            image: None,
            why,
            since: now,
            tries: 1,
            stamped_at: now,
            touch_at: Some(later(now, PAUSE)),
            refused,
        };
        self.0.insert(ItemId::new(&one.namespace, &one.name), left);
    }

    /// Why nothing more can be written.
    pub fn hold(&self) -> Option<Hold> {
        said_of(self.open())
    }

    /// Why a ServiceImage that is deleted can't go yet. A policy that refuses touches keeps nothing: what it lets nobody write can't arrive late
    /// but from somebody who stood still all the while.
    pub fn keeps(&self) -> Option<Hold> {
        said_of(self.open().filter(|(_, one)| !one.refused))
    }

    /// A write was not answered. Nobody knows what became of it.
    fn note(&mut self, id: &ItemId, uid: &str, why: String, now: Timestamp) {
        let before = self.0.get(id).filter(|before| before.uid == uid);
        let tries = before.map_or(1, |before| before.tries.saturating_add(1));
        let touched = before.is_some_and(|before| before.touch_at.is_some());
        let pause = PAUSE.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(2).min(8))).min(LONGEST);
        let unanswered = Unanswered {
            uid: uid.to_owned(),
            image: before.and_then(|before| before.image.clone()),
            why,
            since: before.map_or(now, |before| before.since),
            tries,
            stamped_at: before.map_or(now, |before| before.stamped_at),
            touch_at: Some(if touched { later(now, pause) } else { now }),
            refused: false,
        };
        self.0.insert(id.clone(), unanswered);
    }

    /// A stamp with this image was not answered.
    pub fn note_stamp(&mut self, id: &ItemId, uid: &str, image: &str, why: String, now: Timestamp) {
        self.note(id, uid, why, now);
        if let Some(one) = self.0.get_mut(id) {
            (one.image, one.stamped_at) = (Some(image.to_owned()), now);
        }
    }

    /// A write to it was answered.
    pub fn answered(&mut self, id: &ItemId) {
        self.0.remove(id);
    }

    /// Forgets that stamps of some get no answer, where none is to be made, or none was for long.
    fn forget_settled(&mut self, index: &Index, now: Timestamp) {
        let lacks = |id: &ItemId, one: &Unanswered| {
            let same = index.item(id).is_some_and(|item| item.fence.uid == one.uid);
            let standing = index.standing(id).map(|(_, standing)| standing);
            let is_due = matches!(
                standing,
                Some(Standing::Blank | Standing::Fresh | Standing::Outdated | Standing::Astray | Standing::Refused)
            );
            same && (is_due || index.refusal(id).is_some()) && now < later(one.stamped_at, REMEMBERED)
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
            let image = one.image.clone().or_else(|| index.wanted(id).map(str::to_owned))?;
            Some(Refused { id: id.clone(), image, why: one.why.clone() })
        })
    }
}

/// What is to be said of some, by whoever has waited longest.
fn said_of<'a>(some: impl Iterator<Item = (&'a ItemId, &'a Unanswered)>) -> Option<Hold> {
    let (mut count, mut longest) = (0_usize, None::<(&ItemId, &Unanswered)>);
    for (id, one) in some {
        count = count.saturating_add(1);
        longest = longest.filter(|(_, other)| other.since <= one.since).or(Some((id, one)));
    }
    let (id, one) = longest?;
    let which = match count {
        1 => format!("{id}: a write to it is"),
        count => format!("{count} resources, such as {id}: a write to each is"),
    };
    let message = format!("{which} not answered, and may still be on its way; Windlass tries again: {}", one.why);
    Some(Hold::new(Reason::StampRefused, message))
}

fn later(from: Timestamp, pause: Duration) -> Timestamp {
    from.saturating_add(pause).unwrap_or(Timestamp::MAX)
}

/// Touches those whose time has come, whoever has waited longest first.
pub async fn settle(actor: Actor<'_>, fleet: &mut Fleet) -> Result<(), Error> {
    let begun = actor.context.clock.now();
    fleet.unsettled.forget_settled(&fleet.index, begun);
    let mut due: Vec<(Timestamp, ItemId, String)> = Vec::new();
    for (id, one) in &fleet.unsettled.0 {
        due.extend(one.touch_at.filter(|at| *at <= begun).map(|at| (at, id.clone(), one.uid.clone())));
    }
    due.sort_unstable();
    due.truncate(AT_ONCE);
    let touch = async |id: &ItemId, uid: &str| stamp::touch(actor, &fleet.target, &fleet.contract.pen, id, uid).await;
    let touched = join_all(due.iter().map(|(_, id, uid)| touch(id, uid))).await;
    for ((_, id, _), touched) in due.into_iter().zip(touched) {
        take_in(actor, fleet, id, touched).await?;
    }
    Ok(())
}

/// What became of a touch.
async fn take_in(
    actor: Actor<'_>,
    fleet: &mut Fleet,
    id: ItemId,
    touched: Result<Touched, Error>,
) -> Result<(), Error> {
    let now = actor.context.clock.now();
    let Some(mut one) = fleet.unsettled.0.get(&id).cloned() else { return Ok(()) };
    match touched {
        Ok(Touched::Moved | Touched::Gone) => {
            stamp::look(actor, fleet, &id).await?;
            fleet.index.release(&id);
            if one.image.is_none() {
                fleet.unsettled.answered(&id);
                return Ok(());
            }
            fleet.unsettled.0.insert(id.clone(), Unanswered { touch_at: None, ..one });
            fleet.unsettled.forget_settled(&fleet.index, now);
            fail_if_late(fleet, &id, now);
        }
        Ok(Touched::Refused(why)) => {
            let landed = later(one.stamped_at, actor.context.settings.longest_write);
            // What is refused now may have been let through a moment ago, and land.
            if now < landed && !bug::active(Bug::RefusalSettles) {
                fleet.unsettled.0.insert(id, Unanswered { why, touch_at: Some(landed), ..one });
                return Ok(());
            }
            fleet.refuse(&id, one.image.as_deref(), why.clone(), now);
            if one.image.is_some() {
                fleet.unsettled.answered(&id);
                return Ok(());
            }
            // It may be somebody else's stamp, and how long they may stand still before they send it nobody knows.
            fleet.index.unsettle(&id);
            let again = fleet.index.refusal(&id).map_or_else(|| later(now, LONGEST), |refusal| refusal.again);
            fleet.unsettled.0.insert(id, Unanswered { why, touch_at: Some(again), refused: true, ..one });
        }
        Err(error) => match error.class() {
            Class::Transient if !error.is_throttled() => {
                fleet.unsettled.note(&id, &one.uid, error.story(), now);
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
    let Some(Unanswered { image, why, since, touch_at, .. }) = fleet.unsettled.0.get(id).cloned() else { return };
    let in_time = fleet.index.time_until(id, since).is_none_or(|until| now < until);
    if in_time || bug::active(Bug::UnansweredForEver) {
        return;
    }
    fleet.refuse(id, image.as_deref(), why, now);
    if touch_at.is_none() {
        return;
    }
    fleet.index.unsettle(id);
    let again = fleet.index.refusal(id).map(|refusal| refusal.again);
    if let (Some(one), Some(again)) = (fleet.unsettled.0.get_mut(id), again) {
        one.touch_at = Some(again);
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use windlass_api::service_image::Reserved;
    use windlass_plan::fleet::ItemId;

    use super::Unsettled;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    /// Writes to one that take five seconds each and are not answered, until this time. When each was sent.
    fn unanswered(until: i64) -> (Unsettled, ItemId, Vec<i64>) {
        let (mut unsettled, id, mut sent) = (Unsettled::default(), ItemId::new("clinic", "a"), vec![0]);
        unsettled.note_stamp(&id, "1", "r/d:v2", "no answer".into(), at(5));
        while let Some(next) = unsettled.next().filter(|next| *next < at(until)) {
            sent.push(next.duration_since(at(0)).as_secs());
            unsettled.note(&id, "1", "no answer".into(), next + SignedDuration::from_secs(5));
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
        assert_eq!((unsettled.0[&id].since, unsettled.0[&id].stamped_at), (at(5), at(5)));
        assert_eq!(unsettled.reserved().len(), 1);
        let hold = unsettled.keeps().expect("a hold");
        assert!(hold.message.starts_with("clinic/a: a write to it is not answered"), "{}", hold.message);
    }

    #[test]
    fn a_policy_that_refuses_touches_keeps_nobody() {
        let reserved = |name: &str| Reserved { namespace: "clinic".into(), name: name.into(), uid: name.into() };
        let mut unsettled = Unsettled::default();
        unsettled.leave(&reserved("a"), "denied".into(), true, at(0));
        assert!(unsettled.keeps().is_none() && unsettled.hold().is_some());
        assert_eq!((unsettled.len(), unsettled.unanswered()), (1, 0));
        unsettled.leave(&reserved("b"), "no answer".into(), false, at(0));
        assert!(unsettled.keeps().is_some_and(|hold| hold.message.starts_with("clinic/b: a write to it")));
    }

    #[test]
    fn another_one_of_its_name_begins_anew_and_an_answer_ends_it() {
        let (mut unsettled, id, _) = unanswered(100);
        unsettled.note_stamp(&id, "2", "r/d:v2", "no answer".into(), at(105));
        assert_eq!((unsettled.0[&id].tries, unsettled.next()), (1, Some(at(105))));
        unsettled.answered(&id);
        assert!(unsettled.is_empty() && unsettled.reserved().is_empty());
    }
}
