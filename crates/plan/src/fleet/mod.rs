//! Fleets: thousands of resources brought to an image, tier by tier, under limits.
//!
//! ```text
//!   one event about one resource ─▶ Index  (O(log n): counts, candidates and deadlines are kept, never counted again)
//!   Want, Index, Record, now     ─▶ decide ─▶ Plan { stamps, verdict, record, tiers }
//!   the pods of some             ─▶ Diagnosis, which decide takes into account
//! ```
//! A resource belongs to a tier by a label, and to a lane by whatever else limits it (its node, its zone). Tiers go by priority, the next
//! one when everything above is up to date (E3). What nobody has served from yet holds nobody up (H38).

mod decide;
mod diagnosis;
mod gates;
mod index;
mod item;
mod record;
mod refusal;
mod view;
mod want;

pub use decide::{NAMED, Plan, Refused, Stamping, TierReport, Verdict, decide};
pub use diagnosis::{Ailment, Diagnosis, Finding, Look, PodLook, PodState, SAMPLE, SETTLE, Sample, sample};
pub use gates::{of_tier, split};
pub use index::{Index, Key, Lanes, Room, Standing, TierIndex};
pub use item::{Disturbance, Fence, Item, ItemId, Lane, Progress, Rank, Stamp, Unready};
pub use record::{Record, TierRecord};
pub use refusal::Refusal;
pub use view::View;
pub use want::{Amount, Share, Terms, Tier, TierName, TierTerms, Want};
