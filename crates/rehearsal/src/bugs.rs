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

/// Every bug that a whole cluster shows by chance.
pub fn all() -> Vec<Bug> {
    let elsewhere = |bug: &Bug| [IN_IMAGES, IN_PLAN, IN_RIGHTS, IN_STORIES].iter().any(|suite| suite.contains(bug));
    Bug::iter().filter(|bug| !elsewhere(bug)).collect()
}

/// What shows only in the very moment: stories of their own catch these (`unreadable`, `evidence`, `budgets`, `permits`,
/// `service_image` and `bad_input` in `tests/stories`).
const IN_STORIES: &[Bug] = &[
    Bug::HeldBlindly,
    Bug::HoldWaitsForALook,
    Bug::LostImageForgotten,
    Bug::NodesNotAwaited,
    Bug::OldEvidenceActs,
    Bug::PlaintextLogin,
    Bug::TaintsIgnored,
    Bug::UnreadableIsNothing,
    Bug::UnreadableIsSettled,
];

/// What shows only when a pod is lost in the very moment, or a member is down for good, and what is wrong with a gate that people set, for
/// nothing in the cluster tells a window, an answer or an image that came later from another: the planner's own stories and walks catch these
/// (`crates/plan/tests/decisions/bugs.rs` and `gate_bugs.rs`). What a fleet's decision gets wrong is caught there, too (`crates/plan/tests/fleet/bugs.rs`).
/// What shows where others have a say, a second ServiceImage or a policy, has tests of its own (`tests/stories/service_image_company.rs`).
const IN_PLAN: &[Bug] = &[
    Bug::AbortTooLate,
    Bug::AnyFailureHalts,
    Bug::AbortedHandOverFinished,
    Bug::AnyGateOverridden,
    Bug::ApprovalOfAnother,
    Bug::BegunForgotten,
    Bug::BehindHidesSick,
    Bug::BudgetBypassed,
    Bug::BudgetCountsTooLate,
    Bug::BudgetGoneUnnoticed,
    Bug::BudgetOfOthersCounts,
    Bug::CanarySkipped,
    Bug::ClusterVersionIgnored,
    Bug::ContestedFought,
    Bug::ContractNotAwaited,
    Bug::DeadlineForcesDowngrade,
    Bug::DrainedBack,
    Bug::FailedPullCounts,
    Bug::FailureIgnored,
    Bug::FollowsAnyTemplate,
    Bug::LedOnTheWayBack,
    Bug::FollowsRollingUpdate,
    Bug::GivenUpForgotten,
    Bug::GivenUpNotAwaited,
    Bug::HandOverUnbounded,
    Bug::HealthAlone,
    Bug::HopelessIgnored,
    Bug::InFlightUnlimited,
    Bug::LanesOfEachTier,
    Bug::LateOneUnnoticed,
    Bug::LostImageIsNew,
    Bug::LagByDistance,
    Bug::LostOneWaits,
    Bug::ManualStamped,
    Bug::MarkNotAwaited,
    Bug::MendCostsQuorum,
    Bug::MinReadyIgnored,
    Bug::NewImageTooEarly,
    Bug::NonVotersCounted,
    Bug::NonVotersIgnored,
    Bug::OldMeasureCounts,
    Bug::OriginalPartitionIsOurs,
    Bug::AstrayForEver,
    Bug::StampElsewhereForgotten,
    Bug::OverrideOutlivesItself,
    Bug::OwnersIgnored,
    Bug::AdoptedAbove,
    Bug::AdoptedDowngrade,
    Bug::AdoptedUnknown,
    Bug::OpenAbove,
    Bug::RolledForward,
    Bug::SwitchOutlivesRecord,
    Bug::PausedTrialUnnoticed,
    Bug::PoisonLeftStanding,
    Bug::TrialForgotten,
    Bug::RefusedCountsAsShare,
    Bug::RefusedStopsAll,
    Bug::RefusalSettles,
    Bug::UnansweredForEver,
    Bug::UnansweredStopsAll,
    Bug::UnsettledForgotten,
    Bug::ReservedNotCounted,
    Bug::RetargetBelowLeader,
    Bug::RetargetHalfWay,
    Bug::RetargetUngated,
    Bug::ScaleUpNotParked,
    Bug::LostParkingForgotten,
    Bug::ForeignStrategyUnminded,
    Bug::ForeignTemplateHides,
    Bug::LeadershipWanders,
    Bug::ConcludedForgotten,
    Bug::LeftAbove,
    Bug::UnrecordedOrderIgnored,
    Bug::TermIgnored,
    Bug::UnseenOursUnminded,
    Bug::UnseenTemplateUnminded,
    Bug::UnwatchedNeverLed,
    Bug::SharedFieldManager,
    Bug::SilencePassedBy,
    Bug::SoakGoesOn,
    Bug::StampedIsDone,
    Bug::StrategyFought,
    Bug::SwitchBeforeSnapshot,
    Bug::SwitchFought,
    Bug::SwitchHeldBack,
    Bug::SwitchLeftStanding,
    Bug::SwitchNotConcluded,
    Bug::TemplateFought,
    Bug::TemplateTakenOver,
    Bug::TenantsBelieved,
    Bug::TierAnalysisIgnored,
    Bug::TimesBelievedAgain,
    Bug::TierBelowCompletes,
    Bug::TierOrderIgnored,
    Bug::TwoOwnersDuel,
    Bug::UnknownGatePasses,
    // In tests/stories/service_image.rs: it takes a change of labels in the very moment of a write.
    Bug::UnselectedStamped,
    Bug::WindowEndIgnored,
    Bug::WindowIgnored,
    Bug::YesForAll,
    Bug::YoungPodMended,
];

/// What is wrong with images shows without a cluster: `crates/images` catches these.
const IN_IMAGES: &[Bug] = &[
    Bug::AnyIdentity,
    Bug::AttestationCounts,
    Bug::CacheIgnoresPolicy,
    Bug::CredentialsFollowRedirect,
    Bug::LayerNotHashed,
    Bug::LinkFollowed,
    Bug::LogSkipped,
    Bug::PayloadDigestIgnored,
    Bug::PlatformNotChecked,
    Bug::RedirectAnywhere,
    Bug::ReleaseNameTrusted,
    Bug::SizeUnbounded,
    Bug::UnknownVerifies,
    Bug::WhiteoutIgnored,
];

/// What only an administrator can bring about: `tests/stories/rights.rs` catches these.
const IN_RIGHTS: &[Bug] = &[Bug::AuthorAskedOnce];

/// Hunts one bug with at most so many seeds: where it is likelier to show first.
pub fn hunt(bug: Bug, seeds: usize) -> Caught {
    if let Some(seed) = SEEN.iter().find_map(|(seen, seed)| (*seen == bug).then_some(*seed))
        && let Some(fault) = blamed(bug, seed).fault
    {
        return Caught { bug, by: Some(format!("walk {seed}: {fault}")), runs: 1 };
    }
    if is_of_fleets(bug) {
        let (runs, by) = crate::stamping::hunt(seeds, |run| planted(bug, run));
        return Caught { bug, by, runs };
    }
    let (first, second): (Suite, Suite) = if shows_around_a_crash(bug) { (crash, walks) } else { (walks, crash) };
    let (runs, by) = first(bug, seeds);
    if by.is_some() {
        return Caught { bug, by, runs };
    }
    let (more, by) = second(bug, seeds);
    Caught { bug, by, runs: runs + more }
}

/// What goes wrong with fences and records goes wrong around a crash; what goes wrong in every mend shows in the first one that is struck.
fn shows_around_a_crash(bug: Bug) -> bool {
    matches!(bug, Bug::UnfencedWrites | Bug::NoTouchAtTakeOver | Bug::LeaseNotChecked | Bug::NoIntent)
        || is_of_evictions(bug)
        || is_of_mends(bug)
        || is_of_leader_last(bug)
        || is_of_snapshots(bug)
        || is_of_hooks(bug)
}

/// Where the rare ones were seen before. Only to save time: a walk that no longer shows it sends the hunt on to all the others.
const SEEN: &[(Bug, u64)] = &[(Bug::PermitLeftStanding, 590), (Bug::OutdatedTarget, 913)];

/// What a fleet shows and a quorum does not.
fn is_of_fleets(bug: Bug) -> bool {
    matches!(
        bug,
        Bug::BatchNotReserved
            | Bug::StampUnfenced
            | Bug::ReservedNotTouched
            | Bug::UntoldIsNew
            | Bug::StaleReady
            | Bug::RecreatedIsSettled
            | Bug::DeadWatchBelieved
            | Bug::DeletedInFlight
    )
}

fn is_of_mends(bug: Bug) -> bool {
    matches!(bug, Bug::MendBeforeTemplate | Bug::MendUnfenced | Bug::MendOnHeldRevision | Bug::MendByEviction)
}

fn is_of_leader_last(bug: Bug) -> bool {
    matches!(bug, Bug::LeaderGoesFirst | Bug::WaitsForCurrentRevision | Bug::RollingUpdateLeftSet)
}

fn is_of_evictions(bug: Bug) -> bool {
    bug == Bug::EvictUnfenced
}

fn is_of_snapshots(bug: Bug) -> bool {
    matches!(bug, Bug::SnapshotNotAwaited | Bug::ForeignJobBelieved)
}

fn is_of_hooks(bug: Bug) -> bool {
    bug == Bug::HooksNotAwaited
}

type Suite = fn(Bug, usize) -> (usize, Option<String>);

fn walks(bug: Bug, seeds: usize) -> (usize, Option<String>) {
    use crate::pool;
    let walked = pool::run(seeds, |number| blamed(bug, number as u64), |walked| walked.fault.is_some());
    let caught =
        walked.iter().find_map(|walked| walked.fault.as_ref().map(|fault| format!("walk {}: {fault}", walked.seed)));
    (walked.len(), caught)
}

fn crash(bug: Bug, _: usize) -> (usize, Option<String>) {
    use crate::crash;
    let stories = match bug {
        bug if is_of_mends(bug) => crash::mends(),
        bug if is_of_leader_last(bug) => crash::leader_last(),
        bug if is_of_evictions(bug) => crash::evicted(),
        bug if is_of_snapshots(bug) => crash::snapshots(),
        bug if is_of_hooks(bug) => crash::hooks(),
        _ => crash::STORIES.to_vec(),
    };
    let (tried, failure) = crash::hunt(&stories, |strike| planted(bug, strike));
    (tried, failure.map(|failure| format!("crash: {failure}")))
}

/// A walk with a bug planted. A fault that is there without the bug as well is none of its doing.
fn blamed(bug: Bug, seed: u64) -> crate::walk::Walked {
    use crate::walk;
    let mut walked = planted(bug, || walk::walk(seed));
    if walked.fault.is_some() && walk::walk(seed).fault.is_some() {
        walked.fault = None;
    }
    walked
}

/// Runs something with a bug planted on this thread.
fn planted<T>(bug: Bug, run: impl FnOnce() -> T) -> T {
    windlass_plan::bug::plant(Some(bug));
    let result = run();
    windlass_plan::bug::plant(None);
    result
}
