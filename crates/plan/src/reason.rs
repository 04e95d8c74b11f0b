//! Why it waits: one enum whose names are condition reasons, event reasons, metric labels and the titles of runbooks.

use serde::Serialize;

/// The cause of a hold. What a person needs beyond the name is in [`Reason::next_step`] and in the hold's message.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    strum::EnumIter,
    strum::EnumString,
    strum::IntoStaticStr,
)]
pub enum Reason {
    /// `spec.paused` is set.
    Paused,
    /// The resource's own fields contradict each other or say what is not possible.
    InvalidSpec,
    /// A field of the resource, or of its status, holds what Windlass can't read, although the API server took it.
    Unreadable,
    /// There is no StatefulSet of that name.
    WorkloadNotFound,
    /// The StatefulSet has no container of that name.
    ContainerNotFound,
    /// The StatefulSet is scaled to zero.
    NoReplicas,
    /// The StatefulSet is being deleted.
    WorkloadDeleting,
    /// Another QuorumCluster manages this StatefulSet.
    AlreadyManaged,
    /// Nobody asked whether who wrote the QuorumCluster may patch the StatefulSet (H41).
    AuthorNotAsked,
    /// The StatefulSet's update strategy is none that Windlass knows.
    UnsupportedStrategy,
    /// Somebody else changed the update strategy while an upgrade runs.
    StrategyChanged,
    /// Somebody else changed the pod template while an upgrade runs.
    TemplateChanged,
    /// Somebody else owns what an upgrade writes, and writes it again (H39).
    FieldOwned,
    /// Nobody has served from the new template, so the one before it was put back (H21).
    TemplateReverted,
    /// The set was half upgraded when it was adopted (H40).
    RolloutPending,
    /// The target is older than what runs, and nobody allowed that (H15).
    DowngradeNotAllowed,
    /// The system does not support the way from what runs to the target (H20).
    UnsupportedPath,
    /// The system as a whole has not followed its members to the version that they run (H20).
    ClusterVersionBehind,
    /// The snapshot before the upgrade has not ended yet (D2).
    AwaitingSnapshot,
    /// Nobody allowed the image that executor Jobs shall run (H41).
    ExecutorImageNotAllowed,
    /// There is no snapshot to begin the upgrade with (D2).
    SnapshotFailed,
    /// One or two members: taking one down takes the quorum down (H14).
    TooFewMembers,
    /// The StatefulSet controller has not seen the newest spec yet.
    ControllerBehind,
    /// Members and pods are not the same set.
    MembersDoNotMatch,
    /// What the system says can't be had, can't be read or contradicts itself.
    MembersUnknown,
    /// The system refuses the token that it was shown.
    TokenRefused,
    /// It is not known who leads, or nobody does.
    LeaderUnknown,
    /// A member is known to be unhealthy (C5).
    MemberUnhealthy,
    /// A member has its data and not the key to it.
    MemberSealed,
    /// Taking this member down would take the quorum down (C4).
    QuorumAtRisk,
    /// A pod is missing, terminating or not ready.
    PodNotReady,
    /// No node takes the pod.
    Unschedulable,
    /// The image's name is none, or the image may not be pulled and is not on the node.
    ImageUnusable,
    /// The image can't be had from its registry.
    ImagePullFailed,
    /// A container can't be made or started: a ConfigMap, a Secret, a volume or a command is missing.
    ContainerConfigError,
    /// A container's process ends again and again.
    CrashLooping,
    /// The pod of a replaced member is ready, and the member does not answer or is not among the members.
    MemberNotJoined,
    /// A member that was replaced has not caught up with the leader's log.
    MemberBehind,
    /// A replaced member runs another version than the one asked for.
    VersionMismatch,
    /// A PodDisruptionBudget of somebody else's allows more evictions than the quorum can spare, or covers other pods than these (H12).
    DisruptionBudgetTooLoose,
    /// A PodDisruptionBudget of somebody else's lets no member go at all (H12).
    DisruptionBudgetTooTight,
    /// A PodDisruptionBudget of somebody else's lets no member go now (H12).
    AwaitingBudget,
    /// A member's leader-priority would undo the hand-over (H19).
    LeaderPriority,
    /// No maintenance window is open, or the one that is closes too soon.
    WindowClosed,
    /// A person has not approved yet what comes next.
    AwaitingApproval,
    /// A replaced member has not been well for long enough yet.
    Soaking,
    /// A node under a member takes no pods: it is being emptied, or is about to be.
    NodeDraining,
    /// The new image is not on every node under a member yet.
    AwaitingImage,
    /// A node under a member can't pull the new image; nobody was taken down for it.
    ImageNotPullable,
    /// Somebody else is at work on the same members and said so.
    Locked,
    /// What a check demands of objects is not so, or can't be told.
    CheckFailed,
    /// What an analysis measured is not as it shall be, or can't be told.
    AnalysisFailed,
    /// A hook has not said yet that it may go on.
    AwaitingHook,
    /// A hook's Job has failed.
    HookFailed,
    /// Leadership was asked to move and has not been seen elsewhere yet.
    AwaitingHandOver,
    /// Leadership was asked to move as often as it may be, and stayed where it was (D4).
    HandOverFailed,
    /// No healthy member can take over leadership (C5).
    NoHandOverTarget,
    /// Kubernetes may replace the pod and has not done so yet (H9).
    AwaitingReplacement,
    /// All pods are replaced and the StatefulSet's controller has not concluded the rollout yet (H11).
    AwaitingConclusion,
    /// A stage took longer than its deadline.
    DeadlineExceeded,
    /// A person stopped the upgrade half way.
    Aborted,
    /// The upgrade was given up, and everybody is back where it came from.
    RolledBack,
    /// There is no kind like the one that shall be changed.
    TargetNotFound,
    /// Nobody allowed that resources of this kind are changed (H41).
    TargetNotAllowed,
    /// Nobody allowed that gates of a ServiceImage ask in this namespace (H41).
    GatesNotAllowed,
    /// Another ServiceImage, which is older, has some of the resources.
    ResourcesTaken,
    /// The API server refuses to write the image on a resource.
    StampRefused,
    /// Resources have their image and are not up to date yet.
    AwaitingResources,
    /// As many resources are on their way as may be at once.
    InFlightLimit,
    /// A resource failed with its new image, and that halts everything (E4).
    ResourceFailed,
    /// More resources failed than are put up with.
    TooManyFailures,
    /// Somebody else sets the image back again and again (E13).
    FieldContested,
    /// Whether a resource may be changed, or got up to date, can't be told.
    ResourceUnknown,
    /// No resource of a tier says what could be judged once it has its image (E4).
    ContractNotSeen,
    /// Nothing was heard of the resources for too long, and they can't be listed.
    WatchSilent,
    /// What was observed took so long to gather that no member may be taken down because of it.
    EvidenceTooOld,
    /// What was read is older than what we wrote ourselves.
    StaleView,
    /// The API server refuses what Windlass has to read or to write.
    ApiServerRefused,
    /// A predecessor's writes may still be on their way (H1).
    TakingOver,
    /// A write of our own was not answered, and may still arrive (H1).
    AwaitingAnswer,
}

impl Reason {
    /// The name that conditions, events and metrics carry.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What a person can do about it; what happens by itself says so.
    #[expect(clippy::too_many_lines, reason = "a table: one row for each")]
    pub fn next_step(self) -> &'static str {
        match self {
            Self::Paused => "set spec.paused to false to go on",
            Self::InvalidSpec => "correct the field that the message names",
            Self::Unreadable => {
                "correct the field that the message names: a field of spec with kubectl edit, and where the manifest comes from; a field of status with kubectl edit --subresource=status; until then Windlass only holds members back"
            }
            Self::WorkloadNotFound => {
                "create the StatefulSet, or delete this QuorumCluster and create one with the right name"
            }
            Self::ContainerNotFound => "delete this QuorumCluster and create one that names the right container",
            Self::NoReplicas => "scale the StatefulSet up",
            Self::WorkloadDeleting => "nothing is done to a StatefulSet that is being deleted",
            Self::AlreadyManaged => "delete this QuorumCluster, or the one that the message names",
            Self::AuthorNotAsked => {
                "apply deploy/author-rights.yaml, and deploy/rbac.yaml where the message says forbidden; it goes on by itself then. An operator that is started without --quorums-by-author lets whoever may write QuorumClusters change the StatefulSets of their namespace"
            }
            Self::UnsupportedStrategy => "set the StatefulSet's updateStrategy to RollingUpdate or OnDelete",
            Self::StrategyChanged => {
                "find out who changed it, and put the update strategy back where the message says what it was, or set spec.requests.resume to a new value to go on with the one that stands"
            }
            Self::TemplateChanged => {
                "put the template back to what the message says, ask for the image in spec.version and spec.image, or set spec.requests.resume to a new value: while no upgrade is under way Windlass then writes the wanted image over one that no pod runs yet, and during an upgrade it goes on with another template of the same image"
            }
            Self::FieldOwned => {
                "do what the message says; before an upgrade has begun you can also let that tool do it: set the StatefulSet's updateStrategy to OnDelete and spec.trigger to Template; docs/clusters.md has the settings for Argo CD, Flux and Helm"
            }
            Self::TemplateReverted => {
                "ask for another image or version, or for the old one, and the broken pod is replaced by itself; or set spec.requests.resume to a new value to try the same one again"
            }
            Self::RolloutPending => {
                "set spec.requests.resume to a new value to roll the template that stands out to all members, or restore the previous template"
            }
            Self::DowngradeNotAllowed => {
                "ask for a newer version, or set spec.policy.allowDowngrade if going back is safe for your data"
            }
            Self::UnsupportedPath => "do first what the message says, or ask for a version that can be reached",
            Self::ClusterVersionBehind => {
                "wait a few seconds; if it stays, find out which member does not answer the others: the cluster's version follows when all do. A pod that was made from the next release too early needs the template of the version that the others run"
            }
            Self::AwaitingSnapshot => {
                "wait; if it stays, kubectl describe the Job that status.snapshot.job names, and its pod"
            }
            Self::ExecutorImageNotAllowed => {
                "remove spec.upgrade.executorImage, or let an administrator start the operator with --allow-executor-image for it; it goes on by itself then"
            }
            Self::SnapshotFailed => {
                "put right what the message says, and set spec.requests.resume to a new value to try again; or switch spec.backup.preUpgradeSnapshot off: the upgrade then begins without a snapshot"
            }
            Self::TooFewMembers => "scale to three members, or set spec.policy.acceptDowntime",
            Self::ControllerBehind | Self::AwaitingReplacement | Self::AwaitingConclusion => {
                "wait; if it stays, look at kube-controller-manager"
            }
            Self::MembersDoNotMatch => {
                "let every pod join, and remove members that are gone for good; a cluster with members elsewhere can't be upgraded by Windlass"
            }
            Self::MembersUnknown => "look at what the message names; it goes on as soon as all members answer",
            Self::TokenRefused => {
                "put a valid token or user into the Secret that spec.system.auth names, or give its role what it needs; it goes on by itself"
            }
            Self::LeaderUnknown => "wait for the election to end; if it does not, look at the members' logs",
            Self::MemberUnhealthy => {
                "wait a minute, for after a restart or an election it passes by itself; if it stays, read the log of the member that the message names and repair it; it goes on as soon as the member is healthy"
            }
            Self::MemberSealed => "unseal the member that the message names; it goes on as soon as it is unsealed",
            Self::QuorumAtRisk => {
                "repair the members that are down or unhealthy; until then Windlass takes no other one down"
            }
            Self::PodNotReady => "wait; if it stays, kubectl describe the pod",
            Self::Unschedulable => "make room for the pod, or remove what keeps it from every node",
            Self::ImageUnusable => {
                "correct the image, or ask for the old version again; the pod is replaced by itself then"
            }
            Self::ImagePullFailed => {
                "let the nodes pull the image, or ask for another one or for the old version; the pod is replaced by itself then"
            }
            Self::ContainerConfigError => {
                "create what the message says is missing, or ask for the old version; the pod is replaced by itself then"
            }
            Self::CrashLooping => {
                "read its log, and ask for another image or for the old version; the pod is replaced by itself then"
            }
            Self::MemberNotJoined => {
                "read the member's log and check that its port can be reached; it goes on as soon as the member answers"
            }
            Self::MemberBehind => "wait for the member to catch up",
            Self::VersionMismatch => "make spec.version say what the image contains, or ask for the old version again",
            Self::DisruptionBudgetTooLoose => {
                "change the PodDisruptionBudget as the message says; or delete it, where it is yours to delete: Windlass holds one of its own then"
            }
            Self::DisruptionBudgetTooTight => {
                "set the budget's maxUnavailable to 1 and keep one budget for these pods, or delete it: Windlass holds one of its own then"
            }
            Self::AwaitingBudget => {
                "wait; if it stays, kubectl describe the PodDisruptionBudget that the message names, and its pods"
            }
            Self::LeaderPriority => "set the member's leader-priority no higher than the others'",
            Self::WindowClosed => {
                "wait for the next window, change spec.gates.windows, or override MaintenanceWindow in spec.gates.overrides"
            }
            Self::AwaitingApproval => "set spec.requests.approve to a new value to approve what the message names",
            Self::Soaking => "wait until the time that the message names",
            Self::NodeDraining => {
                "wait until the drain is over and the pods have moved; it goes on by itself. Uncordon the node, or take the taint off, only if nobody is emptying it; or override NodeDrain in spec.gates.overrides"
            }
            Self::AwaitingImage => {
                "wait; if it stays, kubectl describe the Job windlass-pull-… and its pod, or override ImagePulled in spec.gates.overrides"
            }
            Self::ImageNotPullable => {
                "let the node pull the image, ask for another one, set spec.requests.retry to a new value to try again at once, or override ImagePulled in spec.gates.overrides"
            }
            Self::Locked => {
                "remove the annotation windlass.dev/locked-by when the other operation is over; it goes on by itself then"
            }
            Self::CheckFailed => {
                "change the objects that the message names until the check is true, change the check in spec.gates.checks, or override the gate that the message names in spec.gates.overrides"
            }
            Self::AnalysisFailed => {
                "wait for better values, change the analysis in spec.gates.analysis, or override the gate that the message names in spec.gates.overrides"
            }
            Self::AwaitingHook => {
                "wait; if it stays, look at what the message names, or override that gate in spec.gates.overrides"
            }
            Self::HookFailed => {
                "read the Job's log, put right what it says, and set spec.requests.retry to a new value to run it again; or override that gate in spec.gates.overrides"
            }
            Self::AwaitingHandOver => "wait; the hand-over is tried again after its deadline",
            Self::HandOverFailed => {
                "put right what the last request failed with, or, where the message names nothing, read the leader's log; then set spec.requests.retry to a new value to ask again. It also goes on when another member leads"
            }
            Self::NoHandOverTarget => "repair another member so that it can lead",
            Self::DeadlineExceeded => {
                "repair what the message names; it goes on by itself. Delete the pod only if it can't become ready"
            }
            Self::Aborted => {
                "set spec.requests.retry to a new value to go on, or ask for another version; to leave it at that, set spec.version and spec.image to what runs"
            }
            Self::RolledBack => {
                "find out why, and ask for another version or image, or set spec.requests.retry to a new value to try the same one again; to leave it at that, set spec.version and spec.image to what runs"
            }
            Self::TargetNotFound => {
                "install the definition of the kind that spec.target names; it goes on by itself then"
            }
            Self::TargetNotAllowed => {
                "let an administrator start the operator with --allow-target for this kind, or with --allow-target-by-author and deploy/author-rights.yaml, and give it the rights to get, list, watch and patch it; it goes on by itself then"
            }
            Self::GatesNotAllowed => {
                "let an administrator start the operator with --allow-gates-in for the namespace that spec.gates.namespace names, or name one that is allowed; it goes on by itself then"
            }
            Self::ResourcesTaken => {
                "delete one of the two ServiceImages, or change their selectors so that no resource has the labels of both; it goes on by itself then"
            }
            Self::StampRefused => {
                "give the operator the right to patch this kind, or correct the resource, the image, the rule that refuses it or the webhook that does not answer, or set the resource's failureHaltsUpdate to false; it is tried again by itself"
            }
            Self::AwaitingResources => "wait; if it stays, look at the resource that the message names",
            Self::InFlightLimit => {
                "wait for those that are on their way, or raise maxInFlight of the tier or of spec.spread, whichever the message names"
            }
            Self::ResourceFailed => {
                "repair the resource that the message names, ask for another image, or set its failureHaltsUpdate to false; spec.requests.retry with a new value gives all of them their time again"
            }
            Self::TooManyFailures => {
                "look at the resources that the message names, and ask for another image, raise maxFailures, or set spec.requests.retry to a new value when they are repaired"
            }
            Self::FieldContested => {
                "find out who sets the image back and keep them from it, or set manuallySpecifiedImage on the resource; then set spec.requests.retry to a new value"
            }
            Self::ResourceUnknown => {
                "correct the expression in spec.target or the resource that the message names; it goes on by itself"
            }
            Self::ContractNotSeen => {
                "let the controller of this kind write status.observedGeneration and the conditions UpToDate and Deployed, or say in spec.target.ready and spec.target.deployed how a resource tells; it goes on by itself then"
            }
            Self::WatchSilent => {
                "run kubectl get for this kind in all namespaces and fix the error that it shows, often a conversion webhook that does not answer; it goes on by itself then"
            }
            Self::EvidenceTooOld => {
                "wait; if it stays, find out why what the message names takes so long to answer; it goes on by itself"
            }
            Self::StaleView => "wait; if it stays, look at the API server",
            Self::ApiServerRefused => {
                "do what the message says, or give the operator the right that it names: with deploy/rbac.yaml, or with deploy/rbac-namespace.yaml for an operator of one namespace; or change the rule that refuses it. It is tried again by itself"
            }
            Self::TakingOver | Self::AwaitingAnswer => "wait a few seconds",
        }
    }

    /// True for what passes by itself within moments and would only be noise among the events.
    pub fn is_momentary(self) -> bool {
        matches!(
            self,
            Self::ControllerBehind
                | Self::AwaitingReplacement
                | Self::AwaitingConclusion
                | Self::AwaitingHandOver
                | Self::StaleView
                | Self::TakingOver
                | Self::AwaitingAnswer
        )
    }

    /// True where nothing is on its way and people or the calendar are waited for, perhaps for days: drains go on meanwhile.
    pub fn is_idle(self) -> bool {
        matches!(
            self,
            Self::Paused
                | Self::WindowClosed
                | Self::AwaitingApproval
                | Self::Soaking
                | Self::NodeDraining
                | Self::Locked
                | Self::CheckFailed
                | Self::AnalysisFailed
                | Self::AwaitingHook
                | Self::HookFailed
        )
    }

    /// True where something is not known, rather than known to be wrong.
    pub fn is_ignorance(self) -> bool {
        matches!(
            self,
            Self::MembersUnknown
                | Self::TokenRefused
                | Self::LeaderUnknown
                | Self::WatchSilent
                | Self::EvidenceTooOld
                | Self::StaleView
        )
    }

    /// True where nothing gets better by itself: the resource is Stalled until a person does something.
    pub fn needs_a_person(self) -> bool {
        self.stalls() == Stalls::AtOnce
    }

    /// When the resource is Stalled because of it.
    pub fn stalls(self) -> Stalls {
        match self {
            Self::InvalidSpec
            | Self::Unreadable
            | Self::WorkloadNotFound
            | Self::ContainerNotFound
            | Self::NoReplicas
            | Self::WorkloadDeleting
            | Self::AlreadyManaged
            | Self::AuthorNotAsked
            | Self::UnsupportedStrategy
            | Self::StrategyChanged
            | Self::TemplateChanged
            | Self::TemplateReverted
            | Self::FieldOwned
            | Self::RolloutPending
            | Self::DowngradeNotAllowed
            | Self::UnsupportedPath
            | Self::ExecutorImageNotAllowed
            | Self::SnapshotFailed
            | Self::TooFewMembers
            | Self::MembersDoNotMatch
            | Self::VersionMismatch
            | Self::DisruptionBudgetTooLoose
            | Self::DisruptionBudgetTooTight
            | Self::LeaderPriority
            // Logging in once more did not help.
            | Self::TokenRefused
            // A name that is none does not become one, and what may not be pulled is not pulled.
            | Self::ImageUnusable
            | Self::Aborted
            | Self::RolledBack
            | Self::HookFailed
            | Self::HandOverFailed
            | Self::TargetNotAllowed
            | Self::GatesNotAllowed
            | Self::ResourcesTaken
            | Self::StampRefused
            | Self::ResourceFailed
            | Self::TooManyFailures
            | Self::FieldContested
            | Self::ApiServerRefused
            | Self::DeadlineExceeded => Stalls::AtOnce,
            // A registry that is slow to replicate or limits its rate, a Secret that comes a moment later, a process that waits for its
            // peers by ending, a node that is just being added: each looks like its hopeless twin at first, and only time tells. Where all
            // pods of a fleet say the same, it need not be waited for: see fleet::diagnosis.
            Self::Unschedulable
            | Self::ImagePullFailed
            | Self::ContainerConfigError
            | Self::CrashLooping
            | Self::MemberSealed
            | Self::AwaitingSnapshot
            | Self::ImageNotPullable
            | Self::MemberNotJoined => Stalls::AtDeadline,
            Self::Paused
            | Self::ClusterVersionBehind
            | Self::ControllerBehind
            | Self::MembersUnknown
            | Self::LeaderUnknown
            | Self::MemberUnhealthy
            | Self::QuorumAtRisk
            | Self::PodNotReady
            | Self::MemberBehind
            | Self::WindowClosed
            | Self::AwaitingApproval
            | Self::Soaking
            | Self::NodeDraining
            | Self::AwaitingImage
            | Self::AwaitingBudget
            | Self::Locked
            | Self::CheckFailed
            | Self::AnalysisFailed
            | Self::AwaitingHook
            | Self::AwaitingHandOver
            | Self::NoHandOverTarget
            | Self::AwaitingReplacement
            | Self::AwaitingConclusion
            | Self::TargetNotFound
            | Self::AwaitingResources
            | Self::InFlightLimit
            | Self::ResourceUnknown
            | Self::ContractNotSeen
            | Self::WatchSilent
            | Self::EvidenceTooOld
            | Self::StaleView
            | Self::TakingOver
            | Self::AwaitingAnswer => Stalls::Never,
        }
    }
}

/// When a reason makes the resource Stalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stalls {
    /// It passes by itself; a stage that takes too long is `DeadlineExceeded`.
    Never,
    /// It may pass by itself until its stage's deadline, and keeps its name afterwards: it says more than a deadline does.
    AtDeadline,
    /// It never passes by itself.
    AtOnce,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
