//! The members of a quorum: where they are, how they are asked, what their answers mean, and how their leader is told to hand over.
//!
//! ```text
//!   a StatefulSet and its pods ─▶ reach (places, peers) ─▶ look (credentials, TLS) ─▶ system (one adapter per system, with its facts) ─▶ Quorum
//! ```

pub mod account;
pub mod auth;
pub mod describe;
pub mod look;
pub mod place;
pub mod reach;
pub mod system;
