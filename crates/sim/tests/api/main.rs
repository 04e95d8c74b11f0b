//! The embedded API server, asked the way that clients ask.

#![expect(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod custom;
mod deletion;
mod eviction;
mod http;
mod objects;
mod reading;
mod recorded;
mod support;
mod watching;
