//! Seeded bugs: one-line mistakes that the test suites must catch.
//!
//! A suite that can't fail proves nothing, so each safety rule has a switch here that breaks it. The switches exist only with
//! the cargo feature `seeded-bugs`, which the rehearsal enables and no build of the operator alone does; without it [`active`] is the constant
//! `false`.

/// A mistake that somebody could have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::EnumIter, strum::IntoStaticStr)]
pub enum Bug {
    /// Half is taken for a majority: a member more than the quorum can spare is taken down.
    QuorumOffByOne,
    /// The leader is restarted without a hand-over.
    LeaderNotChecked,
    /// The hand-over is believed without reading the leader back.
    HandOverNotVerified,
    /// The template is written and the partition left where it was.
    TemplateWithoutPartition,
    /// A lowered partition stays, whatever happens to the quorum.
    PermitLeftStanding,
    /// The next member is taken down without waiting for the previous one.
    PreviousNotAwaited,
    /// Two members are permitted at once.
    PartitionTooLow,
    /// A new target is written over a half-done rollout, with everything held.
    RetargetHalfWay,
    /// Leadership goes to a member whose own turn is still to come.
    OutdatedTarget,
    /// A downgrade is taken for an upgrade.
    DowngradeUnnoticed,
    /// An upgrade that goes back goes on when somebody newer has led since it turned round.
    LedOnTheWayBack,
    /// Whether a way from one version to another exists is not asked.
    PathNotChecked,
    /// The next minor release is entered before the system as a whole has followed its members to the last one.
    ClusterVersionIgnored,
    /// A member that is about to get a vote is not waited for.
    NonVotersIgnored,
    /// A member without a vote counts as if it had one.
    NonVotersCounted,
    /// Decisions come from a possibly stale cache of the API server.
    StaleReads,
    /// Writes carry no resourceVersion.
    UnfencedWrites,
    /// A new leader acts without touching what its predecessor may still be writing.
    NoTouchAtTakeOver,
    /// A lost lease goes unnoticed.
    LeaseNotChecked,
    /// Who acted on a resource can't be read, and nobody's writes are waited for.
    UnreadableIsSettled,
    /// An upgrade that can't be read is taken for none: what it permits stays permitted.
    UnreadableIsNothing,
    /// A write of our own that was not answered is forgotten, and something else is decided while it may still arrive.
    UnansweredForgotten,
    /// Evictions are let through while a member is down.
    EvictionsNotHeld,
    /// A pod that somebody else's budget covers is deleted past it: a drain that counts on the same budget takes another one.
    BudgetBypassed,
    /// A budget over other pods, too, or over some of ours, is taken for one that keeps a majority of ours.
    BudgetOfOthersCounts,
    /// A member is permitted under a budget that spares one pod: the controller's delete is not counted before a drain has taken another.
    BudgetCountsTooLate,
    /// A budget of somebody else's that is taken away while a member is down is not replaced by ours.
    BudgetGoneUnnoticed,
    /// A pod counts as ready as soon as it is, whatever `minReadySeconds` says.
    MinReadyIgnored,
    /// A pod that is Ready, but not for as long as `minReadySeconds` asks, is deleted as broken.
    YoungPodMended,
    /// Nothing is recorded before an act.
    NoIntent,
    /// A broken pod is deleted before the template is mended: it comes back as broken as it was.
    MendBeforeTemplate,
    /// A broken pod is deleted without saying which one: a late request hits its successor.
    MendUnfenced,
    /// A pod of a target that was given up is deleted although it is ready and serves.
    MendReadyPod,
    /// A broken pod is deleted while it would come back on the held revision.
    MendOnHeldRevision,
    /// A pod is evicted without saying which one, as it was seen: a late request hits its successor.
    EvictUnfenced,
    /// A node that is about to be taken away is known by its cordon alone.
    TaintsIgnored,
    /// A login goes over the network in plain text although nobody accepted that.
    PlaintextLogin,
    /// A broken pod is evicted: our own budget refuses that.
    MendByEviction,
    /// A broken pod is deleted while the others are no majority.
    MendCostsQuorum,
    /// What the StatefulSet's controller has not seen yet is taken for seen.
    ControllerNotAwaited,
    /// Leadership is handed over whether or not a maintenance window is open.
    WindowIgnored,
    /// A member is begun in a window that closes before it can be done.
    WindowEndIgnored,
    /// An override is accepted for any gate, also for those that guard the quorum.
    AnyGateOverridden,
    /// An override counts after its time is up.
    OverrideOutlivesItself,
    /// What was approved for one target counts for every other.
    ApprovalOfAnother,
    /// A replaced member that was down for a moment keeps its soak.
    SoakGoesOn,
    /// A gate that can't tell lets everything through.
    UnknownGatePasses,
    /// In the order LeaderLast the leader goes first: leadership moves to a member whose own turn is still to come.
    LeaderGoesFirst,
    /// In the order LeaderLast a member that is down already waits its turn, and everybody waits for it.
    LostOneWaits,
    /// A template that nobody can live on is left standing: whoever is lost comes back broken.
    PoisonLeftStanding,
    /// A template that members serve from is put back: whoever is lost goes back a version.
    TrialForgotten,
    /// Who comes to serve from a template while the upgrade is paused proves nothing.
    PausedTrialUnnoticed,
    /// Who led between two looks is not asked for, although Raft's term tells that somebody may have.
    TermIgnored,
    /// A partition of somebody else's is not minded before the controller has seen our template, with everybody let go whom it will outdate.
    UnseenOursUnminded,
    /// A template of somebody else's is not minded before the controller has seen it, with everybody let go whom it will outdate.
    UnseenTemplateUnminded,
    /// A half-done rollout of somebody's is finished although it goes backwards.
    AdoptedDowngrade,
    /// Under OnDelete it is waited for the current revision, which never moves.
    WaitsForCurrentRevision,
    /// OnDelete is set and the `rollingUpdate` block is left there: the API server refuses that.
    RollingUpdateLeftSet,
    /// From OnDelete to RollingUpdate with everything held: a lost pod comes back from the first template ever.
    SwitchHeldBack,
    /// The template is written before the controller has concluded the switch from OnDelete to RollingUpdate.
    SwitchNotConcluded,
    /// Another target half way is written without asking the gates that the first one was asked.
    RetargetUngated,
    /// While somebody else's template stands, members that were replaced for ours count as untouched.
    ForeignTemplateHides,
    /// Another target takes the place of one whose version has led, and is older than that.
    RetargetBelowLeader,
    /// A switch to RollingUpdate that came to nothing is left standing with partition 0.
    SwitchLeftStanding,
    /// A partition whose raising met the controller's status is raised only after all members were looked at again.
    HoldWaitsForALook,
    /// It is raised again at once, whether or not a pod was replaced meanwhile: that one goes back when it is lost.
    HeldBlindly,
    /// Evictions are let through while a member that was replaced for another template has not joined: a drain takes a second one.
    GivenUpNotAwaited,
    /// Evictions are let through while everybody is held above a member that was replaced: whoever is drained goes back.
    DrainedBack,
    /// Another image that somebody wrote is asked for, and everybody is held anew, above those whom Kubernetes has replaced for it already.
    AdoptedAbove,
    /// Evictions that are open stay so when everybody is held above a member that was replaced.
    OpenAbove,
    /// A switch from OnDelete is left standing once an upgrade is recorded, although its template was not written.
    SwitchOutlivesRecord,
    /// A half-done rollout is taken over although a member does not tell its version: it may go backwards.
    AdoptedUnknown,
    /// Asked to go back from a rollout that was taken over half way, it goes on: where it came from is where it goes to.
    RolledForward,
    /// The strategy is switched before the snapshot is taken.
    SwitchBeforeSnapshot,
    /// A set that is scaled up at rest is left with members above its partition.
    ScaleUpNotParked,
    /// A target that was given up is begun again as soon as everybody is back.
    GivenUpForgotten,
    /// A deadline takes everybody back although a newer version has led.
    DeadlineForcesDowngrade,
    /// A person who says stop is heard when the next member is done.
    AbortTooLate,
    /// A new leader finishes a hand-over of its predecessor's although a person said stop.
    AbortedHandOverFinished,
    /// Leadership that does not move is asked to, for ever.
    HandOverUnbounded,
    /// A follower must be within some entries of where the leader is, and in a busy quorum none ever is.
    LagByDistance,
    /// A member that is behind counts as one that has caught up.
    MarkNotAwaited,
    /// What was measured before the last member was replaced lets the next one go.
    OldMeasureCounts,
    /// A webhook's yes to one member counts for every other.
    YesForAll,
    /// A member that is merely behind hides one that is sealed, unhealthy or not known.
    BehindHidesSick,
    /// The template of somebody else is written.
    TemplateTakenOver,
    /// Another template half way is replaced from without asking whether that is a downgrade.
    FollowsAnyTemplate,
    /// Pods are replaced for a template that is not held by OnDelete.
    FollowsRollingUpdate,
    /// An upgrade begins while its snapshot is still being taken, or has failed.
    SnapshotNotAwaited,
    /// What has to run before an upgrade begins or is done is not waited for.
    HooksNotAwaited,
    /// A Job of the right name is believed, whoever made it.
    ForeignJobBelieved,
    /// A node that could not pull the new image counts as one that did.
    FailedPullCounts,
    /// The next tier is begun before those above it are up to date.
    TierOrderIgnored,
    /// A resource is up to date because it is well, whatever image it has.
    HealthAlone,
    /// A resource is up to date as soon as it has its image.
    StampedIsDone,
    /// What may still be on its way does not count against the limits.
    ReservedNotCounted,
    /// As many are changed at once as fit into a batch.
    InFlightUnlimited,
    /// A share that goes first is not waited for.
    CanarySkipped,
    /// A tier goes on, and is done, whatever is measured.
    TierAnalysisIgnored,
    /// An image that a person chose is replaced.
    ManualStamped,
    /// A failure that halts everything halts nothing.
    FailureIgnored,
    /// A new resource gets the new image before its tier has proven it.
    NewImageTooEarly,
    /// An image that somebody sets back is put there again, for ever.
    ContestedFought,
    /// A batch is written without being reserved first.
    BatchNotReserved,
    /// Stamps don't say which state of a resource they are for.
    StampUnfenced,
    /// A new leader does not touch what its predecessor reserved.
    ReservedNotTouched,
    /// An image that nobody can run is waited for, and given to more.
    HopelessIgnored,
    /// A failure that does not say so halts everything, without a share that goes first.
    AnyFailureHalts,
    /// Each of several tiers of one priority fills the lanes anew.
    LanesOfEachTier,
    /// A tier below an unfinished one is done because it has nothing to do: its new resources get the new image.
    TierBelowCompletes,
    /// A resource that served and lost its image is taken for a new one.
    LostImageIsNew,
    /// The same after a restart, although what we wrote on it tells that it had one.
    LostImageForgotten,
    /// A late resource on the old image leaves its tier complete.
    LateOneUnnoticed,
    /// Times and rounds are believed that whoever owns a resource may have written.
    TenantsBelieved,
    /// A resource that says nothing is passed by like a failure that does not halt.
    SilencePassedBy,
    /// Resources are changed although none of them says what could be judged afterwards.
    ContractNotAwaited,
    /// An expression that is true of the image before is taken for the new one's.
    StaleReady,
    /// A ServiceImage that nobody has claimed yet is settled: another one of its name may have been deleted with writes on their way.
    RecreatedIsSettled,
    /// A resource that has left the selector is stamped.
    UnselectedStamped,
    /// A resource without the condition Deployed has never served, whatever image it has.
    UntoldIsNew,
    /// Whether authors' rights are asked for is found out once, and believed for ever.
    AuthorAskedOnce,
    /// A resource that another ServiceImage has is stamped all the same, by both, for ever.
    TwoOwnersDuel,
    /// A write that is refused ends the batch and everything after it.
    RefusedStopsAll,
    /// A write that is not answered ends the batch and everything after it.
    UnansweredStopsAll,
    /// A resource whose writes are not answered is not kept reserved: what was sent to it lands late.
    UnsettledForgotten,
    /// A resource whose writes are never answered is waited for without end.
    UnansweredForEver,
    /// A touch that is refused settles a write that was sent a moment ago and not answered.
    RefusalSettles,
    /// A resource that can't be given its image counts as one that was, when a share goes first.
    RefusedCountsAsShare,
    /// All ServiceImages write as one manager of fields: one that writes elsewhere removes what the other wrote.
    SharedFieldManager,
    /// Steps rest on what was seen however long ago.
    OldEvidenceActs,
    /// A partition that is to hold everybody again and whose write was refused is taken for somebody else's from then on.
    LostParkingForgotten,
    /// What led while the resource could not be read is taken for not having led.
    UnwatchedNeverLed,
    /// A strategy that somebody else set is left alone while what is wanted can't be read, however many it lets go.
    ForeignStrategyUnminded,
    /// Where Kubernetes goes on by itself, whoever leads and is outdated is asked to hand over, to another one that is outdated.
    LeadershipWanders,
    /// A tier whose beginning an older release wrote down otherwise is taken for one that was never begun.
    BegunForgotten,
    /// What begins in the look that finds it asks about no node.
    NodesNotAwaited,
    /// Under somebody's template it is forgotten that the controller had concluded ours.
    ConcludedForgotten,
    /// Whoever goes away holds everybody, those too that were replaced and would come back as before.
    LeftAbove,
    /// What can't be read is taken for an upgrade that holds by a partition.
    UnrecordedOrderIgnored,
    // Images.
    /// What a registry was shown is shown to the host that it redirects to, too.
    CredentialsFollowRedirect,
    /// A blob is read on past the size that its descriptor names.
    SizeUnbounded,
    /// An image is taken although it is not for the platforms of the nodes.
    PlatformNotChecked,
    /// A redirect is followed wherever it leads.
    RedirectAnywhere,
    /// A signed SBOM or scan report counts as a signature of its image.
    AttestationCounts,
    /// A signature counts for every image, whichever it names.
    PayloadDigestIgnored,
    /// Everybody that the trust root's authorities vouch for may sign.
    AnyIdentity,
    /// A signature that is in no log counts where the trust root names one.
    LogSkipped,
    /// What could not be asked or read counts as verified.
    UnknownVerifies,
    /// What was verified under one policy is verified under every other.
    CacheIgnoresPolicy,
    /// What an upper layer deletes is taken from a lower one.
    WhiteoutIgnored,
    /// A link where a file or its folder should be is let pass: the file comes from wherever the path leads.
    LinkFollowed,
    /// A layer is believed without comparing its digests.
    LayerNotHashed,
    /// A signed file is of the release that it is offered as, whatever it was signed as.
    ReleaseNameTrusted,
    /// An upgrade begins although somebody else owns the image or the strategy and writes them again.
    OwnersIgnored,
    /// A partition that somebody sets back to what it was before the upgrade is taken for ours.
    OriginalPartitionIsOurs,
    /// A strategy that somebody sets back again and again is held again and again.
    StrategyFought,
    /// A strategy that somebody sets back to OnDelete at rest is switched again and again.
    SwitchFought,
    /// A template that somebody sets back before it was seen is written again and again.
    TemplateFought,
    /// After a resource of a fleet said nothing, or that it failed, the time that it tells is believed again.
    TimesBelievedAgain,
    /// What a fleet looked like when its watch was last alive is believed however long ago that was.
    DeadWatchBelieved,
    /// A ServiceImage may be deleted with writes on their way: what it reserved is forgotten with it.
    DeletedInFlight,
    /// What was set on its way by a write to another field counts as undisturbed.
    StampElsewhereForgotten,
    /// What is on its way to an image that nobody wants counts against the limits until its turn comes, which may be never.
    AstrayForEver,
}

#[cfg(feature = "seeded-bugs")]
mod switch {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Plants a bug (or none) on this thread.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    /// Whether this bug is planted on this thread.
    pub fn active(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(feature = "seeded-bugs")]
pub use switch::{active, plant};

/// Always false: this build has no seeded bugs.
#[cfg(not(feature = "seeded-bugs"))]
#[inline]
pub const fn active(_: Bug) -> bool {
    false
}
