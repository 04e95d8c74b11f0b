//! A step as people are told of it, whichever strategy takes it.

use std::fmt;

use crate::{
    forecast::foresee::{Forecast, Foreseen},
    hold::Hold,
    quorum::MemberName,
    strategy::known::{
        decision::Decision,
        step::{JobStep, Step, StepKind},
    },
};

/// What there is to tell of a step. Nobody can carry it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    kind: StepKind,
    text: String,
    member: Option<MemberName>,
    disturbs: bool,
    hand_over: Option<(MemberName, MemberName)>,
    takes_back: Option<Hold>,
}

impl Told {
    /// What there is to tell of this one.
    pub fn of(step: &impl Step) -> Self {
        Self {
            kind: step.kind(),
            text: step.to_string(),
            member: step.member().cloned(),
            disturbs: step.disturbs(),
            hand_over: step.hand_over().map(|(from, to)| (from.clone(), to.clone())),
            takes_back: step.takes_back().cloned(),
        }
    }
}

impl<A: Step> Forecast<A> {
    /// The same for whoever only tells it.
    pub fn told(self) -> Forecast<Told> {
        let Self { decision, gates, way, steps, end, notes } = self;
        let decision = match decision {
            Decision::Act(step) => Decision::Act(Told::of(&step)),
            Decision::Wait { on, recheck } => Decision::Wait { on, recheck },
            Decision::Halt { on } => Decision::Halt { on },
            Decision::Done => Decision::Done,
        };
        let told = |Foreseen { step, gates, after, waits }: Foreseen<A>| Foreseen {
            step: Told::of(&step),
            gates,
            after,
            waits,
        };
        Forecast { decision, gates, way, steps: steps.into_iter().map(told).collect(), end, notes }
    }
}

impl From<JobStep> for Told {
    fn from(job: JobStep) -> Self {
        let (kind, text) = (job.kind(), job.to_string());
        Self { kind, text, member: None, disturbs: false, hand_over: None, takes_back: None }
    }
}

impl Step for Told {
    fn kind(&self) -> StepKind {
        self.kind
    }

    fn member(&self) -> Option<&MemberName> {
        self.member.as_ref()
    }

    fn disturbs(&self) -> bool {
        self.disturbs
    }

    fn hand_over(&self) -> Option<(&MemberName, &MemberName)> {
        self.hand_over.as_ref().map(|(from, to)| (from, to))
    }

    fn takes_back(&self) -> Option<&Hold> {
        self.takes_back.as_ref()
    }

    fn job(&self) -> Option<&JobStep> {
        None
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
