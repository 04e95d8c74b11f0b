//! The embedded API server, asked the way that clients ask.

mod custom;
mod deletion;
mod eviction;
mod http;
mod objects;
mod reading;
mod support;
mod watching;
