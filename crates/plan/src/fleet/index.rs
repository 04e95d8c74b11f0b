//! The fleet as it was seen, kept so that nothing has to be counted again: one event costs O(log n), whatever the fleet's size.
//!
//! It holds nothing that could not be told from the resources, the terms, what is reserved or refused, and the time: taking events one by one and
//! building it from scratch give the same (a property test says so).

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use jiff::Timestamp;

use super::{
    item::{Disturbance, Item, ItemId, Lane, Progress, ROUNDS, Rank},
    refusal::Refusal,
    want::{Terms, TierName, TierTerms},
};
use crate::{
    bug::{self, Bug},
    fact::Fact,
};

/// How a resource stands against what is wanted of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Another ServiceImage has it.
    Taken,
    /// A person chose its image.
    Manual,
    /// It has no image and has never served (E5).
    Blank,
    /// It has another image and has never served: nobody would notice, and nobody waits for it (H38).
    Fresh,
    /// It has the image and has never served: nobody waits for it (H38).
    Starting,
    /// It has never served, and the write that gives it its image may be on its way: a tier is not done before that is known (H38).
    Receiving,
    /// It has never served, and the write that would give it its image is refused, or was not answered for long: nobody waits for it (H38).
    Refused,
    /// It serves from another image, or has served and lost its image: that one is not new, and goes forward only.
    Outdated,
    /// It is on its way to an image that nobody wants any more: disturbed already, so it goes before all others. For so long as it may be: where
    /// its turn is to come, those before it do not wait for it for ever.
    Astray,
    /// It is on its way because of a write to another field of it, or of another ServiceImage's. It is disturbed, and waited for as long as one may be
    /// on its way.
    Elsewhere,
    /// A write to it is on its way, or may be (H2).
    Reserved,
    /// Somebody else sets its image back again and again (E13).
    Contested,
    /// Whether it may be touched can't be told.
    Unclear,
    /// It has the image, and is not up to date yet.
    Moving,
    /// It has the image and failed, or can't be given it, which halts everything (E4).
    Failed,
    /// The same, which does not.
    Ignored,
    /// It has the image, its time is over, and nothing that it says can be judged: no failure that could be passed by (X1).
    Silent,
    /// It is up to date.
    Done,
}

impl Standing {
    /// It is on its way, and counts against the limits.
    fn in_flight(self) -> bool {
        match self {
            Self::Reserved => !bug::active(Bug::ReservedNotCounted),
            Self::Moving | Self::Astray | Self::Elsewhere => true,
            Self::Taken
            | Self::Manual
            | Self::Blank
            | Self::Fresh
            | Self::Starting
            | Self::Receiving
            | Self::Refused
            | Self::Outdated
            | Self::Contested
            | Self::Unclear
            | Self::Failed
            | Self::Ignored
            | Self::Silent
            | Self::Done => false,
        }
    }
}

impl Standing {
    /// It has served, for all that is known, and is ours to change.
    fn counts(self) -> bool {
        !matches!(
            self,
            Self::Taken | Self::Manual | Self::Blank | Self::Fresh | Self::Starting | Self::Receiving | Self::Refused
        )
    }
}

/// A resource's place in its tier.
pub type Key = (Rank, ItemId);

/// One tier of the fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TierIndex {
    by_standing: BTreeMap<Standing, BTreeSet<Key>>,
    /// The outdated ones, by what else limits them.
    candidates: BTreeMap<Lane, BTreeSet<Key>>,
    /// The first candidate of each lane that has room.
    open: BTreeSet<(Key, Lane)>,
    /// When those that are on their way have taken too long.
    due: BTreeSet<(Timestamp, ItemId)>,
    /// When those that are on their way to something else are not waited for any more.
    strays: BTreeSet<(Timestamp, ItemId)>,
    /// How many that have served have which image.
    images: BTreeMap<String, usize>,
    /// How many of those whose image no person chose say something that can be judged, also those that another has: so the kind can.
    telling: usize,
    /// Those of the failed ones that can't be given their image.
    refused: BTreeSet<ItemId>,
}

impl TierIndex {
    /// How many stand so.
    pub fn count(&self, standing: Standing) -> usize {
        self.by_standing.get(&standing).map_or(0, BTreeSet::len)
    }

    /// Those that stand so, in their order.
    pub fn of(&self, standing: Standing) -> impl Iterator<Item = &ItemId> {
        self.by_standing.get(&standing).into_iter().flatten().map(|(_, id)| id)
    }

    /// How many are on their way.
    pub fn in_flight(&self) -> usize {
        let counted = self.by_standing.iter().filter(|(standing, _)| standing.in_flight());
        counted.map(|(_, keys)| keys.len()).sum()
    }

    /// How many there are that have served and are ours to change.
    pub fn total(&self) -> usize {
        self.by_standing.iter().filter(|(standing, _)| standing.counts()).map(|(_, keys)| keys.len()).sum()
    }

    /// How many still have another image than they shall have.
    pub fn behind(&self) -> usize {
        [
            Standing::Outdated,
            Standing::Astray,
            Standing::Elsewhere,
            Standing::Reserved,
            Standing::Contested,
            Standing::Unclear,
        ]
        .into_iter()
        .map(|standing| self.count(standing))
        .sum()
    }

    /// How many are waited for before the tier is done.
    pub fn remaining(&self) -> usize {
        let moving = if bug::active(Bug::StampedIsDone) { 0 } else { self.count(Standing::Moving) };
        let stuck = self.count(Standing::Failed).saturating_add(self.count(Standing::Silent));
        self.behind().saturating_add(moving).saturating_add(stuck)
    }

    /// How many of the failed ones can't be given their image: they have the one that they had.
    pub fn refused(&self) -> usize {
        self.refused.len()
    }

    /// The image that most have; of several, the first by name.
    pub fn usual_image(&self) -> Option<&str> {
        most(self.images.iter().map(|(image, count)| (image.as_str(), *count)))
    }

    /// Those that have served and are ours to change, in no particular order.
    pub fn counted(&self) -> impl Iterator<Item = &ItemId> {
        let counted = self.by_standing.iter().filter(|(standing, _)| standing.counts());
        counted.flat_map(|(_, keys)| keys).map(|(_, id)| id)
    }

    /// Somebody is to be changed, and nobody says anything that could be judged afterwards.
    pub fn is_mute(&self) -> bool {
        self.telling == 0 && self.total() > 0
    }

    /// When the next one has taken too long.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Those that are on their way, longest first.
    pub fn longest_first(&self) -> impl Iterator<Item = &ItemId> {
        self.due.iter().map(|(_, id)| id)
    }

    /// The next ones to change, at most so many, in their order, as far as their lanes have room.
    pub fn take(&self, limit: usize, room: &mut Room<'_>) -> Vec<ItemId> {
        let mut open = self.open.iter().peekable();
        // Further candidates of lanes that were taken from already, smallest first.
        let mut more: BinaryHeap<std::cmp::Reverse<(&Key, &Lane)>> = BinaryHeap::new();
        let mut taken = Vec::new();
        while taken.len() < limit {
            let from_open = open.peek().map(|(key, lane)| (key, lane));
            let from_more = more.peek().map(|reverse| reverse.0);
            let Some((key, lane)) = (match (from_open, from_more) {
                (Some(first), Some(second)) => Some(first.min(second)),
                (first, second) => first.or(second),
            }) else {
                break;
            };
            if from_more == Some((key, lane)) {
                more.pop();
            } else {
                open.next();
            }
            // Another tier of this priority may have filled it just now.
            if room.left(lane) == 0 {
                continue;
            }
            taken.push(key.1.clone());
            room.take(lane);
            let after = (std::ops::Bound::Excluded(key), std::ops::Bound::Unbounded);
            let next = self.candidates.get(lane).and_then(|keys| keys.range(after).next());
            if let Some(next) = next.filter(|_| room.left(lane) > 0) {
                more.push(std::cmp::Reverse((next, lane)));
            }
        }
        taken
    }

    fn change_images(&mut self, item: &Item, by: fn(usize) -> usize) {
        let Some(image) = item.image.as_ref().filter(|_| is_ours(item) && item.deployed) else { return };
        let count = by(self.images.get(image).copied().unwrap_or(0));
        if count == 0 {
            self.images.remove(image);
        } else {
            self.images.insert(image.clone(), count);
        }
    }
}

/// What is on its way in each lane, in all tiers together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lanes {
    limit: Option<usize>,
    in_flight: BTreeMap<Lane, usize>,
}

impl Lanes {
    /// How many more may be on their way there. Who is in no lane is not limited by any.
    pub fn room(&self, lane: &Lane) -> usize {
        match self.limit.filter(|_| !lane.0.is_empty()) {
            Some(limit) => limit.saturating_sub(self.in_flight.get(lane).copied().unwrap_or(0)),
            None => usize::MAX,
        }
    }

    fn change(&mut self, lane: &Lane, by: fn(usize) -> usize) {
        let count = by(self.in_flight.get(lane).copied().unwrap_or(0));
        if count == 0 {
            self.in_flight.remove(lane);
        } else {
            self.in_flight.insert(lane.clone(), count);
        }
    }
}

/// What the lanes have room for while a plan is made: what one tier takes, the next one lacks.
#[derive(Clone, Debug)]
pub struct Room<'a> {
    lanes: &'a Lanes,
    taken: BTreeMap<Lane, usize>,
}

impl<'a> Room<'a> {
    /// Nothing is taken yet.
    pub fn of(lanes: &'a Lanes) -> Self {
        Self { lanes, taken: BTreeMap::new() }
    }

    fn left(&self, lane: &Lane) -> usize {
        self.lanes.room(lane).saturating_sub(self.taken.get(lane).copied().unwrap_or(0))
    }

    fn take(&mut self, lane: &Lane) {
        let taken = self.taken.entry(lane.clone()).or_default();
        *taken = taken.saturating_add(1);
    }
}

/// The fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    terms: Terms,
    now: Timestamp,
    items: BTreeMap<ItemId, Item>,
    reserved: BTreeSet<ItemId>,
    refused: BTreeMap<ItemId, Refusal>,
    tiers: BTreeMap<TierName, TierIndex>,
    lanes: Lanes,
    /// Resources that no tier takes.
    untaken: BTreeSet<ItemId>,
}

fn more(count: usize) -> usize {
    count.saturating_add(1)
}

fn fewer(count: usize) -> usize {
    count.saturating_sub(1)
}

impl Index {
    /// An empty fleet.
    pub fn new(terms: Terms, now: Timestamp) -> Self {
        let tiers = terms.tiers.keys().map(|name| (name.clone(), TierIndex::default())).collect();
        let lanes = Lanes { limit: terms.lane_limit, in_flight: BTreeMap::new() };
        Self {
            terms,
            now,
            items: BTreeMap::new(),
            reserved: BTreeSet::new(),
            refused: BTreeMap::new(),
            tiers,
            lanes,
            untaken: BTreeSet::new(),
        }
    }

    /// The image that most of those that have served have, in all tiers together; of several, the first by name.
    pub fn usual_image(&self) -> Option<&str> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (image, count) in self.tiers.values().flat_map(|tier| &tier.images) {
            let all = counts.entry(image).or_default();
            *all = all.saturating_add(*count);
        }
        most(counts.into_iter())
    }

    /// What it is held against.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The time of the last look.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// A tier.
    pub fn tier(&self, name: &TierName) -> Option<&TierIndex> {
        self.tiers.get(name)
    }

    /// A resource.
    pub fn item(&self, id: &ItemId) -> Option<&Item> {
        self.items.get(id)
    }

    /// The image that one which serves should have.
    pub fn wanted(&self, id: &ItemId) -> Option<&str> {
        self.terms_of(id).map(|terms| terms.image.as_str())
    }

    /// Until when one has time that got no answer since then: as long as one may be on its way, counted as for those.
    pub fn time_until(&self, id: &ItemId, since: Timestamp) -> Option<Timestamp> {
        let terms = self.terms_of(id)?;
        let from = Some(since).max(terms.started_at).max(self.terms.retried_at)?;
        from.saturating_add(terms.deadline).ok()
    }

    fn terms_of(&self, id: &ItemId) -> Option<&TierTerms> {
        self.terms.tier_of(&self.items.get(id)?.tier).map(|(_, terms)| terms)
    }

    /// All resources.
    pub fn items(&self) -> impl Iterator<Item = (&ItemId, &Item)> {
        self.items.iter()
    }

    /// What may be on its way.
    pub fn reserved(&self) -> &BTreeSet<ItemId> {
        &self.reserved
    }

    /// What is on its way in each lane.
    pub fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// How many resources no tier takes.
    pub fn untaken(&self) -> usize {
        self.untaken.len()
    }

    /// The tier of a resource and how it stands there.
    pub fn standing(&self, id: &ItemId) -> Option<(&TierName, Standing)> {
        let item = self.items.get(id)?;
        let (name, terms) = self.terms.tier_of(&item.tier)?;
        Some((name, stand(item, terms, &self.terms, self.writing(id, item), self.now)))
    }

    /// Why a resource can't be written, where that is so.
    pub fn refusal(&self, id: &ItemId) -> Option<&Refusal> {
        let item = self.items.get(id)?;
        let (_, terms) = self.terms.tier_of(&item.tier)?;
        self.writing(id, item).refusal.filter(|refusal| refusal.counts(item, &terms.image))
    }

    /// All of them.
    pub fn refusals(&self) -> impl Iterator<Item = (&ItemId, &Refusal)> {
        self.refused.keys().filter_map(|id| Some((id, self.refusal(id)?)))
    }

    fn writing(&self, id: &ItemId, item: &Item) -> Writing<'_> {
        let refusal = self.refused.get(id).filter(|refusal| refusal.uid == item.fence.uid);
        Writing { reserved: self.reserved.contains(id), refusal }
    }

    /// Since when a resource has been on its way, as its deadline counts; none where nothing tells.
    pub fn since(&self, id: &ItemId) -> Option<Timestamp> {
        let item = self.items.get(id)?;
        let (_, terms) = self.terms.tier_of(&item.tier)?;
        since(item, terms, &self.terms)
    }

    /// A resource was seen like this.
    pub fn observe(&mut self, id: &ItemId, item: Item) {
        self.take_out(id);
        self.items.insert(id.clone(), item);
        self.put_in(id);
    }

    /// A resource is gone.
    pub fn forget(&mut self, id: &ItemId) {
        self.take_out(id);
        self.items.remove(id);
        self.refused.remove(id);
    }

    /// A write to it is about to be sent, or may still be on its way.
    pub fn reserve(&mut self, id: &ItemId) {
        self.take_out(id);
        self.reserved.insert(id.clone());
        self.put_in(id);
    }

    /// The write was answered, or can't land any more.
    pub fn release(&mut self, id: &ItemId) {
        self.take_out(id);
        self.reserved.remove(id);
        if let Some(refusal) = self.refused.get_mut(id) {
            refusal.unsettled = false;
        }
        self.put_in(id);
    }

    /// What was refused was not answered at all: it may still arrive.
    pub fn unsettle(&mut self, id: &ItemId) {
        self.take_out(id);
        self.reserved.insert(id.clone());
        if let Some(refusal) = self.refused.get_mut(id) {
            refusal.unsettled = true;
        }
        self.put_in(id);
    }

    /// The write was answered: it may not be made, for this reason.
    pub fn refuse(&mut self, id: &ItemId, image: &str, why: String, now: Timestamp) {
        self.take_out(id);
        self.reserved.remove(id);
        if let Some(item) = self.items.get(id) {
            let refusal = Refusal::next(self.refused.get(id), &item.fence.uid, image, why, now);
            self.refused.insert(id.clone(), refusal);
        }
        self.put_in(id);
    }

    /// Lets those be tried again whose rest is over, and all of them where something else is wanted. In a tier that is done nobody is tried
    /// again by time alone: it would not be done any more each time.
    pub fn forgive(&mut self, all: bool, done: impl Fn(&TierName) -> bool, now: Timestamp) {
        let is_due = |(id, refusal): &(&ItemId, &Refusal)| {
            !refusal.unsettled && (all || (refusal.again <= now && !self.is_left(id, &done)))
        };
        let due: Vec<ItemId> = self.refused.iter().filter(is_due).map(|(id, _)| id.clone()).collect();
        for id in due {
            self.take_out(&id);
            if all {
                self.refused.remove(&id);
            } else if let Some(refusal) = self.refused.get_mut(&id) {
                // How often it was tried is kept: the next rest is longer.
                refusal.resting = false;
            }
            self.put_in(&id);
        }
    }

    /// Nobody tries it again by time alone.
    fn is_left(&self, id: &ItemId, done: &impl Fn(&TierName) -> bool) -> bool {
        let served = self.items.get(id).is_some_and(|item| item.deployed);
        served && self.standing(id).is_some_and(|(tier, _)| done(tier))
    }

    /// When the next one is tried again by time alone, if somebody is.
    pub fn next_try(&self, done: impl Fn(&TierName) -> bool) -> Option<Timestamp> {
        let tried = self.refusals().filter(|(id, refusal)| !refusal.unsettled && !self.is_left(id, &done));
        tried.map(|(_, refusal)| refusal.again).min()
    }

    /// Time passed: those whose deadline is over stand differently now.
    pub fn advance(&mut self, now: Timestamp) {
        if now < self.now {
            // A clock that was set back: what was over may not be any more.
            self.rebuild(self.terms.clone(), now);
            return;
        }
        let over = |tier: &TierIndex| {
            let due = tier.due.iter().take_while(|(at, _)| *at <= now);
            let over = due.chain(tier.strays.iter().take_while(|(at, _)| *at <= now));
            over.map(|(_, id)| id.clone()).collect::<Vec<_>>()
        };
        let over: Vec<ItemId> = self.tiers.values().flat_map(over).collect();
        // Out while it is still before, and in again after.
        for id in &over {
            self.take_out(id);
        }
        self.now = now;
        for id in &over {
            self.put_in(id);
        }
    }

    /// Something else is wanted now. Nothing is left as it was, so everything is looked at.
    pub fn rebuild(&mut self, terms: Terms, now: Timestamp) {
        let items = std::mem::take(&mut self.items);
        let reserved = std::mem::take(&mut self.reserved);
        let refused = std::mem::take(&mut self.refused);
        *self = Self::new(terms, now);
        (self.reserved, self.refused) = (reserved, refused);
        for (id, item) in items {
            self.observe(&id, item);
        }
    }

    fn take_out(&mut self, id: &ItemId) {
        self.place(id, false);
    }

    fn put_in(&mut self, id: &ItemId) {
        self.place(id, true);
    }

    /// Takes a resource into everything that is kept about it, or out of it: the same places both ways.
    fn place(&mut self, id: &ItemId, present: bool) {
        let Some(item) = self.items.get(id) else { return };
        let Some((name, terms)) = self.terms.tier_of(&item.tier) else {
            set(&mut self.untaken, id.clone(), present);
            return;
        };
        let writing = self.writing(id, item);
        let standing = stand(item, terms, &self.terms, writing, self.now);
        let refused = writing.refusal.is_some_and(|refusal| refusal.counts(item, &terms.image));
        let Some(tier) = self.tiers.get_mut(name) else { return };
        let key = (item.rank(), id.clone());
        let by = if present { more } else { fewer };
        let keys = tier.by_standing.entry(standing).or_default();
        set(keys, key.clone(), present);
        if keys.is_empty() {
            tier.by_standing.remove(&standing);
        }
        tier.change_images(item, by);
        if item.progress.known().is_some() && !item.manual.is(&true) {
            tier.telling = by(tier.telling);
        }
        let lane = &item.lane;
        match standing {
            Standing::Outdated => {
                let keys = tier.candidates.entry(lane.clone()).or_default();
                let first = keys.first().cloned();
                set(keys, key, present);
                let now_first = keys.first().cloned();
                if keys.is_empty() {
                    tier.candidates.remove(lane);
                }
                if first != now_first {
                    if let Some(first) = first {
                        tier.open.remove(&(first, lane.clone()));
                    }
                    if let Some(first) = now_first.filter(|_| self.lanes.room(lane) > 0) {
                        tier.open.insert((first, lane.clone()));
                    }
                }
            }
            Standing::Moving => set(&mut tier.due, (due(item, terms, &self.terms), id.clone()), present),
            Standing::Astray | Standing::Elsewhere => {
                set(&mut tier.strays, (astray_until(item, terms), id.clone()), present);
            }
            Standing::Failed | Standing::Ignored if refused => set(&mut tier.refused, id.clone(), present),
            Standing::Taken
            | Standing::Manual
            | Standing::Blank
            | Standing::Fresh
            | Standing::Starting
            | Standing::Receiving
            | Standing::Refused
            | Standing::Reserved
            | Standing::Contested
            | Standing::Unclear
            | Standing::Failed
            | Standing::Ignored
            | Standing::Silent
            | Standing::Done => {}
        }
        if standing.in_flight() {
            let was_open = self.lanes.room(lane) > 0;
            self.lanes.change(lane, by);
            let is_open = self.lanes.room(lane) > 0;
            if was_open != is_open {
                for tier in self.tiers.values_mut() {
                    if let Some(first) = tier.candidates.get(lane).and_then(BTreeSet::first) {
                        set(&mut tier.open, (first.clone(), lane.clone()), is_open);
                    }
                }
            }
        }
    }
}

/// What is known of the writes to a resource.
#[derive(Clone, Copy)]
struct Writing<'a> {
    /// One may be on its way.
    reserved: bool,
    /// The last one was refused.
    refusal: Option<&'a Refusal>,
}

impl Writing<'_> {
    /// The last one was not answered, and neither is any other.
    fn is_unsettled(&self) -> bool {
        self.refusal.is_some_and(|refusal| refusal.unsettled)
    }
}

/// What there is most of; of several, the first by name.
fn most<'a>(counts: impl Iterator<Item = (&'a str, usize)>) -> Option<&'a str> {
    counts.max_by(|one, other| one.1.cmp(&other.1).then_with(|| other.0.cmp(one.0))).map(|(image, _)| image)
}

/// Nobody else has it, and no person chose its image.
fn is_ours(item: &Item) -> bool {
    item.taken_by.is_none() && !item.manual.is(&true)
}

fn set<T: Ord>(set: &mut BTreeSet<T>, value: T, present: bool) {
    if present {
        set.insert(value);
    } else {
        set.remove(&value);
    }
}

/// Since when a resource has been on its way.
fn since(item: &Item, tier: &TierTerms, terms: &Terms) -> Option<Timestamp> {
    let stamped = item.stamp.as_ref().filter(|stamp| Some(&stamp.image) == item.image.as_ref()).map(|stamp| stamp.at);
    let unready = match &item.progress {
        Fact::Known(Progress::Moving { since }) => *since,
        Fact::Known(Progress::Ready | Progress::Failed(_)) | Fact::Unknown(_) => None,
    };
    stamped.max(tier.started_at).max(unready).max(terms.retried_at)
}

/// When it has taken too long.
fn due(item: &Item, tier: &TierTerms, terms: &Terms) -> Timestamp {
    let from = since(item, tier, terms);
    from.map_or(Timestamp::MAX, |from| from.saturating_add(tier.deadline).unwrap_or(Timestamp::MAX))
}

/// Until when it counts as on its way to what nobody wants: as long as one may be on its way to anything.
fn astray_until(item: &Item, tier: &TierTerms) -> Timestamp {
    let until = item.stamp.as_ref().and_then(|stamp| stamp.at.saturating_add(tier.deadline).ok());
    until.filter(|_| !bug::active(Bug::AstrayForEver)).unwrap_or(Timestamp::MAX)
}

/// How a resource stands: the one place that says so.
fn stand(item: &Item, tier: &TierTerms, terms: &Terms, writing: Writing<'_>, now: Timestamp) -> Standing {
    let reserved = writing.reserved;
    if item.taken_by.is_some() && !bug::active(Bug::TwoOwnersDuel) {
        return Standing::Taken;
    }
    let failed =
        if item.failure_halts && !bug::active(Bug::FailureIgnored) { Standing::Failed } else { Standing::Ignored };
    let refused = writing.refusal.is_some_and(|refusal| refusal.counts(item, &tier.image));
    match item.manual {
        Fact::Known(true) if !bug::active(Bug::ManualStamped) => return Standing::Manual,
        Fact::Known(_) => {}
        Fact::Unknown(_) => return Standing::Unclear,
    }
    let image = item.image.as_ref().filter(|image| !image.is_empty());
    if image != Some(&tier.image) && (image.is_none() || !bug::active(Bug::HealthAlone)) {
        // Whoever removes an image removes every image.
        let fought = |stamp: &&super::item::Stamp| {
            (image.is_none() || stamp.image == tier.image)
                && stamp.round >= ROUNDS
                && terms.retried_at.is_none_or(|at| stamp.at > at)
        };
        return match item.stamp.as_ref().filter(fought) {
            _ if reserved && !(refused && writing.is_unsettled()) => {
                if item.deployed {
                    Standing::Reserved
                } else {
                    Standing::Receiving
                }
            }
            Some(_) if !bug::active(Bug::ContestedFought) => Standing::Contested,
            _ if refused && !item.deployed => Standing::Refused,
            _ if refused => failed,
            _ if image.is_none() && (!item.deployed || bug::active(Bug::LostImageIsNew)) => Standing::Blank,
            _ if !item.deployed => Standing::Fresh,
            _ if now < astray_until(item, tier) => match item.disturbance() {
                Some(Disturbance::Here) => Standing::Astray,
                Some(Disturbance::Elsewhere) => Standing::Elsewhere,
                None => Standing::Outdated,
            },
            _ => Standing::Outdated,
        };
    }
    match &item.progress {
        Fact::Known(Progress::Ready) => Standing::Done,
        // Who says nothing at all is waited for: it may have served.
        Fact::Known(_) if !item.deployed => Standing::Starting,
        Fact::Known(Progress::Failed(_)) => failed,
        Fact::Known(Progress::Moving { .. }) if due(item, tier, terms) <= now => failed,
        Fact::Unknown(_) if due(item, tier, terms) <= now => {
            let waited_for = failed == Standing::Ignored && !bug::active(Bug::SilencePassedBy);
            if waited_for { Standing::Silent } else { failed }
        }
        Fact::Known(Progress::Moving { .. }) | Fact::Unknown(_) => Standing::Moving,
    }
}
