//! Reading from registries that keep to the rules, and from those that don't.
//!
//! Most of them live in the process: they hear what is sent, to which address, and answer from a script, in a time that passes by itself. What
//! only a socket shows is in `sockets`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that can't be set up fails")]

mod auth;
mod blobs;
#[cfg(feature = "seeded-bugs")]
mod bugs;
mod canaries;
mod documents;
mod redirects;
mod referrers;
mod sockets;
mod world;
