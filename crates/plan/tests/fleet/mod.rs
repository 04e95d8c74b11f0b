//! Fleets, from the outside: what `fleet::decide` answers, and that the index never has to be rebuilt.

mod beliefs;
#[cfg(feature = "seeded-bugs")]
mod bugs;
mod contests;
mod diagnoses;
mod gates;
mod index;
mod limits;
mod refusals;
mod shares;
mod tiers;
mod walks;
mod world;
