//! Pure decisions: what to do next, from what was observed.
//!
//! Everything here is synchronous and total. No clock (`now` is an argument), no I/O, no randomness, no order that depends on
//! a hash. What is not known blocks: see [`Fact`].
//!
//! ```text
//!   strategy ─▶ one quorum: strategy::plan::<S>(want, view, now) ─▶ Plan { decision: Act(Step) | Wait | Halt | Done, record }
//!   rolling  ─▶ the strategy that goes member by member
//!   fleet    ─▶ thousands of resources, tier by tier: fleet::decide
//!   forecast ─▶ strategy::plan, again and again, on a copy of the view: what would happen from here
//!
//!   what they share: gate (where a gate stands), approval, window, hold, reason, quorum, capabilities, version, path, fact, fence, bug
//! ```
//! Modules use each other in one direction only; `cargo xtask test structure` checks that.
#![deny(missing_docs, clippy::arithmetic_side_effects, clippy::indexing_slicing)]

pub mod approval;
pub mod bug;
pub mod capabilities;
pub mod fact;
pub mod fence;
pub mod fleet;
pub mod forecast;
pub mod gate;
pub mod hold;
pub mod path;
pub mod quorum;
pub mod reason;
pub mod rolling;
pub mod strategy;
pub mod trouble;
pub mod version;
pub mod window;

pub use fact::Fact;
pub use hold::Hold;
pub use path::Path;
pub use quorum::{Member, MemberName, Quorum};
pub use reason::Reason;
pub use rolling::{
    foresee::Forecast,
    known::{
        order::Order,
        record::Record,
        step::{Decision, Plan, Step},
        view::View,
        workload::{Pod, Workload},
    },
};
pub use strategy::known::{seen::Seen, snapshot::Snapshot, step::StepKind, want::Want};
pub use trouble::Trouble;
pub use version::Version;
