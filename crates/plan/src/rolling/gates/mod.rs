//! What must hold before a member is taken down: named gates, asked in order, the first objection counts.
//!
//! ```text
//!   list ─▶ all gates in their order, and what they say   member ─▶ is everybody known, and up?
//!     ├─ approval  what a person approved                  window ─▶ when members may be taken down
//!     ├─ prepull   the new image on the nodes              pace ───▶ how long members take, and how long they have been well
//!     └─ outlook   where every gate stands, for people
//! ```

pub mod approval;
pub mod ask;
pub mod list;
pub mod member;
pub(crate) mod outlook;
pub(crate) mod pace;
pub mod prepull;
pub(crate) mod window;
