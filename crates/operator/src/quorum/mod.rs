//! QuorumClusters: one look after another at a StatefulSet and its quorum.
//!
//! ```text
//!   pass: by the strategy that is asked for: observe (reads) ─▶ claim ─▶ validate (pure) ─▶ plan (pure) ─▶ report (the record, before the act) ─▶ execute ─▶ say
//! ```

pub mod budget;
pub mod execute;
pub mod finalize;
pub mod gates;
pub mod intents;
pub mod nodes;
pub mod observe;
pub mod owners;
pub mod pass;
pub mod removal;
pub mod report;
pub mod rolling;
pub mod stateful_set;
pub mod strategies;
pub mod strategy;
pub mod touch;
pub mod unreadable;
pub mod validate;
