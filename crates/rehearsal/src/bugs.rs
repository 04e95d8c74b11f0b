//! Plants each seeded bug in turn and demands that the crash test or the random walks catch it. A suite that can't fail proves nothing.

use strum::IntoEnumIterator;
use windlass_plan::bug::Bug;

/// Where and how soon a bug was caught.
#[derive(Debug)]
pub struct Caught {
    /// Which.
    pub bug: Bug,
    /// By what, with the words for it; none if it was not.
    pub by: Option<String>,
    /// How many runs it took.
    pub runs: usize,
}

/// Every bug that can be planted.
pub fn all() -> Vec<Bug> {
    Bug::iter().collect()
}

/// Hunts one bug with at most so many seeds.
#[cfg(feature = "seeded-bugs")]
pub fn hunt(bug: Bug, seeds: usize) -> Caught {
    use crate::{crash, fleet, walk};

    let walked = fleet::run(
        seeds,
        |number| planted(bug, || walk::walk(number as u64)),
        |walked| walked.fault.is_some(),
    );
    if let Some((index, walked)) = walked.iter().enumerate().find(|(_, walked)| walked.fault.is_some()) {
        let fault = walked.fault.clone().unwrap_or_default();
        return Caught { bug, by: Some(format!("walk {}: {fault}", walked.seed)), runs: index + 1 };
    }
    let runs = walked.len();
    let (tried, failure) = crash::hunt(crash::SEEDS, |strike| planted(bug, strike));
    Caught { bug, by: failure.map(|failure| format!("crash: {failure}")), runs: runs + tried }
}

/// Runs something with a bug planted on this thread.
#[cfg(feature = "seeded-bugs")]
fn planted<T>(bug: Bug, run: impl FnOnce() -> T) -> T {
    windlass_plan::bug::plant(Some(bug));
    let result = run();
    windlass_plan::bug::plant(None);
    result
}
