//! What must be found again after a restart.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::want::TierName;

/// How far a fleet is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// By tier.
    pub tiers: BTreeMap<TierName, TierRecord>,
    /// The priority that is being worked on, and since when; none when nothing is.
    pub current: Option<(i64, Timestamp)>,
    /// When a person asked last to try again.
    pub retried_at: Option<Timestamp>,
    /// Since when it has been under way, or done.
    pub changed_at: Option<Timestamp>,
    /// Whoever is asked before these images has let them begin.
    pub hooks_passed: bool,
    /// Since when resources that serve have been changed; none once everybody is up to date and whoever is asked then is content.
    pub under_way: Option<Timestamp>,
}

/// How far a tier is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierRecord {
    /// The image that all of this is about.
    pub image: String,
    /// What a resource without an image gets: the old one until the tier is done (E5).
    pub new_image: String,
    /// When its first resource was up for a change.
    pub started_at: Option<Timestamp>,
    /// Everybody was up to date, and has kept the image since.
    pub complete: bool,
    /// How many of the shares that go first are done.
    pub shares_done: usize,
    /// Since when the share that is going first has been well.
    pub well_since: Option<Timestamp>,
    /// A person is asked.
    pub asked: bool,
    /// And has approved.
    pub approved: bool,
}

impl TierRecord {
    /// Nothing done yet for this image.
    pub fn begin(image: &str, new_image: &str) -> Self {
        Self {
            image: image.to_owned(),
            new_image: new_image.to_owned(),
            started_at: None,
            complete: false,
            shares_done: 0,
            well_since: None,
            asked: false,
            approved: false,
        }
    }
}
