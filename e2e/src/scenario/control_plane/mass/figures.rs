//! What a mass of stamps came to. Pure.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde::Serialize;

use super::{TIERS, witness::Story};
use crate::audit::Request;

/// More writes than this per resource are too many.
const WRITES: f64 = 1.05;
/// With fewer resources than this, what every fleet costs once weighs too much to say so.
const MANY: usize = 2_000;

/// What the operator sent, by the API server's own word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spent {
    /// All requests: reads, writes, Leases, events.
    pub requests: usize,
    /// Of these, writes.
    pub writes: usize,
    /// Of these, writes to resources that were not as they had been seen.
    pub conflicts: usize,
}

impl Spent {
    /// What these requests come to.
    pub fn of<'a>(requests: impl Iterator<Item = &'a Request>) -> Self {
        let mut spent = Self::default();
        for request in requests {
            spent.requests += 1;
            spent.writes += usize::from(request.writes());
            let conflict = request.object_ref.resource == "dicoms" && request.response_status.code == 409;
            spent.conflicts += usize::from(conflict);
        }
        spent
    }
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// How many there are.
    pub resources: usize,
    /// How many got the image.
    pub stamped: usize,
    /// How many got it more than once.
    pub repeated: usize,
    /// Resources that got the image while one of a higher priority was not up to date.
    pub order_violations: usize,
    /// What was sent.
    #[serde(flatten)]
    pub spent: Spent,
    /// For each resource.
    pub requests_per_resource: f64,
    /// For each resource.
    pub writes_per_resource: f64,
    /// The most memory that the operator had, in MiB.
    pub peak_memory_mib: u64,
    /// Its time, as so many times that of the bare loop.
    pub time_ratio: f64,
    /// How far the two loops differ, as a share of the shorter one: the ratio is not better known than this.
    pub loop_spread: f64,
    /// Requests by FlowSchema.
    pub flows: BTreeMap<String, u64>,
}

#[expect(clippy::cast_precision_loss, reason = "counts of requests are small")]
fn ratio(one: usize, other: usize) -> f64 {
    one as f64 / other.max(1) as f64
}

impl Figures {
    /// From what happened, what was sent, and how long it took.
    pub fn new(
        resources: usize,
        story: &Story,
        spent: Spent,
        peak_memory_mib: u64,
        took: Duration,
        loops: [Duration; 2],
        flows: Vec<(String, u64)>,
    ) -> Self {
        let Order { stamped, repeated, violations } = judge(story);
        let [first, second] = loops.map(|one| one.as_secs_f64());
        Self {
            resources,
            stamped,
            repeated,
            order_violations: violations,
            spent,
            requests_per_resource: ratio(spent.requests, resources),
            writes_per_resource: ratio(spent.writes, resources),
            peak_memory_mib,
            time_ratio: took.as_secs_f64() / f64::midpoint(first, second),
            loop_spread: (first - second).abs() / first.min(second),
            flows: flows.into_iter().collect(),
        }
    }

    /// What should not be.
    pub fn wrong(&self) -> Vec<String> {
        let flow = |name: &str| self.flows.get(name).copied().unwrap_or(0);
        let stamped = u64::try_from(self.stamped).unwrap_or(u64::MAX);
        let rules = [
            (self.stamped == self.resources, format!("{} of {} got the image", self.stamped, self.resources)),
            (self.repeated == 0, format!("{} got it more than once", self.repeated)),
            (self.order_violations == 0, format!("{} went before their turn", self.order_violations)),
            (
                self.writes_per_resource <= WRITES || self.resources < MANY,
                format!("{:.3} writes per resource", self.writes_per_resource),
            ),
            (flow("windlass-fleets") >= stamped, format!("stamps went another way: {:?}", self.flows)),
            (flow("windlass-lease") > 0, format!("the Lease went another way: {:?}", self.flows)),
        ];
        rules.into_iter().filter(|(holds, _)| !holds).map(|(_, wrong)| wrong).collect()
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spent, .. } = self;
        writeln!(f, "stamped                {} of {}, {} more than once", self.stamped, self.resources, self.repeated)?;
        writeln!(f, "order violations       {}", self.order_violations)?;
        writeln!(f, "requests per resource  {:.3} ({} in all)", self.requests_per_resource, spent.requests)?;
        writeln!(f, "writes per resource    {:.3} ({} in all)", self.writes_per_resource, spent.writes)?;
        writeln!(f, "conflicts retried      {}", spent.conflicts)?;
        writeln!(f, "peak memory            {} MiB", self.peak_memory_mib)?;
        write!(
            f,
            "time                   {:.2} times a bare loop with the same patches (two such loops differ by {:.0} %)",
            self.time_ratio,
            self.loop_spread * 100.0
        )
    }
}

struct Order {
    stamped: usize,
    repeated: usize,
    violations: usize,
}

/// Follows the changes in their order: who gets the image, and whether everybody of a higher priority was up to date with it then.
fn judge(story: &Story) -> Order {
    let wanted = story.changes.last().map(|last| last.image.clone()).unwrap_or_default();
    let priority = |tier: &str| TIERS.iter().find(|(name, ..)| *name == tier).map_or(0, |(_, priority, _)| *priority);
    let mut now = story.begin.clone();
    let mut lacking = BTreeMap::<i64, usize>::new();
    for seen in now.values().filter(|seen| seen.image != wanted || !seen.up_to_date) {
        *lacking.entry(priority(&seen.tier)).or_default() += 1;
    }
    let mut stamps = BTreeMap::<&(String, String), usize>::new();
    let mut violations = 0;
    for change in &story.changes {
        let Some(before) = now.insert(change.key.clone(), change.clone()) else { continue };
        let mine = priority(&change.tier);
        if before.image != change.image {
            *stamps.entry(&change.key).or_default() += 1;
            violations += usize::from(lacking.iter().any(|(other, count)| *other > mine && *count > 0));
        }
        let done = |seen: &super::witness::Seen| seen.image == wanted && seen.up_to_date;
        let count = lacking.entry(mine).or_default();
        match (done(&before), done(change)) {
            (false, true) => *count = count.saturating_sub(1),
            (true, false) => *count += 1,
            (true, true) | (false, false) => {}
        }
    }
    Order { stamped: stamps.len(), repeated: stamps.values().filter(|count| **count > 1).count(), violations }
}

#[cfg(test)]
mod tests {
    use super::{super::witness::Seen, Order, Story, judge};

    fn seen(name: &str, tier: &str, image: &str, up_to_date: bool) -> Seen {
        let key = ("clinics".to_owned(), name.to_owned());
        Seen { key, uid: name.to_owned(), revision: 1, tier: tier.to_owned(), image: image.to_owned(), up_to_date }
    }

    fn order(changes: Vec<Seen>) -> (usize, usize, usize) {
        let begin = [seen("a", "canary", "v1", true), seen("b", "", "v1", true)];
        let begin = begin.into_iter().map(|seen| (seen.key.clone(), seen)).collect();
        let Order { stamped, repeated, violations } = judge(&Story { begin, changes });
        (stamped, repeated, violations)
    }

    #[test]
    fn who_goes_after_the_higher_tier_goes_in_order() {
        let changes = vec![
            seen("a", "canary", "v2", false),
            seen("a", "canary", "v2", true),
            seen("b", "", "v2", false),
            seen("b", "", "v2", true),
        ];
        assert_eq!(order(changes), (2, 0, 0));
    }

    #[test]
    fn who_goes_before_it_is_up_to_date_does_not() {
        let changes = vec![
            seen("a", "canary", "v2", false),
            seen("b", "", "v2", false),
            seen("a", "canary", "v2", true),
            seen("b", "", "v2", true),
        ];
        assert_eq!(order(changes), (2, 0, 1));
    }

    #[test]
    fn what_is_set_twice_is_counted() {
        let changes = vec![
            seen("a", "canary", "v2", false),
            seen("a", "canary", "v1", false),
            seen("a", "canary", "v2", true),
            seen("b", "", "v2", true),
        ];
        assert_eq!(order(changes), (2, 1, 0));
    }
}
