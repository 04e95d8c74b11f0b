//! What to change next in a fleet, and what to say of it.
//!
//! ```text
//!   every tier:  is it done?  (everything above is, everybody up to date, its shares soaked, its analyses content)
//!   the highest priority that is not done is the current one (E3)
//!     trouble there or above it ─▶ Halt           a failure that halts, too many failures, a contested field, an image nobody can pull
//!     gates of each of its tiers ─▶ Wait          paused, approval, window, whatever was asked elsewhere
//!     the share that goes first, limits, lanes ─▶ the next batch
//!   beside all that: what has no image yet gets one (E5)
//! ```

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use super::{
    diagnosis::Diagnosis,
    gates::{self, are_content, before_done, before_next},
    index::{Index, Room, Standing, TierIndex},
    item::{Fence, ItemId, Progress},
    record::{Record, TierRecord},
    refusal::Refusal,
    view::View,
    want::{Tier, TierName, Want},
};
use crate::{
    bug::{self, Bug},
    fact::Fact,
    gate::GateState,
    hold::Hold,
    reason::Reason,
};

/// A stamp that was changed back within this time is one more round of the same fight; later, it is another one.
const ONE_FIGHT: Duration = Duration::from_hours(1);

/// One write: this image on this resource, as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamping {
    /// Which.
    pub id: ItemId,
    /// As it was seen.
    pub fence: Fence,
    /// What it gets.
    pub image: String,
    /// For how many times within a while.
    pub round: u32,
}

/// Where a fleet stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything is up to date.
    Done,
    /// Resources are being changed.
    Going,
    /// Nothing more can be changed now.
    Wait(Hold),
    /// Nothing more is changed until a person does something.
    Halt(Hold),
}

/// Where a tier stands, in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierReport {
    /// Which.
    pub name: TierName,
    /// Its priority.
    pub priority: i64,
    /// It is its turn, and it is not done.
    pub in_progress: bool,
    /// How many have served and are ours to change.
    pub total: usize,
    /// Up to date.
    pub done: usize,
    /// On their way.
    pub in_flight: usize,
    /// Not up to date yet, on their way or not.
    pub remaining: usize,
    /// Failed, which halts.
    pub failed: usize,
    /// Failed, which does not.
    pub ignored: usize,
    /// Left alone.
    pub manual: usize,
    /// Another ServiceImage has them.
    pub taken: usize,
    /// Have never served.
    pub new: usize,
    /// Why its next resource is not changed.
    pub hold: Option<Hold>,
}

/// A resource that can't be given its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which.
    pub id: ItemId,
    /// What it should have got.
    pub image: String,
    /// What the API server said.
    pub why: String,
}

/// So many of them are named.
pub const NAMED: usize = 20;

/// What to do, what to keep and what to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What to write now: at most a batch.
    pub stamps: Vec<Stamping>,
    /// Where it stands.
    pub verdict: Verdict,
    /// What to keep.
    pub record: Record,
    /// Highest priority first.
    pub tiers: Vec<TierReport>,
    /// Where the gates of the tiers stand whose turn it is: these are the ones whose word counts now.
    pub gates: Vec<GateState>,
    /// The gate whose Job is all that is lacking: to be made now.
    pub start: Option<String>,
    /// Some of those that can't be given their image.
    pub refused: Vec<Refused>,
}

/// What to do now.
pub fn decide(want: &Want, view: &View<'_>, now: Timestamp) -> Plan {
    let tiers = want.by_priority();
    let mut record = carry_on(&tiers, view, now);
    for tier in &tiers {
        conclude(tier, view, &mut record, want, now);
    }
    let pending = |tier: &&&Tier| record.tiers.get(&tier.name).is_none_or(|kept| !kept.complete);
    let priority = tiers.iter().find(pending).map(|tier| tier.priority);
    note_priority(&mut record, view.record, priority, now);

    let mut stamps = new_ones(&tiers, view, &record, want.batch, now);
    let (mut listed, mut holds, mut start) = (Vec::new(), BTreeMap::new(), None);
    let (mut verdict, mut begins) = (Verdict::Done, false);
    if let Some(priority) = priority {
        let above = tiers.iter().filter(|tier| tier.priority >= priority);
        let trouble = above.clone().find_map(|tier| trouble(tier, view, &record).map(|hold| (tier, hold)));
        let due = |tier: &&&Tier| tier.priority == priority || bug::active(Bug::TierOrderIgnored);
        let mut room = Room::of(view.index.lanes());
        for tier in tiers.iter().filter(due) {
            let Some(kept) = record.tiers.get_mut(&tier.name).filter(|kept| !kept.complete) else { continue };
            kept.started_at.get_or_insert(now);
            if trouble.is_some() {
                continue;
            }
            let left = want.batch.saturating_sub(stamps.len());
            let asked = before_next(tier, want, view, kept, record.hooks_passed, now);
            if bug::active(Bug::LanesOfEachTier) {
                room = Room::of(view.index.lanes());
            }
            match next(tier, view, kept, (left, &mut room), &asked, now) {
                Ok(more) => {
                    begins |= !more.is_empty();
                    stamps.extend(more);
                }
                Err(hold) => {
                    holds.insert(tier.name.clone(), hold);
                }
            }
            start = start.or_else(|| gates::lacking(&asked, view));
            gates::list(&mut listed, asked);
        }
        if begins {
            record.hooks_passed = true;
            record.under_way.get_or_insert(now);
        }
        verdict = match trouble {
            Some((tier, hold)) => {
                holds.insert(tier.name.clone(), hold.clone());
                Verdict::Halt(hold)
            }
            None => {
                match tiers.iter().filter(|tier| tier.priority == priority).find_map(|tier| holds.get(&tier.name)) {
                    Some(hold) if stamps.is_empty() => waits(hold.clone()),
                    Some(_) | None => Verdict::Going,
                }
            }
        };
    } else if record.under_way.is_some() {
        let asked = before_done(view, want, now);
        match gates::objection(&asked).and_then(|gate| gate.hold.clone()) {
            Some(hold) => verdict = waits(hold),
            None => record.under_way = None,
        }
        start = gates::lacking(&asked, view);
        gates::list(&mut listed, asked);
    }
    if verdict == Verdict::Done
        && let Some(hold) = taken(&tiers, view)
    {
        verdict = Verdict::Halt(hold);
    }
    let named = |(id, refusal): (&ItemId, &Refusal)| Refused {
        id: id.clone(),
        image: refusal.image.clone(),
        why: refusal.why.clone(),
    };
    let refused = view.index.refusals().take(NAMED).map(named).collect();
    let tiers =
        tiers.iter().map(|tier| report(tier, view.index, &record, priority, holds.remove(&tier.name))).collect();
    Plan { stamps, verdict, record, tiers, gates: listed, start, refused }
}

/// What another ServiceImage has is not ours to change, and what is not changed is not done.
fn taken(tiers: &[&Tier], view: &View<'_>) -> Option<Hold> {
    let taken =
        || tiers.iter().filter_map(|tier| view.index.tier(&tier.name)).flat_map(|tier| tier.of(Standing::Taken));
    let id = taken().next()?;
    let by = view.index.item(id).and_then(|item| item.taken_by.clone()).unwrap_or_default();
    let message = match taken().count() {
        1 => format!("{id} belongs to ServiceImage {by}, which is older"),
        count => format!("{id}{} belong to ServiceImage {by}, which is older", others(count)),
    };
    Some(Hold::new(Reason::ResourcesTaken, message))
}

fn waits(hold: Hold) -> Verdict {
    if hold.reason.needs_a_person() { Verdict::Halt(hold) } else { Verdict::Wait(hold) }
}

/// What was recorded, for what is wanted now: another image begins anew, and a new tier takes the image that most have. Where nobody has any,
/// there is no old image, and new ones wait until the tier is done.
fn carry_on(tiers: &[&Tier], view: &View<'_>, now: Timestamp) -> Record {
    let carry = |tier: &&Tier| {
        let before = view.record.tiers.get(&tier.name);
        let mut kept = match before {
            Some(before) if before.image == tier.image => {
                // A release that called it otherwise had begun it: a tier that was never begun needs no soak and no analysis to be done.
                let turn = view.record.current.filter(|(priority, _)| *priority == tier.priority && !before.complete);
                let turn = turn.filter(|_| !bug::active(Bug::BegunForgotten));
                TierRecord { started_at: before.started_at.or(turn.map(|(_, since)| since)), ..before.clone() }
            }
            Some(before) => TierRecord::begin(&tier.image, &before.new_image),
            None => TierRecord::begin(&tier.image, ""),
        };
        if kept.new_image.is_empty() {
            // The tier's own old image; or what the others have, for its new one comes after theirs (E3, E5).
            let usual = view.index.tier(&tier.name).and_then(TierIndex::usual_image);
            usual.or_else(|| view.index.usual_image()).unwrap_or_default().clone_into(&mut kept.new_image);
        }
        if view.approve && kept.asked {
            kept.approved = true;
        }
        kept.asked = false;
        (tier.name.clone(), kept)
    };
    let retried_at = if view.retry { Some(now) } else { view.record.retried_at };
    let known = |tier: &&Tier| view.record.tiers.get(&tier.name).is_some_and(|before| before.image == tier.image);
    let hooks_passed = view.record.hooks_passed && tiers.iter().all(known);
    Record { tiers: tiers.iter().map(carry).collect(), retried_at, hooks_passed, ..view.record.clone() }
}

/// Whether a tier is done, or not any more (E7). One below an unfinished one is not, also where it has nothing to do: its new resources would
/// get the new image before its time (E3, E5).
fn conclude(tier: &Tier, view: &View<'_>, record: &mut Record, want: &Want, now: Timestamp) {
    let unfinished = |above: &&Tier| record.tiers.get(&above.name).is_none_or(|kept| !kept.complete);
    let waits = want.tiers.iter().filter(|above| above.priority > tier.priority).any(|above| unfinished(&above));
    let (Some(index), Some(kept)) = (view.index.tier(&tier.name), record.tiers.get_mut(&tier.name)) else { return };
    if kept.complete {
        let late = if bug::active(Bug::LateOneUnnoticed) { 0 } else { index.count(Standing::Fresh) };
        if index.behind() > 0 || late > 0 {
            kept.complete = false;
            kept.started_at = Some(now);
        }
        return;
    }
    if waits && !bug::active(Bug::TierBelowCompletes) {
        return;
    }
    let begun = kept.started_at.is_some();
    let allowed = tier.failures_allowed(index.total(), kept.shares_done < tier.canary.len());
    let content = || are_content(tier, view, want, now);
    let soaked = kept.shares_done >= tier.canary.len();
    if index.remaining() == 0 && failures(tier, index) <= allowed && (!begun || (soaked && content())) {
        // It is proven: who has never served follows, which nobody waits for beyond the write (H38), and then it is done.
        kept.new_image.clone_from(&tier.image);
        let follow = index.count(Standing::Fresh).saturating_add(index.count(Standing::Receiving));
        kept.complete = follow == 0 || bug::active(Bug::LateOneUnnoticed);
        kept.shares_done = tier.canary.len();
        kept.well_since = None;
    }
    if bug::active(Bug::NewImageTooEarly) {
        kept.new_image.clone_from(&tier.image);
    }
}

fn note_priority(record: &mut Record, before: &Record, priority: Option<i64>, now: Timestamp) {
    let same = before.current.filter(|(was, _)| Some(*was) == priority);
    record.current = priority.map(|priority| same.unwrap_or((priority, now)));
    if before.current.is_some() != priority.is_some() || before.changed_at.is_none() {
        record.changed_at = Some(now);
    }
}

/// What has no image yet gets its tier's, at any time: nobody is disturbed. And who has never served follows when the image is proven (E5), or
/// comes late with another one (E7).
fn new_ones(tiers: &[&Tier], view: &View<'_>, record: &Record, batch: usize, now: Timestamp) -> Vec<Stamping> {
    let of = |tier: &&&Tier| {
        let index = view.index.tier(&tier.name)?;
        let kept = record.tiers.get(&tier.name)?;
        let (known, proven) = (!kept.new_image.is_empty(), kept.new_image == tier.image);
        let fresh = index.of(Standing::Fresh).filter(move |_| proven);
        Some((index.of(Standing::Blank).filter(move |_| known).chain(fresh), kept))
    };
    let all =
        tiers.iter().filter_map(|tier| of(&tier)).flat_map(|(ids, kept)| ids.map(move |id| (id, &kept.new_image)));
    all.filter_map(|(id, image)| stamping(view, id, image, now)).take(batch).collect()
}

fn stamping(view: &View<'_>, id: &ItemId, image: &str, now: Timestamp) -> Option<Stamping> {
    let item = view.index.item(id)?;
    let again = item.stamp.as_ref().filter(|stamp| {
        let forgiven = view.index.terms().retried_at.is_some_and(|retried| stamp.at <= retried);
        let recent = stamp.at.saturating_add(ONE_FIGHT).is_ok_and(|until| now < until);
        stamp.image == image && recent && !forgiven
    });
    let round = again.map_or(1, |stamp| stamp.round.saturating_add(1));
    Some(Stamping { id: id.clone(), fence: item.fence.clone(), image: image.to_owned(), round })
}

/// What stops everything until a person looks.
fn trouble(tier: &Tier, view: &View<'_>, record: &Record) -> Option<Hold> {
    let index = view.index.tier(&tier.name)?;
    let kept = record.tiers.get(&tier.name)?;
    if let Some(id) = index.of(Standing::Contested).next() {
        let by = view.index.item(id).and_then(|item| item.set_by.clone()).unwrap_or_else(|| "somebody else".to_owned());
        let others = others(index.count(Standing::Contested));
        let removed = view.index.item(id).is_some_and(|item| item.image.as_ref().is_none_or(String::is_empty));
        let did = if removed { "removed it" } else { "set it back" };
        let message = format!("{}: the image of {id}{others} was set again and again, and {by} {did}", tier.name);
        return Some(Hold::new(Reason::FieldContested, message));
    }
    let said = |id: &ItemId| view.index.refusal(id).map(|refusal| format!("can't be given its image: {}", refusal.why));
    let words = |id: &ItemId| match view.index.item(id).map(|item| &item.progress) {
        Some(Fact::Known(Progress::Failed(why))) => format!("failed: {why}"),
        Some(Fact::Unknown(why)) => format!("was not up to date in time, for all that is known: {why}"),
        Some(Fact::Known(Progress::Moving { .. } | Progress::Ready)) | None => {
            format!(
                "was not up to date within {:#}",
                jiff::SignedDuration::try_from(tier.progress_deadline).unwrap_or_default()
            )
        }
    };
    let cause = cause(view, tier);
    if let Some(id) = index.of(Standing::Failed).next() {
        let others = others(index.count(Standing::Failed));
        if let Some(refused) = said(id) {
            let message = format!("{}: {id}{others} {refused}", tier.name);
            let again = view.index.refusal(id).map(|refusal| refusal.again);
            return Some(Hold::new(Reason::StampRefused, message).until(again));
        }
        let message = format!("{}: {id}{others} {}{cause}", tier.name, words(id));
        return Some(Hold::new(Reason::ResourceFailed, message));
    }
    if kept.complete {
        return None;
    }
    let in_canary = kept.shares_done < tier.canary.len();
    let diagnosed = view.diagnoses.get(&tier.name);
    if let Some(diagnosis) = diagnosed.filter(|diagnosis| is_hopeless(diagnosis, tier, view.index, index, in_canary)) {
        return Some(Hold::new(diagnosis.reason, format!("{}: {}", tier.name, diagnosis.message)));
    }
    let allowed = tier.failures_allowed(index.total(), in_canary);
    let ignored = failures(tier, index);
    let id = index.of(Standing::Ignored).next().filter(|_| ignored > allowed && !bug::active(Bug::FailureIgnored))?;
    let words = said(id).unwrap_or_else(|| words(id));
    let message = format!("{}: {ignored} resources failed, and {allowed} may; {id} {words}{cause}", tier.name);
    Some(Hold::new(Reason::TooManyFailures, message))
}

/// How many failed that don't halt by themselves. Who can't be given the image says nothing of the image: it counts only where people say how
/// many may fail, for one resource that can't be written shall harm nobody else.
fn failures(tier: &Tier, index: &TierIndex) -> usize {
    let refused = if tier.max_failures.is_some() { 0 } else { index.refused() };
    index.count(Standing::Ignored).saturating_sub(refused)
}

/// What the pods of a tier say, to be added to a message.
fn cause(view: &View<'_>, tier: &Tier) -> String {
    view.diagnoses.get(&tier.name).map(|diagnosis| format!("; {}", diagnosis.message)).unwrap_or_default()
}

/// Waiting for those that are on their way is pointless, as far as that is still so: they count as failed before their time, and what a
/// failure would do, this does (E4, E12).
fn is_hopeless(diagnosis: &Diagnosis, tier: &Tier, fleet: &Index, index: &TierIndex, in_canary: bool) -> bool {
    let ids = &diagnosis.hopeless;
    let underway = |id: &ItemId| {
        let standing = fleet.standing(id).filter(|(name, _)| **name == tier.name).map(|(_, standing)| standing);
        matches!(standing, Some(Standing::Moving | Standing::Failed | Standing::Ignored))
    };
    let well = index.count(Standing::Done) > 0;
    if ids.is_empty() || !ids.iter().all(underway) || well || bug::active(Bug::HopelessIgnored) {
        return false;
    }
    let halts = ids.iter().filter_map(|id| fleet.item(id)).any(|item| item.failure_halts);
    let alike = index.count(Standing::Moving).saturating_add(index.count(Standing::Ignored));
    halts || alike > tier.failures_allowed(index.total(), in_canary)
}

fn others(count: usize) -> String {
    match count.saturating_sub(1) {
        0 => String::new(),
        1 => " and one more".to_owned(),
        more => format!(" and {more} more"),
    }
}

/// The next ones of a tier whose turn it is, or why there are none.
fn next(
    tier: &Tier,
    view: &View<'_>,
    kept: &mut TierRecord,
    (batch, lanes): (usize, &mut Room<'_>),
    asked: &[GateState],
    now: Timestamp,
) -> Result<Vec<Stamping>, Hold> {
    let Some(index) = view.index.tier(&tier.name) else { return Ok(Vec::new()) };
    // A share that is well soaks on, whatever else is waited for.
    let share = share(tier, index, kept, &cause(view, tier), now);
    if let Some(hold) = gates::objection(asked).and_then(|gate| gate.hold.clone()) {
        return Err(hold);
    }
    if index.is_mute() && !bug::active(Bug::ContractNotAwaited) {
        return Err(mute(tier, view, index));
    }
    if let Some(hold) = silent(tier, view, index) {
        return Err(hold);
    }
    let room = share?.min(batch);
    let (outdated, in_flight) = (index.count(Standing::Outdated), index.in_flight());
    let limit = tier.max_in_flight.map(|amount| amount.of(index.total()).max(1));
    let limit = limit.filter(|_| !bug::active(Bug::InFlightUnlimited));
    // Those that go astray are on their way and counted already.
    let mut taken: Vec<ItemId> = index.of(Standing::Astray).take(room).cloned().collect();
    let room = room.saturating_sub(taken.len());
    let room = limit.map_or(room, |limit| room.min(limit.saturating_sub(in_flight)));
    taken.extend(index.take(room, lanes));
    let stamps: Vec<Stamping> = taken.iter().filter_map(|id| stamping(view, id, &tier.image, now)).collect();
    if !stamps.is_empty() || batch == 0 {
        return Ok(stamps);
    }
    if outdated > 0 {
        let full = limit.filter(|limit| in_flight >= *limit);
        let full = full.map_or_else(
            // The tier itself has room: each of them waits for its own node, zone or whatever spec.spread names.
            || {
                let waits = index.of(Standing::Outdated).next().and_then(|id| Some((id, &view.index.item(id)?.lane)));
                let waits = waits.map(|(id, lane)| format!(", such as {id} in {}", lane.0)).unwrap_or_default();
                format!(
                    "{in_flight} are on their way, and maxInFlight of spec.spread lets none of the others begin{waits}"
                )
            },
            |limit| format!("{in_flight} are on their way, and maxInFlight of the tier is {limit}"),
        );
        let message = format!("{}: {full}; {outdated} are to come{}", tier.name, cause(view, tier));
        return Err(Hold::new(Reason::InFlightLimit, message).until(index.next_due()));
    }
    Err(waits_for(tier, view, index))
}

/// Nobody of a tier says what could be judged: whether its image works would never be known (X1).
fn mute(tier: &Tier, view: &View<'_>, index: &TierIndex) -> Hold {
    let told = index.counted().find_map(|id| Some((id, view.index.item(id)?.progress.why()?)));
    let told = told.map(|(id, why)| format!(", such as {id}: {why}")).unwrap_or_default();
    let message = format!("{}: none of its {} resources says how it is{told}", tier.name, index.total());
    Hold::new(Reason::ContractNotSeen, message)
}

/// Somebody has the image, and will never say how it is (X1).
fn silent(tier: &Tier, view: &View<'_>, index: &TierIndex) -> Option<Hold> {
    let id = index.of(Standing::Silent).next()?;
    let why = view.index.item(id).and_then(|item| item.progress.why()).unwrap_or("nobody knows why");
    let others = others(index.count(Standing::Silent));
    let message = format!("{}: whether {id}{others} got up to date can't be told: {why}", tier.name);
    Some(Hold::new(Reason::ResourceUnknown, message))
}

/// What a tier waits for whose resources all have their image.
fn waits_for(tier: &Tier, view: &View<'_>, index: &TierIndex) -> Hold {
    if let Some(id) = index.of(Standing::Unclear).next() {
        let why = view.index.item(id).and_then(|item| item.manual.why()).unwrap_or("nobody knows why");
        let others = others(index.count(Standing::Unclear));
        let message = format!("{}: whether {id}{others} may be changed can't be told: {why}", tier.name);
        return Hold::new(Reason::ResourceUnknown, message);
    }
    if let Some(id) = index.of(Standing::Receiving).next().filter(|_| index.remaining() == 0) {
        let others = others(index.count(Standing::Receiving));
        let message = format!("{}: whether {id}{others} got the first image is not known yet", tier.name);
        return Hold::new(Reason::AwaitingResources, message);
    }
    let example = index.of(Standing::Moving).chain(index.of(Standing::Reserved)).next();
    let example = example.map(|id| format!(", such as {id}")).unwrap_or_default();
    let message = format!(
        "{}: {} of {} are not up to date yet{example}{}",
        tier.name,
        index.remaining(),
        index.total(),
        cause(view, tier)
    );
    Hold::new(Reason::AwaitingResources, message).until(index.next_due())
}

/// How many more the share that goes first has room for; or that it has to be well for a while (E12).
fn share(tier: &Tier, index: &TierIndex, kept: &mut TierRecord, cause: &str, now: Timestamp) -> Result<usize, Hold> {
    // Who can't be given the image can't show whether it is any good.
    let refused = if bug::active(Bug::RefusedCountsAsShare) { 0 } else { index.refused() };
    let total = index.total().saturating_sub(refused);
    let untouched = [Standing::Outdated, Standing::Astray, Standing::Elsewhere].map(|standing| index.count(standing));
    let untouched = untouched.iter().sum();
    let stamped = total.saturating_sub(untouched);
    while let Some(share) = tier.canary.get(kept.shares_done).filter(|_| !bug::active(Bug::CanarySkipped)) {
        let bound = share.of(total).min(total);
        if stamped < bound {
            kept.well_since = None;
            return Ok(bound.saturating_sub(stamped));
        }
        let moving = index.remaining().saturating_sub(untouched);
        if moving > 0 {
            kept.well_since = None;
            let message = format!("{}: {moving} of the first {stamped} are not up to date yet{cause}", tier.name);
            return Err(Hold::new(Reason::AwaitingResources, message).until(index.next_due()));
        }
        let since = *kept.well_since.get_or_insert(now);
        let over = since.saturating_add(share.soak).unwrap_or(Timestamp::MAX);
        if now < over {
            let message =
                format!("{}: the first {stamped} of {total} are up to date, and must stay so until {over}", tier.name);
            return Err(Hold::new(Reason::Soaking, message).until(Some(over)));
        }
        kept.shares_done = kept.shares_done.saturating_add(1);
        kept.well_since = None;
    }
    Ok(usize::MAX)
}

fn report(tier: &Tier, index: &Index, record: &Record, priority: Option<i64>, hold: Option<Hold>) -> TierReport {
    let empty = TierIndex::default();
    let index = index.tier(&tier.name).unwrap_or(&empty);
    let complete = record.tiers.get(&tier.name).is_some_and(|kept| kept.complete);
    let count = |standings: &[Standing]| standings.iter().map(|standing| index.count(*standing)).sum();
    TierReport {
        name: tier.name.clone(),
        priority: tier.priority,
        in_progress: !complete && priority == Some(tier.priority),
        total: index.total(),
        done: index.count(Standing::Done),
        in_flight: index.in_flight(),
        remaining: index.remaining(),
        failed: index.count(Standing::Failed),
        ignored: index.count(Standing::Ignored),
        manual: index.count(Standing::Manual),
        taken: index.count(Standing::Taken),
        new: count(&[Standing::Blank, Standing::Fresh, Standing::Starting, Standing::Receiving, Standing::Refused]),
        hold,
    }
}
