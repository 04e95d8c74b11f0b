//! Scripts from a seed.

use super::step::Script;

/// How the names of these scripts begin; the seed follows.
pub const PREFIX: &str = "random-";

/// The script of a seed.
pub fn script(seed: u64) -> Script {
    super::step::script(&format!("{PREFIX}{seed}"), Vec::new())
}
