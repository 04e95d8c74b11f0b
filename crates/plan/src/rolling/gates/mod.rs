//! What must hold before a member is taken down: named gates, asked in order, the first objection counts.
//!
//! ```text
//!   list ─▶ all gates in their order                       member ─▶ is everybody known, and up?
//!     ├─ ask       the question that they are asked        pace ───▶ how long members take, and how long they have been well
//!     └─ outlook   where every gate stands, for people
//! ```

pub mod ask;
pub mod list;
pub mod member;
pub(crate) mod outlook;
pub(crate) mod pace;
