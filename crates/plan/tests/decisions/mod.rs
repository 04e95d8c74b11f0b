//! One file per concern.

#[cfg(feature = "seeded-bugs")]
mod bugs;
mod deadlines;
mod detours;
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
mod snapshots;
mod stories;
mod walks;
