//! What is seen of one resource of a fleet.

use std::{fmt, sync::Arc};

use jiff::Timestamp;

use crate::{
    bug::{self, Bug},
    fact::Fact,
};

/// So often an image is put back on a resource before it counts as contested (E13).
pub(super) const ROUNDS: u32 = 3;

/// One resource. Cheap to copy: a fleet names it in several places.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemId(Arc<(String, String)>);

impl ItemId {
    /// A resource of this namespace and name; the namespace is empty where its kind has none.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self(Arc::new((namespace.into(), name.into())))
    }

    /// Its namespace; empty where its kind has none.
    pub fn namespace(&self) -> &str {
        &self.0.0
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.1
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace().is_empty() {
            write!(f, "{}/", self.namespace())?;
        }
        f.write_str(self.name())
    }
}

impl fmt::Debug for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a write names, so that it meets the resource as it was seen or misses (H1, H5).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fence {
    /// Which of that name.
    pub uid: String,
    /// As it was seen.
    pub resource_version: String,
}

/// What limits a resource beside its tier: the node that it runs on, its zone. Empty where nothing does.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane(pub String);

/// Where a resource stands in the order of its tier: fixed for its whole life and unlike its name, so that a share of a tier is no
/// corner of it, and is the same share after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u64);

impl Rank {
    /// The rank that a uid gives: FNV-1a.
    fn of(uid: &str) -> Self {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(uid.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
    }
}

/// What a resource says of itself, judged at its newest generation (H38).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is what its spec says.
    Ready,
    /// Not yet.
    Moving {
        /// Since when, where it tells.
        since: Option<Timestamp>,
    },
    /// It gave up, and says so.
    Failed(String),
}

/// What we wrote on a resource with its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The image.
    pub image: String,
    /// When.
    pub at: Timestamp,
    /// For how many times this one, on this resource, within a while.
    pub round: u32,
    /// Another ServiceImage wrote it, or we to another field.
    pub elsewhere: bool,
}

/// That a resource was not up to date with an image, and since when as far as that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unready {
    /// The image that it had.
    pub image: Option<String>,
    /// Since when; none where nobody told.
    pub since: Option<Timestamp>,
}

/// One resource as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What a write to it must name.
    pub fence: Fence,
    /// The tier that it asks for by its label; empty without one.
    pub tier: String,
    /// What else limits it.
    pub lane: Lane,
    /// The image that its spec names.
    pub image: Option<String>,
    /// A person chose its image, and it is left alone (E4).
    pub manual: Fact<bool>,
    /// It has served at least once (H38).
    pub deployed: bool,
    /// Its failure stops everything (E4).
    pub failure_halts: bool,
    /// How far it is with its image.
    pub progress: Fact<Progress>,
    /// What is remembered of it while it is not up to date, whatever it says meanwhile.
    pub unready: Option<Unready>,
    /// What we wrote on it last.
    pub stamp: Option<Stamp>,
    /// Who else set its image last, where that is known.
    pub set_by: Option<String>,
    /// The ServiceImage that has it, where that is another one.
    pub taken_by: Option<String>,
}

impl Item {
    /// Its place in the order of its tier.
    pub fn rank(&self) -> Rank {
        Rank::of(&self.fence.uid)
    }

    /// The same as it is believed after what was known of it. Whoever may write a resource may write our annotation and its times, too; that
    /// shall decide nothing for others. What we wrote is remembered, and read from the annotation only when it is seen for the first time or
    /// `writing` says that we are writing to it; how long it has been on its way counts from when that was first seen; and nothing is
    /// believed to have happened in the future.
    #[must_use]
    pub fn believed(mut self, before: Option<&Self>, writing: bool, now: Timestamp) -> Self {
        if bug::active(Bug::TenantsBelieved) {
            return self;
        }
        let before = before.filter(|before| before.fence.uid == self.fence.uid);
        let claimed = |most: u32| {
            let claim = |stamp: Stamp| Stamp { at: stamp.at.min(now), round: stamp.round.min(most), ..stamp };
            self.stamp.clone().map(claim)
        };
        let stamp = match before {
            // One round more than a restart forgets, so that nobody is contested before they set back what we wrote.
            None => claimed(ROUNDS.saturating_sub(1)),
            Some(before) if writing => claimed(before.stamp.as_ref().map_or(0, |stamp| stamp.round).saturating_add(1)),
            Some(before) => before.stamp.clone(),
        };
        self.stamp = stamp;
        self.remember(before, now);
        self
    }

    /// How long it has been on its way, across whatever it says of itself meanwhile: that it says nothing, has failed, or has another image
    /// for a moment, as whoever owns it can make it say as often as they like. What it tells is believed once.
    fn remember(&mut self, before: Option<&Self>, now: Timestamp) {
        let ready = self.progress == Fact::Known(Progress::Ready);
        let claimed = match &self.progress {
            Fact::Known(Progress::Moving { since }) => since.map(|since| since.min(now)),
            Fact::Known(Progress::Ready | Progress::Failed(_)) | Fact::Unknown(_) => None,
        };
        let was_ready =
            before.is_some_and(|before| before.image == self.image && before.progress == Fact::Known(Progress::Ready));
        let stamped = self.stamp.as_ref().map(|stamp| &stamp.image);
        let kept = before.and_then(|before| before.unready.clone());
        // Also while it has another image than the one that we gave it: setting that back gains nobody time.
        let kept =
            kept.filter(|kept| kept.image == self.image || (stamped.is_some() && kept.image.as_ref() == stamped));
        self.unready = match kept {
            Some(kept) if kept.image != self.image => Some(kept),
            Some(_) | None if ready => None,
            _ if was_ready => Some(Unready { image: self.image.clone(), since: Some(now) }),
            Some(kept) if bug::active(Bug::TimesBelievedAgain) && !was_moving(before) => {
                Some(Unready { since: claimed, ..kept })
            }
            Some(kept) => Some(Unready { since: kept.since.or(claimed), ..kept }),
            None => Some(Unready { image: self.image.clone(), since: claimed }),
        };
        if let Fact::Known(Progress::Moving { since }) = &mut self.progress {
            let unready = self.unready.as_ref().filter(|unready| unready.image == self.image);
            *since = unready.and_then(|unready| unready.since);
        }
    }

    /// How we, or another ServiceImage, set it on its way, where it has not arrived yet.
    pub fn disturbance(&self) -> Option<Disturbance> {
        let stamp = self.stamp.as_ref()?;
        match &self.progress {
            Fact::Known(Progress::Ready | Progress::Failed(_)) => return None,
            Fact::Known(Progress::Moving { .. }) | Fact::Unknown(_) => {}
        }
        if stamp.elsewhere && !bug::active(Bug::StampElsewhereForgotten) {
            return Some(Disturbance::Elsewhere);
        }
        (self.image.as_ref() == Some(&stamp.image)).then_some(Disturbance::Here)
    }
}

/// What set a resource on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// The image that it has.
    Here,
    /// One in another field, or another ServiceImage's.
    Elsewhere,
}

/// It was on its way when it was seen last, and said since when.
fn was_moving(before: Option<&Item>) -> bool {
    before.is_some_and(|before| matches!(before.progress, Fact::Known(Progress::Moving { since: Some(_) })))
}
