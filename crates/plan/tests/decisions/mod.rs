//! One file per concern.

mod deadlines;
mod detours;
mod gates;
mod holds;
mod manifest;
mod mends;
mod paths;
mod pauses;
mod permits;
mod properties;
mod reasons;
mod walks;
