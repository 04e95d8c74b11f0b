//! What is wrong with the pods behind a tier's resources, told from some of them (E12). It explains why a tier waits, and ends a wait that is
//! pointless; it never lets anything go on that would otherwise wait.
//!
//! ```text
//!   whom ─▶ those on their way, longest first, and those that failed: a sample
//!   somebody reads their pods ─▶ a Look for each that could be read
//!   Finding: the trouble that most of them have, of all or of some, with an example ─▶ Diagnosis
//! ```
//! Only pods that were made for the tier's image are in a look: those of the image before say nothing about this one.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use super::{
    index::{Index, Standing},
    item::ItemId,
    record::Record,
    want::Tier,
};
use crate::{
    reason::Reason,
    trouble::{Log, Trouble},
};

/// So many of a tier are looked at: the others are likely to be like them, and a large fleet costs no more than a small one.
pub const SAMPLE: usize = 20;
/// So long nobody is looked at after a change: pods are being made, and have nothing to say yet.
pub const SETTLE: Duration = Duration::from_secs(10);
/// A process that was started again so often ends for a reason that stays.
const RESTARTS: u32 = 3;

/// What is wrong with the pods behind a tier's resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// In a word.
    pub reason: Reason,
    /// All or some, which image, one example, and its own words.
    pub message: String,
    /// Everybody that was looked at, where waiting for them is pointless: all have a trouble that stays, and nobody is up to date.
    /// Otherwise empty.
    pub hopeless: Vec<ItemId>,
}

/// Whose pods tell how a tier is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// At most [`SAMPLE`].
    pub ids: Vec<ItemId>,
    /// When the next one has been on its way for long enough.
    pub next: Option<Timestamp>,
    /// It speaks for the tier: nobody was left out because it is too early for them.
    pub whole: bool,
}

/// Whom to look at in a tier; nobody where it is not its turn.
pub fn sample(tier: &Tier, index: &Index, record: &Record, now: Timestamp) -> Sample {
    let turn = record.current.is_some_and(|(priority, _)| priority == tier.priority);
    let complete = record.tiers.get(&tier.name).is_some_and(|kept| kept.complete && kept.image == tier.image);
    let Some(seen) = index.tier(&tier.name).filter(|_| turn && !complete) else { return Sample::default() };
    let ripe = |id: &ItemId| {
        let since = index.since(id).unwrap_or(Timestamp::MIN);
        since.saturating_add(SETTLE).unwrap_or(Timestamp::MAX)
    };
    let first: Vec<(&ItemId, Timestamp)> = seen.longest_first().take(SAMPLE).map(|id| (id, ripe(id))).collect();
    let next = first.iter().map(|(_, at)| *at).find(|at| *at > now);
    // Those that were changed together are looked at together, or the first of them would speak for all; but nobody waits for ever.
    let patient = first.first().and_then(|(_, at)| at.saturating_add(SETTLE).ok()).is_some_and(|until| now < until);
    if next.is_some() && patient {
        return Sample { ids: Vec::new(), next, whole: false };
    }
    let mut ids: Vec<ItemId> = first.iter().filter(|(_, at)| *at <= now).map(|(id, _)| (*id).clone()).collect();
    let failed = seen.of(Standing::Failed).chain(seen.of(Standing::Ignored));
    let failed = failed.filter(|id| index.refusal(id).is_none());
    ids.extend(failed.take(SAMPLE.saturating_sub(ids.len())).cloned());
    Sample { ids, next, whole: next.is_none() }
}

/// What the pods of one resource show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whose.
    pub id: ItemId,
    /// Those that were made for the tier's image.
    pub pods: Vec<PodLook>,
}

/// What one pod shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodLook {
    /// Its name.
    pub name: String,
    /// How it is.
    pub state: PodState,
}

/// How a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodState {
    /// It serves.
    Ready,
    /// Not yet, and nothing is known to be wrong.
    Coming,
    /// Something is.
    Ails(Ailment),
}

/// What is wrong with a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ailment {
    /// Kubernetes names it.
    Named(Trouble),
    /// Its process has run for a while, and does not get ready.
    Unready {
        /// Which container.
        container: String,
        /// Its image.
        image: String,
    },
}

impl Ailment {
    fn reason(&self) -> Reason {
        match self {
            Self::Named(trouble) => trouble.reason(),
            Self::Unready { .. } => Reason::PodNotReady,
        }
    }

    /// What they can't, whether one or many.
    fn what(&self) -> String {
        match self {
            Self::Named(Trouble::Unschedulable { .. }) => "can't find a node".to_owned(),
            Self::Named(Trouble::ImageUnusable { image, .. }) => format!("can't use {image}"),
            Self::Named(Trouble::ImagePull { image, .. }) => format!("can't pull {image}"),
            Self::Named(Trouble::Config { .. }) => "can't start a container".to_owned(),
            Self::Named(Trouble::CrashLoop { image, .. }) => format!("can't keep {image} running"),
            Self::Unready { image, .. } => format!("can't get ready with {image}"),
        }
    }

    /// What one of them says.
    fn words(&self) -> String {
        match self {
            Self::Named(
                Trouble::ImageUnusable { container, message, .. } | Trouble::ImagePull { container, message, .. },
            ) => format!("{container}: {message}"),
            Self::Named(Trouble::CrashLoop { container, restarts, exit, .. }) => {
                let exit = exit.as_ref().map(|exit| format!(", last with {exit}")).unwrap_or_default();
                format!("{container} keeps ending ({restarts} restarts){exit}")
            }
            Self::Named(trouble @ (Trouble::Unschedulable { .. } | Trouble::Config { .. })) => trouble.to_string(),
            Self::Unready { container, .. } => format!("{container} runs and is not ready"),
        }
    }

    /// It does not go away by itself within any reasonable time. One pod that says so gets its time all the same: this is asked where
    /// all of them say so.
    fn stays(&self) -> bool {
        match self {
            // A node may be on its way; and what runs may get ready.
            Self::Named(Trouble::Unschedulable { .. }) | Self::Unready { .. } => false,
            Self::Named(Trouble::ImageUnusable { .. }) => true,
            Self::Named(Trouble::ImagePull { image, message, .. }) => is_refusal(message, image),
            // The others come and go with a runtime that is busy.
            Self::Named(Trouble::Config { reason, .. }) => {
                matches!(reason.as_str(), "CreateContainerConfigError" | "RunContainerError")
            }
            Self::Named(Trouble::CrashLoop { restarts, .. }) => *restarts >= RESTARTS,
        }
    }
}

/// The registry answered, and said no: it lacks the image, or does not give it to us. What is busy, far or limits its rate may say yes later.
fn is_refusal(words: &str, image: &str) -> bool {
    const REFUSALS: [&str; 12] = [
        "not found",
        "manifest unknown",
        "name unknown",
        "does not exist",
        "access denied",
        "is denied",
        "denied:",
        "unauthorized:",
        "401 unauthorized",
        "403 forbidden",
        "authorization failed",
        "signature validation failed",
    ];
    let words = words.replace(image, "").to_lowercase();
    REFUSALS.iter().any(|refusal| words.contains(refusal))
}

impl Look {
    /// What ails it, and the pod that shows it: before all what stays.
    fn ailing(&self) -> Option<(&str, &Ailment)> {
        let ailing = self.pods.iter().filter_map(|pod| match &pod.state {
            PodState::Ails(ailment) => Some((pod.name.as_str(), ailment)),
            PodState::Ready | PodState::Coming => None,
        });
        ailing.min_by_key(|(_, ailment)| !ailment.stays())
    }

    /// None of its pods serves, and what ails it stays.
    fn is_stuck(&self) -> bool {
        let serves = self.pods.iter().any(|pod| pod.state == PodState::Ready);
        !serves && self.ailing().is_some_and(|(_, ailment)| ailment.stays())
    }
}

/// What was found in a tier.
#[derive(Clone, Debug)]
pub struct Finding<'a> {
    /// An example: whose.
    pub id: &'a ItemId,
    /// And which pod.
    pub pod: &'a str,
    ailment: &'a Ailment,
    /// How many have the same.
    same: usize,
    /// How many have something else.
    others: usize,
    /// How many were looked at.
    looked: usize,
    /// How many are up to date.
    done: usize,
    hopeless: Vec<ItemId>,
}

impl<'a> Finding<'a> {
    /// The trouble that most of these have; none where none has any. `whole` says that they speak for the tier, of which so many are up to date
    /// with its image.
    pub fn of(looks: &'a [Look], whole: bool, done: usize) -> Option<Self> {
        let ailing = || looks.iter().filter_map(|look| look.ailing().map(|(pod, ailment)| (&look.id, pod, ailment)));
        let mut counts: BTreeMap<(Reason, String), usize> = BTreeMap::new();
        for (_, _, ailment) in ailing() {
            let count = counts.entry((ailment.reason(), ailment.what())).or_default();
            *count = count.saturating_add(1);
        }
        // Of several, the first by name.
        let most = counts.iter().max_by(|a, b| a.1.cmp(b.1).then_with(|| b.0.cmp(a.0)));
        let ((reason, what), same) = most?;
        let is_it = |ailment: &Ailment| ailment.reason() == *reason && ailment.what() == *what;
        let (id, pod, ailment) = ailing().find(|(_, _, ailment)| is_it(ailment))?;
        let all = whole && done == 0 && looks.iter().all(Look::is_stuck);
        Some(Self {
            id,
            pod,
            ailment,
            same: *same,
            others: ailing().count().saturating_sub(*same),
            looked: looks.len(),
            done,
            hopeless: if all { looks.iter().map(|look| look.id.clone()).collect() } else { Vec::new() },
        })
    }

    /// What to say of it, with where a log tells more.
    pub fn diagnosis(self, log: Option<&Log>) -> Diagnosis {
        let Self { id, pod, ailment, same, others, looked, done, hopeless } = self;
        let how_many = if same == looked && done == 0 { "all" } else { "some" };
        let others = if others > 0 { format!(", {others} something else") } else { String::new() };
        let well = if done > 0 { format!(", and {done} are up to date") } else { String::new() };
        let log = log.map(|log| format!("; {log}")).unwrap_or_default();
        let (what, words) = (ailment.what(), ailment.words());
        let message = format!(
            "{how_many} ({same} of {looked} that were looked at) {what}{others}{well}; such as pod {pod} of {id}: {words}{log}"
        );
        Diagnosis { reason: ailment.reason(), message, hopeless }
    }
}
