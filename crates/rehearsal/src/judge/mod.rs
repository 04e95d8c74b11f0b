//! Judges a run from its journal: what truly happened, never what the operator believed.
//!
//! Each invariant has a judge in a file of its own. Nobody sees the present: what a write of ours is judged by is the truth within [`EVIDENCE`]
//! before it, and it is wrong if it was wrong all that time. A permit is used later than it is given: a leader that moves onto the permitted member
//! less than [`REACTION`] before Kubernetes deletes it, or while no operator was running, is counted as a race and not as a violation.

/// A member that goes to an older version without anybody having asked for that (X1, H15).
mod backwards;
/// What people closed: locks, nodes that are emptied, a freeze (X1, X4).
mod closed;
/// A quorum lost to an eviction while a member is down because of us (H12).
mod eviction;
/// Writes of an operator after another one has taken over (H1, X2).
mod fence;
/// A leader that is asked to hand over again and again (D4).
mod hand_over;
/// Jobs that must have completed before an upgrade, and before it is done (X4).
mod hooks;
/// Pods that we delete under a partition, and what they come back from (H44).
mod mend;
/// How often leadership moves (C8, D13).
mod moves;
/// One member at a time (C2, H21).
mod one_at_a_time;
/// A quorum that is said to be ready and is not (X4).
mod ready;
/// A snapshot before the upgrade (D2).
mod snapshot;
/// Strategies of somebody else's that let pods go (H39).
mod strategy;
/// The leader, and whom the majority needs, are not taken down (C3, C4).
mod takedown;
/// A template that somebody else writes (X7).
mod template;
/// What is done while a write of our own is still on its way (H1).
mod unanswered;

/// What an entry of the journal comes to: who did what to a quorum.
mod deed;
/// What all of them know of the run so far.
mod record;
/// What is counted and judged by nobody.
mod tally;

use std::time::Duration;

use jiff::Timestamp;
use windlass_sim::{harness, journal::Entry};

use self::{
    deed::{Deed, Step},
    record::Record,
};

/// How old the truth may be that a write rests on: the operator's own limit, and the longest delay of a request under way.
const EVIDENCE: Duration = Duration::from_secs(15);
/// How long an operator has to take a permit back.
const REACTION: Duration = Duration::from_secs(10);

/// The judge of one invariant.
trait Judge {
    /// Takes in what happens next.
    fn see(&mut self, step: &Step<'_>, verdict: &mut Verdict);

    /// The run is over.
    fn end(&mut self, _verdict: &mut Verdict) {}
}

/// All of them. Where one step offends several, the first one's words come first.
fn bench(max_leader_moves: Option<usize>) -> Vec<Box<dyn Judge>> {
    vec![
        Box::new(tally::Tally),
        Box::<unanswered::Unanswered>::default(),
        Box::new(fence::Fence),
        Box::<hooks::Hooks>::default(),
        Box::new(template::Template),
        Box::<snapshot::Snapshots>::default(),
        Box::new(one_at_a_time::OneAtATime),
        Box::<backwards::Backwards>::default(),
        Box::<mend::Mends>::default(),
        Box::new(takedown::Takedown),
        Box::<closed::Closed>::default(),
        Box::new(strategy::Strategy),
        Box::<eviction::Evictions>::default(),
        Box::new(moves::Moves { allowed: max_leader_moves }),
        Box::<hand_over::HandOvers>::default(),
        Box::<ready::Ready>::default(),
    ]
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// What went wrong, with the time and the words for it.
    pub violations: Vec<String>,
    /// Permits that went bad too late for anybody to take them back.
    pub races: usize,
    /// How many states were judged.
    pub checked: usize,
    /// The smallest number of healthy members that any quorum had while it was being upgraded.
    pub min_healthy: Option<usize>,
    /// How often leadership changed hands while upgrading.
    pub leader_moves: usize,
    /// How often a leader's pod was deleted because of us.
    pub leader_restarts: usize,
    /// Pods that were deleted because of us, in order.
    pub restarts: Vec<String>,
    /// Our writes to the API, events and leases aside.
    pub writes: usize,
}

impl Verdict {
    fn object(&mut self, at: Timestamp, what: &str) {
        self.violations.push(format!("{at} {what}"));
    }
}

impl harness::Verdict for Verdict {
    fn violation(&self) -> Option<&str> {
        self.violations.first().map(String::as_str)
    }
}

/// Judges a journal. Leadership may move so often, where that is known beforehand.
pub fn judge(journal: &[Entry], max_leader_moves: Option<usize>) -> Verdict {
    let (mut judges, mut record, mut verdict) = (bench(max_leader_moves), Record::default(), Verdict::default());
    for entry in journal {
        let deed = Deed::of(entry, &record);
        let step = Step { at: entry.at, event: &entry.event, deed: &deed, record: &record };
        for judge in &mut judges {
            judge.see(&step, &mut verdict);
        }
        record.see(entry, &deed);
    }
    for judge in &mut judges {
        judge.end(&mut verdict);
    }
    verdict
}
