//! What every strategy wants, sees and decides: types, and no decision.

pub mod approval;
pub mod ask;
pub mod decision;
pub mod pulls;
pub mod request;
pub mod seen;
pub mod snapshot;
pub mod step;
pub mod want;
