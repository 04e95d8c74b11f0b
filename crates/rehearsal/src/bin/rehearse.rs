//! Runs the suites of the rehearsal and prints what they tried and found.
#![expect(clippy::print_stdout, reason = "a program whose output is its purpose")]

use std::{
    num::NonZeroUsize,
    process::ExitCode,
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};
use serde_json::Value;
use windlass_rehearsal::{
    bugs, crash, operator, setting, stamping,
    trial::{self, Outcome, Scenario},
    walk,
};
use windlass_sim::journal::{Entry, Event};

/// A run is small objects made and dropped, mostly: this one costs a quarter less than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// After so many walks it says how far it is.
const PROGRESS: usize = 1_000;

/// The operator on the embedded cluster, treated badly.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    suite: Suite,
}

#[derive(Subcommand)]
enum Suite {
    /// Kill and freeze the operator at every call of an upgrade.
    Crash {
        /// Of the calls that only read, strike at every so manieth; at writes and hand-overs always.
        #[arg(long, value_name = "N", default_value = "1")]
        reads: NonZeroUsize,
        /// At most so many strikes, evenly chosen among all of them.
        #[arg(long, value_name = "N")]
        points: Option<NonZeroUsize>,
        /// Only the stories whose names contain this, like `OpenBao` or `Mend`.
        #[arg(long, default_value = "")]
        only: String,
    },
    /// Random walks: a seed decides what goes wrong.
    Walks {
        /// How many seeds.
        #[arg(long, default_value_t = 2000)]
        seeds: usize,
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// So many of them are run twice and compared.
        #[arg(long, default_value_t = 100)]
        twice: usize,
    },
    /// Fleets: random walks with operators that are frozen between check and send, and strikes at every call of a reference.
    Fleets {
        /// How many seeds.
        #[arg(long, default_value_t = 2000)]
        seeds: usize,
        /// The first seed.
        #[arg(long, default_value_t = 0)]
        first: u64,
        /// At most so many strikes, evenly chosen among all of them.
        #[arg(long, value_name = "N")]
        points: Option<NonZeroUsize>,
    },
    /// Plant every seeded bug and see that the suites catch it.
    Bugs {
        /// How many seeds each bug may take.
        #[arg(long, default_value_t = 2000)]
        seeds: usize,
        /// Only the bugs whose names contain this.
        #[arg(long, default_value = "")]
        only: String,
    },
    /// Show everything that happens in one run.
    Show {
        /// A random walk of this seed; without it, the reference upgrade.
        #[arg(long)]
        walk: Option<u64>,
        /// A fleet's random walk of this seed.
        #[arg(long, conflicts_with_all = ["walk", "kill", "freeze", "mend"])]
        fleet: Option<u64>,
        /// Strike the reference upgrade at this call, by killing before it.
        #[arg(long)]
        kill: Option<u64>,
        /// Freeze the reference upgrade's operator at this call for so many seconds.
        #[arg(long, num_args = 2)]
        freeze: Option<Vec<u64>>,
        /// The reference upgrade's seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The reference mend instead of the reference upgrade.
        #[arg(long)]
        mend: bool,
        /// The reference upgrade of this system.
        #[arg(long, value_enum, default_value_t)]
        system: System,
    },
}

#[derive(Clone, Copy, Default, ValueEnum)]
enum System {
    #[default]
    Pd,
    Etcd,
    #[value(name = "openbao")]
    OpenBao,
    Http,
}

fn main() -> Result<ExitCode> {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().init();
    match Arguments::parse().suite {
        Suite::Crash { reads, points, only } => strikes(reads, points, &only),
        Suite::Walks { seeds, first, twice } => Ok(walks(seeds, first, twice)),
        Suite::Fleets { seeds, first, points } => Ok(fleets(seeds, first, points)),
        Suite::Bugs { seeds, only } => Ok(hunt(seeds, &only)),
        Suite::Show { fleet: Some(seed), .. } => {
            let scenario = stamping::scenario(seed);
            print_timeline(&scenario);
            print(&stamping::run(&scenario)?)?;
            let walked = stamping::walk(seed);
            println!("{:?}", walked.judgement.violations);
            Ok(verdict(walked.fault.is_none()))
        }
        Suite::Show { fleet: None, walk, kill, freeze, seed, mend, system } => {
            let setting = match system {
                System::Pd => setting::PD,
                System::Etcd => setting::ETCD,
                System::OpenBao => setting::OPENBAO,
                System::Http => setting::HTTP,
            };
            let reference = if mend { setting.mend(seed) } else { setting.reference(seed) };
            let scenario = walk.map_or(reference, walk::scenario);
            show(&scenario, kill, freeze.as_deref())
        }
    }
}

fn strikes(nth: NonZeroUsize, points: Option<NonZeroUsize>, only: &str) -> Result<ExitCode> {
    let mut cases: Vec<crash::Case> = crash::STORIES.iter().map(|story| story.case()).collect();
    cases.retain(|case| case.name.contains(only));
    let report = crash::everywhere(operator, cases, nth.get(), points.map(NonZeroUsize::get))?;
    for failure in report.failures.iter().take(10) {
        println!("  {failure}");
    }
    println!(
        "crash: {} points tried: {} kills, {} freezes with a take-over; {} failed; {} late application calls of a frozen operator had an effect",
        report.kills + report.freezes,
        report.kills,
        report.freezes,
        report.failures.len(),
        report.late_verbs,
    );
    Ok(verdict(report.failures.is_empty()))
}

fn walks(seeds: usize, first: u64, twice: usize) -> ExitCode {
    let twice = twice.min(seeds);
    let (done, begun) = (AtomicUsize::new(0), Instant::now());
    let tell = |walked: &walk::Walked| {
        if let Some(fault) = &walked.fault {
            println!("  seed {}: {fault}", walked.seed);
        }
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(PROGRESS) {
            println!("  {done} of {seeds} walked, {} s", begun.elapsed().as_secs());
        }
    };
    let walked = walk::many(first, seeds, twice, tell);
    let faults = walked.iter().filter(|walked| walked.fault.is_some()).count();
    let again = walk::many(first, twice, twice, |_| {});
    let differ: Vec<u64> =
        walked.iter().zip(&again).filter(|(one, two)| one.trace != two.trace).map(|(one, _)| one.seed).collect();
    for seed in differ.iter().take(10) {
        println!("  seed {seed}: two runs differ");
    }
    println!(
        "walks: {} seeds, {} states judged, {} members replaced, {} races outside anybody's reach; {} failed; {} run twice, {} differ",
        walked.len(),
        walked.iter().map(|walked| walked.checked).sum::<usize>(),
        walked.iter().map(|walked| walked.restarts).sum::<usize>(),
        walked.iter().map(|walked| walked.races).sum::<usize>(),
        faults,
        again.len(),
        differ.len(),
    );
    verdict(faults == 0 && differ.is_empty())
}

fn fleets(seeds: usize, first: u64, points: Option<NonZeroUsize>) -> ExitCode {
    let walked = stamping::walks(first, seeds);
    let faults: Vec<String> = walked
        .iter()
        .filter_map(|walked| walked.fault.as_ref().map(|fault| format!("seed {}: {fault}", walked.seed)))
        .collect();
    let again = stamping::walks(first, seeds.min(50));
    let unlike = walked.iter().zip(&again).filter(|(one, two)| one.trace != two.trace);
    let unlike: Vec<u64> = unlike.map(|(one, _)| one.seed).collect();
    for seed in unlike.iter().take(10) {
        println!("  seed {seed}: two runs differ");
    }
    let differ = unlike.len();
    let struck = stamping::strike_everywhere(4, points.map(NonZeroUsize::get));
    for failure in faults.iter().take(10).chain(struck.failures.iter().take(10)) {
        println!("  {failure}");
    }
    let sum = |of: fn(&stamping::Judgement) -> usize| walked.iter().map(|walked| of(&walked.judgement)).sum::<usize>();
    println!(
        "fleets: {} seeds, {} stamps, {} take-overs, {} failed; {} run twice, {differ} differ; {} points struck, {} failed",
        walked.len(),
        sum(|judged| judged.stamps),
        sum(|judged| judged.take_overs),
        faults.len(),
        again.len(),
        struck.points,
        struck.failures.len(),
    );
    verdict(faults.is_empty() && struck.failures.is_empty() && differ == 0)
}

fn hunt(seeds: usize, only: &str) -> ExitCode {
    let mut missed = 0;
    let mut all = bugs::all();
    all.retain(|bug| <&str>::from(bug).contains(only));
    println!("{:<26} {:>6}  caught by", "seeded bug", "runs");
    for bug in &all {
        let caught = bugs::hunt(*bug, seeds);
        let name: &str = bug.into();
        println!("{name:<26} {:>6}  {}", caught.runs, caught.by.as_deref().unwrap_or("NOT CAUGHT"));
        missed += usize::from(caught.by.is_none());
    }
    println!("bugs: {} planted, {} caught, {missed} missed", all.len(), all.len() - missed);
    verdict(missed == 0)
}

fn show(scenario: &Scenario, kill: Option<u64>, freeze: Option<&[u64]>) -> Result<ExitCode> {
    use windlass_sim::faults::Strike;
    let mut strikes: Vec<(u64, Strike)> = kill.into_iter().map(|call| (call, Strike::KillBefore)).collect();
    if let Some([call, seconds]) = freeze {
        strikes.push((*call, Strike::Freeze(std::time::Duration::from_secs(*seconds))));
    }
    print_timeline(scenario);
    let outcome = trial::run(scenario, &strikes, &operator)?;
    print(&outcome)?;
    Ok(verdict(outcome.fault().is_none()))
}

fn print_timeline(scenario: &Scenario) {
    for moment in &scenario.timeline {
        println!("{:?}: {:?}", moment.when, moment.action);
    }
}

fn print(outcome: &Outcome) -> Result<()> {
    for entry in &outcome.journal {
        if let Some(line) = line(entry) {
            println!("{line}");
        }
    }
    println!("{}", serde_json::to_string_pretty(&outcome.subject)?);
    println!("{:?} after {:?}; fault: {:?}", outcome.verdict, outcome.elapsed, outcome.fault());
    Ok(())
}

fn line(entry: &Entry) -> Option<String> {
    let text = match &entry.event {
        Event::Write(change) if change.resource.starts_with("leases") => {
            let holder = |object: Option<&Value>| object.map(|object| object["spec"]["holderIdentity"].clone());
            let (before, after) = (holder(change.before.as_deref()), holder(change.after.as_deref()));
            // Renewals are many.
            if before == after {
                return None;
            }
            format!("{} takes the lease: {}", change.user, after.unwrap_or_default())
        }
        Event::Write(change) => {
            let after = change.after.as_deref();
            let at =
                |path: &str| after.and_then(|after| after.pointer(path)).map(ToString::to_string).unwrap_or_default();
            let detail = match change.resource.as_str() {
                "statefulsets.apps" => format!(
                    "partition {} image {} current {} update {}",
                    at("/spec/updateStrategy/rollingUpdate/partition"),
                    at("/spec/template/spec/containers/0/image"),
                    at("/status/currentRevision"),
                    at("/status/updateRevision"),
                ),
                "quorumclusters.windlass.dev" => {
                    format!(
                        "{} {} {} {}",
                        at("/spec/version"),
                        at("/status/conditions/0/message"),
                        at("/status/upgrade/stage"),
                        at("/status/operator/identity")
                    )
                }
                "pods" => format!(
                    "{} {} {}",
                    at("/spec/containers/0/image"),
                    at("/metadata/deletionTimestamp"),
                    at("/spec/nodeName")
                ),
                "dicoms.examples.windlass.dev" => format!(
                    "{} {} {} generation {} {}",
                    at("/metadata/labels"),
                    at("/spec"),
                    at("/metadata/annotations"),
                    at("/metadata/generation"),
                    said(after),
                ),
                "serviceimages.windlass.dev" => format!(
                    "{} batch {} {} {}",
                    at("/metadata/generation"),
                    at("/status/batch"),
                    at("/status/operator"),
                    said(after),
                ),
                "events" => at("/note"),
                _ => String::new(),
            };
            format!("{} {:?} {}/{} {detail}", change.user, change.verb, change.resource, change.name)
        }
        Event::Quorum(truth) => {
            let member = |member: &windlass_sim::journal::MemberTruth| {
                let mark = if member.leader { "*" } else { "" };
                format!("{}{mark}{} {}", member.pod, if member.healthy { "+" } else { "-" }, member.version)
            };
            format!("== {}", truth.members.iter().map(member).collect::<Vec<_>>().join("  "))
        }
        Event::Verb { what, changed: false, .. }
            if what.contains("maintenance/status") || what.contains("member/list") =>
        {
            return None;
        }
        Event::Verb { user, pod, what, changed } => format!("{user} called {pod}: {what} (changed: {changed})"),
        Event::Note(note) => format!("-- {note}"),
    };
    Some(format!("{} {text}", entry.at))
}

/// The conditions of an object in short.
fn said(object: Option<&Value>) -> String {
    let conditions = object.and_then(|object| object.pointer("/status/conditions")?.as_array());
    let one = |one: &Value| {
        let word = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        format!("{}={} ({}: {})", word("type"), word("status"), word("reason"), word("message"))
    };
    conditions.into_iter().flatten().map(one).collect::<Vec<_>>().join(", ")
}

fn verdict(passed: bool) -> ExitCode {
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
