//! `windlass demo`: quorums planned and upgraded by the real operator, on a cluster inside this process.

mod frame;
mod keep;
mod pace;
mod summary;

use std::{
    cell::RefCell,
    io::{IsTerminal, Write},
    process::ExitCode,
    rc::Rc,
    time::Duration,
};

use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tokio::task::LocalSet;
use windlass_api::QuorumCluster;
use windlass_rehearsal::{
    context, operator,
    setting::{OPENBAO, PD, Setting},
};
use windlass_sim::{clock::Clock, faults::Process, harness::Cluster, world::Settings};

use crate::{
    demo::{
        frame::Frame,
        summary::{Foreseen, Summary, Upgrade},
    },
    plan::{self, Report},
};

/// The kind that all systems share.
const DEFINITION: &str = "CustomResourceDefinition";
/// Cluster time after which something must be wrong.
const PATIENCE: Duration = Duration::from_mins(30);

/// How the demo is shown.
#[derive(Args)]
pub struct Arguments {
    /// Show this system alone; without it, one after the other
    #[arg(long, value_enum)]
    system: Option<System>,
    /// How many times faster than real time
    #[arg(long, default_value_t = 1.0, value_parser = speed)]
    speed: f64,
    /// Which seed decides everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Plain lines instead of a live picture; chosen by itself when the output is no terminal
    #[arg(long)]
    no_tty: bool,
    /// Print a summary for machines on the last line
    #[arg(short, long, value_enum)]
    output: Option<Output>,
    /// Leave the cluster running afterwards, and print a kubeconfig for it
    #[arg(long)]
    keep: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum System {
    /// TiKV's PD, highest ordinal first
    Pd,
    /// OpenBao, its leader last
    Openbao,
}

impl System {
    fn setting(self) -> Setting {
        match self {
            Self::Pd => PD,
            Self::Openbao => OPENBAO,
        }
    }

    /// A quorum of three as its users have it, at the version before.
    fn objects(self) -> Vec<Value> {
        let setting = self.setting();
        let (from, _) = setting.reference;
        let mut objects = setting.objects(3, from, from);
        objects.retain(|object| object["kind"] != DEFINITION);
        if self == Self::Openbao {
            for object in objects.iter_mut().filter(|object| object["kind"] == "StatefulSet") {
                object["spec"]["podManagementPolicy"] = json!("Parallel");
                object["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
            }
        }
        objects
    }
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if speed.is_finite() && (0.1..=100_000.0).contains(&speed) => Ok(speed),
        Ok(_) => Err("must be between 0.1 and 100000".into()),
        Err(error) => Err(error.to_string()),
    }
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    LocalSet::new().block_on(&runtime, play(arguments))
}

async fn play(arguments: &Arguments) -> Result<ExitCode> {
    let clock = if arguments.keep { Clock::start_at(keep::epoch()) } else { Clock::start() };
    let cluster = Cluster::with(arguments.seed, clock, Settings::default());
    let pace = Rc::new(RefCell::new(arguments.speed));
    tokio::task::spawn_local(cluster.world.clone().run());
    tokio::task::spawn_local(pace::keep(pace.clone()));
    create(&cluster, PD.objects(0, "", "").into_iter().filter(|object| object["kind"] == DEFINITION))?;
    let process = Process::new("windlass-0-0", cluster.clock, cluster.journal.clone(), arguments.seed);
    let seat = cluster.seat(&process);
    tokio::task::spawn_local(async move { process.live(operator(seat)).await });

    let systems = arguments.system.map_or_else(|| System::value_variants().to_vec(), |system| vec![system]);
    let mut upgrades = Vec::new();
    for system in systems {
        upgrades.push(upgrade(arguments, &cluster, system).await?);
    }
    let summary = Summary::of(&cluster, upgrades);
    let mut out = anstream::stdout().lock();
    match arguments.output {
        Some(Output::Json) => writeln!(out, "{}", serde_json::to_string(&summary)?)?,
        None => write!(out, "{}", summary.text())?,
    }
    drop(out);
    if arguments.keep {
        keep::keep(&cluster, &pace).await?;
    }
    Ok(if summary.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn create(cluster: &Cluster, objects: impl IntoIterator<Item = Value>) -> Result<()> {
    for object in objects {
        if let Err(status) = cluster.api.create_value("user", object) {
            bail!("the embedded cluster refused an object: {status}");
        }
    }
    Ok(())
}

/// One system: as it is, what is planned, and the upgrade.
async fn upgrade(arguments: &Arguments, cluster: &Cluster, system: System) -> Result<Upgrade> {
    let setting = system.setting();
    let (from, to) = setting.reference;
    let begin = cluster.clock.elapsed();
    let mut show = Show::new(arguments, cluster, setting);
    create(cluster, system.objects())?;
    show.say(&format!("three members of {} at {from}", setting.system))?;
    let mut foreseen = Foreseen { steps: 0, leadership_moves: 0 };
    if show.follow(from).await? {
        let plan = look(arguments, cluster, &setting).await?;
        foreseen = Foreseen { steps: plan.steps.len(), leadership_moves: plan.leadership_moves.len() };
        show.say(&format!("somebody asks for the plan of an upgrade to {to}: windlass plan"))?;
        show.print(&plan.text())?;
        show.say(&format!("somebody sets spec.version to {to}"))?;
        let patch = json!({"spec": {"version": to}});
        if let Err(why) = windlass_sim::harness::patch_value(&cluster.api, &setting.subject(), &patch) {
            bail!("the embedded cluster refused the new version: {why}");
        }
        show.follow(to).await?;
    }
    show.refresh()?;
    Ok(Upgrade::of(cluster, &setting, foreseen, cluster.clock.elapsed().saturating_sub(begin)))
}

/// What `windlass plan` says of the resource with the new version in it.
async fn look(arguments: &Arguments, cluster: &Cluster, setting: &Setting) -> Result<Report> {
    let subject = setting.subject();
    let object = cluster.api.get_value(&subject.resource, &subject.namespace, &subject.name);
    let mut resource: QuorumCluster = serde_json::from_value(object.as_deref().cloned().unwrap_or_default())?;
    resource.spec.version = Some(setting.reference.1.to_owned());
    let person = Process::new("person", cluster.clock, cluster.journal.clone(), arguments.seed);
    let context = context(cluster.seat(&person));
    plan::outlook(&context, &resource).await.map_err(|error| anyhow!(error.story()))
}

/// What the person at the terminal sees.
struct Show<'a> {
    cluster: &'a Cluster,
    setting: Setting,
    speed: f64,
    live: bool,
    quiet: bool,
    /// How much of the journal was told.
    told: usize,
    /// How many lines the last picture had.
    height: usize,
    last: String,
}

impl<'a> Show<'a> {
    fn new(arguments: &Arguments, cluster: &'a Cluster, setting: Setting) -> Self {
        let quiet = arguments.output == Some(Output::Json);
        let live = !arguments.no_tty && !quiet && std::io::stdout().is_terminal();
        let told = cluster.journal.entries().len();
        Self { cluster, setting, speed: arguments.speed, live, quiet, told, height: 0, last: String::new() }
    }

    /// Shows the cluster until all members run this version and the operator says so; false when that does not happen.
    async fn follow(&mut self, version: &str) -> Result<bool> {
        let deadline = self.cluster.clock.elapsed() + PATIENCE;
        while self.cluster.clock.elapsed() < deadline {
            // Ten pictures a second of the person's time, at least five looks a second of the cluster's.
            let step =
                if self.live { Duration::from_millis(100).mul_f64(self.speed) } else { Duration::from_millis(200) };
            tokio::time::sleep(step.max(Duration::from_millis(20))).await;
            self.refresh()?;
            if self.subject().is_some_and(|subject| is_at(&subject, version)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn subject(&self) -> Option<Value> {
        let subject = self.setting.subject();
        self.cluster.api.get_value(&subject.resource, &subject.namespace, &subject.name).map(|object| (*object).clone())
    }

    fn refresh(&mut self) -> Result<()> {
        if self.quiet {
            return Ok(());
        }
        let lines = {
            let journal = self.cluster.journal.entries();
            let epoch = self.cluster.clock.epoch();
            let fresh = journal.iter().skip(self.told);
            let lines: Vec<String> =
                fresh.filter_map(|entry| frame::line(entry, self.setting.namespace, epoch)).collect();
            self.told = journal.len();
            lines
        };
        if self.live {
            return self.draw(&lines);
        }
        let mut out = anstream::stdout().lock();
        for line in lines {
            // The same state twice, as when a follower's lag changes, is no news.
            if line.get(9..) != self.last.get(9..) {
                writeln!(out, "{line}")?;
            }
            self.last = line;
        }
        Ok(())
    }

    /// Draws the picture over the last one, the news scrolling away above it.
    fn draw(&mut self, news: &[String]) -> Result<()> {
        let Some(subject) = self.subject() else { return Ok(()) };
        let truths = self.cluster.world.truths();
        let truth = truths.iter().find(|truth| truth.namespace == self.setting.namespace);
        let frame = Frame::of(&subject, truth, self.cluster.clock.elapsed(), self.speed);
        let mut out = anstream::stdout().lock();
        if self.height > 0 {
            write!(out, "\x1b[{}A\x1b[J", self.height)?;
        }
        for line in news {
            writeln!(out, "{line}")?;
        }
        let lines = frame.lines();
        for line in &lines {
            writeln!(out, "{line}")?;
        }
        out.flush()?;
        self.height = lines.len();
        Ok(())
    }

    fn say(&mut self, what: &str) -> Result<()> {
        self.print(&format!("{}  -- {what}", frame::time(self.cluster.clock.elapsed())))
    }

    /// Some lines of text, after what has happened so far.
    fn print(&mut self, text: &str) -> Result<()> {
        self.refresh()?;
        if self.quiet {
            return Ok(());
        }
        if self.live {
            return self.draw(&text.lines().map(str::to_owned).collect::<Vec<_>>());
        }
        writeln!(anstream::stdout().lock(), "{}", text.trim_end())?;
        Ok(())
    }
}

fn is_at(subject: &Value, version: &str) -> bool {
    let ready = subject.pointer("/status/conditions/0").is_some_and(|ready| {
        ready["type"] == "Ready"
            && ready["status"] == "True"
            && ready["observedGeneration"] == subject["metadata"]["generation"]
    });
    ready
        && subject.pointer("/status/currentVersion") == Some(&Value::from(version))
        && subject.pointer("/status/upgrade").is_none()
}
