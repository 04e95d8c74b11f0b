//! Random walks of a fleet, with what must hold checked at every write: order, limits, shares, and that nobody is touched who must not be.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use windlass_plan::{
    Fact,
    fleet::{Item, ItemId, Lane, Plan, Progress, Record, Stamp, Stamping, Standing, TierName, Verdict},
};

use super::world::{V1, V2, V3, World, at_most, first, id, serving, tier, want};
use crate::support::world::Dice;

const TIERS: [&str; 3] = ["", "early", "late"];
const LANES: [&str; 3] = ["", "n1", "n2"];
const PATIENCE: usize = 600;

struct Walk {
    world: World,
    dice: Dice,
    seed: u64,
    /// What these images have in common: nobody can run them.
    bad: BTreeSet<String>,
    /// Who set back what we stamped.
    meddles: BTreeSet<ItemId>,
    /// Images that a whole tier was up to date with.
    proven: BTreeSet<(TierName, String)>,
    /// Who was up to date with which image.
    well: BTreeSet<(ItemId, String)>,
    /// The record before this look.
    before: Record,
    /// Whose status was lost at some time.
    wiped: BTreeSet<ItemId>,
    /// Who says nothing until people see to it.
    mute: BTreeSet<ItemId>,
    /// Who removes its status and writes it back with the time of that, again and again, until people see to it.
    toggles: BTreeSet<ItemId>,
    /// Since when everybody who is not up to date has had its image without being up to date with it, as the operator could see.
    unready: BTreeMap<ItemId, (Option<String>, Timestamp)>,
    born: u32,
}

/// One walk; panics where something happens that must not.
pub fn walk(seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x000F_1EE7);
    // Often two of one priority, or all of them.
    let mut tiers =
        TIERS.map(|name| tier(name, V2, i64::from(dice.below(if name == "early" { 4 } else { 2 })))).to_vec();
    for tier in &mut tiers {
        if dice.below(2) == 0 {
            tier.max_in_flight = Some(at_most(1 + dice.below(3) as usize));
        }
        if dice.below(2) == 0 {
            tier.canary = vec![first(20, 30), first(60, 60)];
        }
    }
    let mut wanted = want(tiers);
    wanted.lane_limit = [None, Some(1), Some(2)][dice.below(3) as usize];
    wanted.batch = 1 + dice.below(6) as usize;
    let mut walk = Walk {
        world: World::new(wanted, []),
        dice,
        seed,
        bad: BTreeSet::new(),
        meddles: BTreeSet::new(),
        proven: BTreeSet::new(),
        well: BTreeSet::new(),
        before: Record::default(),
        wiped: BTreeSet::new(),
        mute: BTreeSet::new(),
        toggles: BTreeSet::new(),
        unready: BTreeMap::new(),
        born: 0,
    };
    for _ in 0..walk.dice.below(14) {
        walk.bear(true);
    }
    for _ in 0..60 {
        walk.pass(true);
        walk.strike();
    }
    walk.make_peace();
    for _ in 0..PATIENCE {
        if walk.pass(false) == Verdict::Done {
            walk.everything_is_up_to_date();
            return;
        }
        walk.service(true);
        walk.world.wait(15);
    }
    panic!("walk {seed} never ends: {:?}", walk.world.plan());
}

impl Walk {
    fn bear(&mut self, served: bool) {
        self.born += 1;
        let name = format!("r{}", self.born);
        let mut item = serving(&name, TIERS[self.dice.below(3) as usize], V1);
        item.lane = Lane(LANES[self.dice.below(3) as usize].into());
        item.failure_halts = self.dice.below(3) > 0;
        if !served {
            // Without an image, or with the old one from whoever made it (E7).
            item.image = item.image.filter(|_| self.dice.below(3) == 0);
            item.deployed = false;
            item.progress = Fact::Known(Progress::Moving { since: None });
        }
        self.world.add(&name, item);
    }

    /// One look of the operator. Writes may be lost; an operator may die between two of them, and its successor counts what it reserved.
    fn pass(&mut self, trouble: bool) -> Verdict {
        let ready = self.world.items.iter().filter(|(_, item)| item.progress == Fact::Known(Progress::Ready));
        self.well.extend(ready.filter_map(|(id, item)| Some((id.clone(), item.image.clone()?))));
        self.nobody_takes_for_ever();
        let plan = self.world.plan();
        let deaths = if trouble { self.dice.below(4) } else { 1 };
        self.before = std::mem::take(&mut self.world.record);
        self.world.keep(&plan);
        self.done_in_order(&plan);
        let new = plan.record.tiers.iter().filter(|(name, kept)| kept.new_image == kept.image && self.has_proven(name));
        let new: Vec<_> = new.map(|(name, kept)| (name.clone(), kept.image.clone())).collect();
        self.proven.extend(new);
        for stamp in &plan.stamps {
            self.world.index.reserve(&stamp.id);
        }
        self.contests_are_real();
        let survives = if deaths == 0 { self.dice.below(8) as usize } else { usize::MAX };
        for (number, stamp) in plan.stamps.iter().enumerate() {
            if number >= survives {
                break;
            }
            self.check(stamp);
            self.world.stamp(stamp);
            if survives == usize::MAX {
                self.world.index.release(&stamp.id);
            }
        }
        if survives != usize::MAX {
            // The successor: it looks at everything, and what was reserved is touched, so that no late write lands.
            let reserved = self.world.index.reserved().clone();
            for id in &reserved {
                self.world.change(id, |_| {});
            }
            self.world.look_again();
            // What it tells is believed once more.
            self.unready.clear();
        }
        self.limits_hold();
        plan.verdict
    }

    /// Everybody of the tier who served has its image, and was well with it or may fail.
    fn has_proven(&self, name: &TierName) -> bool {
        let image = &self.world.record.tiers[name].image;
        self.world.items.iter().filter(|(_, item)| item.deployed && item.manual.is(&false)).all(|(id, item)| {
            let theirs = self.world.index.terms().tier_of(&item.tier).is_none_or(|(other, _)| other != name);
            let well = self.well.contains(&(id.clone(), image.clone())) || !item.failure_halts;
            theirs || (item.image.as_ref() == Some(image) && well)
        })
    }

    /// Nobody is fought over whom nobody wrote to.
    fn contests_are_real(&self) {
        for id in self.world.items.keys() {
            let contested = self.world.index.standing(id).is_some_and(|(_, standing)| standing == Standing::Contested);
            let written = self.world.truth.contains_key(id);
            assert!(!contested || written, "walk {}: {id} is contested, and nobody wrote to it", self.seed);
        }
    }

    /// A tier becomes done after those above it, and all of it only when nobody has another image (E3, E7).
    fn done_in_order(&self, plan: &Plan) {
        let complete = |record: &Record, name: &TierName| record.tiers.get(name).is_some_and(|kept| kept.complete);
        for tier in &self.world.want.tiers {
            let before =
                self.before.tiers.get(&tier.name).is_some_and(|kept| kept.complete && kept.image == tier.image);
            if !complete(&plan.record, &tier.name) || before {
                continue;
            }
            for above in self.world.want.tiers.iter().filter(|above| above.priority > tier.priority) {
                let done = complete(&plan.record, &above.name);
                assert!(done, "walk {}: {} is done before {}", self.seed, tier.name, above.name);
            }
        }
        for (id, item) in self.world.items.iter().filter(|(_, item)| item.manual.is(&false)) {
            let (_, terms) = self.world.index.terms().tier_of(&item.tier).expect("it has a tier");
            let new = item.image.is_none() && !item.deployed;
            let well = new || item.image.as_ref() == Some(&terms.image) || plan.verdict != Verdict::Done;
            assert!(well, "walk {}: it is done, and {id} has another image", self.seed);
        }
    }

    /// What must hold at every write.
    fn check(&self, stamp: &Stamping) {
        let seed = self.seed;
        let item = &self.world.items[&stamp.id];
        assert!(!item.manual.is(&true), "walk {seed}: {} is manual", stamp.id);
        let (name, _) = self.world.index.terms().tier_of(&item.tier).expect("it has a tier");
        let tier = self.world.want.tiers.iter().find(|tier| tier.name == *name).unwrap();
        let kept = &self.world.record.tiers[name];
        if !item.deployed {
            assert_eq!(stamp.image, kept.new_image, "walk {seed}: a new one gets another image");
            // What a tier without anybody who served gives to new ones comes from the others.
            let proven = stamp.image == V1 || self.proven.iter().any(|(_, image)| *image == stamp.image);
            assert!(proven, "walk {seed}: new image too early for {}", stamp.id);
            return;
        }
        assert_eq!(stamp.image, tier.image, "walk {seed}: {} goes backwards", stamp.id);
        let speaks = |item: &Item| {
            let (theirs, _) = self.world.index.terms().tier_of(&item.tier).expect("it has a tier");
            theirs == name && !item.manual.is(&true) && item.progress.known().is_some()
        };
        // Also those of this batch that were written a moment ago.
        let speak = self.world.items.values().any(speaks);
        assert!(speak, "walk {seed}: {} is changed, and nobody of its tier says how it is", stamp.id);
        for above in self.world.want.tiers.iter().filter(|above| above.priority > tier.priority) {
            for (id, item) in &self.world.items {
                let theirs =
                    self.world.index.terms().tier_of(&item.tier).is_some_and(|(other, _)| *other == above.name);
                if !theirs || !item.deployed || item.manual.is(&true) {
                    continue;
                }
                assert_eq!(item.image.as_ref(), Some(&above.image), "walk {seed}: {} before {id}", stamp.id);
                // Who was well may have a moment of illness; a failure that halts may not go unnoticed.
                let failed = matches!(item.progress, Fact::Known(Progress::Failed(_)));
                assert!(!failed || !item.failure_halts, "walk {seed}: {} although {id} failed", stamp.id);
                let over = |stamp: &Stamp| self.world.now.duration_since(stamp.at).as_secs() >= 600;
                let told = item.progress.known().is_some();
                let late = !item.failure_halts && told && self.world.truth.get(id).is_some_and(over);
                let well = failed || late || self.well.contains(&(id.clone(), above.image.clone()));
                assert!(well, "walk {seed}: {} before {id} is well", stamp.id);
            }
        }
        let rounds = self.world.stamped.get(&(stamp.id.clone(), stamp.image.clone())).copied().unwrap_or(0);
        let meddled = self.meddles.contains(&stamp.id);
        // Three, and one more in the very second in which a person says retry.
        assert!(!meddled || rounds < 4, "walk {seed}: {} is fought over", stamp.id);
        self.share_holds(tier, stamp);
    }

    /// Before a share has soaked nobody beyond it goes.
    fn share_holds(&self, tier: &windlass_plan::fleet::Tier, stamp: &Stamping) {
        let kept = &self.world.record.tiers[&tier.name];
        let Some(share) = tier.canary.get(kept.shares_done) else {
            assert!(kept.shares_done == tier.canary.len(), "walk {}", self.seed);
            return;
        };
        let mine = |label: &str| self.world.index.terms().tier_of(label).is_some_and(|(name, _)| *name == tier.name);
        let managed =
            self.world.items.values().filter(|item| mine(&item.tier) && item.deployed && !item.manual.is(&true));
        let total = managed.clone().count();
        let stamped = managed.filter(|item| item.image.as_ref() == Some(&tier.image)).count();
        assert!(stamped < share.of(total), "walk {}: {} goes beyond the first share", self.seed, stamp.id);
    }

    /// No more are disturbed than may be: whoever was set on the way, to whatever image, and has not arrived or taken too long.
    fn limits_hold(&self) {
        let now = self.world.now;
        let disturbed = |item: &&Item| {
            let uid = item.fence.uid.strip_prefix("uid-").unwrap_or_default();
            let stamp = self.world.truth.get(&id(uid)).filter(|stamp| Some(&stamp.image) == item.image.as_ref());
            // Who forged what we wrote on it is not known to be on its way after a restart: it has failed the earlier for that.
            let stamp = stamp.filter(|stamp| item.stamp.as_ref() == Some(stamp));
            // And whose status was lost counts as on its way already: sending it elsewhere adds nobody.
            let stamp = stamp.filter(|_| !self.wiped.contains(&id(uid)));
            let in_time = stamp.is_some_and(|stamp| now.duration_since(stamp.at).as_secs() < 600);
            in_time && item.deployed && matches!(item.progress, Fact::Known(Progress::Moving { .. }))
        };
        for tier in &self.world.want.tiers {
            let mine =
                |label: &str| self.world.index.terms().tier_of(label).is_some_and(|(name, _)| *name == tier.name);
            let count = self.world.items.values().filter(|item| mine(&item.tier)).filter(disturbed).count();
            let limit = tier.max_in_flight.map_or(usize::MAX, |amount| amount.of(0));
            assert!(count <= limit, "walk {}: {count} of {} on their way, and {limit} may be", self.seed, tier.name);
        }
        for lane in LANES.iter().skip(1) {
            let count = self.world.items.values().filter(|item| item.lane.0 == *lane).filter(disturbed).count();
            let limit = self.world.want.lane_limit.unwrap_or(usize::MAX);
            assert!(count <= limit, "walk {}: {count} on their way in lane {lane}, and {limit} may be", self.seed);
        }
    }

    /// Nobody is waited for longer than its deadline allows, whatever it writes about itself.
    fn nobody_takes_for_ever(&mut self) {
        let (now, terms) = (self.world.now, self.world.index.terms().clone());
        self.unready.retain(|id, _| self.world.items.contains_key(id));
        for (id, item) in &self.world.items {
            if item.progress == Fact::Known(Progress::Ready) {
                self.unready.remove(id);
                continue;
            }
            let known = self.unready.entry(id.clone()).or_insert_with(|| (item.image.clone(), now));
            if known.0 != item.image {
                *known = (item.image.clone(), now);
            }
            let (_, tier) = terms.tier_of(&item.tier).expect("it has a tier");
            let stamped = self.world.truth.get(id).map(|stamp| stamp.at);
            // What it told when it was first seen may be as late as that.
            let from = [Some(known.1), stamped, tier.started_at, terms.retried_at].into_iter().flatten().max().unwrap();
            let over = now.duration_since(from).as_secs() >= 600;
            let moving = self.world.index.standing(id).is_some_and(|(_, standing)| standing == Standing::Moving);
            assert!(!over || !moving, "walk {}: {id} is still waited for", self.seed);
        }
    }

    /// The controller behind the resources: some arrive, some fail.
    fn service(&mut self, all: bool) {
        let moving: Vec<ItemId> = self
            .world
            .items
            .iter()
            .filter(|(_, item)| item.image.is_some() && item.progress != Fact::Known(Progress::Ready))
            .map(|(id, _)| id.clone())
            .collect();
        for id in moving {
            if self.mute.contains(&id) || self.toggles.contains(&id) || (!all && self.dice.below(2) == 0) {
                continue;
            }
            let bad = self.world.items[&id].image.as_ref().is_some_and(|image| self.bad.contains(image));
            if bad {
                self.world.change(&id, |item| item.progress = Fact::Known(Progress::Failed("can't run".into())));
            } else {
                self.world.arrive(&id);
            }
        }
    }

    /// Something happens.
    fn strike(&mut self) {
        let ids: Vec<ItemId> = self.world.items.keys().cloned().collect();
        let any = |dice: &mut Dice| ids.get(dice.below(u32::try_from(ids.len().max(1)).unwrap()) as usize).cloned();
        let seconds = i64::from(1 + self.dice.below(40));
        self.world.wait(seconds);
        match self.dice.below(19) {
            18 => {
                if let Some(one) = any(&mut self.dice) {
                    self.wiped.insert(one.clone());
                    self.toggles.insert(one);
                }
            }
            15 => {
                // A tenant writes what we write, with a time to come; or moves its times, or says that they are in the future.
                if let Some(one) = any(&mut self.dice) {
                    let (now, image) = (self.world.now, [V1, V2, V3][self.dice.below(3) as usize]);
                    let at = [now, super::world::at(3_000_000)][self.dice.below(2) as usize];
                    self.world.change(&one, |item| {
                        item.stamp = Some(Stamp { image: image.into(), at, round: 9, elsewhere: false });
                        if let Fact::Known(Progress::Moving { since }) = &mut item.progress {
                            *since = Some(at);
                        }
                    });
                }
            }
            16 | 17 => {
                // Its status is lost, and perhaps nobody writes another one.
                if let Some(one) = any(&mut self.dice) {
                    self.world.change(&one, |item| item.progress = Fact::Unknown("it says nothing".into()));
                    self.wiped.insert(one.clone());
                    if self.dice.below(2) == 0 {
                        self.mute.insert(one);
                    }
                }
            }
            14 => {
                // Somebody replaces it by what has no image.
                if let Some(one) = any(&mut self.dice) {
                    self.world.change(&one, |item| item.image = None);
                }
            }
            0..=5 => self.service(false),
            6 => self.bear(false),
            7 => self.bear(true),
            8 => {
                if let Some(gone) = any(&mut self.dice) {
                    self.world.remove(&gone);
                }
            }
            9 => {
                // A tier changes hands only while the walk's limits can't be broken by that.
                if let Some(moved) = any(&mut self.dice)
                    && self.world.items[&moved].progress == Fact::Known(Progress::Ready)
                {
                    let label = TIERS[self.dice.below(3) as usize];
                    self.world.change(&moved, |item| item.tier = label.into());
                }
            }
            10 => {
                let image = [V1, V2, V3][self.dice.below(3) as usize];
                if self.dice.below(3) == 0 {
                    self.bad.insert(V3.into());
                }
                let mut other = self.world.want.clone();
                let number = self.dice.below(3) as usize;
                other.tiers[number].image = image.into();
                self.world.wish(other);
                self.world.stamped.clear();
            }
            11 => {
                // Who is on the way when people take it over, or give it back, is counted by nobody for a while.
                if let Some(one) = any(&mut self.dice)
                    && self.world.items[&one].progress == Fact::Known(Progress::Ready)
                {
                    let manual = self.dice.below(2) == 0;
                    self.world.change(&one, |item| item.manual = Fact::Known(manual));
                }
            }
            12 => {
                if let Some(one) = any(&mut self.dice) {
                    self.meddles.insert(one);
                }
            }
            _ => {
                self.world.retry = self.dice.below(6) == 0;
                self.world.stamped.clear();
            }
        }
        self.toggle();
        for id in self.mute.clone() {
            self.world.change(&id, |item| item.progress = Fact::Unknown("it says nothing".into()));
        }
        let meddled: Vec<ItemId> =
            self.meddles.iter().filter(|id| self.world.items.contains_key(*id)).cloned().collect();
        for id in meddled {
            let stamped = self.world.items[&id].stamp.is_some();
            if stamped && self.world.items[&id].deployed {
                let back = Some(V1.to_owned()).filter(|_| self.dice.below(2) == 0);
                self.world.change(&id, |item| {
                    item.image = back;
                    item.progress = Fact::Known(Progress::Ready);
                });
            }
        }
    }

    /// Those who write times into their status do so again.
    fn toggle(&mut self) {
        for id in self.toggles.clone() {
            let (now, silent) = (self.world.now, self.dice.below(2) == 0);
            self.world.change(&id, |item| {
                let ready = item.progress == Fact::Known(Progress::Ready);
                if silent {
                    item.progress = Fact::Unknown("it says nothing".into());
                } else if !ready {
                    item.progress = Fact::Known(Progress::Moving { since: Some(now) });
                }
            });
        }
    }

    /// People repair everything.
    fn make_peace(&mut self) {
        self.meddles.clear();
        self.bad.clear();
        self.mute.clear();
        self.toggles.clear();
        let ids: Vec<ItemId> = self.world.items.keys().cloned().collect();
        for id in &ids {
            self.world.change(id, |item| {
                if item.manual != Fact::Known(true) {
                    item.manual = Fact::Known(false);
                }
                if item.progress.known().is_none() {
                    item.progress = Fact::Known(Progress::Moving { since: None });
                }
            });
        }
        self.service(true);
        self.world.retry = true;
    }

    fn everything_is_up_to_date(&self) {
        for (id, item) in self.world.items.iter().filter(|(_, item)| item.manual.is(&false)) {
            let (name, terms) = self.world.index.terms().tier_of(&item.tier).unwrap();
            assert_eq!(item.image.as_ref(), Some(&terms.image), "walk {}: {id} of {name} at the end", self.seed);
        }
        let names: Vec<&TierName> = self.world.record.tiers.keys().collect();
        for name in names {
            let kept = &self.world.record.tiers[name];
            assert_eq!((kept.complete, &kept.new_image), (true, &kept.image), "walk {}: {name}", self.seed);
        }
        assert!(self.world.index.item(&id("nobody")).is_none());
    }
}

#[test]
fn whatever_happens_the_order_and_the_limits_hold_and_it_ends() {
    (0..1_500).for_each(walk);
}
