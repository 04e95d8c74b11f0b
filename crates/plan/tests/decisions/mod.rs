//! One file per concern.

mod approvals;
mod asked;
mod budgets;
#[cfg(feature = "seeded-bugs")]
mod bugs;
mod deadlines;
mod detours;
mod follow;
mod forecasts;
#[cfg(feature = "seeded-bugs")]
mod gate_bugs;
mod gate_walks;
mod gates;
mod hand_overs;
mod holds;
mod hooks;
mod lag;
mod leader_last;
mod manifest;
mod mends;
mod non_voters;
mod owners;
mod paths;
mod pauses;
mod permits;
mod poison;
mod prepulls;
mod properties;
mod reasons;
mod requests;
mod snapshots;
mod soaks;
mod stories;
mod walks;
mod windows;
