//! What is wanted, what was seen, what was recorded, and what can be decided: types, and no decision.

pub mod approval;
pub mod contest;
pub mod decision;
pub mod mark;
pub mod order;
pub mod owners;
pub mod parked;
pub mod proof;
pub mod pulls;
pub mod record;
pub mod request;
pub mod snapshot;
pub mod stage;
pub mod view;
pub mod want;
pub mod workload;
