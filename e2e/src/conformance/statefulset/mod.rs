//! The embedded controllers of StatefulSets, Jobs, Deployments and ReplicaSets held to the real ones.
//!
//! Each scenario runs on the embedded cluster first, in virtual time, with one pod transition at a time, and leaves a list of
//! points: an act, and the state at rest after it. The real cluster then goes through the same acts, its pods played by
//! KWOK, and must come to the same state at each point. Many scenarios run side by side, each in a namespace of its own.
//!
//! A comparison that can't fail proves nothing: [`deviations`] breaks one rule of the embedded controller at a time and
//! demands that the comparison notices.

mod acts;
mod deployments;
mod embedded;
mod jobs;
mod matrix;
mod pulse;
mod real;
mod replicas;
mod scenario;
mod snapshot;
mod watched;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt as _, stream};
use windlass_sim::world::{DeploymentDeviation, Deviation, JobDeviation};

use real::Real;
use scenario::Scenario;

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only scenarios whose name contains this.
    pub only: Option<String>,
    /// About so many, spread over the whole matrix.
    pub limit: Option<usize>,
    /// Breaks a rule of the embedded controller: then differences are what is expected.
    pub deviation: Option<Broken>,
}

/// A rule that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Of the StatefulSet controller.
    Set(Deviation),
    /// Of the Job controller.
    Job(JobDeviation),
    /// Of the Deployment controller or the ReplicaSet controller.
    Deployment(DeploymentDeviation),
}

impl Broken {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let sets = Deviation::ALL.into_iter().map(Self::Set);
        let jobs = JobDeviation::ALL.into_iter().map(Self::Job);
        sets.chain(jobs).chain(DeploymentDeviation::ALL.into_iter().map(Self::Deployment))
    }

    /// The scenarios (by a part of their names) that notice it.
    fn noticed_by(self) -> &'static str {
        match self {
            Self::Set(deviation) => matrix::notices(deviation),
            Self::Job(deviation) => jobs::notices(deviation),
            Self::Deployment(deviation) => deployments::notices(deviation),
        }
    }
}

/// Whose controller a scenario is about: names of those about Jobs and Deployments begin with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// StatefulSets.
    Set,
    /// Jobs.
    Job,
    /// Deployments.
    Deployment,
}

impl Part {
    fn of(scenario: &str) -> Self {
        match scenario.split('/').next() {
            Some("job") => Self::Job,
            Some("deployment") => Self::Deployment,
            Some(_) | None => Self::Set,
        }
    }

    /// How much fewer of a part's scenarios are in a choice: rollouts of Deployments have the most points, and differ the least.
    const fn thinned(self) -> usize {
        match self {
            Self::Set | Self::Job => 1,
            Self::Deployment => 4,
        }
    }
}

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Scenarios that ran.
    pub scenarios: usize,
    /// How many of them are about whom.
    pub parts: BTreeMap<Part, usize>,
    /// Points at which both sides were equal.
    pub points: usize,
    /// The first difference of each scenario that has one.
    pub differences: Vec<Difference>,
}

impl Report {
    /// How many scenarios and how many differences one part has.
    pub fn of(&self, part: Part) -> (usize, usize) {
        let differences = self.differences.iter().filter(|difference| Part::of(&difference.scenario) == part);
        (self.parts.get(&part).copied().unwrap_or(0), differences.count())
    }
}

/// A state that the real cluster didn't come to.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The scenario's name.
    pub scenario: String,
    /// The number of the point.
    pub step: usize,
    /// What was done up to there.
    pub acts: Vec<String>,
    /// What differs.
    pub facts: Vec<String>,
    /// How long the real cluster was given.
    pub waited: Duration,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} differs at step {} (after {:.1?}):", self.scenario, self.step, self.waited)?;
        for (number, act) in self.acts.iter().enumerate() {
            writeln!(f, "  {number:>3} {act}")?;
        }
        for fact in &self.facts {
            writeln!(f, "  {fact}")?;
        }
        write!(f, "  alone: --only {}", self.scenario)
    }
}

/// How long the real cluster is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// An equal state that stays for this long is at rest.
    pub quiet: Duration,
    /// The same at the last point of a scenario, after which nobody looks any more.
    pub last_quiet: Duration,
    /// And for so many beats of the cluster's pulse.
    pub quiet_beats: usize,
    /// A different state that stays for this long is a difference.
    pub give_up: Duration,
    /// And for so many beats.
    pub give_up_beats: usize,
    /// A state that never stays is a difference after this.
    pub longest: Duration,
}

const PATIENCE: Patience = Patience {
    quiet: Duration::from_millis(150),
    last_quiet: Duration::from_millis(600),
    quiet_beats: 1,
    give_up: Duration::from_secs(20),
    give_up_beats: 20,
    longest: Duration::from_mins(10),
};

/// Where differences are wanted, there's no point in waiting for long.
const HURRY: Patience = Patience { give_up: Duration::from_secs(4), give_up_beats: 4, ..PATIENCE };

/// Scenarios that run side by side: more of them only wait for one another.
const SIDE_BY_SIDE: usize = 24;

/// The scenarios that the options ask for.
fn chosen(options: &Options) -> Vec<Scenario> {
    let wanted = |scenario: &Scenario| options.only.as_ref().is_none_or(|only| scenario.name.contains(only.as_str()));
    let all: Vec<Scenario> = everything().filter(wanted).collect();
    // Neighbours in the matrix resemble each other: a part of it is spread over the whole.
    let stride = (all.len() / options.limit.unwrap_or(usize::MAX).clamp(1, all.len().max(1))).max(1);
    let mut passed: BTreeMap<Part, usize> = BTreeMap::new();
    let mut is_chosen = |scenario: &Scenario| {
        let part = Part::of(&scenario.name);
        let count = passed.entry(part).or_default();
        *count += 1;
        (*count - 1).is_multiple_of(if stride > 1 { stride * part.thinned() } else { 1 })
    };
    all.into_iter().filter(|scenario| is_chosen(scenario)).collect()
}

fn everything() -> impl Iterator<Item = Scenario> {
    matrix::all().into_iter().chain(jobs::all()).chain(deployments::all())
}

/// The names of all scenarios.
pub fn names() -> Vec<String> {
    everything().map(|scenario| scenario.name).collect()
}

/// Runs the scenarios on both clusters.
pub async fn run(kubeconfig: &Path, options: &Options) -> Result<Report> {
    let patience = if options.deviation.is_some() { HURRY } else { PATIENCE };
    let real = Real::connect(crate::cluster::client(kubeconfig).await?, patience).await?;
    let scenarios = chosen(options);
    ensure!(!scenarios.is_empty(), "no scenario of that name");
    let count = scenarios.len();
    let mut report = Report::default();
    for scenario in &scenarios {
        *report.parts.entry(Part::of(&scenario.name)).or_default() += 1;
    }
    let mut outcomes = stream::iter(scenarios.into_iter().enumerate())
        .map(|(number, scenario)| {
            let (real, deviation) = (real.clone(), options.deviation);
            async move {
                let played = scenario.clone();
                let points = tokio::task::spawn_blocking(move || embedded::play(&played, deviation)).await?;
                let points = points.with_context(|| format!("{} on the embedded cluster", scenario.name))?;
                let outcome = real.play(number, &scenario, &points).await;
                outcome.with_context(|| format!("{} on the real cluster", scenario.name))
            }
        })
        .buffer_unordered(SIDE_BY_SIDE);
    while let Some(outcome) = outcomes.next().await {
        let (points, difference) = outcome?;
        report.scenarios += 1;
        report.points += points;
        if let Some(difference) = difference {
            println!("{difference}");
            report.differences.push(difference);
        }
        if report.scenarios.is_multiple_of(20) || report.scenarios == count {
            println!(
                "{}/{count} scenarios, {} points, {} differences",
                report.scenarios,
                report.points,
                report.differences.len()
            );
        }
    }
    Ok(report)
}

/// Breaks each rule of the embedded controller in turn; an error when the comparison doesn't notice one of them.
pub async fn deviations(kubeconfig: &Path) -> Result<()> {
    for deviation in Broken::all() {
        let only = deviation.noticed_by();
        let options = Options { only: Some(only.to_owned()), limit: None, deviation: Some(deviation) };
        let report = run(kubeconfig, &options).await?;
        ensure!(!report.differences.is_empty(), "{deviation:?} went unnoticed by {only}");
        println!("{deviation:?}: noticed by {} of {} scenarios", report.differences.len(), report.scenarios);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::embedded::Mood;
    use super::*;

    /// What a comparison of states at rest takes for granted: who is quicker than whom makes no difference to them.
    #[test]
    fn what_a_deployment_comes_to_does_not_depend_on_chance() {
        let moods = [1, 2].map(|seed| Mood { seed, ..Mood::default() });
        assert_eq!(moody(&deployments::all(), &moods), Vec::<String>::new());
    }

    /// Nor does it whether a controller has seen its own last status already.
    #[test]
    fn what_a_set_comes_to_does_not_depend_on_chance() {
        let moods = [Mood { seed: 1, ..Mood::default() }, Mood { status_refused: true, ..Mood::default() }];
        assert_eq!(moody(&matrix::all(), &moods), Vec::<String>::new());
    }

    fn moody(scenarios: &[Scenario], moods: &[Mood]) -> Vec<String> {
        let mut found = Vec::new();
        for scenario in scenarios {
            let states = |mood| -> Vec<_> {
                let points = embedded::play_in(scenario, None, mood).unwrap();
                points.into_iter().map(|point| (point.act.to_string(), point.code, point.snapshot)).collect()
            };
            let first = states(Mood::default());
            for mood in moods {
                let other = states(*mood);
                let different = first.iter().zip(&other).find(|(one, other)| one != other);
                if let Some((one, other)) = different {
                    let facts = one.2.differences("here", &other.2, "there");
                    found.push(format!("{} after {}: {}", scenario.name, one.0, facts.join("\n  ")));
                    break;
                }
            }
        }
        found
    }

    #[test]
    fn each_deviation_shows_in_the_scenarios_that_are_to_notice_it() {
        for deviation in Broken::all() {
            let only = Some(deviation.noticed_by().to_owned());
            let scenarios = chosen(&Options { only, ..Options::default() });
            let shows = |scenario: &Scenario| {
                let states = |deviation| -> Vec<_> {
                    embedded::play(scenario, deviation).unwrap().into_iter().map(|point| point.snapshot).collect()
                };
                states(None) != states(Some(deviation))
            };
            assert!(scenarios.iter().any(shows), "{deviation:?}");
        }
    }
}
