//! One step of the rolling strategy.

use std::fmt;

use crate::{
    hold::Hold,
    quorum::MemberName,
    rolling::known::{Rolling, workload::Strategy},
    strategy::{
        contract,
        known::{
            decision,
            step::{self, JobStep, StepKind},
        },
    },
};

/// What to do now about a quorum that is rolled.
pub type Decision = decision::Decision<Step>;

/// A decision about it, and what to record before it is carried out.
pub type Plan = contract::Plan<Rolling>;

/// One act. Whoever carries it out adds the fence: uid and resourceVersion of what the decision saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// What Jobs do.
    Job(JobStep),
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

impl From<JobStep> for Step {
    fn from(job: JobStep) -> Self {
        Self::Job(job)
    }
}

impl step::Step for Step {
    fn kind(&self) -> StepKind {
        match self {
            Self::Job(job) => job.kind(),
            Self::WriteTemplate { .. } => StepKind::TemplateWritten,
            Self::SwitchStrategy { .. } => StepKind::StrategySwitched,
            Self::PutBackStrategy => StepKind::StrategyPutBack,
            Self::HoldEvictions => StepKind::EvictionsHeld,
            Self::HandOver { .. } => StepKind::HandOver,
            Self::Permit { .. } => StepKind::ReplacementAllowed,
            Self::TakeBack { .. } => StepKind::ReplacementWithdrawn,
            Self::DeletePod { .. } => StepKind::BrokenPodDeleted,
            Self::Replace { .. } => StepKind::MemberReplaced,
            Self::ReleaseEvictions => StepKind::EvictionsReleased,
            Self::Park { .. } => StepKind::RolloutLocked,
        }
    }

    fn member(&self) -> Option<&MemberName> {
        match self {
            Self::HandOver { from: pod, .. }
            | Self::Permit { pod, .. }
            | Self::TakeBack { pod, .. }
            | Self::DeletePod { pod, .. }
            | Self::Replace { pod, .. } => Some(pod),
            Self::Job(_)
            | Self::WriteTemplate { .. }
            | Self::SwitchStrategy { .. }
            | Self::PutBackStrategy
            | Self::HoldEvictions
            | Self::ReleaseEvictions
            | Self::Park { .. } => None,
        }
    }

    /// Everything about a member does, but to leave it alone after all.
    fn disturbs(&self) -> bool {
        self.member().is_some() && !matches!(self, Self::TakeBack { .. })
    }

    /// What disturbs a member, and what leaves the set open to be rolled. What is held or taken back is so at any age.
    fn rests_on_evidence(&self) -> bool {
        self.disturbs() || matches!(self, Self::SwitchStrategy { .. })
    }

    fn hand_over(&self) -> Option<(&MemberName, &MemberName)> {
        if let Self::HandOver { from, to } = self { Some((from, to)) } else { None }
    }

    fn takes_back(&self) -> Option<&Hold> {
        if let Self::TakeBack { because, .. } = self { Some(because) } else { None }
    }

    fn job(&self) -> Option<&JobStep> {
        if let Self::Job(job) = self { Some(job) } else { None }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => job.fmt(f),
            Self::WriteTemplate { image, .. } => {
                write!(f, "write image {image} into the template, which replaces no pod yet")
            }
            Self::SwitchStrategy { partition } => {
                write!(f, "set the update strategy to RollingUpdate (partition {partition}), the template unchanged")
            }
            Self::PutBackStrategy => f.write_str("set the update strategy back to OnDelete, the template unchanged"),
            Self::HoldEvictions => f.write_str("hold evictions while members are replaced"),
            Self::HandOver { from, to } => write!(f, "hand leadership over from {from} to {to}"),
            Self::Permit { pod, partition } => write!(f, "let Kubernetes replace {pod} (partition {partition})"),
            Self::TakeBack { pod, partition, because } => {
                write!(f, "keep Kubernetes from replacing {pod} after all (partition {partition}): {}", because.message)
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
            Self::Park { partition } => write!(
                f,
                "set the partition to {partition}, so that no change of the template replaces a pod before the next upgrade"
            ),
        }
    }
}
