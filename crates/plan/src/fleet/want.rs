//! What is wanted of a fleet, after validation.

use std::{collections::BTreeMap, fmt, time::Duration};

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    window::Window,
};

/// The name of a tier: the value of the label. The empty one takes all that no other names (E2).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TierName(pub String);

impl fmt::Display for TierName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.write_str("the empty tier") } else { write!(f, "tier {}", self.0) }
    }
}

/// So many, or a share of the tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many.
    Count(usize),
    /// So many of a hundred.
    Percent(u8),
}

impl Amount {
    /// How many of `total` that is, rounded down: a limit is no goal.
    pub fn of(self, total: usize) -> usize {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => share(total, percent, 0),
        }
    }
}

/// So many of a hundred of `total`; `round` is what is added before the division.
fn share(total: usize, percent: u8, round: usize) -> usize {
    total.saturating_mul(usize::from(percent)).saturating_add(round).checked_div(100).unwrap_or(0)
}

/// A share of a tier that goes first, and for how long it must be well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// So many of a hundred.
    pub percent: u8,
    /// From when all of them are up to date.
    pub soak: Duration,
}

impl Share {
    /// How many of `total` that is: at least one, or nobody would go first.
    pub fn of(self, total: usize) -> usize {
        share(total, self.percent, 99).max(1)
    }
}

/// One tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Its name.
    pub name: TierName,
    /// The image that its resources shall have.
    pub image: String,
    /// Higher ones go first (E3).
    pub priority: i64,
    /// Shares that go first, in this order.
    pub canary: Vec<Share>,
    /// How many may be on their way at once; none for no limit.
    pub max_in_flight: Option<Amount>,
    /// How many may fail whose failure does not halt by itself; see [`Tier::failures_allowed`].
    pub max_failures: Option<Amount>,
    /// How long a resource may take.
    pub progress_deadline: Duration,
    /// A person must approve each image before the first resource gets it.
    pub approval: bool,
}

impl Tier {
    /// How many failures are put up with whose resources don't say that they halt. Where nobody says: none while a share goes first, for
    /// that is what it is for (H36); and then any number, for a failure halts only where it says so (E4).
    pub fn failures_allowed(&self, total: usize, in_canary: bool) -> usize {
        match self.max_failures {
            Some(amount) => amount.of(total),
            None if in_canary => 0,
            None if bug::active(Bug::AnyFailureHalts) => 0,
            None => usize::MAX,
        }
    }
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The tiers; no two of one name.
    pub tiers: Vec<Tier>,
    /// Nothing that runs is changed.
    pub paused: bool,
    /// When resources may be changed; always, if there is none.
    pub windows: Vec<Window>,
    /// Gates that a person set aside, and until when.
    pub overrides: BTreeMap<String, Timestamp>,
    /// How many may be on their way at once in one lane; none for no limit.
    pub lane_limit: Option<usize>,
    /// How many are written between two looks.
    pub batch: usize,
}

impl Want {
    /// Tiers by priority, highest first, then by name.
    pub fn by_priority(&self) -> Vec<&Tier> {
        let mut tiers: Vec<&Tier> = self.tiers.iter().collect();
        tiers.sort_by(|a, b| b.priority.cmp(&a.priority).then_with(|| a.name.cmp(&b.name)));
        tiers
    }

    /// What the index must know. `begun` says when a tier's image was first wanted, `retried_at` when a person asked to try again.
    pub fn terms(&self, begun: impl Fn(&TierName) -> Option<Timestamp>, retried_at: Option<Timestamp>) -> Terms {
        let terms = |tier: &Tier| {
            let terms = TierTerms {
                image: tier.image.clone(),
                deadline: tier.progress_deadline,
                started_at: begun(&tier.name),
            };
            (tier.name.clone(), terms)
        };
        Terms { tiers: self.tiers.iter().map(terms).collect(), lane_limit: self.lane_limit, retried_at }
    }
}

/// What says how one resource stands: the part of what is wanted that every resource is held against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// By name.
    pub tiers: BTreeMap<TierName, TierTerms>,
    /// How many may be on their way at once in one lane.
    pub lane_limit: Option<usize>,
    /// What was before that is forgiven.
    pub retried_at: Option<Timestamp>,
}

impl Terms {
    /// The tier of a resource that asks for this one; none where no tier takes it (E2).
    pub fn tier_of(&self, label: &str) -> Option<(&TierName, &TierTerms)> {
        let named = self.tiers.get_key_value(&TierName(label.to_owned()));
        named.or_else(|| self.tiers.get_key_value(&TierName::default()))
    }
}

/// The same for one tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierTerms {
    /// The image that its resources shall have.
    pub image: String,
    /// How long one may take.
    pub deadline: Duration,
    /// From when, where the resource does not tell.
    pub started_at: Option<Timestamp>,
}
