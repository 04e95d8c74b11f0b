//! Signatures that others made, judged by us and by cosign.
//!
//! `e2e/tools/signatures` made everything in `tests/fixtures/signatures` and wrote down what cosign says of it. We may refuse what cosign
//! accepts, where a table here gives the reason; never the other way round.
#![allow(clippy::expect_used, clippy::panic, reason = "a fixture that can't be read is a failed test")]

mod bugs;
mod fixtures;
mod hostile;
mod judged;
mod mutated;
mod policies;
mod remembered;
