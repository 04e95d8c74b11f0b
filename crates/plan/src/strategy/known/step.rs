//! One act of a strategy, as far as everybody needs to know it, and those acts that every strategy has.

use std::fmt::{self, Debug, Display};

use serde::Serialize;

use crate::{hold::Hold, quorum::MemberName, strategy::known::snapshot::Attempt};

/// One act. Its text says to a person what is about to happen. Whoever carries it out adds the fence: uid and resourceVersion of what the
/// decision saw.
pub trait Step: Clone + Debug + Display + PartialEq + Eq + From<JobStep> {
    /// Which it is, whatever it is about.
    fn kind(&self) -> StepKind;

    /// The event's reason and the metric's label.
    fn name(&self) -> &'static str {
        self.kind().into()
    }

    /// The member that it is about.
    fn member(&self) -> Option<&MemberName>;

    /// Whether it takes that member down or moves leadership.
    fn disturbs(&self) -> bool;

    /// Whether it must rest on fresh evidence: what disturbs a member, and whatever else would not be harmless later.
    fn rests_on_evidence(&self) -> bool {
        self.disturbs()
    }

    /// From whom to whom it moves leadership, which is tried a few times only.
    fn hand_over(&self) -> Option<(&MemberName, &MemberName)> {
        None
    }

    /// What changed, where it only takes back what was let go.
    fn takes_back(&self) -> Option<&Hold> {
        None
    }

    /// What a Job is asked to do, where a Job does it.
    fn job(&self) -> Option<&JobStep>;
}

/// Which act it is, by the name that conditions, events and metrics carry: those of all strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::EnumIter, strum::EnumString, strum::IntoStaticStr)]
pub enum StepKind {
    /// A Job takes a snapshot.
    SnapshotBegun,
    /// A Job does what a gate waits for.
    JobStarted,
    /// Jobs pull the new image.
    ImagePullBegun,
    /// The pod template names another image.
    TemplateWritten,
    /// The StatefulSet goes from OnDelete to RollingUpdate.
    StrategySwitched,
    /// It goes back to OnDelete.
    StrategyPutBack,
    /// Nobody can be evicted.
    EvictionsHeld,
    /// The leader is asked to hand over.
    HandOver,
    /// Kubernetes may replace a member.
    ReplacementAllowed,
    /// It may not any more.
    ReplacementWithdrawn,
    /// A broken pod is deleted.
    BrokenPodDeleted,
    /// The pod of a sound member is deleted or evicted.
    MemberReplaced,
    /// Members can be evicted again.
    EvictionsReleased,
    /// Everybody is held at the version that was reached.
    RolloutLocked,
}

/// What Jobs are asked to do, whatever the strategy. Each is written down before it is asked for (H1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobStep {
    /// Take a snapshot, before anything else is written (D2).
    TakeSnapshot {
        /// Which try. The Job's name comes from it, so that asking twice makes one Job.
        attempt: Attempt,
    },
    /// Do what a gate of this name waits for.
    Answer {
        /// Which gate.
        gate: String,
    },
    /// Pull the new image, one Job on each of these nodes, before anybody stops.
    PullImage {
        /// Which.
        image: String,
        /// Where it is not on its way yet. A Job's name comes from what it does, so that asking twice makes one.
        nodes: Vec<String>,
    },
}

impl JobStep {
    /// Which it is, whatever it is about.
    pub fn kind(&self) -> StepKind {
        match self {
            Self::TakeSnapshot { .. } => StepKind::SnapshotBegun,
            Self::Answer { .. } => StepKind::JobStarted,
            Self::PullImage { .. } => StepKind::ImagePullBegun,
        }
    }
}

impl Display for JobStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TakeSnapshot { attempt } => {
                write!(f, "take a snapshot before the upgrade to {} (attempt {})", attempt.target, attempt.number)
            }
            Self::Answer { gate } => write!(f, "run the Job of {gate}"),
            Self::PullImage { image, nodes } => {
                write!(f, "pull image {image} on {} before anybody stops", nodes.join(", "))
            }
        }
    }
}
