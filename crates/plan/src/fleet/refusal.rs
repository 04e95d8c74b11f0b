//! Writes that were refused: each is the failure of one resource, and of nobody else (E4).

use std::time::Duration;

use jiff::Timestamp;

use super::item::Item;

/// How long a refused write rests before it is tried again, for the first time; twice as long each time after that.
const FIRST: Duration = Duration::from_secs(15);
/// And at the most.
const LONGEST: Duration = Duration::from_mins(5);

/// A resource that could not be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which one of that name.
    pub uid: String,
    /// The image that it should have got.
    pub image: String,
    /// What the API server said.
    pub why: String,
    /// How often this image was refused.
    pub tries: u32,
    /// When it is tried again.
    pub again: Timestamp,
    /// It is not time yet.
    pub resting: bool,
    /// What was written may still arrive, for nothing that was written since was answered either. Nothing else is tried, whatever is wanted.
    pub unsettled: bool,
}

impl Refusal {
    /// One more of this image on this resource, after what was known before.
    pub fn next(before: Option<&Self>, uid: &str, image: &str, why: String, now: Timestamp) -> Self {
        let before = before.filter(|before| before.uid == uid && before.image == image);
        let tries = before.map_or(1, |before| before.tries.saturating_add(1));
        let rest = FIRST.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1).min(16))).min(LONGEST);
        let again = now.saturating_add(rest).unwrap_or(Timestamp::MAX);
        Self { uid: uid.to_owned(), image: image.to_owned(), why, tries, again, resting: true, unsettled: false }
    }

    /// Whether it stands for this resource: it is not tried again yet, and what was refused is what it would get. Who has never served gets
    /// whatever its tier gives new ones, and waits for its time.
    pub(super) fn counts(&self, item: &Item, image: &str) -> bool {
        let outdated = item.image.as_deref() != Some(image);
        outdated && (self.unsettled || (self.resting && (!item.deployed || self.image == image)))
    }
}
