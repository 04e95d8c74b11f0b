//! What to do now: one step, or a reason not to.

use std::{fmt, time::Duration};

use jiff::Timestamp;

use crate::{
    gate::GateState,
    hold::Hold,
    quorum::MemberName,
    rolling::known::{
        approval::Approvals, parked::Parked, record::Record, request::GivenUp, snapshot::Attempt, workload::Strategy,
    },
};

/// One act. Whoever carries it out adds the fence: uid and resourceVersion of what the decision saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Have a Job take a snapshot, before anything else is written (D2).
    TakeSnapshot {
        /// Which try. The Job's name comes from it, so that asking twice makes one Job.
        attempt: Attempt,
    },
    /// Make the Job that a gate of this name waits for.
    StartJob {
        /// Which gate.
        gate: String,
    },
    /// Have Jobs pull the new image, one on each of these nodes, before anybody stops.
    PullImage {
        /// Which.
        image: String,
        /// Where it is not on its way yet. A Job's name comes from what it does, so that asking twice makes one.
        nodes: Vec<String>,
    },
    /// Write the pod template's image, with everything held in the same write (H8).
    WriteTemplate {
        /// The new image.
        image: String,
        /// What lets Kubernetes replace nobody: the partition at `replicas`, or OnDelete; none only in a seeded bug.
        strategy: Option<Strategy>,
    },
    /// From OnDelete to RollingUpdate, the template unchanged and nobody outdated, so that the controller's current revision catches
    /// up (H7).
    SwitchStrategy {
        /// 0: a pod that is lost meanwhile comes back from the template that stands.
        partition: u32,
    },
    /// Back to OnDelete, the template unchanged: nothing came of the switch, and nobody shall be replaced by a stray template.
    PutBackStrategy,
    /// Make evictions of the members impossible while one of them is replaced (H12).
    HoldEvictions,
    /// Ask the leader to hand over.
    HandOver {
        /// Who leads, and is asked.
        from: MemberName,
        /// Who shall lead.
        to: MemberName,
    },
    /// Lower the partition so that Kubernetes replaces this pod.
    Permit {
        /// Whose turn it is.
        pod: MemberName,
        /// Its index.
        partition: u32,
    },
    /// Raise the partition again before Kubernetes has used it (H9).
    TakeBack {
        /// Who shall stay.
        pod: MemberName,
        /// One above its index.
        partition: u32,
        /// What changed.
        because: Hold,
    },
    /// Delete a broken pod that Kubernetes does not replace by itself (H44). Not an eviction: our own budget would refuse that.
    DeletePod {
        /// Which.
        pod: MemberName,
        /// Which of that name.
        uid: String,
        /// What its successor is made from.
        image: String,
    },
    /// Delete or evict the pod of a sound member whose turn has come under OnDelete: the one that was seen, as it was seen.
    Replace {
        /// Which.
        pod: MemberName,
        /// Which of that name.
        uid: String,
        /// What its successor is made from.
        image: String,
        /// The PodDisruptionBudget of somebody else's that it is evicted within; none where ours holds, and it is deleted (H12).
        through: Option<String>,
    },
    /// Let evictions through again.
    ReleaseEvictions,
    /// All is done: hold everything, so that a stray change of the template rolls nothing (H11).
    Park {
        /// `replicas`.
        partition: u32,
    },
}

impl Step {
    /// Which it is, whatever it is about.
    pub fn kind(&self) -> StepKind {
        match self {
            Self::TakeSnapshot { .. } => StepKind::SnapshotBegun,
            Self::StartJob { .. } => StepKind::JobStarted,
            Self::PullImage { .. } => StepKind::ImagePullBegun,
            Self::WriteTemplate { .. } => StepKind::TemplateWritten,
            Self::SwitchStrategy { .. } => StepKind::StrategySwitched,
            Self::PutBackStrategy => StepKind::StrategyPutBack,
            Self::HoldEvictions => StepKind::EvictionsHeld,
            Self::HandOver { .. } => StepKind::HandOver,
            Self::Permit { .. } => StepKind::MemberPermitted,
            Self::TakeBack { .. } => StepKind::PermitTakenBack,
            Self::DeletePod { .. } => StepKind::BrokenPodDeleted,
            Self::Replace { .. } => StepKind::MemberReplaced,
            Self::ReleaseEvictions => StepKind::EvictionsReleased,
            Self::Park { .. } => StepKind::Parked,
        }
    }

    /// The event's reason and the metric's label.
    pub fn name(&self) -> &'static str {
        self.kind().into()
    }

    /// The member that it is about.
    pub fn member(&self) -> Option<&MemberName> {
        match self {
            Self::HandOver { from: pod, .. }
            | Self::Permit { pod, .. }
            | Self::TakeBack { pod, .. }
            | Self::DeletePod { pod, .. }
            | Self::Replace { pod, .. } => Some(pod),
            Self::TakeSnapshot { .. }
            | Self::StartJob { .. }
            | Self::PullImage { .. }
            | Self::WriteTemplate { .. }
            | Self::SwitchStrategy { .. }
            | Self::PutBackStrategy
            | Self::HoldEvictions
            | Self::ReleaseEvictions
            | Self::Park { .. } => None,
        }
    }

    /// Whether it takes that member down or moves leadership: everything about a member does, but to leave it alone after all.
    pub fn disturbs(&self) -> bool {
        self.member().is_some() && !matches!(self, Self::TakeBack { .. })
    }

    /// Whether it must rest on fresh evidence: what disturbs a member, and what leaves the set open to be rolled. What is held or taken back
    /// is so at any age.
    pub fn rests_on_evidence(&self) -> bool {
        self.disturbs() || matches!(self, Self::SwitchStrategy { .. })
    }
}

/// Which act it is, by the name that conditions, events and metrics carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumIter, strum::EnumString, strum::IntoStaticStr)]
pub enum StepKind {
    /// See [`Step::TakeSnapshot`].
    SnapshotBegun,
    /// See [`Step::StartJob`].
    JobStarted,
    /// See [`Step::PullImage`].
    ImagePullBegun,
    /// See [`Step::WriteTemplate`].
    TemplateWritten,
    /// See [`Step::SwitchStrategy`].
    StrategySwitched,
    /// See [`Step::PutBackStrategy`].
    StrategyPutBack,
    /// See [`Step::HoldEvictions`].
    EvictionsHeld,
    /// See [`Step::HandOver`].
    HandOver,
    /// See [`Step::Permit`].
    MemberPermitted,
    /// See [`Step::TakeBack`].
    PermitTakenBack,
    /// See [`Step::DeletePod`].
    BrokenPodDeleted,
    /// See [`Step::Replace`].
    MemberReplaced,
    /// See [`Step::ReleaseEvictions`].
    EvictionsReleased,
    /// See [`Step::Park`].
    Parked,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TakeSnapshot { attempt } => {
                write!(f, "take a snapshot before the upgrade to {} (attempt {})", attempt.target, attempt.number)
            }
            Self::StartJob { gate } => write!(f, "run the Job of {gate}"),
            Self::PullImage { image, nodes } => {
                write!(f, "pull image {image} on {} before anybody stops", nodes.join(", "))
            }
            Self::WriteTemplate { image, .. } => write!(f, "write image {image} into the template, everything held"),
            Self::SwitchStrategy { partition } => {
                write!(f, "set the update strategy to RollingUpdate (partition {partition}), the template unchanged")
            }
            Self::PutBackStrategy => f.write_str("set the update strategy back to OnDelete, the template unchanged"),
            Self::HoldEvictions => f.write_str("hold evictions while members are replaced"),
            Self::HandOver { from, to } => write!(f, "hand leadership over from {from} to {to}"),
            Self::Permit { pod, partition } => write!(f, "let Kubernetes replace {pod} (partition {partition})"),
            Self::TakeBack { pod, partition, because } => {
                write!(f, "take the permit for {pod} back (partition {partition}): {}", because.message)
            }
            Self::DeletePod { pod, uid, image } => {
                write!(f, "delete broken pod {pod} ({uid}) so that it comes back from image {image}")
            }
            Self::Replace { pod, uid, image, through: None } => {
                write!(f, "delete pod {pod} ({uid}) so that it comes back from image {image}")
            }
            Self::Replace { pod, uid, image, through: Some(budget) } => write!(
                f,
                "evict pod {pod} ({uid}) within PodDisruptionBudget {budget} so that it comes back from image {image}"
            ),
            Self::ReleaseEvictions => f.write_str("let evictions through again"),
            Self::Park { partition } => write!(f, "hold all pods at the reached version (partition {partition})"),
        }
    }
}

/// What to do now.
#[must_use]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Exactly one act, then look again.
    Act(Step),
    /// Something will happen by itself; look again at the latest after this long.
    Wait {
        /// What is waited for.
        on: Hold,
        /// The safety net; an event usually comes first.
        recheck: Duration,
    },
    /// A person must look; nothing moves before.
    Halt {
        /// What for.
        on: Hold,
    },
    /// What is wanted is what is there.
    Done,
}

impl Decision {
    /// The same, looked at again at the very moment when its hold ends, where that is known.
    pub(crate) fn punctual(self, now: Timestamp) -> Self {
        match self {
            Self::Wait { on: on @ Hold { until: Some(until), .. }, .. } if until > now => {
                Self::Wait { recheck: until.duration_since(now).unsigned_abs(), on }
            }
            Self::Wait { .. } | Self::Act(_) | Self::Halt { .. } | Self::Done => self,
        }
    }
}

/// A decision, and what to record before it is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What to do.
    pub decision: Decision,
    /// The upgrade that is under way after this decision; none at rest.
    pub record: Option<Record>,
    /// What every gate says of the next disruptive step, in their order; empty where there is none to take.
    pub gates: Vec<GateState>,
    /// What was approved, and what is asked now.
    pub approvals: Approvals,
    /// The target that is given up after this decision.
    pub given_up: Option<GivenUp>,
    /// The partition that is ours while no upgrade is under way; none where it is not.
    pub parked: Option<Parked>,
    /// What people ask for once was answered.
    pub heard: bool,
    /// The last try to take a snapshot; none where there was none.
    pub attempt: Option<Attempt>,
}

/// While a permit stands or leadership moves, seconds count.
pub(crate) const WATCHFUL: Duration = Duration::from_secs(1);

/// Something is on its way; an event usually comes first, but applications send none.
pub(crate) const SOON: Duration = Duration::from_secs(2);

pub(crate) fn wait(on: Hold, recheck: Duration) -> Decision {
    Decision::Wait { on, recheck }
}

pub(crate) fn halt(on: Hold) -> Decision {
    Decision::Halt { on }
}

pub(crate) fn wait_or_halt(on: Hold) -> Decision {
    if on.reason.needs_a_person() { halt(on) } else { wait(on, SOON) }
}
