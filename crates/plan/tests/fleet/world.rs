//! A fleet to play with: resources, the controller behind them, and an operator that may forget everything but its record.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use windlass_plan::{
    Fact,
    fleet::{
        Amount, Diagnosis, Fence, Index, Item, ItemId, Lane, Plan, Progress, Record, Share, Stamp, Stamping, Standing,
        Tier, TierName, Verdict, View, Want, decide,
    },
    gate::ExternalGate,
};

pub const V1: &str = "r/dicom:v1";
pub const V2: &str = "r/dicom:v2";
pub const V3: &str = "r/dicom:v3";

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

pub fn id(name: &str) -> ItemId {
    ItemId::new("clinic", name)
}

pub fn tier(name: &str, image: &str, priority: i64) -> Tier {
    Tier {
        name: TierName(name.to_owned()),
        image: image.to_owned(),
        priority,
        canary: Vec::new(),
        max_in_flight: None,
        max_failures: None,
        progress_deadline: Duration::from_mins(10),
        approval: false,
    }
}

pub fn want(tiers: Vec<Tier>) -> Want {
    Want { tiers, paused: false, windows: Vec::new(), overrides: BTreeMap::new(), lane_limit: None, batch: 50 }
}

pub fn first(percent: u8, soak: u64) -> Share {
    Share { percent, soak: Duration::from_secs(soak) }
}

pub fn at_most(count: usize) -> Amount {
    Amount::Count(count)
}

/// A resource that serves from this image.
pub fn serving(name: &str, tier: &str, image: &str) -> Item {
    Item {
        fence: Fence { uid: format!("uid-{name}"), resource_version: "1".into() },
        tier: tier.to_owned(),
        lane: Lane::default(),
        image: Some(image.to_owned()),
        manual: Fact::Known(false),
        deployed: true,
        failure_halts: true,
        progress: Fact::Known(Progress::Ready),
        unready: None,
        stamp: None,
        set_by: None,
        taken_by: None,
    }
}

/// What is there, and what the operator keeps.
pub struct World {
    pub want: Want,
    pub items: BTreeMap<ItemId, Item>,
    pub index: Index,
    pub record: Record,
    pub now: Timestamp,
    pub gates: Vec<ExternalGate>,
    pub tier_gates: BTreeMap<TierName, Vec<ExternalGate>>,
    pub diagnoses: BTreeMap<TierName, Diagnosis>,
    pub approve: bool,
    pub retry: bool,
    /// How often each got its image in a row.
    pub stamped: BTreeMap<(ItemId, String), u32>,
    /// What was truly written last, whatever the resource says.
    pub truth: BTreeMap<ItemId, Stamp>,
    version: u64,
}

impl World {
    pub fn new(want: Want, items: impl IntoIterator<Item = (&'static str, Item)>) -> Self {
        let items: BTreeMap<ItemId, Item> = items.into_iter().map(|(name, item)| (id(name), item)).collect();
        let mut world = Self {
            index: Index::new(want.terms(|_| None, None), at(0)),
            want,
            items,
            record: Record::default(),
            now: at(0),
            gates: Vec::new(),
            tier_gates: BTreeMap::new(),
            diagnoses: BTreeMap::new(),
            approve: false,
            retry: false,
            stamped: BTreeMap::new(),
            truth: BTreeMap::new(),
            version: 1,
        };
        world.look_again();
        world
    }

    /// The operator forgets everything but its record, and reads everything again.
    pub fn look_again(&mut self) {
        let begun = |name: &TierName| self.record.tiers.get(name).and_then(|kept| kept.started_at);
        let terms = self.want.terms(begun, self.record.retried_at);
        self.index = Index::new(terms, self.now);
        for (id, item) in &self.items {
            self.index.observe(id, item.clone().believed(None, false, self.now));
        }
        // Who sets back what we wrote, and forges what we wrote on it, has another fight after a restart.
        self.stamped.clear();
    }

    /// What it would do now.
    pub fn plan(&self) -> Plan {
        let view = View {
            index: &self.index,
            record: &self.record,
            gates: &self.gates,
            tier_gates: &self.tier_gates,
            diagnoses: &self.diagnoses,
            approve: self.approve,
            retry: self.retry,
        };
        decide(&self.want, &view, self.now)
    }

    /// Decides and carries it out; what was written is seen at once.
    pub fn step(&mut self) -> Plan {
        let plan = self.plan();
        self.keep(&plan);
        for stamp in &plan.stamps {
            self.stamp(stamp);
        }
        plan
    }

    /// Keeps what a plan says.
    pub fn keep(&mut self, plan: &Plan) {
        self.record = plan.record.clone();
        (self.approve, self.retry) = (false, false);
        let begun = |name: &TierName| self.record.tiers.get(name).and_then(|kept| kept.started_at);
        let terms = self.want.terms(begun, self.record.retried_at);
        if terms != *self.index.terms() {
            self.index.rebuild(terms, self.now);
        }
    }

    /// A write that arrives: it meets what it was meant for, or misses.
    pub fn stamp(&mut self, stamp: &Stamping) -> bool {
        let now = self.now;
        let Some(item) = self.items.get_mut(&stamp.id).filter(|item| item.fence == stamp.fence) else { return false };
        item.image = Some(stamp.image.clone());
        item.progress = Fact::Known(Progress::Moving { since: None });
        item.stamp = Some(Stamp { image: stamp.image.clone(), at: now, round: stamp.round, elsewhere: false });
        self.stamped.retain(|(id, image), _| *id != stamp.id || *image == stamp.image);
        *self.stamped.entry((stamp.id.clone(), stamp.image.clone())).or_default() += 1;
        self.truth.extend(item.stamp.clone().map(|written| (stamp.id.clone(), written)));
        self.seen(&stamp.id, true);
        true
    }

    /// Somebody changes a resource, and it is seen.
    pub fn change(&mut self, id: &ItemId, change: impl FnOnce(&mut Item)) {
        if let Some(item) = self.items.get_mut(id) {
            change(item);
            self.seen(id, false);
        }
    }

    fn seen(&mut self, id: &ItemId, writing: bool) {
        self.version += 1;
        let Some(item) = self.items.get_mut(id) else { return };
        item.fence.resource_version = self.version.to_string();
        let believed = item.clone().believed(self.index.item(id), writing, self.now);
        self.index.observe(id, believed);
    }

    pub fn add(&mut self, name: &str, item: Item) {
        self.items.insert(id(name), item);
        self.seen(&id(name), false);
    }

    pub fn remove(&mut self, id: &ItemId) {
        self.items.remove(id);
        self.truth.remove(id);
        self.index.forget(id);
    }

    /// Whoever is on the way arrives.
    pub fn arrive(&mut self, id: &ItemId) {
        self.change(id, |item| {
            item.progress = Fact::Known(Progress::Ready);
            item.deployed = true;
        });
    }

    /// Everybody arrives.
    pub fn arrive_all(&mut self) {
        let ids: Vec<ItemId> = self.items.keys().cloned().collect();
        for id in ids {
            if self.items.get(&id).is_some_and(|item| item.image.is_some()) {
                self.arrive(&id);
            }
        }
    }

    pub fn wait(&mut self, seconds: i64) {
        self.now = Timestamp::from_second(self.now.as_second() + seconds).unwrap();
        self.index.advance(self.now);
    }

    /// Another wish.
    pub fn wish(&mut self, want: Want) {
        self.want = want;
        let begun = |name: &TierName| self.record.tiers.get(name).and_then(|kept| kept.started_at);
        self.index.rebuild(self.want.terms(begun, self.record.retried_at), self.now);
    }

    pub fn images(&self) -> BTreeMap<String, String> {
        let image = |(id, item): (&ItemId, &Item)| (id.name().to_owned(), item.image.clone().unwrap_or_default());
        self.items.iter().map(image).collect()
    }

    pub fn standing(&self, name: &str) -> Standing {
        self.index.standing(&id(name)).unwrap().1
    }
}

/// Names of those that get something now.
pub fn names(plan: &Plan) -> BTreeSet<&str> {
    plan.stamps.iter().map(|stamp| stamp.id.name()).collect()
}

/// Why it waits or halts.
pub fn reason(plan: &Plan) -> &'static str {
    match &plan.verdict {
        Verdict::Done => "Done",
        Verdict::Going => "Going",
        Verdict::Wait(hold) | Verdict::Halt(hold) => hold.reason.name(),
    }
}
