//! One file per concern.

mod approvals;
#[cfg(feature = "seeded-bugs")]
mod bugs;
mod deadlines;
mod detours;
mod forecasts;
#[cfg(feature = "seeded-bugs")]
mod gate_bugs;
mod gate_walks;
mod gates;
mod holds;
mod leader_last;
mod manifest;
mod mends;
mod paths;
mod pauses;
mod permits;
mod poison;
mod properties;
mod reasons;
mod soaks;
mod stories;
mod walks;
mod windows;
