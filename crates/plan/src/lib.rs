//! Pure decisions: what to do next, from what was observed.
//!
//! Everything here is synchronous and total. No clock (`now` is an argument), no I/O, no randomness, no order that depends on
//! a hash. [`rollout::plan`] is the entry: it takes what is wanted and what was seen, and answers with one [`Decision`] and the
//! record to keep. What is not known blocks: see [`Fact`].
//!
//! ```text
//!   Want ─┐
//!   View ─┼─▶ rollout::plan ─▶ Plan { decision: Act(Step) | Wait | Halt | Done, record }
//!   now  ─┘        │
//!                  ├─ request   what people ask for once: stop, go back, try again
//!                  ├─ rest      is anything wanted, and can it begin
//!                  ├─ follow    somebody else writes the template
//!                  ├─ snapshot  what must be stored before it begins
//!                  ├─ order     whose turn it is, and how a pod is let go
//!                  ├─ gate      what must hold before a member is taken down
//!                  │   ├─ outcome   what a gate says, and who set it aside
//!                  │   ├─ window    when members may be taken down
//!                  │   ├─ approval  what a person approved
//!                  │   ├─ prepull   the new image on the nodes before anybody stops
//!                  │   └─ pace      how long members take, and how long they have been well
//!                  ├─ budget    what keeps a drain from taking a second member down
//!                  ├─ parking   what the strategy is between upgrades
//!                  ├─ owners    who else writes what we write
//!                  ├─ contest   somebody sets the strategy back half way
//!                  ├─ permit    a lowered partition that Kubernetes has not used yet
//!                  ├─ retarget  somebody changes their mind half way
//!                  ├─ path      which versions lead to which
//!                  ├─ mend      a replaced member that is broken, and a spec that was mended since
//!                  ├─ poison    a template that nobody can live on
//!                  ├─ handover  who leads while it is down
//!                  ├─ lag       whether a member keeps up with the leader
//!                  └─ stage     how long each stage may take
//!   fleet    ─▶ thousands of resources, tier by tier: fleet::decide
//!   forecast ─▶ rollout::plan, again and again, on a copy of the view: what would happen from here
//! ```
#![deny(missing_docs, clippy::arithmetic_side_effects, clippy::indexing_slicing)]

pub mod approval;
pub mod budget;
pub mod bug;
pub mod contest;
pub mod decision;
pub mod fact;
pub mod fence;
pub mod fleet;
pub mod follow;
pub mod forecast;
pub mod gate;
pub mod handover;
pub mod lag;
pub mod mend;
pub mod order;
pub mod outcome;
pub mod owners;
pub mod pace;
pub mod parking;
pub mod path;
pub mod permit;
pub mod poison;
pub mod prepull;
pub mod quorum;
pub mod reason;
pub mod record;
pub mod request;
mod rest;
pub mod retarget;
pub mod rollout;
pub mod snapshot;
pub mod stage;
pub mod trouble;
pub mod version;
pub mod want;
pub mod window;
pub mod workload;

pub use decision::{Decision, Hold, Plan, Step};
pub use fact::Fact;
pub use forecast::Forecast;
pub use order::Order;
pub use path::Path;
pub use quorum::{Member, MemberName, Quorum};
pub use reason::Reason;
pub use record::Record;
pub use snapshot::Snapshot;
pub use trouble::Trouble;
pub use version::Version;
pub use want::Want;
pub use workload::{Pod, View, Workload};
